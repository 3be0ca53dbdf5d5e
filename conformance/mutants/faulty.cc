// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/faulty.h"

#include <collet/ranges.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <collet/backend_table.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace collet::mutants {

const collet_backend* behind = nullptr;
Fault fault = Fault::none;

collet_status fail(collet_error* error, collet_status code, const std::string& message) {
  error->code = is(Fault::error_code_zero) ? 0 : is(Fault::error_code_differs) ? COLLET_UNKNOWN : code;
  error->reserved = 0;
  std::snprintf(error->message, sizeof error->message, "%s", message.c_str());
  if (is(Fault::message_missing)) error->message[0] = '\0';
  if (is(Fault::message_other_encoding)) std::snprintf(error->message, sizeof error->message, "Ger\xe4t");
  if (is(Fault::message_unterminated)) std::memset(error->message, 'x', sizeof error->message);
  return is(Fault::status_negative) ? -1 : code;
}

void leave() {
  static std::atomic<void*> last{nullptr};
  last = std::malloc(48);
}

namespace {

std::atomic<int64_t> lose_after{-1}, pieces{0};
std::atomic<uint32_t> lost_device{0};

}  // namespace

bool is_lost() {
  return lose_after >= 0 && pieces > lose_after;
}

bool is_lost(uint32_t device) {
  const bool others_go_on = is(Fault::loss_of_one_device) || is(Fault::loss_of_one_loses_data_of_others);
  if (!is_lost() || (others_go_on && device != lost_device)) return false;
  static std::atomic<int> others{0};
  return !is(Fault::loss_of_others_heals) || device == lost_device || others++ == 0;
}

void heal() {
  pieces = INT64_MIN;
}

// Makes all queues fail before the call returns: work that is added afterwards fails, and so does work that waits.
bool lose_one(collet_backend_queue* queue, uint32_t device) {
  if (lose_after < 0) return false;
  ++pieces;
  if (pieces == lose_after + 1) {
    lost_device = device;
    lose_queues(queue);
  }
  if (is(Fault::loss_is_forgotten) && pieces > lose_after + 2) return false;
  return is_lost(device);
}

collet_status lost(collet_error* error) {
  static std::atomic<int> times{0};
  return fail(error, COLLET_UNAVAILABLE,
              is(Fault::loss_changes_its_words) ? "lost, " + std::to_string(times++) : "the device is lost");
}

namespace {

const collet_host* host = nullptr;
std::atomic<int> open_instances{0}, opened_instances{0}, closed_instances{0}, exhausted{0};

// Ends the process with an error at exit if an instance is still open, for the fault of that kind.
struct AtExit {
  ~AtExit() {
    if (is(Fault::end_aborts)) std::abort();
    if (is(Fault::end_exits)) std::exit(0);
    if (is(Fault::end_exits_at_once)) _exit(0);
    while (is(Fault::end_hangs)) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (is(Fault::end_without_close_crashes) && closed_instances < opened_instances) std::abort();
    while (is(Fault::end_without_close_hangs) && closed_instances < opened_instances)
      std::this_thread::sleep_for(std::chrono::seconds(1));
  }
};

void close_all_descriptors() {
  for (int fd = 0; fd < 256; ++fd) ::close(fd);
}

collet_status load(const std::string& path, collet_error* error) {
  if (behind != nullptr) return COLLET_OK;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "collet_backend_entry") : nullptr;
  if (symbol == nullptr) return fail(error, COLLET_NOT_FOUND, "there is no backend at '" + path + "'");
  collet_backend_entry_fn entry = nullptr;
  std::memcpy(&entry, &symbol, sizeof entry);
  return entry(host, &behind, error);
}

