// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>
#include <collet/kernel_quantized.hpp>
#include <cstdlib>

#include "sdk/runtime/testing/kernels.h"

// A test device that has kernels for layers of quantized models only: products of integers with all that follows them,
// and quantization. docs/patterns.md shows the row of the product.

namespace {

using collet::kernel::Array;
using collet::kernel::Backend;
using collet::kernel::Device;
using collet::kernel::Kernel;
using collet::kernel::MatrixProduct;
using collet::kernel::Op;
using collet::kernel::Options;
using collet::kernel::QuantizedGroup;
using collet::kernel::TypeSet;
using collet::kernel::Verdict;
using collet::testing::KernelsDevice;

constexpr TypeSet stored{COLLET_TYPE_S8, COLLET_TYPE_U8};
constexpr TypeSet every{COLLET_TYPE_S8, COLLET_TYPE_U8, COLLET_TYPE_S32, COLLET_TYPE_F32};

template <class T>
T element(const Array& array, uint64_t i) {
  return reinterpret_cast<const T*>(KernelsDevice::at(array.memory) + array.offset)[i];
}

double load(const Array& array, uint64_t i) {
  switch (array.type) {
    case COLLET_TYPE_S8:
      return element<int8_t>(array, i);
    case COLLET_TYPE_U8:
      return element<uint8_t>(array, i);
    case COLLET_TYPE_S32:
      return element<int32_t>(array, i);
    default:
      return static_cast<double>(element<float>(array, i));
  }
}

void store(const Array& array, uint64_t i, float value) {
  char* const data = KernelsDevice::at(array.memory) + array.offset;
  if (array.type == COLLET_TYPE_F32) {
    reinterpret_cast<float*>(data)[i] = value;
  } else {
    data[i] = static_cast<char>(static_cast<int32_t>(value));
  }
}

Kernel integer_dot() {
  Kernel row{COLLET_OP_CALL, every, every, nullptr};
  row.pattern = "integer_dot";
  row.features = QuantizedGroup::kFeatures;
  row.takes = [](const Op& op) -> Verdict {
    MatrixProduct p;
    if (!stored.has(op.operand(0).type) || !stored.has(op.operand(1).type)) return "only products of s8 and u8";
    if (!collet::kernel::product_of_group(op, &p)) return "only products of matrices";
    return op.result().type == COLLET_TYPE_F32 || stored.has(op.result().type) ? Verdict(true)
                                                                               : "only results of f32, s8 and u8";
  };
  row.prepare = [](Device&, const Op& op) -> std::any { return QuantizedGroup(op); };
  row.run = [](Device&, const Op& op) {
    const auto& group = op.state<QuantizedGroup>();
    const Array &x = op.operand(0), &w = op.operand(1);
    MatrixProduct p;
    collet::kernel::product_of_group(op, &p);
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t m = 0; m < p.m; ++m) {
        for (int64_t n = 0; n < p.n; ++n) {
          int32_t sum = 0;
          const auto at = static_cast<uint64_t>(b * p.out_b + m * p.out_m + n * p.out_n);
          const int32_t x_zero = group.zero_of(group.lhs_zero_point, op, at, load);
          const int32_t w_zero = group.zero_of(group.rhs_zero_point, op, at, load);
          for (int64_t k = 0; k < p.k; ++k) {
            const double x_k = load(x, static_cast<uint64_t>(b * p.lhs_b + m * p.lhs_m + k * p.lhs_k));
            const double w_k = load(w, static_cast<uint64_t>(b * p.rhs_b + k * p.rhs_k + n * p.rhs_n));
            sum += (static_cast<int32_t>(x_k) - x_zero) * (static_cast<int32_t>(w_k) - w_zero);
          }
          store(op.result(), at, group.result(op, sum, at, load));
        }
      }
    }
  };
  return row;
}

/// A convolution in the region of a group, and the padding of its input.
struct Convolution {
  collet_convolution_attrs attributes{};
  std::vector<int64_t> input, kernel;                ///< extents; those of the input with padding
  std::vector<int64_t> stride, low, base, dilation;  ///< of the window; empty: 1, 0, 1, 1
  std::vector<int64_t> in, of, out;                  ///< spatial dimensions of input, kernel and output
  std::vector<int64_t> pad_low, pad_interior;        ///< for each dimension of the input; empty: none
  double pad_value = 0;
  bool reversed = false;
  QuantizedGroup group;

