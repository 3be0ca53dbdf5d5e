// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sdk/codegen/llvm/kernel/emit_memory.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {

bool is_zero(const llvm::Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v);
  return constant && constant->isZero();
}

}  // namespace

Val KernelEmitter::inner_value(size_t k, int pass) {
  if (!passes_.is_kept(k)) return instruction(k_.exprs[k]);
  Type* t = ir_.scalar(k_.exprs[k].type);
  Value*& array = kept_slots_[k];
  if (!array) {
    int64_t n = passes_.largest_width();  // the last vector is read as a whole
    int64_t row = 1;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) row *= k_.loops[l].size;
    array = slot(llvm::ArrayType::get(t, static_cast<uint64_t>(row + n)));
  }
  Index place;  // index of an array whose unit stride is along the vectorised loop
  int64_t step = k_.lane_loop < k_.loops.size() && k_.lanes > 1 ? k_.loops[k_.lane_loop].size : 1;
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) {
    if (l == k_.lane_loop && k_.lanes > 1) {
      place = add_scaled(place, loop_index(l), 1);
    } else {
      place = add_scaled(place, loop_index(l), step);
      step *= k_.loops[l].size;
    }
  }
  Value* p = b_.CreateGEP(t, array, lanes(place).scalar);
  const llvm::Align align(t->getScalarSizeInBits() / 8);
  Type* vt = ir_.wide(t, lanes_);
  if (pass > passes_.first_pass(k)) {
    // Other arrays are one vector longer than the row, but the length of a scalable vector is not known here, so the
    // load is masked.
    if (mask_ && ir_.is_scalable()) return {b_.CreateMaskedLoad(vt, p, align, mask_, llvm::Constant::getNullValue(vt))};
    return {b_.CreateAlignedLoad(vt, p, align)};
  }
  Val x = ir_.splat(instruction(k_.exprs[k]), lanes_);
  // Processors do not forward masked stores to loads. Behind the end of a row, the array has spare elements or the next
  // row, which is computed later.
  const bool has_spare = !ir_.is_scalable() && k_.lane_loop + 1 == k_.loops.size();
  if (mask_ && !has_spare) {
    b_.CreateMaskedStore(x.v, p, align, mask_);
  } else {
    b_.CreateAlignedStore(x.v, p, align);
  }
  return x;
}

Lanes KernelEmitter::lanes(const Index& index) {
  Lanes where;
  where.count = lanes_;
  // The constant is added last, so that neighbouring accesses share the other part of the address.
  Value* sum = nullptr;
  int64_t known = index.constant;
  auto add = [&](Value* acc, Value* x, int64_t c) {
    if (c != 1) x = b_.CreateMul(x, llvm::ConstantInt::getSigned(x->getType(), c));
    return acc ? b_.CreateAdd(acc, x) : x;
  };
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    int64_t c = index.coefficients[l];
    if (c == 0) continue;
    known += c * iv_plus_[l];
    if (!is_zero(iv_[l])) sum = add(sum, iv_[l], c);
    if (l == k_.lane_loop && lanes_ > 1) where.stride = c;
  }
  for (auto [t, c] : index.terms) {
    Value* v = val(t).v;
    if (v->getType()->isVectorTy()) {
      where.vec = add(where.vec, v, c);
    } else {
      sum = add(sum, v, c);
    }
  }
  // On a grid a loop has lanes only if all accesses along them are aligned.
  if (ir_.target.has_grid() && where.stride == 1) where.aligned = lanes_;
  Value* constant = llvm::ConstantInt::getSigned(b_.getInt64Ty(), known);
  where.scalar = !sum ? constant : known == 0 ? sum : b_.CreateAdd(sum, constant);
  return where;
}

llvm::Value* KernelEmitter::index_value(const Index& index) {
  Lanes where = lanes(index);
  return where.uniform() ? where.scalar : lane_indices(ir_, where);
}

