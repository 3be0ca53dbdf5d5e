// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/emit.h"

#include <algorithm>
#include <functional>
#include <map>

#include "sdk/codegen/emit_memory.h"
#include "sdk/codegen/scalar_ops.h"

namespace collet::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;

/// Lets multiplications and additions become one instruction while it lives.
class Contraction {
 public:
  Contraction(Ir& ir, bool allowed) : guard_(ir.b) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(allowed);
    if (allowed) ir.b.setFastMathFlags(flags);
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

/// Products and sums of the program may share one rounding, as they do in XLA; not those of f64, where a program may
/// count on each, nor the mathematical functions.
bool is_wide(uint32_t type) {
  return type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128;
}
bool may_contract(const Instruction& i) {
  return !is_wide(i.type) &&
         (i.opcode == COLLET_OP_ADD || i.opcode == COLLET_OP_SUBTRACT || i.opcode == COLLET_OP_MULTIPLY);
}

Val emit_op(Ir& ir, const Instruction& i, const std::vector<Val>& args, const std::vector<uint32_t>& types,
            bool sums_products = false) {
  const Contraction contraction(ir, may_contract(i) || (sums_products && i.opcode == COLLET_OP_MULTIPLY));
  return emit_scalar(ir, {i.opcode, i.type, types, args, i.a, i.b});
}

/// Values of the same number of lanes.
void level_lanes(Ir& ir, std::vector<Val>& args) {
  int lanes = 1;
  for (const Val& x : args) lanes = std::max(lanes, Ir::lanes_of(x));
  for (Val& x : args) x = ir.splat(x, lanes);
}

std::vector<Val> emit_body(Ir& ir, const ScalarBody& body, const std::vector<Val>& arguments) {
  std::vector<Val> vals;
  for (size_t k = 0; k < body.tape.size(); ++k) {
    const Instruction& i = body.tape[k];
    if (k < body.arguments) {
      vals.push_back(arguments[k]);
    } else if (i.op == TapeOp::kConstant) {
      vals.push_back(ir.literal(i.type, i.bits.data()));
    } else {
      std::vector<Val> args;
      std::vector<uint32_t> types;
      for (TapeId a : i.args) {
        args.push_back(vals[static_cast<size_t>(a)]);
        types.push_back(body.tape[static_cast<size_t>(a)].type);
      }
      level_lanes(ir, args);
      vals.push_back(emit_op(ir, i, args, types));
    }
  }
  std::vector<Val> results;
  for (TapeId r : body.results) results.push_back(vals[static_cast<size_t>(r)]);
  return results;
}

class KernelEmitter {
 public:
  KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name)
      : k_(kernel), ir_(module, target), b_(ir_.b) {
    Type* ptr = b_.getPtrTy();
    Type* i64 = b_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {ptr, i64, i64}, false),
                                       llvm::Function::ExternalLinkage, name, module);
    set_function_attributes(function_, target);
  }

  llvm::Function* run() {
    analyse();
    b_.SetInsertPoint(BasicBlock::Create(ir_.context(), "entry", function_));
    for (uint32_t i = 0; i < k_.buffers; ++i) {
      Value* p = b_.CreateGEP(b_.getPtrTy(), function_->getArg(0), b_.getInt64(i));
      bases_.push_back(b_.CreateLoad(b_.getPtrTy(), p));
    }
    vals_.resize(k_.tape.size());
    iv_.resize(k_.loops.size());
    outer(0);
    b_.CreateRetVoid();
    return function_;
  }

 private:
  size_t level_of_index(const Index& index) const {
    size_t level = 0;
    for (size_t l = 0; l < index.coefficients.size(); ++l) {
      if (index.coefficients[l] != 0) level = l + 1;
    }
    for (auto& t : index.terms) level = std::max(level, level_[static_cast<size_t>(t.first)]);
    return level;
  }

  size_t level_of(TapeId t) const { return t == kNoTape ? 0 : level_[static_cast<size_t>(t)]; }
  int stage_of(TapeId t) const { return t == kNoTape ? 0 : stage_[static_cast<size_t>(t)]; }

  int stage_of_index(const Index& index) const {
    int stage = 0;
    for (auto& t : index.terms) stage = std::max(stage, stage_of(t.first));
    return stage;
  }

  /// Level and stage of every tape value, and what each pass over the inner loops needs.
  void analyse() {
    auto deps = loop_dependencies(k_);
    contracts_ = std::any_of(k_.reductions.begin(), k_.reductions.end(), [](const Reduction& r) { return r.contract; });
    reduction_stage_.assign(k_.reductions.size(), -1);
    level_.resize(k_.tape.size());
    stage_.resize(k_.tape.size());
    for (size_t k = 0; k < k_.tape.size(); ++k) {
      level_[k] = deps[k] == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(deps[k]));
      const Instruction& i = k_.tape[k];
      int stage = std::max(stage_of_index(i.index), stage_of(i.mask));
      for (TapeId a : i.args) stage = std::max(stage, stage_of(a));
      if (i.op == TapeOp::kReduced) {
        auto r = static_cast<size_t>(i.b);
        if (reduction_stage_[r] < 0) {
          int s = stage_of(k_.reductions[r].condition);
          for (TapeId x : k_.reductions[r].inputs) s = std::max(s, stage_of(x));
          for (TapeId x : k_.reductions[r].inits) s = std::max(s, stage_of(x));
          reduction_stage_[r] = s;
        }
        stage = reduction_stage_[r] + 1;
        level_[k] = k_.outer;
      }
      stage_[k] = stage;
      last_stage_ = std::max(last_stage_, stage);
    }
    needed_.assign(static_cast<size_t>(last_stage_) + 1, std::vector<bool>(k_.tape.size(), false));
    first_pass_.assign(k_.tape.size(), -1);
    kept_.assign(k_.tape.size(), false);
    find_costly(deps);
    for (int pass = 0; pass <= last_stage_; ++pass) need_all(pass);
  }

  /// Values worth keeping from one pass over a row to the next: they cost more than a load.
  void find_costly(const std::vector<uint64_t>& deps) {
    costly_.assign(k_.tape.size(), false);
    if (last_stage_ == 0 || !(k_.lanes == 1 || k_.lane_loop >= k_.outer)) return;
    int64_t row = 1;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) row *= k_.loops[l].size;
    if (row > kLongestKeptRow) return;
    uint64_t inner = 0;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) inner |= uint64_t{1} << l;
    for (size_t k = 0; k < k_.tape.size(); ++k) {
      const Instruction& i = k_.tape[k];
      const uint32_t kind = collet_type_kind(i.type);
      costly_[k] = (deps[k] & inner) == inner && i.op == TapeOp::kOp && kind == COLLET_KIND_FLOAT &&
                   (scalar_expensive(i.opcode) || i.opcode == COLLET_OP_DIVIDE);
    }
  }

  void need_all(int pass) {
    for (size_t r = 0; r < k_.reductions.size(); ++r) {
      if (reduction_stage_[r] != pass) continue;
      for (TapeId x : k_.reductions[r].inputs) need(reduction_stage_[r], x);
      need(reduction_stage_[r], k_.reductions[r].condition);
    }
    for (const Store& s : k_.stores) {
      if (!is_inner(s)) continue;
      int stage = store_stage(s);
      if (stage != pass) continue;
      need(stage, s.value);
      need(stage, s.mask);
      for (auto& t : s.index.terms) need(stage, t.first);
    }
  }

  bool is_inner(const Store& s) const {
    return std::max({level_of(s.value), level_of(s.mask), level_of_index(s.index)}) > k_.outer;
  }
  int store_stage(const Store& s) const {
    return std::max({stage_of(s.value), stage_of(s.mask), stage_of_index(s.index)});
  }

  void need(int pass, TapeId t) {
    if (t == kNoTape || level_of(t) <= k_.outer) return;
    auto k = static_cast<size_t>(t);
    auto& set = needed_[static_cast<size_t>(pass)];
    if (set[k]) return;
    set[k] = true;
    if (costly_[k] && first_pass_[k] >= 0 && first_pass_[k] < pass) {
      kept_[k] = true;
      return;
    }
    if (first_pass_[k] < 0) first_pass_[k] = pass;
    const Instruction& i = k_.tape[k];
    for (TapeId a : i.args) need(pass, a);
    for (auto& term : i.index.terms) need(pass, term.first);
    need(pass, i.mask);
  }

  /// A counted loop.
  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
    auto& context = ir_.context();
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = BasicBlock::Create(context, "loop", function_);
    BasicBlock* exit = BasicBlock::Create(context, "done", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, exit);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    body(i);
    Value* next = b_.CreateAdd(i, b_.getInt64(static_cast<uint64_t>(step)), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, exit);
    b_.SetInsertPoint(exit);
  }

  void branch(Value* condition, const std::function<void()>& body) {
    auto& context = ir_.context();
    BasicBlock* then = BasicBlock::Create(context, "then", function_);
    BasicBlock* exit = BasicBlock::Create(context, "next", function_);
    b_.CreateCondBr(condition, then, exit);
    b_.SetInsertPoint(then);
    body();
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
  }

  /// Walks loop `l`; where it is the vectorised one, in full vectors and then what is left.
  void walk(size_t l, const std::function<void()>& body) {
    const bool ranged = l == 0 && k_.outer > 0;
    Value* begin = ranged ? static_cast<Value*>(function_->getArg(1)) : b_.getInt64(0);
    Value* end =
        ranged ? static_cast<Value*>(function_->getArg(2)) : b_.getInt64(static_cast<uint64_t>(k_.loops[l].size));
    if (l != k_.lane_loop || k_.lanes == 1) {
      blocks(l, begin, end, 1, [&](Value* i) {
        iv_[l] = i;
        body();
      });
      return;
    }
    const int w = k_.lanes;
    const bool full = !ranged && k_.loops[l].size % w == 0;
    Value* whole = b_.CreateAnd(b_.CreateSub(end, begin), b_.getInt64(~static_cast<uint64_t>(w - 1)));
    Value* main_end = full ? end : b_.CreateAdd(begin, whole);
    if (ranged || k_.loops[l].size >= w) {
      blocks(l, begin, main_end, w, [&](Value* i) {
        iv_[l] = i;
        lanes_ = w;
        body();
        lanes_ = 1;
      });
    }
    if (full) return;
    if (!ir_.target.masks) {
      loop(main_end, end, 1, [&](Value* i) {
        iv_[l] = i;
        body();
      });
      return;
    }
    branch(b_.CreateICmpSLT(main_end, end), [&] {
      iv_[l] = main_end;
      lanes_ = w;
      std::vector<llvm::Constant*> steps;
      Type* t = b_.getInt32Ty();
      for (int i = 0; i < w; ++i) steps.push_back(llvm::ConstantInt::get(t, static_cast<uint64_t>(i)));
      Value* rest = b_.CreateTrunc(b_.CreateSub(end, main_end), t);
      mask_ = b_.CreateICmpULT(llvm::ConstantVector::get(steps), ir_.splat(rest, w));
      body();
      mask_ = nullptr;
      lanes_ = 1;
    });
  }

  static constexpr int64_t kBlockSteps = 128;
  static constexpr int64_t kLongestKeptRow = 8192;

  struct Accumulator {
    size_t reduction;
    std::vector<Value*> slots;       ///< two per result: re, im
    std::vector<Value*> tail_slots;  ///< of the scalar loop after the vectors
    std::vector<Value*> sums;        ///< of the blocks before, for sums of floats
  };

  /// The loop, in blocks after each of which the sums so far are put aside where there are many terms: the error of a sum
  /// grows with the terms that one accumulator takes.
  void blocks(size_t l, Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
    if (!open_ || l + 1 != k_.loops.size() || l < k_.outer || k_.loops[l].size / step <= 2 * kBlockSteps) {
      loop(begin, end, step, body);
      return;
    }
    const int64_t block = step * kBlockSteps;
    loop(begin, end, block, [&](Value* first) {
      Value* last =
          ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(block))), end);
      loop(first, last, step, body);
      for (Accumulator& a : *open_) {
        if (a.sums.empty()) continue;
        const uint32_t type = k_.reductions[a.reduction].types[0];
        const int lanes = lanes_inside() ? k_.lanes : lanes_;
        Val sum =
            emit_combine(ir_, COLLET_COMBINE_ADD, type, get(a.sums, 0, type, lanes), get(a.slots, 0, type, lanes));
        put(a.sums, 0, sum);
        put(a.slots, 0, ir_.splat(combine_identity(ir_, COLLET_COMBINE_ADD, type), lanes));
      }
    });
  }

  void outer(size_t l) {
    if (l == k_.outer) {
      stages();
      return;
    }
    for (size_t k = 0; k < k_.tape.size(); ++k) {
      if (level_[k] == l && k_.tape[k].op != TapeOp::kReduced) vals_[k] = instruction(k_.tape[k]);
    }
    walk(l, [&] { outer(l + 1); });
  }

  /// Passes over the inner loops, with what comes between them.
  void stages() {
    for (int pass = 0; pass <= last_stage_; ++pass) {
      for (size_t k = 0; k < k_.tape.size(); ++k) {
        if (level_[k] == k_.outer && stage_[k] == pass && k_.tape[k].op != TapeOp::kReduced) {
          vals_[k] = instruction(k_.tape[k]);
        }
      }
      inner_pass(pass);
    }
    for (const Store& s : k_.stores) {
      if (!is_inner(s)) store(s);
    }
    for (const Update& u : k_.updates) update(u);
  }

  Value* slot(Type* t) {
    BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> at(&entry, entry.begin());
    return at.CreateAlloca(t);
  }

  void put(const std::vector<Value*>& slots, size_t r, const Val& x) {
    b_.CreateStore(x.v, slots[2 * r]);
    if (x.im) b_.CreateStore(x.im, slots[2 * r + 1]);
  }

  Val get(const std::vector<Value*>& slots, size_t r, uint32_t type, int lanes) {
    Type* t = ir_.wide(ir_.scalar(type), lanes);
    Val x{b_.CreateLoad(t, slots[2 * r])};
    if (slots[2 * r + 1]) x.im = b_.CreateLoad(t, slots[2 * r + 1]);
    return x;
  }

  std::vector<Value*> make_slots(const Reduction& r, int lanes) {
    std::vector<Value*> slots;
    for (uint32_t type : r.types) {
      Type* t = ir_.wide(ir_.scalar(type), lanes);
      slots.push_back(slot(t));
      slots.push_back(collet_type_kind(type) == COLLET_KIND_COMPLEX ? slot(t) : nullptr);
    }
    return slots;
  }

  bool lanes_inside() const { return k_.lanes > 1 && k_.lane_loop >= k_.outer; }

  void inner_pass(int pass) {
    std::vector<Accumulator> accumulators;
    const int outer_lanes = lanes_;
    for (size_t r = 0; r < k_.reductions.size(); ++r) {
      if (reduction_stage_[r] != pass) continue;
      const Reduction& red = k_.reductions[r];
      Accumulator a{r, make_slots(red, lanes_inside() ? k_.lanes : outer_lanes), {}, {}};
      const int lanes = lanes_inside() ? k_.lanes : outer_lanes;
      const bool known = red.combine != COLLET_COMBINE_OTHER;
      for (size_t i = 0; i < red.types.size(); ++i) {
        Val start = known ? combine_identity(ir_, red.combine, red.types[i]) : val(red.inits[i]);
        put(a.slots, i, ir_.splat(start, lanes));
      }
      const uint32_t kind = collet_type_kind(red.types[0]);
      if (red.combine == COLLET_COMBINE_ADD && (kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX)) {
        a.sums = make_slots(red, lanes);
        put(a.sums, 0, ir_.splat(combine_identity(ir_, red.combine, red.types[0]), lanes));
      }
      if (lanes_inside() && !ir_.target.masks) {
        a.tail_slots = make_slots(red, 1);
        put(a.tail_slots, 0, combine_identity(ir_, red.combine, red.types[0]));
      }
      accumulators.push_back(std::move(a));
    }
    bool stores = std::any_of(k_.stores.begin(), k_.stores.end(),
                              [&](const Store& s) { return is_inner(s) && store_stage(s) == pass; });
    if (accumulators.empty() && !stores) return;
    open_ = &accumulators;
    inner(k_.outer, pass, accumulators);
    open_ = nullptr;
    for (const Accumulator& a : accumulators) finish(a, outer_lanes);
  }

  void inner(size_t l, int pass, std::vector<Accumulator>& accumulators) {
    if (l > k_.outer || l == k_.loops.size()) {
      for (size_t k = 0; k < k_.tape.size(); ++k) {
        if (level_[k] == l && needed_[static_cast<size_t>(pass)][k]) vals_[k] = inner_value(k, pass);
      }
    }
    if (l < k_.loops.size()) {
      walk(l, [&] { inner(l + 1, pass, accumulators); });
      return;
    }
    for (Accumulator& a : accumulators) accumulate(a);
    for (const Store& s : k_.stores) {
      if (is_inner(s) && store_stage(s) == pass) store(s);
    }
  }

  /// Computes a value, or reads what an earlier pass over this row has kept of it.
  Val inner_value(size_t k, int pass) {
    if (!kept_[k]) return instruction(k_.tape[k]);
    Type* t = ir_.scalar(k_.tape[k].type);
    Value*& room = rooms_[k];
    if (!room) {
      int64_t row = k_.lanes;
      int64_t n = 1;
      for (size_t l = k_.outer; l < k_.loops.size(); ++l) n *= k_.loops[l].size;
      room = slot(llvm::ArrayType::get(t, static_cast<uint64_t>(row + n)));
    }
    Index place;  // the vectorised loop walks it with unit stride
    int64_t step = k_.lane_loop < k_.loops.size() && k_.lanes > 1 ? k_.loops[k_.lane_loop].size : 1;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) {
      if (l == k_.lane_loop && k_.lanes > 1) {
        place = add_scaled(place, loop_index(l), 1);
      } else {
        place = add_scaled(place, loop_index(l), step);
        step *= k_.loops[l].size;
      }
    }
    Value* p = b_.CreateGEP(t, room, lanes(place).scalar);
    const llvm::Align align(t->getScalarSizeInBits() / 8);
    Type* vt = ir_.wide(t, lanes_);
    if (pass > first_pass_[k]) return {b_.CreateAlignedLoad(vt, p, align)};
    Val x = ir_.splat(instruction(k_.tape[k]), lanes_);
    b_.CreateAlignedStore(x.v, p, align);
    return x;
  }

  void accumulate(Accumulator& a) {
    const Reduction& r = k_.reductions[a.reduction];
    const bool tail = lanes_inside() && lanes_ == 1;
    auto& slots = tail ? a.tail_slots : a.slots;
    const int lanes = lanes_;
    if (r.combine != COLLET_COMBINE_OTHER) {
      Val x = ir_.splat(val(r.inputs[0]), lanes);
      Value* on = condition_mask(r.condition);
      if (lanes_inside() && mask_) on = on ? b_.CreateAnd(ir_.splat(on, lanes), mask_) : mask_;
      if (on) x = ir_.select(ir_.splat(on, lanes), x, ir_.splat(combine_identity(ir_, r.combine, r.types[0]), lanes));
      const Contraction contraction(ir_, r.contract || !is_wide(r.types[0]));
      put(slots, 0, emit_combine(ir_, r.combine, r.types[0], get(slots, 0, r.types[0], lanes), x));
      return;
    }
    std::vector<Val> args;
    for (size_t i = 0; i < r.types.size(); ++i) args.push_back(get(slots, i, r.types[i], lanes));
    for (TapeId x : r.inputs) args.push_back(ir_.splat(val(x), lanes));
    std::vector<Val> results = emit_body(ir_, r.body, args);
    Value* on = condition_mask(r.condition);
    for (size_t i = 0; i < results.size(); ++i) {
      Val x = ir_.splat(results[i], lanes);
      put(slots, i, on ? ir_.select(ir_.splat(on, lanes), x, args[i]) : x);
    }
  }

  Value* condition_mask(TapeId t) { return t == kNoTape ? nullptr : val(t).v; }

  /// Combines lanes, the scalar rest and the initial value.
  void finish(const Accumulator& a, int outer_lanes) {
    const Reduction& r = k_.reductions[a.reduction];
    std::vector<Val> results;
    for (size_t i = 0; i < r.types.size(); ++i) {
      const uint32_t type = r.types[i];
      auto total = [&](int lanes) {
        Val x = get(a.slots, i, type, lanes);
        return a.sums.empty() ? x : emit_combine(ir_, r.combine, type, get(a.sums, i, type, lanes), x);
      };
      if (!lanes_inside()) {
        results.push_back(total(outer_lanes));
      } else {
        Val x = total(k_.lanes);
        for (int n = k_.lanes / 2; n >= 1; n /= 2) {
          std::vector<int> low(static_cast<size_t>(n));
          std::vector<int> high(static_cast<size_t>(n));
          for (int j = 0; j < n; ++j) {
            low[static_cast<size_t>(j)] = j;
            high[static_cast<size_t>(j)] = n + j;
          }
          auto half = [&](const std::vector<int>& order) {
            return Val{b_.CreateShuffleVector(x.v, order), x.im ? b_.CreateShuffleVector(x.im, order) : nullptr};
          };
          x = emit_combine(ir_, r.combine, type, half(low), half(high));
        }
        Value* zero = b_.getInt64(0);
        x = {b_.CreateExtractElement(x.v, zero), x.im ? b_.CreateExtractElement(x.im, zero) : nullptr};
        if (!a.tail_slots.empty()) x = emit_combine(ir_, r.combine, type, x, get(a.tail_slots, i, type, 1));
        results.push_back(x);
      }
      if (r.combine == COLLET_COMBINE_OTHER) continue;
      Val init = ir_.splat(val(r.inits[i]), Ir::lanes_of(results[i]));
      results[i] = emit_combine(ir_, r.combine, type, init, results[i]);
      if (is_narrow_float(type)) results[i].v = ir_.round_narrow(results[i].v, type);
    }
    for (size_t k = 0; k < k_.tape.size(); ++k) {
      const Instruction& i = k_.tape[k];
      if (i.op == TapeOp::kReduced && static_cast<size_t>(i.b) == a.reduction) {
        vals_[k] = results[static_cast<size_t>(i.a)];
      }
    }
  }

  const Val& val(TapeId t) const { return vals_[static_cast<size_t>(t)]; }

  Lanes lanes(const Index& index) {
    Lanes where;
    where.count = lanes_;
    Value* sum = llvm::ConstantInt::getSigned(b_.getInt64Ty(), index.constant);
    auto add = [&](Value* acc, Value* x, int64_t c) {
      if (c != 1) x = b_.CreateMul(x, llvm::ConstantInt::getSigned(x->getType(), c));
      return acc ? b_.CreateAdd(acc, x) : x;
    };
    for (size_t l = 0; l < index.coefficients.size(); ++l) {
      int64_t c = index.coefficients[l];
      if (c == 0) continue;
      sum = add(sum, iv_[l], c);
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
    where.scalar = sum;
    return where;
  }

  /// The index as a value: a scalar where it is the same in all lanes.
  Value* index_value(const Index& index) {
    Lanes where = lanes(index);
    return where.uniform() ? where.scalar : lane_indices(ir_, where);
  }

  Val instruction(const Instruction& i) {
    switch (i.op) {
      case TapeOp::kConstant:
        return ir_.literal(i.type, i.bits.data());
      case TapeOp::kLoad:
        return load(i);
      case TapeOp::kIndex:
        return {index_value(i.index)};
      case TapeOp::kDivide:
      case TapeOp::kModulo:
        return {divide(index_value(i.index), i.a, i.op == TapeOp::kModulo)};
      case TapeOp::kStart:
        return {start(i)};
      case TapeOp::kInRange: {
        Value* x = index_value(i.index);
        return {b_.CreateICmpULT(x, ir_.constant_int(x->getType(), static_cast<uint64_t>(i.a)))};
      }
      case TapeOp::kOp: {
        std::vector<Val> args;
        std::vector<uint32_t> types;
        for (TapeId a : i.args) {
          args.push_back(val(a));
          types.push_back(k_.tape[static_cast<size_t>(a)].type);
        }
        level_lanes(ir_, args);
        return emit_op(ir_, i, args, types, contracts_);
      }
      case TapeOp::kReduced:
        break;
    }
    return {};
  }

  Value* divide(Value* x, int64_t by, bool modulo) {
    Type* t = x->getType();
    Value* d = ir_.constant_int(t, static_cast<uint64_t>(by));
    // Floor: negative numbers are moved down first.
    Value* negative = b_.CreateAShr(x, ir_.constant_int(t, 63));
    Value* flipped = b_.CreateXor(x, negative);
    Value* q = b_.CreateXor(b_.CreateUDiv(flipped, d), negative);
    return modulo ? b_.CreateSub(x, b_.CreateMul(q, d)) : q;
  }

  Value* start(const Instruction& i) {
    Value* x = val(i.args[0]).v;
    const uint32_t type = k_.tape[static_cast<size_t>(i.args[0])].type;
    Type* t = ir_.like(x, b_.getInt64Ty());
    Value* limit = ir_.constant_int(t, static_cast<uint64_t>(i.a));
    if (collet_type_kind(type) != COLLET_KIND_SIGNED) {
      return ir_.binary(llvm::Intrinsic::umin, b_.CreateZExt(x, t), limit);
    }
    Value* low = ir_.binary(llvm::Intrinsic::smax, b_.CreateSExt(x, t), llvm::Constant::getNullValue(t));
    return ir_.binary(llvm::Intrinsic::smin, low, limit);
  }

  /// A mask of the access together with that of the last, partial vector.
  Value* access_mask(TapeId own, const Lanes& where) {
    Value* m = own == kNoTape ? nullptr : val(own).v;
    if (!mask_ || where.uniform()) return m;
    return m ? b_.CreateAnd(ir_.splat(m, lanes_), mask_) : mask_;
  }

  Val load(const Instruction& i) {
    Lanes where = lanes(i.index);
    return load_lanes(ir_, bases_[i.buffer], i.type, where, access_mask(i.mask, where));
  }

  void store(const Store& s) {
    Lanes where = lanes(s.index);
    const Val& x = val(s.value);
    Value* m = s.mask == kNoTape ? nullptr : val(s.mask).v;
    const uint32_t type = k_.tape[static_cast<size_t>(s.value)].type;
    if (lanes_ == 1 && m) {
      branch(m, [&] { store_lanes(ir_, bases_[s.buffer], type, where, x, nullptr); });
      return;
    }
    if (mask_) m = m ? b_.CreateAnd(ir_.splat(m, lanes_), mask_) : mask_;
    store_lanes(ir_, bases_[s.buffer], type, where, x, m);
  }

  void update(const Update& u) {
    Lanes where = lanes(u.index);
    Value* m = u.mask == kNoTape ? nullptr : val(u.mask).v;
    auto body = [&](Value* mask) {
      std::vector<Val> args;
      for (size_t i = 0; i < u.buffers.size(); ++i) {
        args.push_back(load_lanes(ir_, bases_[u.buffers[i]], u.types[i], where, mask));
      }
      for (TapeId v : u.values) args.push_back(val(v));
      level_lanes(ir_, args);
      std::vector<Val> results;
      if (u.combine == COLLET_COMBINE_OTHER) {
        results = emit_body(ir_, u.body, args);
      } else {
        Val r = emit_combine(ir_, u.combine, u.types[0], args[0], args[1]);
        if (is_narrow_float(u.types[0])) r.v = ir_.round_narrow(r.v, u.types[0]);
        results.push_back(r);
      }
      for (size_t i = 0; i < results.size(); ++i) {
        store_lanes(ir_, bases_[u.buffers[i]], u.types[i], where, results[i], mask);
      }
    };
    if (m && !m->getType()->isVectorTy()) {
      branch(m, [&] { body(mask_); });
      return;
    }
    if (mask_) m = m ? b_.CreateAnd(m, mask_) : mask_;
    body(m);
  }

  const Kernel& k_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> bases_;
  std::vector<Value*> iv_;
  std::vector<Val> vals_;
  std::vector<size_t> level_;
  std::vector<int> stage_;
  std::vector<int> reduction_stage_;
  std::vector<std::vector<bool>> needed_;
  std::vector<bool> costly_;
  std::vector<bool> kept_;  ///< values that a later pass reads from memory of the function's own
  std::vector<int> first_pass_;
  std::map<size_t, Value*> rooms_;
  int last_stage_ = 0;
  bool contracts_ = false;
  std::vector<Accumulator>* open_ = nullptr;  ///< of the pass that is being emitted
  int lanes_ = 1;
  Value* mask_ = nullptr;
};

}  // namespace

