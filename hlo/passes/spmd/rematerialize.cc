// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/rematerialize.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "hlo/passes/spmd/sharding_rule.h"

namespace collet::hlo::spmd {
namespace {

constexpr size_t kMostOps = 4096;

// A value, and the dimension along which a slice of it is computed.
using Part = std::pair<InstrId, size_t>;

class Rematerializer {
 public:
  Rematerializer(Builder& b, InstrId start, int64_t size) : b_(b), m_(b.module()), start_(start), size_(size) {}

  InstrId run(const Part& wanted) {
    if (!plan(wanted)) return InstrId::None;
    for (const Part& part : order_) made_[part] = make(part);
    return made_.at(wanted);
  }

 private:
  // Adds all slices that are needed to `order_`, operands first. Returns false if one cannot be computed.
  bool plan(const Part& wanted) {
    std::vector<std::pair<Part, bool>> open = {{wanted, false}};
    while (!open.empty()) {
      const auto [part, entered] = open.back();
      open.pop_back();
      if (entered) {
        order_.push_back(part);
        continue;
      }
      if (inputs_.contains(part)) continue;
      if (inputs_.size() >= kMostOps) return false;
      auto inputs = inputs_of(part);
      if (!inputs) return false;
      open.emplace_back(part, true);
      for (const Part& input : inputs_[part] = *std::move(inputs)) open.emplace_back(input, false);
    }
    return true;
  }

  // Returns the slices of operands from which the slice is computed. Operands without the dimension are used unchanged.
  std::optional<std::vector<Part>> inputs_of(const Part& part) {
    const auto [id, dim] = part;
    const Instruction& instr = m_[id];
    if (instr.op == Op::IOTA || instr.op == Op::CONSTANT) return std::vector<Part>();
    if (instr.op == Op::GET_TUPLE_ELEMENT) {
      const Instruction& tuple = m_[instr.operand(0)];
      if (tuple.op != Op::TUPLE) return std::nullopt;
      return std::vector<Part>{{tuple.operand(static_cast<size_t>(instr.as<TupleIndexAttrs>().index)), dim}};
    }
    const bool cheap = is_elementwise(instr.op) || instr.op == Op::COPY || instr.op == Op::BITCAST_CONVERT ||
                       instr.op == Op::BROADCAST || instr.op == Op::RESHAPE || instr.op == Op::TRANSPOSE ||
                       instr.op == Op::SLICE || instr.op == Op::CONCATENATE || instr.op == Op::REVERSE;
    if (!cheap || !instr.shape.is_array()) return std::nullopt;
    const std::optional<ShardingRule> rule = sharding_rule(m_, instr);
    if (!rule || rule->results.size() != 1) return std::nullopt;
    const ShardingRule::Dimension& made_by = rule->results[0][dim];
    if (made_by.size() != 1) return std::nullopt;
    const int factor = made_by[0];
    if (rule->factors[static_cast<size_t>(factor)].kind != ShardingRule::Kind::Parallel) return std::nullopt;
    std::vector<Part> inputs;
    for (size_t k = 0; k < instr.operands.size(); ++k)
      for (size_t d = 0; d < rule->operands[k].size(); ++d) {
        const ShardingRule::Dimension& factors = rule->operands[k][d];
        if (std::find(factors.begin(), factors.end(), factor) == factors.end()) continue;
        if (factors.size() != 1 || !same_size(instr.operand(k), d, part)) return std::nullopt;
        inputs.emplace_back(instr.operand(k), d);
      }
    return inputs;
  }

  bool same_size(InstrId operand, size_t d, const Part& part) const {
    return m_[operand].shape.dim(static_cast<int>(d)) == m_[part.first].shape.dim(static_cast<int>(part.second));
  }

  InstrId make(const Part& part) {
    const auto [id, dim] = part;
    const Instruction instr = m_[id];  // a copy, because adding instructions invalidates references
    b_.set_origin(&instr);
    std::vector<int64_t> dims(instr.shape.dims().begin(), instr.shape.dims().end());
    dims[dim] = size_;
    if (instr.op == Op::CONSTANT) {
      std::vector<InstrId> starts(dims.size(), b_.scalar_int(b_.index_type(), 0));
      starts[dim] = start_;
      return b_.dynamic_slice(id, starts, dims);
    }
    const Shape shape = Shape::array(instr.shape.type(), dims);
    if (instr.op == Op::IOTA) return counted(shape, instr.as<IotaAttrs>().dimension, dim);
    const std::vector<Part>& inputs = inputs_.at(part);
    if (instr.op == Op::GET_TUPLE_ELEMENT) return made_.at(inputs[0]);
    std::vector<InstrId> operands(instr.operands.begin(), instr.operands.end());
    for (InstrId& operand : operands)
      for (const Part& input : inputs)
        if (input.first == operand) {
          operand = made_.at(input);
          break;
        }
    const Shape first(b_.shape(operands[0]));
    const std::vector<CompId> called(instr.called.begin(), instr.called.end());
    return b_.op(instr.op, shape, operands, tile_attributes(m_, instr, first, shape), called);
  }

  InstrId counted(const Shape& shape, int64_t along, size_t dim) {
    if (along != static_cast<int64_t>(dim)) return b_.iota(shape, along);
    // The iota is computed in integers: the sum of two rounded floats is not always the rounded sum.
    const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    const Type type = is_integer(shape.type()) ? shape.type() : b_.index_type();
    const InstrId from = b_.broadcast(b_.convert(start_, type), dims, {});
    return b_.convert(b_.add(b_.iota(Shape::array(type, dims), along), from), shape.type());
  }

  Builder& b_;
  Module& m_;
  InstrId start_;
  int64_t size_;
  std::map<Part, std::vector<Part>> inputs_;
  std::vector<Part> order_;
  std::map<Part, InstrId> made_;
};

}  // namespace

InstrId rematerialize(Builder& b, InstrId x, size_t dim, InstrId start, int64_t size) {
  return Rematerializer(b, start, size).run({x, dim});
}

}  // namespace collet::hlo::spmd
