// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/rules.h"

#include <array>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

using InferFunction = Expected<Shape> (*)(const InferInput&);
using VerifyFunction = Status (*)(const Module&, const Instruction&);

struct Meaning {
  InferFunction infer = nullptr;
  VerifyFunction verify = nullptr;
};

// The functions of each op by its family. If a family lacks a function, linking fails.
constexpr std::array<Meaning, COLLET_OP_LIMIT> kMeanings = [] {
  std::array<Meaning, COLLET_OP_LIMIT> table{};
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  table[id] = {infer_##family, verify_##family};
#include <collet/ops.def>
  return table;
}();

const Meaning* meaning_of(Op op) {
  const Meaning& meaning = kMeanings[static_cast<size_t>(op)];
  return meaning.infer ? &meaning : nullptr;
}

Status check_arity(Op op, const OpInfo& info, size_t operands) {
  const auto n = static_cast<int64_t>(operands);
  if (n >= info.min_operands && (info.max_operands < 0 || n <= info.max_operands)) return ok_status();
  if (info.min_operands == info.max_operands)
    return broken(op, "", "takes ", static_cast<int64_t>(info.min_operands), " operand",
                  info.min_operands == 1 ? "" : "s", ", but has ", n);
  return broken(op, "", "takes at least ", static_cast<int64_t>(info.min_operands), " operands, but has ", n);
}

Status check_called(Op op, const OpInfo& info, std::span<const CompId> called) {
  const size_t n = called.size();
  switch (info.regions) {
    case Regions::NONE:
      if (n) return broken(op, "", "calls no computation, but has ", n);
      break;
    case Regions::TO_APPLY:
      if (n != 1) return broken(op, "", "needs to_apply, one computation, but has ", n);
      break;
    case Regions::CONDITION_BODY:
      if (n != 2) return broken(op, "", "needs condition and body, but calls ", n, " computations");
      break;
    case Regions::SELECT_SCATTER:
      if (n != 2) return broken(op, "", "needs select and scatter, but calls ", n, " computations");
      break;
    case Regions::BRANCHES:
      if (n == 0) return broken(op, op == Op::CONDITIONAL ? "C1" : "", "needs at least one branch");
      break;
    case Regions::CALLS:
      if (n > 1 || (n == 0 && op == Op::FUSION)) return broken(op, "", "needs one called computation, but has ", n);
      break;
    case Regions::CUSTOM:
      break;
  }
  return ok_status();
}

constexpr uint32_t bit(Kind kind) {
  return uint32_t{1} << static_cast<uint32_t>(kind);
}

// The kinds of types in a set, and how messages name it.
struct TypeSetInfo {
  uint32_t kinds;
  std::string_view text;
};

const TypeSetInfo& info_of(TypeSet set) {
  constexpr uint32_t kInteger = bit(Kind::Signed) | bit(Kind::Unsigned), kFloat = bit(Kind::Float),
                     kComplex = bit(Kind::Complex), kPred = bit(Kind::Pred);
  static constexpr TypeSetInfo kSets[] = {
      {~uint32_t{0}, "any"},
      {kInteger | kFloat | kComplex, "integer, float or complex"},
      {kInteger | kFloat | kComplex | kPred, "integer, float, complex or pred"},
      {kInteger | kFloat, "integer or float"},
      {kInteger | kFloat | kPred, "integer, float or pred"},
      {kInteger, "integer"},
      {kInteger | kPred, "integer or pred"},
      {kFloat, "float"},
      {kFloat | kComplex, "float or complex"},
  };
  static_assert(std::size(kSets) == static_cast<size_t>(TypeSet::FLOAT_COMPLEX) + 1, "in the order of TypeSet");
  return kSets[static_cast<size_t>(set)];
}

Status check_types(const InferInput& in, const OpInfo& info) {
  if (info.types == TypeSet::ANY || in.operands.empty()) return ok_status();
  const Shape& first = in.operand(0);
  if (!first.is_array()) return broken(in.op, "", "operand 0 must be an array, but is ", first);
  if (in_type_set(info.types, first.type())) return ok_status();
  return broken(in.op, "", "operand 0 must be of ", type_set_text(info.types), " type, but is ", first);
}

}  // namespace

bool in_type_set(TypeSet set, Type type) {
  return (info_of(set).kinds & bit(kind_of(type))) != 0;
}

std::string_view type_set_text(TypeSet set) {
  return info_of(set).text;
}

Expected<Shape> infer_shape(const InferInput& in) {
  const Meaning* meaning = meaning_of(in.op);
  if (!meaning) return invalid_argument("not an op");
  const OpInfo& info = op_info(in.op);
  if (info.record != Record::None && !in.attrs) return broken(in.op, "", "has no attributes");
  COLLET_TRY(check_arity(in.op, info, in.operands.size()));
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (!in.operands[i] || !in.operands[i]->valid()) return broken(in.op, "", "operand ", i, " has no shape");
  COLLET_TRY(check_called(in.op, info, in.called));
  COLLET_TRY(check_types(in, info));
  const bool stated = in.declared && in.declared->valid();
  InferInput clean = in;
  if (!stated) clean.declared = nullptr;
  return meaning->infer(clean);
}

Expected<Shape> infer_shape(const Module& module, const Instruction& instr) {
  const size_t n = instr.operands.size();
  std::array<const Shape*, 8> few;  // most instructions have at most 8 operands
  std::vector<const Shape*> many(n > few.size() ? n : 0);
  const Shape** operands = n > few.size() ? many.data() : few.data();
  for (size_t i = 0; i < n; ++i) {
    if (index_of(instr.operands[i]) >= module.instruction_limit())
      return broken(instr.op, "", "has an operand that does not exist");
    operands[i] = &module[instr.operands[i]].shape;
  }
  return infer_shape({module, instr.op, {operands, n}, instr.attrs, instr.called, &instr.shape});
}

Status verify_instruction(const Module& module, const Instruction& instr) {
  return verify_instruction(module, instr, false);
}

Status verify_instruction(const Module& module, const Instruction& instr, bool mixed) {
  COLLET_ASSIGN(const Shape inferred, infer_shape(module, instr));
  if (!instr.shape.valid()) return broken(instr.op, "", "has no shape");
  if (!shapes_match(instr.shape, inferred, mixed))
    return broken(instr.op, "", "the declared shape is ", instr.shape, ", but the inferred one is ", inferred);
  return meaning_of(instr.op)->verify(module, instr);
}

Expected<InstrId> append_inferred(Module& module, CompId parent, Op op, std::span<const InstrId> operands,
                                  const void* attrs, std::span<const CompId> called, const Shape* declared) {
  std::vector<const Shape*> shapes;
  shapes.reserve(operands.size());
  for (InstrId id : operands) {
    if (index_of(id) >= module.instruction_limit()) return broken(op, "", "has an operand that does not exist");
    shapes.push_back(&module[id].shape);
  }
  const Record record = op_info(op).record;
  if (!attrs && record != Record::None) attrs = make_record(record, module.arena());
  COLLET_ASSIGN(const Shape shape, infer_shape({module, op, shapes, attrs, called, declared}));
  return module.append(parent, op, shape, operands, attrs, called);
}

}  // namespace collet::hlo
