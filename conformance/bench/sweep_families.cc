// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/sweep_families.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace collet::bench {
namespace {

using Dims = std::vector<int64_t>;
using Made = std::optional<SweepProgram>;

std::string str(int64_t n) {
  return std::to_string(n);
}

template <typename List>
std::string joined(const List& list, const char* between = ",") {
  std::string out;
  for (const auto& one : list) {
    if (!out.empty()) out += between;
    if constexpr (std::is_convertible_v<decltype(one), std::string>)
      out += one;
    else
      out += str(one);
  }
  return out;
}

Dims numbers(const std::string& list) {
  Dims out;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    out.push_back(std::stoll(list.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::string shape(const std::string& type, const Dims& dims) {
  return type + "[" + joined(dims) + "]";
}

double product(const Dims& dims) {
  double out = 1;
  for (const int64_t d : dims) out *= static_cast<double>(d);
  return out;
}

// Returns how many f32 operations one of a type counts for.
double weight(const std::string& type) {
  if (type == "f64" || type == "s64" || type == "u64") return 2;
  if (type == "c64") return 4;
  if (type == "c128") return 8;
  if (type == "f16" || type == "s32" || type.starts_with("f8")) return 2;
  if (type == "s8" || type == "u8") return 0.5;
  return 1;
}

int64_t bytes_of(const std::string& type) {
  const auto at = type.find_first_of("0123456789");
  return type.starts_with("f8") ? 1 : std::max<int64_t>(std::stoll(type.substr(at)) / 8, 1);
}

// A program with an entry of these lines; `before`: further computations.
std::string module(const std::string& lines, const std::string& before = {}) {
  return "HloModule sweep\n" + before + "ENTRY e {\n" + lines + "}\n";
}

// A computation of two scalars.
std::string binary(const std::string& name, const std::string& op, const std::string& type) {
  return name + " {\n  a = " + type + "[] parameter(0)\n  b = " + type + "[] parameter(1)\n  ROOT r = " + type + "[] " +
         op + "(a, b)\n}\n";
}

// ---- products and convolutions

Made dot(const SweepChoice& c) {
  const std::string type = c.text("type"), order = c.text("order");
  const int64_t b = c.number("batch"), m = c.number("m"), n = c.number("n"), k = c.number("k");
  const bool lt = order[0] == 't', rt = order[1] == 't';
  const std::string to = type == "s8"                                                ? "s32"
                         : type == "bf16" || type == "f16" || type.starts_with("f8") ? "f32"
                                                                                     : type;
  const Dims left = lt ? Dims{b, k, m} : Dims{b, m, k}, right = rt ? Dims{b, n, k} : Dims{b, k, n};
  return SweepProgram{module("  x = " + shape(type, left) + " parameter(0)\n  y = " + shape(type, right) +
                             " parameter(1)\n  ROOT z = " + shape(to, {b, m, n}) +
                             " dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={" +
                             (lt ? "1" : "2") + "}, rhs_contracting_dims={" + (rt ? "2" : "1") + "}\n"),
                      2 * product({b, m, n, k}) * weight(type)};
}

// A convolution whose output has the size of its dilated input, divided by the stride.
Made convolution(const SweepChoice& c) {
  const std::string type = c.text("type"), layout = c.text("layout");
  const int64_t rank = c.number("rank"), batch = c.number("batch"), size = c.number("size"),
                channels = c.number("channels"), features = c.number("features"), window = c.number("window"),
                stride = c.number("stride"), base = c.number("base_dilation"), dilation = c.number("window_dilation"),
                groups = c.number("groups");
  if (channels % groups || features % groups) return {};
  const int64_t spread = (size - 1) * base + 1, extent = (window - 1) * dilation + 1, out = (spread - 1) / stride + 1;
  const auto times = [&](const std::string& one) {
    return joined(std::vector<std::string>(static_cast<size_t>(rank), one), "x");
  };
  const auto with = [&](int64_t first, int64_t last, int64_t each) {
    Dims dims = {first};
    if (layout == "nchw") dims.push_back(last);
    dims.insert(dims.end(), static_cast<size_t>(rank), each);
    if (layout == "nhwc") dims.push_back(last);
    return dims;
  };
  Dims kernel(static_cast<size_t>(rank), window);
  const Dims ends = {channels / groups, features};
  std::string spatial;
  for (int64_t d = 0; d < rank; ++d) spatial += str(d);
  std::string labels;
  if (layout == "nhwc") {
    kernel.insert(kernel.end(), ends.begin(), ends.end());
    labels = "b" + spatial + "f_" + spatial + "io->b" + spatial + "f";
  } else {
    kernel.insert(kernel.begin(), ends.rbegin(), ends.rend());
    labels = "bf" + spatial + "_oi" + spatial + "->bf" + spatial;
  }
  const int64_t low = (extent - 1) / 2, high = extent - 1 - low;
  const std::string attributes = "window={size=" + times(str(window)) + " stride=" + times(str(stride)) +
                                 " pad=" + times(str(low) + "_" + str(high)) + " lhs_dilate=" + times(str(base)) +
                                 " rhs_dilate=" + times(str(dilation)) + "}, dim_labels=" + labels +
                                 ", feature_group_count=" + str(groups);
  double taps = product({batch, features, channels / groups});
  for (int64_t d = 0; d < rank; ++d)
    taps *= static_cast<double>(out) * static_cast<double>(window) / static_cast<double>(base);
  return SweepProgram{module("  x = " + shape(type, with(batch, channels, size)) +
                             " parameter(0)\n  w = " + shape(type, kernel) + " parameter(1)\n  ROOT y = " +
                             shape(type, with(batch, features, out)) + " convolution(x, w), " + attributes + "\n"),
                      2 * taps * weight(type)};
}

std::vector<SweepParameter> convolution_parameters(int64_t rank, const std::string& layout, int64_t batch, int64_t size,
                                                   int64_t channels, int64_t window, bool fixed) {
  const auto list = [](const Dims& all, int64_t usual) {
    std::vector<std::string> values;
    for (const int64_t n : all) values.push_back(str(n));
    if (std::find(values.begin(), values.end(), str(usual)) == values.end()) {
      const auto at = std::find_if(all.begin(), all.end(), [&](int64_t n) { return n > usual; }) - all.begin();
      values.insert(values.begin() + at, str(usual));
    }
    const auto at = std::find(values.begin(), values.end(), str(usual)) - values.begin();
    return std::pair(values, static_cast<size_t>(at));
  };
  const auto make = [&](const std::string& name, const Dims& all, int64_t usual, bool is_fixed = false) {
    auto [values, at] = list(all, usual);
    return SweepParameter{name, std::move(values), at, is_fixed};
  };
  const Dims sizes = rank == 1   ? Dims{256, 1024, 4096, 16384, 65536}
                     : rank == 2 ? Dims{7, 14, 28, 56, 112}
                                 : Dims{4, 8, 12, 16, 24};
  const Dims windows = rank == 1   ? Dims{1, 3, 7, 16, 31, 64, 128, 512}
                       : rank == 2 ? Dims{1, 2, 3, 5, 7, 11, 15}
                                   : Dims{1, 2, 3, 5};
  return {{"layout", {"nhwc", "nchw"}, layout == "nchw" ? size_t{1} : size_t{0}, fixed},
          {"type", {"f32", "bf16", "f16", "f64"}, 0},
          make("rank", {rank}, rank),
          make("batch", {1, 2, 8, 32}, batch),
          make("size", sizes, size),
          make("channels", {1, 3, 8, 16, 32, 64, 128}, channels),
          make("features", {1, 3, 8, 16, 32, 64, 128}, channels),
          make("window", windows, window),
          make("stride", {1, 2, 3, 4, 7}, 1, fixed),
          make("base_dilation", {1, 2, 3, 4, 5, 8, 16, 17, 32}, 1, fixed),
          make("window_dilation", {1, 2, 3, 4, 8, 12}, 1, fixed),
          make("groups", {1, 2, 4, 8, 16, 32}, 1)};
}

// ---- reductions and windows

Made reduce(const SweepChoice& c) {
  const std::string type = c.text("type"), op = c.text("op");
  const Dims dims = numbers(c.text("shape")), axes = numbers(c.text("axes"));
  Dims left;
  for (size_t d = 0; d < dims.size(); ++d)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) left.push_back(dims[d]);
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  i = " + type +
                                 "[] constant(0)\n  ROOT y = " + shape(type, left) + " reduce(x, i), dimensions={" +
                                 joined(axes) + "}, to_apply=f\n",
                             binary("f", op, type)),
                      product(dims) * weight(type)};
}

// The position of the largest element.
Made argmax(const SweepChoice& c) {
  const std::string type = c.text("type"), index = c.text("index");
  const Dims dims = numbers(c.text("shape"));
  const int64_t axis = c.number("axis");
  Dims left = dims;
  left.erase(left.begin() + axis);
  const std::string pick = "f {\n  a = " + type + "[] parameter(0)\n  i = " + index + "[] parameter(1)\n  b = " + type +
                           "[] parameter(2)\n  j = " + index +
                           "[] parameter(3)\n  g = pred[] compare(a, b), direction=GE\n  v = " + type +
                           "[] select(g, a, b)\n  p = " + index + "[] select(g, i, j)\n  ROOT t = (" + type + "[], " +
                           index + "[]) tuple(v, p)\n}\n";
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  n = " + shape(index, dims) +
                                 " iota(), iota_dimension=" + str(axis) + "\n  l = " + type +
                                 "[] constant(-100)\n  z = " + index + "[] constant(0)\n  r = (" + shape(type, left) +
                                 ", " + shape(index, left) + ") reduce(x, n, l, z), dimensions={" + str(axis) +
                                 "}, to_apply=f\n  ROOT y = " + shape(index, left) + " get-tuple-element(r), index=1\n",
                             pick),
                      4 * product(dims) * weight(type)};
}

