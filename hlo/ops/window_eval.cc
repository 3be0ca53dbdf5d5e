// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"
#include "hlo/ops/eval/taps.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// Evaluates reduce-window. Positions in padding and in holes of dilation are skipped; they are not filled with the
/// initial value.
class ReduceWindow {
 public:
  explicit ReduceWindow(const EvalInput& in)
      : in_(in),
        arrays_(in.operand_count() / 2),
        input_(in.operand(0).shape()),
        output_(in.instr.shape.is_tuple() ? in.instr.shape.element(0) : in.instr.shape),
        taps_(least_window(in.instr.as<WindowAttrs>().window, input_.dims(), output_.dims()), input_.dims(),
              output_.dims()),
        strides_(row_major_strides(input_.dims())),
        body_(in.module, in.instr.called[0], in.context) {
    // A body that is a single op on one array is computed without rounding in between, unless the window is small.
    const Op op = arrays_ == 1 ? single_op(in.module, in.instr.called[0]) : Op::INVALID;
    const Type type = in.operand(0).type();
    any_order_ = op != Op::INVALID && op_info(op).has(COLLET_OP_COMMUTES);
    if (any_order_ && !in.context.other_choices() && type == output_.type() && in.operand(1).type() == type)
      kernel_ = find_kernel(op, type);
    bits_ = type_info(type).bits;
    rounds_ = is_short(product(taps_.sizes()));
  }

  Expected<Literal> run() {
    COLLET_TRY(check_size(output_));
    if (body_.argument_count() != 2 * arrays_ || body_.result_count() != arrays_)
      return invalid_argument("a reducer takes two scalars per operand and returns one");
    for (size_t k = 0; k < arrays_; ++k) {
      values_.push_back(pack(in_.operand(k)));
      results_.push_back(
          Literal::uninitialized(in_.instr.shape.is_tuple() ? in_.instr.shape.element(k) : in_.instr.shape));
    }
    if (find_scan()) {
      COLLET_TRY(run_scan());
    } else if (output_.rank() == 0) {
      COLLET_TRY(run_lanes({}, 0, 0, 1));
    } else if (output_.element_count() > 0) {
      const Ints outer(output_.dims().begin(), output_.dims().end() - 1);
      const int64_t inner = output_.dims().back();
      int64_t base = 0;
      for (IndexIterator it(outer, {}); !it.done(); it.next(), base += inner)
        for (int64_t at = 0; at < inner; at += kLanes)
          COLLET_TRY(run_lanes(it.index(), base, at, std::min(kLanes, inner - at)));
    }
    if (!in_.instr.shape.is_tuple()) return std::move(results_[0]);
    return Literal::tuple(std::move(results_));
  }

 private:
  /// Computes outputs at..at+n of the innermost dimension; `outer` holds the indices of the other dimensions.
  Status run_lanes(std::span<const int64_t> outer, int64_t base, int64_t at, int64_t n) {
    for (size_t k = 0; k < arrays_; ++k) {
      const Literal& init = in_.operand(arrays_ + k);
      codec(init.type()).load(init.bytes(), 0, body_.argument(k), n);
    }
    const size_t rank = outer.size();
    for (IndexIterator tap(taps_.sizes(), {}); !tap.done(); tap.next()) {
      int64_t offset = 0;
      for (size_t d = 0; d < rank && offset >= 0; ++d) {
        const int64_t i = taps_.at(d, outer[d], tap.index()[d]);
        offset = i < 0 ? -1 : offset + i * strides_[d];
      }
      if (offset < 0) continue;
      // Finds runs of lanes whose tap reads an element.
      for (int64_t first = 0; first < n;) {
        if (rank < taps_.rank() && taps_.at(rank, at + first, tap.index()[rank]) < 0) {
          ++first;
          continue;
        }
        int64_t last = first + 1;
        while (last < n && rank < taps_.rank() && taps_.at(rank, at + last, tap.index()[rank]) >= 0) ++last;
        COLLET_TRY(fold(offset, at, first, last, rank < taps_.rank() ? tap.index()[rank] : 0));
        first = last;
      }
      if (in_.context.cancelled()) return Status(Code::Cancelled, "cancelled in a reduce-window");
    }
    for (size_t k = 0; k < arrays_; ++k) {
      const Codec& target = codec(results_[k].type());
      target.store(body_.argument(k), results_[k].mutable_bytes() + (base + at) * target.bytes, 1, n);
    }
    return ok_status();
  }

