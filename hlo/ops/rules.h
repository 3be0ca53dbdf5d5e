// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// The meaning of ops: what shape a result has, what an instruction must hold to, and what it computes. Each family of
/// ops.def has its functions in files of its name: infer_<family> and verify_<family> in <family>.cc, evaluate_<family>
/// in <family>_eval.cc. The dispatch tables (rules.cc, evaluate.cc) are made from ops.def, so that a missing meaning is a
/// link error.

namespace collet::hlo {

/// The inputs of shape inference. `declared` is the shape that the text states, for ops whose result does not follow
/// from their operands (ops.def: SHAPED); null when none is stated.
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

/// The shape of the result, without layout; or why the operands and attributes do not fit, with the op's constraint (such
/// as "dot C5") in the message. Never crashes, whatever the input: attributes are not trusted.
Expected<Shape> infer_shape(const InferInput& input);
/// For an instruction that stands in a module; its own shape counts as declared.
Expected<Shape> infer_shape(const Module& module, const Instruction& instr);

/// The declared shape against the inferred one, and the op's rules beyond shapes. Messages name the rule, not the place.
Status verify_instruction(const Module& module, const Instruction& instr);

/// `type` is in `set`.
bool in_type_set(TypeSet set, Type type);
/// "integer, float or complex" and so on, for messages.
std::string_view type_set_text(TypeSet set);

/// COLLET_COMBINE_* of a computation that combines two scalars (or sorts); OTHER when it is no such thing.
uint32_t combine_kind(const Module& module, CompId computation);

/// Appends with the inferred shape; the error names the op. For passes and tests.
Expected<InstrId> append_inferred(Module& module, CompId parent, Op op, std::span<const InstrId> operands,
                                  const void* attrs = nullptr, std::span<const CompId> called = {},
                                  const Shape* declared = nullptr);

}  // namespace collet::hlo
