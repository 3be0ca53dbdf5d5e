// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_quantized.hpp>
#include <collet/tiling.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "hlo/eval/evaluator.h"
#include "hlo/program/read.h"
#include "hlo/program/write.h"
#include "hlo/testing/inputs.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::tiling {
namespace {

using hlo::Literal;

/// The text of a group: its parameters, its lines, and its results.
struct Body {
  std::vector<std::string> types;  ///< of the parameters x0, x1, ...
  std::string lines;
  std::vector<std::string> results;  ///< names of values
  std::vector<std::string> result_types;
  int64_t work = 0;

  std::string parameter(const std::string& type) {
    types.push_back(type);
    return "x" + std::to_string(types.size() - 1);
  }
  /// Adds a line and returns the name of its value.
  std::string add(const std::string& type, const std::string& rest) {
    const std::string name = "v" + std::to_string(++count_);
    lines += " " + name + " = " + type + " " + rest + "\n";
    return name;
  }
  void result(const std::string& name, const std::string& type) {
    results.push_back(name);
    result_types.push_back(type);
  }
  std::string tuple_type() const {
    std::string out;
    for (const std::string& type : result_types) out += (out.empty() ? "" : ", ") + type;
    return result_types.size() == 1 ? result_types[0] : "(" + out + ")";
  }
  /// Returns a module whose entry is a fusion of the group, or the group itself.
  std::string module(bool fused) const {
    std::string text = "HloModule m\n";
    for (const char* type : {"f32", "s32"}) {
      for (const char* op : {"add", "maximum", "minimum"}) {
        const std::string t = type;
        text += t + "_" + op + " {\n a = " + t + "[] parameter(0)\n b = " + t + "[] parameter(1)\n ROOT c = " + t +
                "[] " + op + "(a, b)\n}\n";
      }
    }
    text +=
        "less {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT\n}\n";
    std::string inner, operands;
    for (size_t i = 0; i < types.size(); ++i) {
      inner += " x" + std::to_string(i) + " = " + types[i] + " parameter(" + std::to_string(i) + ")\n";
      operands += (i ? ", p" : "p") + std::to_string(i);
    }
    inner += lines;
    std::string all;
    for (const std::string& name : results) all += (all.empty() ? "" : ", ") + name;
    if (results.size() == 1) {
      inner.insert(inner.rfind(" " + all + " = ") + 1, "ROOT ");
    } else {
      inner += " ROOT result = " + tuple_type() + " tuple(" + all + ")\n";
    }
    if (!fused) return text + "ENTRY e {\n" + inner + "}\n";
    text += "f {\n" + inner + "}\nENTRY e {\n";
    for (size_t i = 0; i < types.size(); ++i) {
      text += " p" + std::to_string(i) + " = " + types[i] + " parameter(" + std::to_string(i) + ")\n";
    }
    return text + " ROOT r = " + tuple_type() + " fusion(" + operands + "), kind=kLoop, calls=f\n}\n";
  }

 private:
  int count_ = 0;
};

std::string type_text(const std::string& element, const std::vector<int64_t>& dims) {
  std::string out = element + "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

std::string list_text(const std::vector<int64_t>& list) {
  std::string out = "{";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? "," : "") + std::to_string(list[i]);
  return out + "}";
}

/// Reads the range of a place out of an array.
Literal cut(const Literal& whole, const Place& place) {
  const hlo::Shape shape = hlo::Shape::array(whole.type(), place.sizes);
  Literal out = Literal::zeros(shape);
  const auto width = static_cast<size_t>(whole.element_count() ? whole.byte_size() / whole.element_count() : 0);
  std::vector<int64_t> index(place.sizes.size(), 0);
  for (int64_t i = 0; i < out.element_count(); ++i) {
    auto from = static_cast<int64_t>(place.offset);
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * place.strides[d];
    std::memcpy(out.mutable_bytes() + static_cast<size_t>(i) * width, whole.bytes() + static_cast<size_t>(from) * width,
                width);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < place.sizes[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

/// Writes an array into the range of a place, and counts how often each element is written.
void paste(const Literal& piece, const Place& place, Literal* whole, std::vector<int>* written) {
  const auto width = static_cast<size_t>(whole->byte_size() / whole->element_count());
  std::vector<int64_t> index(place.sizes.size(), 0);
  uint8_t* to = whole->mutable_bytes();
  for (int64_t i = 0; i < piece.element_count(); ++i) {
    auto at = static_cast<int64_t>(place.offset);
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * place.strides[d];
    std::memcpy(to + static_cast<size_t>(at) * width, piece.bytes() + static_cast<size_t>(i) * width, width);
    ++(*written)[static_cast<size_t>(at)];
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < place.sizes[d]) break;
      index[d] = 0;
    }
  }
}

void combine(uint32_t how, const Literal& value, Literal* into) {
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (hlo::is_integer(value.type())) {
      const int64_t a = into->as_int(i), b = value.as_int(i);
      into->set_int(i, how == COLLET_COMBINE_ADD       ? a + b
                       : how == COLLET_COMBINE_MAXIMUM ? std::max(a, b)
                                                       : std::min(a, b));
    } else {
      const double a = into->as_double(i), b = value.as_double(i);
      into->set_double(i, how == COLLET_COMBINE_ADD       ? a + b
                          : how == COLLET_COMBINE_MAXIMUM ? std::max(a, b)
                                                          : std::min(a, b));
    }
  }
}

/// Runs all pieces of a tiling, and compares the results with those of the whole.
class PieceRun {
 public:
  PieceRun(const Tiling& tiles, const Limits& limits, const std::vector<Literal>& inputs,
           const std::vector<Literal>& expected)
      : tiles_(tiles), limits_(limits), inputs_(inputs), expected_(expected), modules_(tiles.shape_count()) {}