  Status fold(int64_t offset, int64_t at, int64_t first, int64_t last, int64_t tap) {
    const int64_t count = last - first;
    const size_t inner = taps_.rank() - (taps_.rank() > 0);
    for (size_t k = 0; k < arrays_; ++k) {
      const size_t size = lane_bytes(values_[k].wide());
      auto* to = static_cast<char*>(body_.argument(arrays_ + k));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t x = taps_.rank() ? taps_.at(inner, at + first + i, tap) * strides_[inner] : 0;
        std::memcpy(to + static_cast<size_t>(i) * size, values_[k].at(offset + x), size);
      }
    }
    if (kernel_) {
      char* acc = static_cast<char*>(body_.argument(0)) + static_cast<size_t>(first) * lane_bytes(values_[0].wide());
      apply(kernel_, bits_, acc, acc, body_.argument(1), count);
      if (rounds_) codec(held_type(in_.operand(0).type())).round(acc, count);
      return ok_status();
    }
    // The body works on lanes 0..count: the accumulators are moved there, and back afterwards.
    std::vector<LaneBuffer> kept(first > 0 ? arrays_ : 0);
    for (size_t k = 0; k < kept.size(); ++k) {
      const size_t size = lane_bytes(values_[k].wide());
      std::memcpy(kept[k].data(), body_.argument(k), kLanes * size);
      std::memmove(body_.argument(k), kept[k].bytes + static_cast<size_t>(first) * size,
                   static_cast<size_t>(count) * size);
    }
    // Lanes beyond `count` keep what they hold: run and feed_back touch only `count`.
    COLLET_TRY(body_.run(count));
    body_.feed_back(count);
    for (size_t k = 0; k < kept.size(); ++k) {
      const size_t size = lane_bytes(values_[k].wide());
      std::memcpy(kept[k].bytes + static_cast<size_t>(first) * size, body_.argument(k),
                  static_cast<size_t>(count) * size);
      std::memcpy(body_.argument(k), kept[k].data(), kLanes * size);
    }
    return ok_status();
  }

  /// Finds windows along one dimension that all begin before the array, or all end after it: one scan then computes all results.
  /// A scan from the front combines in the order of each window; one from the end combines in another order.
  bool find_scan() {
    if (is_short(product(taps_.sizes())) || output_.element_count() == 0) return false;
    for (size_t d = 0; d < taps_.rank(); ++d) {
      if (taps_.sizes()[d] == 1) continue;
      const WindowDim& w = taps_.dim(d);
      if (scan_ >= 0 || w.reversed || w.base_dilation != 1 || w.window_dilation != 1) return false;
      const int64_t n = input_.dims()[d], places = output_.dims()[d];
      const bool prefix = (places - 1) * w.stride <= w.low;
      const bool suffix = any_order_ && w.size - 1 - w.low >= n - 1;
      if (!prefix && !suffix) return false;
      scan_ = static_cast<int>(d);
      backwards_ = !prefix;
    }
    return scan_ >= 0;
  }

  Status run_scan() {
    const auto dim = static_cast<size_t>(scan_);
    const Ints to = row_major_strides(output_.dims());
    Ints outer(output_.dims().begin(), output_.dims().end());
    outer[dim] = 1;
    std::vector<int64_t> from_lines, to_lines;  // offsets at which the vectors of the array and of the result begin
    for (IndexIterator it(outer, {to}); !it.done(); it.next()) {
      int64_t offset = 0;
      for (size_t d = 0; d < outer.size() && offset >= 0; ++d) {
        const int64_t i = d == dim ? 0 : taps_.at(d, it.index()[d], 0);
        offset = i < 0 ? -1 : offset + i * strides_[d];
      }
      from_lines.push_back(offset);
      to_lines.push_back(it.offset(0));
      if (from_lines.size() < kLanes) continue;
      COLLET_TRY(scan_lines(from_lines, to_lines, to[dim]));
      from_lines.clear();
      to_lines.clear();
    }
    return from_lines.empty() ? ok_status() : scan_lines(from_lines, to_lines, to[dim]);
  }

  /// Scans one vector along the dimension. A vector that does not exist (offset -1) has no elements.
  Status scan_lines(std::span<const int64_t> from, std::span<const int64_t> to, int64_t to_step) {
    const auto dim = static_cast<size_t>(scan_), lines = from.size();
    const WindowDim& w = taps_.dim(dim);
    const int64_t n = input_.dims()[dim], places = output_.dims()[dim], step = strides_[dim];
    std::vector<int64_t> present;  // lanes in use; the others keep the initial value
    for (size_t l = 0; l < lines; ++l)
      if (from[l] >= 0) present.push_back(static_cast<int64_t>(l));
    const auto count = static_cast<int64_t>(present.size());
    for (size_t k = 0; k < arrays_; ++k) {
      const Literal& init = in_.operand(arrays_ + k);
      codec(init.type()).load(init.bytes(), 0, body_.argument(k), kLanes);
      for (size_t l = 0; l < lines; ++l)
        if (from[l] < 0) store_place(k, 0, to[l], places, to_step);
    }
    int64_t folded = 0;  // number of elements that are combined already, counted from where the scan begins
    for (int64_t i = 0; i < places && count > 0; ++i) {
      const int64_t place = backwards_ ? places - 1 - i : i;
      const int64_t first = place * w.stride - w.low;
      const int64_t seen = std::clamp<int64_t>(backwards_ ? n - first : first + w.size, 0, n);
      for (; folded < seen; ++folded) {
        const int64_t at = (backwards_ ? n - 1 - folded : folded) * step;
        for (size_t k = 0; k < arrays_; ++k) {
          const size_t size = lane_bytes(values_[k].wide());
          char* x = static_cast<char*>(body_.argument(arrays_ + k));
          for (int64_t l = 0; l < count; ++l)
            std::memcpy(x + static_cast<size_t>(l) * size,
                        values_[k].at(from[static_cast<size_t>(present[static_cast<size_t>(l)])] + at), size);
        }
        if (kernel_) {
          apply(kernel_, bits_, body_.argument(0), body_.argument(0), body_.argument(1), count);
        } else {
          COLLET_TRY(body_.run(count));
          body_.feed_back(count);
        }
        if (folded % 1024 == 0 && in_.context.cancelled())
          return Status(Code::Cancelled, "cancelled in a reduce-window");
      }
      for (size_t k = 0; k < arrays_; ++k)
        for (int64_t l = 0; l < count; ++l)
          store_place(k, l, to[static_cast<size_t>(present[static_cast<size_t>(l)])] + place * to_step, 1, 0);
    }
    return ok_status();
  }

  /// Stores lane `lane` of accumulator `k` in `count` elements of the result, from `place` on.
  void store_place(size_t k, int64_t lane, int64_t place, int64_t count, int64_t step) {
    const Codec& target = codec(results_[k].type());
    const char* from =
        static_cast<const char*>(body_.argument(k)) + static_cast<size_t>(lane) * lane_bytes(values_[k].wide());
    for (int64_t i = 0; i < count; ++i)
      target.store(from, results_[k].mutable_bytes() + (place + i * step) * target.bytes, 1, 1);
  }

  const EvalInput& in_;
  size_t arrays_;
  const Shape& input_;
  const Shape& output_;
  Taps taps_;
  Ints strides_;
  Body body_;
  Kernel kernel_ = nullptr;
  int bits_ = 0, scan_ = -1;
  bool any_order_ = false, backwards_ = false, rounds_ = false;
  std::vector<WideArray> values_;
  std::vector<Literal> results_;
};

