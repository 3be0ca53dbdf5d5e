// SPDX-License-Identifier: Apache-2.0
// Reductions over the rows of a matrix that are computed row by row. The accumulators of one strip of columns are in a local array.
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

#include <algorithm>
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
namespace {

bool is_float_sum(const Reduction& r) {
  return r.combine == COLLET_COMBINE_ADD && collet_type_kind(r.types[0]) == COLLET_KIND_FLOAT;
}

}  // namespace

void KernelEmitter::emit_lane_loop(Value* begin, Value* end, const std::function<void()>& body) {
  const int w = k_.lanes;
  const bool full = fills_vectors(k_.lane_loop, w);
  Value* const main_end = full ? end : b_.CreateAdd(begin, whole_vectors(b_.CreateSub(end, begin), w));
  loop(begin, main_end, w, [&](Value* i) {
    iv_[k_.lane_loop] = i;
    lanes_ = w;
    body();
    lanes_ = 1;
  });
  if (full) return;
  if (ir_.target.masks) return emit_tail(k_.lane_loop, main_end, end, w, body);
  loop(main_end, end, 1, [&](Value* i) {
    iv_[k_.lane_loop] = i;
    body();
  });
}

void KernelEmitter::combine_rows(Value* first, int count, const std::vector<Value*>& accumulators) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const bool of_columns = passes_.level_of(static_cast<ExprId>(k)) == k_.outer;
    if (of_columns && passes_.stage_of(static_cast<ExprId>(k)) == 0) vals_[k] = instruction(k_.exprs[k]);
  }
  iv_[k_.outer] = first;
  std::vector<Val> sums;
  /// Local variables for the extrema of the current block of rows.
  std::vector<std::vector<Value*>> extrema(k_.reductions.size());
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (count > 1 && is_extremum(k_.reductions[r])) {
      extrema[r] = extremum_slots(k_.reductions[r].types[0], lanes_);
      start_extremum(extrema[r], k_.reductions[r], lanes_);
    }
    if (is_float_sum(k_.reductions[r])) {
      sums.push_back({nullptr});  // the rows are added to each other before they are added to the accumulator
      continue;
    }
    Type* const t = ir_.wide(ir_.scalar(k_.reductions[r].types[0]), lanes_);
    sums.push_back({b_.CreateAlignedLoad(t, accumulators[r], llvm::Align(t->getScalarSizeInBits() / 8))});
  }
  for (int row = 0; row < count; ++row) {
    iv_plus_[k_.outer] = row;
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (passes_.level_of(static_cast<ExprId>(k)) > k_.outer && passes_.needs(0, k))
        vals_[k] = instruction(k_.exprs[k]);
    }
    for (size_t r = 0; r < k_.reductions.size(); ++r) {
      const Reduction& reduction = k_.reductions[r];
      const Contraction contraction(ir_, reduction.contract || !is_wide(reduction.types[0]));
      const Val x = ir_.splat(val(reduction.inputs[0]), lanes_);
      if (!extrema[r].empty()) {
        accumulate_extremum(extrema[r], reduction, x.v);
        continue;
      }
      sums[r] = sums[r].v ? emit_combine(ir_, reduction.combine, reduction.types[0], sums[r], x) : x;
    }
  }
  iv_plus_[k_.outer] = 0;
  for (size_t r = 0; r < sums.size(); ++r) {
    const Reduction& reduction = k_.reductions[r];
    if (!extrema[r].empty()) {
      sums[r] = emit_combine(ir_, reduction.combine, reduction.types[0], sums[r],
                             extremum(extrema[r], reduction, lanes_, false));
    }
    if (is_float_sum(reduction)) {
      Type* const t = sums[r].v->getType();
      const Val held{b_.CreateAlignedLoad(t, accumulators[r], llvm::Align(t->getScalarSizeInBits() / 8))};
      sums[r] = emit_combine(ir_, reduction.combine, reduction.types[0], held, sums[r]);
    }
    b_.CreateAlignedStore(sums[r].v, accumulators[r], llvm::Align(sums[r].v->getType()->getScalarSizeInBits() / 8));
  }
}

