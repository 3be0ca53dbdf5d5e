// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/product.h"
#include "hlo/ops/eval/strided.h"
#include "hlo/ops/eval/taps.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// Most elements of one block of patches, which bounds the memory of the patch matrix.
constexpr int64_t kBlock = 1 << 18;

Ints sizes_of(const Shape& shape, Dims dims) {
  Ints sizes;
  for (int64_t d : dims) sizes.push_back(shape.dim(static_cast<int>(d)));
  return sizes;
}

Ints order_of(std::initializer_list<int64_t> before, Dims middle, std::initializer_list<int64_t> after) {
  Ints order(before);
  order.insert(order.end(), middle.begin(), middle.end());
  order.insert(order.end(), after);
  return order;
}

/// Computes a convolution as the product of a matrix of input patches with the kernel. Arrays are in the order [batch,
/// spatial, feature], the kernel in [spatial, input feature, output feature].
class Convolution {
 public:
  explicit Convolution(const EvalInput& in)
      : in_(in),
        attrs_(in.instr.as<ConvolutionAttrs>()),
        labels_(attrs_.labels),
        input_(in.operand(0).shape()),
        kernel_(in.operand(1).shape()),
        shape_(in.instr.shape),
        input_spatial_(sizes_of(input_, labels_.input_spatial)),
        output_spatial_(sizes_of(shape_, labels_.output_spatial)),
        taps_(whole_window(attrs_.window), input_spatial_, output_spatial_),
        positions_(product(output_spatial_)),
        window_(product(taps_.sizes())) {}

  Expected<Literal> run() {
    COLLET_TRY(check_size(shape_));
    if (taps_.rank() != input_spatial_.size()) return invalid_argument("the window has another rank than dim_labels");
    const int64_t feature_groups = std::max<int64_t>(1, attrs_.feature_groups);
    const int64_t batch_groups = std::max<int64_t>(1, attrs_.batch_groups);
    groups_ = std::max(feature_groups, batch_groups);
    batch_ = shape_.dim(static_cast<int>(labels_.output_batch));
    features_ = input_.dim(static_cast<int>(labels_.input_feature));
    group_features_ = kernel_.dim(static_cast<int>(labels_.kernel_input_feature));
    outputs_ = kernel_.dim(static_cast<int>(labels_.kernel_output_feature));
    group_outputs_ = outputs_ / groups_;
    if (group_features_ * feature_groups != features_ || group_outputs_ * groups_ != outputs_)
      return invalid_argument("the groups of the convolution do not divide its features");
    depth_ = window_ * group_features_;
    const Product sums(in_.operand(0).type(), in_.operand(1).type(), shape_.type(), shape_.element_count() * depth_,
                       depth_, in_.context.other_choices());
    WideArray input =
        widen_to(pack(in_.operand(0), order_of({labels_.input_batch}, labels_.input_spatial, {labels_.input_feature})),
                 sums.wide(), in_.operand(0).type());
    WideArray kernel = widen_to(
        pack(in_.operand(1),
             order_of({}, labels_.kernel_spatial, {labels_.kernel_input_feature, labels_.kernel_output_feature})),
        sums.wide(), in_.operand(1).type());
    WideArray out(sums.wide(), batch_ * positions_ * outputs_);
    for (int64_t g = 0; g < groups_; ++g) {
      WideArray part = kernel_part(kernel, g);
      const int64_t batch_offset = batch_groups > 1 ? g * batch_ : 0;
      const int64_t feature_offset = batch_groups > 1 ? 0 : g * group_features_;
      parallel(in_.context, batch_ * positions_, batch_ * positions_ * group_outputs_ * depth_ / 4,
               [&](int64_t begin, int64_t end) {
                 run_rows(sums, input, batch_offset, feature_offset, part, out, g * group_outputs_, begin, end);
               });
      if (in_.context.cancelled()) return Status(Code::Cancelled, "cancelled in a convolution");
    }
    return place(sums.finish(std::move(out)));
  }

