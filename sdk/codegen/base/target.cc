// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/target.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>

namespace collet::codegen {
namespace {

constexpr TuningEntry kTuning[] = {
#define COLLET_TUNING(type, name, value, unit, text) {#name, static_cast<int64_t>(value), unit, text},
#include <collet/codegen/tuning.def>
};

/// Returns the numbers that are not the usual ones.
std::string changes_of(const Tuning& tuning) {
  const Tuning usual;
  std::string out;
#define COLLET_TUNING(type, name, value, unit, text) \
  if (tuning.name != usual.name) out += ";" #name "=" + std::to_string(tuning.name);
#include <collet/codegen/tuning.def>
  return out;
}

}  // namespace

const TuningEntry* tuning_entry(size_t index) {
  return index < std::size(kTuning) ? &kTuning[index] : nullptr;
}

Status set_tuning(Tuning& tuning, const std::string& name, int64_t value) {
  if (value < 1 || value > INT32_MAX)
    return {COLLET_INVALID_ARGUMENT, name + " is a number from 1 to " + std::to_string(INT32_MAX)};
#define COLLET_TUNING(type, field, usual, unit, text) \
  if (name == #field) {                               \
    tuning.field = static_cast<type>(value);          \
    return {};                                        \
  }
#include <collet/codegen/tuning.def>
  return {COLLET_NOT_FOUND, "there is no number '" + name + "'"};
}

std::string Target::fingerprint() const {
  std::string out = triple + ";" + cpu + ";" + features + ";" + abi;
  for (const bool flag : {masks, fma, scales, half_conversion, bf16_dot, int8_dot, routines, sort_kernels})
    out += flag ? "1" : "0";
  for (const int64_t number : {int64_t{vector_bits}, int64_t{vector_registers}, int64_t{scalable_bits},
                               int64_t{kernel_arrays}, int64_t{threads}, first_cache, second_cache})
    out += ";" + std::to_string(number);
  for (const int64_t number :
       {int64_t{grid.warp}, int64_t{grid.block_threads}, grid.shared_bytes, grid.block_shared_bytes,
        grid.declared_bytes, int64_t{grid.neutral}, int64_t{grid.warpgroups}, int64_t{grid.processors},
        int64_t{grid.processor_threads}, grid.cache_bytes, int64_t{grid.tf32_by_default},
        int64_t{grid.libraries.products}, int64_t{grid.libraries.convolutions}, grid.libraries.least_product,
        int64_t{grid.libraries.fft}, int64_t{grid.libraries.factorizations}, int64_t{grid.libraries.collectives}})
    out += has_grid() ? ";" + std::to_string(number) : "";
  for (const int64_t number : {cache_line, cache_way, page}) out += ";" + std::to_string(number);
  out += changes_of(tuning);
  for (const double number : {flops_per_ns, memory_bytes_per_ns, awake_ns, wake_ns})
    out += ";" + std::to_string(static_cast<int64_t>(number * 1000));
  return out;
}

Target scalar_machine() {
  return vector_machine(1);
}

Status source_target(const std::string& name, Target& out) {
  int lanes = 1;
  if (name != "c") {
    const char* const end = name.data() + name.size();
    const bool is_number = name.starts_with("c:") && std::from_chars(name.data() + 2, end, lanes).ptr == end;
    if (!is_number || lanes < 1 || lanes > 64 || (lanes & (lanes - 1)) != 0)
      return {COLLET_NOT_FOUND, "'" + name + "' is neither c nor c: and a power of two, the lanes of a vector"};
  }
  out = vector_machine(lanes);
  return {};
}

Target vector_machine(int lanes, int registers) {
  constexpr int kLaneBits = 32;
  Target target;
  target.triple = "source";
  target.cpu = lanes > 1 ? "vectors of " + std::to_string(lanes) + " lanes" : "scalar";
  target.vector_bits = std::max(lanes, 1) * kLaneBits;
  target.vector_registers = registers;
  target.routines = false;
  return target;
}

Target grid_machine(int processors, int64_t local_bytes, int group) {
  Target target = scalar_machine();
  target.cpu = "grid of " + std::to_string(processors) + " processors";
  target.kernel_arrays = kMostOpenClArrays;
  target.grid.neutral = true;
  target.grid.warp = 32;  // the least number of work-items that share a row
  target.grid.block_threads = 1 << (std::bit_width(static_cast<unsigned>(std::max(group, 64))) - 1);
  target.grid.shared_bytes = target.grid.block_shared_bytes = target.grid.declared_bytes = local_bytes;
  target.grid.processors = std::max(processors, 1);
  target.grid.processor_threads = 1024;
  return target;
}

}  // namespace collet::codegen
