// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/windows.h"
#include "hlo/passes/simplify_rules.h"

namespace collet::hlo {
namespace {

constexpr InstrId kNo = InstrId::None;

/// Computes the window of `r` without taps and padding that meet no element of operand 0. `places` are the numbers of
/// window positions along each dimension.
class Least {
 public:
  Least(const RuleInput& r, std::span<const int64_t> places) : r_(r) {
    const Window& w = r.instr.as<WindowAttrs>().window;
    for (size_t d = 0; d < w.rank(); ++d) {
      const WindowDim dim = window_dim(w, d);
      const WindowDim least = least_window(dim, r.at(0).shape.dims()[d], places[d]);
      // A window that differs only in unused padding or in a stride that is never taken is left unchanged.
      const bool smaller = least.size != dim.size || least.window_dilation != dim.window_dilation ||
                           least.base_dilation != dim.base_dilation || (places[d] > 1 && least.stride != dim.stride);
      sees_nothing_ |= least.size == 0;
      changes_ |= smaller;
      dims_.push_back(smaller ? least : dim);
    }
  }
  bool sees_nothing() const { return sees_nothing_; }
  bool changes() const { return changes_; }
  const void* attrs() const {
    const auto list = [&](int64_t WindowDim::* member) {
      std::vector<int64_t> values;
      for (const WindowDim& dim : dims_) values.push_back(dim.*member);
      return r_.module.dims(values);
    };
    auto* attrs = r_.module.make<WindowAttrs>();
    attrs->window.size = list(&WindowDim::size);
    attrs->window.stride = list(&WindowDim::stride);
    attrs->window.padding_low = list(&WindowDim::low);
    attrs->window.padding_high = list(&WindowDim::high);
    attrs->window.base_dilation = list(&WindowDim::base_dilation);
    attrs->window.window_dilation = list(&WindowDim::window_dilation);
    attrs->window.reversal = r_.instr.as<WindowAttrs>().window.reversal;
    return attrs;
  }

 private:
  const RuleInput& r_;
  std::vector<WindowDim> dims_;
  bool sees_nothing_ = false, changes_ = false;
};

bool is_static(const RuleInput& r) {
  for (InstrId o : r.instr.operands)
    if (r.module[o].shape.has_dynamic()) return false;
  return true;
}

InstrId reduce_window_least(const RuleInput& r) {
  const Shape& result = r.instr.shape.is_tuple() ? r.instr.shape.element(0) : r.instr.shape;
  if (!is_static(r) || result.has_dynamic() || result.element_count() == 0) return kNo;
  const Least least(r, result.dims());
  if (least.sees_nothing()) {
    std::vector<InstrId> initial;
    for (size_t i = r.instr.operands.size() / 2; i < r.instr.operands.size(); ++i)
      initial.push_back(r.b.broadcast(r.operand(i), result.dims(), {}));
    return r.instr.shape.is_tuple() ? r.b.tuple(initial) : initial[0];
  }
  if (!least.changes()) return kNo;
  return r.b.op(r.instr.op, r.instr.shape, r.instr.operands, least.attrs(), r.instr.called);
}

InstrId select_and_scatter_least(const RuleInput& r) {
  if (!is_static(r) || r.at(1).shape.element_count() == 0) return kNo;
  const Least least(r, r.at(1).shape.dims());
  if (least.sees_nothing()) return r.b.broadcast(r.operand(2), r.instr.shape.dims(), {});
  if (!least.changes()) return kNo;
  return r.b.op(r.instr.op, r.instr.shape, r.instr.operands, least.attrs(), r.instr.called);
}

constexpr Rule kRules[] = {
    {Op::REDUCE_WINDOW, "a window without what only padding is under folds the same", reduce_window_least},
    {Op::SELECT_AND_SCATTER, "a window without what only padding is under chooses the same", select_and_scatter_least},
};

}  // namespace

std::span<const Rule> window_rules() {
  return kRules;
}

}  // namespace collet::hlo
