// SPDX-License-Identifier: Apache-2.0
// Lowers scalar blocks into a kernel. An element of a small array is computed where it is used. Both branches of a
// conditional are computed, and a select chooses the result. Loops become kWhile expressions.
#include <algorithm>
#include <utility>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/window.h"

namespace collet::codegen {
namespace {

constexpr int64_t kWrittenOut = 8;  ///< most points of a reduction that is unrolled

bool is_constant(const Position& at) {
  return std::all_of(at.at.begin(), at.at.end(), [](const Index& i) { return i.is_constant(); });
}

/// Returns the position of the only element of an array.
Position origin(const ArrayType& type) {
  Position at;
  at.at.resize(type.dims.size());
  return at;
}

int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Dims extents(const Dims& dims, const Dims& which) {
  Dims r;
  for (int64_t d : which) r.push_back(dims[static_cast<size_t>(d)]);
  return r;
}

}  // namespace

KernelBuilder::Frame& KernelBuilder::open_frame() {
  Frame& f = frames_->emplace_back();
  f.around = frame_;
  f.owner = this;
  return f;
}

ExprId KernelBuilder::in_frame(const Frame* frame, ValueId v, const Position& at, ExprId mask) {
  const Frame* before = std::exchange(frame_, frame);
  const ExprId t = value(v, at, mask);
  frame_ = before;
  return t;
}

ExprId KernelBuilder::active() {
  if (!frame_ || frame_->active == kNoExpr) return kNoExpr;
  return captured(*frame_->owner, frame_->active);
}

ExprId KernelBuilder::captured(const KernelBuilder& from, ExprId t) {
  if (t == kNoExpr || &from == this) return t;
  t = outer_->captured(from, t);
  const Expr& i = outer_->kernel_.exprs[static_cast<size_t>(t)];
  if (i.op == ExprOp::kConstant) return emit(i);
  auto [it, fresh] = local_.try_emplace(t, kNoExpr);
  if (fresh) {
    Expr argument;
    argument.op = ExprOp::kArgument;
    argument.type = i.type;
    argument.a = static_cast<int64_t>(own_arguments_ + captures_.size());
    captures_.push_back(t);
    it->second = emit(std::move(argument));
  }
  return it->second;
}

Index KernelBuilder::captured(KernelBuilder& from, const Index& index) {
  if (&from == this || index.is_constant()) return index;
  return term(captured(from, from.index_value(index)));
}

ExprId KernelBuilder::lookup(ValueId v, const Index& index, ExprId mask) {
  const Value& value = graph_.value(v);
  Expr i;
  i.op = ExprOp::kLookup;
  i.type = value.type.element;
  i.index = index;
  i.mask = mask;
  i.table.assign(static_cast<const char*>(value.constant), static_cast<size_t>(value.type.bytes()));
  return emit(std::move(i));
}

ExprId KernelBuilder::framed(ValueId v, const Position& at, ExprId mask) {
  const Value& value = graph_.value(v);
  if (value.type.elements == 0) return integer(value.type.element, 0);
  if (auto bound = frame_->arguments.find(v); bound != frame_->arguments.end()) {
    if (bound->second.value != kNone) return in_frame(frame_->around, bound->second.value, at, mask);
    return captured(*frame_->owner, bound->second.scalar);
  }
  if (value.constant && value.splat) return masked_constant(value, mask);
  if (value.constant) return lookup(v, linear(at, value.type.dims), mask);
  // A value that is invariant in the loop is computed before it.
  if (frame_->owner != this && mask == kNoExpr && is_constant(at))
    return captured(*outer_, outer_->in_frame(frame_, v, at));
  auto key = std::make_tuple(frame_, v, at, mask);
  if (auto it = framed_.find(key); it != framed_.end()) return it->second;
  const ExprId t = compute(graph_.nodes[value.def], v, at, mask);
  framed_.emplace(std::move(key), t);
  return t;
}

std::vector<ExprId> KernelBuilder::inlined(const Block& block, const std::vector<ExprId>& arguments, ExprId mask) {
  Frame& f = open_frame();
  f.active = both(active(), both(mask, guard_));
  for (size_t i = 0; i < block.arguments.size(); ++i) f.arguments[block.arguments[i]] = {arguments[i], kNone};
  std::vector<ExprId> results;
  for (ValueId v : block.results) results.push_back(in_frame(&f, v, origin(graph_.type(v))));
  return results;
}

ScalarBody KernelBuilder::body(const std::vector<uint32_t>& types, const ComputeBody& compute_body) {
  ScalarBody out;
  Kernel scratch;
  KernelBuilder inner(graph_, scratch, [](ValueId) { return false; });
  std::vector<ExprId> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    Expr argument;
    argument.op = ExprOp::kArgument;
    argument.type = types[i];
    argument.a = static_cast<int64_t>(i);
    arguments.push_back(inner.emit(std::move(argument)));
  }
  out.results = compute_body(inner, arguments);
  out.arguments = static_cast<uint32_t>(types.size());
  out.exprs = std::move(scratch.exprs);
  return out;
}