  explicit Convolution(const Op& op) : group(op) {
    const collet::kernel::RegionGraph graph(op.program(), op.raw().regions.first);
    for (uint32_t i = 0; i < graph.op_count(); ++i) {
      if (graph.op(i)->opcode != COLLET_OP_CONVOLUTION) continue;
      const std::vector<Array> arrays = graph.arrays(graph.op(i));
      const Op one(op.program(), graph.op(i), arrays.data());
      attributes = one.attributes<collet_convolution_attrs>();
      const auto list = [&](collet_range range) {
        return std::vector<int64_t>(one.list(range), one.list(range) + range.count);
      };
      input.assign(arrays[0].dims, arrays[0].dims + arrays[0].rank);
      kernel.assign(arrays[1].dims, arrays[1].dims + arrays[1].rank);
      stride = list(attributes.window.stride);
      low = list(attributes.window.padding_low);
      base = list(attributes.window.base_dilation);
      dilation = list(attributes.window.window_dilation);
      for (const int64_t one_reversed : list(attributes.window.reversal)) reversed |= one_reversed != 0;
      in = list(attributes.labels.input_spatial);
      of = list(attributes.labels.kernel_spatial);
      out = list(attributes.labels.output_spatial);
    }
    pad_low = group.integers("lhs_pad_low");
    pad_interior = group.integers("lhs_pad_interior");
    pad_value = group.number("lhs_pad_value", 0);
  }
};