Made pooling(const SweepChoice& c) {
  const std::string type = c.text("type"), op = c.text("op"), layout = c.text("layout");
  const int64_t batch = c.number("batch"), size = c.number("size"), channels = c.number("channels"),
                window = c.number("window"), stride = c.number("stride"), dilation = c.number("window_dilation"),
                base = c.number("base_dilation");
  const int64_t spread = (size - 1) * base + 1, extent = (window - 1) * dilation + 1;
  if (extent > spread) return {};
  const int64_t out = (spread - extent) / stride + 1;
  const auto of = [&](int64_t each) {
    return layout == "nhwc" ? Dims{batch, each, each, channels} : Dims{batch, channels, each, each};
  };
  const auto by = [&](int64_t n) { return joined(layout == "nhwc" ? Dims{1, n, n, 1} : Dims{1, 1, n, n}, "x"); };
  const double taps = static_cast<double>(window) / static_cast<double>(base);
  // A window that is a sum or a maximum separates into rows and columns.
  return SweepProgram{module("  x = " + shape(type, of(size)) + " parameter(0)\n  i = " + type +
                                 "[] constant(0)\n  ROOT y = " + shape(type, of(out)) +
                                 " reduce-window(x, i), window={size=" + by(window) + " stride=" + by(stride) +
                                 " lhs_dilate=" + by(base) + " rhs_dilate=" + by(dilation) + "}, to_apply=f\n",
                             binary("f", op, type)),
                      product(of(out)) * std::max(1.0, taps * taps) * weight(type)};
}