 private:
  WideArray kernel_part(WideArray& kernel, int64_t g) const {
    WideArray part(kernel.wide(), depth_ * group_outputs_);
    const size_t row = static_cast<size_t>(group_outputs_) * lane_bytes(kernel.wide());
    for (int64_t i = 0; i < depth_ && row; ++i)
      std::memcpy(part.at(i * group_outputs_), kernel.at(i * outputs_ + g * group_outputs_), row);
    return part;
  }

  /// Computes a range of rows of the product; a row is a pair (batch, output position).
  void run_rows(const Product& sums, WideArray& input, int64_t batch_offset, int64_t feature_offset, WideArray& kernel,
                WideArray& out, int64_t output_offset, int64_t begin, int64_t end) const {
    const int64_t block = std::clamp<int64_t>(depth_ ? kBlock / depth_ : kBlock, 1, std::max<int64_t>(1, end - begin));
    WideArray patches(sums.wide(), block * depth_), results(sums.wide(), block * group_outputs_);
    const size_t lane = lane_bytes(sums.wide());
    IndexIterator it(output_spatial_, {});
    if (begin < end) it.seek(begin % positions_);
    for (int64_t row = begin; row < end; row += block) {
      const int64_t rows = std::min(block, end - row);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t n = batch_offset + (row + r) / positions_;
        fill_patch(input, n, feature_offset, it.index(), patches, r * depth_);
        it.next();
        if (it.done()) it.reset();
      }
      std::memset(results.at(0), 0, static_cast<size_t>(rows * group_outputs_) * lane);
      sums.add(rows, group_outputs_, depth_, patches, 0, kernel, 0, results, 0);
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(out.at((row + r) * outputs_ + output_offset), results.at(r * group_outputs_),
                    static_cast<size_t>(group_outputs_) * lane);
    }
  }

  void fill_patch(const WideArray& input, int64_t n, int64_t feature, std::span<const int64_t> position,
                  WideArray& patches, int64_t to) const {
    const size_t bytes = static_cast<size_t>(group_features_) * lane_bytes(input.wide());
    const size_t rank = taps_.rank();
    for (IndexIterator tap(taps_.sizes(), {}); !tap.done(); tap.next(), to += group_features_) {
      int64_t at = n;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t i = taps_.at(d, position[d], tap.index()[d]);
        if (i < 0) {
          at = -1;
          break;
        }
        at = at * input_spatial_[d] + i;
      }
      if (at < 0)
        std::memset(patches.at(to), 0, bytes);
      else
        std::memcpy(patches.at(to), input.at(at * features_ + feature), bytes);
    }
  }

  /// Transposes from [batch, spatial, feature] to the order of the result.
  Literal place(const WideArray& values) const {
    Literal out = Literal::uninitialized(shape_);
    const Codec& target = codec(shape_.type());
    const Ints strides = row_major_strides(shape_.dims());
    Ints dims{batch_}, steps{strides[static_cast<size_t>(labels_.output_batch)]};
    for (size_t d = 0; d < output_spatial_.size(); ++d) {
      dims.push_back(output_spatial_[d]);
      steps.push_back(strides[static_cast<size_t>(labels_.output_spatial[d])]);
    }
    const int64_t feature_step = strides[static_cast<size_t>(labels_.output_feature)];
    int64_t at = 0;
    uint8_t* to = out.mutable_bytes();
    for (IndexIterator it(dims, {steps}); !it.done(); it.next(), at += outputs_)
      target.store(values.at(at), to + it.offset(0) * target.bytes, feature_step, outputs_);
    return out;
  }

  const EvalInput& in_;
  const ConvolutionAttrs& attrs_;
  const DimLabels& labels_;
  const Shape &input_, &kernel_, &shape_;
  Ints input_spatial_, output_spatial_;
  Taps taps_;
  int64_t positions_, window_;
  int64_t groups_ = 1, batch_ = 0, features_ = 0, group_features_ = 0, outputs_ = 0, group_outputs_ = 0, depth_ = 0;
};

}  // namespace

Expected<Literal> evaluate_convolution(const EvalInput& in) {
  return Convolution(in).run();
}

}  // namespace collet::hlo
