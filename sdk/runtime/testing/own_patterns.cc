// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>

#include <cmath>
#include <cstdlib>

#include "sdk/runtime/testing/kernels.h"

// A test device that has two groups of ops of its own, which it declares as texts, and nothing else: the scale of a row with
// two results, and a pooling of products. The option `wrong` makes it compute one of them wrongly.

namespace {

using collet::kernel::Array;
using collet::kernel::Backend;
using collet::kernel::Device;
using collet::kernel::Kernel;
using collet::kernel::Op;
using collet::kernel::Options;
using collet::kernel::TypeSet;
using collet::testing::KernelsDevice;

constexpr const char* kScale = R"(HloModule own.scale
where $T in {f32}, $N % 8 == 0, $N <= 64, $eps > 0, $eps < 0.01

add {
  a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT c = $T[] add(a, b)
}

ENTRY main {
  x = $T[$B...,$N] parameter(0)
  w = $T[$N] parameter(1)
  squares = $T[$B...,$N] multiply(x, x)
  zero = $T[] constant(0)
  sum = $T[$B...] reduce(squares, zero), dimensions={${#B}}, to_apply=add
  eps = $T[] constant($eps)
  epss = $T[$B...] broadcast(eps), dimensions={}
  more = $T[$B...] add(sum, epss)
  scale = $T[$B...] rsqrt(more)
  scales = $T[$B...,$N] broadcast(scale), dimensions={${@B}}
  ws = $T[$B...,$N] broadcast(w), dimensions={${#B}}
  scaled = $T[$B...,$N] multiply(x, scales)
  y = $T[$B...,$N] multiply(scaled, ws)
  ROOT both = ($T[$B...,$N], $T[$B...]) tuple(y, scale)
}
)";

constexpr const char* kPool = R"(HloModule own.pool
where $T in {f32}, $K in {2, 3}, $H >= $K, $W >= $K, $H <= 24, $W <= 24, $N <= 4, $C <= 8

most {
  a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT c = $T[] maximum(a, b)
}

ENTRY main {
  x = $T[$N,$H,$W,$C] parameter(0)
  y = $T[$N,$H,$W,$C] parameter(1)
  sum = $T[$N,$H,$W,$C] add(x, y)
  low = $T[] constant(-inf)
  ROOT z = $T[$N,${($H-$K)/2+1},${(W-K)/2+1},$C] reduce-window(sum, low), window={size=1x${K}x${K}x1 stride=1x2x2x1}, to_apply=most
}
)";

float* at(const Array& array) {
  return reinterpret_cast<float*>(KernelsDevice::at(array.memory) + array.offset);
}

Kernel scale(bool wrong) {
  Kernel row{COLLET_OP_CALL, TypeSet{COLLET_TYPE_F32}, TypeSet{COLLET_TYPE_F32}, nullptr};
  row.pattern = "own.scale";
  row.pattern_text = kScale;
  row.cost_ns = [](const Op& op) { return 100 + static_cast<double>(op.operand(0).elements); };
  row.run = [wrong](Device&, const Op& op) {
    const Array &x = op.operand(0), &w = op.operand(1);
    const float epsilon = std::strtof(op.pattern_attribute("eps").c_str(), nullptr);
    for (uint64_t r = 0; r < x.elements / w.elements; ++r) {
      const float* from = at(x) + r * w.elements;
      float sum = 0;
      for (uint64_t i = 0; i < w.elements; ++i) sum += from[i] * from[i];
      const float factor = 1 / std::sqrt(sum + (wrong ? 2 : 1) * epsilon);
      at(op.result(1))[r] = factor;
      for (uint64_t i = 0; i < w.elements; ++i) at(op.result(0))[r * w.elements + i] = from[i] * factor * at(w)[i];
    }
  };
  return row;
}

Kernel pool(bool wrong) {
  Kernel row{COLLET_OP_CALL, TypeSet{COLLET_TYPE_F32}, TypeSet{COLLET_TYPE_F32}, nullptr};
  row.pattern = "own.pool";
  row.pattern_text = kPool;
  row.cost_ns = [](const Op& op) { return 100 + static_cast<double>(op.operand(0).elements); };
  row.run = [wrong](Device&, const Op& op) {
    const Array &x = op.operand(0), &y = op.operand(1), &z = op.result();
    const int64_t size = std::atoi(op.pattern_attribute("K").c_str()) - (wrong ? 1 : 0);
    const int64_t h = x.dims[1], w = x.dims[2], c = x.dims[3];
    int64_t to = 0;
    for (int64_t n = 0; n < z.dims[0]; ++n) {
      for (int64_t i = 0; i < z.dims[1]; ++i) {
        for (int64_t j = 0; j < z.dims[2]; ++j) {
          for (int64_t k = 0; k < c; ++k, ++to) {
            float most = -HUGE_VALF;
            for (int64_t a = 0; a < size; ++a) {
              for (int64_t b = 0; b < size; ++b) {
                const int64_t from = ((n * h + 2 * i + a) * w + 2 * j + b) * c + k;
                most = collet::kernel::maximum(most, at(x)[from] + at(y)[from]);
              }
            }
            at(z)[to] = most;
          }
        }
      }
    }
  };
  return row;
}

Backend describe() {
  Backend backend;
  backend.name = "own_patterns";
  backend.device_kind = "Own patterns";
  backend.types.push_back({COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  backend.kernels = {scale(false), pool(false)};
  backend.options = {"wrong"};
  backend.configure = [](const Options& options, Backend* mine) {
    const auto wrong = options.values.find("wrong");
    if (wrong == options.values.end()) return;
    mine->kernels = {scale(wrong->second == "scale"), pool(wrong->second == "pool")};
    // A text that cannot be read, and one of another name.
    if (wrong->second == "text")
      mine->kernels[1].pattern_text = "HloModule own.pool\nENTRY e {\n  x = $T[4] parameter(0)\n}\n";
    if (wrong->second == "name") mine->kernels[1].pattern_text = kScale;
  };
  backend.open_device = [](uint32_t) { return std::make_unique<KernelsDevice>(false); };
  return backend;
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