  void check() {
    std::vector<Literal> results;
    std::vector<std::vector<int>> written;
    for (const Literal& one : expected_) {
      results.push_back(Literal::zeros(one.shape()));
      written.emplace_back(static_cast<size_t>(one.element_count()), 0);
    }
    Literal accumulator;
    for (const Piece& piece : tiles_.pieces()) {
      std::vector<Literal> operands;
      uint64_t bytes = 0;
      std::set<uint32_t> seen;
      for (const Place& place : piece.operands) {
        operands.push_back(cut(inputs_[place.index], place));
        if (seen.insert(tiles_.group().inputs[place.index]).second) bytes += place.bytes;
      }
      for (const Place& place : piece.results) bytes += place.bytes;
      if (piece.stage == Stage::kEpilogue) {
        operands.push_back(accumulator);
        bytes += static_cast<uint64_t>(accumulator.byte_size());
      }
      EXPECT_LE(bytes, limits_.scratchpad_bytes);
      std::vector<Literal> got;
      ASSERT_NO_FATAL_FAILURE(run(piece.shape, std::move(operands), &got));
      if (piece.stage == Stage::kPartial) {
        ASSERT_EQ(got.size(), 1u);
        if (piece.first) {
          accumulator = got[0];
        } else {
          ASSERT_TRUE(accumulator.shape() == got[0].shape());
          combine(tiles_.combine(), got[0], &accumulator);
        }
        if (piece.results.empty()) continue;
        ASSERT_TRUE(piece.last);
        got = {accumulator};
      }
      ASSERT_EQ(got.size(), piece.results.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const Place& place = piece.results[i];
        ASSERT_EQ(got[i].byte_size(), static_cast<int64_t>(place.bytes));
        paste(got[i], place, &results[place.index], &written[place.index]);
      }
    }
    for (size_t r = 0; r < results.size(); ++r) {
      for (const int times : written[r]) ASSERT_EQ(times, 1) << "an element is not written once";
      compare(results[r], expected_[r]);
    }
  }

 private:
  void run(uint32_t shape, std::vector<Literal> operands, std::vector<Literal>* out) {
    if (!modules_[shape]) {
      const std::vector<uint64_t> block = tiles_.program(shape);
      auto read = hlo::read_program(block.data(), block.size() * sizeof(uint64_t));
      ASSERT_TRUE(read.ok()) << read.status().to_string();
      const auto verified = hlo::verify_module(*read->module);
      ASSERT_TRUE(verified.ok()) << verified.to_string();
      modules_[shape] = std::move(read->module);
    }
    const auto got = hlo::Evaluator(*modules_[shape]).run(std::move(operands));
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    *out = hlo::flatten(*got);
  }

  static void compare(const Literal& got, const Literal& expected) {
    int64_t bad = 0;
    for (int64_t i = 0; i < got.element_count() && bad < 3; ++i) {
      if (hlo::is_integer(got.type()) || got.type() == hlo::Type::PRED) {
        if (got.as_int(i) == expected.as_int(i)) continue;
      } else {
        const double a = got.as_double(i), b = expected.as_double(i);
        const double most =
            got.type() == hlo::Type::F16 ? 1e-3 : 2e-6;  // sums that are cut are rounded in another order
        if (a == b || std::fabs(a - b) <= most * (1 + std::fabs(b))) continue;
      }
      ++bad;
      ADD_FAILURE() << "element " << i << " is " << got.as_double(i) << " instead of " << expected.as_double(i);
    }
  }

  const Tiling& tiles_;
  const Limits& limits_;
  const std::vector<Literal>& inputs_;
  const std::vector<Literal>& expected_;
  std::vector<std::unique_ptr<hlo::Module>> modules_;
};

/// A module with its program.
struct Made {
  std::unique_ptr<hlo::Module> module;
  hlo::Program program;
  const collet_program* get() const { return program.get(); }
};

Made make(const std::string& text) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
  if (!module.ok()) return {};
  const auto verified = hlo::verify_module(**module);
  EXPECT_TRUE(verified.ok()) << verified.to_string() << text;
  auto program = hlo::write_program(**module);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  if (!verified.ok() || !program.ok()) return {};
  return {std::move(*module), std::move(*program)};
}

Group entry_group(const Made& made, bool fused) {
  const collet_region* entry = collet_region_at(made.get(), 0);
  if (fused) return group_of_op(made.get(), entry->ops.first + entry->ops.count - 1);
  std::vector<uint32_t> ops;
  for (uint32_t i = 0; i < entry->ops.count; ++i) ops.push_back(entry->ops.first + i);
  return group_of_ops(made.get(), ops);
}