Made scan(const SweepChoice& c) {
  const std::string type = c.text("type"), op = c.text("op"), direction = c.text("direction");
  const Dims dims = numbers(c.text("shape"));
  const int64_t axis = c.number("axis"), length = dims[static_cast<size_t>(axis)];
  Dims ones(dims.size(), 1), size = ones;
  size[static_cast<size_t>(axis)] = length;
  std::vector<std::string> pad(dims.size(), "0_0");
  pad[static_cast<size_t>(axis)] = direction == "forward" ? str(length - 1) + "_0" : "0_" + str(length - 1);
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  i = " + type +
                                 "[] constant(0)\n  ROOT y = " + shape(type, dims) +
                                 " reduce-window(x, i), window={size=" + joined(size, "x") +
                                 " pad=" + joined(pad, "x") + "}, to_apply=f\n",
                             binary("f", op, type)),
                      2 * product(dims) * weight(type)};
}

Made select_and_scatter(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t batch = c.number("batch"), size = c.number("size"), channels = c.number("channels"),
                window = c.number("window"), stride = c.number("stride");
  if (window > size) return {};
  const int64_t out = (size - window) / stride + 1;
  const Dims in = {batch, size, size, channels}, from = {batch, out, out, channels};
  const auto by = [](int64_t n) { return joined(Dims{1, n, n, 1}, "x"); };
  return SweepProgram{module("  x = " + shape(type, in) + " parameter(0)\n  g = " + shape(type, from) +
                                 " parameter(1)\n  i = " + type + "[] constant(0)\n  ROOT y = " + shape(type, in) +
                                 " select-and-scatter(x, g, i), window={size=" + by(window) + " stride=" + by(stride) +
                                 "}, select=s, scatter=f\n",
                             binary("f", "add", type) + "s {\n  a = " + type + "[] parameter(0)\n  b = " + type +
                                 "[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}\n"),
                      (product(from) * static_cast<double>(window * window) * 2 + product(in)) * weight(type)};
}

// ---- sorting

Made sort(const SweepChoice& c) {
  const std::string type = c.text("type"), direction = c.text("direction");
  const Dims dims = numbers(c.text("shape"));
  const int64_t axis = c.number("axis"), operands = c.number("operands");
  std::string compare = "f {\n  a = " + type + "[] parameter(0)\n  b = " + type + "[] parameter(1)\n", lines;
  std::vector<std::string> names, shapes;
  for (int64_t o = 0; o < operands; ++o) {
    const std::string of = o == 0 ? type : "s32", name = "x" + str(o);
    lines += "  " + name + " = " + shape(of, dims) + " parameter(" + str(o) + ")\n";
    names.push_back(name);
    shapes.push_back(shape(of, dims));
    if (o == 0) continue;
    compare += "  c" + str(o) + " = s32[] parameter(" + str(2 * o) + ")\n  d" + str(o) + " = s32[] parameter(" +
               str(2 * o + 1) + ")\n";
  }
  compare += "  ROOT r = pred[] compare(a, b), direction=" + direction + "\n}\n";
  const std::string to = operands == 1 ? shapes[0] : "(" + joined(shapes, ", ") + ")";
  lines += "  ROOT y = " + to + " sort(" + joined(names, ", ") + "), dimensions={" + str(axis) +
           "}, is_stable=" + c.text("stable") + ", to_apply=f\n";
  const double length = static_cast<double>(dims[static_cast<size_t>(axis)]);
  return SweepProgram{module(lines, compare),
                      8 * product(dims) * (1 + std::log2(length)) * static_cast<double>(operands),
                      {.modulo = 1 << 30}};
}

