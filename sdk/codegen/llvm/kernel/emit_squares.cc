// SPDX-License-Identifier: Apache-2.0
// Emits loads whose unit stride is along another loop than the vectorised one: a square of elements is read row by row
// and transposed in registers.
#include <algorithm>
#include <cstdlib>

#include "sdk/codegen/llvm/kernel/emit_memory.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {
namespace {

using llvm::Value;
using Values = std::vector<Value*>;

/// Shuffles x and y: lane i of the result is lane order(i) of x, or lane order(i) - count of y.
template <typename Order>
Value* shuffled(Ir& ir, Value* x, Value* y, int count, const Order& order) {
  std::vector<int> lanes;
  for (int i = 0; i < count; ++i) lanes.push_back(order(i));
  return ir.b.CreateShuffleVector(x, y, lanes);
}

/// Transposes a square matrix whose side is a power of two. Blocks of 128 bits are exchanged first, then the elements
/// within the blocks, because most shuffle instructions work within parts of 128 bits.
Values transposed(Ir& ir, Values rows) {
  constexpr unsigned kPartBits = 128;
  const int n = static_cast<int>(rows.size());
  const int part = std::min<int>(n, static_cast<int>(kPartBits / rows[0]->getType()->getScalarSizeInBits()));
  for (int d = n / 2; d >= part; d /= 2) {
    for (int i = 0; i < n; ++i) {
      if ((i & d) != 0) continue;
      Value* const x = rows[static_cast<size_t>(i)];
      Value* const y = rows[static_cast<size_t>(i + d)];
      rows[static_cast<size_t>(i)] = shuffled(ir, x, y, n, [&](int k) { return (k & d) == 0 ? k : n + k - d; });
      rows[static_cast<size_t>(i + d)] = shuffled(ir, x, y, n, [&](int k) { return (k & d) == 0 ? k + d : n + k; });
    }
  }
  for (int steps = 1; steps < part; steps *= 2) {
    Values next(rows.size());
    for (int first = 0; first < n; first += part) {
      for (int i = 0; i < part / 2; ++i) {
        Value* const x = rows[static_cast<size_t>(first + i)];
        Value* const y = rows[static_cast<size_t>(first + i + part / 2)];
        const auto zip = [&](int from) {
          return shuffled(ir, x, y, n, [&](int k) {
            const int at = k / part * part + from + k % part / 2;
            return k % 2 == 0 ? at : n + at;
          });
        };
        next[static_cast<size_t>(first + 2 * i)] = zip(0);
        next[static_cast<size_t>(first + 2 * i + 1)] = zip(part / 2);
      }
    }
    rows = std::move(next);
  }
  return rows;
}

/// Concatenates vectors.
Value* joined(Ir& ir, Values parts) {
  const int each = ir.lanes_of(parts[0]);
  int count = each;
  Value* all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    Value* const wide = shuffled(ir, parts[i], parts[i], count, [&](int k) { return k < each ? k : -1; });
    all = shuffled(ir, all, wide, count + each, [](int k) { return k; });
    count += each;
  }
  return all;
}

}  // namespace

Val KernelEmitter::outer_value(size_t k) {
  const auto found = squares_.find(k);
  if (found == squares_.end()) return instruction(k_.exprs[k]);
  return {ir_.from_storage(found->second, k_.exprs[k].type)};
}

bool KernelEmitter::squares_follow(const Index& index, size_t l, int64_t count) const {
  int64_t rows = 1;
  for (size_t s = k_.loops.size(); s-- > 0;) {
    if (s == l) continue;
    if (index.coefficient(s) == k_.loops[l].size)
      return k_.loops[s].size >= count && rows <= ir_.target.tuning.square_rows;
    rows *= k_.loops[s].size;
  }
  return false;
}

