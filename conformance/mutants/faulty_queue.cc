// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/faulty.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace collet::mutants {
namespace {

struct Failed {
  collet_status status = COLLET_OK;
  std::string message;
  const char* kept = nullptr;  // what abort got
};

std::mutex mutex;
std::set<collet_backend_queue*> queues;
std::map<collet_backend_queue*, Failed> failed;
std::map<collet_backend_queue*, uint64_t> counts;
std::map<collet_backend_queue*, uint32_t> devices;
std::set<uint32_t> made_kinds;
const collet_queue_table* inner = nullptr;

bool has_failed(collet_backend_queue* queue) {
  const std::lock_guard lock(mutex);
  return failed.count(queue) > 0;
}

collet_status create(collet_backend_instance* p, uint32_t device, uint32_t kind, collet_backend_queue** out,
                     collet_error* error) {
  if (is_lost()) return lost(error);
  if (is(Fault::queue_kind_refused) && kind == COLLET_QUEUE_DOWNLOAD)
    return fail(error, COLLET_INVALID_ARGUMENT, "there is no such kind");
  if (is(Fault::queue_one_of_a_kind) && !made_kinds.insert(kind).second)
    return fail(error, COLLET_ALREADY_EXISTS, "there is one");
  const collet_status code = inner->create(reinterpret_cast<Instance*>(p)->inner, device, kind, out, error);
  const std::lock_guard lock(mutex);
  if (code == COLLET_OK) queues.insert(*out);
  if (code == COLLET_OK) devices[*out] = device;
  return code;
}

void destroy(collet_backend_queue* queue) {
  {
    const std::lock_guard lock(mutex);
    queues.erase(queue);
    failed.erase(queue);
    counts.erase(queue);
    devices.erase(queue);
  }
  if (is(Fault::queues_leak)) {
    static std::vector<std::unique_ptr<char[]>> left;
    left.push_back(std::make_unique<char[]>(4096));
  }
  inner->destroy(queue);
}

collet_status wait(collet_backend_queue* queue, uint64_t value, uint64_t timeout_ns, collet_error* error) {
  if (is(Fault::queue_wait_is_early) && value > 0) --value;
  if (is(Fault::queue_failure_takes_back_points) && has_failed(queue)) {
    const std::lock_guard lock(mutex);
    return fail(error, failed[queue].status, failed[queue].message);
  }
  if (is_lost() && is(Fault::loss_takes_back_points)) return lost(error);
  if (is(Fault::queue_wait_is_for_ever)) timeout_ns = UINT64_MAX;
  if (is(Fault::queue_abort_wakes_nobody) && timeout_ns > 0 && !has_failed(queue)) {
    // As if the waiting thread were told of points only: who has begun to wait hears nothing of an abort.
    collet_error ignored{};
    while (inner->wait(queue, value, 1000000, &ignored) != COLLET_OK)
      if (timeout_ns != UINT64_MAX) return fail(error, COLLET_DEADLINE_EXCEEDED, "not reached");
    return COLLET_OK;
  }
  const collet_status code = inner->wait(queue, value, timeout_ns, error);
  if (code == COLLET_UNAVAILABLE && is(Fault::loss_changes_its_words)) return lost(error);
  if (code == COLLET_UNAVAILABLE && is(Fault::loss_is_forgotten)) {
    static std::atomic<int> times{0};
    if (times++ > 0) return COLLET_OK;
  }
  if (code == COLLET_DEADLINE_EXCEEDED && is(Fault::queue_wait_ends_well)) return COLLET_OK;
  if (code == COLLET_OK || code == COLLET_DEADLINE_EXCEEDED) return code;
  if (is(Fault::queue_abort_keeps_pointer) && has_failed(queue)) {
    const std::lock_guard lock(mutex);
    return fail(error, failed[queue].status, failed[queue].kept);
  }
  if (is(Fault::queue_last_abort_wins) && has_failed(queue)) {
    const std::lock_guard lock(mutex);
    return fail(error, failed[queue].status, failed[queue].message);
  }
  if (is(Fault::queue_failure_changes_on_the_way) && !has_failed(queue))
    return fail(error, COLLET_INTERNAL, "another failed");
  return code;
}

void abort(collet_backend_queue* queue, collet_status status, const char* message) {
  {
    const std::lock_guard lock(mutex);
    if (!failed.count(queue) || is(Fault::queue_last_abort_wins)) failed[queue] = {status, message, message};
    if (is(Fault::queue_abort_stops_all))
      for (collet_backend_queue* other : queues) inner->abort(other, status, message);
  }
  if (is(Fault::queue_abort_ignored)) return;
  inner->abort(queue, is(Fault::queue_abort_changes_status) ? COLLET_UNKNOWN : status,
               is(Fault::queue_abort_changes_message) ? "aborted" : message);
}

}  // namespace

void lose_queues(collet_backend_queue* queue) {
  const std::lock_guard lock(mutex);
  for (collet_backend_queue* one : queues)
    if (one == queue || !is(Fault::loss_spares_other_queues))
      inner->abort(one, COLLET_UNAVAILABLE, "the device is lost");
}

const void* queue_table(Instance* self) {
  static const collet_queue_table table = {
      sizeof(collet_queue_table), 0, create, destroy, wait, nullptr, nullptr, abort};
  inner = behind->query ? static_cast<const collet_queue_table*>(behind->query(self->inner, "queue", 1)) : nullptr;
  return inner ? &table : nullptr;
}