Made top_k(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t batch = c.number("batch"), length = c.number("length"), k = c.number("k");
  if (k > length) return {};
  return SweepProgram{
      module("  x = " + shape(type, {batch, length}) + " parameter(0)\n  ROOT y = (" + shape(type, {batch, k}) + ", " +
             shape("s32", {batch, k}) + ") topk(x), k=" + str(k) + ", largest=" + c.text("largest") + "\n"),
      4 * product({batch, length}) + 8 * product({batch, k}) * (1 + std::log2(static_cast<double>(k))),
      {.modulo = 1 << 30}};
}

// ---- transforms and factorizations

Made fft(const SweepChoice& c) {
  const std::string kind = c.text("kind"), real = c.text("type"), complex = real == "f32" ? "c64" : "c128";
  const int64_t batch = c.number("batch"), length = c.number("length");
  const bool to_real = kind == "IRFFT", from_real = kind == "RFFT";
  const Dims whole = {batch, length}, half = {batch, length / 2 + 1};
  return SweepProgram{
      module("  x = " + shape(from_real ? real : complex, to_real ? half : whole) +
             " parameter(0)\n  ROOT y = " + shape(to_real ? real : complex, from_real ? half : whole) +
             " fft(x), fft_type=" + kind + ", fft_length={" + str(length) + "}\n"),
      (to_real || from_real ? 2.5 : 5) * product(whole) * (1 + std::log2(static_cast<double>(length))) * weight(real)};
}

Made cholesky(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t batch = c.number("batch"), n = c.number("n");
  return SweepProgram{module("  x = " + shape(type, {batch, n, n}) + " parameter(0)\n  ROOT y = " +
                             shape(type, {batch, n, n}) + " cholesky(x), lower=" + c.text("lower") + "\n"),
                      product({batch, n, n, n}) / 3 * weight(type),
                      {.definite = true}};
}

Made triangular_solve(const SweepChoice& c) {
  const std::string type = c.text("type"), left = c.text("left_side");
  const int64_t batch = c.number("batch"), n = c.number("n"), columns = c.number("columns");
  const Dims right = left == "true" ? Dims{batch, n, columns} : Dims{batch, columns, n};
  return SweepProgram{
      module("  a = " + shape(type, {batch, n, n}) + " parameter(0)\n  b = " + shape(type, right) +
             " parameter(1)\n  ROOT y = " + shape(type, right) + " triangular-solve(a, b), left_side=" + left +
             ", lower=" + c.text("lower") + ", unit_diagonal=false, transpose_a=" + c.text("transpose") + "\n"),
      product({batch, n, n, columns}) * weight(type),
      {.definite = true}};
}

// ---- movement

Made transpose(const SweepChoice& c) {
  const std::string type = c.text("type");
  const Dims dims = numbers(c.text("shape")), order = numbers(c.text("order"));
  if (dims.size() != order.size()) return {};
  Dims to;
  for (const int64_t d : order) to.push_back(dims[static_cast<size_t>(d)]);
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  ROOT y = " + shape(type, to) +
                             " transpose(x), dimensions={" + joined(order) + "}\n")};
}

Made concatenate(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t operands = c.number("operands"), axis = c.number("axis"), rows = c.number("rows"),
                columns = c.number("columns");
  Dims to = {rows, columns};
  to[static_cast<size_t>(axis)] *= operands;
  std::string lines;
  std::vector<std::string> names;
  for (int64_t o = 0; o < operands; ++o) {
    names.push_back("x" + str(o));
    lines += "  " + names.back() + " = " + shape(type, {rows, columns}) + " parameter(" + str(o) + ")\n";
  }
  lines +=
      "  ROOT y = " + shape(type, to) + " concatenate(" + joined(names, ", ") + "), dimensions={" + str(axis) + "}\n";
  return SweepProgram{module(lines), product({400, operands})};
}

Made pad(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t axis = c.number("axis"), edge = c.number("edge"), interior = c.number("interior");
  Dims dims = {1024, 512};
  std::vector<std::string> config(2, "0_0_0");
  config[static_cast<size_t>(axis)] = str(edge) + "_" + str(edge) + "_" + str(interior);
  Dims to = dims;
  int64_t& n = to[static_cast<size_t>(axis)];
  n = n + (n - 1) * interior + 2 * edge;
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  z = " + type +
                             "[] constant(0)\n  ROOT y = " + shape(type, to) +
                             " pad(x, z), padding=" + joined(config, "x") + "\n")};
}