Val KernelEmitter::instruction(const Expr& i) {
  switch (i.op) {
    case ExprOp::kConstant:
      return ir_.literal(i.type, i.bits.data());
    case ExprOp::kLoad:
      return load(i);
    case ExprOp::kIndex:
      return {index_value(i.index)};
    case ExprOp::kDivide:
    case ExprOp::kModulo:
      return {emit_divide(ir_, index_value(i.index), i.a, i.op == ExprOp::kModulo)};
    case ExprOp::kStart:
      return {emit_start(ir_, i, val(i.args[0]).v, k_.exprs[static_cast<size_t>(i.args[0])].type)};
    case ExprOp::kInRange:
      return {inside_.contains(&i) ? b_.getTrue() : in_range(i.index, i.a)};
    case ExprOp::kOp:
      return operation(i);
    case ExprOp::kLookup: {
      const Lanes where = lanes(i.index);
      return emit_lookup(ir_, i, where, condition_mask(i.mask));
    }
    case ExprOp::kWhile:
      return while_loop(i);
    case ExprOp::kPart:
      return emit_part(ir_, i, val(i.args[0]));
    case ExprOp::kArgument:
    case ExprOp::kReduced:
    case ExprOp::kScanned:
      break;
  }
  return {};
}

llvm::Value* KernelEmitter::in_range(const Index& index, int64_t size) {
  Lanes where = lanes(index);
  Value* x = nullptr;
  if (where.uniform() || where.vec || !is_small(index)) {
    x = where.uniform() ? where.scalar : lane_indices(ir_, where);
  } else {
    Value* first = ir_.splat(b_.CreateTrunc(where.scalar, b_.getInt32Ty()), where.count);
    x = b_.CreateAdd(first, ir_.steps(b_.getInt32Ty(), where.count, where.stride));
  }
  const bool narrow = x->getType()->getScalarSizeInBits() == 32;
  const int64_t most = narrow ? std::min<int64_t>(size, INT32_MAX) : size;
  return b_.CreateICmpULT(x, ir_.constant_int(x->getType(), static_cast<uint64_t>(most)));
}

bool KernelEmitter::is_small(const Index& index) const {
  if (!index.terms.empty()) return false;
  constexpr int64_t kSmall = int64_t{1} << 28;
  int64_t reach = std::abs(index.constant);
  for (size_t l = 0; l < index.coefficients.size() && reach < kSmall; ++l) {
    const int64_t c = std::abs(index.coefficients[l]);
    // The last vector may extend beyond the end of the loop.
    const int64_t size = k_.loops[l].size + 4 * k_.lanes;
    if (c >= kSmall || size >= kSmall) return false;
    reach += c * size;
  }
  return reach < kSmall;
}

Val KernelEmitter::operation(const Expr& i) {
  std::vector<Val> args;
  std::vector<uint32_t> types;
  for (ExprId a : i.args) {
    args.push_back(val(a));
    types.push_back(k_.exprs[static_cast<size_t>(a)].type);
  }
  if (i.opcode == COLLET_OP_DIVIDE && is_quotient(i.type, args)) return {quotient(i, args[0].v, args[1].v)};
  level_lanes(ir_, args);
  return emit_op(ir_, i, args, types, contracts_);
}

Val KernelEmitter::while_loop(const Expr& i) {
  std::vector<Val> args;
  for (ExprId a : i.args) args.push_back(val(a));
  return emit_while(ir_, i, std::move(args), emit_both(ir_, condition_mask(i.mask), mask_));
}

llvm::Value* KernelEmitter::access_mask(ExprId own, const Lanes& where) {
  Value* m = own == kNoExpr ? nullptr : val(own).v;
  if (!mask_ || where.uniform()) return m;
  return m ? b_.CreateAnd(ir_.splat(m, lanes_), mask_) : mask_;
}

ExprId KernelEmitter::repeating_term(const Index& index) {
  // Vectors begin at multiples of their length, except in the tiles of a transposition, and in a scan that runs in
  // reverse.
  const bool begins = lanes_ > 1 && !ir_.is_scalable() && !passes_.is_transposing() && !k_.scan;
  if (!begins || index.coefficient(k_.lane_loop) != 0) return kNoExpr;
  ExprId found = kNoExpr;
  for (const auto& [t, c] : index.terms) {
    if (!val(t).v->getType()->isVectorTy()) continue;
    const Expr& e = k_.exprs[static_cast<size_t>(t)];
    if (found != kNoExpr || c != 1 || e.op != ExprOp::kDivide || !e.index.terms.empty()) return kNoExpr;
    found = t;
    if (lanes_ % e.a != 0 || e.index.constant % e.a != 0 || e.index.coefficient(k_.lane_loop) != 1) return kNoExpr;
    for (size_t l = 0; l < e.index.coefficients.size(); ++l) {
      const bool lane = l == k_.lane_loop;
      if (lane ? iv_plus_[l] % lanes_ != 0 : e.index.coefficients[l] % e.a != 0) return kNoExpr;
    }
  }
  return found;
}