void set_function_attributes(llvm::Function* f, const Target& target) {
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("target-cpu", target.cpu);
  f->addFnAttr("target-features", target.features);
  f->addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  f->addFnAttr("min-legal-vector-width", std::to_string(target.vector_bits));
}

llvm::Function* emit_kernel(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name) {
  return KernelEmitter(kernel, module, target, name).run();
}

llvm::Function* emit_comparator(const ScalarBody& body, const std::vector<uint32_t>& types, llvm::Module& module,
                                const Target& target, const std::string& name) {
  Ir ir(module, target);
  auto& b = ir.b;
  Type* i64 = b.getInt64Ty();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getInt8Ty(), {b.getPtrTy(), i64, i64}, false),
                                   llvm::Function::ExternalLinkage, name, module);
  set_function_attributes(f, target);
  b.SetInsertPoint(BasicBlock::Create(ir.context(), "entry", f));
  std::vector<Val> args;
  for (size_t k = 0; k < types.size(); ++k) {
    llvm::Value* base = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), f->getArg(0), b.getInt64(k)));
    for (unsigned side = 1; side <= 2; ++side) {
      args.push_back(load_lanes(ir, base, types[k], {f->getArg(side), 0, nullptr, 1}, nullptr));
    }
  }
  b.CreateRet(b.CreateZExt(emit_body(ir, body, args)[0].v, b.getInt8Ty()));
  return f;
}

}  // namespace collet::codegen