/// Draws groups whose arrays are small or large beside the scratchpad.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t scratchpad) : random_(seed), scratchpad_(scratchpad) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool coin() { return below(2) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

  Body body() {
    switch (below(9)) {
      case 0:
        return elementwise();
      case 1:
        return reduction();
      case 2:
      case 3:
        return product();
      case 4:
      case 5:
        return convolution();
      case 6:
        return softmax();
      case 7:
        return attention();
      default:
        return windows();
    }
  }

  Limits limits() {
    Limits out;
    out.scratchpad_bytes = scratchpad_;
    out.rows = one_of<int64_t>({1, 1, 4, 16});
    out.columns = one_of<int64_t>({1, 1, 4, 16});
    out.depth = one_of<int64_t>({1, 4, 16});
    out.lanes = one_of<int64_t>({1, 8, 32});
    out.operand_copies = one_of<uint32_t>({1, 2});
    out.result_copies = one_of<uint32_t>({1, 1, 2});
    out.alignment = one_of<uint64_t>({1, 64});
    out.rank = one_of<uint32_t>({0, 0, 0, 3, 4});
    out.cuts_sums = below(5) != 0;
    out.keeps_intermediates = below(3) == 0;
    if (below(4) == 0) out.operand_bytes = scratchpad_ * 3 / 4;
    if (below(4) == 0) out.result_bytes = scratchpad_ * 3 / 4;
    return out;
  }

 private:
  /// Returns `rank` extents whose product is about `elements`.
  std::vector<int64_t> dims(size_t rank, int64_t elements) {
    std::vector<int64_t> out(rank, 1);
    for (size_t d = 0; d < rank; ++d) {
      const double root = std::pow(static_cast<double>(elements), 1.0 / static_cast<double>(rank - d));
      const auto most = static_cast<int64_t>(std::max(1.0, root * 2));
      out[d] = d + 1 == rank ? std::max<int64_t>(elements, 1) : between(1, most);
      elements /= out[d];
    }
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  int64_t elements(int64_t width) {
    const double share = static_cast<double>(between(10, 400)) / 100;
    return std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(scratchpad_) * share) / width, 8, 2000000);
  }

  Body elementwise() {
    Body b;
    const std::vector<int64_t> d = dims(static_cast<size_t>(between(1, 4)), elements(4));
    const std::string type = type_text("f32", d);
    std::string x = b.parameter(type);
    if (d.size() > 1 && coin()) {  // an operand that comes transposed
      std::vector<int64_t> order(d.size()), from(d.size());
      for (size_t i = 0; i < d.size(); ++i) order[i] = static_cast<int64_t>(i);
      std::shuffle(order.begin(), order.end(), random_);
      for (size_t i = 0; i < d.size(); ++i) from[static_cast<size_t>(order[i])] = d[i];
      const std::string y = b.parameter(type_text("f32", from));
      const std::string t = b.add(type, "transpose(" + y + "), dimensions=" + list_text(order));
      x = b.add(type, "multiply(" + x + ", " + t + ")");
    }
    const auto along = static_cast<size_t>(below(static_cast<int64_t>(d.size())));
    const std::string vector = b.parameter(type_text("f32", {d[along]}));
    const std::string spread =
        b.add(type, "broadcast(" + vector + "), dimensions=" + list_text({static_cast<int64_t>(along)}));
    x = b.add(type, one_of<std::string>({"add", "multiply", "maximum"}) + "(" + x + ", " + spread + ")");
    if (coin()) {
      const std::string index =
          b.add(type, "iota(), iota_dimension=" + std::to_string(below(static_cast<int64_t>(d.size()))));
      x = b.add(type, "subtract(" + x + ", " + index + ")");
    }
    if (coin()) {
      const std::string p = b.add(type_text("pred", d), "compare(" + x + ", " + spread + "), direction=GT");
      x = b.add(type, "select(" + p + ", " + x + ", " + spread + ")");
    }
    if (coin()) {  // two results
      b.result(b.add(type_text("s32", d), "convert(" + x + ")"), type_text("s32", d));
    }
    b.result(x, type);
    if (coin()) b.result(b.add(type, "negate(" + x + ")"), type);
    return b;
  }

  Body reduction() {
    Body b;
    const size_t rank = static_cast<size_t>(between(2, 4));
    const std::string e = one_of<std::string>({"f32", "s32"});
    const std::vector<int64_t> d = dims(rank, elements(4));
    std::string x = b.parameter(type_text(e, d));
    if (coin()) x = b.add(type_text(e, d), "multiply(" + x + ", " + x + ")");
    std::vector<int64_t> gone, kept;
    for (size_t i = 0; i < rank; ++i) {
      if (coin()) {
        gone.push_back(static_cast<int64_t>(i));
      } else {
        kept.push_back(d[i]);
      }
    }
    const std::string type = type_text(e, kept), op = one_of<std::string>({"add", "maximum", "minimum"});
    const std::string init = below(4) == 0 ? b.parameter(e + "[]") : b.add(e + "[]", "constant(0)");
    x = b.add(type, "reduce(" + x + ", " + init + "), dimensions=" + list_text(gone) + ", to_apply=" + e + "_" + op);
    if (coin()) x = b.add(type, "add(" + x + ", " + b.parameter(type) + ")");
    b.result(x, type);
    return b;
  }

  /// A product with what follows it.
  Body product() {
    Body b;
    const bool integers = coin();
    const std::string from = integers ? "s8" : one_of<std::string>({"f32", "f16"});
    const int64_t batch = one_of<int64_t>({0, 0, 2, 3});
    const int64_t k = between(1, one_of<int64_t>({20, 200, 2000}));
    int64_t m = between(1, 900), n = between(1, 900);
    while (m * k + n * k + m * n > 3 * static_cast<int64_t>(scratchpad_)) m = (m + 1) / 2, n = (n + 1) / 2;
    while (std::max<int64_t>(batch, 1) * m * n * k > 20000000) m = (m + 1) / 2, n = n * 3 / 4 + 1;
    b.work = m * n * k;
    const bool swapped = coin(), wide = integers && coin();
    std::vector<int64_t> l = swapped ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k}, r{k, n}, o{m, n};
    const std::string sides = batch ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
    const int64_t shift = batch ? 1 : 0;
    if (batch) l.insert(l.begin(), batch), r.insert(r.begin(), batch), o.insert(o.begin(), batch);
    std::string x = b.parameter(type_text(from, l)), w = b.parameter(type_text(from, r));
    std::string operands = from;
    if (wide) {  // the idiom of dequantized integers
      operands = "f32";
      x = b.add(type_text("f32", l), "convert(" + x + ")");
      w = b.add(type_text("f32", r), "convert(" + w + ")");
    }
    const std::string sum = operands == "s8" ? "s32" : operands, type = type_text(sum, o);
    std::string y = b.add(type, "dot(" + x + ", " + w + "), " + sides + "lhs_contracting_dims={" +
                                    std::to_string((swapped ? 0 : 1) + shift) + "}, rhs_contracting_dims={" +
                                    std::to_string(shift) + "}");
    if (coin()) {
      const std::string bias = b.parameter(type_text(sum, {n}));
      y = b.add(type, "add(" + y + ", " +
                          b.add(type, "broadcast(" + bias + "), dimensions={" + std::to_string(1 + shift) + "}") + ")");
      const std::string zero = b.add(sum + "[]", "constant(0)");
      y = b.add(type, "maximum(" + y + ", " + b.add(type, "broadcast(" + zero + "), dimensions={}") + ")");
    }
    if (integers && coin()) {  // requantized
      const std::string low = b.add(sum + "[]", "constant(-128)"), high = b.add(sum + "[]", "constant(127)");
      y = b.add(type, "clamp(" + low + ", " + y + ", " + high + ")");
      y = b.add(type_text("s8", o), "convert(" + y + ")");
      b.result(y, type_text("s8", o));
      return b;
    }
    b.result(y, type);
    return b;
  }

  Body convolution() {
    Body b;
    const bool integers = coin(), depthwise = below(3) == 0;
    const std::string from = integers ? "s8" : "f32", sum = integers ? "s32" : "f32";
    const int64_t n = between(1, 3), f = between(1, 24), o = depthwise ? f : between(1, 24);
    int64_t h = between(4, 40), w = between(4, 40);
    const int64_t kh = between(1, 3), kw = between(1, 4), sh = between(1, 2), sw = between(1, 3), dh = between(1, 2);
    const auto out = [](int64_t size, int64_t kernel, int64_t stride, int64_t low, int64_t high, int64_t dilation) {
      return (size + low + high - (kernel - 1) * dilation - 1) / stride + 1;
    };
    const int64_t low_h = between(0, kh), high_h = between(0, kh), low_w = between(-1, kw), high_w = between(-1, kw);
    const int64_t oh = out(h, kh, sh, low_h, high_h, dh), ow = out(w, kw, sw, low_w, high_w, 1);
    std::string x = b.parameter(type_text(from, {n, h, w, f}));
    const std::string kernel = b.parameter(type_text(from, {kh, kw, depthwise ? 1 : f, o}));
    b.work = n * oh * ow * o * kh * kw * (depthwise ? 1 : f);
    if (coin()) x = b.add(type_text(from, {n, h, w, f}), "negate(" + x + ")");
    const std::string type = type_text(sum, {n, oh, ow, o});
    const auto pair = [](int64_t a, int64_t c) { return std::to_string(a) + "_" + std::to_string(c); };
    std::string y = b.add(type, "convolution(" + x + ", " + kernel + "), window={size=" + std::to_string(kh) + "x" +
                                    std::to_string(kw) + " stride=" + std::to_string(sh) + "x" + std::to_string(sw) +
                                    " pad=" + pair(low_h, high_h) + "x" + pair(low_w, high_w) +
                                    " rhs_dilate=" + std::to_string(dh) + "x1" + (coin() ? " rhs_reversal=0x1" : "") +
                                    "}, dim_labels=b01f_01io->b01f" +
                                    (depthwise ? ", feature_group_count=" + std::to_string(f) : ""));
    if (coin()) {
      const std::string bias = b.parameter(type_text(sum, {o}));
      y = b.add(type, "add(" + y + ", " + b.add(type, "broadcast(" + bias + "), dimensions={3}") + ")");
    }
    if (coin()) y = b.add(type, "multiply(" + y + ", " + y + ")");
    b.result(y, type);
    return b;
  }

  std::string softmax_of(Body* b, const std::string& x, const std::vector<int64_t>& d) {
    std::vector<int64_t> outer(d.begin(), d.end() - 1), kept(d.size() - 1);
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int64_t>(i);
    const std::string type = type_text("f32", d), row = type_text("f32", outer), last = std::to_string(kept.size());
    const auto reduce = [&](const std::string& what, const std::string& op, const std::string& init) {
      const std::string zero = b->add("f32[]", "constant(" + init + ")");
      const std::string sum =
          b->add(row, "reduce(" + what + ", " + zero + "), dimensions={" + last + "}, to_apply=f32_" + op);
      return b->add(type, "broadcast(" + sum + "), dimensions=" + list_text(kept));
    };
    const std::string e =
        b->add(type, "exponential(" + b->add(type, "subtract(" + x + ", " + reduce(x, "maximum", "-inf") + ")") + ")");
    return b->add(type, "divide(" + e + ", " + reduce(e, "add", "0") + ")");
  }

  Body softmax() {
    Body b;
    std::vector<int64_t> d = dims(static_cast<size_t>(between(2, 3)), elements(8));
    d.back() = std::min<int64_t>(d.back(), static_cast<int64_t>(scratchpad_) / 64);
    const std::string type = type_text("f32", d);
    b.result(softmax_of(&b, b.parameter(type), d), type);
    return b;
  }

  Body attention() {
    Body b;
    const int64_t heads = between(1, 4), keys = between(4, 60), head = between(4, 32);
    const int64_t rows = between(4, 300);
    b.work = heads * rows * keys * head * 2;
    const std::string q = b.parameter(type_text("f32", {heads, rows, head}));
    const std::string k = b.parameter(type_text("f32", {heads, keys, head}));
    const std::string v = b.parameter(type_text("f32", {heads, keys, head}));
    const std::vector<int64_t> d{heads, rows, keys};
    const std::string scores =
        b.add(type_text("f32", d), "dot(" + q + ", " + k +
                                       "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                                       "rhs_contracting_dims={2}");
    const std::string p = softmax_of(&b, scores, d), type = type_text("f32", {heads, rows, head});
    b.result(b.add(type, "dot(" + p + ", " + v +
                             "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                             "rhs_contracting_dims={1}"),
             type);
    return b;
  }

  /// Movement, pooling and the like.
  Body windows() {
    Body b;
    std::vector<int64_t> d = dims(2, std::min<int64_t>(elements(4), 1000000));
    d = {d[0] + 4, d[1] + 4};
    std::string x = b.parameter(type_text("f32", d));
    const auto zero = [&] { return b.add("f32[]", "constant(0)"); };
    const std::string first =
        one_of<std::string>({"pad", "slice", "pool", "reverse", "concatenate", "reshape", "sort"});
    if (first == "pad") {
      const int64_t low = between(-1, 3), high = between(-1, 3);
      d[0] += low + high;
      x = b.add(type_text("f32", d),
                "pad(" + x + ", " + zero() + "), padding=" + std::to_string(low) + "_" + std::to_string(high) + "x0_0");
    } else if (first == "slice") {
      const int64_t start = between(0, 2), stride = between(1, 3), limit = d[1] - below(2);
      x = b.add(type_text("f32", {d[0], (limit - start + stride - 1) / stride}),
                "slice(" + x + "), slice={[0:" + std::to_string(d[0]) + "], [" + std::to_string(start) + ":" +
                    std::to_string(limit) + ":" + std::to_string(stride) + "]}");
      d[1] = (limit - start + stride - 1) / stride;
    } else if (first == "pool") {
      const int64_t size = between(1, 3), stride = between(1, 3), low = between(0, 1);
      const std::vector<int64_t> out{(d[0] + low - size) / stride + 1, d[1]};
      x = b.add(type_text("f32", out), "reduce-window(" + x + ", " + zero() + "), window={size=" +
                                           std::to_string(size) + "x1 stride=" + std::to_string(stride) +
                                           "x1 pad=" + std::to_string(low) + "_0x0_0}, to_apply=f32_maximum");
      d = out;
    } else if (first == "reverse") {
      x = b.add(type_text("f32", d), "reverse(" + x + "), dimensions={" + std::to_string(below(2)) + "}");
    } else if (first == "concatenate") {
      const std::string y = b.parameter(type_text("f32", {d[0], 3}));
      d[1] += 3;
      x = b.add(type_text("f32", d), "concatenate(" + x + ", " + y + "), dimensions={1}");
    } else if (first == "reshape") {
      d = {d[0], 1, d[1]};
      x = b.add(type_text("f32", d), "reshape(" + x + ")");
    } else {
      x = b.add(type_text("f32", d), "sort(" + x + "), dimensions={" + std::to_string(below(2)) + "}, to_apply=less");
    }
    x = b.add(type_text("f32", d), "multiply(" + x + ", " + x + ")");
    b.result(x, type_text("f32", d));
    return b;
  }

  std::mt19937_64 random_;
  uint64_t scratchpad_;
};

std::vector<Literal> inputs_of(const hlo::Module& module) {
  std::vector<Literal> out;
  for (const hlo::InstrId id : module[module.entry()].parameters) {
    hlo::testing::InputRule rule;
    rule.kind = hlo::testing::InputRule::Kind::Integer;
    rule.modulo = 9, rule.low = -4;
    out.push_back(hlo::testing::input_by_rule(rule, module[id].shape, out.size()));
  }
  return out;
}

/// Draws groups until `wanted` of them have been cut and compared.
void draw(uint64_t first, int wanted) {
  int done = 0, refused = 0, cut_sums = 0, shaped = 0;
  uint64_t pieces = 0;
  for (uint64_t seed = first; done < wanted; ++seed) {
    std::mt19937_64 random(seed);
    const auto scratchpad = static_cast<uint64_t>(std::exp2(14 + static_cast<double>(random() % 81) / 10));
    Draw draw(seed, scratchpad);
    const Body body = draw.body();
    const Limits limits = draw.limits();
    const bool fused = draw.coin();
    const std::string text = body.module(fused);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", scratchpad " + std::to_string(scratchpad) + "\n" + text);
    const Made made = make(text);
    ASSERT_TRUE(made.module);
    const Tiling tiles(entry_group(made, fused), limits);
    if (!tiles.complaint().empty()) {
      EXPECT_NE(tiles.complaint().find("the smallest piece needs"), std::string::npos) << tiles.complaint();
      ASSERT_LT(++refused, 10 + wanted / 5) << "too many groups cannot be cut";
      continue;
    }
    EXPECT_LE(tiles.scratchpad_bytes(), limits.scratchpad_bytes);
    const std::vector<Literal> inputs = inputs_of(*made.module);
    const auto whole = hlo::Evaluator(*made.module).run(inputs);
    ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    const std::vector<Literal> results = hlo::flatten(*whole);
    std::vector<Literal> given, expected;
    const Group& group = tiles.group();
    const collet_region* entry = collet_region_at(made.get(), 0);
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      // Ops of the entry have their results in the order of their definitions.
      size_t at = i;
      while (!fused && collet_ref_at(made.get(), entry->results.first + static_cast<uint32_t>(at)) != group.outputs[i])
        at = (at + 1) % results.size();
      expected.push_back(results[at]);
    }
    for (const uint32_t value : group.sources) given.push_back(inputs[value - entry->arguments.first]);
    PieceRun(tiles, limits, given, expected).check();
    if (::testing::Test::HasFailure()) return;
    ++done;
    pieces += tiles.pieces().size();
    cut_sums += tiles.combine() != COLLET_COMBINE_OTHER;
    shaped += tiles.pieces().size() > 1;
  }
  std::cout << done << " groups in " << pieces << " pieces; " << shaped << " were cut, " << cut_sums << " along a sum; "
            << refused << " do not fit\n";
  EXPECT_GT(shaped, wanted / 2);
  EXPECT_GT(cut_sums, wanted / 50);
}

