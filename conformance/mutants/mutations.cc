// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/mutations.h"

#include <collet/attributes.h>
#include <collet/types.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace collet::mutants {
namespace {

template <typename Field>
constexpr FieldKind field_kind() {
  if constexpr (std::is_same_v<Field, collet_range>) return FieldKind::Range;
  return sizeof(Field) == 8 ? FieldKind::Number : FieldKind::Flag;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// The kind of an op's results, since a mutation of floats needs an op with float results.
enum class Gives : uint8_t { ANY, FLOATS, INTEGERS, PREDS };
struct MutatedOp {
  uint32_t op;
  Gives gives;
  bool special;  ///< its cases have results of NaN, infinities, denormals and zeros of both signs
};

// Ops that have conformance cases, and properties of the results in these cases.
constexpr MutatedOp kOps[] = {
    {COLLET_OP_ADD, Gives::ANY, true},
    {COLLET_OP_SUBTRACT, Gives::ANY, true},
    {COLLET_OP_MULTIPLY, Gives::ANY, true},
    {COLLET_OP_DIVIDE, Gives::ANY, true},
    {COLLET_OP_MAXIMUM, Gives::ANY, true},
    {COLLET_OP_MINIMUM, Gives::ANY, true},
    {COLLET_OP_NEGATE, Gives::ANY, true},
    {COLLET_OP_SELECT, Gives::ANY, true},
    {COLLET_OP_REVERSE, Gives::ANY, true},
    {COLLET_OP_CONVERT, Gives::ANY, true},
    {COLLET_OP_SINE, Gives::FLOATS, false},
    {COLLET_OP_TANH, Gives::FLOATS, false},
    {COLLET_OP_EXPONENTIAL, Gives::FLOATS, false},
    {COLLET_OP_LOG, Gives::FLOATS, false},
    {COLLET_OP_LOGISTIC, Gives::FLOATS, false},
    {COLLET_OP_RSQRT, Gives::FLOATS, false},
    {COLLET_OP_SQRT, Gives::FLOATS, false},
    {COLLET_OP_POWER, Gives::FLOATS, false},
    {COLLET_OP_XOR, Gives::INTEGERS, false},
    {COLLET_OP_SHIFT_LEFT, Gives::INTEGERS, false},
    {COLLET_OP_COMPARE, Gives::PREDS, false},
    {COLLET_OP_REDUCE, Gives::ANY, false},
    {COLLET_OP_DOT, Gives::ANY, false},
    {COLLET_OP_CONVOLUTION, Gives::FLOATS, false},
    {COLLET_OP_SORT, Gives::ANY, false},
    {COLLET_OP_GATHER, Gives::ANY, false},
    {COLLET_OP_SCATTER, Gives::ANY, false},
    {COLLET_OP_TRANSPOSE, Gives::ANY, false},
    {COLLET_OP_BROADCAST, Gives::ANY, false},
    {COLLET_OP_CONCATENATE, Gives::ANY, false},
    {COLLET_OP_PAD, Gives::ANY, false},
    {COLLET_OP_SLICE, Gives::ANY, false},
};

bool gives(const MutatedOp& one, Types types) {
  switch (types) {
    case Types::FLOATS:
      return one.gives == Gives::ANY || one.gives == Gives::FLOATS;
    case Types::INTEGERS:
      return one.gives == Gives::ANY || one.gives == Gives::INTEGERS;
    case Types::PREDS:
      return one.gives == Gives::PREDS || one.op == COLLET_OP_SELECT || one.op == COLLET_OP_TRANSPOSE;
    case Types::SHORT_INTEGERS:
      return one.gives == Gives::ANY || one.gives == Gives::INTEGERS;
    case Types::COMPLEX:
    case Types::SHORT_FLOATS:
      return one.gives == Gives::ANY && one.op != COLLET_OP_MAXIMUM && one.op != COLLET_OP_MINIMUM;
    default:
      return true;
  }
}

void add_results(std::vector<Mutant>& all, std::string_view name, std::string_view group, ResultMutation result,
                 Types types) {
  const bool numbers = group == "special" || group == "numeric";
  for (const MutatedOp& one : kOps) {
    if (!gives(one, types) || (numbers && types == Types::FLOATS && !one.special)) continue;
    all.push_back({.name = std::string(name) + ":" + collet_op_name(one.op),
                   .group = group,
                   .kind = Mutant::Kind::Result,
                   .op = one.op,
                   .result = result,
                   .types = types});
  }
}

std::vector<Mutant> make() {
  std::vector<Mutant> all;
#define COLLET_RESULT_MUTATION(name, group, types, needs) \
  add_results(all, #name, #group, ResultMutation::name, Types::types);
#define COLLET_ATTRIBUTE_MUTATION(OP, record, member, change)                                     \
  all.push_back({.name = #member "_" + lower(#change) + ":" + collet_op_name(COLLET_OP_##OP),     \
                 .group = "attribute",                                                            \
                 .kind = Mutant::Kind::Attribute,                                                 \
                 .op = COLLET_OP_##OP,                                                            \
                 .field = field_kind<decltype(std::declval<collet_##record##_attrs>().member)>(), \
                 .offset = static_cast<uint32_t>(offsetof(collet_##record##_attrs, member)),      \
                 .how = How::change});
#define COLLET_OPERAND_MUTATION(OP)                                                         \
  all.push_back({.name = std::string("operands_swapped:") + collet_op_name(COLLET_OP_##OP), \
                 .group = "operand",                                                        \
                 .kind = Mutant::Kind::Operand,                                             \
                 .op = COLLET_OP_##OP});
#define COLLET_KERNEL_MUTATION(mutation, OP)                                          \
  all.push_back({.name = std::string(#mutation ":") + collet_op_name(COLLET_OP_##OP), \
                 .group = "kernel",                                                   \
                 .kind = Mutant::Kind::Kernel,                                        \
                 .op = COLLET_OP_##OP,                                                \
                 .kernel = KernelMutation::mutation});
#define COLLET_INDEX_MUTATION(mutation, OP)                                           \
  all.push_back({.name = std::string(#mutation ":") + collet_op_name(COLLET_OP_##OP), \
                 .group = "indices",                                                  \
                 .kind = Mutant::Kind::Index,                                         \
                 .op = COLLET_OP_##OP,                                                \
                 .index = IndexMutation::mutation});
#define COLLET_LEGAL_VARIANT(variant, OP)                                            \
  all.push_back({.name = std::string(#variant ":") + collet_op_name(COLLET_OP_##OP), \
                 .group = "legal",                                                   \
                 .kind = Mutant::Kind::Result,                                       \
                 .op = COLLET_OP_##OP,                                               \
                 .result = ResultMutation::variant,                                  \
                 .types = Types::FLOATS,                                             \
                 .legal = true});
#define COLLET_CHOICE_MUTATION(OP, record, member, change) \
  COLLET_ATTRIBUTE_MUTATION(OP, record, member, change)    \
  all.back().other_choices = true;
#define COLLET_LEGAL_KERNEL(variant, OP)                                             \
  all.push_back({.name = std::string(#variant ":") + collet_op_name(COLLET_OP_##OP), \
                 .group = "legal",                                                   \
                 .kind = Mutant::Kind::Kernel,                                       \
                 .op = COLLET_OP_##OP,                                               \
                 .kernel = KernelMutation::variant,                                  \
                 .legal = true});
#define COLLET_LEGAL_CHOICE(OP)                                                          \
  all.push_back({.name = std::string("other_choices:") + collet_op_name(COLLET_OP_##OP), \
                 .group = "legal",                                                       \
                 .kind = Mutant::Kind::Choice,                                           \
                 .op = COLLET_OP_##OP,                                                   \
                 .legal = true,                                                          \
                 .other_choices = true});
#define COLLET_LEGAL_CONTRACTION(OP)                                                  \
  all.push_back({.name = std::string("contracted:") + collet_op_name(COLLET_OP_##OP), \
                 .group = "legal",                                                    \
                 .kind = Mutant::Kind::Contracted,                                    \
                 .op = COLLET_OP_##OP,                                                \
                 .legal = true});
#include "conformance/mutants/mutations.def"
  return all;
}

}  // namespace

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> kAll = make();
  return kAll;
}

const Mutant* find_mutant(std::string_view name) {
  const auto& all = all_mutants();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace collet::mutants
