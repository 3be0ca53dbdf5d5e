// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace collet::hlo {

/// Opcodes; the numbers of ops.def.
enum class Op : uint8_t {
  INVALID = 0,
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) NAME = id,
#include <collet/ops.def>
};

enum class OpClass : uint8_t { CORE, EXACT, MATH, STRUCTURED, EXECUTOR, COMMUNICATION };

/// Which computations an op calls, and by which attribute names.
enum class Regions : uint8_t { NONE, TO_APPLY, CONDITION_BODY, SELECT_SCATTER, BRANCHES, CALLS, CUSTOM };

/// Sets of element types; see ops.def.
enum class TypeSet : uint8_t { ANY, NUMBER, NUMBER_PRED, REAL, REAL_PRED, INTEGER, INTEGER_PRED, FLOAT, FLOAT_COMPLEX };

/// The families: one file each in hlo/ops.
enum class Family : uint8_t {
  none,
  elementwise,
  convert,
  movement,
  dot,
  convolution,
  reduce,
  window,
  indexing,
  sort,
  rng,
  linalg,
  fft,
  batch_norm,
  control_flow,
  structure,
  custom_call,
  collective,
  asynchronous,
  host_io,
  dynamic_shape
};

/// The attribute records of attributes.def.
enum class Record : uint8_t {
  None,
#define COLLET_RECORD(Name, name) Name,
#include <collet/attributes.def>
};

/// A row of the op table.
struct OpInfo {
  std::string_view text;
  OpClass op_class = OpClass::EXECUTOR;
  Family family = Family::none;
  int8_t min_operands = 0;
  int8_t max_operands = 0;  ///< -1: any number
  Record record = Record::None;
  Regions regions = Regions::NONE;
  TypeSet types = TypeSet::ANY;
  uint16_t traits = 0;  ///< COLLET_OP_* bits
  int8_t ulp = 0;
  uint16_t since = 0;
  bool has(uint16_t trait) const { return traits & trait; }
};

const OpInfo& op_info(Op op);
/// Converts "all-reduce" to Op::ALL_REDUCE.
std::optional<Op> op_from_text(std::string_view text);
/// The largest opcode; opcodes begin at 1.
constexpr int kLastOp = [] {
  int last = 0;
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  last = id > last ? id : last;
#include <collet/ops.def>
  return last;
}();

inline bool is_elementwise(Op op) {
  return op_info(op).has(COLLET_OP_ELEMENTWISE);
}
inline bool has_side_effect(Op op) {
  return op_info(op).has(COLLET_OP_SIDE_EFFECT);
}

}  // namespace collet::hlo