Made slice(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t axis = c.number("axis"), stride = c.number("stride"), start = c.number("start");
  const Dims dims = {2048, 1024};
  std::vector<std::string> ranges;
  Dims to;
  for (int64_t d = 0; d < 2; ++d) {
    const int64_t n = dims[static_cast<size_t>(d)], from = d == axis ? start : 0, by = d == axis ? stride : 1;
    ranges.push_back("[" + str(from) + ":" + str(n) + ":" + str(by) + "]");
    to.push_back((n - from + by - 1) / by);
  }
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  ROOT y = " + shape(type, to) +
                             " slice(x), slice={" + joined(ranges, ", ") + "}\n")};
}

Made reverse(const SweepChoice& c) {
  const std::string type = c.text("type");
  const Dims dims = {64, 128, 128};
  return SweepProgram{module("  x = " + shape(type, dims) + " parameter(0)\n  ROOT y = " + shape(type, dims) +
                             " reverse(x), dimensions={" + c.text("axes") + "}\n")};
}

Made broadcast(const SweepChoice& c) {
  const std::string type = c.text("type");
  const Dims dims = {128, 128, 128}, kept = numbers(c.text("kept"));
  return SweepProgram{module("  x = " + shape(type, Dims(kept.size(), 128)) + " parameter(0)\n  ROOT y = " +
                             shape(type, dims) + " broadcast(x), dimensions={" + joined(kept) + "}\n")};
}