collet_status read_options(const collet_open_options* options, std::string& path, collet_error* error) {
  for (uint32_t i = 0; i < options->pairs; ++i) {
    const std::string_view key = options->keys[i];
    if (key == "backend") {
      path = options->values[i];
    } else if (key == "lose_after") {
      lose_after = std::strtoll(options->values[i], nullptr, 10);
    } else if (key == "fault") {
      const auto found = collet::mutants::fault_named(options->values[i]);
      if (!found) return fail(error, COLLET_INVALID_ARGUMENT, "there is no such fault");
      fault = *found;
    } else if (!is(Fault::unknown_option_taken)) {
      return fail(error, COLLET_INVALID_ARGUMENT, "there is no such option");
    }
  }
  if (options->target && !is(Fault::unknown_target_taken))
    return fail(error, is(Fault::target_refused_with_other_code) ? COLLET_INTERNAL : COLLET_NOT_FOUND,
                "there is no target");
  return COLLET_OK;
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  std::string path;
  if (const collet_status code = read_options(options, path, error)) {
    if (is(Fault::refused_open_leaks)) leave();
    if (is(Fault::older_out_instance_on_error)) *out = reinterpret_cast<collet_backend_instance*>(&fault);
    return code;
  }
  if (const collet_status code = load(path, error)) return code;
  if (is(Fault::second_open_fails) && open_instances > 0) return fail(error, COLLET_FAILED_PRECONDITION, "it is open");
  auto self = std::make_unique<Instance>();
  collet_open_options inner{};
  inner.struct_size = sizeof inner;
  inner.device_count = options->device_count;
  collet_instance_info inner_info{};
  inner_info.struct_size = sizeof inner_info;
  if (const collet_status code = behind->open(&inner, &self->inner, &inner_info, error)) return code;
  self->devices = inner_info.device_count;
  collet_device_info device{};
  device.struct_size = sizeof device;
  if (const collet_status code = behind->device_info(self->inner, 0, &device, error)) return code;
  self->spaces = device.space_count;
  self->alignment = device.spaces[0].alignment;
  self->name = is(Fault::name_capital) ? "Faulty" : is(Fault::name_escape) ? "faulty\x1b[31m" : "faulty";
  self->options = options;
  const uint32_t size = info->struct_size;
  info->opset = inner_info.opset;
  if (is(Fault::opset_unknown)) info->opset = 0;
  info->device_count = inner_info.device_count;
  self->is_second = open_instances > 0;
  static char shared_name[16];
  std::snprintf(shared_name, sizeof shared_name, "faulty%d", open_instances.load());
  info->name = is(Fault::name_dies) ? shared_name : self->name.c_str();
  info->version = is(Fault::version_missing) ? nullptr : "1";
  if (is(Fault::info_reserved_set)) info->reserved = 1;
  if (is(Fault::struct_size_rewritten)) info->struct_size = sizeof *info + 8;
  if (is(Fault::info_overrun)) std::memset(reinterpret_cast<char*>(info) + size, 0, 8);
  if (is(Fault::error_written_on_success)) error->code = 0;
  if (is(Fault::files_leak)) ::open("/dev/null", O_RDONLY);
  if (open_instances++ == 0) pieces = 0;
  ++opened_instances;
  static const AtExit at_exit;
  *out = reinterpret_cast<collet_backend_instance*>(self.release());
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  if (is(Fault::loss_crashes_close) && is_lost()) std::abort();
  --open_instances;
  ++closed_instances;
  if (is(Fault::close_leaks)) return;
  if (is(Fault::close_leaks_little)) leave();
  behind->close(of(p)->inner);
  delete of(p);
  if (is(Fault::close_closes_descriptors)) close_all_descriptors();
}

