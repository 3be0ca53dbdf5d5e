// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Defines what ops mean: the shape of the result, the rules that a valid instruction satisfies, and what it computes.
/// Each family of ops.def has its functions in files of its name: infer_<family> and verify_<family> in <family>.cc,
/// evaluate_<family> in <family>_eval.cc. The dispatch tables (rules.cc, evaluate.cc) are generated from ops.def, so
/// that a missing function is a link error.

namespace collet::hlo {

/// The inputs of shape inference. `declared` is the shape that the text states, for ops whose result does not follow
/// from their operands (the flag SHAPED in ops.def); null if none is stated.
struct InferInput {
  const Module& module;
  Op op;
  std::span<const Shape* const> operands;
  const void* attrs = nullptr;  ///< the op's record; never null unless the record is None
  std::span<const CompId> called;
  const Shape* declared = nullptr;

  template <typename T>
  const T& as() const {
    return *static_cast<const T*>(attrs);
  }
  const Shape& operand(size_t i) const { return *operands[i]; }
};

/// Returns the shape of the result, without layout, or an error that says why the operands and attributes do not fit
/// and names the constraint (such as "dot C5"). Attributes are not trusted: any input gives a shape or an error.
Expected<Shape> infer_shape(const InferInput& input);
/// Infers the shape of an instruction of a module; its own shape counts as declared.
Expected<Shape> infer_shape(const Module& module, const Instruction& instr);

/// Compares the declared shape with the inferred one, and checks the op's rules beyond shapes. Messages name the rule,
/// not the position of the instruction.
Status verify_instruction(const Module& module, const Instruction& instr);

/// True if `type` is in `set`.
bool in_type_set(TypeSet set, Type type);
/// Returns a text for messages, such as "integer, float or complex".
std::string_view type_set_text(TypeSet set);

/// Returns the COLLET_COMBINE_* of a computation that combines two scalars (or compares them for a sort); OTHER if it
/// is none of these.
uint32_t combine_kind(const Module& module, CompId computation);

/// True if the body of a reduction of one or several arrays combines each with itself alone, in a way that has a COLLET_COMBINE_*.
bool combines_each_alone(const Module& module, CompId computation);

/// Appends an instruction with the inferred shape; an error names the op. For passes and tests.
Expected<InstrId> append_inferred(Module& module, CompId parent, Op op, std::span<const InstrId> operands,
                                  const void* attrs = nullptr, std::span<const CompId> called = {},
                                  const Shape* declared = nullptr);

}  // namespace collet::hlo