Made gather(const SweepChoice& c) {
  const std::string type = c.text("type"), index = c.text("index");
  const int64_t rows = c.number("rows"), width = c.number("width"), count = c.number("count");
  return SweepProgram{module("  x = " + shape(type, {rows, width}) + " parameter(0)\n  i = " +
                             shape(index, {count, 1}) + " parameter(1)\n  ROOT y = " + shape(type, {count, width}) +
                             " gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                             "index_vector_dim=1, slice_sizes={1," +
                             str(width) + "}, indices_are_sorted=false\n"),
                      product({count, 64}),
                      {.modulo = rows},
                      product({count, 2 * width * bytes_of(type) + 8})};
}

// The useful work is that of the updates; the table is copied, because it is an argument.
Made scatter(const SweepChoice& c) {
  const std::string type = c.text("type"), index = c.text("index");
  const int64_t rows = c.number("rows"), width = c.number("width"), count = c.number("count");
  return SweepProgram{module("  x = " + shape(type, {rows, width}) + " parameter(0)\n  i = " +
                                 shape(index, {count, 1}) + " parameter(1)\n  u = " + shape(type, {count, width}) +
                                 " parameter(2)\n  ROOT y = " + shape(type, {rows, width}) +
                                 " scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                                 "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n",
                             binary("f", c.text("op"), type)),
                      product({count, 64}) + 4 * product({count, width}) * weight(type),
                      {.modulo = rows}};
}

// ---- elements

Made elementwise(const SweepChoice& c) {
  const std::string type = c.text("type"), op = c.text("op");
  const int64_t size = c.number("size");
  const bool two = op == "add" || op == "multiply" || op == "divide" || op == "maximum" || op == "power" ||
                   op == "remainder" || op == "atan2";
  const double each = op == "add" || op == "multiply" || op == "maximum" || op == "negate" ? 1
                      : op == "power" || op == "atan2"                                     ? 100
                      : op == "divide" || op == "sqrt"                                     ? 8
                                                                                           : 40;
  const std::string x = "  x = " + shape(type, {size}) + " parameter(0)\n",
                    y = two ? "  y = " + shape(type, {size}) + " parameter(1)\n" : "";
  return SweepProgram{module(x + y + "  ROOT z = " + shape(type, {size}) + " " + op + (two ? "(x, y)\n" : "(x)\n")),
                      each * product({size}) * weight(type)};
}

Made convert(const SweepChoice& c) {
  const std::string from = c.text("from"), to = c.text("to");
  const int64_t size = c.number("size");
  if (from == to) return {};
  return SweepProgram{
      module("  x = " + shape(from, {size}) + " parameter(0)\n  ROOT y = " + shape(to, {size}) + " convert(x)\n"),
      4 * product({size})};
}

Made random_bits(const SweepChoice& c) {
  const std::string type = c.text("type");
  const int64_t size = c.number("size");
  const double bytes = type == "u64" ? 8 : type == "u32" ? 4 : type == "u16" ? 2 : 1;
  return SweepProgram{module("  s = u64[2] parameter(0)\n  r = (u64[2], " + shape(type, {size}) +
                             ") rng-bit-generator(s), algorithm=" + c.text("algorithm") +
                             "\n  ROOT y = " + shape(type, {size}) + " get-tuple-element(r), index=1\n"),
                      100 * bytes * product({size})};
}

// A loop that changes an array of `size` elements in each trip.
Made loop(const SweepChoice& c) {
  const std::string type = c.text("type"), body = c.text("body");
  const int64_t size = c.number("size"), trips = c.number("trips");
  const std::string state = "(s32[], " + shape(type, {size}) + ")", array = shape(type, {size});
  std::string change;
  if (body == "map") {
    change = "  y = " + array + " multiply(x, x)\n";
  } else if (body == "update") {
    change = "  o = " + type + "[1] constant({1})\n  y = " + array + " dynamic-update-slice(x, o, i)\n";
  } else {
    change = "  o = " + type + "[1] dynamic-slice(x, i), dynamic_slice_sizes={1}\n  p = " + type +
             "[1] add(o, o)\n  y = " + array + " dynamic-update-slice(x, p, i)\n";
  }
  const std::string before = "cond {\n  s = " + state + " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n" +
                             "  n = s32[] constant(" + str(trips) +
                             ")\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n" + "body {\n  s = " + state +
                             " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  x = " + array +
                             " get-tuple-element(s), index=1\n  c = s32[] constant(1)\n  j = s32[] add(i, c)\n" +
                             change + "  ROOT t = " + state + " tuple(j, y)\n}\n";
  const double each = body == "map" ? 4 * static_cast<double>(size) * weight(type) : 1;
  return SweepProgram{module("  x = " + array + " parameter(0)\n  z = s32[] constant(0)\n  s = " + state +
                                 " tuple(z, x)\n  w = " + state + " while(s), condition=cond, body=body\n  ROOT y = " +
                                 array + " get-tuple-element(w), index=1\n",
                             before),
                      static_cast<double>(trips) * (1000 + each)};
}

std::vector<SweepFamily> make_families() {
  const std::vector<std::string> floats = {"f32", "bf16", "f16", "f64"},
                                 all_types = {"f32", "bf16", "f16", "f64", "s8", "u8", "s16", "s32", "s64"};
  std::vector<SweepFamily> out;
  out.push_back({"dot",
                 {{"type", {"f32", "bf16", "f16", "f64", "c64", "s32", "s8"}, 0},
                  {"order", {"nn", "nt", "tn", "tt"}, 0, true},
                  {"batch", {"1", "2", "7", "16", "64"}, 0},
                  {"m", {"1", "2", "7", "16", "64", "255", "256", "257", "1024"}, 6},
                  {"n", {"1", "2", "7", "16", "64", "255", "256", "257", "1024"}, 6},
                  {"k", {"1", "2", "7", "16", "64", "255", "256", "257", "1024", "4096"}, 6}},
                 dot});
  out.push_back({"dot_batched",
                 {{"type", {"f32", "bf16", "f16", "f64", "c64", "s32", "s8"}, 0},
                  {"order", {"nn", "nt", "tn", "tt"}, 0},
                  {"batch", {"1", "8", "64", "256", "1024", "4096"}, 3},
                  {"m", {"1", "2", "4", "8", "16", "32", "64"}, 4},
                  {"n", {"1", "2", "4", "8", "16", "32", "64"}, 4},
                  {"k", {"1", "2", "4", "8", "16", "32", "64"}, 4}},
                 dot});
  out.push_back({"convolution", convolution_parameters(2, "nhwc", 2, 28, 32, 3, true), convolution});
  out.push_back({"convolution_nchw", convolution_parameters(2, "nchw", 2, 28, 32, 3, false), convolution});
  out.push_back({"convolution_1d", convolution_parameters(1, "nhwc", 2, 4096, 16, 7, false), convolution});
  out.push_back({"convolution_1d_ncw", convolution_parameters(1, "nchw", 2, 4096, 16, 7, false), convolution});
  out.push_back({"convolution_3d", convolution_parameters(3, "nhwc", 1, 12, 16, 3, false), convolution});
  std::vector<SweepParameter> depthwise = convolution_parameters(2, "nhwc", 2, 56, 32, 3, false);
  depthwise.back().usual = depthwise.back().values.size() - 1;
  out.push_back({"convolution_depthwise", std::move(depthwise), convolution});
  const SweepParameter shapes = {
      "shape",
      {"4,512,512", "64,128,128", "512,512,4", "1000,7,150", "1024,1024,1", "1,1048576,1", "100000,1,10", "3,3,116509"},
      1};
  out.push_back({"reduce",
                 {{"type", all_types, 0, true},
                  {"op", {"add", "multiply", "maximum", "minimum"}, 0},
                  {"axes", {"0", "1", "2", "0,1", "1,2", "0,2", "0,1,2"}, 2, true},
                  shapes},
                 reduce});
  out.push_back({"reduce_columns",
                 {{"type", all_types, 0},
                  {"op", {"add", "multiply", "maximum", "minimum"}, 0},
                  {"axes", {"0"}, 0},
                  {"shape", {"1048576,1", "262144,4", "65536,16", "8192,128", "1024,1024", "16,65536", "2,524288"}, 4}},
                 reduce});
  out.push_back({"argmax",
                 {{"type", floats, 0}, {"index", {"s32", "s64"}, 0}, {"axis", {"0", "1", "2"}, 2, true}, shapes},
                 argmax});
  out.push_back({"pooling",
                 {{"type", {"f32", "bf16", "f16", "f64", "s32", "s8"}, 0},
                  {"op", {"maximum", "add", "minimum"}, 0},
                  {"layout", {"nhwc", "nchw"}, 0, true},
                  {"batch", {"1", "2", "8", "32"}, 2},
                  {"size", {"14", "28", "56", "112"}, 2},
                  {"channels", {"1", "3", "8", "32", "100"}, 3},
                  {"window", {"1", "2", "3", "5", "8", "16", "33"}, 2},
                  {"stride", {"1", "2", "3", "4"}, 1, true},
                  {"base_dilation", {"1", "2", "3"}, 0},
                  {"window_dilation", {"1", "2", "3"}, 0}},
                 pooling});
  out.push_back({"scan",
                 {{"type", {"f32", "bf16", "f16", "f64", "s32", "s64"}, 0},
                  {"op", {"add", "multiply", "maximum"}, 0},
                  {"direction", {"forward", "backward"}, 0},
                  {"axis", {"0", "1", "2"}, 2, true},
                  {"shape", {"4,512,512", "64,128,128", "512,512,4", "1000,7,150", "1,1,1048576", "100000,1,10"}, 1}},
                 scan});
  out.push_back({"select_and_scatter",
                 {{"type", {"f32", "bf16", "f64"}, 0},
                  {"batch", {"1", "2", "8"}, 1},
                  {"size", {"14", "28", "56", "112"}, 2},
                  {"channels", {"1", "3", "8", "32", "100"}, 3},
                  {"window", {"1", "2", "3", "5", "8"}, 2},
                  {"stride", {"1", "2", "3", "4"}, 1}},
                 select_and_scatter});
  out.push_back({"sort",
                 {{"type", {"f32", "bf16", "f16", "f64", "s8", "u16", "s32", "u32", "s64"}, 0},
                  {"direction", {"LT", "GT"}, 0},
                  {"stable", {"true", "false"}, 0},
                  {"operands", {"1", "2", "3", "4", "6"}, 0, true},
                  {"axis", {"0", "1"}, 1, true},
                  {"shape", {"65536,4", "16384,17", "2048,128", "256,1024", "16,16384", "1,262144"}, 3}},
                 sort});
  out.push_back({"topk",
                 {{"type", {"f32", "bf16", "f16", "f64", "s32"}, 0},
                  {"largest", {"true", "false"}, 0},
                  {"batch", {"1", "4", "32"}, 1},
                  {"length", {"256", "1024", "16384", "131072", "1048576"}, 2},
                  {"k", {"1", "2", "8", "16", "17", "64", "100", "128", "129", "512", "1024", "4096", "16384"}, 3}},
                 top_k});
  const std::vector<std::string> lengths = {"64",   "96",   "97",   "100",  "125",  "127",  "128",  "243",  "251",
                                            "256",  "499",  "500",  "509",  "512",  "1000", "1009", "1018", "1021",
                                            "1024", "1331", "2039", "2048", "4093", "4096", "5000", "6006", "8191"};
  for (const auto& [name, kind] : {std::pair("fft", "FFT"), std::pair("rfft", "RFFT"), std::pair("irfft", "IRFFT")})
    out.push_back(
        {name,
         {{"kind", {kind}, 0}, {"type", {"f32", "f64"}, 0}, {"batch", {"1", "8", "128"}, 1}, {"length", lengths, 9}},
         fft});
  out.push_back({"cholesky",
                 {{"type", {"f32", "f64", "c64"}, 0},
                  {"lower", {"true", "false"}, 0},
                  {"batch", {"1", "4", "32"}, 1},
                  {"n", {"4", "16", "31", "32", "33", "64", "100", "128", "129", "256", "512"}, 7}},
                 cholesky});
  out.push_back({"triangular_solve",
                 {{"type", {"f32", "f64", "c64"}, 0},
                  {"left_side", {"true", "false"}, 0},
                  {"lower", {"true", "false"}, 0},
                  {"transpose", {"NO_TRANSPOSE", "TRANSPOSE"}, 0},
                  {"batch", {"1", "4", "32"}, 1},
                  {"n", {"4", "16", "31", "32", "33", "64", "128", "256"}, 6},
                  {"columns", {"1", "2", "8", "32", "100", "128", "256"}, 5}},
                 triangular_solve});
  out.push_back(
      {"transpose",
       {{"type", {"s8", "bf16", "f32", "f64", "c128"}, 2},
        {"order", {"0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"}, 1, true},
        {"shape", {"4,512,512", "64,128,128", "512,512,4", "1000,7,150", "1024,1024,1", "33,65,129", "3,3,116509"}, 1}},
       transpose});
  out.push_back({"concatenate",
                 {{"type", all_types, 0},
                  {"operands", {"1", "2", "3", "8", "16", "33", "100"}, 2, true},
                  {"axis", {"0", "1"}, 1},
                  {"rows", {"1", "16", "256", "4096"}, 2},
                  {"columns", {"1", "3", "16", "256", "1000"}, 3}},
                 concatenate});
  out.push_back({"pad",
                 {{"type", all_types, 0},
                  {"axis", {"0", "1"}, 1},
                  {"edge", {"-3", "-1", "0", "1", "3", "64"}, 3},
                  {"interior", {"0", "1", "2", "7", "16"}, 0}},
                 pad});
  out.push_back({"slice",
                 {{"type", all_types, 0},
                  {"axis", {"0", "1"}, 1},
                  {"start", {"0", "1", "7"}, 1},
                  {"stride", {"1", "2", "3", "4", "8", "17"}, 0}},
                 slice});
  out.push_back(
      {"reverse", {{"type", all_types, 0}, {"axes", {"0", "1", "2", "0,1", "0,2", "1,2", "0,1,2"}, 2}}, reverse});
  out.push_back(
      {"broadcast", {{"type", all_types, 0}, {"kept", {"", "0", "1", "2", "0,1", "0,2", "1,2"}, 3}}, broadcast});
  out.push_back({"gather",
                 {{"type", {"f32", "bf16", "f64", "s8"}, 0},
                  {"index", {"s32", "s64", "u32"}, 0},
                  {"rows", {"10", "1000", "50000", "200000"}, 2},
                  {"width", {"1", "2", "3", "8", "16", "64", "100", "256"}, 5},
                  {"count", {"1", "16", "1000", "20000", "100000"}, 3}},
                 gather});
  out.push_back({"scatter",
                 {{"type", {"f32", "bf16", "f64", "s32"}, 0},
                  {"index", {"s32", "s64", "u32"}, 0},
                  {"op", {"add", "maximum", "multiply"}, 0},
                  {"rows", {"10", "1000", "50000", "200000"}, 1},
                  {"width", {"1", "2", "3", "8", "16", "64", "100", "256"}, 5},
                  {"count", {"1", "16", "1000", "20000", "100000"}, 3}},
                 scatter});
  out.push_back(
      {"elementwise",
       {{"type", {"f32", "bf16", "f16", "f64"}, 0},
        {"op",
         {"add",          "multiply", "maximum", "negate",   "divide", "sqrt", "exponential", "log",
          "tanh",         "logistic", "sine",    "cosine",   "tan",    "cbrt", "erf",         "exponential-minus-one",
          "log-plus-one", "power",    "atan2",   "remainder"},
         0},
        {"size", {"1", "100", "1000", "4096", "10000", "100000", "1000000", "8000000"}, 6, true}},
       elementwise});
  out.push_back({"convert",
                 {{"from", {"f32", "bf16", "f16", "f64", "f8e4m3fn", "f8e5m2", "s8", "u8", "s32", "s64", "pred"}, 0},
                  {"to", {"bf16", "f16", "f64", "f8e4m3fn", "f8e5m2", "s8", "u8", "s32", "s64", "pred"}, 0},
                  {"size", {"1000", "100000", "1000000"}, 2}},
                 convert});
  out.push_back({"random_bits",
                 {{"algorithm", {"rng_default", "rng_three_fry", "rng_philox"}, 1},
                  {"type", {"u8", "u16", "u32", "u64"}, 2},
                  {"size", {"100", "1000", "10000", "100000", "1000000"}, 4}},
                 random_bits});
  out.push_back({"loop",
                 {{"type", {"f32", "f64", "bf16"}, 0},
                  {"body", {"map", "update", "element"}, 0},
                  {"size", {"8", "64", "1000", "16384", "262144"}, 2},
                  {"trips", {"1", "4", "16", "17", "64", "256", "1000", "10000"}, 5}},
                 loop});
  out.push_back({"loop_update",
                 {{"type", {"f32", "f64", "bf16"}, 0},
                  {"body", {"update", "element"}, 0},
                  {"size", {"64", "1000", "16384", "262144", "4000000"}, 2},
                  {"trips", {"16", "64", "256", "1000", "10000"}, 3}},
                 loop});
  return out;
}

}  // namespace

const std::string& SweepChoice::text(const std::string& name) const {
  const auto at = std::find_if(parameters_->begin(), parameters_->end(), [&](const auto& p) { return p.name == name; });
  return values_[static_cast<size_t>(at - parameters_->begin())];
}

const std::vector<SweepFamily>& sweep_families() {
  static const std::vector<SweepFamily> families = make_families();
  return families;
}

}  // namespace collet::bench
