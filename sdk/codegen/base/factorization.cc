// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/base/factorization.h"

#include <collet/attributes.h>

#include <iterator>

namespace collet::codegen {
namespace {

struct Name {
  const char* text;
  Factorization factorization;
};

constexpr Name kComposites[] = {
    {"collet.lu", Factorization::kLu},
    {"collet.geqrf", Factorization::kQr},
    {"collet.householder_product", Factorization::kReflectors},
    {"collet.eigh", Factorization::kEigh},
    {"collet.svd", Factorization::kSvd},
    {"collet.eig", Factorization::kEig},
    {"collet.schur", Factorization::kSchur},
    {"collet.hessenberg", Factorization::kHessenberg},
};

constexpr Name kCustomCalls[] = {
    {"Qr", Factorization::kQr},
    {"ProductOfElementaryHouseholderReflectors", Factorization::kReflectors},
    {"Eigh", Factorization::kEigh},
};

template <size_t N>
Factorization find(const Name (&names)[N], std::string_view name) {
  for (const Name& n : names) {
    if (name == n.text) return n.factorization;
  }
  return Factorization::kUnknown;
}

std::string_view text_of(const collet_program* program, collet_range range) {
  return {collet_string(program, range), range.count};
}

}  // namespace

Factorization factorization_of(const collet_program* program, const collet_op* op) {
  if (op->opcode == COLLET_OP_CALL) {
    collet_call_attrs a;
    collet_read_attributes(program, op, &a, sizeof a);
    return find(kComposites, text_of(program, a.name));
  }
  if (op->opcode == COLLET_OP_CUSTOM_CALL) {
    collet_custom_call_attrs a;
    collet_read_attributes(program, op, &a, sizeof a);
    return find(kCustomCalls, text_of(program, a.target));
  }
  return Factorization::kUnknown;
}

bool reads_lower_triangle(const collet_program* program, const collet_op* op) {
  if (op->opcode != COLLET_OP_CUSTOM_CALL) return false;
  collet_custom_call_attrs a;
  collet_read_attributes(program, op, &a, sizeof a);
  return !text_of(program, a.config).starts_with('0');
}

const char* factorization_name(uint32_t index) {
  return index < std::size(kComposites) ? kComposites[index].text : nullptr;
}

}  // namespace collet::codegen
