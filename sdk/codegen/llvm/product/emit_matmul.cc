// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/product/emit_matmul.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "sdk/codegen/llvm/ir.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;

class MicroEmitter {
 public:
  MicroEmitter(const MicroKernel& kernel, const Epilogue* epilogue, llvm::Module& module, const Target& target,
               const std::string& name)
      : k_(kernel), epilogue_(epilogue), ir_(module, target), b_(ir_.b) {
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false),
                                       llvm::Function::ExternalLinkage, name, module);
    set_function_attributes(function_, target);
    scalar_ = ir_.scalar(k_.type);
    lanes_ = k_.lanes;
    vector_ = ir_.wide(scalar_, lanes_);
    if (epilogue) points_ = std::make_unique<KernelEmitter>(epilogue->kernel, module, target, function_);
  }

  llvm::Function* run() {
    BasicBlock* entry = block("entry");
    b_.SetInsertPoint(entry);
    read_tile();
    make_mask();
    make_first_sums();
    if (epilogue_) open_epilogue();
    if (k_.rows * k_.vectors >= 8 && (k_.fetches || !k_.streams)) prefetch_result();
    std::vector<Value*> sums = loses_small_factors() ? checked_sums() : new_sums();
    if (k_.accumulates) add_old(sums);
    if (epilogue_) {
      finish(sums);
    } else {
      store(sums);
    }
    return function_;
  }

  /// Emits a function that applies only the epilogue, to a tile that was stored.
  llvm::Function* run_epilogue() {
    b_.SetInsertPoint(block("entry"));
    make_mask();
    finish_rows();
    return function_;
  }

  /// Emits a function that adds the sums of a stored tile to its totals.
  llvm::Function* run_fold() {
    b_.SetInsertPoint(block("entry"));
    make_mask();
    const auto flag = [&](size_t at) { return b_.CreateICmpNE(field_i64(at), b_.getInt64(0)); };
    Value* const is_first = flag(offsetof(Tile, is_first));
    Value* const is_last = flag(offsetof(Tile, is_last));
    Value* const c = field_ptr(offsetof(Tile, c));
    Value* const c_step = field_i64(offsetof(Tile, c_step));
    Value* const totals = field_ptr(offsetof(Tile, total));
    Value* const total_step = field_i64(offsetof(Tile, total_step));
    Value* const zero = llvm::Constant::getNullValue(vector_);
    ir_.loop(b_.getInt64(0), field_i64(offsetof(Tile, rows)), b_.getInt64(1), [&](Value* r) {
      Value* const row = offset(c, b_.CreateMul(c_step, r));
      Value* const total_row = offset(totals, b_.CreateMul(total_step, r));
      for (int v = 0; v < k_.vectors; ++v) {
        Value* const at = offset(row, v * lanes_);
        Value* const place = offset(total_row, v * lanes_);
        // Before the first group, the memory of the totals holds anything.
        Value* const total = b_.CreateSelect(is_first, zero, load(place, v));
        const auto [sum, lost] = ir_.add_exactly(total, load(at, v));
        put(sum, place, v);
        // An infinite sum has a NaN for an error.
        Value* const kept = b_.CreateSelect(b_.CreateFCmpONE(lost, zero), lost, zero);
        put(b_.CreateSelect(is_last, sum, kept), at, v);
      }
    });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  /// Rows of an array that have the shape of the tile: the first one, and the elements from one to the next.
  struct Row {
    Value* first;
    Value* step;
    bool written;
  };

  BasicBlock* block(const char* name) { return BasicBlock::Create(ir_.context(), name, function_); }

  Value* field(Type* type, size_t at) {
    return b_.CreateLoad(type, b_.CreateGEP(b_.getInt8Ty(), function_->getArg(0), b_.getInt64(at)));
  }
  Value* field_i64(size_t at) { return field(b_.getInt64Ty(), at); }
  Value* field_ptr(size_t at) { return field(b_.getPtrTy(), at); }

  void read_tile() {
    a_ = field_ptr(offsetof(Tile, a));
    b_at_ = field_ptr(offsetof(Tile, b));
    depth_ = field_i64(offsetof(Tile, depth));
    a_step_ = field_i64(offsetof(Tile, a_step));
    b_step_ = field_i64(offsetof(Tile, b_step));
    if (k_.fetches) {
      ahead_ = field_ptr(offsetof(Tile, ahead));
      ahead_step_ = field_i64(offsetof(Tile, ahead_step));
    }
    if (!k_.by_depth) {
      two_steps_ = b_.CreateMul(a_step_, b_.getInt64(2));
      three_steps_ = b_.CreateMul(a_step_, b_.getInt64(3));
    }
  }

  /// Sets the initial values of the sums: zeros, or for the first block of the depth those of the columns or of the rows.
  void make_first_sums() {
    first_.assign(static_cast<size_t>(k_.rows * k_.vectors), llvm::Constant::getNullValue(vector_));
    if (k_.starts == Starts::kZero) return;
    Value* const start = field_ptr(offsetof(Tile, start));
    Value* const is_later = b_.CreateICmpNE(field_i64(offsetof(Tile, accumulate)), b_.getInt64(0));
    const auto unless_later = [&](Value* x) {
      return b_.CreateSelect(is_later, llvm::Constant::getNullValue(x->getType()), x);
    };
    if (k_.starts == Starts::kRows) {
      for (int r = 0; r < k_.rows; ++r) {
        Value* const first = unless_later(b_.CreateAlignedLoad(scalar_, offset(start, int64_t{r}), align()));
        std::fill_n(first_.begin() + int64_t{r} * k_.vectors, k_.vectors, ir_.splat(first, lanes_));
      }
      return;
    }
    for (int v = 0; v < k_.vectors; ++v) {
      Value* const first = unless_later(b_.CreateAlignedLoad(vector_, offset(start, v * lanes_), align()));
      for (int r = 0; r < k_.rows; ++r) first_[static_cast<size_t>(r * k_.vectors + v)] = first;
    }
  }

  std::vector<Value*> new_sums() { return k_.segmented ? segments() : depth(a_, b_at_, first_); }

  /// True if the instruction that multiplies takes subnormal factors for zero, and makes subnormal sums zero.
  bool loses_small_factors() const { return k_.packs == 2 && k_.type == COLLET_TYPE_F32; }

  /// Computes the sums by the instruction for pairs of bf16, and records how small the factors are. Only if a sum could
  /// be subnormal, or a factor is, computes the sums again, by products and sums of f32.
  std::vector<Value*> checked_sums() {
    halves_ = ir_.wide(b_.getInt16Ty(), 2 * lanes_);
    for (Value** least : {&least_a_, &least_b_}) {
      *least = b_.CreateAlloca(halves_);
      b_.CreateStore(llvm::Constant::getAllOnesValue(halves_), *least);
    }
    if (!k_.streams) record_b();
    std::vector<Value*> sums = new_sums();
    // A product of bf16 whose exponent is e is a multiple of 2^(e - 14), and so are sums of such products: they are zero or
    // normal if e - 14 >= -126.
    constexpr uint64_t kBias = 127;
    constexpr uint64_t kLeastExponent = 14 - 126 + 2 * kBias;
    Value* const a = exponent(least_a_);
    Value* const b = exponent(least_b_);
    Value* const normal = b_.CreateAnd(b_.CreateICmpUGE(a, b_.getInt32(1)), b_.CreateICmpUGE(b, b_.getInt32(1)));
    Value* const right = b_.CreateAnd(normal, b_.CreateICmpUGE(b_.CreateAdd(a, b), b_.getInt32(kLeastExponent)));
    BasicBlock* const before = b_.GetInsertBlock();
    BasicBlock* const again = block("again");
    BasicBlock* const exit = block("checked");
    b_.CreateCondBr(right, exit, again, llvm::MDBuilder(ir_.context()).createBranchWeights(1 << 20, 1));
    b_.SetInsertPoint(again);
    widens_ = true;
    const std::vector<Value*> exact = new_sums();
    widens_ = false;
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
    std::vector<Value*> phis = phis_of(sums, before);
    close(phis, exact, end);
    return phis;
  }

  /// Updates the minima in `least` by the magnitudes of the bf16 in a vector. One is subtracted from the bits of a magnitude,
  /// so that the bits of a zero wrap around and count as large.
  void record(Value* x, Value* least) {
    Value* const magnitude = b_.CreateAnd(b_.CreateBitCast(x, halves_), llvm::ConstantInt::get(halves_, 0x7fff));
    Value* const less = b_.CreateSub(magnitude, llvm::ConstantInt::get(halves_, 1));
    b_.CreateStore(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateLoad(halves_, least), less), least);
  }

  Value* least(Value* of) {
    return b_.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umin, b_.CreateLoad(halves_, of));
  }

  /// Returns the least biased exponent of what was recorded; a larger number than any if all of it was zero.
  Value* exponent(Value* least) {
    return b_.CreateLShr(b_.CreateAdd(b_.CreateZExt(this->least(least), b_.getInt32Ty()), b_.getInt32(1)),
                         b_.getInt32(7));
  }

  /// Records the panel of b, unless the tile before has done so. A panel that is read from memory for few rows is recorded
  /// while it is multiplied.
  void record_b() {
    Value* const steps = k_.segmented ? b_.CreateMul(depth_, field_i64(offsetof(Tile, segments))) : depth_;
    Value* const known = b_.CreateAnd(b_.CreateICmpEQ(field_i64(offsetof(Tile, checked_steps)), steps),
                                      b_.CreateICmpEQ(field_ptr(offsetof(Tile, checked_b)), b_at_));
    BasicBlock* const before = b_.GetInsertBlock();
    BasicBlock* const reading = block("read_b");
    BasicBlock* const exit = block("read");
    Value* const kept = b_.CreateTrunc(field_i64(offsetof(Tile, least_b)), b_.getInt16Ty());
    b_.CreateCondBr(known, exit, reading);
    b_.SetInsertPoint(reading);
    ir_.loop(b_.getInt64(0), steps, b_.getInt64(1), [&](Value* k) {
      Value* const row = offset(b_at_, b_.CreateMul(b_step_, k));
      for (int v = 0; v < k_.vectors; ++v) record(load(offset(row, v * lanes_), v), least_b_);
    });
    Value* const read = least(least_b_);
    const auto set = [&](size_t at, Value* x) {
      b_.CreateStore(x, b_.CreateGEP(b_.getInt8Ty(), function_->getArg(0), b_.getInt64(at)));
    };
    set(offsetof(Tile, checked_steps), steps);
    set(offsetof(Tile, checked_b), b_at_);
    set(offsetof(Tile, least_b), b_.CreateZExt(read, b_.getInt64Ty()));
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
    llvm::PHINode* const found = phi_of(kept, before);
    found->addIncoming(read, end);
    b_.CreateStore(b_.CreateVectorSplat(static_cast<unsigned>(2 * lanes_), found), least_b_);
  }

  /// Records the elements of `a` that one segment of the depth uses.
  void record_a(Value* a) {
    const auto part = [&](Value* from, Value* count) {
      Value* const mask = ir_.first_lanes(b_.CreateTrunc(count, b_.getInt32Ty()), lanes_);
      record(b_.CreateMaskedLoad(vector_, from, align(), mask, llvm::Constant::getNullValue(vector_)), least_a_);
    };
    const auto lanes = static_cast<uint64_t>(lanes_);
    if (k_.by_depth) {
      ir_.loop(b_.getInt64(0), depth_, b_.getInt64(1), [&](Value* k) {
        Value* const row = offset(a, b_.CreateMul(a_step_, k));
        for (int r = 0; r < k_.rows; r += lanes_)
          part(offset(row, int64_t{r}), b_.getInt64(std::min(lanes_, k_.rows - r)));
      });
      return;
    }
    ir_.loop(b_.getInt64(0), depth_, b_.getInt64(lanes), [&](Value* k) {
      Value* const rest = b_.CreateSub(depth_, k);
      Value* const count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, rest, b_.getInt64(lanes));
      for (int r = 0; r < k_.rows; ++r) part(offset(row_of(a, a_step_, r), k), count);
    });
  }

  llvm::PHINode* phi_of(Value* first, BasicBlock* before) {
    llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, before);
    return phi;
  }
  std::vector<Value*> phis_of(const std::vector<Value*>& first, BasicBlock* before) {
    std::vector<Value*> phis;
    for (Value* v : first) phis.push_back(phi_of(v, before));
    return phis;
  }
  static void close(const std::vector<Value*>& phis, const std::vector<Value*>& next, BasicBlock* from) {
    for (size_t i = 0; i < phis.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(next[i], from);
  }

  /// Emits the loop over the segments of the depth, each of which is contiguous in memory.
  std::vector<Value*> segments() {
    Value* count = field_i64(offsetof(Tile, segments));
    Value* offsets = field_ptr(offsetof(Tile, offsets));
    Value* length = b_.CreateMul(b_step_, depth_);
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = block("segment");
    BasicBlock* exit = block("segments_done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* s = phi_of(b_.getInt64(0), before);
    llvm::PHINode* right = phi_of(b_at_, before);
    std::vector<Value*> phis = phis_of(first_, before);
    Value* at = offset(a_, b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), offsets, s)));
    std::vector<Value*> sums = depth(at, right, phis);
    Value* next = b_.CreateAdd(s, b_.getInt64(1), "", true, true);
    BasicBlock* end = b_.GetInsertBlock();
    right->addIncoming(offset(right, length), end);
    s->addIncoming(next, end);
    close(phis, sums, end);
    b_.CreateCondBr(b_.CreateICmpSLT(next, count), head, exit);
    b_.SetInsertPoint(exit);
    return sums;
  }

  /// Emits the loop over the steps of one segment, which has at least one step, and returns the sums. The loop is not
  /// unrolled: LLVM would move loads until it runs out of registers. A pointer into a is kept for every third row, so
  /// that each address is such a pointer plus zero, one or two row steps.
  std::vector<Value*> depth(Value* a, Value* b, const std::vector<Value*>& first_sums) {
    if (least_a_ && !widens_) record_a(a);
    std::vector<Value*> firsts{b, a};
    if (!k_.by_depth) {
      for (int r = 3; r < k_.rows; r += 3) firsts.push_back(offset(firsts.back(), three_steps_));
    }
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* body = block("depth");
    BasicBlock* exit = block("depth_done");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* k = phi_of(b_.getInt64(0), before);
    std::vector<Value*> pointers = phis_of(firsts, before);
    std::vector<llvm::PHINode*> rows;
    for (const Row& row : ahead_rows_) rows.push_back(phi_of(row.first, before));
    std::vector<Value*> phis = phis_of(first_sums, before);
    std::vector<Value*> sums = phis;
    if (!ahead_rows_.empty()) {
      Value* const more = b_.CreateICmpSLT(k, b_.getInt64(static_cast<uint64_t>(k_.rows - 1)));
      for (size_t i = 0; i < ahead_rows_.size(); ++i) {
        prefetch(rows[i], ahead_rows_[i].written);
        rows[i]->addIncoming(b_.CreateSelect(more, offset(rows[i], ahead_rows_[i].step), rows[i]), body);
      }
    }
    if (k_.fetches) {
      prefetch(offset(ahead_, b_.CreateMul(ahead_step_, k)));
    } else if (k_.vectors > 1 && !k_.streams) {
      prefetch(offset(pointers[0], b_.CreateMul(b_step_, b_.getInt64(ir_.target.tuning.prefetched_rows))));
    }
    step(pointers, sums);
    std::vector<Value*> moved{offset(pointers[0], b_step_)};
    for (size_t i = 1; i < pointers.size(); ++i) {
      moved.push_back(k_.by_depth ? offset(pointers[i], a_step_) : offset(pointers[i], int64_t{1}));
    }
    close(pointers, moved, body);
    Value* next = b_.CreateAdd(k, b_.getInt64(1), "", true, true);
    k->addIncoming(next, body);
    close(phis, sums, body);
    b_.CreateCondBr(b_.CreateICmpSLT(next, depth_), body, exit);
    b_.SetInsertPoint(exit);
    return sums;
  }

  /// Prefetches the cache lines of one row of a panel or, if it will be `written`, of the result.
  void prefetch(Value* row, bool written = false) {
    const int line = 64 / static_cast<int>(scalar_->getScalarSizeInBits() / 8);
    for (int at = 0; at < k_.vectors * lanes_; at += line) {
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {offset(row, at), b_.getInt32(written ? 1 : 0), b_.getInt32(3), b_.getInt32(1)});
    }
  }

  /// Prefetches the rows of the result, and what the epilogue reads, which are needed at the end. All at once they
  /// would occupy the processor's buffers for missing lines, so each step of the depth prefetches one row. In segments,
  /// which are short, the rows are prefetched before the first step.
  void prefetch_result() {
    std::vector<Row> rows{
        {field_ptr(epilogue_ ? offsetof(Tile, d) : offsetof(Tile, c)), field_i64(offsetof(Tile, c_step)), true}};
    if (epilogue_) {
      loops_[loops_.size() - 2] = row_;
      loops_.back() = column_;
      for (const auto& [first, step] : points_->rows_of_loads(b_, loops_, scalar_, epilogue_->product))
        rows.push_back({first, step, false});
    }
    if (!k_.segmented) {
      ahead_rows_ = std::move(rows);
      return;
    }
    for (const Row& row : rows) {
      for (int r = 0; r < k_.rows; ++r) prefetch(row_of(row.first, row.step, r), row.written);
    }
  }

  Value* offset(Value* p, Value* elements) { return b_.CreateGEP(scalar_, p, elements); }
  Value* offset(Value* p, int64_t elements) {
    return b_.CreateGEP(scalar_, p, llvm::ConstantInt::getSigned(b_.getInt64Ty(), elements));
  }

  void step(const std::vector<Value*>& at, std::vector<Value*>& sums) {
    std::vector<Value*> right;
    for (int v = 0; v < k_.vectors; ++v) {
      right.push_back(load(offset(at[0], v * lanes_), v));
      if (least_b_ && k_.streams && !widens_) record(right.back(), least_b_);
    }
    for (int r = 0; r < k_.rows; ++r) {
      Value* p = nullptr;
      if (k_.by_depth) {
        p = offset(at[1], r);
      } else {
        p = at[static_cast<size_t>(1 + r / 3)];
        if (r % 3 != 0) p = offset(p, r % 3 == 1 ? a_step_ : two_steps_);
      }
      Value* left = ir_.splat(b_.CreateAlignedLoad(scalar_, p, align()), lanes_);
      for (int v = 0; v < k_.vectors; ++v) {
        auto i = static_cast<size_t>(r * k_.vectors + v);
        sums[i] = add_product(left, right[static_cast<size_t>(v)], sums[i]);
      }
    }
  }

  Value* add_product(Value* x, Value* y, Value* sum) {
    namespace id = llvm::Intrinsic;
    const size_t size = lanes_ == 4 ? 0 : lanes_ == 8 ? 1 : 2;
    if (k_.packs == 4) {
      constexpr id::ID kDot[] = {id::x86_avx512_vpdpbusd_128, id::x86_avx512_vpdpbusd_256, id::x86_avx512_vpdpbusd_512};
      if (k_.signed_a) std::swap(x, y);
      return b_.CreateIntrinsic(kDot[size], {}, {sum, x, y});
    }
    if (widens_) {
      Type* const bits = ir_.wide(b_.getInt32Ty(), lanes_);
      const auto low = [&](Value* v) {
        return b_.CreateBitCast(b_.CreateShl(b_.CreateBitCast(v, bits), ir_.constant_int(bits, 16)), vector_);
      };
      const auto high = [&](Value* v) {
        Value* const mask = llvm::ConstantInt::get(bits, 0xffff0000U);
        return b_.CreateBitCast(b_.CreateAnd(b_.CreateBitCast(v, bits), mask), vector_);
      };
      return ir_.fma(high(x), high(y), ir_.fma(low(x), low(y), sum));
    }
    if (k_.packs == 2 && k_.type == COLLET_TYPE_F32) {
      constexpr id::ID kDot[] = {id::x86_avx512bf16_dpbf16ps_128, id::x86_avx512bf16_dpbf16ps_256,
                                 id::x86_avx512bf16_dpbf16ps_512};
      Type* const halves = ir_.wide(b_.getBFloatTy(), 2 * lanes_);
      return b_.CreateIntrinsic(kDot[size], {}, {sum, b_.CreateBitCast(x, halves), b_.CreateBitCast(y, halves)});
    }
    return k_.type == COLLET_TYPE_S32 ? b_.CreateAdd(sum, products_of_pairs(x, y)) : ir_.fma(x, y, sum);
  }

  /// Returns x.low * y.low + x.high * y.high of the s16 halves of each 32-bit lane.
  Value* products_of_pairs(Value* x, Value* y) {
    const Target& target = ir_.target;
    const int bits = lanes_ * 32;
    const bool x86 = target.triple.starts_with("x86_64");
    const bool wide = bits == 512 && target.features.find("+avx512bw") != std::string::npos;
    if (x86 && (bits == 128 || (bits == 256 && target.features.find("+avx2") != std::string::npos) || wide)) {
      const auto id = bits == 128   ? llvm::Intrinsic::x86_sse2_pmadd_wd
                      : bits == 256 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                    : llvm::Intrinsic::x86_avx512_pmaddw_d_512;
      Type* const halves = ir_.wide(b_.getInt16Ty(), 2 * lanes_);
      return b_.CreateIntrinsic(id, {}, {b_.CreateBitCast(x, halves), b_.CreateBitCast(y, halves)});
    }
    Value* const half = ir_.constant_int(vector_, 16);
    const auto high = [&](Value* v) { return b_.CreateAShr(v, half); };
    const auto low = [&](Value* v) { return b_.CreateAShr(b_.CreateShl(v, half), half); };
    return b_.CreateAdd(b_.CreateMul(low(x), low(y)), b_.CreateMul(high(x), high(y)));
  }

  bool is_partial(int v) const { return k_.masked && v + 1 == k_.vectors; }

  llvm::Align align() { return llvm::Align(scalar_->getScalarSizeInBits() / 8); }

  void make_mask() {
    if (!k_.masked) return;
    mask_ = ir_.first_lanes(b_.CreateTrunc(field_i64(offsetof(Tile, tail)), b_.getInt32Ty()), lanes_);
  }

  Value* load(Value* p, int v) {
    if (is_partial(v)) return b_.CreateMaskedLoad(vector_, p, align(), mask_, llvm::Constant::getNullValue(vector_));
    return b_.CreateAlignedLoad(vector_, p, align());
  }

  void put(Value* x, Value* p, int v) {
    if (is_partial(v)) {
      b_.CreateMaskedStore(x, p, align(), mask_);
    } else {
      b_.CreateAlignedStore(x, p, align());
    }
  }

  /// Returns the address of row r of c, or of the epilogue's result.
  Value* row_of(Value* first, Value* c_step, int64_t r) {
    return offset(first, b_.CreateMul(c_step, b_.getInt64(static_cast<uint64_t>(r))));
  }

  /// Calls visit(pointer, register, row, vector) for the whole tile.
  template <typename Visit>
  void each(Value* first, Value* c_step, const Visit& visit) {
    for (int r = 0; r < k_.rows; ++r) {
      Value* row = row_of(first, c_step, r);
      for (int v = 0; v < k_.vectors; ++v) {
        visit(offset(row, v * lanes_), static_cast<size_t>(r * k_.vectors + v), r, v);
      }
    }
  }

  void add_old(std::vector<Value*>& sums) {
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* adding = block("add");
    BasicBlock* exit = block("added");
    Value* c = field_ptr(offsetof(Tile, c));
    Value* c_step = field_i64(offsetof(Tile, c_step));
    b_.CreateCondBr(b_.CreateICmpNE(field_i64(offsetof(Tile, accumulate)), b_.getInt64(0)), adding, exit);
    b_.SetInsertPoint(adding);
    std::vector<Value*> added = sums;
    each(c, c_step, [&](Value* p, size_t i, int, int v) { added[i] = add(load(p, v), sums[i]); });
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
    std::vector<Value*> phis = phis_of(sums, before);
    close(phis, added, adding);
    sums = phis;
  }

  Value* add(Value* x, Value* y) { return k_.type == COLLET_TYPE_S32 ? b_.CreateAdd(x, y) : b_.CreateFAdd(x, y); }

  void store(const std::vector<Value*>& sums) {
    Value* c = field_ptr(offsetof(Tile, c));
    Value* c_step = field_i64(offsetof(Tile, c_step));
    each(c, c_step, [&](Value* p, size_t i, int, int v) { put(sums[i], p, v); });
    b_.CreateRetVoid();
  }

  /// Emits the values that are the same at all points of the epilogue.
  void open_epilogue() {
    row_ = field_i64(offsetof(Tile, row));
    column_ = field_i64(offsetof(Tile, column));
    Value* position = field_ptr(offsetof(Tile, position));
    for (size_t l = 0; l + 2 < epilogue_->kernel.loops.size(); ++l) {
      loops_.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), position, b_.getInt64(l))));
    }
    loops_.resize(loops_.size() + 2);
    points_->open(b_, field_ptr(offsetof(Tile, buffers)));
  }

  /// Emits the epilogue for a vector of sums and returns its result.
  Value* value(Value* r, int v, Value* sum) {
    loops_[loops_.size() - 2] = b_.CreateAdd(row_, r);
    loops_.back() = b_.CreateAdd(column_, b_.getInt64(static_cast<uint64_t>(v * lanes_)));
    return points_->point(b_, loops_, lanes_, is_partial(v) ? mask_ : nullptr, epilogue_->product, sum,
                          epilogue_->value);
  }

  /// Applies the epilogue to the sums in registers. All results are computed before the first is stored, so that LLVM
  /// can share loads that are the same for all rows or columns.
  void finish(std::vector<Value*> sums) {
    Value* c_step = field_i64(offsetof(Tile, c_step));
    Value* d = field_ptr(offsetof(Tile, d));
    each(d, c_step,
         [&](Value*, size_t i, int r, int v) { sums[i] = value(b_.getInt64(static_cast<uint64_t>(r)), v, sums[i]); });
    each(d, c_step, [&](Value* p, size_t i, int, int v) { put(sums[i], p, v); });
    b_.CreateRetVoid();
  }

  /// Applies the epilogue row by row.
  void finish_rows() {
    Value* c_step = field_i64(offsetof(Tile, c_step));
    Value* c = field_ptr(offsetof(Tile, c));
    Value* d = field_ptr(offsetof(Tile, d));
    Value* rows = field_i64(offsetof(Tile, rows));
    open_epilogue();
    // The results are stored only at the end, because rows of the result are often apart by a multiple of 4096 bytes
    // from other rows and from operands: a load then waits for a store that is not finished. Several rows at a time
    // hide the latency of the operations. The operands of the next tile, which follows in the same columns, are
    // prefetched.
    const int64_t together = std::min<int64_t>(ir_.target.tuning.epilogue_rows, kMostTileRows);
    Type* const row = llvm::ArrayType::get(vector_, static_cast<uint64_t>(k_.vectors));
    Value* const results = b_.CreateAlloca(row, b_.getInt64(kMostTileRows));
    const auto result = [&](Value* r, int v) {
      return b_.CreateGEP(row, results, {r, b_.getInt64(static_cast<uint64_t>(v))});
    };
    loops_[loops_.size() - 2] = b_.CreateAdd(row_, rows);
    loops_.back() = column_;
    const auto next_tile = points_->rows_of_loads(b_, loops_, scalar_, epilogue_->product);
    const auto compute_rows = [&](Value* first, int count) {
      for (int i = 0; i < count; ++i) {
        Value* const r = b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(i)));
        for (const auto& [row_ahead, step] : next_tile) prefetch(offset(row_ahead, b_.CreateMul(step, r)));
        for (int v = 0; v < k_.vectors; ++v) {
          Value* const sum = load(offset(offset(c, b_.CreateMul(c_step, r)), v * lanes_), v);
          b_.CreateStore(value(r, v, sum), result(r, v));
        }
      }
    };
    Value* const whole = b_.CreateSub(rows, b_.CreateURem(rows, b_.getInt64(static_cast<uint64_t>(together))));
    ir_.loop(b_.getInt64(0), whole, b_.getInt64(static_cast<uint64_t>(together)),
             [&](Value* r) { compute_rows(r, static_cast<int>(together)); });
    ir_.loop(whole, rows, b_.getInt64(1), [&](Value* r) { compute_rows(r, 1); });
    ir_.loop(b_.getInt64(0), rows, b_.getInt64(1), [&](Value* r) {
      Value* const at = offset(d, b_.CreateMul(c_step, r));
      for (int v = 0; v < k_.vectors; ++v) put(b_.CreateLoad(vector_, result(r, v)), offset(at, v * lanes_), v);
    });
    b_.CreateRetVoid();
  }

  const MicroKernel& k_;
  const Epilogue* epilogue_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  std::unique_ptr<KernelEmitter> points_;
  llvm::Function* function_ = nullptr;
  Type* scalar_ = nullptr;
  Type* vector_ = nullptr;
  int lanes_ = 1;
  Value* mask_ = nullptr;
  std::vector<Value*> first_;  ///< initial values of the sums
  std::vector<Value*> loops_;  ///< loop variables at the epilogue's current point
  Value* row_ = nullptr;
  Value* column_ = nullptr;
  Value* a_ = nullptr;
  Value* b_at_ = nullptr;
  Value* depth_ = nullptr;
  Value* a_step_ = nullptr;
  Value* b_step_ = nullptr;
  Value* ahead_ = nullptr;
  Value* ahead_step_ = nullptr;
  Value* two_steps_ = nullptr;
  Value* three_steps_ = nullptr;
  /// For factors of bf16: the type of a vector of them, the least magnitudes so far, and whether they are widened to f32.
  Type* halves_ = nullptr;
  Value* least_a_ = nullptr;
  Value* least_b_ = nullptr;
  bool widens_ = false;
  std::vector<Row> ahead_rows_;  ///< the rows that the first steps of the depth prefetch
};

}  // namespace

llvm::Function* emit_micro_kernel(const MicroKernel& kernel, const Epilogue* epilogue, llvm::Module& module,
                                  const Target& target, const std::string& name) {
  return MicroEmitter(kernel, epilogue, module, target, name).run();
}

llvm::Function* emit_epilogue(const MicroKernel& kernel, const Epilogue& epilogue, llvm::Module& module,
                              const Target& target, const std::string& name) {
  return MicroEmitter(kernel, &epilogue, module, target, name).run_epilogue();
}

llvm::Function* emit_fold(const MicroKernel& kernel, llvm::Module& module, const Target& target,
                          const std::string& name) {
  return MicroEmitter(kernel, nullptr, module, target, name).run_fold();
}

}  // namespace collet::codegen
