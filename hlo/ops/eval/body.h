// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hlo/ops/eval/kernels.h"
#include "hlo/ops/evaluate.h"

namespace collet::hlo::eval {

/// A computation of scalars (a reducer, a comparator, the function of a map) that is compiled to run on many elements
/// (lanes) at once. A computation that cannot be compiled to kernels is called through the context for each element.
///
/// Every value is rounded to its element type, as the computation states. A Body may be used by one thread only; clone
/// it for others.
class Body {
 public:
  /// `lanes`: the largest number of elements per run, at most kLanes.
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
  /// Returns result `i` of the last run. It is valid until the next run, and may be the memory of an argument.
  const void* result(size_t i) const { return results_[i]; }
  /// Copies the results to the first arguments, one to one, for the next step of a reduction.
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
  std::vector<void*> registers_;  // values of the parameters
  std::vector<void*> results_;
  bool results_are_arguments_ = false;  // a result shares the memory of an argument
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
  std::vector<Step> steps_;
};

/// Returns the op if `computation` consists of that op only, on its two parameters of one type, in order or in any
/// order if the op is commutative; INVALID otherwise.
Op single_op(const Module& module, CompId computation);

/// Applies reduce-precision to lanes of values of `type`.
void reduce_precision_lanes(Type type, const ReducePrecisionAttrs& attrs, const void* in, void* out, int64_t n);

}  // namespace collet::hlo::eval
