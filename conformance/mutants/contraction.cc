// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/contraction.h"

#include <collet/backend.h>

#include <cmath>

namespace collet::mutants {
namespace {

// Returns the op that defines a value; null for an argument.
const collet_op* definition_of(const collet_program* program, uint32_t value) {
  const collet_value* v = collet_value_at(program, value);
  return v->flags & COLLET_VALUE_ARGUMENT ? nullptr : collet_op_at(program, v->definition);
}

// Returns the number of the entry's argument that a value is. For a value inside a fusion it is found through the
// fusion's operands.
std::optional<uint32_t> argument_of(const collet_program* program, uint32_t value, const collet_op* fusion) {
  const collet_value* v = collet_value_at(program, value);
  if (!(v->flags & COLLET_VALUE_ARGUMENT)) return std::nullopt;
  if (v->definition == 0) return v->index;
  if (fusion == nullptr || v->definition != fusion->regions.first) return std::nullopt;
  return argument_of(program, collet_operand(program, fusion, v->index), nullptr);
}

std::optional<Contraction> contraction_of(const collet_program* program, uint32_t value, const collet_op* fusion) {
  const collet_op* add = definition_of(program, value);
  if (add == nullptr) return std::nullopt;
  if (add->opcode == COLLET_OP_FUSION && fusion == nullptr && add->regions.count == 1) {
    const collet_region* body = collet_region_at(program, add->regions.first);
    const uint32_t index = collet_value_at(program, value)->index;
    if (index >= body->results.count) return std::nullopt;
    return contraction_of(program, collet_ref_at(program, body->results.first + index), add);
  }
  const collet_type* type = collet_value_type(program, value);
  if (add->opcode != COLLET_OP_ADD || type->element != COLLET_TYPE_F32) return std::nullopt;
  for (const uint32_t side : {0u, 1u}) {
    const collet_op* multiply = definition_of(program, collet_operand(program, add, side));
    if (multiply == nullptr || multiply->opcode != COLLET_OP_MULTIPLY) continue;
    const auto a = argument_of(program, collet_operand(program, multiply, 0), fusion),
               b = argument_of(program, collet_operand(program, multiply, 1), fusion),
               c = argument_of(program, collet_operand(program, add, 1 - side), fusion);
    if (a && b && c) return Contraction{0, *a, *b, *c, type->elements};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Contraction> find_contraction(const collet_program* program) {
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    auto found = contraction_of(program, collet_ref_at(program, entry->results.first + i), nullptr);
    if (!found) continue;
    found->result = i;
    return found;
  }
  return std::nullopt;
}

void contract(std::span<const float> a, std::span<const float> b, std::span<const float> c, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::fma(a[i], b[i], c[i]);
}

}  // namespace collet::mutants
