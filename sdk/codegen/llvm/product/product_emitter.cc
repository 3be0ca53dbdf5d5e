// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/product/product_emitter.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace collet::codegen {
namespace {

constexpr int64_t kPieceBytes = 16;  ///< bytes that a thread copies at a time
constexpr unsigned kGlobalSpace = 1;

}  // namespace

ProductEmitter::Operand ProductEmitter::operand(const TileOperand& of, uint32_t matrix_type, uint32_t sum_type,
                                                int64_t length, int64_t steps) {
  Operand o;
  o.of = of;
  o.storage = tile_storage(matrix_type, sum_type, of.by_depth, static_cast<int>(length), static_cast<int>(steps));
  o.length = length;
  o.steps = steps;
  o.stored = matrix_type != 0 ? ir_.storage(matrix_type) : ir_.scalar(sum_type);
  o.stored_type = matrix_type;
  o.needed = needed_for({of.value});
  return o;
}

void ProductEmitter::begin_tile(const Operand& o, Value* base, Value* first, Value* depth,
                                std::vector<Value*>& computed, size_t& next) {
  if (o.of.is_copied) return begin_copies(o, base, first, depth);
  for (int64_t i = 0; i < elements_of_thread(o); ++i) {
    const auto [at, step] = point_of_thread(o, number(i));
    Value* const x = element_of(o, b_.CreateAdd(first, at), b_.CreateAdd(depth, step));
    if (next == computed.size()) computed.push_back(slot(o.stored));
    b_.CreateStore(x, computed[next++]);
  }
}

void ProductEmitter::end_tile(const Operand& o, Value* base, const std::vector<Value*>& computed, size_t& next) {
  for (int64_t i = 0; i < elements_of_thread(o) && !o.of.is_copied; ++i) {
    b_.CreateStore(b_.CreateLoad(o.stored, computed[next++]), place_of_thread(o, base, number(i)));
  }
}

void ProductEmitter::bring_tile(const Operand& o, Value* base, Value* first, Value* depth) {
  if (o.of.is_copied) {
    begin_copies(o, base, first, depth);
    commit_copies();
    return wait_for_copies(0);
  }
  constexpr int64_t kTogether = 8;  // loads that are in progress at the same time
  const int64_t all = elements_of_thread(o);
  const int64_t together = std::gcd(all, kTogether);
  // A loop, because addresses of many elements take too many registers.
  loop(number(0), number(all), together, [&](Value* begin) {
    std::vector<Value*> elements;
    for (int64_t i = 0; i < together; ++i) {
      const auto [at, step] = point_of_thread(o, b_.CreateAdd(begin, number(i)));
      elements.push_back(element_of(o, b_.CreateAdd(first, at), b_.CreateAdd(depth, step)));
    }
    for (int64_t i = 0; i < together; ++i)
      b_.CreateStore(elements[static_cast<size_t>(i)], place_of_thread(o, base, b_.CreateAdd(begin, number(i))));
  });
}

void ProductEmitter::commit_copies() {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void ProductEmitter::wait_for_copies(int64_t later) {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {}, {b_.getInt32(static_cast<uint32_t>(later))});
}

/// Returns the row (column of operand b) and the depth of this thread's element `i`. Neighbouring threads get elements
/// that are neighbours in memory.
std::pair<llvm::Value*, llvm::Value*> ProductEmitter::point_of_thread(const Operand& o, Value* i) {
  Value* const index = b_.CreateAdd(b_.CreateMul(i, number(schedule_.block_threads)), thread_);
  const int64_t fast = o.of.by_depth ? o.steps : o.length;
  Value* const low = b_.CreateURem(index, number(fast));
  Value* const high = b_.CreateUDiv(index, number(fast));
  return o.of.by_depth ? std::pair(high, low) : std::pair(low, high);
}

/// Returns the address in shared memory of this thread's element `i`.
llvm::Value* ProductEmitter::place_of_thread(const Operand& o, Value* base, Value* i) {
  const auto [at, step] = point_of_thread(o, i);
  return o.storage.lines_of_depth ? place(o, base, step, at) : place(o, base, at, step);
}

/// Returns the address of element `x` of line `line`.
llvm::Value* ProductEmitter::place(const Operand& o, Value* base, Value* line, Value* x) {
  return b_.CreateGEP(o.stored, base, b_.CreateAdd(b_.CreateMul(line, number(o.storage.pitch)), x));
}

/// Returns the element of the operand at a point. Beyond the depth it is 0. Beyond the operand's rows (columns) it is
/// an arbitrary element, because no result depends on it.
llvm::Value* ProductEmitter::element_of(const Operand& o, Value* at, Value* step) {
  set_loops(0, k_.loops.size(), o.of.loops, at_most(at, o.of.count - 1));
  set_loops(0, k_.loops.size(), o.of.depth_loops, at_most(step, o.of.depth - 1));
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (o.needed[k]) vals_[k] = instruction(k_.exprs[k]);
  }
  const Val& v = val(o.of.value);
  Value* const x = o.stored_type != 0 ? ir_.to_storage(v, o.stored_type) : v.v;
  Value* const inside = b_.CreateICmpULT(step, number(o.of.depth));
  return b_.CreateSelect(inside, x, llvm::Constant::getNullValue(x->getType()));
}

void ProductEmitter::begin_copies(const Operand& o, Value* base, Value* first, Value* depth) {
  const int64_t piece = kPieceBytes / o.storage.element_bytes;
  const int64_t pieces_of_line = (o.storage.lines_of_depth ? o.length : o.steps) / piece;
  const int64_t all = o.storage.lines * pieces_of_line;
  const Expr& e = k_.exprs[static_cast<size_t>(o.of.value)];
  const auto one = [&](Value* index) {
    Value* const line = b_.CreateUDiv(index, number(pieces_of_line));
    Value* const x = b_.CreateMul(b_.CreateURem(index, number(pieces_of_line)), number(piece));
    Value* const at = b_.CreateAdd(first, o.storage.lines_of_depth ? x : line);
    Value* const step = b_.CreateAdd(depth, o.storage.lines_of_depth ? line : x);
    set_loops(0, k_.loops.size(), o.of.loops, at_most(at, o.of.count - (o.storage.lines_of_depth ? piece : 1)));
    Value* const to = place(o, base, line, x);
    const auto copied = [&] {
      set_loops(0, k_.loops.size(), o.of.depth_loops, step);
      Value* const from = b_.CreateGEP(o.stored, bases_[e.buffer], lanes(e.index).scalar);
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {},
                         {to, b_.CreateAddrSpaceCast(from, llvm::PointerType::get(ir_.context(), kGlobalSpace))});
    };
    if (o.of.depth % o.steps == 0) return copied();
    Value* const inside = b_.CreateICmpULT(step, number(o.of.depth));
    branch(inside, copied);
    Type* const words = llvm::FixedVectorType::get(b_.getInt32Ty(), kPieceBytes / 4);
    branch(b_.CreateNot(inside),
           [&] { b_.CreateAlignedStore(llvm::Constant::getNullValue(words), to, llvm::Align(kPieceBytes)); });
  };
  constexpr int64_t kMostUnrolled = 4;  // more addresses would take too many registers
  const int64_t threads = schedule_.block_threads;
  if (all > kMostUnrolled * threads) return loop(thread_, number(all), threads, one);
  for (int64_t i = 0; i < all; i += threads) {
    Value* const index = b_.CreateAdd(number(i), thread_);
    i + threads <= all ? one(index) : branch(b_.CreateICmpULT(index, number(all)), [&] { one(index); });
  }
}

}  // namespace collet::codegen