collet_status device_info(collet_backend_instance* p, uint32_t device, collet_device_info* info, collet_error* error) {
  Instance* self = of(p);
  if (is(Fault::options_kept) && self->options->struct_size > 1000)
    return fail(error, COLLET_INTERNAL, "the options are gone");
  if (device >= self->devices) {
    if (!is(Fault::device_range_ignored)) return fail(error, COLLET_OUT_OF_RANGE, "there is no such device");
    device = 0;
  }
  if (is(Fault::loss_changes_device_info) && is_lost()) return lost(error);
  const uint32_t size = info->struct_size;
  collet_device_info inner{};
  inner.struct_size = sizeof inner;
  if (const collet_status code = behind->device_info(self->inner, device, &inner, error)) return code;
  std::memcpy(reinterpret_cast<char*>(info) + sizeof size, reinterpret_cast<const char*>(&inner) + sizeof size,
              std::min<size_t>(size, sizeof inner) - sizeof size);
  static collet_memory_space spaces[1];
  info->traits |= COLLET_TRAIT_SCALARS;
  if (is(Fault::large_constant_cut)) info->traits |= COLLET_TRAIT_INLINE_CONSTANTS;
  static constexpr collet_peak kNegative[] = {{COLLET_PEAK_PRODUCT, COLLET_TYPE_F32, -1, 0}};
  static constexpr collet_peak kTwice[] = {{COLLET_PEAK_PRODUCT, COLLET_TYPE_F32, 10, 0},
                                           {COLLET_PEAK_PRODUCT, COLLET_TYPE_F32, 20, 0}};
  const bool has_peaks = size >= offsetof(collet_device_info, peak_count) + sizeof info->peak_count;
  if ((is(Fault::peak_is_negative) || is(Fault::peak_stands_twice)) && has_peaks) {
    info->peaks = is(Fault::peak_is_negative) ? kNegative : kTwice;
    info->peak_count = is(Fault::peak_is_negative) ? 1 : 2;
  }
  static constexpr uint32_t kNobody = 99;
  if (is(Fault::peer_missing)) {
    info->peers = &kNobody;
    info->peer_count = 1;
  }
  if (is(Fault::space_default_missing) || is(Fault::space_alignment_odd)) {
    spaces[0] = inner.spaces[0];
    if (is(Fault::space_default_missing)) spaces[0].flags &= ~uint32_t{COLLET_SPACE_DEFAULT};
    if (is(Fault::space_alignment_odd)) spaces[0].alignment = 48;
    info->spaces = spaces;
  }
  if (is(Fault::kind_missing)) info->kind = nullptr;
  ++self->answers;
  if (is(Fault::peaks_change) && has_peaks) {
    static collet_peak changing[1];
    changing[0] = {COLLET_PEAK_PRODUCT, COLLET_TYPE_F32, 10.0 + self->answers, 0};
    info->peaks = changing;
    info->peak_count = 1;
  }
  if (is(Fault::device_types_change)) {
    self->types.assign(inner.types, inner.types + inner.type_count);
    if (self->answers > self->devices + 1) self->types.back().flags &= ~uint32_t{COLLET_MAY_COMPUTE};
    info->types = self->types.data();
  }
  if (is(Fault::space_kind_missing)) {
    spaces[0] = inner.spaces[0];
    spaces[0].kind[0] = '\0';
    info->spaces = spaces;
  }
  if (is(Fault::device_answer_changes)) info->compute_units = self->answers;
  if (is(Fault::device_speed_changes)) info->flops_per_ns = self->answers;
  if (is(Fault::device_strings_change)) {
    self->kind = "model " + std::to_string(self->answers);
    info->kind = self->kind.c_str();
  }
  if (is(Fault::space_reserved_set)) {
    spaces[0] = inner.spaces[0];
    spaces[0].reserved[1] = 5;
    info->spaces = spaces;
  }
  if (is(Fault::device_info_overrun)) std::memset(reinterpret_cast<char*>(info) + size, 0, 8);
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* p, uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment,
                    collet_backend_buffer** out, void** out_host, collet_error* error) {
  Instance* self = of(p);
  if (is_lost() && is(Fault::loss_alloc_other_code)) return fail(error, COLLET_INTERNAL, "the device is lost");
  if (is_lost() && is(Fault::loss_heals_by_alloc)) heal();
  if (is_lost(device) && !is(Fault::loss_spares_alloc)) return lost(error);
  if (is(Fault::close_breaks_others) && closed_instances > 0 && closed_instances % 7 == 1)
    return fail(error, COLLET_UNAVAILABLE, "closed");
  if (device >= self->devices || space >= self->spaces) {
    if (is(Fault::older_out_buffer_on_error)) *out = reinterpret_cast<collet_backend_buffer*>(self);
    if (!is(Fault::alloc_place_ignored)) return fail(error, COLLET_OUT_OF_RANGE, "there is no such device or space");
    device = space = 0;
  }
  if (is(Fault::alloc_fails_after_exhaustion) && exhausted > 0)
    return fail(error, COLLET_RESOURCE_EXHAUSTED, "there was no room before");
  static std::atomic<int> handed_out{0};
  if (is(Fault::handles_run_out) && ++handed_out > 40000)
    return fail(error, COLLET_RESOURCE_EXHAUSTED, "no handle is left");
  auto buffer = std::make_unique<Buffer>();
  buffer->bytes = bytes;
  buffer->device = device;
  const std::lock_guard lock(self->mutex);
  const auto other = std::find_if(self->buffers.begin(), self->buffers.end(),
                                  [&](Buffer* one) { return !one->shares && one->bytes >= bytes && bytes > 4000; });
  if (is(Fault::alloc_overlaps) && other != self->buffers.end()) {
    buffer->inner = (*other)->inner;
    buffer->shares = true;
    *out_host = nullptr;
  } else {
    if (is(Fault::alloc_ignores_alignment) && alignment > self->alignment) buffer->shift = self->alignment;
    if (is(Fault::alloc_aligned_to_page_at_most) && alignment > 4096) buffer->shift = 4096;
    const uint64_t inner_alignment = is(Fault::alloc_ignores_alignment) ? self->alignment * 2 : alignment;
    const collet_status code =
        behind->alloc(self->inner, device, space, bytes + buffer->shift, std::max<uint64_t>(inner_alignment, alignment),
                      &buffer->inner, out_host, error);
    if (code != COLLET_OK) {
      ++exhausted;
      if (is(Fault::failed_alloc_leaks)) leave();
      if (is(Fault::out_buffer_on_error)) *out = reinterpret_cast<collet_backend_buffer*>(self);
      return fail(error, is(Fault::exhaustion_other_code) ? COLLET_INTERNAL : code, "there is no room");
    }
  }
  if (*out_host) *out_host = static_cast<char*>(*out_host) + buffer->shift;
  if (is(Fault::host_pointer_missing)) *out_host = nullptr;
  if (is(Fault::host_pointer_elsewhere) && *out_host) {
    buffer->mirror = std::make_unique<char[]>(bytes + 4096);
    *out_host = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(buffer->mirror.get()) + 4095) / 4096 * 4096);
  }
  self->buffers.insert(buffer.get());
  *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
  return COLLET_OK;
}