Val KernelEmitter::load_repeated(const Expr& i, ExprId divided) {
  const Expr& quotient = k_.exprs[static_cast<size_t>(divided)];
  const auto times = static_cast<int>(quotient.a);
  Index others = i.index;
  std::erase_if(others.terms, [&](const auto& term) { return term.first == divided; });
  Value* const first = b_.CreateExactSDiv(lanes(quotient.index).scalar, b_.getInt64(static_cast<uint64_t>(times)));
  Lanes where;
  where.scalar = b_.CreateAdd(lanes(others).scalar, first);
  where.stride = 1;
  where.count = lanes_ / times;
  if (where.count == 1) return load_lanes(ir_, bases_[i.buffer], i.type, where, nullptr);
  std::vector<int> every;   // the first lane of each group, which is in the last vector if any lane of the group is
  std::vector<int> copies;  // for each lane the number of its group
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane % times == 0) every.push_back(lane);
    copies.push_back(lane / times);
  }
  Val x = load_lanes(ir_, bases_[i.buffer], i.type, where, mask_ ? b_.CreateShuffleVector(mask_, every) : nullptr);
  x.v = b_.CreateShuffleVector(x.v, copies);
  if (x.im) x.im = b_.CreateShuffleVector(x.im, copies);
  return x;
}

void KernelEmitter::find_conditions(ExprId mask, Value*& uniform, std::vector<ExprId>& by_lane) {
  const Expr& e = k_.exprs[static_cast<size_t>(mask)];
  Value* const v = val(mask).v;
  if (!v->getType()->isVectorTy()) {
    uniform = uniform ? b_.CreateAnd(uniform, v) : v;
  } else if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_AND) {
    for (ExprId a : e.args) find_conditions(a, uniform, by_lane);
  } else {
    by_lane.push_back(mask);
  }
}

bool KernelEmitter::reaches_all_vectors(ExprId condition) const {
  const Expr& e = k_.exprs[static_cast<size_t>(condition)];
  if (e.op != ExprOp::kInRange) return false;
  Index variable = e.index;
  variable.constant = 0;
  if (loop_of(variable) != k_.lane_loop) return false;
  const int64_t behind = k_.loops[k_.lane_loop].size + e.index.constant - e.a;
  return -e.index.constant < lanes_ && behind < lanes_;
}

void KernelEmitter::avoid_unmapped(ExprId mask, Lanes& where) {
  if (where.uniform() || where.vec || ir_.is_scalable() || ir_.target.has_grid()) return;
  Value* accessed = nullptr;
  std::vector<ExprId> by_lane;
  find_conditions(mask, accessed, by_lane);
  if (by_lane.empty() && !mask_) return;  // load_lanes selects an address by a condition that is the same in all lanes
  if (by_lane.size() > 1 || (by_lane.size() == 1 && !reaches_all_vectors(by_lane[0])))
    accessed = b_.CreateOrReduce(val(mask).v);
  if (accessed) where.scalar = b_.CreateSelect(accessed, where.scalar, b_.getInt64(0));
}

Val KernelEmitter::load(const Expr& i) {
  if (const ExprId t = i.mask == kNoExpr ? repeating_term(i.index) : kNoExpr; t != kNoExpr) return load_repeated(i, t);
  Lanes where = lanes(i.index);
  if (i.mask != kNoExpr) avoid_unmapped(i.mask, where);
  if (k_.unordered && where.stride == 1 && !mask_ && lanes_ >= 2 * ir_.target.vector_bits / 32)
    return {load_halves(ir_, bases_[i.buffer], where)};
  return load_lanes(ir_, bases_[i.buffer], i.type, where, access_mask(i.mask, where));
}

