// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/faulty.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>

namespace collet::mutants {

namespace {

std::atomic<Executable*> last_run{nullptr};

bool lies_inside(const collet_argument& a, uint64_t bytes) {
  if (bytes == 0 || (a.flags & (COLLET_ARG_IMMEDIATE | COLLET_ARG_ABSENT))) return true;
  return a.buffer && a.bytes >= bytes && is_inside({a.buffer, nullptr, a.offset}, bytes);
}

// Checks a launch as a right backend does. Returns what is wrong with it; an empty string if nothing is.
std::string complaint(const Executable& self, const collet_launch& launch) {
  if (launch.device >= self.owner->devices) return "there is no such device";
  if (launch.argument_count != self.argument_bytes.size() || launch.result_count != self.result_bytes.size())
    return "another number of arguments or results";
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const bool is_prepared = (launch.arguments[i].flags & COLLET_ARG_PREPARED) != 0;
    const uint64_t bytes = is_prepared ? self.argument_bytes[i] : layout_bytes(self, false, i);
    if (!lies_inside(launch.arguments[i], bytes) ||
        (!is_prepared && launch.arguments[i].layout != (has_layout(self, false, i) ? 1 : 0)))
      return "an argument that is not inside its buffer, or has another layout";
  }
  for (uint32_t i = 0; i < launch.result_count; ++i)
    if (!lies_inside(launch.results[i], layout_bytes(self, true, i))) return "a result that is not inside its buffer";
  return lies_inside(launch.workspace, self.inner_workspace + kExtraWorkspace) ? "" : "a workspace that is too small";
}

void overwrite_donated(const Executable& self, const collet_launch& launch) {
  const Bytes garbage(16, 0x66);
  for (uint32_t i = 0; i < std::min<size_t>(launch.argument_count, self.argument_bytes.size()); ++i) {
    const collet_argument& a = launch.arguments[i];
    if ((a.flags & COLLET_ARG_DONATED) && lies_inside(a, garbage.size()))
      put(self.owner, a.buffer, a.offset, garbage.data(), garbage.size());
  }
}

collet_argument translated(collet_argument a, bool ignore_offset) {
  if (is(Fault::immediate_ignored) && (a.flags & COLLET_ARG_IMMEDIATE)) std::memset(a.immediate, 0, sizeof a.immediate);
  if (!a.buffer) return a;
  if (is(Fault::prepared_of_newest_executable) && (a.flags & COLLET_ARG_PREPARED) && what_was_prepared_last()) {
    a.buffer = what_was_prepared_last();
    a.offset = 0;
    a.flags &= ~uint32_t{COLLET_ARG_PREPARED};
    return a;
  }
  a.flags &= ~uint32_t{COLLET_ARG_PREPARED};
  if (ignore_offset) a.offset = 0;
  a.offset += of(a.buffer)->shift;
  a.buffer = of(a.buffer)->inner;
  return a;
}

// Runs several launches in one call of the inner backend's execute.
collet_status run_together(Executable& self, const collet_launch* launches, uint32_t count, uint64_t run_id,
                           collet_error* error) {
  std::vector<collet_launch> inner(launches, launches + count);
  std::vector<std::vector<collet_argument>> arguments(count), results(count);
  std::vector<std::vector<Bytes>> kept(count);
  std::vector<collet_sync> syncs(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (is(Fault::later_launches_wait_for_nothing) && i > 0 && launches[i].sync) {
      syncs[i] = *launches[i].sync;
      syncs[i].wait_count = 0;
      inner[i].sync = &syncs[i];
    }
    for (uint32_t a = 0; a < launches[i].argument_count; ++a)
      arguments[i].push_back(translated(launches[i].arguments[a], false));
    for (uint32_t r = 0; r < launches[i].result_count; ++r) {
      results[i].push_back(translated(launches[i].results[r], false));
      kept[i].emplace_back(self.result_bytes[r]);
      get(self.owner, launches[i].results[r].buffer, launches[i].results[r].offset, kept[i][r].data(),
          kept[i][r].size());
    }
    inner[i].arguments = arguments[i].data();
    inner[i].results = results[i].data();
    inner[i].workspace = translated(launches[i].workspace, false);
    inner[i].workspace.bytes = self.inner_workspace;
    if (self.inner_workspace == 0) inner[i].workspace = {};
    if (is(Fault::launch_order_is_participant)) inner[i].participant = i;
    if (is(Fault::partition_taken_for_replica)) {
      const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
      inner[i].participant = launches[i].participant % program->replica_count * program->partition_count +
                             launches[i].participant / program->replica_count;
    }
  }
  if (const collet_status code = behind->execute(self.inner, inner.data(), count, run_id, error)) return code;
  for (uint32_t i = 0; i < count; ++i) {
    if (is(Fault::later_participants_repeat_first_run) && launches[i].participant > 0) {
      std::vector<Bytes>& first = self.first_results[launches[i].participant];
      const bool is_first = first.empty();
      for (uint32_t r = 0; r < launches[i].result_count; ++r) {
        const collet_argument& result = launches[i].results[r];
        if (is_first) first.emplace_back(self.result_bytes[r]);
        if (is_first)
          get(self.owner, result.buffer, result.offset, first[r].data(), first[r].size());
        else
          put(self.owner, result.buffer, result.offset, first[r].data(), first[r].size());
      }
    }
    for (uint32_t r = 0; r < launches[i].result_count; ++r) {
      const collet_argument& result = launches[i].results[r];
      Bytes data(self.result_bytes[r]);
      const bool is_cut = is(Fault::collectives_have_4096_bytes) && data.size() > 4096;
      if (!is_cut && !is(Fault::collectives_sum_in_bf16)) continue;
      get(self.owner, result.buffer, result.offset, data.data(), data.size());
      if (is_cut) std::fill(data.begin() + 4096, data.end(), uint8_t{0});
      const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
      const collet_region* entry = collet_region_at(program, 0);
      const bool is_f32 =
          collet_value_type(program, collet_ref_at(program, entry->results.first + r))->element == COLLET_TYPE_F32;
      for (size_t k = 0; !is_cut && is_f32 && k < data.size(); k += 4)
        std::fill_n(data.begin() + static_cast<ptrdiff_t>(k), 2, uint8_t{0});
      put(self.owner, result.buffer, result.offset, data.data(), data.size());
    }
    const bool is_idle = (is(Fault::last_participant_idle) && launches[i].participant + 1 == count) ||
                         (is(Fault::participants_above_one_idle) && launches[i].participant > 1);
    if (!is_idle) continue;
    for (uint32_t r = 0; r < launches[i].result_count; ++r)
      put(self.owner, launches[i].results[r].buffer, launches[i].results[r].offset, kept[i][r].data(),
          kept[i][r].size());
  }
  return COLLET_OK;
}

// Mixes up scalars by value, or takes those of an earlier launch.
void spoil_immediates(Executable& self, const collet_launch& launch, std::vector<collet_argument>& arguments) {
  std::vector<collet_argument*> values;
  bool has_array = false;
  std::vector<std::pair<collet_backend_buffer*, uint64_t>> places;
  for (collet_argument& one : arguments) {
    if (one.flags & COLLET_ARG_IMMEDIATE) values.push_back(&one);
    has_array |= one.buffer && one.bytes > sizeof one.immediate;
    places.emplace_back(one.buffer, one.offset);
  }
  for (uint32_t i = 0; i < launch.result_count; ++i)
    places.emplace_back(launch.results[i].buffer, launch.results[i].offset);
  const auto copy = [](collet_argument& to, const uint8_t* from) {
    std::memcpy(to.immediate, from, sizeof to.immediate);
  };
  const bool is_same_launch = self.places == places;
  for (uint32_t i = 0; i < values.size(); ++i) {
    Bytes now(values[i]->immediate, values[i]->immediate + sizeof values[i]->immediate);
    const bool keeps = is(Fault::immediate_of_first_run) || (is(Fault::immediate_kept_with_buffers) && is_same_launch);
    if (!keeps) self.immediates[i] = now;
    if (keeps) copy(*values[i], self.immediates.emplace(i, now).first->second.data());
    if (is(Fault::immediates_are_one)) copy(*values[i], values[0]->immediate);
  }
  if (is(Fault::immediates_reversed_beside_arrays) && has_array) {
    for (size_t i = 0; 2 * i + 1 < values.size(); ++i)
      std::swap(values[i]->immediate, values[values.size() - 1 - i]->immediate);
  }
  self.places = places;
}

// A fault: the scalars of a launch pass through memory that all threads share.
void share_immediates(std::vector<collet_argument>& arguments) {
  static std::mutex mutex;
  static std::map<size_t, Bytes> shared;
  {
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].flags & COLLET_ARG_IMMEDIATE)
        shared[i].assign(arguments[i].immediate, arguments[i].immediate + sizeof arguments[i].immediate);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].flags & COLLET_ARG_IMMEDIATE)
      std::memcpy(arguments[i].immediate, shared[i].data(), sizeof arguments[i].immediate);
}

