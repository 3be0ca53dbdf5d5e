// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// Checks that each dimension of one array is named once: the batch or feature dimension `a`, the other one `b`, and the
// spatial ones.
Status check_numbers(Op op, std::string_view label, std::string_view side, int64_t a, int64_t b, const Dims& spatial) {
  std::vector<int64_t> all(spatial.begin(), spatial.end());
  all.push_back(a);
  all.push_back(b);
  if (first_outside(all, static_cast<int64_t>(all.size())) < 0 && !has_repeats(all)) return ok_status();
  return broken(op, label, "the ", side, "'s dimension numbers must name each dimension once, but are ",
                std::span<const int64_t>(all), " (spatial, then the two others)");
}

Status check_ranks(const InferInput& in, const ConvolutionAttrs& a) {
  const DimLabels& l = a.labels;
  const size_t spatial = l.input_spatial.size();
  COLLET_TRY(expect_array(in, 0, "lhs"));
  COLLET_TRY(expect_array(in, 1, "rhs"));
  if (l.kernel_spatial.size() != spatial)
    return broken(in.op, "C17", "lhs has ", spatial, " spatial dimensions, rhs has ", l.kernel_spatial.size());
  if (l.output_spatial.size() != spatial)
    return broken(in.op, "C19", "lhs has ", spatial, " spatial dimensions, the result has ", l.output_spatial.size());
  if (a.window.rank() != spatial)
    return broken(in.op, "C2", "the window has ", a.window.rank(), " dimensions, but there are ", spatial,
                  " spatial dimensions");
  for (size_t i = 0; i < 2; ++i)
    if (static_cast<size_t>(in.operand(i).rank()) != spatial + 2)
      return broken(in.op, "C1", i ? "rhs" : "lhs", " must have rank ", spatial + 2, ", but is ", in.operand(i));
  COLLET_TRY(check_numbers(in.op, "C13", "input", l.input_batch, l.input_feature, l.input_spatial));
  COLLET_TRY(check_numbers(in.op, "C18", "kernel", l.kernel_input_feature, l.kernel_output_feature, l.kernel_spatial));
  return check_numbers(in.op, "C20", "output", l.output_batch, l.output_feature, l.output_spatial);
}

int64_t at(const Shape& shape, int64_t dimension) {
  return shape.dim(static_cast<int>(dimension));
}

// True if `size` is known and is not a multiple of `count`.
bool leaves_rest(int64_t size, int64_t count) {
  return size != kUnbounded && size % count != 0;
}

Status check_groups(const InferInput& in, const ConvolutionAttrs& a, int64_t feature_groups, int64_t batch_groups) {
  const DimLabels& l = a.labels;
  const int64_t batch = at(in.operand(0), l.input_batch), features = at(in.operand(0), l.input_feature);
  const int64_t kernel_in = at(in.operand(1), l.kernel_input_feature);
  const int64_t kernel_out = at(in.operand(1), l.kernel_output_feature);
  if (leaves_rest(batch, batch_groups))
    return broken(in.op, "C10", "batch size ", batch, " is no multiple of batch_group_count ", batch_groups);
  if (leaves_rest(features, feature_groups))
    return broken(in.op, "C11", "input feature size ", features, " is no multiple of feature_group_count ",
                  feature_groups);
  if (features != kUnbounded && !sizes_agree(features / feature_groups, kernel_in))
    return broken(in.op, "C14", "kernel input feature size is ", Size{kernel_in}, ", but must be ", features, " / ",
                  feature_groups);
  if (leaves_rest(kernel_out, batch_groups))
    return broken(in.op, "C15", "kernel output feature size ", kernel_out, " is no multiple of batch_group_count ",
                  batch_groups);
  if (leaves_rest(kernel_out, feature_groups))
    return broken(in.op, "C16", "kernel output feature size ", kernel_out, " is no multiple of feature_group_count ",
                  feature_groups);
  return ok_status();
}

}  // namespace

Expected<Shape> infer_convolution(const InferInput& in) {
  const auto& a = in.as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  const Shape& lhs = in.operand(0);
  const Shape& rhs = in.operand(1);
  const int64_t feature_groups = a.feature_groups, batch_groups = a.batch_groups;
  if (feature_groups < 1) return broken(in.op, "C21", "feature_group_count ", feature_groups, " is not positive");
  if (batch_groups < 1) return broken(in.op, "C22", "batch_group_count ", batch_groups, " is not positive");
  if (feature_groups > 1 && batch_groups > 1)
    return broken(in.op, "C23", "feature_group_count ", feature_groups, " and batch_group_count ", batch_groups,
                  " cannot both exceed 1");
  COLLET_TRY(check_ranks(in, a));
  COLLET_TRY(check_groups(in, a, feature_groups, batch_groups));
  DimList base;
  for (size_t i = 0; i < a.window.rank(); ++i) {
    const int64_t size = at(rhs, l.kernel_spatial[i]);
    if (!sizes_agree(size, a.window.size[i]))
      return broken(in.op, "C25", "window size ", a.window.size[i], " of spatial dimension ", i,
                    " is not that of the kernel ", rhs);
    base.push(lhs, l.input_spatial[i]);
  }
  COLLET_ASSIGN(const Shape windows,
                windows_over(in.op, base.shape(lhs.type()), a.window, lhs.type(), {"", "C3", "C6", "C8", "C2"}));
  if (rhs.is_dynamic(static_cast<int>(l.kernel_output_feature)) && at(rhs, l.kernel_output_feature) != kUnbounded)
    return broken(in.op, "", "the kernel's output feature dimension must not be dynamic: ", rhs);
  DimList dims = DimList::of(lhs);
  const int64_t batch = at(lhs, l.input_batch);
  dims.set(static_cast<size_t>(l.output_batch), batch == kUnbounded ? batch : batch / batch_groups,
           lhs.is_dynamic(static_cast<int>(l.input_batch)));
  dims.set(static_cast<size_t>(l.output_feature), at(rhs, l.kernel_output_feature), false);
  for (size_t i = 0; i < a.window.rank(); ++i)
    dims.set(static_cast<size_t>(l.output_spatial[i]), windows.dim(static_cast<int>(i)),
             windows.is_dynamic(static_cast<int>(i)) || rhs.is_dynamic(static_cast<int>(l.kernel_spatial[i])));
  const bool stated = in.declared && in.declared->is_array();
  return dims.shape(stated ? in.declared->type() : wider_type(lhs.type(), rhs.type()));
}

Status verify_convolution(const Module&, const Instruction& instr) {
  const Dims& precision = instr.as<ConvolutionAttrs>().precision;
  if (first_outside(precision, static_cast<int64_t>(Precision::HIGHEST) + 1) >= 0)
    return broken(instr.op, "", "no such precision: ", precision);
  return ok_status();
}

}  // namespace collet::hlo