std::vector<llvm::Value*> KernelEmitter::read_square(size_t k, size_t l, Value* begin, int width) {
  const Expr& e = k_.exprs[k];
  Type* const element = ir_.storage(e.type);
  const int n = lanes_;
  const int64_t apart = e.index.coefficient(k_.lane_loop);
  iv_[l] = begin;
  lanes_ = 1;
  Value* const first = b_.CreateGEP(element, bases_[e.buffer], lanes(e.index).scalar);
  lanes_ = n;
  const llvm::Align align(std::max(1U, element->getScalarSizeInBits() / 8));
  Values rows;
  if (apart == width && !mask_ && e.mask == kNoExpr) {  // the rows are contiguous in memory
    for (int i = 0; i < width; ++i) {
      Value* const p = b_.CreateGEP(element, first, b_.getInt64(static_cast<uint64_t>(i * n)));
      rows.push_back(b_.CreateAlignedLoad(ir_.wide(element, n), p, align));
    }
    Value* const all = joined(ir_, std::move(rows));
    Values columns;
    for (int t = 0; t < width; ++t) {
      columns.push_back(shuffled(ir_, all, all, n, [&](int lane) { return lane * width + t; }));
    }
    return columns;
  }
  // Rows whose mask is false are loaded from an array of zeros.
  Value* const exists = e.mask == kNoExpr ? nullptr : emit_both(ir_, ir_.splat(val(e.mask), n).v, mask_);
  Value* zeros = nullptr;
  if (exists) {
    Type* const row = ir_.wide(element, width);
    zeros = slot(row);
    b_.CreateStore(llvm::Constant::getNullValue(row), zeros);
  }
  // Processors prefetch few sequences of addresses at the same time.
  const int64_t distance = ir_.target.tuning.squares_ahead;
  constexpr int64_t kPage = 4096;
  const bool far = std::abs(apart) * static_cast<int64_t>(align.value()) >= kPage;
  const bool many = k_.loops[l].size >= distance * width || squares_follow(e.index, l, distance);
  const bool ahead = far && !exists && k_.loops[k_.lane_loop].size > ir_.target.tuning.square_streams && many;
  for (int i = 0; i < n; ++i) {
    Value* at = b_.getInt64(static_cast<uint64_t>(i));
    // Lanes after the last one that is used load the last row again, so that no other memory is read.
    if (mask_) at = ir_.binary(llvm::Intrinsic::smin, at, b_.CreateSub(counted_, b_.getInt64(1)));
    Value* p = b_.CreateGEP(element, first, b_.CreateMul(at, llvm::ConstantInt::getSigned(at->getType(), apart)));
    if (exists) p = b_.CreateSelect(b_.CreateExtractElement(exists, static_cast<uint64_t>(i)), p, zeros);
    if (ahead) {
      b_.CreateIntrinsic(
          llvm::Intrinsic::prefetch, {b_.getPtrTy()},
          {b_.CreateGEP(element, p, b_.getInt64(static_cast<uint64_t>(distance) * static_cast<uint64_t>(width))),
           b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
    }
    Value* row = b_.CreateAlignedLoad(ir_.wide(element, width), p, align);
    if (width < n) row = shuffled(ir_, row, row, n, [&](int lane) { return lane < width ? lane : -1; });
    rows.push_back(row);
  }
  return transposed(ir_, std::move(rows));
}

void KernelEmitter::square(size_t l, Value* begin, int width, int skip, const std::function<void()>& body) {
  std::map<size_t, Values> columns;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.is_transposed(k)) columns[k] = read_square(k, l, begin, width);
  }
  if (k_.exprs.size() * static_cast<size_t>(width - skip) <= ir_.target.tuning.square_exprs) {
    for (int iteration = skip; iteration < width; ++iteration) {
      iv_[l] = begin;
      iv_plus_[l] = iteration;
      for (const auto& [k, vectors] : columns) squares_[k] = vectors[static_cast<size_t>(iteration)];
      body();
    }
    iv_plus_[l] = 0;
    squares_.clear();
    return;
  }
  for (const auto& [k, vectors] : columns) {
    Type* const vector = vectors[0]->getType();
    Value*& array = square_slots_[k];
    if (!array) array = slot(llvm::ArrayType::get(vector, static_cast<uint64_t>(lanes_)));
    for (int iteration = skip; iteration < width; ++iteration) {
      b_.CreateStore(vectors[static_cast<size_t>(iteration)],
                     b_.CreateGEP(vector, array, b_.getInt64(static_cast<uint64_t>(iteration))));
    }
  }
  loop(b_.getInt64(static_cast<uint64_t>(skip)), b_.getInt64(static_cast<uint64_t>(width)), 1, [&](Value* iteration) {
    for (const auto& [k, vectors] : columns) {
      Type* const vector = vectors[0]->getType();
      squares_[k] = b_.CreateLoad(vector, b_.CreateGEP(vector, square_slots_[k], iteration));
    }
    iv_[l] = b_.CreateAdd(begin, iteration);
    body();
  });
  squares_.clear();
}

void KernelEmitter::emit_squares(size_t l, const std::function<void()>& body) {
  const int64_t size = k_.loops[l].size;
  const int unroll = passes_.side_unroll();
  const int rest = static_cast<int>(size % unroll);
  const int64_t whole = size - rest;
  if (whole > 0) {
    loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(whole)), unroll, [&](Value* begin) {
      // All addresses of a square are `begin` plus constants. LLVM's loop strength reduction takes long to analyse
      // them; the intrinsic hides `begin` from it, and has no other effect.
      Value* const hidden = b_.CreateIntrinsic(llvm::Intrinsic::expect, {begin->getType()}, {begin, b_.getInt64(0)});
      square(l, hidden, unroll, 0, body);
    });
  }
  if (rest == 0) return;
  // The last iterations use a square that overlaps the one before it; if there is none, a narrower square.
  if (whole > 0) {
    square(l, b_.getInt64(static_cast<uint64_t>(size - unroll)), unroll, unroll - rest, body);
  } else {
    square(l, b_.getInt64(0), rest, 0, body);
  }
}

}  // namespace collet::codegen