void KernelEmitter::reduce_rows() {
  const bool ranged = k_.lane_loop == 0;
  Value* const all_begin = ranged ? static_cast<Value*>(function_->getArg(1)) : b_.getInt64(0);
  Value* const all_end = ranged ? static_cast<Value*>(function_->getArg(2))
                                : b_.getInt64(static_cast<uint64_t>(k_.loops[k_.lane_loop].size));
  const int64_t rows = k_.loops[k_.outer].size;
  const int64_t width = passes_.strip();
  std::vector<Value*> accumulators;
  std::vector<Value*> block_sums;  ///< null where a reduction is not summed in blocks
  std::vector<Value*> lost;        ///< the rounding errors of block_sums
  // An addition takes `each` rows, so fewer rows make a block where they are taken one by one.
  const int each = passes_.rows();
  const int64_t steps = ir_.target.tuning.sum_steps;
  const int64_t few = std::min<int64_t>(4 * ir_.target.tuning.sum_rows, 2 * steps * each);
  const int64_t block = std::max<int64_t>(std::min<int64_t>(ir_.target.tuning.sum_rows / each, steps), 1) * each;
  for (const Reduction& r : k_.reductions) {
    // The last vector of a strip is stored without a mask, so the array is one vector longer.
    Type* const strip = llvm::ArrayType::get(ir_.scalar(r.types[0]), static_cast<uint64_t>(width + k_.lanes));
    accumulators.push_back(slot(strip));
    block_sums.push_back(is_float_sum(r) && rows > few ? slot(strip) : nullptr);
    lost.push_back(block_sums.back() ? slot(strip) : nullptr);
  }
  loop(all_begin, all_end, width, [&](Value* begin) {
    Value* const end =
        ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(begin, b_.getInt64(static_cast<uint64_t>(width))), all_end);
    const auto at = [&](const std::vector<Value*>& arrays, size_t r) {
      Value* const column = b_.CreateSub(iv_[k_.lane_loop], begin);
      return b_.CreateGEP(ir_.scalar(k_.reductions[r].types[0]), arrays[r], column);
    };
    const auto load = [&](const std::vector<Value*>& arrays, size_t r) {
      Type* const t = ir_.scalar(k_.reductions[r].types[0]);
      return Val{b_.CreateAlignedLoad(ir_.wide(t, lanes_), at(arrays, r), llvm::Align(t->getScalarSizeInBits() / 8))};
    };
    const auto store = [&](const std::vector<Value*>& arrays, size_t r, const Val& x) {
      Value* const v = ir_.splat(x, lanes_).v;
      b_.CreateAlignedStore(v, at(arrays, r), llvm::Align(v->getType()->getScalarSizeInBits() / 8));
    };
    const auto identity = [&](size_t r) {
      return combine_identity(ir_, k_.reductions[r].combine, k_.reductions[r].types[0]);
    };
    emit_lane_loop(begin, end, [&] {
      for (size_t r = 0; r < accumulators.size(); ++r) {
        store(accumulators, r, identity(r));
        if (block_sums[r]) store(block_sums, r, identity(r));
        if (lost[r]) store(lost, r, identity(r));
      }
    });
    const auto take = [&](Value* first, int count) {
      emit_lane_loop(begin, end, [&] {
        std::vector<Value*> places;
        for (size_t r = 0; r < accumulators.size(); ++r) places.push_back(at(accumulators, r));
        combine_rows(first, count, places);
      });
    };
    const int64_t whole = rows / each * each;
    loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(whole)), block, [&](Value* first) {
      Value* const last =
          ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(block))),
                     b_.getInt64(static_cast<uint64_t>(whole)));
      loop(first, last, each, [&](Value* row) { take(row, each); });
      if (std::all_of(block_sums.begin(), block_sums.end(), [](Value* v) { return v == nullptr; })) return;
      emit_lane_loop(begin, end, [&] {
        for (size_t r = 0; r < accumulators.size(); ++r) {
          if (!block_sums[r]) continue;
          const auto [sum, rest] = add_block(load(block_sums, r), load(lost, r), load(accumulators, r));
          store(block_sums, r, sum);
          store(lost, r, rest);
          store(accumulators, r, identity(r));
        }
      });
    });
    if (whole < rows) take(b_.getInt64(static_cast<uint64_t>(whole)), static_cast<int>(rows - whole));
    emit_lane_loop(begin, end, [&] {
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        const bool of_columns = passes_.level_of(static_cast<ExprId>(k)) == k_.outer;
        if (of_columns && passes_.stage_of(static_cast<ExprId>(k)) == 0) vals_[k] = instruction(k_.exprs[k]);
      }
      for (size_t r = 0; r < accumulators.size(); ++r) {
        Val x = load(accumulators, r);
        if (block_sums[r]) x = add_block(load(block_sums, r), load(lost, r), x).first;
        finish_reduction(r, {x});
      }
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        const bool of_columns = passes_.level_of(static_cast<ExprId>(k)) == k_.outer;
        if (of_columns && passes_.stage_of(static_cast<ExprId>(k)) > 0 && k_.exprs[k].op != ExprOp::kReduced) {
          vals_[k] = instruction(k_.exprs[k]);
        }
      }
      for (const Store& s : k_.stores) this->store(s);
    });
  });
}

}  // namespace collet::codegen
