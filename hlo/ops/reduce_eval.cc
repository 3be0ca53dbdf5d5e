// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// True if an op may combine values in any order and grouping without changing the result.
bool folds_freely(Op op) {
  return op_info(op).has(COLLET_OP_COMMUTES);
}

/// The index space of a reduce: kept dimensions, then reduced ones.
struct Space {
  Ints kept, reduced;  // sizes
  Ints kept_strides, reduced_strides;
  Ints order;  // dimension numbers, the kept ones first
  Space(const Shape& shape, Dims dimensions) {
    const Ints strides = row_major_strides(shape.dims());
    Ints last;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      const bool is_reduced = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
      (is_reduced ? reduced : kept).push_back(shape.dims()[at]);
      (is_reduced ? reduced_strides : kept_strides).push_back(strides[at]);
      (is_reduced ? last : order).push_back(d);
    }
    order.insert(order.end(), last.begin(), last.end());
  }
};

/// A reduction of one array by one op. A long one is computed in a wider type and rounded once; a short one is rounded at each step.
class FastReduce {
 public:
  FastReduce(const EvalInput& in, Op op, const Space& space)
      : in_(in),
        operand_(in.operand(0)),
        type_(operand_.type()),
        kernel_(find_kernel(op, type_)),
        bits_(type_info(type_).bits),
        source_(codec(type_)),
        wide_(wide_of(type_)),
        space_(space) {
    source_.load(in.operand(1).bytes(), 0, init_.data(), kLanes);
    std::vector<Ints> strides{space.reduced_strides};
    reduced_ = space.reduced;
    merge_dims(reduced_, strides);
    reduced_strides_ = strides[0];
    rounds_ = is_short(product(space.reduced)) && wide_ != Wide::Int;
  }
  explicit operator bool() const { return kernel_; }

  Literal run() {
    Literal out = Literal::uninitialized(in_.instr.shape);
    uint8_t* to = out.mutable_bytes();
    const int64_t outputs = out.element_count();
    const bool rows = !reduced_strides_.empty() && reduced_strides_.back() == 1;
    const int64_t work = operand_.element_count();
    if (rows && !rounds_)
      parallel(in_.context, outputs, work, [&](int64_t begin, int64_t end) { fold_rows(to, begin, end); });
    else
      fold_columns(to);
    return out;
  }

 private:
  void combine(void* acc, const void* x, int64_t n) const { apply(kernel_, bits_, acc, acc, x, n); }
  size_t lane(int64_t n) const { return static_cast<size_t>(n) * lane_bytes(wide_); }

  // For a reduced innermost dimension: each output combines consecutive elements.
  void fold_rows(uint8_t* to, int64_t begin, int64_t end) const {
    const int64_t run = reduced_.back();
    const std::span<const int64_t> outer(reduced_.data(), reduced_.size() - 1);
    const Ints outer_strides(reduced_strides_.begin(), reduced_strides_.end() - 1);
    IndexIterator kept(space_.kept, {space_.kept_strides});
    IndexIterator it(outer, {outer_strides});
    kept.seek(begin);
    LaneBuffer acc, x;
    for (int64_t o = begin; o < end; ++o, kept.next()) {
      int64_t filled = 0;  // number of lanes of acc in use
      for (it.reset(); !it.done(); it.next())
        for (int64_t at = 0; at < run; at += kLanes) {
          const int64_t n = std::min(kLanes, run - at);
          const uint8_t* from = operand_.bytes() + (kept.offset(0) + it.offset(0) + at) * source_.bytes;
          source_.load(from, 1, filled ? x.data() : acc.data(), n);
          if (filled == 0) {
            filled = n;
            continue;
          }
          combine(acc.data(), x.data(), std::min(n, filled));
          if (n > filled) {
            std::memcpy(acc.bytes + lane(filled), x.bytes + lane(filled), lane(n - filled));
            filled = n;
          }
        }
      while (filled > 1) {
        const int64_t half = filled / 2;
        combine(acc.data(), acc.bytes + lane(filled - half), half);
        filled -= half;
      }
      LaneBuffer result;
      std::memcpy(result.data(), init_.bytes, lane(1));
      if (filled) combine(result.data(), acc.data(), 1);
      source_.store(result.data(), to + o * source_.bytes, 1, 1);
    }
  }

