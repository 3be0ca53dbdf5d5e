// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/choice.h"

#include <collet/program.h>

#include <algorithm>
#include <array>

namespace collet::codegen {
namespace {

constexpr uint8_t kNan = 3;  ///< after the ranks 0, 1 and 2, which three numbers can have
constexpr size_t kMostSlots = 2;

/// A value as comparisons see it: its rank among three elements, and the number of the element that it belongs to. The
/// rank of a pred is its value, 0 or 1.
struct Abstract {
  uint8_t rank = 0;
  uint8_t owner = 0;
};
using Operand = std::array<Abstract, kMostSlots>;

class Choice {
 public:
  Choice(const ScalarBody& body, const std::vector<uint32_t>& types) : body_(body), types_(types) {}

  bool is_associative() {
    if (types_.empty() || types_.size() > kMostSlots || body_.arguments != 2 * types_.size() || !is_choice())
      return false;
    std::array<Operand, 3> elements{};
    return all_orders(elements, 0);
  }

 private:
  /// For each expression, the number of the element type (slot) that it has a value of, or kPred for a pred.
  static constexpr int kPred = -1;

  bool is_float(size_t slot) const { return collet_type_kind(types_[slot]) == COLLET_KIND_FLOAT; }
  bool is_integer(size_t slot) const {
    const uint32_t kind = collet_type_kind(types_[slot]);
    return kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
  }

  /// Finds the slot of each expression. Returns false if an expression does anything other than compare and select
  /// values of one slot.
  bool is_choice() {
    for (size_t k = 0; k < types_.size(); ++k) {
      if (!is_float(k) && !is_integer(k)) return false;
    }
    for (const Expr& e : body_.exprs) {
      const auto slot = [&](size_t i) { return slots_[static_cast<size_t>(e.args[i])]; };
      const bool alike = e.args.size() >= 2 && slot(e.args.size() - 1) == slot(e.args.size() - 2);
      if (e.op == ExprOp::kArgument) {
        slots_.push_back(static_cast<int>(static_cast<size_t>(e.a) % types_.size()));
        continue;
      }
      if (e.op == ExprOp::kConstant && e.type == COLLET_TYPE_PRED) {
        slots_.push_back(kPred);
        continue;
      }
      if (e.op != ExprOp::kOp) return false;
      switch (e.opcode) {
        case COLLET_OP_COMPARE:
          if (!alike || slot(0) == kPred || e.b == COLLET_COMPARE_TOTALORDER) return false;
          slots_.push_back(kPred);
          break;
        case COLLET_OP_SELECT:
          if (!alike || slot(0) != kPred) return false;
          slots_.push_back(slot(1));
          break;
        case COLLET_OP_MAXIMUM:
        case COLLET_OP_MINIMUM:
          if (!alike || slot(0) == kPred || !is_integer(static_cast<size_t>(slot(0)))) return false;
          slots_.push_back(slot(0));
          break;
        case COLLET_OP_AND:
        case COLLET_OP_OR:
        case COLLET_OP_XOR:
        case COLLET_OP_NOT:
          if (slot(0) != kPred || slot(e.args.size() - 1) != kPred) return false;
          slots_.push_back(kPred);
          break;
        default:
          return false;
      }
    }
    for (size_t k = 0; k < types_.size(); ++k) {
      if (slots_[static_cast<size_t>(body_.results[k])] != static_cast<int>(k)) return false;
    }
    return true;
  }

  static bool holds(int64_t direction, uint8_t x, uint8_t y) {
    const bool ordered = x != kNan && y != kNan;
    switch (direction) {
      case COLLET_DIRECTION_EQ:
        return ordered && x == y;
      case COLLET_DIRECTION_NE:
        return !ordered || x != y;
      case COLLET_DIRECTION_GE:
        return ordered && x >= y;
      case COLLET_DIRECTION_GT:
        return ordered && x > y;
      case COLLET_DIRECTION_LE:
        return ordered && x <= y;
      default:
        return ordered && x < y;
    }
  }

  Abstract apply(const Expr& e) const {
    const auto arg = [&](size_t i) { return values_[static_cast<size_t>(e.args[i])]; };
    const auto pred = [](bool x) { return Abstract{static_cast<uint8_t>(x), 0}; };
    switch (e.opcode) {
      case COLLET_OP_COMPARE:
        return pred(holds(e.a, arg(0).rank, arg(1).rank));
      case COLLET_OP_SELECT:
        return arg(arg(0).rank != 0 ? 1 : 2);
      case COLLET_OP_MAXIMUM:
        return arg(0).rank >= arg(1).rank ? arg(0) : arg(1);
      case COLLET_OP_MINIMUM:
        return arg(0).rank <= arg(1).rank ? arg(0) : arg(1);
      case COLLET_OP_AND:
        return pred((arg(0).rank & arg(1).rank) != 0);
      case COLLET_OP_OR:
        return pred((arg(0).rank | arg(1).rank) != 0);
      case COLLET_OP_XOR:
        return pred(arg(0).rank != arg(1).rank);
      default:
        return pred(arg(0).rank == 0);
    }
  }

  Operand combine(const Operand& x, const Operand& y) {
    values_.clear();
    for (const Expr& e : body_.exprs) {
      if (e.op == ExprOp::kArgument) {
        const auto a = static_cast<size_t>(e.a);
        values_.push_back(a < types_.size() ? x[a] : y[a - types_.size()]);
      } else if (e.op == ExprOp::kConstant) {
        values_.push_back({static_cast<uint8_t>(e.bits[0] != 0), 0});
      } else {
        values_.push_back(apply(e));
      }
    }
    Operand out{};
    for (size_t k = 0; k < types_.size(); ++k) out[k] = values_[static_cast<size_t>(body_.results[k])];
    return out;
  }

  /// True if two results cannot be told apart. Integers of equal rank are equal, but floats of equal rank may be zeros
  /// of different signs or different NaNs, so they must come from the same element.
  bool same(const Operand& x, const Operand& y) const {
    for (size_t k = 0; k < types_.size(); ++k) {
      if (x[k].rank != y[k].rank || (is_float(k) && x[k].owner != y[k].owner)) return false;
    }
    return true;
  }

  bool all_orders(std::array<Operand, 3>& elements, size_t place) {
    if (place == 3 * types_.size()) {
      const auto& [x, y, z] = elements;
      return same(combine(combine(x, y), z), combine(x, combine(y, z)));
    }
    Abstract& value = elements[place % 3][place / 3];
    value.owner = static_cast<uint8_t>(place % 3);
    for (value.rank = 0; value.rank < (is_float(place / 3) ? 4 : 3); ++value.rank) {
      if (!all_orders(elements, place + 1)) return false;
    }
    return true;
  }

  const ScalarBody& body_;
  const std::vector<uint32_t>& types_;
  std::vector<int> slots_;
  std::vector<Abstract> values_;
};

}  // namespace

bool is_associative_choice(const ScalarBody& body, const std::vector<uint32_t>& types) {
  return Choice(body, types).is_associative();
}

}  // namespace collet::codegen
