// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/base/floor_quotient.h"

#include <algorithm>
#include <cstring>

namespace collet::codegen {

Position index_position(Position batch, const Dims& dims, int64_t vector_dim, int64_t k) {
  if (vector_dim < static_cast<int64_t>(dims.size())) {
    Index i;
    i.constant = k;
    batch.at.insert(batch.at.begin() + vector_dim, i);
  }
  return batch;
}
namespace {

constexpr int64_t kUnbounded = int64_t{1} << 60;

}  // namespace

Position loop_position(size_t first, size_t rank) {
  Position at;
  for (size_t d = 0; d < rank; ++d) at.at.push_back(loop_index(first + d));
  return at;
}

ExprId KernelBuilder::emit(Expr instruction) {
  auto [it, fresh] = known_.try_emplace(instruction, static_cast<ExprId>(kernel_.exprs.size()));
  if (fresh) kernel_.exprs.push_back(std::move(instruction));
  return it->second;
}

uint32_t KernelBuilder::buffer(ValueId v) {
  auto [it, fresh] = buffer_of_.try_emplace(v, static_cast<uint32_t>(buffers_.size()));
  if (fresh) {
    buffers_.push_back(v);
    kernel_.buffers = static_cast<uint32_t>(buffers_.size());
  }
  return it->second;
}

uint32_t KernelBuilder::output(ValueId v) {
  return buffer(v);
}

ExprId KernelBuilder::constant(uint32_t type, const void* data) {
  Expr i;
  i.op = ExprOp::kConstant;
  i.type = type;
  std::memcpy(i.bits.data(), data, collet_type_bytes(type));
  return emit(std::move(i));
}

ExprId KernelBuilder::integer(uint32_t type, int64_t x) {
  const int64_t bits[2] = {x, 0};
  return constant(type, bits);
}

ExprId KernelBuilder::op(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a, int64_t b) {
  return emit(op_expr(opcode, type, std::move(args), a, b));
}

ExprId KernelBuilder::convert(ExprId x, uint32_t type) {
  if (kernel_.exprs[static_cast<size_t>(x)].type == type) return x;
  return op(COLLET_OP_CONVERT, type, {x});
}

ExprId KernelBuilder::both(ExprId a, ExprId b) {
  if (a == kNoExpr) return b;
  if (b == kNoExpr || a == b) return a;
  return op(COLLET_OP_AND, COLLET_TYPE_PRED, {a, b});
}

std::pair<int64_t, int64_t> KernelBuilder::range(const Index& index) const {
  int64_t lo = index.constant;
  int64_t hi = index.constant;
  auto widen = [&](int64_t c, int64_t from, int64_t to) {
    lo += c > 0 ? c * from : c * to;
    hi += c > 0 ? c * to : c * from;
  };
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    if (index.coefficients[l] != 0) widen(index.coefficients[l], 0, std::max<int64_t>(kernel_.loops[l].size - 1, 0));
  }
  for (auto [t, c] : index.terms) {
    const Expr& i = kernel_.exprs[static_cast<size_t>(t)];
    if (i.op == ExprOp::kStart) {
      widen(c, 0, i.a);
    } else if (i.op == ExprOp::kModulo) {
      widen(c, 0, i.a - 1);
    } else if (i.op == ExprOp::kDivide) {
      const auto [least, most] = range(i.index);
      if (least < -kUnbounded / 2 || most > kUnbounded / 2) return {-kUnbounded, kUnbounded};
      widen(c, floor_quotient(least, i.a), floor_quotient(most, i.a));
    } else {
      return {-kUnbounded, kUnbounded};
    }
  }
  return {lo, hi};
}

ExprId KernelBuilder::in_range(const Index& index, int64_t size) {
  auto [lo, hi] = range(index);
  if (lo >= 0 && hi < size) return kNoExpr;
  Expr i;
  i.op = ExprOp::kInRange;
  i.type = COLLET_TYPE_PRED;
  i.index = index;
  i.a = size;
  return emit(std::move(i));
}

bool KernelBuilder::never_in_range(const Index& index, int64_t size) const {
  const auto [lo, hi] = range(index);
  return hi < 0 || lo >= size;
}

ExprId KernelBuilder::index_value(const Index& index) {
  Expr i;
  i.op = ExprOp::kIndex;
  i.type = COLLET_TYPE_S64;
  i.index = index;
  return emit(std::move(i));
}

Index KernelBuilder::term(ExprId x) {
  Index i;
  i.terms.emplace_back(x, 1);
  return i;
}