Expected<Literal> evaluate_select_and_scatter(const EvalInput& in) {
  const Literal &operand = in.operand(0), &source = in.operand(1), &init = in.operand(2);
  const auto dims = operand.shape().dims(), places = source.shape().dims();
  const Taps taps(least_window(in.instr.as<WindowAttrs>().window, dims, places), dims, places);
  Body select(in.module, in.instr.called[0], in.context, 1), scatter(in.module, in.instr.called[1], in.context, 1);
  if (select.argument_count() != 2 || scatter.argument_count() != 2)
    return invalid_argument("select and scatter take two scalars");
  // With other_choices() the sum is not rounded in between.
  const Op op = in.context.other_choices() ? single_op(in.module, in.instr.called[1]) : Op::INVALID;
  const Kernel kernel = op != Op::INVALID ? find_kernel(op, operand.type()) : nullptr;
  const WideArray values = pack(operand), updates = pack(source);
  WideArray out(values.wide(), operand.element_count());
  const size_t size = lane_bytes(values.wide());
  LaneBuffer start;
  codec(init.type()).load(init.bytes(), 0, start.data(), 1);
  for (int64_t i = 0; i < out.count(); ++i) std::memcpy(out.at(i), start.data(), size);
  const Ints strides = row_major_strides(operand.shape().dims());
  int64_t s = 0;
  for (IndexIterator it(source.shape().dims(), {}); !it.done(); it.next(), ++s) {
    if (s % 4096 == 0 && in.context.cancelled()) return Status(Code::Cancelled, "cancelled in select-and-scatter");
    int64_t held = -1;
    for (IndexIterator tap(taps.sizes(), {}); !tap.done(); tap.next()) {
      int64_t at = 0;
      for (size_t d = 0; d < taps.rank() && at >= 0; ++d) {
        const int64_t i = taps.at(d, it.index()[d], tap.index()[d]);
        at = i < 0 ? -1 : at + i * strides[d];
      }
      if (at < 0) continue;
      if (held >= 0) {
        std::memcpy(select.argument(0), values.at(held), size);
        std::memcpy(select.argument(1), values.at(at), size);
        COLLET_TRY(select.run(1));
        if (*static_cast<const int64_t*>(select.result(0))) continue;
      }
      held = at;
    }
    if (held < 0) continue;
    if (kernel) {
      apply(kernel, type_info(operand.type()).bits, out.at(held), out.at(held), updates.at(s), 1);
      continue;
    }
    std::memcpy(scatter.argument(0), out.at(held), size);
    std::memcpy(scatter.argument(1), updates.at(s), size);
    COLLET_TRY(scatter.run(1));
    std::memcpy(out.at(held), scatter.result(0), size);
  }
  return unpack(out, in.instr.shape);
}

}  // namespace

Expected<Literal> evaluate_window(const EvalInput& in) {
  if (in.instr.op == Op::SELECT_AND_SCATTER) return evaluate_select_and_scatter(in);
  return ReduceWindow(in).run();
}

}  // namespace collet::hlo