TEST(Tiling, DrawnGroups_EqualUntiledResults) {
  draw(1, 100);
}

TEST(TilingLong, DrawnGroups_EqualUntiledResults) {
  draw(1000, 400);
}

/// Returns a product of s8 matrices.
std::string product_text(int64_t m, int64_t n, int64_t k) {
  return "HloModule m\nENTRY e {\n x = " + type_text("s8", {m, k}) + " parameter(0)\n w = " + type_text("s8", {k, n}) +
         " parameter(1)\n ROOT y = " + type_text("s32", {m, n}) +
         " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";
}

TEST(Tiling, Products_MoveFewBytesMoreThanTheBound) {
  double worst = 0, worst_strict = 0, worst_tiles = 0;
  for (const uint64_t scratchpad : {16384, 65536, 262144, 1 << 20, 4 << 20}) {
    for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 4096, 2048},
                                                                                    {16, 8192, 1024},
                                                                                    {256, 256, 256},
                                                                                    {1024, 1024, 1024},
                                                                                    {600, 600, 600},
                                                                                    {4096, 4096, 64},
                                                                                    {128, 4096, 4096},
                                                                                    {2048, 32, 4096},
                                                                                    {777, 1333, 2111},
                                                                                    {500, 500, 20000}}) {
      const Made made = make(product_text(m, n, k));
      Limits limits;
      limits.scratchpad_bytes = scratchpad;
      limits.rows = limits.columns = limits.depth = 4;
      const Tiling tiles(entry_group(made, true), limits);
      limits.rows = limits.columns = limits.depth = 16;
      limits.operand_copies = 2;
      const Tiling buffered(entry_group(made, true), limits);
      ASSERT_EQ(tiles.complaint(), "");
      ASSERT_EQ(buffered.complaint(), "");
      // least_bytes() lets all accumulators begin for nothing. The usual statement, 2 M N K / sqrt(S) + M N, does not; where the
      // sum is short, it is more than what must be moved.
      const double work = static_cast<double>(m * n * k), s = static_cast<double>(scratchpad);
      const double once = static_cast<double>(m * k + k * n), results = static_cast<double>(4 * m * n);
      const double usual = std::max(once, 4 * work / std::sqrt(s) - 2 * s) + results;
      const double moved = static_cast<double>(tiles.moved_bytes());
      const std::string what = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " on " +
                               std::to_string(scratchpad) + ": " + std::to_string(tiles.moved_bytes()) + " bytes in " +
                               std::to_string(tiles.pieces().size()) + " pieces of " +
                               ::testing::PrintToString(tiles.pieces()[0].operands[0].sizes) +
                               ::testing::PrintToString(tiles.pieces()[0].operands[1].sizes);
      EXPECT_GE(moved, tiles.least_bytes() * (1 - 1e-9)) << what;
      EXPECT_LE(moved, usual * 1.3) << what;
      EXPECT_LE(tiles.least_bytes(), usual);
      if (static_cast<double>(k) >= 16 * std::sqrt(s / 4)) {
        EXPECT_LE(moved, tiles.least_bytes() * 1.3) << what;
        worst_strict = std::max(worst_strict, moved / tiles.least_bytes());
      }
      worst = std::max(worst, moved / usual);
      worst_tiles = std::max(worst_tiles, static_cast<double>(buffered.moved_bytes()) / usual);
    }
  }
  std::cout << "at most " << worst << " of the bound; " << worst_strict << " of the strict one where sums are long; "
            << worst_tiles << " with tiles of 16 and two copies of operands\n";
  // All but 2048 x 32 x 4096 on 16 KiB stay below 1.3. Rows of 32 results in s32 and two copies of what a tile reads, 16 elements
  // for each row and column, are 160 bytes for each row and 1024 for the columns, so that at most 96 rows fit, and w passes 22
  // times. No other order moves less: half of the columns at a time, x passes twice.
  EXPECT_LE(worst_tiles, 1.3135);
}