Index KernelBuilder::start(ExprId x, int64_t limit) {
  if (limit <= 0) return {};
  Expr i;
  i.op = ExprOp::kStart;
  i.type = COLLET_TYPE_S64;
  i.args = {x};
  i.a = limit;
  return term(emit(std::move(i)));
}

void KernelBuilder::divide(const Index& index, int64_t by, Index& quotient, Index& remainder) {
  quotient = {};
  remainder = {};
  if (by == 1) {
    quotient = index;
    return;
  }
  Index whole;
  Index rest;
  split_index(index, by, whole, rest);
  auto [lo, hi] = range(rest);
  if (lo >= 0 && hi < by) {
    quotient = whole;
    remainder = rest;
    return;
  }
  Expr q;
  q.op = ExprOp::kDivide;
  q.type = COLLET_TYPE_S64;
  q.index = rest;
  q.a = by;
  Expr r = q;
  r.op = ExprOp::kModulo;
  quotient = add_scaled(whole, term(emit(std::move(q))), 1);
  remainder = term(emit(std::move(r)));
}

Position KernelBuilder::spread(const Position& at, const Dims& dims) {
  return at.flat ? delinearize(at.at[0], dims) : at;
}

Index KernelBuilder::linear(const Position& at, const Dims& dims) const {
  if (at.flat) return at.at[0];
  Index index;
  Dims strides = strides_of(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) index = add_scaled(index, at[d], strides[d]);
  }
  return recombined(std::move(index));
}

Index KernelBuilder::recombined(Index index) const {
  const auto expr = [&](const std::pair<ExprId, int64_t>& term) -> const Expr& {
    return kernel_.exprs[static_cast<size_t>(term.first)];
  };
  for (size_t i = 0; i < index.terms.size(); ++i) {
    const Expr& quotient = expr(index.terms[i]);
    if (quotient.op != ExprOp::kDivide) continue;
    for (size_t j = 0; j < index.terms.size(); ++j) {
      const Expr& rest = expr(index.terms[j]);
      const int64_t scale = index.terms[j].second;
      const bool is_pair = rest.op == ExprOp::kModulo && rest.a == quotient.a && rest.index == quotient.index &&
                           index.terms[i].second == scale * quotient.a;
      if (!is_pair) continue;
      const Index whole = quotient.index;
      index.terms.erase(index.terms.begin() + static_cast<int64_t>(std::max(i, j)));
      index.terms.erase(index.terms.begin() + static_cast<int64_t>(std::min(i, j)));
      return recombined(add_scaled(index, whole, scale));
    }
  }
  return index;
}

Position KernelBuilder::delinearize(Index index, const Dims& dims) {
  Position at;
  at.at.resize(dims.size());
  size_t first = 0;  // the outermost dimension that is not 1 is the last quotient
  while (first < dims.size() && dims[first] == 1) ++first;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (d == first) {
      at[d] = index;
      break;
    }
    Index q;
    divide(index, dims[d], q, at[d]);
    index = q;
  }
  return at;
}

ExprId KernelBuilder::masked_constant(const Value& value, ExprId mask) {
  const uint32_t type = value.type.element;
  const ExprId x = constant(type, value.constant);
  return mask == kNoExpr ? x : op(COLLET_OP_SELECT, type, {mask, x, integer(type, 0)});
}

ExprId KernelBuilder::load(ValueId v, const Position& at, ExprId mask) {
  const Value& value = graph_.value(v);
  if (value.constant && value.splat && mask == kNoExpr) return constant(value.type.element, value.constant);
  if (value.type.elements == 0) return integer(value.type.element, 0);
  return load_at(v, linear(at, value.type.dims), mask);
}

ExprId KernelBuilder::load_at(ValueId v, const Index& index, ExprId mask) {
  Expr i;
  i.op = ExprOp::kLoad;
  i.type = graph_.type(v).element;
  i.index = index;
  i.buffer = buffer(v);
  i.mask = both(mask, guard_);
  return emit(std::move(i));
}

ExprId KernelBuilder::value(ValueId v, const Position& at, ExprId mask) {
  if (frame_) return framed(v, at, mask);
  const Value& value = graph_.value(v);
  if (value.constant && value.splat) return masked_constant(value, mask);
  if (value.def == kNone || is_input_(v)) return load(v, at, mask);
  auto key = std::make_tuple(v, at, mask);
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  ExprId id = compute(graph_.nodes[value.def], v, at, mask);
  memo_.emplace(std::move(key), id);
  return id;
}

}  // namespace collet::codegen