  // Computes many outputs at a time, one reduced position after the other.
  void fold_columns(uint8_t* to) const {
    Ints outer = space_.kept, outer_strides = space_.kept_strides;
    const int64_t run = outer.empty() ? 1 : outer.back(), stride = outer.empty() ? 1 : outer_strides.back();
    if (!outer.empty()) {
      outer.pop_back();
      outer_strides.pop_back();
    }
    int64_t o = 0;
    IndexIterator it(reduced_, {reduced_strides_});
    LaneBuffer acc, x;
    for (IndexIterator kept(outer, {outer_strides}); !kept.done() && run > 0; kept.next())
      for (int64_t at = 0; at < run; at += kLanes) {
        const int64_t n = std::min(kLanes, run - at);
        std::memcpy(acc.data(), init_.bytes, lane(n));
        for (it.reset(); !it.done(); it.next()) {
          source_.load(operand_.bytes() + (kept.offset(0) + at * stride + it.offset(0)) * source_.bytes, stride,
                       x.data(), n);
          combine(acc.data(), x.data(), n);
          if (rounds_) codec(held_type(type_)).round(acc.data(), n);
        }
        source_.store(acc.data(), to + o * source_.bytes, 1, n);
        o += n;
      }
  }

  const EvalInput& in_;
  const Literal& operand_;
  Type type_;
  Kernel kernel_;
  int bits_;
  const Codec& source_;
  Wide wide_;
  const Space& space_;
  LaneBuffer init_;
  Ints reduced_, reduced_strides_;
  bool rounds_ = false;
};

/// Reduces with any body and any number of arrays. The order of elements is kept, but not their grouping.
class BodyReduce {
 public:
  BodyReduce(const EvalInput& in, const Space& space)
      : in_(in),
        body_(in.module, in.instr.called[0], in.context),
        arrays_(in.operand_count() / 2),
        outputs_(product(space.kept)),
        reduced_(product(space.reduced)) {
    for (size_t k = 0; k < arrays_; ++k) values_.push_back(pack(in.operand(k), space.order));
    results_.resize(arrays_);
    for (size_t k = 0; k < arrays_; ++k) {
      const Shape& shape = in.instr.shape.is_tuple() ? in.instr.shape.element(k) : in.instr.shape;
      results_[k] = Literal::uninitialized(shape);
    }
  }

  Expected<Literal> run() {
    if (body_.argument_count() != 2 * arrays_ || body_.result_count() != arrays_)
      return invalid_argument("a reducer takes two scalars per operand and returns one");
    constexpr int64_t kFew = 64;
    if (outputs_ >= kFew || reduced_ < 8 * kFew) {
      for (int64_t o = 0; o < outputs_; o += kLanes) COLLET_TRY(fold_outputs(o, std::min(kLanes, outputs_ - o)));
    } else {
      for (int64_t o = 0; o < outputs_; ++o) COLLET_TRY(fold_segments(o));
    }
    if (!in_.instr.shape.is_tuple()) return std::move(results_[0]);
    return Literal::tuple(std::move(results_));
  }

 private:
  void load(size_t k, int64_t first, int64_t stride, void* to, int64_t n) {
    const WideArray& from = values_[k];
    const size_t size = lane_bytes(from.wide());
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(static_cast<char*>(to) + static_cast<size_t>(i) * size, from.at(first + i * stride), size);
  }
  void load_init(size_t k, int64_t n) {
    const Literal& init = in_.operand(arrays_ + k);
    codec(init.type()).load(init.bytes(), 0, body_.argument(k), n);
  }
  Status step(int64_t n) {
    if (++steps_ % 4096 == 0 && in_.context.cancelled()) return Status(Code::Cancelled, "cancelled in a reduction");
    COLLET_TRY(body_.run(n));
    body_.feed_back(n);
    return ok_status();
  }
  void store(int64_t first, int64_t n) {
    for (size_t k = 0; k < arrays_; ++k) {
      const Codec& target = codec(results_[k].type());
      target.store(body_.argument(k), results_[k].mutable_bytes() + first * target.bytes, 1, n);
    }
  }