namespace {

bool is_upload(const collet_copy_region& region) {
  return !region.from.buffer;
}
bool is_download(const collet_copy_region& region) {
  return !region.to.buffer;
}

// Removes those waits of a copy that the fault ignores.
void drop_waits(std::vector<collet_point>& waits, const collet_copy_region& region, collet_backend_queue* queue) {
  const bool across = !is_upload(region) && !is_download(region);
  if ((is(Fault::upload_ignores_waits) && is_upload(region)) ||
      (is(Fault::download_ignores_waits) && is_download(region)) || (is(Fault::device_copy_ignores_waits) && across))
    waits.clear();
  if (is(Fault::queue_waits_for_last) && waits.size() > 1) waits.erase(waits.begin(), waits.end() - 1);
  if (is(Fault::queue_ignores_other_devices)) {
    const std::lock_guard lock(mutex);
    std::erase_if(waits, [&](const collet_point& p) { return devices[p.queue] != devices[queue]; });
  }
}

}  // namespace

collet_status launch_on_queue(Executable& self, const collet_launch& launch, uint64_t run_id, collet_error* error) {
  collet_launch changed = launch;
  collet_sync sync = *launch.sync;
  if (is(Fault::launch_ignores_waits)) sync.wait_count = 0;
  if (is(Fault::launch_waits_for_first)) sync.wait_count = std::min(sync.wait_count, 1u);
  if (is(Fault::launch_waits_for_last) && sync.wait_count > 1) {
    sync.waits += sync.wait_count - 1;
    sync.wait_count = 1;
  }
  changed.sync = &sync;
  if (!is(Fault::launch_signals_early)) return behind->execute(self.inner, &changed, 1, run_id, error);
  std::thread([&self, changed, run_id,
               arguments = std::vector<collet_argument>(launch.arguments, launch.arguments + launch.argument_count),
               results = std::vector<collet_argument>(launch.results, launch.results + launch.result_count)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    changed.arguments = arguments.data();
    changed.results = results.data();
    changed.sync = nullptr;
    collet_error ignored{};
    behind->execute(self.inner, &changed, 1, run_id, &ignored);
  }).detach();
  collet_copy_region nothing{};
  nothing.from.buffer = launch.results[0].buffer;
  nothing.to.buffer = launch.results[0].buffer;
  return behind->copy(self.owner->inner, &nothing, 1, &sync, error);
}

collet_status copy_on_queue(Instance* self, const collet_copy_region* regions, uint32_t count, const collet_sync* sync,
                            collet_error* error) {
  std::vector<collet_copy_region> changed(regions, regions + count);
  for (collet_copy_region& region : changed) {
    for (collet_place* place : {&region.from, &region.to}) {
      if (!place->buffer) continue;
      place->offset += reinterpret_cast<Buffer*>(place->buffer)->shift;
      place->buffer = reinterpret_cast<Buffer*>(place->buffer)->inner;
    }
  }
  collet_sync other = *sync;
  collet_point signal = sync->signals[0];
  std::vector<collet_point> waits(sync->waits, sync->waits + sync->wait_count);
  if (is(Fault::queue_passes_failed_waits))
    waits.erase(std::remove_if(waits.begin(), waits.end(), [](const collet_point& p) { return has_failed(p.queue); }),
                waits.end());
  if (is(Fault::queue_ignores_waits)) waits.clear();
  if (is(Fault::queue_waits_for_one)) waits.resize(std::min<size_t>(waits.size(), 1));
  if (count > 0) drop_waits(waits, changed[0], sync->queue);
  const bool at_once = is(Fault::upload_at_once) && count > 0 && is_upload(changed[0]);
  if (at_once) {
    collet_error ignored{};
    behind->copy(self->inner, changed.data(), count, nullptr, &ignored);
    count = 0;
  }
  if (is(Fault::upload_reads_host_at_once) && count > 0 && is_upload(changed[0])) {
    // Copies the data to staging memory when the copy is queued; the memory leaks.
    for (collet_copy_region& region : changed) {
      auto* staged = new Bytes(static_cast<const uint8_t*>(region.from.host) + region.from.offset,
                               static_cast<const uint8_t*>(region.from.host) + region.from.offset + region.bytes);
      region.from = {nullptr, staged->data(), 0};
    }
  }
  if (is(Fault::queue_counts_pieces)) {
    const std::lock_guard lock(mutex);
    signal.value = ++counts[sync->queue];
  }
  other.waits = waits.data();
  other.wait_count = static_cast<uint32_t>(waits.size());
  other.signals = &signal;
  if (is(Fault::queue_refuses_much) && signal.value > 1000) return fail(error, COLLET_RESOURCE_EXHAUSTED, "too much");
  if (is(Fault::failed_queue_goes_on) && has_failed(sync->queue)) {
    collet_error ignored{};
    behind->copy(self->inner, changed.data(), count, nullptr, &ignored);
  }
  if (is(Fault::queue_signals_before_last_region) && count > 1) {
    std::thread([self, last = changed[count - 1]] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      collet_error ignored{};
      behind->copy(self->inner, &last, 1, nullptr, &ignored);
    }).detach();
    --count;
  }
  const bool late = is(Fault::queue_signals_early), kept = is(Fault::queue_keeps_regions);
  if (late || kept) {
    std::thread([self, changed, regions, kept] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      std::vector<collet_copy_region> now = changed;
      if (kept) now[0].bytes = std::min<uint64_t>(regions[0].bytes, now[0].bytes);
      if (kept) now[0].from.offset += regions[0].from.offset & 0xff;
      collet_error ignored{};
      behind->copy(self->inner, now.data(), static_cast<uint32_t>(now.size()), nullptr, &ignored);
    }).detach();
    return behind->copy(self->inner, changed.data(), 0, &other, error);
  }
  return behind->copy(self->inner, changed.data(), count, &other, error);
}

}  // namespace collet::mutants