bool mixes_immediates() {
  return is(Fault::immediate_of_first_run) || is(Fault::immediate_kept_with_buffers) || is(Fault::immediates_are_one) ||
         is(Fault::immediates_reversed_beside_arrays);
}

// Runs one launch on the inner backend.
collet_status run_inner(Executable& self, const collet_launch& launch, uint64_t run_id, collet_error* error) {
  std::vector<collet_argument> arguments, results;
  // For the fault constant_absorbed_unseen: zeros, which are passed in place of a constant whose data compile never had.
  static Buffer zeros;
  if (is(Fault::constant_absorbed_unseen) && !zeros.inner) {
    void* ignored = nullptr;
    const Bytes data(1 << 16);
    behind->alloc(self.owner->inner, 0, 0, data.size(), self.owner->alignment, &zeros.inner, &ignored, error);
    put(self.owner, reinterpret_cast<collet_backend_buffer*>(&zeros), 0, data.data(), data.size());
  }
  for (uint32_t i = 0; i < launch.argument_count; ++i)
    arguments.push_back(translated(launch.arguments[i], is(Fault::argument_offset_ignored)));
  for (uint32_t i = 0; i < launch.argument_count; ++i)
    if (zeros.inner && (arguments[i].flags & COLLET_ARG_ABSENT)) {
      arguments[i] = {};
      arguments[i].buffer = zeros.inner;
      arguments[i].bytes = self.argument_bytes[i];
    }
  for (uint32_t i = 0; i < launch.result_count; ++i)
    results.push_back(translated(launch.results[i], is(Fault::result_offset_ignored)));
  if (mixes_immediates()) spoil_immediates(self, launch, arguments);
  if (is(Fault::immediates_shared_by_threads)) share_immediates(arguments);
  collet_launch inner = launch;
  inner.arguments = arguments.data();
  inner.results = results.data();
  inner.workspace = translated(launch.workspace, false);
  inner.workspace.bytes = self.inner_workspace;
  if (self.inner_workspace == 0) inner.workspace = {};
  if (inner.sync) return launch_on_queue(self, inner, run_id, error);
  return behind->execute(self.inner, &inner, 1, run_id, error);
}