/// Returns the fewest bytes of operands that a product of s8 moves if parts of one array stay in the scratchpad, which may be
/// full of them, and a part is computed as a whole: blocks of results, rows of x, or columns of w.
double bytes_with_whole_parts(int64_t m, int64_t n, int64_t k, int64_t scratchpad) {
  const auto passes = [](int64_t whole, int64_t part) { return (whole + part - 1) / std::max<int64_t>(part, 1); };
  const double x = static_cast<double>(m * k), w = static_cast<double>(k * n);
  double best = std::min(x + w * static_cast<double>(passes(m * k, scratchpad)),
                         w + x * static_cast<double>(passes(n * k, scratchpad)));
  for (int64_t p = 1; p <= m; ++p) {
    const int64_t columns = scratchpad / 4 / passes(m, p);
    if (columns > 0) best = std::min(best, w * static_cast<double>(p) + x * static_cast<double>(passes(n, columns)));
  }
  return best;
}

// Where the results are only just larger than the scratchpad, one operand passes twice. The usual bound does not know of that.
TEST(Tiling, DrawnProducts_MoveFewBytesMoreThanTheBound) {
  std::mt19937 random(7);
  const auto draw = [&](double low, double high) {
    std::uniform_real_distribution<double> logarithm(std::log(low), std::log(high));
    return static_cast<int64_t>(std::exp(logarithm(random)));
  };
  double worst = 0, worst_usual = 0;
  int above = 0;
  for (int i = 0; i < 500; ++i) {
    const int64_t m = draw(1, 4096), n = draw(1, 4096), k = draw(16, 8192), scratchpad = draw(16384, 4 << 20);
    const Made made = make(product_text(m, n, k));
    Limits limits;
    limits.scratchpad_bytes = static_cast<uint64_t>(scratchpad);
    limits.rows = limits.columns = limits.depth = 4;
    const Tiling tiles(entry_group(made, true), limits);
    ASSERT_EQ(tiles.complaint(), "");
    const double work = static_cast<double>(m * n * k), s = static_cast<double>(scratchpad);
    const double once = static_cast<double>(m * k + k * n), results = static_cast<double>(4 * m * n);
    const double usual = std::max(once, 4 * work / std::sqrt(s) - 2 * s) + results;
    const double whole = std::max(usual, bytes_with_whole_parts(m, n, k, scratchpad) + results);
    const double moved = static_cast<double>(tiles.moved_bytes());
    EXPECT_LE(moved, whole * 1.3) << m << " x " << n << " x " << k << " on " << scratchpad;
    above += moved > usual * 1.3 ? 1 : 0;
    worst = std::max(worst, moved / whole);
    worst_usual = std::max(worst_usual, moved / usual);
  }
  std::cout << "at most " << worst << " of the bound with whole parts, " << worst_usual << " of the usual one; "
            << above << " of 500 above 1.3 of that\n";
  EXPECT_LE(above, 2);
}