ScalarBody KernelBuilder::body(const Block& block) {
  std::vector<uint32_t> types;
  for (ValueId v : block.arguments) types.push_back(graph_.type(v).element);
  return body(types, [&](KernelBuilder& inner, const std::vector<ExprId>& arguments) {
    return inner.inlined(block, arguments);
  });
}

ExprId KernelBuilder::structured(const Node& node, ValueId v, const Position& at, ExprId mask) {
  const uint32_t result = graph_.value(v).index;
  switch (node.opcode) {
    case COLLET_OP_CONDITIONAL:
      return conditional(node, result, at, mask);
    case COLLET_OP_WHILE:
      return while_loop(node, result, mask);
    case COLLET_OP_REDUCE:
      return nested_reduce(node, result, at);
    case COLLET_OP_REDUCE_WINDOW:
      return nested_window(node, result, at);
    case COLLET_OP_DOT:
      return nested_dot(node, at);
    case COLLET_OP_CONVOLUTION:
      return nested_convolution(node, at);
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
      return update_slice(node, at, mask);
    default:
      return integer(graph_.type(v).element, 0);  // unreachable: is_scalar_block() has accepted only the ops above
  }
}

ExprId KernelBuilder::conditional(const Node& node, uint32_t result, const Position& at, ExprId mask) {
  const ValueId selector = node.operands[0];
  const bool two = graph_.type(selector).element == COLLET_TYPE_PRED;
  const ExprId chosen = value(selector, origin(graph_.type(selector)));
  // A number outside the list of branches selects the last branch.
  std::vector<ExprId> is;
  ExprId rest = kNoExpr;
  for (size_t k = 0; k + 1 < node.blocks.size(); ++k) {
    is.push_back(two ? chosen
                     : op(COLLET_OP_COMPARE, COLLET_TYPE_PRED,
                          {chosen, integer(graph_.type(selector).element, static_cast<int64_t>(k))},
                          COLLET_DIRECTION_EQ, COLLET_COMPARE_SIGNED));
    rest = both(rest, op(COLLET_OP_NOT, COLLET_TYPE_PRED, {is.back()}));
  }
  is.push_back(rest);
  std::vector<ExprId> results;
  size_t operand = 1;
  for (size_t k = 0; k < node.blocks.size(); ++k) {
    const Block& block = graph_.blocks[node.blocks[k]];
    const Frame*& branch = branches_[{frame_, node.blocks[k]}];
    if (!branch) {
      Frame& f = open_frame();
      f.active = both(active(), is[k]);
      for (size_t i = 0; i < block.arguments.size(); ++i) {
        f.arguments[block.arguments[i]] = {kNoExpr, node.operands[operand + i]};
      }
      branch = &f;
    }
    operand += block.arguments.size();
    results.push_back(in_frame(branch, block.results[result], at, mask));
  }
  ExprId r = results.back();
  const uint32_t type = graph_.type(node.results[result]).element;
  for (size_t k = results.size() - 1; k-- > 0;) r = op(COLLET_OP_SELECT, type, {is[k], results[k], r});
  return r;
}

ExprId KernelBuilder::part(ExprId loop, const std::vector<uint32_t>& types, size_t i) {
  Expr p;
  p.op = ExprOp::kPart;
  p.type = types[i];
  p.args = {loop};
  p.a = static_cast<int64_t>(i);
  for (size_t k = 0; k < i; ++k) p.b += collet_type_kind(types[k]) == COLLET_KIND_COMPLEX ? 2 : 1;
  return emit(std::move(p));
}

ExprId KernelBuilder::while_loop(const Node& node, uint32_t result, ExprId mask) {
  Expr loop;
  loop.op = ExprOp::kWhile;
  std::vector<uint32_t> types;
  for (ValueId v : node.operands) {
    types.push_back(graph_.type(v).element);
    loop.args.push_back(value(v, origin(graph_.type(v))));
  }
  for (BlockId b : node.blocks) loop.bodies.push_back(body(graph_.blocks[b]));
  loop.mask = both(active(), mask);
  loop.type = types[0];
  return part(emit(std::move(loop)), types, result);
}