// Runs a launch with results in buffers of its own, and returns their bytes instead of writing them to the launch's results.
std::vector<Bytes> run_apart(Executable& self, const collet_launch& launch) {
  std::vector<collet_argument> results(launch.results, launch.results + launch.result_count);
  std::vector<Buffer> buffers(results.size());
  collet_error error{};
  for (size_t i = 0; i < results.size(); ++i) {
    if (self.result_bytes[i] == 0) continue;
    void* ignored = nullptr;
    behind->alloc(self.owner->inner, launch.device, 0, self.result_bytes[i], self.owner->alignment, &buffers[i].inner,
                  &ignored, &error);
    results[i].buffer = reinterpret_cast<collet_backend_buffer*>(&buffers[i]);
    results[i].offset = 0;
  }
  collet_launch apart = launch;
  apart.results = results.data();
  run_inner(self, apart, 0, &error);
  std::vector<Bytes> out;
  for (size_t i = 0; i < results.size(); ++i) {
    out.emplace_back(self.result_bytes[i]);
    if (!buffers[i].inner) continue;
    get(self.owner, results[i].buffer, 0, out[i].data(), out[i].size());
    behind->free(self.owner->inner, buffers[i].inner);
  }
  return out;
}

void put_result(Executable& self, const collet_launch& launch, size_t i, const Bytes& bytes, size_t from, size_t to) {
  if (to > from)
    put(self.owner, launch.results[i].buffer, launch.results[i].offset + from, bytes.data() + from, to - from);
}

