// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hlo/ops/eval/kernels.h"
#include "hlo/ops/evaluate.h"

namespace collet::hlo::eval {

/// A computation of scalars (a reducer, a comparator, map's function), made ready to run on many lanes at once. What
/// cannot be compiled to kernels is called through the context, element by element.
///
/// Every value is rounded to its element type, as the computation says. A Body may run in one thread only; clone it.
class Body {
 public:
  /// `lanes`: most elements per run, at most kLanes.
  Body(const Module& module, CompId computation, EvalContext& context, int64_t lanes = kLanes);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  /// Returns the address from which run() takes parameter `i`: the caller fills `lanes` elements in wide form.
  void* argument(size_t i) { return registers_[i]; }
  size_t argument_count() const { return parameter_types_.size(); }
  size_t result_count() const { return result_types_.size(); }
  Type argument_type(size_t i) const { return parameter_types_[i]; }
  Type result_type(size_t i) const { return result_types_[i]; }
  /// Runs on `n` elements.
  Status run(int64_t n);
  /// Result `i` of the last run. Stays valid until the next one; may be an argument's place.
  const void* result(size_t i) const { return results_[i]; }
  /// Writes the results over the first arguments, one to one: a fold's next step.
  void feed_back(int64_t n);

 private:
  struct Step {
    enum class What : uint8_t { Apply, Convert, Reinterpret, Round } what = What::Apply;
    Kernel kernel = nullptr;
    Type from = Type::Invalid, to = Type::Invalid;
    int bits = 0;
    void* out = nullptr;
    const void* in[3] = {};
    const ReducePrecisionAttrs* precision = nullptr;
  };
  bool compile(CompId computation, std::span<const std::vector<void*>> arguments, std::vector<void*>& results,
               int depth);
  bool compile_instruction(const Instruction& instr, std::vector<std::vector<void*>> operands, std::vector<void*>& out,
                           int depth);
  bool add_step(const Instruction& instr, std::span<const std::vector<void*>> operands, std::vector<void*>& out);
  void* new_register(Type type);
  Status run_by_call(int64_t n);

  const Module& module_;
  CompId computation_;
  EvalContext& context_;
  int64_t lanes_;
  bool compiled_ = false;
  bool result_is_tuple_ = false;
  std::vector<Type> parameter_types_, result_types_;
  std::vector<void*> registers_;  // the parameters
  std::vector<void*> results_;
  bool results_are_arguments_ = false;  // some result is an argument's register
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
  std::vector<Step> steps_;
};

/// The op when `computation` is nothing but that op on its two parameters of one type, operands in order or the op
/// commuting; INVALID otherwise.
Op single_op(const Module& module, CompId computation);

/// reduce-precision on lanes of values of `type`.
void reduce_precision_lanes(Type type, const ReducePrecisionAttrs& attrs, const void* in, void* out, int64_t n);

}  // namespace collet::hlo::eval