// One operand of each piece is that of the piece before it, also where a row of pieces ends.
TEST(Tiling, LoopsTurnRound) {
  Limits limits;
  limits.scratchpad_bytes = 16384;
  limits.rows = limits.columns = 16;
  limits.cuts_sums = false;
  const Made made = make(product_text(500, 700, 64));
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  ASSERT_GT(tiles.pieces().size(), 50u);
  for (size_t i = 1; i < tiles.pieces().size(); ++i) {
    const Piece &before = tiles.pieces()[i - 1], &now = tiles.pieces()[i];
    const auto stays = [&](size_t k) { return before.operands[k].begins == now.operands[k].begins; };
    EXPECT_TRUE(stays(0) || stays(1)) << i;
  }
}

TEST(Tiling, OperandsThatStay_HaveOneCopy) {
  Limits limits;
  limits.scratchpad_bytes = 1 << 20;
  limits.rows = limits.columns = limits.depth = 16;
  limits.operand_copies = 2;
  // x is cut in a few blocks of rows, each of which stays while all weights pass.
  const Made made = make(product_text(777, 1333, 2111));
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  std::array<int, 2> changes = {0, 0};
  for (size_t i = 1; i < tiles.pieces().size(); ++i) {
    for (size_t k = 0; k < 2; ++k)
      changes.at(k) += tiles.pieces()[i].operands[k].begins != tiles.pieces()[i - 1].operands[k].begins;
  }
  const size_t rare = changes[0] < changes[1] ? 0 : 1;
  EXPECT_GT(changes.at(rare), 0);
  EXPECT_GE(changes.at(1 - rare), 8 * changes.at(rare));
  EXPECT_EQ(tiles.copies(static_cast<uint32_t>(rare)), 1u);
  EXPECT_EQ(tiles.copies(static_cast<uint32_t>(1 - rare)), 2u);
  EXPECT_LE(tiles.scratchpad_bytes(), limits.scratchpad_bytes);
}