std::vector<ExprId> KernelBuilder::reduce_points(int64_t points, const std::vector<ExprId>& inits,
                                                 const ReductionStep& step) {
  if (points <= kWrittenOut) {
    std::vector<ExprId> held = inits;
    for (int64_t i = 0; i < points; ++i) {
      Index at;
      at.constant = i;
      held = step(*this, at, held);
    }
    return held;
  }
  Expr loop;
  loop.op = ExprOp::kWhile;
  loop.type = COLLET_TYPE_S64;
  loop.args = {integer(COLLET_TYPE_S64, 0)};
  std::vector<uint32_t> types{COLLET_TYPE_S64};
  for (ExprId t : inits) {
    loop.args.push_back(t);
    types.push_back(kernel_.exprs[static_cast<size_t>(t)].type);
  }
  loop.bodies.push_back(body({COLLET_TYPE_S64}, [&](KernelBuilder& inner, const std::vector<ExprId>& arguments) {
    return std::vector<ExprId>{inner.in_range(term(arguments[0]), points)};
  }));
  loop.bodies.push_back(body(types, [&](KernelBuilder& inner, const std::vector<ExprId>& arguments) {
    inner.outer_ = this;
    inner.frame_ = frame_;
    inner.frames_ = frames_;
    inner.own_arguments_ = static_cast<uint32_t>(types.size());
    Index next = term(arguments[0]);
    std::vector<ExprId> held = step(inner, next, {arguments.begin() + 1, arguments.end()});
    next.constant = 1;
    held.insert(held.begin(), inner.index_value(next));
    loop.args.insert(loop.args.end(), inner.captures_.begin(), inner.captures_.end());
    return held;
  }));
  loop.bodies[1].arguments = static_cast<uint32_t>(loop.args.size());
  const ExprId done = emit(std::move(loop));
  std::vector<ExprId> results;
  for (size_t i = 1; i < types.size(); ++i) results.push_back(part(done, types, i));
  return results;
}

ExprId KernelBuilder::nested_reduce(const Node& node, uint32_t result, const Position& at) {
  const size_t n = node.results.size();
  const Dims& dims = graph_.type(node.operands[0]).dims;
  const Dims reduced = integers(graph_, attributes<collet_dimensions_attrs>(graph_, node).dimensions);
  const Dims sizes = extents(dims, reduced);
  std::vector<ExprId> inits;
  for (size_t k = 0; k < n; ++k) inits.push_back(value(node.operands[n + k], {}));
  return reduce_points(product(sizes), inits,
                       [&](KernelBuilder& inner, const Index& point, const std::vector<ExprId>& held) {
                         const Position inside = inner.delinearize(point, sizes);
                         Position from;
                         size_t kept = 0;
                         for (size_t d = 0; d < dims.size(); ++d) {
                           const auto r = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d));
                           from.at.push_back(r == reduced.end() ? inner.captured(*this, at[kept++])
                                                                : inside[static_cast<size_t>(r - reduced.begin())]);
                         }
                         std::vector<ExprId> arguments = held;
                         for (size_t k = 0; k < n; ++k) arguments.push_back(inner.value(node.operands[k], from));
                         return inner.inlined(graph_.blocks[node.blocks[0]], arguments);
                       })[result];
}

ExprId KernelBuilder::nested_window(const Node& node, uint32_t result, const Position& at) {
  const size_t n = node.results.size();
  const Dims& dims = graph_.type(node.operands[0]).dims;
  const Window w = window_of(graph_, attributes<collet_window_attrs>(graph_, node).window);
  std::vector<Taps> taps;
  Dims sizes;
  for (size_t d = 0; d < dims.size(); ++d) {
    taps.push_back(taps_of(w, d, dims[d], graph_.type(node.results[0]).dims[d]));
    sizes.push_back(taps.back().iterations);
  }
  std::vector<ExprId> inits;
  for (size_t k = 0; k < n; ++k) inits.push_back(value(node.operands[n + k], {}));
  return reduce_points(
      product(sizes), inits, [&](KernelBuilder& inner, const Index& point, const std::vector<ExprId>& held) {
        const Position iteration = inner.delinearize(point, sizes);
        Position from;
        ExprId exists = kNoExpr;
        for (size_t d = 0; d < dims.size(); ++d) {
          const Index out = inner.captured(*this, at[d]);
          from.at.push_back(tap_index(inner, w, d, taps[d], out, iteration[d], dims[d], exists));
        }
        std::vector<ExprId> arguments = held;
        for (size_t k = 0; k < n; ++k) arguments.push_back(inner.value(node.operands[k], from, exists));
        std::vector<ExprId> next = inner.inlined(graph_.blocks[node.blocks[0]], arguments, exists);
        for (size_t k = 0; k < n && exists != kNoExpr; ++k) {
          next[k] = inner.op(COLLET_OP_SELECT, graph_.type(node.results[k]).element, {exists, next[k], held[k]});
        }
        return next;
      })[result];
}