collet_status inner_copy(Instance* self, collet_copy_region region, collet_error* error) {
  for (collet_place* place : {&region.from, &region.to}) {
    if (!place->buffer) continue;
    place->offset += of(place->buffer)->shift;
    place->buffer = of(place->buffer)->inner;
  }
  return region.bytes == 0 ? COLLET_OK : behind->copy(self->inner, &region, 1, nullptr, error);
}

}  // namespace

void put(Instance* self, collet_backend_buffer* buffer, uint64_t offset, const void* from, uint64_t bytes) {
  collet_error error{};
  inner_copy(self, {{nullptr, const_cast<void*>(from), 0}, {buffer, nullptr, offset}, bytes}, &error);
}
void get(Instance* self, collet_backend_buffer* buffer, uint64_t offset, void* to, uint64_t bytes) {
  collet_error error{};
  inner_copy(self, {{buffer, nullptr, offset}, {nullptr, to, 0}, bytes}, &error);
}

namespace {

void free_buffer(collet_backend_instance* p, collet_backend_buffer* handle) {
  Instance* self = of(p);
  Buffer* buffer = of(handle);
  if (is(Fault::loss_crashes_free) && is_lost()) std::abort();
  if (is(Fault::free_closes_descriptors)) close_all_descriptors();
  {
    const std::lock_guard lock(self->mutex);
    self->buffers.erase(buffer);
    if (is(Fault::free_spoils_another) && !self->buffers.empty()) {
      const uint8_t zero = 0x99;
      put(self, reinterpret_cast<collet_backend_buffer*>(*self->buffers.begin()), 0, &zero, 1);
    }
  }
  if (buffer->spoiled) ++*buffer->spoiled;
  if (is(Fault::buffers_leak)) return;
  if (!buffer->shares) behind->free(self->inner, buffer->inner);
  delete buffer;
}

}  // namespace

bool is_inside(const collet_place& place, uint64_t bytes) {
  if (!place.buffer) return true;
  const Buffer* buffer = of(place.buffer);
  if (is(Fault::older_copy_takes_one_too_many) && collet_has_range(buffer->bytes + 1, place.offset, bytes)) return true;
  return collet_has_range(buffer->bytes, place.offset, bytes) != 0;
}