void KernelEmitter::store(const Store& s) {
  Lanes where = lanes(s.index);
  const Val& x = val(s.value);
  Value* m = s.mask == kNoExpr ? nullptr : val(s.mask).v;
  const uint32_t type = k_.exprs[static_cast<size_t>(s.value)].type;
  if (lanes_ == 1 && m) {
    branch(m, [&] { store_lanes(ir_, bases_[s.buffer], type, where, x, nullptr); });
    return;
  }
  if (mask_) m = m ? b_.CreateAnd(ir_.splat(m, lanes_), mask_) : mask_;
  where.bypasses_caches = bypasses_ && !m && lanes_ >= k_.lanes && s.bypasses_caches;
  if (where.bypasses_caches) where.aligned = ir_.target.vector_bits / 8 / static_cast<int64_t>(collet_type_bytes(type));
  store_lanes(ir_, bases_[s.buffer], type, where, x, m);
}

llvm::Value* KernelEmitter::updated_extremum(bool maximum, Value* old, Value* x) {
  const bool scalar = !x->getType()->isVectorTy();
  if (scalar) {
    // In lane 0 of a vector, so that the operations on bits need no register of integers.
    Type* const t = ir_.wide(x->getType(), x->getType()->isDoubleTy() ? 2 : 4);
    const auto low = [&](Value* v) { return b_.CreateInsertElement(llvm::PoisonValue::get(t), v, uint64_t{0}); };
    return b_.CreateExtractElement(updated_extremum(maximum, low(old), low(x)), uint64_t{0});
  }
  Type* const integers = ir_.int_like(x);
  Value* const none = llvm::Constant::getNullValue(integers);
  Value* const sign = ir_.bits_of(llvm::ConstantFP::getNegativeZero(x->getType()));
  Value* const nan = ir_.bits_of(llvm::ConstantFP::getQNaN(x->getType()));
  // The one comparison with the old value keeps it if either is NaN, or both are zeros.
  Value* const kept =
      ir_.bits_of(b_.CreateSelect(maximum ? b_.CreateFCmpOGT(x, old) : b_.CreateFCmpOLT(x, old), x, old));
  Value* const bits = ir_.bits_of(x);
  Value* const quiet = b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, none);
  Value* const is_zero = b_.CreateSelect(b_.CreateICmpEQ(bits, maximum ? none : sign), sign, none);
  Value* const result = maximum ? b_.CreateOr(b_.CreateAnd(kept, b_.CreateNot(is_zero)), quiet)
                                : b_.CreateOr(b_.CreateOr(kept, is_zero), quiet);
  return b_.CreateBitCast(result, x->getType());
}

std::vector<Val> KernelEmitter::updated(const Update& u, const std::vector<Val>& args, Value* mask) {
  if (u.combine == COLLET_COMBINE_OTHER) return emit_body(ir_, u.body, args, mask);
  Val r = is_extremum(u.combine, u.types[0])
              ? Val{updated_extremum(u.combine == COLLET_COMBINE_MAXIMUM, args[0].v, args[1].v)}
              : emit_combine(ir_, u.combine, u.types[0], args[0], args[1]);
  if (is_narrow_float(u.types[0])) r.v = ir_.round_narrow(r.v, u.types[0]);
  return {r};
}

/// True if a sum, or another combination, of an element and several numbers may be that of the element and of what the numbers
/// combine to.
bool combines_numbers_first(const Update& u) {
  const uint32_t kind = collet_type_kind(u.types[0]);
  switch (u.combine) {
    case COLLET_COMBINE_ADD:
      return kind != COLLET_KIND_COMPLEX && !is_narrow_float(u.types[0]);  // each sum of these is rounded
    case COLLET_COMBINE_MULTIPLY:
      return kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;  // products of floats may overflow on the way
    case COLLET_COMBINE_MAXIMUM:
    case COLLET_COMBINE_MINIMUM:
    case COLLET_COMBINE_AND:
    case COLLET_COMBINE_OR:
    case COLLET_COMBINE_XOR:
      return kind != COLLET_KIND_COMPLEX;
    default:
      return false;
  }
}