ExprId KernelBuilder::nested_dot(const Node& node, const Position& at) {
  const auto a = attributes<collet_dot_attrs>(graph_, node);
  const Dims lhs_batch = integers(graph_, a.lhs_batch);
  const Dims rhs_batch = integers(graph_, a.rhs_batch);
  const Dims lhs_depth = integers(graph_, a.lhs_contracting);
  const Dims rhs_depth = integers(graph_, a.rhs_contracting);
  const Dims sizes = extents(graph_.type(node.operands[0]).dims, lhs_depth);
  const uint32_t type = graph_.type(node.results[0]).element;
  const uint32_t sum = is_narrow_float(type) ? static_cast<uint32_t>(COLLET_TYPE_F32) : type;
  auto step = [&](KernelBuilder& inner, const Index& point, const std::vector<ExprId>& held) {
    const Position depth = inner.delinearize(point, sizes);
    // Next dimension of the result: batches, then the free dimensions of lhs, then those of rhs.
    size_t next = lhs_batch.size();
    auto side = [&](ValueId v, const Dims& batch, const Dims& contracting) {
      Position from = origin(graph_.type(v));
      for (size_t d = 0; d < from.size(); ++d) {
        const auto dim = static_cast<int64_t>(d);
        if (contains(batch, dim) || contains(contracting, dim)) continue;
        from[d] = inner.captured(*this, at[next++]);
      }
      for (size_t i = 0; i < batch.size(); ++i) from[static_cast<size_t>(batch[i])] = inner.captured(*this, at[i]);
      for (size_t i = 0; i < contracting.size(); ++i) from[static_cast<size_t>(contracting[i])] = depth[i];
      return inner.convert(inner.value(v, from), sum);
    };
    const ExprId x = side(node.operands[0], lhs_batch, lhs_depth);
    const ExprId y = side(node.operands[1], rhs_batch, rhs_depth);
    const ExprId xy = inner.op(COLLET_OP_MULTIPLY, sum, {x, y});
    return std::vector<ExprId>{inner.op(COLLET_OP_ADD, sum, {held[0], xy})};
  };
  return convert(reduce_points(product(sizes), {integer(sum, 0)}, step)[0], type);
}

ExprId KernelBuilder::nested_convolution(const Node& node, const Position& at) {
  const Convolution c = convolution_of(graph_, node);
  Dims sizes = c.window.size;
  sizes.push_back(c.features());
  const uint32_t type = graph_.type(node.results[0]).element;
  const uint32_t sum = is_narrow_float(type) ? static_cast<uint32_t>(COLLET_TYPE_F32) : type;
  auto step = [&](KernelBuilder& inner, const Index& point, const std::vector<ExprId>& held) {
    Position out;
    for (const Index& i : at.at) out.at.push_back(inner.captured(*this, i));
    const Position taps = inner.delinearize(point, sizes);
    const ConvolutionPlaces places = convolution_places(inner, c, out, taps);
    const ExprId x = inner.convert(inner.value(node.operands[0], places.input, places.exists), sum);
    const ExprId y = inner.convert(inner.value(node.operands[1], places.filter), sum);
    const ExprId added = inner.op(COLLET_OP_ADD, sum, {held[0], inner.op(COLLET_OP_MULTIPLY, sum, {x, y})});
    if (places.exists == kNoExpr) return std::vector<ExprId>{added};
    return std::vector<ExprId>{inner.op(COLLET_OP_SELECT, sum, {places.exists, added, held[0]})};
  };
  return convert(reduce_points(product(sizes), {integer(sum, 0)}, step)[0], type);
}

ExprId KernelBuilder::update_slice(const Node& node, const Position& at, ExprId mask) {
  const Dims& dims = graph_.type(node.operands[0]).dims;
  const Dims& update = graph_.type(node.operands[1]).dims;
  Position from = at;
  ExprId inside = kNoExpr;
  for (size_t d = 0; d < dims.size(); ++d) {
    const ExprId x = value(node.operands[d + 2], {});
    from[d] = add_scaled(at[d], start(x, dims[d] - update[d]), -1);
    inside = both(inside, in_range(from[d], update[d]));
  }
  const ExprId x = value(node.operands[1], from, both(mask, inside));
  if (inside == kNoExpr) return x;
  const ExprId y = value(node.operands[0], at, mask);
  return op(COLLET_OP_SELECT, graph_.type(node.results[0]).element, {inside, x, y});
}

}  // namespace collet::codegen
