// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/elementwise.h"

#include <collet/types.h>

#include <array>
#include <iterator>
#include <string_view>

namespace collet::codegen {
namespace {

struct Row {
  bool pred = false;
  bool integer = false;
  bool real = false;
  bool complex = false;
  bool expensive = false;
};

constexpr bool is_there(std::string_view function) {
  return function != "none";
}

constexpr std::array<Row, COLLET_OP_LIMIT> kRows = [] {
  std::array<Row, COLLET_OP_LIMIT> rows{};
#define COLLET_ELEMENTWISE(OPCODE, pred, integer, real, complex, rounds, expensive) \
  rows[COLLET_OP_##OPCODE] = {is_there(#pred), is_there(#integer), is_there(#real), is_there(#complex), expensive};
#include "sdk/codegen/kernel/elementwise.def"
#undef COLLET_ELEMENTWISE
  return rows;
}();

}  // namespace

bool has_elementwise(uint32_t opcode, uint32_t operand_type) {
  if (opcode >= COLLET_OP_LIMIT) return false;
  return of_kind(kRows[opcode], operand_type);
}

bool is_expensive(uint32_t opcode) {
  return opcode < COLLET_OP_LIMIT && kRows[opcode].expensive;
}

size_t operands_of(uint32_t opcode) {
  switch (opcode) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case id:                                                                                             \
    return static_cast<size_t>(min);
#include <collet/ops.def>
    default:
      return 0;
  }
}

uint32_t combine_opcode(uint32_t combine) {
  constexpr uint32_t kOpcodes[] = {0,
                                   COLLET_OP_ADD,
                                   COLLET_OP_MULTIPLY,
                                   COLLET_OP_MINIMUM,
                                   COLLET_OP_MAXIMUM,
                                   COLLET_OP_AND,
                                   COLLET_OP_OR,
                                   COLLET_OP_XOR};
  return combine < std::size(kOpcodes) ? kOpcodes[combine] : 0;
}

}  // namespace collet::codegen