/// Lanes of a vector, kept in memory: to read one of them again takes one operation, whichever it is.
class KernelEmitter::LanesInMemory {
 public:
  LanesInMemory(KernelEmitter& emitter, Value* v) : b_(emitter.b_), is_bit_(v->getType()->isIntOrIntVectorTy(1)) {
    if (is_bit_) v = b_.CreateZExt(v, emitter.ir_.wide(b_.getInt8Ty(), emitter.lanes_));
    element_ = v->getType()->getScalarType();
    memory_ = emitter.slot(v->getType());
    b_.CreateStore(v, memory_);
  }
  Value* read(Value* lane) const {
    Value* const x = b_.CreateLoad(element_, b_.CreateGEP(element_, memory_, lane));
    return is_bit_ ? b_.CreateTrunc(x, b_.getInt1Ty()) : x;
  }

 private:
  llvm::IRBuilder<>& b_;
  bool is_bit_;
  Type* element_;
  Value* memory_;
};

void KernelEmitter::update_in_order(const Update& u) {
  const int count = lanes_;
  Value* const index = ir_.splat(lane_indices(ir_, lanes(u.index)), count);
  Value* mask = u.mask == kNoExpr ? nullptr : ir_.splat(val(u.mask).v, count);
  if (mask_) mask = mask ? b_.CreateAnd(mask, mask_) : mask_;
  std::vector<Val> values;
  for (ExprId v : u.values) values.push_back(ir_.splat(val(v), count));

  using Combine = std::function<std::vector<Val>(const std::vector<Val>& args)>;
  const auto update_element = [&](const std::vector<Value*>& bases, Value* at, const std::vector<Val>& more,
                                  const Combine& combine) {
    Lanes where;
    where.scalar = at;
    lanes_ = 1;
    std::vector<Val> args;
    for (size_t i = 0; i < bases.size(); ++i) args.push_back(load_lanes(ir_, bases[i], u.types[i], where, nullptr));
    args.insert(args.end(), more.begin(), more.end());
    const std::vector<Val> results = combine(args);
    for (size_t i = 0; i < bases.size(); ++i) store_lanes(ir_, bases[i], u.types[i], where, results[i], nullptr);
    lanes_ = count;
  };
  const Combine exactly = [&](const std::vector<Val>& args) { return updated(u, args, nullptr); };
  const auto in_a_loop = [&] {
    const LanesInMemory indices(*this, index);
    std::optional<LanesInMemory> conditions;
    if (mask) conditions.emplace(*this, mask);
    std::vector<std::pair<LanesInMemory, std::optional<LanesInMemory>>> numbers;
    for (const Val& v : values) {
      numbers.emplace_back(LanesInMemory(*this, v.v), std::nullopt);
      if (v.im) numbers.back().second.emplace(*this, v.im);
    }
    std::vector<Value*> bases;
    for (const uint32_t b : u.buffers) bases.push_back(bases_[b]);
    loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(count)), 1, [&](Value* lane) {
      const auto change = [&] {
        std::vector<Val> more;
        for (const auto& [re, im] : numbers) more.push_back({re.read(lane), im ? im->read(lane) : nullptr});
        update_element(bases, indices.read(lane), more, exactly);
      };
      conditions ? branch(conditions->read(lane), change) : change();
    });
  };
  if (u.combine == COLLET_COMBINE_OTHER) return in_a_loop();

  Value* const base = bases_[u.buffers[0]];
  const Val x = values[0];
  const bool is_compared = is_extremum(u.combine, u.types[0]);
  const Combine combine = [&](const std::vector<Val>& args) -> std::vector<Val> {
    if (!is_compared) return exactly(args);
    Value* const wins = u.combine == COLLET_COMBINE_MAXIMUM ? b_.CreateFCmpOGE(args[1].v, args[0].v)
                                                            : b_.CreateFCmpOLT(args[1].v, args[0].v);
    return {{b_.CreateSelect(wins, args[1].v, args[0].v)}};
  };
  // Addresses and values are read from registers: loads that follow stores to addresses that may look alike are often delayed.
  const auto lane_of = [&](Value* v, int lane) {
    return v ? b_.CreateExtractElement(v, static_cast<uint64_t>(lane)) : nullptr;
  };
  const auto each = [&] {
    for (int lane = 0; lane < count; ++lane)
      update_element({base}, lane_of(index, lane), {{lane_of(x.v, lane), lane_of(x.im, lane)}}, combine);
  };
  const auto all = [&] {
    if (!combines_numbers_first(u)) return each();
    // Where data are sorted by place, each update would wait for the one before.
    Value* const first = lane_of(index, 0);
    const auto together = [&] {
      const Val sum = reduce_lanes(x, count, [&](const Val& a, const Val& b) { return combine({a, b})[0]; });
      update_element({base}, first, {sum}, combine);
    };
    ir_.choose(b_.CreateAndReduce(b_.CreateICmpEQ(index, ir_.splat(first, count))), together, each);
  };
  const auto those_with_places = [&] {
    if (x.im) return in_a_loop();
    // Lanes without a place update an element of their own: a branch for each would often be predicted wrongly.
    Type* const element = ir_.storage(u.types[0]);
    Value* const places = b_.CreateSelect(mask, b_.CreateGEP(element, base, index), spare_elements(element, count));
    Value* known = x.v;
    if (u.combine == COLLET_COMBINE_ADD || u.combine == COLLET_COMBINE_MULTIPLY)
      known = b_.CreateSelect(mask, x.v, ir_.splat(combine_identity(ir_, u.combine, u.types[0]).v, count));
    for (int lane = 0; lane < count; ++lane)
      update_element({lane_of(places, lane)}, b_.getInt64(0), {{lane_of(known, lane)}}, combine);
  };
  llvm::MDNode* const likely = llvm::MDBuilder(ir_.context()).createLikelyBranchWeights();
  const auto usual = [&] { mask ? ir_.choose(b_.CreateAndReduce(mask), all, those_with_places, likely) : all(); };
  if (!is_compared) return usual();
  // Among numbers that are neither NaN nor -0, a comparison finds the maximum.
  Value* const negative_zero = ir_.bits_of(llvm::ConstantFP::getNegativeZero(x.v->getType()));
  Value* const is_special = b_.CreateOr(b_.CreateFCmpUNO(x.v, x.v), b_.CreateICmpEQ(ir_.bits_of(x.v), negative_zero));
  ir_.choose(b_.CreateNot(b_.CreateOrReduce(is_special)), usual, in_a_loop, likely);
}