// A fault: writes a part of the results, then computes the other part from arguments that the first part may have overwritten.
void run_in_two_parts(Executable& self, const collet_launch& launch, bool by_result) {
  for (int part = 0; part < 2; ++part) {
    const std::vector<Bytes> results = run_apart(self, launch);
    for (size_t i = 0; i < results.size(); ++i) {
      const size_t half = results[i].size() / 8 * 4;
      if (by_result) {
        if ((i == 0) == (part == 0)) put_result(self, launch, i, results[i], 0, results[i].size());
      } else {
        put_result(self, launch, i, results[i], part ? half : 0, part ? results[i].size() : half);
      }
    }
  }
}

bool same_place(const collet_argument& a, const collet_argument& b) {
  return a.buffer && a.buffer == b.buffer && a.offset == b.offset;
}

// A fault: writes results over the arguments that the program's aliases name, even if the launch has another buffer for them.
void force_aliases(Executable& self, const collet_launch& launch) {
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const std::vector<Bytes> results = run_apart(self, launch);
  for (uint32_t i = 0; i < results.size(); ++i) {
    const collet_argument* to = &launch.results[i];
    for (uint32_t a = 0; a < program->aliases.count; ++a)
      if (collet_alias_at(program, a)->result == i) to = &launch.arguments[collet_alias_at(program, a)->argument];
    if (to->buffer) put(self.owner, to->buffer, to->offset, results[i].data(), results[i].size());
  }
}

void touch(Executable& self, const collet_argument& a, int64_t offset, uint64_t bytes) {
  if (!a.buffer) return;
  const int64_t place = static_cast<int64_t>(a.offset) + offset;
  const Bytes garbage(bytes, 0x13);
  if (place >= 0 && is_inside({a.buffer, nullptr, static_cast<uint64_t>(place)}, bytes))
    put(self.owner, a.buffer, static_cast<uint64_t>(place), garbage.data(), bytes);
}

uint8_t first_byte(Executable& self, const collet_argument& a, uint64_t offset = 0) {
  uint8_t byte = 0;
  if (a.buffer) get(self.owner, a.buffer, a.offset + offset, &byte, 1);
  return byte;
}

// Faults of a fused kernel: changes f32 results of a fusion at some sizes or for some values.
void spoil_fusion(Executable& self, const collet_launch& launch) {
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const collet_region* entry = collet_region_at(program, 0);
  if (entry->ops.count != 1 || collet_op_at(program, entry->ops.first)->opcode != COLLET_OP_FUSION) return;
  for (uint32_t r = 0; r < launch.result_count; ++r) {
    if (collet_value_type(program, collet_ref_at(program, entry->results.first + r))->element != COLLET_TYPE_F32)
      continue;
    std::vector<float> values(self.result_bytes[r] / sizeof(float));
    if (values.empty()) continue;
    get(self.owner, launch.results[r].buffer, launch.results[r].offset, values.data(), self.result_bytes[r]);
    if (is(Fault::fusion_loses_nan))
      for (float& value : values) value = std::isnan(value) ? 0 : value;
    if (is(Fault::fusion_loses_sign_of_zero))
      for (float& value : values) value += 0.0f;
    if (is(Fault::fusion_counts_sixteen_bits) && values.size() > UINT16_MAX)
      std::fill(values.begin() + UINT16_MAX, values.end(), 0.25f);
    if (is(Fault::fusion_runs_in_fours))
      std::fill(values.begin() + static_cast<ptrdiff_t>(values.size() / 4 * 4), values.end(), 0.25f);
    put(self.owner, launch.results[r].buffer, launch.results[r].offset, values.data(), self.result_bytes[r]);
  }
}

// Rounds the results of f32 to the precision of bf16.
void round_results(Executable& self, const collet_launch& launch) {
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t r = 0; r < launch.result_count; ++r) {
    if (collet_value_type(program, collet_ref_at(program, entry->results.first + r))->element != COLLET_TYPE_F32)
      continue;
    std::vector<uint32_t> values(self.result_bytes[r] / sizeof(uint32_t));
    if (values.empty()) continue;
    get(self.owner, launch.results[r].buffer, launch.results[r].offset, values.data(), self.result_bytes[r]);
    for (uint32_t& value : values) value &= 0xffff0000;
    put(self.owner, launch.results[r].buffer, launch.results[r].offset, values.data(), self.result_bytes[r]);
  }
}

