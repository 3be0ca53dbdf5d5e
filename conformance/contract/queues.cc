// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/queues.h"
#include "conformance/contract/differences.h"

namespace collet::conformance {
namespace {

// Overwrites a list that was passed to a call, to find backends that read it after the call.
template <typename T>
void spoil(std::vector<T>& list) {
  if (!list.empty()) std::memset(static_cast<void*>(list.data()), 0xee, list.size() * sizeof(T));
}

}  // namespace

Queue Setting::create(uint32_t kind, uint32_t device) const {
  Contract& c = contract();
  collet_backend_queue* handle = nullptr;
  const collet_status status = checked_call(c, "create of a queue", [&](collet_error* error) {
    return table->create(instance->handle(), device, kind, &handle, error);
  });
  if (!c.check(status == COLLET_OK && handle, Promise::QUEUE_CREATE, "create of a queue of kind {} gave status {}",
               kind, status))
    return {};
  return {table, handle};
}

bool Setting::copy(Queue& queue, const std::vector<collet_copy_region>& regions, const std::vector<collet_point>& waits,
                   uint64_t step) const {
  auto kept = std::make_unique<std::vector<collet_copy_region>>(regions);
  auto points = std::make_unique<std::vector<collet_point>>(waits);
  auto signal = std::make_unique<collet_point>(queue.next(step));
  auto sync = std::make_unique<collet_sync>();
  *sync = {queue.handle(), points->empty() ? nullptr : points->data(), signal.get(),
           static_cast<uint32_t>(points->size()), 1};
  const collet_status status = checked_call(contract(), "copy on a queue", [&](collet_error* error) {
    return instance->table().copy(instance->handle(), kept->data(), static_cast<uint32_t>(kept->size()), sync.get(),
                                  error);
  });
  spoil(*kept);
  spoil(*points);
  std::memset(static_cast<void*>(signal.get()), 0xee, sizeof *signal);
  std::memset(static_cast<void*>(sync.get()), 0xee, sizeof *sync);
  if (status != COLLET_OK) queue.take_back(step);
  return status == COLLET_OK;
}

bool Setting::launch(Queue& queue, const Executable& executable, GuardedLaunch& guarded,
                     const std::vector<collet_point>& waits) const {
  auto launch = std::make_unique<collet_launch>(guarded.launch());
  auto arguments = guarded.arguments();
  auto results = guarded.results();
  auto points = waits;
  const collet_point signal = queue.next();
  auto sync = std::make_unique<collet_sync>(
      collet_sync{queue.handle(), points.data(), &signal, static_cast<uint32_t>(points.size()), 1});
  launch->arguments = arguments.data();
  launch->results = results.data();
  launch->sync = sync.get();
  const collet_status status = checked_call(contract(), "execute on a queue", [&](collet_error* error) {
    return instance->table().execute(executable.handle(), launch.get(), 1, 1, error);
  });
  spoil(arguments);
  spoil(results);
  spoil(points);
  std::memset(static_cast<void*>(launch.get()), 0xee, sizeof *launch);
  std::memset(static_cast<void*>(sync.get()), 0xee, sizeof *sync);
  if (status != COLLET_OK) queue.take_back();
  return status == COLLET_OK;
}

Setting start_queues(Contract& c, uint32_t devices) {
  Setting out{Instance::open(c, devices), nullptr};
  if (!out.instance) return out;
  if (!out.instance->executes()) {
    c.skip("a device has COLLET_TRAIT_VIRTUAL");
    return out;
  }
  out.table = out.instance->query<collet_queue_table>("queue");
  if (!out.table) c.skip("the backend has no table \"queue\"");
  return out;
}

bool same_bytes(Contract& c, const Bytes& got, const Bytes& expected, Promise promise, const std::string& what) {
  const std::string wrong = difference_text(got, expected);
  return c.check(wrong.empty(), promise, "{}: {}", what, wrong);
}

}  // namespace collet::conformance
