// SPDX-License-Identifier: Apache-2.0
#include "units.h"

namespace npu {

namespace kernel = collet::kernel;
using kernel::Array;
using kernel::half;
using kernel::Kernel;
using kernel::Loop;
using kernel::Op;

namespace {

// A window that slides over an array: out[p] = f(... f(init, x[p * stride + k * dilation - padding]) ...).
template <class T>
void pool(const Op& op) {
  using W = kernel::Wide<T>;
  const collet_window w = op.attributes<collet_window_attrs>().window;
  const Array &x = op.operand(0), &y = op.result();
  const std::vector<int64_t> xs = kernel::strides_of(x);
  const auto* from = reinterpret_cast<const T*>(x.memory);
  const T init = *reinterpret_cast<const T*>(op.operand(1).memory);
  auto* to = reinterpret_cast<T*>(y.memory);
  std::vector<Loop> window;
  for (uint32_t d = 0; d < y.rank; ++d) window.push_back({op.list(w.size)[d], 1, 0});
  const std::vector<int64_t> ks = kernel::strides_of({0, 0, 0, y.rank, op.list(w.size)});
  for (uint64_t i = 0; i < y.elements; ++i) {
    W sum = init;
    int64_t taps = 1;
    for (const Loop& loop : window) taps *= loop.extent;
    for (int64_t k = 0; k < taps; ++k) {
      int64_t rest = static_cast<int64_t>(i), tap = k, at = 0;
      bool inside = true;
      for (uint32_t d = y.rank; d-- > 0; rest /= y.dims[d], tap /= op.list(w.size)[d]) {
        const int64_t place = rest % y.dims[d] * op.list(w.stride)[d] +
                              tap % op.list(w.size)[d] * op.list(w.window_dilation)[d] - op.list(w.padding_low)[d];
        inside = inside && place >= 0 && place < x.dims[d];
        at += place * xs[d];
      }
      if (!inside) continue;
      const W value = from[at];
      switch (op.combine()) {
        case COLLET_COMBINE_MAXIMUM:
          sum = kernel::maximum(sum, value);
          break;
        case COLLET_COMBINE_MINIMUM:
          sum = kernel::minimum(sum, value);
          break;
        default:
          sum = static_cast<W>(sum + value);
      }
    }
    to[i] = kernel::narrow<T>(sum);
  }
}

template <class T>
Kernel pooling() {
  Kernel row{COLLET_OP_REDUCE_WINDOW, kernel::types_of<T>(), kernel::types_of<T>(),
             [](kernel::Device&, const Op& op) { pool<T>(op); }};
  row.takes = [](const Op& op) -> kernel::Verdict {
    const collet_window w = op.attributes<collet_window_attrs>().window;
    const int64_t* holes = op.list(w.base_dilation);
    if (op.operand_count() != 2) return "windows over one array only";
    if (std::count(holes, holes + w.base_dilation.count, 1) != w.base_dilation.count)
      return "no windows over dilated arrays";
    const uint32_t how = op.combine();
    return how == COLLET_COMBINE_ADD || how == COLLET_COMBINE_MAXIMUM || how == COLLET_COMBINE_MINIMUM
               ? kernel::Verdict(true)
               : "only windows of sums and extremes";
  };
  return row;
}

// The functions of the units. Those of the headers are right and simple, as a simulation needs them; a driver would write the
// machine's instructions here.
std::vector<Kernel> make_rows() {
  kernel::Rows rows(collet::commands::address_of);
  rows.arithmetic<float>().arithmetic<half>().arithmetic<int32_t>().arithmetic<int8_t>().arithmetic<uint8_t>();
  rows.arithmetic<bool>().functions<float>().functions<half>();
  rows.unary<float>(COLLET_OP_ERF, [](float x) { return std::erf(x); });
  rows.compare<float>().compare<half>().compare<int32_t>().compare<int8_t>().compare<uint8_t>().compare<bool>();
  rows.select(kTypes).moves(kTypes).gather(kTypes).iota<float>().iota<half>().iota<int32_t>();
  rows.convert<bool, int8_t, uint8_t, int32_t, half, float>();
  rows.reduce<float, double>().reduce<half, double>().reduce<int32_t>().reduce<int8_t>().reduce<uint8_t>();
  rows.reduce<bool>().choose<float, int32_t>().choose<half, int32_t>().choose<int8_t, int32_t>();
  rows.product<int8_t, int32_t, int32_t>().product<uint8_t, int32_t, int32_t>().product<int32_t, int32_t, int32_t>();
  rows.product<half, half, double>().product<half, float, double>().product<float, float, double>();
  rows.convolution<int8_t, int32_t, int32_t>().convolution<uint8_t, int32_t, int32_t>();
  rows.convolution<half, half, double>().convolution<half, float, double>().convolution<float, float, double>();
  for (Kernel& row : std::vector<Kernel>{pooling<float>(), pooling<half>(), pooling<int32_t>(), pooling<int8_t>(),
                                         pooling<uint8_t>()}) {
    rows.add(std::move(row));
  }
  return rows.take();
}

uint64_t tiles(int64_t extent) {
  return (static_cast<uint64_t>(extent) + kTile - 1) / kTile;
}

}  // namespace

std::shared_ptr<const std::vector<Kernel>> all_rows() {
  static const auto* const rows =
      new std::shared_ptr<const std::vector<Kernel>>(std::make_shared<const std::vector<Kernel>>(make_rows()));
  return *rows;
}

Engine engine_of(const Op& op, uint64_t* cycles) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < op.operand_count() + op.result_count(); ++i) most = std::max(most, op.arrays()[i].elements);
  *cycles = 4 + most / kTile;
  const uint32_t opcode = op.opcode();
  if (opcode == COLLET_OP_DOT || opcode == COLLET_OP_CONVOLUTION) {
    const uint32_t type = op.operand(0).type;
    uint64_t products = 0,
             steps = 0;  // multiplications, and steps of the matrix engine: one for each tile and element of the sum
    if (opcode == COLLET_OP_DOT) {
      kernel::MatrixProduct p;
      kernel::matrix_product_of(op, &p);
      products = static_cast<uint64_t>(p.batch * p.m * p.n * p.k);
      steps = static_cast<uint64_t>(p.batch * p.k) * tiles(p.m) * tiles(p.n);
    } else {
      const kernel::Convolution c = kernel::convolution_of(op);
      int64_t positions = c.batch, taps = c.inputs;
      for (const auto& d : c.dimensions) positions *= d.output, taps *= d.kernel;
      products = static_cast<uint64_t>(positions * taps * c.outputs);
      steps = static_cast<uint64_t>(taps * c.feature_groups) * tiles(positions) * tiles(c.outputs / c.feature_groups);
    }
    // s32 and f32 are multiplied by the ALU.
    const bool narrow = type != COLLET_TYPE_F32 && type != COLLET_TYPE_S32;
    *cycles = narrow ? 16 + steps : 4 + products / kTile;
    return narrow ? kMatrix : kAlu;
  }
  switch (opcode) {
    case COLLET_OP_EXPONENTIAL:
    case COLLET_OP_EXPONENTIAL_MINUS_ONE:
    case COLLET_OP_LOG:
    case COLLET_OP_LOG_PLUS_ONE:
    case COLLET_OP_SQRT:
    case COLLET_OP_RSQRT:
    case COLLET_OP_CBRT:
    case COLLET_OP_TANH:
    case COLLET_OP_LOGISTIC:
    case COLLET_OP_ERF:
    case COLLET_OP_SINE:
    case COLLET_OP_COSINE:
    case COLLET_OP_POWER:
      return kTable;
    default:
      return kAlu;
  }
}

}  // namespace npu
