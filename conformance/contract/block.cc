// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "conformance/contract/program.h"
#include "conformance/contract/samples.h"

/// \file
/// Contract cases with program blocks in forms that another writer could produce: a longer header, arrays in another
/// order with gaps between them, shorter and longer attribute records.

namespace collet::conformance {
namespace {

struct Form {
  const char* what;
  Promise promise;
  bool longer_head = false, other_order = false, shorter_records = false, longer_records = false;
};

constexpr uint64_t kGap = 64, kLonger = 32;

uint64_t rounded(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

std::array<collet_array collet_program::*, 11> arrays() {
  return {&collet_program::types,     &collet_program::values,  &collet_program::ops,  &collet_program::regions,
          &collet_program::constants, &collet_program::aliases, &collet_program::refs, &collet_program::integers,
          &collet_program::records,   &collet_program::bytes,   &collet_program::data};
}

// Returns the attribute records, one after another, in the sizes of the form; updates their offsets in `ops`.
std::vector<char> records_of(const collet_program* from, const Form& form, std::vector<collet_op>& ops) {
  std::vector<char> out;
  for (collet_op& op : ops) {
    if (op.record_bytes == 0) continue;
    const char* record = static_cast<const char*>(collet_array_at(from, from->records, 0)) + op.record;
    uint32_t bytes = op.record_bytes;
    // Trailing zero fields of a record may be omitted, and a record may be longer with fields that are zero.
    while (form.shorter_records && bytes > 8 &&
           std::all_of(record + bytes - 8, record + bytes, [](char c) { return c == 0; }))
      bytes -= 8;
    op.record = static_cast<uint32_t>(out.size());
    out.insert(out.end(), record, record + bytes);
    if (form.longer_records) out.resize(out.size() + 16);
    op.record_bytes = static_cast<uint32_t>(out.size()) - op.record;
    out.resize(rounded(out.size(), 8));
    // Bytes after the last record, which readers must ignore.
    if (form.shorter_records) out.insert(out.end(), 16, char{0x77});
  }
  return out;
}

hlo::Block written(const collet_program* from, const Form& form) {
  const uint64_t head = sizeof(collet_program) + (form.longer_head ? kLonger : 0);
  std::vector<collet_op> ops;
  for (uint32_t i = 0; i < from->ops.count; ++i) ops.push_back(*collet_op_at(from, i));
  const bool other_records = form.shorter_records || form.longer_records;
  const std::vector<char> records = other_records ? records_of(from, form, ops) : std::vector<char>();
  auto order = arrays();
  if (form.other_order) std::reverse(order.begin(), order.end());
  const uint64_t gap = form.other_order ? kGap : 0;
  const auto bytes_of = [&](collet_array collet_program::* array) {
    if (array == &collet_program::records && other_records) return static_cast<uint64_t>(records.size());
    return uint64_t{(from->*array).count} * (from->*array).stride;
  };
  uint64_t total = rounded(head, 64);
  for (const auto array : order) total += rounded(bytes_of(array), 64) + gap;
  std::vector<char> out(total, char{0x77});
  std::memset(out.data(), 0, head);
  collet_program to = *from;
  to.struct_size = static_cast<uint32_t>(head);
  to.total_bytes = total;
  uint64_t at = rounded(head, 64);
  for (const auto array : order) {
    at += gap;
    const uint64_t bytes = bytes_of(array);
    const void* source = array == &collet_program::ops                        ? static_cast<const void*>(ops.data())
                         : array == &collet_program::records && other_records ? static_cast<const void*>(records.data())
                                                                              : collet_array_at(from, from->*array, 0);
    if (bytes > 0) std::memcpy(out.data() + at, source, bytes);
    (to.*array).offset = at;
    if (array == &collet_program::records && other_records) to.records.count = static_cast<uint32_t>(bytes);
    at += rounded(bytes, 64);
  }
  std::memcpy(out.data(), &to, sizeof to);
  return hlo::Block(out.data(), out.size());
}

void judge(Contract& c, const Form& form) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  for_each_offered(*instance, [&](const Sample& sample, const TestProgram& original) {
    const hlo::Block block = written(original.get(), form);
    const auto* program = reinterpret_cast<const collet_program*>(block.data());
    if (!c.check(accepts(*instance, program), form.promise, "supports accepts {}, but not in a block with {}",
                 sample.name, form.what))
      return Visit::Stop;
    CompileResult made;
    const Visit visit = compile_form(*instance, sample, original, program, made);
    if (visit == Visit::Stop)
      c.check(false, form.promise, "compile of {} in a block with {} gave status {}: {}", sample.name, form.what,
              made.status, made.message);
    if (visit != Visit::Taken || !instance->executes()) return visit;
    GuardedLaunch guarded(*instance, original, made.executable, {});
    if (guarded.run(1, fmt::format("{} in a block with {}", sample.name, form.what), sample.bound)) return visit;
    if (runs_right(*instance, sample, original))
      c.check(false, form.promise, "{} runs right in the block that the SDK writes", sample.name);
    return Visit::Stop;
  });
}

}  // namespace

void add_block_contracts(std::vector<ContractCase>& list) {
  const auto add = [&](const char* name, const Form& form) {
    list.push_back({std::string("block/") + name, [form](Contract& c) { judge(c, form); }});
  };
  add("longer_head", {.what = "a longer head", .promise = Promise::BLOCK_ARRAYS, .longer_head = true});
  add("other_order", {.what = "its arrays in another order", .promise = Promise::BLOCK_ARRAYS, .other_order = true});
  add("shorter_records", {.what = "shorter records", .promise = Promise::BLOCK_RECORDS, .shorter_records = true});
  add("longer_records", {.what = "longer records", .promise = Promise::BLOCK_RECORDS, .longer_records = true});
}

}  // namespace collet::conformance