  Status fold_outputs(int64_t first, int64_t n) {
    for (size_t k = 0; k < arrays_; ++k) load_init(k, n);
    for (int64_t r = 0; r < reduced_; ++r) {
      for (size_t k = 0; k < arrays_; ++k) load(k, first * reduced_ + r, reduced_, body_.argument(arrays_ + k), n);
      COLLET_TRY(step(n));
    }
    store(first, n);
    return ok_status();
  }

  // Computes one output: the elements are cut into segments of equal length that are combined in parallel lanes; then
  // the results of the segments are combined in order.
  Status fold_segments(int64_t output) {
    const int64_t base = output * reduced_, length = reduced_ / kLanes, tail = length * kLanes;
    std::vector<LaneBuffer> parts(arrays_);
    if (length > 0) {
      for (size_t k = 0; k < arrays_; ++k) load(k, base, length, body_.argument(k), kLanes);
      for (int64_t r = 1; r < length; ++r) {
        for (size_t k = 0; k < arrays_; ++k) load(k, base + r, length, body_.argument(arrays_ + k), kLanes);
        COLLET_TRY(step(kLanes));
      }
      for (size_t k = 0; k < arrays_; ++k)
        std::memcpy(parts[k].data(), body_.argument(k), lane_bytes(values_[k].wide()) * kLanes);
    }
    for (size_t k = 0; k < arrays_; ++k) load_init(k, 1);
    for (int64_t i = 0; length > 0 && i < kLanes; ++i) {
      for (size_t k = 0; k < arrays_; ++k) {
        const size_t size = lane_bytes(values_[k].wide());
        std::memcpy(body_.argument(arrays_ + k), parts[k].bytes + static_cast<size_t>(i) * size, size);
      }
      COLLET_TRY(step(1));
    }
    for (int64_t r = tail; r < reduced_; ++r) {
      for (size_t k = 0; k < arrays_; ++k) load(k, base + r, 1, body_.argument(arrays_ + k), 1);
      COLLET_TRY(step(1));
    }
    store(output, 1);
    return ok_status();
  }

  const EvalInput& in_;
  Body body_;
  size_t arrays_;
  int64_t outputs_, reduced_, steps_ = 0;
  std::vector<WideArray> values_;
  std::vector<Literal> results_;
};

Expected<Literal> evaluate_map(const EvalInput& in) {
  COLLET_TRY(check_size(in.instr.shape));
  Literal out = Literal::uninitialized(in.instr.shape);
  Body body(in.module, in.instr.called[0], in.context);
  if (body.argument_count() != in.operand_count() || body.result_count() != 1)
    return invalid_argument("map's computation takes one scalar per operand and returns one");
  const Codec& target = codec(out.type());
  uint8_t* to = out.mutable_bytes();
  for (int64_t at = 0; at < out.element_count(); at += kLanes) {
    const int64_t n = std::min(kLanes, out.element_count() - at);
    for (size_t k = 0; k < in.operand_count(); ++k) {
      // A scalar beside arrays counts for each element.
      const Codec& source = codec(in.operand(k).type());
      const bool once = in.operand(k).shape().rank() == 0;
      source.load(in.operand(k).bytes() + (once ? 0 : at * source.bytes), once ? 0 : 1, body.argument(k), n);
    }
    COLLET_TRY(body.run(n));
    target.store(body.result(0), to + at * target.bytes, 1, n);
  }
  return out;
}

}  // namespace

Expected<Literal> evaluate_reduce(const EvalInput& in) {
  if (in.instr.op == Op::MAP) return evaluate_map(in);
  const Space space(in.operand(0).shape(), in.instr.as<DimensionsAttrs>().dimensions);
  COLLET_TRY(check_size(in.instr.shape.is_tuple() ? in.instr.shape.element(0) : in.instr.shape));
  const Op op =
      in.operand_count() == 2 && !in.context.other_choices() ? single_op(in.module, in.instr.called[0]) : Op::INVALID;
  if (op != Op::INVALID && folds_freely(op) && !in.instr.shape.is_tuple() &&
      in.operand(0).type() == in.instr.shape.type() && in.operand(1).type() == in.instr.shape.type()) {
    FastReduce fast(in, op, space);
    if (fast) return fast.run();
  }
  return BodyReduce(in, space).run();
}

}  // namespace collet::hlo
