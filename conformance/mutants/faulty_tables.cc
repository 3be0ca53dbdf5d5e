// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/faulty.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

namespace collet::mutants {
namespace {

const char* pattern_name(collet_backend_instance*, uint32_t, uint32_t index) {
  static char changing[16];
  static std::atomic<int> questions{0};
  if (is(Fault::patterns_without_end)) return "softmax";
  constexpr const char* kNames[] = {"layer_norm",
                                    "softmax",
                                    "rms_norm",
                                    "gelu",
                                    "silu_gate",
                                    "attention",
                                    "quantized_dot",
                                    "integer_dot",
                                    "integer_convolution",
                                    "scaled_dot",
                                    "scaled_convolution",
                                    "dequantized_dot",
                                    "requantize",
                                    "quantize",
                                    "quantized_attention",
                                    "integer_add"};
  if (index >= std::size(kNames)) return nullptr;
  if (!is(Fault::pattern_names_change)) return kNames[index];
  std::snprintf(changing, sizeof changing, "pattern%d", questions++);
  return changing;
}

const char* pattern_text(collet_backend_instance*, uint32_t, uint32_t index) {
  static std::string changing;
  if (index != 1) return nullptr;
  if (is(Fault::pattern_text_unreadable)) return "HloModule softmax\nENTRY e {\n";
  if (!is(Fault::pattern_text_changes) && !is(Fault::pattern_text_of_another)) return nullptr;
  changing += " ";
  static const char kText[] = "ENTRY e {\n  x = f32[$N] parameter(0)\n  ROOT y = f32[$N] negate(x)\n}\n";
  changing = std::string("HloModule ") + (is(Fault::pattern_text_of_another) ? "hard" : "soft") + "max" +
             (is(Fault::pattern_text_changes) ? std::string(changing.size() % 7 + 1, '\n') : "\n") + kText;
  return changing.c_str();
}

// The backend computes the ops of the regions, so that it knows every attribute. Those that it does not state must not
// reach it.
uint32_t pattern_features(collet_backend_instance*, uint32_t, uint32_t) {
  static std::atomic<uint32_t> questions{0};
  if (is(Fault::pattern_features_change)) return ++questions;
  if (is(Fault::unstated_operand_zero_points_ignored)) return COLLET_FEATURE_ALL & ~COLLET_FEATURE_ZERO_POINTS;
  if (is(Fault::unstated_channels_ignored)) return COLLET_FEATURE_ALL & ~COLLET_FEATURE_CHANNELS;
  return COLLET_FEATURE_ALL;
}

struct Registered {
  std::mutex mutex;
  std::map<char*, uint64_t> ranges;
};
Registered& registered() {
  static auto* all = new Registered;
  return *all;
}

collet_status add_host_memory(collet_backend_instance*, void* host, uint64_t bytes, collet_error* error) {
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  auto* begin = static_cast<char*>(host);
  for (const auto& [at, size] : all.ranges)
    if (begin < at + size && (at <= begin || (at < begin + bytes && !is(Fault::host_memory_taken_around))) &&
        !is(Fault::host_memory_taken_twice))
      return fail(error, COLLET_ALREADY_EXISTS, "it is registered");
  all.ranges[begin] = bytes;
  return COLLET_OK;
}

collet_status remove_host_memory(collet_backend_instance*, void* host, collet_error* error) {
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  if (is(Fault::host_memory_stays))
    return all.ranges.count(static_cast<char*>(host)) ? COLLET_OK : fail(error, COLLET_NOT_FOUND, "no");
  if (is(Fault::host_memory_removed_from_within)) {
    for (const auto& [at, size] : all.ranges) {
      if (host < at || host >= at + size) continue;
      all.ranges.erase(at);
      return COLLET_OK;
    }
  }
  if (all.ranges.erase(static_cast<char*>(host)) > 0 || is(Fault::host_memory_never_missing)) return COLLET_OK;
  return fail(error, COLLET_NOT_FOUND, "it is not registered");
}

// The buffer is a copy, which nobody can tell from the memory itself, since neither is changed.
collet_status wrap(collet_backend_instance* p, uint32_t device, uint32_t space, const void* host, uint64_t bytes,
                   collet_backend_buffer** out, collet_error* error) {
  Instance* self = of(p);
  if (is(Fault::host_buffer_of_any_device)) device = std::min(device, self->devices - 1);
  if (device >= self->devices || space != 0)
    return fail(error, COLLET_OUT_OF_RANGE, "there is no such device or space");
  auto buffer = std::make_unique<Buffer>();
  buffer->bytes = bytes;
  buffer->device = device;
  void* ignored = nullptr;
  const collet_status code =
      behind->alloc(self->inner, device, space, bytes, self->alignment, &buffer->inner, &ignored, error);
  if (code != COLLET_OK) return code;
  if (is(Fault::host_buffer_spoils_memory)) buffer->spoiled = static_cast<char*>(const_cast<void*>(host));
  auto* const made = reinterpret_cast<collet_backend_buffer*>(buffer.get());
  put(self, made, 0, host, is(Fault::host_buffer_is_short) ? bytes / 2 : bytes);
  const std::lock_guard lock(self->mutex);
  self->buffers.insert(buffer.release());
  *out = made;
  return COLLET_OK;
}

collet_status between(collet_backend_instance*, uint32_t from, uint32_t to, collet_link* link, collet_error*) {
  static std::atomic<int> questions{0};
  const uint32_t size = link->struct_size;
  link->hops = 1;
  link->latency_ns = is(Fault::link_changes) ? ++questions : 100.0 * (from + to + 1);
  link->bytes_per_ns = is(Fault::link_is_negative) ? -1 : 10;
  if (is(Fault::link_overrun)) std::memset(reinterpret_cast<char*>(link) + size, 0, 8);
  return COLLET_OK;
}

struct Recorded {
  uint64_t start_ns = 0, duration_ns = 0, bytes = 0;
};
std::mutex record_mutex;
std::vector<Recorded> recorded;
std::atomic<bool> recording{false};

template <typename Clock>
uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

collet_status enable_profile(collet_backend_instance*, uint32_t, uint32_t on, collet_error*) {
  recording = on != 0 || is(Fault::profile_records_always);
  return COLLET_OK;
}

collet_status read_profile(collet_backend_instance*, uint32_t, collet_profile_record* records, uint32_t capacity,
                           uint32_t* out_count, collet_error*) {
  const std::lock_guard lock(record_mutex);
  const auto count =
      static_cast<uint32_t>(std::min<uint64_t>(recorded.size(), capacity + (is(Fault::profile_overflows) ? 1 : 0)));
  for (uint32_t i = 0; i < count; ++i) {
    const Recorded& one = recorded[is(Fault::profile_newest_first) ? recorded.size() - 1 - i : i];
    records[i] = {};
    records[i].start_ns = one.start_ns;
    records[i].duration_ns = one.duration_ns;
    records[i].bytes = is(Fault::profile_bytes_made_up) ? one.bytes / 2 + 1 : one.bytes;
    std::snprintf(records[i].name, sizeof records[i].name, "%s", is(Fault::profile_name_missing) ? "" : "copy");
    if (is(Fault::profile_name_endless)) std::memset(records[i].name, 'x', sizeof records[i].name);
    std::snprintf(records[i].engine, sizeof records[i].engine, "dma");
  }
  if (is(Fault::profile_newest_first)) {
    recorded.resize(recorded.size() - count);
  } else if (!is(Fault::profile_repeats)) {
    recorded.erase(recorded.begin(), recorded.begin() + count);
  }
  *out_count = count;
  return COLLET_OK;
}

Buffer newest;  // for the fault prepared_of_newest_executable

// Keeps what was prepared last.
void newest_prepared(Executable& self, const Bytes& data) {
  constexpr uint64_t kBytes = 1 << 20;
  void* ignored = nullptr;
  collet_error error{};
  if (!newest.inner)
    behind->alloc(self.owner->inner, 0, 0, kBytes, self.owner->alignment, &newest.inner, &ignored, &error);
  if (data.size() <= kBytes)
    put(self.owner, reinterpret_cast<collet_backend_buffer*>(&newest), 0, data.data(), data.size());
}

uint32_t wants(collet_backend_executable*, uint32_t index) {
  static std::atomic<uint32_t> questions{0};
  return is(Fault::residency_wavers) ? questions++ % 2 : index == 1;
}

collet_status prepare(collet_backend_executable* p, uint32_t device, uint32_t index, const collet_argument* value,
                      collet_backend_buffer** out, collet_error* error) {
  auto* self = reinterpret_cast<Executable*>(p);
  const uint64_t bytes = self->argument_bytes[index];
  Bytes data = read_dense(*self, index, *value);
  static std::mutex mutex;
  static std::map<uint32_t, Bytes> first;  // by argument, whatever the executable
  if (is(Fault::prepared_shared_by_executables)) {
    const std::lock_guard lock(mutex);
    Bytes& kept = first.emplace(index, data).first->second;
    if (kept.size() == data.size()) data = kept;
  }
  auto buffer = std::make_unique<Buffer>();
  void* ignored = nullptr;
  if (const collet_status code =
          behind->alloc(self->owner->inner, device, 0, bytes, self->owner->alignment, &buffer->inner, &ignored, error))
    return code;
  buffer->bytes = bytes;
  auto* handle = reinterpret_cast<collet_backend_buffer*>(buffer.release());
  if (is(Fault::prepared_of_first_value)) data = self->prepared.emplace(index, data).first->second;
  if (is(Fault::prepared_is_empty)) std::fill(data.begin(), data.end(), 0);
  put(self->owner, handle, 0, data.data(), bytes);
  if (is(Fault::prepared_of_newest_executable)) newest_prepared(*self, data);
  *out = handle;
  return COLLET_OK;
}

}  // namespace

collet_backend_buffer* what_was_prepared_last() {
  return newest.inner;
}

void note_copy(uint64_t bytes) {
  if (!recording) return;
  const std::lock_guard lock(record_mutex);
  const bool since_start = is(Fault::profile_times_since_start);
  recorded.push_back(
      {since_start ? now_ns<std::chrono::steady_clock>() : now_ns<std::chrono::system_clock>(), 1, bytes});
}

const void* further_table(std::string_view name) {
  static const collet_patterns_table patterns = {sizeof(collet_patterns_table), 0, pattern_name, pattern_text,
                                                 pattern_features};
  static const collet_host_memory_table host_memory = {sizeof(collet_host_memory_table), 0, add_host_memory,
                                                       remove_host_memory};
  static const collet_host_buffers_table host_buffers = {sizeof(collet_host_buffers_table), 0, wrap};
  static const collet_links_table links = {sizeof(collet_links_table), 0, between, nullptr};
  static const collet_profile_table profile = {sizeof(collet_profile_table), 0, enable_profile, read_profile};
  static const collet_residency_table residency = {sizeof(collet_residency_table), 0, wants, prepare};
  if (name == "patterns") return &patterns;
  if (name == "host_memory") return &host_memory;
  if (name == "host_buffers") return &host_buffers;
  if (name == "links") return &links;
  if (name == "profile") return &profile;
  return name == "residency" ? &residency : nullptr;
}

}  // namespace collet::mutants