TEST(Tiling, Sizes_AreMultiplesButAtTheEnd) {
  const Made made = make(product_text(1000, 1000, 1000));
  Limits limits;
  limits.scratchpad_bytes = 100000;
  limits.rows = 16, limits.columns = 32, limits.depth = 64;
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  ASSERT_GT(tiles.pieces().size(), 1u);
  for (const Piece& piece : tiles.pieces()) {
    const Place &x = piece.operands[0], &w = piece.operands[1];
    for (const auto& [place, d, multiple] : {std::tuple(&x, 0, 16), {&x, 1, 64}, {&w, 1, 32}}) {
      const auto at = static_cast<size_t>(d);
      EXPECT_TRUE(place->sizes[at] % multiple == 0 || place->begins[at] + place->sizes[at] == 1000);
      EXPECT_EQ(place->begins[at] % multiple, 0);
    }
    EXPECT_EQ(x.offset, static_cast<uint64_t>(x.begins[0] * 1000 + x.begins[1]));
  }
}

TEST(Tiling, WeightsLargerThanTheScratchpad_AreReadOnce) {
  const Made made = make(product_text(16, 4096, 2048));
  Limits limits;
  limits.scratchpad_bytes = 1 << 20;
  limits.rows = limits.columns = limits.depth = 16;
  limits.operand_copies = 2;
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  EXPECT_LE(tiles.scratchpad_bytes(), limits.scratchpad_bytes);
  EXPECT_EQ(tiles.moved_bytes(), static_cast<uint64_t>(16 * 2048 + 4096 * 2048 + 16 * 4096 * 4));
}

TEST(Tiling, Convolution_ReadsHalosAndPadsAtTheEdgeOnly) {
  const Made made = make(
      "HloModule m\nENTRY e {\n x = f32[1,64,64,8] parameter(0)\n k = f32[3,3,8,8] parameter(1)\n"
      " ROOT y = f32[1,64,64,8] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n}\n");
  Limits limits;
  limits.scratchpad_bytes = 100000;
  limits.cuts_sums = false;
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  ASSERT_GT(tiles.pieces().size(), 1u);
  for (const Piece& piece : tiles.pieces()) {
    const Place &x = piece.operands[0], &y = piece.results[0];
    for (const size_t d : {1, 2}) {
      EXPECT_EQ(x.begins[d], std::max<int64_t>(y.begins[d] - 1, 0));
      EXPECT_EQ(x.begins[d] + x.sizes[d], std::min<int64_t>(y.begins[d] + y.sizes[d] + 1, 64));
    }
  }
}

