// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/run/host_call.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "hlo/program/leaves.h"
#include "sdk/runtime/memory/array_type.h"

namespace collet::runtime {

namespace {

// The name under which an embedder registers a function for the instruction, and the data that the function gets.
// Without a name no function can run it.
struct Call {
  std::string_view target, config;
};

Call call_of(const hlo::Instruction& instr) {
  switch (instr.op) {
    case hlo::Op::CUSTOM_CALL: {
      const auto& attributes = instr.as<hlo::CustomCallAttrs>();
      return {attributes.target, attributes.config};
    }
    case hlo::Op::INFEED:
      return {op_info(instr.op).text, instr.as<hlo::InfeedAttrs>().config};
    case hlo::Op::OUTFEED:
      return {op_info(instr.op).text, instr.as<hlo::OutfeedAttrs>().config};
    default:
      return {};
  }
}

thread_local constinit bool in_host_function = false;

// Marks the thread as being in a function of the embedder, which may throw.
class InHostFunction {
 public:
  InHostFunction() : before_(std::exchange(in_host_function, true)) {}
  ~InHostFunction() { in_host_function = before_; }
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;

 private:
  bool before_;
};

}  // namespace

bool is_in_host_function() {
  return in_host_function;
}

const collet_host_function* called_function(std::span<const collet_host_function> functions,
                                            const hlo::Instruction& instr) {
  if (functions.empty()) return nullptr;
  const std::string_view target = call_of(instr).target;
  if (target.empty()) return nullptr;
  for (const collet_host_function& f : functions)
    if (f.target && target == f.target) return &f;
  return nullptr;
}

bool calls_any(std::span<const collet_host_function> functions, const hlo::Module& module,
               const hlo::Instruction& instr) {
  if (functions.empty()) return false;
  if (called_function(functions, instr)) return true;
  std::set<hlo::CompId> seen(instr.called.begin(), instr.called.end());
  std::vector<hlo::CompId> left(seen.begin(), seen.end());
  while (!left.empty()) {
    const hlo::CompId c = left.back();
    left.pop_back();
    for (hlo::InstrId id : module[c].order) {
      if (called_function(functions, module[id])) return true;
      for (hlo::CompId called : module[id].called)
        if (seen.insert(called).second) left.push_back(called);
    }
  }
  return false;
}

std::string key_of_calls(std::span<const collet_host_function> functions, const hlo::Module& module) {
  std::string out;
  for (hlo::CompId c : module.computations())
    for (hlo::InstrId id : module[c].order) {
      const collet_host_function* f = called_function(functions, module[id]);
      if (!f) continue;
      out += std::to_string(std::strlen(f->target)) + ' ' + f->target + ' ' +
             std::to_string(reinterpret_cast<uintptr_t>(f->call)) + ' ' +
             std::to_string(reinterpret_cast<uintptr_t>(f->user)) + '\n';
    }
  return out;
}

namespace {

/// Returns the number of the leaf of `shape` that `index` names; nullopt if it names a tuple.
std::optional<size_t> leaf_at(const hlo::Shape& shape, hlo::Dims index) {
  const hlo::Shape* at = &shape;
  int64_t leaf = 0;
  for (const int64_t i : index) {
    for (int64_t before = 0; before < i; ++before) leaf += at->element(static_cast<size_t>(before)).leaf_count();
    at = &at->element(static_cast<size_t>(i));
  }
  return at->is_tuple() ? std::nullopt : std::optional(static_cast<size_t>(leaf));
}

/// Gives the results that the program lets take over operands what these hold: a function may write a part of such a result.
void copy_aliases(const hlo::Instruction& instr, std::span<const hlo::Literal> operands,
                  std::span<hlo::Literal> results) {
  if (instr.op != hlo::Op::CUSTOM_CALL) return;
  for (const hlo::AliasEntry& alias : instr.as<hlo::CustomCallAttrs>().aliasing) {
    const std::optional<size_t> to = leaf_at(instr.shape, alias.output_index);
    if (!to || !alias.operand_index.empty() || operands.size() != instr.operands.size()) continue;
    const hlo::Literal& from = operands[static_cast<size_t>(alias.operand)];
    if (from.byte_size() == results[*to].byte_size() && from.byte_size() > 0)
      std::memcpy(results[*to].mutable_bytes(), from.bytes(), static_cast<size_t>(from.byte_size()));
  }
}

}  // namespace

Expected<std::vector<hlo::Literal>> call_host(const HostFunction& function, const hlo::Instruction& instr,
                                              std::span<const hlo::Literal> operands, uint32_t participant,
                                              uint64_t run_id) {
  std::vector<hlo::Shape> shapes;
  hlo::append_leaf_shapes(instr.shape, shapes);
  std::vector<hlo::Literal> results;
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<collet_array_type> in_types, out_types;
  for (const hlo::Literal& operand : operands) {
    COLLET_ASSIGN(const ArrayType* type, array_type(operand.shape()));
    in_types.push_back(type->to_c());
    in.push_back(type->bytes ? operand.bytes() : nullptr);
  }
  for (const hlo::Shape& shape : shapes) {
    COLLET_ASSIGN(const ArrayType* type, array_type(shape));
    out_types.push_back(type->to_c());
    results.push_back(type->bytes ? hlo::Literal::uninitialized(shape) : hlo::Literal::zeros(shape));
    out.push_back(type->bytes ? results.back().mutable_bytes() : nullptr);
  }
  copy_aliases(instr, operands, results);
  collet_host_call call{};
  call.struct_size = sizeof call;
  call.participant = participant;
  call.operand_count = static_cast<uint32_t>(in.size());
  call.result_count = static_cast<uint32_t>(out.size());
  call.operands = in.data();
  call.results = out.data();
  call.operand_types = in_types.data();
  call.result_types = out_types.data();
  call.run_id = run_id;
  const std::string config(call_of(instr).config);
  call.target = function.target.c_str();
  call.config = config.c_str();
  call.config_size = config.size();
  collet_error error{};
  const InHostFunction inside;
  const collet_status status = function.call(function.user, &call, &error);
  if (status == COLLET_OK) return results;
  return from_c(status, error,
                "'" + std::string(instr.name) + "', the embedder's function for '" + function.target + "'");
}

}  // namespace collet::runtime