// Faults that change something after a right execution.
void spoil_after(Executable& self, const collet_launch& launch) {
  if (is(Fault::fusion_loses_nan) || is(Fault::fusion_loses_sign_of_zero) || is(Fault::fusion_counts_sixteen_bits) ||
      is(Fault::fusion_runs_in_fours))
    spoil_fusion(self, launch);
  if (self.rounds) round_results(self, launch);
  for (uint32_t i = 0; i < launch.result_count; ++i) {
    const collet_argument& r = launch.results[i];
    const auto bytes = static_cast<int64_t>(self.result_bytes[i]);
    if (is(Fault::scalar_result_written_wide) && bytes > 0 && bytes < 4)
      touch(self, r, bytes, static_cast<uint64_t>(4 - bytes));
    if (is(Fault::writes_past_result)) touch(self, r, bytes, 4);
    if (is(Fault::writes_far_past_result)) touch(self, r, bytes + 60, 4);
    if (is(Fault::writes_before_result)) touch(self, r, -4, 4);
  }
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const collet_argument& a = launch.arguments[i];
    const auto bytes = static_cast<int64_t>(self.argument_bytes[i]);
    const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
    if (bytes == 0) continue;
    const bool taken = std::any_of(launch.results, launch.results + launch.result_count,
                                   [&](const collet_argument& r) { return same_place(r, a); });
    if (is(Fault::writes_argument) && !taken) touch(self, a, bytes - 1, 1);
    if (is(Fault::writes_past_argument) && !taken) touch(self, a, bytes, 1);
    if (is(Fault::may_alias_always_overwrites) && program->aliases.count > 0 && !taken) touch(self, a, 0, 4);
  }
  if (is(Fault::writes_past_workspace))
    touch(self, launch.workspace, static_cast<int64_t>(self.inner_workspace + kExtraWorkspace), 16);
  if (is(Fault::writes_before_workspace)) touch(self, launch.workspace, -16, 16);
}

// If the program is one call of the pattern gelu on f32, returns whether it is the form with tanh.
std::optional<bool> gelu_by_tanh(const Executable& self) {
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const collet_region* entry = collet_region_at(program, 0);
  if (entry->ops.count != 1 || entry->arguments.count != 1) return std::nullopt;
  const collet_op* op = collet_op_at(program, entry->ops.first);
  if (pattern_of(program, op) != "gelu" || collet_value_type(program, op->results.first)->element != COLLET_TYPE_F32)
    return std::nullopt;
  const collet_region* region = collet_region_at(program, op->regions.first);
  for (uint32_t i = 0; i < region->ops.count; ++i)
    if (collet_op_at(program, region->ops.first + i)->opcode == COLLET_OP_TANH) return true;
  return false;
}

void write_other_gelu(Executable& self, const collet_launch& launch, bool by_tanh) {
  Bytes bytes(self.result_bytes[0]);
  get(self.owner, launch.arguments[0].buffer, launch.arguments[0].offset, bytes.data(), bytes.size());
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    float x = 0;
    std::memcpy(&x, &bytes[i], 4);
    const double erf = std::erf(x / std::sqrt(2.0));
    const double tanh = std::tanh(0.7978845608028654 * (x + 0.044715 * std::pow(x, 3)));
    x = static_cast<float>(0.5 * x * (1 + (by_tanh ? erf : tanh)));
    std::memcpy(&bytes[i], &x, 4);
  }
  put_result(self, launch, 0, bytes, 0, bytes.size());
}