int64_t at_or(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

/// Reads an element of the input of a convolution by its place in the padded input.
double load_padded(const Convolution& c, const Array& x, const std::vector<int64_t>& place) {
  int64_t from = 0;
  for (size_t d = 0; d < place.size(); ++d) {
    const int64_t step = at_or(c.pad_interior, d, 0) + 1, at = place[d] - at_or(c.pad_low, d, 0);
    if (at < 0 || at % step != 0 || at / step >= x.dims[d]) return c.pad_value;
    from = from * x.dims[d] + at / step;
  }
  return load(x, static_cast<uint64_t>(from));
}

int32_t sum_at(const Convolution& c, const Op& op, const std::vector<int64_t>& output, uint64_t element) {
  const int32_t x_zero = c.group.zero_of(c.group.lhs_zero_point, op, element, load);
  const int32_t w_zero = c.group.zero_of(c.group.rhs_zero_point, op, element, load);
  const collet_dim_labels& labels = c.attributes.labels;
  const auto dim = [](int64_t d) { return static_cast<size_t>(d); };
  const Array& w = op.operand(1);
  int32_t sum = 0;
  for (uint64_t i = 0; i < w.elements; ++i) {
    // Each element of the kernel that belongs to this output feature meets one of the input.
    std::vector<int64_t> tap(c.kernel.size());
    uint64_t rest = i;
    for (size_t d = tap.size(); d-- > 0; rest /= static_cast<uint64_t>(c.kernel[d]))
      tap[d] = static_cast<int64_t>(rest % static_cast<uint64_t>(c.kernel[d]));
    const int64_t feature = output[dim(labels.output_feature)];
    if (tap[dim(labels.kernel_output_feature)] != feature) continue;
    const int64_t inputs = c.kernel[dim(labels.kernel_input_feature)];
    const int64_t outputs = c.kernel[dim(labels.kernel_output_feature)] / c.attributes.feature_groups;
    std::vector<int64_t> place(c.input.size());
    place[dim(labels.input_batch)] = output[dim(labels.output_batch)];
    place[dim(labels.input_feature)] = feature / outputs * inputs + tap[dim(labels.kernel_input_feature)];
    bool inside = true;
    for (size_t s = 0; s < c.in.size(); ++s) {
      const int64_t at = output[dim(c.out[s])] * at_or(c.stride, s, 1) + tap[dim(c.of[s])] * at_or(c.dilation, s, 1) -
                         at_or(c.low, s, 0);
      const int64_t base = at_or(c.base, s, 1);
      inside &= at >= 0 && at % base == 0 && at / base < c.input[dim(c.in[s])];
      place[dim(c.in[s])] = at / base;
    }
    if (!inside) continue;
    sum += (static_cast<int32_t>(load_padded(c, op.operand(0), place)) - x_zero) *
           (static_cast<int32_t>(load(w, i)) - w_zero);
  }
  return sum;
}

Kernel integer_convolution() {
  Kernel row{COLLET_OP_CALL, every, every, nullptr};
  row.pattern = "integer_convolution";
  row.features = QuantizedGroup::kFeatures | COLLET_FEATURE_PADDING;
  row.takes = [](const Op& op) -> Verdict {
    if (!stored.has(op.operand(0).type) || !stored.has(op.operand(1).type)) return "only products of s8 and u8";
    const Convolution c(op);
    if (c.attributes.batch_groups != 1 || c.reversed) return "no groups of batches, no reversed windows";
    return op.result().type == COLLET_TYPE_F32 || stored.has(op.result().type) ? Verdict(true)
                                                                               : "only results of f32, s8 and u8";
  };
  row.prepare = [](Device&, const Op& op) -> std::any { return Convolution(op); };
  row.run = [](Device&, const Op& op) {
    const auto& c = op.state<Convolution>();
    const Array& y = op.result();
    for (uint64_t i = 0; i < y.elements; ++i) {
      std::vector<int64_t> place(y.rank);
      uint64_t rest = i;
      for (size_t d = place.size(); d-- > 0; rest /= static_cast<uint64_t>(y.dims[d]))
        place[d] = static_cast<int64_t>(rest % static_cast<uint64_t>(y.dims[d]));
      store(y, i, c.group.result(op, sum_at(c, op, place, i), i, load));
    }
  };
  return row;
}

Kernel integer_add() {
  Kernel row{COLLET_OP_CALL, every, stored, nullptr};
  row.pattern = "integer_add";
  row.features = QuantizedGroup::kFeatures;
  row.takes = [](const Op& op) {
    const bool known = stored.has(op.operand(0).type) && stored.has(op.operand(1).type);
    return known ? Verdict(true) : "only sums of s8 and u8";
  };
  row.prepare = [](Device&, const Op& op) -> std::any { return QuantizedGroup(op); };
  row.run = [](Device&, const Op& op) {
    const auto& group = op.state<QuantizedGroup>();
    for (uint64_t i = 0; i < op.result().elements; ++i) {
      const auto lhs = static_cast<int32_t>(load(op.operand(0), i)), rhs = static_cast<int32_t>(load(op.operand(1), i));
      store(op.result(), i, group.result(op, group.added(op, lhs, rhs, i, load), i, load));
    }
  };
  return row;
}

/// A row for `quantize` of floats or `requantize` of sums.
template <class From>
Kernel quantization(const char* pattern, uint32_t from) {
  Kernel row{COLLET_OP_CALL, every, stored, nullptr};
  row.pattern = pattern;
  row.features = QuantizedGroup::kFeatures;
  row.takes = [from](const Op& op) { return op.operand(0).type == from ? Verdict(true) : "only s32 and f32"; };
  row.prepare = [](Device&, const Op& op) -> std::any { return QuantizedGroup(op); };
  row.run = [](Device&, const Op& op) {
    const auto& group = op.state<QuantizedGroup>();
    for (uint64_t i = 0; i < op.result().elements; ++i) {
      store(op.result(), i, group.result(op, element<From>(op.operand(0), i), i, load));
    }
  };
  return row;
}

Backend describe() {
  Backend backend;
  backend.name = "npu";
  backend.options = {"features"};  // COLLET_FEATURE_* that all rows state, as a number, in place of theirs
  backend.configure = [](const Options& options, Backend* mine) {
    const auto found = options.values.find("features");
    if (found == options.values.end()) return;
    for (Kernel& row : mine->kernels)
      if (!row.pattern.empty()) row.features = static_cast<uint32_t>(std::strtoul(found->second.c_str(), nullptr, 0));
  };
  backend.device_kind = "NPU";
  for (const uint32_t type : {COLLET_TYPE_S8, COLLET_TYPE_U8, COLLET_TYPE_S32, COLLET_TYPE_F32}) {
    backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.kernels = {integer_dot(), integer_convolution(), integer_add(),
                     quantization<int32_t>("requantize", COLLET_TYPE_S32),
                     quantization<float>("quantize", COLLET_TYPE_F32)};
  backend.open_device = [](uint32_t) { return std::make_unique<KernelsDevice>(false); };
  return backend;
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