llvm::Value* KernelEmitter::spare_elements(Type* element, int count) {
  Type* const all = ir_.wide(element, count);
  auto* const memory = llvm::cast<llvm::AllocaInst>(slot(all));
  llvm::IRBuilder<> after(memory->getParent(), std::next(memory->getIterator()));
  after.CreateStore(llvm::Constant::getNullValue(all), memory);
  return b_.CreateGEP(element, memory, ir_.steps(b_.getInt64Ty(), count, 1));
}

void KernelEmitter::update(const Update& u) {
  if (lanes_ > 1 && !updates_neighbours(u, k_.lane_loop, loop_dependencies(k_))) return update_in_order(u);
  Lanes where = lanes(u.index);
  Value* m = u.mask == kNoExpr ? nullptr : val(u.mask).v;
  auto body = [&](Value* mask) {
    std::vector<Val> args;
    for (size_t i = 0; i < u.buffers.size(); ++i) {
      args.push_back(load_lanes(ir_, bases_[u.buffers[i]], u.types[i], where, mask));
    }
    for (ExprId v : u.values) args.push_back(val(v));
    level_lanes(ir_, args);
    const std::vector<Val> results = updated(u, args, mask);
    for (size_t i = 0; i < results.size(); ++i) {
      store_lanes(ir_, bases_[u.buffers[i]], u.types[i], where, results[i], mask);
    }
  };
  if (m && !m->getType()->isVectorTy()) {
    // The place is inside nearly always. Without the weights, the code for the usual case has a jump more.
    ir_.branch(m, [&] { body(mask_); }, llvm::MDBuilder(ir_.context()).createLikelyBranchWeights());
    return;
  }
  if (mask_) m = m ? b_.CreateAnd(m, mask_) : mask_;
  body(m);
}

}  // namespace collet::codegen