collet_status run_one(Executable& self, const collet_launch& launch, uint64_t run_id, collet_error* error) {
  const int run = self.runs++;
  ++self.owner->runs;
  if (is(Fault::run_of_other_thread_refused) && self.thread != std::this_thread::get_id())
    return fail(error, COLLET_INTERNAL, "no context on this thread");
  const bool writes_nothing =
      self.is_idle.exchange(false) || (is(Fault::every_sixteenth_run_missing) && run % 16 == 15) ||
      (is(Fault::second_instance_idle) && self.owner->is_second) ||
      (is(Fault::late_executables_idle) && self.is_late) || (is(Fault::other_device_idle) && launch.device != 0) ||
      (is(Fault::shared_code_idle) && launch.device != self.assigned_device) ||
      (is(Fault::stops_after_fifty_runs) && run > 50) || (is(Fault::stops_after_three_runs) && run >= 3) ||
      (is(Fault::release_breaks_others) && released > 0) ||
      (is(Fault::switch_loses_a_run) && last_run.exchange(&self) != &self && run > 0);
  if (writes_nothing) return COLLET_OK;
  if (is(Fault::block_kept) && self.kept->magic != COLLET_PROGRAM_MAGIC)
    return fail(error, COLLET_INTERNAL, "the program is gone");
  if (is(Fault::zero_size_refused)) {
    for (uint32_t i = 0; i < launch.argument_count; ++i)
      if (!launch.arguments[i].buffer && !launch.arguments[i].flags)
        return fail(error, COLLET_INVALID_ARGUMENT, "no buffer");
  }
  if (is(Fault::same_buffer_refused) && launch.argument_count > 1 &&
      same_place(launch.arguments[0], launch.arguments[1]))
    return fail(error, COLLET_INVALID_ARGUMENT, "one buffer twice");
  if (is(Fault::shared_buffer_refused) && launch.argument_count > 1 && launch.arguments[0].buffer &&
      launch.arguments[0].buffer == launch.arguments[1].buffer)
    return fail(error, COLLET_INVALID_ARGUMENT, "one buffer twice");
  if (is(Fault::result_before_argument_read)) return run_in_two_parts(self, launch, true), COLLET_OK;
  if (is(Fault::result_before_argument_read_whole)) return run_in_two_parts(self, launch, false), COLLET_OK;
  if (is(Fault::alias_always_taken)) return force_aliases(self, launch), COLLET_OK;
  if (is(Fault::gelu_of_other_form)) {
    if (const std::optional<bool> by_tanh = gelu_by_tanh(self))
      return write_other_gelu(self, launch, *by_tanh), COLLET_OK;
  }
  if (is(Fault::stale_results)) {
    auto& seen = self.seen[launch.argument_count ? launch.arguments[0].buffer : nullptr];
    if (seen.empty()) seen = run_apart(self, launch);
    for (size_t i = 0; i < seen.size(); ++i) put_result(self, launch, i, seen[i], 0, seen[i].size());
    return COLLET_OK;
  }
  if (is(Fault::first_buffers_kept)) {
    if (self.first_arguments.empty())
      self.first_arguments.assign(launch.arguments, launch.arguments + launch.argument_count);
    collet_launch old = launch;
    old.arguments = self.first_arguments.data();
    return run_inner(self, old, run_id, error);
  }
  // A fault: the backend relies on memory being zero that need not be.
  const bool wrong_start =
      (is(Fault::workspace_taken_for_zeros) && first_byte(self, launch.workspace, self.inner_workspace)) ||
      (is(Fault::results_taken_for_zeros) && launch.result_count && first_byte(self, launch.results[0])) ||
      (is(Fault::workspace_aligned_by_luck) && launch.workspace.offset % 256 != 0) ||
      (is(Fault::results_aligned_by_luck) && launch.result_count && launch.results[0].offset % 256 != 0);
  collet_launch changed = launch;
  std::vector<collet_argument> arguments(launch.arguments, launch.arguments + launch.argument_count);
  if (is(Fault::arguments_swapped_in_one_buffer) && arguments.size() == 2 &&
      arguments[0].buffer == arguments[1].buffer && self.argument_bytes[0] == self.argument_bytes[1])
    arguments[1] = arguments[0];
  changed.arguments = arguments.data();
  if (is(Fault::last_element_missing) && launch.result_count) {
    const std::vector<Bytes> results = run_apart(self, changed);
    for (size_t i = 0; i < results.size(); ++i)
      put_result(self, launch, i, results[i], 0, results[i].size() - std::min<size_t>(results[i].size(), 4));
    return COLLET_OK;
  }
  if (is(Fault::threads_share_results)) {
    static std::vector<Bytes> shared;
    static std::mutex mutex;
    {
      const std::lock_guard lock(mutex);
      shared = run_apart(self, changed);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < std::min<size_t>(shared.size(), launch.result_count); ++i)
      if (shared[i].size() == self.result_bytes[i]) put_result(self, launch, i, shared[i], 0, shared[i].size());
    return COLLET_OK;
  }
  // A fault: the bytes behind a result, which other work may write at the same time, are read before and written back after.
  std::vector<Bytes> behind_results;
  constexpr uint64_t kBehind = 256;
  const auto is_room_behind = [&](uint32_t i) {
    return launch.results[i].buffer &&
           is_inside({launch.results[i].buffer, nullptr, launch.results[i].offset}, self.result_bytes[i] + kBehind);
  };
  for (uint32_t i = 0; is(Fault::run_restores_bytes_behind) && i < launch.result_count; ++i) {
    behind_results.emplace_back(kBehind);
    if (is_room_behind(i))
      get(self.owner, launch.results[i].buffer, launch.results[i].offset + self.result_bytes[i],
          behind_results[i].data(), kBehind);
  }
  if (!behind_results.empty()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (const collet_status code = run_inner(self, changed, run_id, error)) return code;
  for (uint32_t i = 0; i < behind_results.size(); ++i)
    if (is_room_behind(i))
      put(self.owner, launch.results[i].buffer, launch.results[i].offset + self.result_bytes[i],
          behind_results[i].data(), kBehind);
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const bool is_large =
      is(Fault::three_ops_spoil_an_element) && collet_region_at(program, 0)->ops.count > 2 && launch.result_count;
  if (wrong_start || is_large) touch(self, launch.results[0], 0, 1);
  if (is(Fault::second_result_is_first) && launch.result_count == 2 && self.result_bytes[0] == self.result_bytes[1]) {
    Bytes first(self.result_bytes[0]);
    get(self.owner, launch.results[0].buffer, launch.results[0].offset, first.data(), first.size());
    put_result(self, launch, 1, first, 0, first.size());
  }
  spoil_after(self, launch);
  if (launch.result_count > 0) {
    static std::atomic<uint64_t> bytes_before{0};
    const uint64_t bytes = self.result_bytes[0];
    if (bytes_before.exchange(bytes) > bytes && bytes >= 4 && is(Fault::small_run_after_large_keeps_tail))
      touch(self, launch.results[0], static_cast<int64_t>(bytes) - 4, 4);
  }
  return COLLET_OK;
}

}  // namespace

collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error) {
  Executable& self = *of(p);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string why = complaint(self, launches[i]);
    if (why.empty()) continue;
    if (is(Fault::launch_unchecked)) return COLLET_OK;
    const collet_argument* result = launches[i].result_count == 1 ? &launches[i].results[0] : nullptr;
    const bool is_of_result = why.starts_with("a result") && result && result->buffer;
    if (is(Fault::workspace_unchecked) && why.starts_with("a workspace")) return COLLET_OK;
    if (is(Fault::small_result_unchecked) && is_of_result && of(result->buffer)->bytes < self.result_bytes[0])
      return COLLET_OK;
    if (is(Fault::result_and_offset_checked_apart) && is_of_result && result->offset <= of(result->buffer)->bytes &&
        self.result_bytes[0] <= of(result->buffer)->bytes && result->bytes >= self.result_bytes[0])
      return COLLET_OK;
    if (is(Fault::refused_launch_leaks)) leave();
    if (is(Fault::run_after_refusal_missing)) self.is_idle = true;
    if (is(Fault::donated_overwritten_on_error) || is(Fault::older_donated_overwritten_on_error))
      overwrite_donated(self, launches[i]);
    return fail(error, COLLET_INVALID_ARGUMENT, why);
  }
  if (is(Fault::runs_leak)) {
    static std::vector<std::unique_ptr<char[]>> left;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    left.push_back(std::make_unique<char[]>(100));
  }
  if (is(Fault::execute_returns_early)) {
    std::thread([&self, launch = launches[0],
                 arguments = std::vector<collet_argument>(launches[0].arguments,
                                                          launches[0].arguments + launches[0].argument_count),
                 results = std::vector<collet_argument>(launches[0].results,
                                                        launches[0].results + launches[0].result_count)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      launch.arguments = arguments.data();
      launch.results = results.data();
      collet_error ignored{};
      run_inner(self, launch, 0, &ignored);
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return COLLET_OK;
  }
  if (lose_one(launches[0].sync ? launches[0].sync->queue : nullptr, launches[0].device) && !launches[0].sync)
    return self.is_after_loss && is(Fault::loss_spares_new_executables) ? COLLET_OK : lost(error);
  if (count > 1) return run_together(self, launches, count, run_id, error);
  for (uint32_t i = 0; i < count; ++i) {
    const auto run = [&](const collet_launch& launch) { return run_one(self, launch, run_id, error); };
    const collet_status code =
        has_layouts() ? run_dense(self, launches[i], run, error) : run_one(self, launches[i], run_id, error);
    if (code != COLLET_OK) return code;
  }
  return COLLET_OK;
}

}  // namespace collet::mutants