// Quantized groups keep their op, so that their attributes can be read for each piece.
TEST(Tiling, QuantizedConvolution_PiecesStateTheirOwnPadding) {
  const Made made = make(R"(HloModule m
f {
  x = s8[1,32,32,4] parameter(0)
  k = s8[3,3,4,8] parameter(1)
  bias = s32[8] parameter(2)
  zero = s8[] constant(5)
  padded = s8[1,34,34,4] pad(x, zero), padding=0_0x1_1x1_1x0_0
  sum = s32[1,32,32,8] convolution(padded, k), window={size=3x3}, dim_labels=b01f_01io->b01f
  spread = s32[1,32,32,8] broadcast(bias), dimensions={3}
  ROOT y = s32[1,32,32,8] add(sum, spread)
}
ENTRY e {
  x = s8[1,32,32,4] parameter(0)
  k = s8[3,3,4,8] parameter(1)
  bias = s32[8] parameter(2)
  ROOT y = s32[1,32,32,8] call(x, k, bias), to_apply=f, is_composite=true, frontend_attributes={composite.name="collet.integer_convolution",composite.attributes={operands = "lhs,rhs,bias", bias_dims = array<i64: 3>, bias_type = "integer", lhs_pad_value = 5 : i64, lhs_pad_low = array<i64: 0, 1, 1, 0>, lhs_pad_high = array<i64: 0, 1, 1, 0>, lhs_pad_interior = array<i64: 0, 0, 0, 0>},composite.version="0"}
}
)");
  ASSERT_TRUE(made.module);
  Limits limits;
  limits.scratchpad_bytes = 16384;
  limits.cuts_sums = false;
  limits.columns = 8;
  const Tiling tiles(entry_group(made, true), limits);
  ASSERT_EQ(tiles.complaint(), "");
  ASSERT_GT(tiles.pieces().size(), 1u);
  bool inner = false;
  for (const Piece& piece : tiles.pieces()) {
    const std::vector<uint64_t> block = tiles.program(piece.shape);
    const auto* program = reinterpret_cast<const collet_program*>(block.data());
    const collet_op* op = collet_op_at(program, 0);
    const std::vector<kernel::Array> arrays = kernel::RegionGraph(program).arrays(op);
    const kernel::QuantizedGroup group(kernel::Op(program, op, arrays.data()));
    const Place &x = piece.operands[0], &y = piece.results[0];
    for (const size_t d : {1, 2}) {
      EXPECT_EQ(group.integers("lhs_pad_low")[d], y.begins[d] == 0 ? 1 : 0);
      EXPECT_EQ(group.integers("lhs_pad_high")[d], y.begins[d] + y.sizes[d] == 32 ? 1 : 0);
      EXPECT_EQ(x.sizes[d] + group.integers("lhs_pad_low")[d] + group.integers("lhs_pad_high")[d], y.sizes[d] + 2);
      inner |= y.begins[d] != 0;
    }
  }
  EXPECT_TRUE(inner);
  const std::vector<Literal> inputs = inputs_of(*made.module);
  const auto whole = hlo::Evaluator(*made.module).run(inputs);
  ASSERT_TRUE(whole.ok());
  PieceRun(tiles, limits, inputs, {*whole}).check();
}

// Tables, caches and slices of them, which are larger than the scratchpad.
TEST(Tiling, WindowsWithAllOfADimension_AreCutAlongIt) {
  for (const char* root : {
           "f32[70,96] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
           "index_vector_dim=1, "
           "slice_sizes={1,96}",
           "f32[70,5,96] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
           "index_vector_dim=1, slice_sizes={5,96}",
           "f32[7,96] dynamic-slice(x, s, zero), dynamic_slice_sizes={7,96}",
           "f32[150,96] dynamic-update-slice(x, u, s, zero)",
       }) {
    SCOPED_TRACE(root);
    const Made made = make(
        "HloModule m\nENTRY e {\n x = f32[150,96] parameter(0)\n i = s32[70,1] parameter(1)\n"
        " u = f32[7,96] parameter(2)\n s = s32[] parameter(3)\n zero = s32[] parameter(4)\n ROOT y = " +
        std::string(root) + "\n}\n");
    ASSERT_TRUE(made.module);
    Limits limits;
    limits.scratchpad_bytes = 16384;
    const Tiling tiles(entry_group(made, true), limits);
    ASSERT_EQ(tiles.complaint(), "");
    EXPECT_GT(tiles.pieces().size(), 1u);
    const std::vector<Literal> inputs = inputs_of(*made.module);
    const auto whole = hlo::Evaluator(*made.module).run(inputs);
    ASSERT_TRUE(whole.ok());
    const collet_region* entry = collet_region_at(made.get(), 0);
    std::vector<Literal> given;
    for (const uint32_t value : tiles.group().sources) given.push_back(inputs[value - entry->arguments.first]);
    PieceRun(tiles, limits, given, {*whole}).check();
  }
}

TEST(Tiling, WhatCannotFit_IsRefusedWithTheArrayThatIsTooLarge) {
  const Made made = make(
      "HloModule m\nENTRY e {\n x = f32[8,5000] parameter(0)\n ROOT y = f32[8,5000] reverse(x), dimensions={1}\n}\n");
  Limits limits;
  EXPECT_EQ(Tiling(entry_group(made, true), limits).complaint(), "the scratchpad has no bytes");
  limits.scratchpad_bytes = 16384;
  EXPECT_EQ(
      Tiling(entry_group(made, true), limits).complaint(),
      "reverse y cannot be cut further: the smallest piece needs 40000 bytes of the scratchpad's 16384; its largest "
      "array is f32[1,5000]");
  limits.scratchpad_bytes = 40000;
  EXPECT_EQ(Tiling(entry_group(made, true), limits).pieces().size(), 8u);
  limits.most_pieces = 7;
  EXPECT_EQ(Tiling(entry_group(made, true), limits).complaint(), "the group needs more than 7 pieces");
}

TEST(Tiling, OpWithAnEffect_IsRefused) {
  const Made made = make(
      "HloModule m, replica_count=2\nENTRY e {\n x = f32[8] parameter(0)\n"
      " ROOT y = f32[8] collective-permute(x), source_target_pairs={{0,1}}\n}\n");
  Limits limits;
  limits.scratchpad_bytes = 16384;
  EXPECT_EQ(Tiling(entry_group(made, true), limits).complaint(),
            "collective-permute y has an effect, so that it cannot be done piece by piece");
}

TEST(Tiling, NoElements_GiveNoPieces) {
  const Made made = make("HloModule m\nENTRY e {\n x = f32[0,8] parameter(0)\n ROOT y = f32[0,8] negate(x)\n}\n");
  Limits limits;
  limits.scratchpad_bytes = 1;
  const Tiling tiles(entry_group(made, true), limits);
  EXPECT_EQ(tiles.complaint(), "");
  EXPECT_TRUE(tiles.pieces().empty());
}

}  // namespace
}  // namespace collet::tiling