namespace {

// Changes a region of a copy as the fault says.
void spoil(collet_copy_region& r) {
  const bool upload = !r.from.buffer, download = !r.to.buffer;
  if (is(Fault::copy_ignores_from_offset) && r.from.buffer) r.from.offset = 0;
  if (is(Fault::copy_ignores_to_offset) && r.to.buffer) r.to.offset = 0;
  if (is(Fault::copy_ignores_host_offset) && upload) r.from.offset = 0;
  if (is(Fault::copy_ignores_host_offset) && download) r.to.offset = 0;
  if (is(Fault::copy_ignores_host_offset_down) && download) r.to.offset = 0;
  if (is(Fault::copy_rounds_offset) && r.to.buffer) r.to.offset = r.to.offset / 4 * 4;
  if (is(Fault::copy_rounds_up) && upload && is_inside(r.to, (r.bytes + 7) / 8 * 8)) r.bytes = (r.bytes + 7) / 8 * 8;
  if (is(Fault::copy_rounds_down)) r.bytes = r.bytes / 4 * 4;
  if (is(Fault::copy_truncates_large)) r.bytes = std::min<uint64_t>(r.bytes, 4 << 20);
  if (is(Fault::copy_on_device_missing) && !upload && !download) r.bytes = 0;
  if (is(Fault::copy_in_buffer_missing) && r.from.buffer && r.from.buffer == r.to.buffer) r.bytes = 0;
  if (is(Fault::copy_between_devices_missing) && !upload && !download &&
      of(r.from.buffer)->device != of(r.to.buffer)->device)
    r.bytes = 0;
  if (is(Fault::copy_aligns_host) && upload) {
    const auto address = reinterpret_cast<uintptr_t>(r.from.host);
    r.from.host = reinterpret_cast<void*>(address / 4 * 4);
  }
  if (is(Fault::copy_of_pages_loses_tail) && (upload || download)) {
    const collet_place& host_place = upload ? r.from : r.to;
    const auto address = reinterpret_cast<uintptr_t>(host_place.host) + host_place.offset;
    if (address % 4096 == 0 && r.bytes >= 4096) r.bytes = r.bytes / 64 * 64;
  }
  if (is(Fault::copy_rounds_up_down) && download) r.bytes = (r.bytes + 3) / 4 * 4;
}

// Copies through memory that all threads share, which is the fault.
collet_status copy_by_shared_memory(Instance* self, const collet_copy_region& r, collet_error* error) {
  static Bytes staging(1 << 24);
  if (r.bytes > staging.size()) return inner_copy(self, r, error);
  if (const collet_status code = inner_copy(self, {r.from, {nullptr, staging.data(), 0}, r.bytes}, error)) return code;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return inner_copy(self, {{nullptr, staging.data(), 0}, r.to, r.bytes}, error);
}

// Uploads through a staging buffer that all threads share, which is the fault.
collet_status copy_by_staging(Instance* self, collet_copy_region region, collet_error* error) {
  static Bytes staging;
  static std::mutex mutex;
  const auto* from = static_cast<const uint8_t*>(region.from.host) + region.from.offset;
  {
    const std::lock_guard lock(mutex);
    staging.resize(std::max<size_t>(staging.size(), region.bytes));
    std::copy(from, from + region.bytes, staging.begin());
  }
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  const std::lock_guard lock(mutex);
  region.from = {nullptr, staging.data(), 0};
  return inner_copy(self, region, error);
}

// Uploads whole lines of 64 bytes, whose other bytes it reads before: the fault is that another thread may write these.
collet_status copy_by_lines(Instance* self, const collet_copy_region& region, collet_error* error) {
  constexpr uint64_t kLine = 64;
  const uint64_t begin = region.to.offset / kLine * kLine;
  const uint64_t end =
      std::min(of(region.to.buffer)->bytes, (region.to.offset + region.bytes + kLine - 1) / kLine * kLine);
  if (begin >= end) return inner_copy(self, region, error);
  Bytes lines(end - begin);
  get(self, region.to.buffer, begin, lines.data(), lines.size());
  const auto* from = static_cast<const uint8_t*>(region.from.host) + region.from.offset;
  std::copy(from, from + region.bytes, lines.begin() + static_cast<ptrdiff_t>(region.to.offset - begin));
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  put(self, region.to.buffer, begin, lines.data(), lines.size());
  return COLLET_OK;
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count,
                   const collet_sync* sync, collet_error* error) {
  Instance* self = of(p);
  uint64_t copied = 0;
  for (uint32_t i = 0; i < count; ++i) copied += regions[i].bytes;
  note_copy(copied);
  if (is(Fault::copies_leak)) leave();
  while (is(Fault::copies_hang)) std::this_thread::sleep_for(std::chrono::seconds(1));
  const collet_backend_buffer* used = count == 0             ? nullptr
                                      : regions[0].to.buffer ? regions[0].to.buffer
                                                             : regions[0].from.buffer;
  const uint32_t device = used ? reinterpret_cast<const Buffer*>(used)->device : 0;
  const bool is_first = !is_lost();
  if (lose_one(sync ? sync->queue : nullptr, device) && !sync) {
    const bool is_upload = count > 0 && !regions[0].from.buffer, is_download = count > 0 && !regions[0].to.buffer;
    const Fault spared = is_upload     ? Fault::loss_spares_uploads
                         : is_download ? Fault::loss_spares_downloads
                                       : Fault::loss_spares_copies;
    if (is(spared) && !is_first) return COLLET_OK;
    if (is(Fault::loss_of_data) && !is_first && !is_upload) return fail(error, COLLET_DATA_LOSS, "its memory is gone");
    return lost(error);
  }
  if (is(Fault::loss_of_one_loses_data_of_others) && is_lost() && !sync) return COLLET_OK;
  if (sync) return copy_on_queue(self, regions, count, sync, error);
  if (is(Fault::uploads_fail) && count > 0 && !regions[0].from.buffer)
    return fail(error, COLLET_INTERNAL, "the link to the device is down");
  if (is(Fault::copy_refuses_many) && count > 256) return fail(error, COLLET_RESOURCE_EXHAUSTED, "too many regions");
  bool bad = false;
  for (uint32_t i = 0; i < count; ++i) {
    bad |= !is_inside(regions[i].from, regions[i].bytes) || !is_inside(regions[i].to, regions[i].bytes);
    if (is(Fault::copy_refuses_nothing) && regions[i].bytes == 0)
      return fail(error, COLLET_INVALID_ARGUMENT, "nothing to copy");
  }
  if (bad && is(Fault::copy_range_unchecked)) return COLLET_OK;
  if (bad && is(Fault::refused_copy_leaks)) leave();
  if (bad && !is(Fault::copy_half_then_error))
    return fail(error, is(Fault::copy_range_other_code) ? COLLET_INTERNAL : COLLET_OUT_OF_RANGE, "beyond the end");
  if (is(Fault::copies_share_staging) && count == 1 && !bad && !regions[0].from.buffer)
    return copy_by_staging(self, regions[0], error);
  if (is(Fault::copy_first_region_only)) count = std::min(count, 1u);
  if (is(Fault::copy_at_most_64_regions)) count = std::min(count, 64u);
  for (uint32_t i = is(Fault::copy_last_region_only) && count ? count - 1 : 0; i < count; ++i) {
    collet_copy_region region = regions[i];
    if (!is_inside(region.from, region.bytes) || !is_inside(region.to, region.bytes))
      return fail(error, COLLET_OUT_OF_RANGE, "beyond the end");
    if (is(Fault::copy_uses_first_destination) && i > 0 && region.to.buffer)
      region.to.buffer = regions[0].to.buffer ? regions[0].to.buffer : region.to.buffer;
    if (!is_inside(region.to, region.bytes)) continue;
    spoil(region);
    if (is(Fault::copy_merges_lines) && !region.from.buffer) {
      copy_by_lines(self, region, error);
      continue;
    }
    if (is(Fault::copy_is_late) && !region.from.buffer && region.bytes > 1500) {
      std::thread([self, region] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        collet_error ignored{};
        inner_copy(self, region, &ignored);
      }).detach();
      continue;
    }
    const collet_status code =
        is(Fault::copy_shares_memory) ? copy_by_shared_memory(self, region, error) : inner_copy(self, region, error);
    if (code != COLLET_OK) return code;
  }
  return COLLET_OK;
}

constexpr collet_backend table_of(uint32_t minor) {
  collet_backend table =
      backend_table(open, close, device_info, alloc, free_buffer, copy, supports, compile, execute, release, query);
  table.abi_minor = minor;
  return table;
}
constexpr collet_backend kTable = table_of(COLLET_ABI_MINOR), kOlderTable = table_of(0);

}  // namespace

}  // namespace collet::mutants

extern "C" COLLET_EXPORT collet_status collet_backend_entry(const collet_host* with, const collet_backend** out_backend,
                                                            collet_error* error) {
  if (with->abi_major != COLLET_ABI_MAJOR)
    return collet::mutants::fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  collet::mutants::host = with;
  // The ABI version is needed before options are passed, so it comes from the environment.
  const bool older = std::getenv("COLLET_TEST_ABI_MINOR_0") != nullptr;
  *out_backend = older ? &collet::mutants::kOlderTable : &collet::mutants::kTable;
  return COLLET_OK;
}
