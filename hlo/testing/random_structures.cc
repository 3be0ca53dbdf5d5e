// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing::random {

std::string Writer::combiner(std::string_view op, const TypeRow& t) {
  const std::string name = state_.name("combine"), scalar = shape(t, {});
  state_.computations += name + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar +
                         " parameter(1)\n  ROOT c = " + scalar + " " + std::string(op) + "(a, b)\n}\n\n";
  return name;
}

void Writer::reduce() {
  const auto v = pick([](const Value& x) { return is_ranked(x) && is_plain(x); });
  if (!v) return;
  static const std::vector<std::string> kOps = {"add", "maximum", "minimum", "multiply"};
  const std::string op = is_narrow(*v) ? "maximum" : state_.of(kOps);
  Sizes over, dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (state_.one_in(2))
      over.push_back(static_cast<int64_t>(i));
    else
      dims.push_back(v->dims[i]);
  const Value init = constant(*v->type);
  const bool rounds = v->type->kind == Kind::Float && (op == "add" || op == "multiply");
  emit(*v->type, dims,
       "reduce(" + v->name + ", " + init.name + "), dimensions=" + list(over) + ", to_apply=" + combiner(op, *v->type),
       !rounds);
}

void Writer::reduce_window() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  static const std::vector<std::string> kOps = {"add", "maximum", "minimum"};
  const std::string op = is_narrow(*v) ? "maximum" : state_.of(kOps);
  std::string sizes, strides, pads;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t size = state_.between(1, std::min<int64_t>(n, 3)), stride = state_.between(1, 2);
    const int64_t low = state_.below(2), high = state_.below(2);
    dims.push_back((low + n + high - size) / stride + 1);
    const std::string x = sizes.empty() ? "" : "x";
    sizes += x + std::to_string(size);
    strides += x + std::to_string(stride);
    pads += x + std::to_string(low) + "_" + std::to_string(high);
  }
  const Value init = constant(*v->type);
  emit(*v->type, dims,
       "reduce-window(" + v->name + ", " + init.name + "), window={size=" + sizes + " stride=" + strides +
           " pad=" + pads + "}, to_apply=" + combiner(op, *v->type),
       v->type->kind != Kind::Float || op != "add");
}

void Writer::dot() {
  const auto v = pick(
      [](const Value& x) { return x.exact && x.rank() > 0 && x.type->kind != Kind::Pred && x.type->name != "c64"; });
  if (!v) return;
  const auto inner = static_cast<size_t>(state_.below(static_cast<int64_t>(v->rank())));
  Sizes other = {v->dims[inner]};
  if (state_.one_in(2)) other.push_back(state_.between(1, 4));
  const bool batched = v->rank() == 3 && inner != 0 && state_.one_in(2);
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (i != inner) dims.push_back(v->dims[i]);
  if (other.size() == 2) dims.push_back(other[1]);
  if (batched) other.insert(other.begin(), v->dims[0]);
  const Value w = mate({"", v->type, other});
  const std::string batch = batched ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
  int64_t elements = 1;
  for (int64_t d : dims) elements *= d;
  if (elements > kMostElements) return;
  emit(*v->type, dims,
       "dot(" + v->name + ", " + w.name + "), " + batch + "lhs_contracting_dims={" + std::to_string(inner) +
           "}, rhs_contracting_dims={" + (batched ? "1" : "0") + "}",
       v->type->kind != Kind::Float);
}

void Writer::sort() {
  const auto v = pick([](const Value& x) { return is_ranked(x) && is_plain(x) && x.type->kind != Kind::Float; });
  if (!v) return;
  const std::string name = state_.name("order"), scalar = shape(*v->type, {});
  state_.computations +=
      name + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar +
      " parameter(1)\n  ROOT c = pred[] compare(a, b), direction=" + (state_.one_in(2) ? "LT" : "GT") + "\n}\n\n";
  emit(*v->type, v->dims,
       "sort(" + v->name + "), dimensions={" + std::to_string(state_.below(static_cast<int64_t>(v->rank()))) +
           "}, to_apply=" + name);
}

// A convolution with one spatial dimension, a random kernel size and a random window.
void Writer::convolution() {
  const auto v = pick([](const Value& x) { return x.rank() == 3 && is_filled(x) && is_plain(x); });
  if (!v || v->type->kind == Kind::Pred) return;
  const int64_t n = v->dims[1], size = state_.between(1, 3), stride = state_.between(1, 2);
  const int64_t low = state_.between(-1, 2), high = state_.between(0, 2);
  const int64_t base = state_.between(1, 2), dilation = state_.between(1, 2), features = state_.between(1, 3);
  const int64_t room = low + (n - 1) * base + 1 + high - ((size - 1) * dilation + 1);
  if (room < 0) return;
  const Value kernel = mate({"", v->type, {size, v->dims[2], features}});
  const auto text = [](int64_t i) { return std::to_string(i); };
  emit(*v->type, {v->dims[0], room / stride + 1, features},
       "convolution(" + v->name + ", " + kernel.name + "), window={size=" + text(size) + " stride=" + text(stride) +
           " pad=" + text(low) + "_" + text(high) + " lhs_dilate=" + text(base) + " rhs_dilate=" + text(dilation) +
           " rhs_reversal=" + text(state_.below(2)) + "}, dim_labels=b0f_0io->b0f",
       v->type->kind != Kind::Float);
}

// The sums of a transform may cancel to zero except for rounding, which would make the relative error unbounded. So a
// number is added.
void Writer::fft() {
  const auto v = pick([](const Value& x) {
    return is_filled(x) && x.exact && (x.type->kind == Kind::Complex || x.type->name == "f32" || x.type->name == "f64");
  });
  if (!v) return;
  Sizes dims = v->dims;
  const bool whole = v->type->kind == Kind::Complex;
  const std::string length = ", fft_length={" + std::to_string(dims.back()) + "}";
  if (!whole) dims.back() = dims.back() / 2 + 1;
  const TypeRow& t = whole ? *v->type : type(v->type->name == "f32" ? "c64" : "c128");
  const std::string kind = !whole ? "RFFT" : state_.one_in(2) ? "FFT" : "IFFT";
  const Value scalar = emit(t, {}, "constant((3, 2))");
  const Value offset = emit(t, dims, "broadcast(" + scalar.name + "), dimensions={}");
  const Value sum = emit(t, dims, "fft(" + v->name + "), fft_type=" + kind + length, false);
  pool_.pop_back();
  emit(t, dims, "add(" + sum.name + ", " + offset.name + ")", false);
}

// The gradient of a maximum over windows. It uses integers, so that nothing is rounded.
void Writer::select_and_scatter() {
  const auto v = pick([](const Value& x) {
    return is_filled(x) && x.exact && (x.type->kind == Kind::Signed || x.type->kind == Kind::Unsigned);
  });
  if (!v) return;
  std::string sizes, strides;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t size = state_.between(1, std::min<int64_t>(n, 3)), stride = state_.between(1, 2);
    dims.push_back((n - size) / stride + 1);
    const std::string x = sizes.empty() ? "" : "x";
    sizes += x + std::to_string(size);
    strides += x + std::to_string(stride);
  }
  const std::string select = state_.name("select"), scalar = shape(*v->type, {});
  state_.computations += select + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar +
                         " parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE\n}\n\n";
  const Value source = mate({"", v->type, dims});
  const Value init = constant(*v->type);
  emit(*v->type, v->dims,
       "select-and-scatter(" + v->name + ", " + source.name + ", " + init.name + "), window={size=" + sizes +
           " stride=" + strides + "}, select=" + select + ", scatter=" + combiner("add", *v->type));
}

void Writer::topk() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x) && x.type->kind != Kind::Pred; });
  if (!v) return;
  Sizes dims = v->dims;
  dims.back() = state_.between(1, dims.back());
  const std::string name = state_.name("k");
  text_ += "  " + name + " = (" + shape(*v->type, dims) + ", " + shape(type("s32"), dims) + ") topk(" + v->name +
           "), k=" + std::to_string(dims.back()) + ", largest=" + (state_.one_in(2) ? "true" : "false") + "\n";
  emit(*v->type, dims, "get-tuple-element(" + name + "), index=0");
  emit(type("s32"), dims, "get-tuple-element(" + name + "), index=1");
}

void Writer::random_bits() {
  const Value state = emit(type("u64"), {2}, "constant({" + std::to_string(state_.below(1000)) + ", 7})");
  const TypeRow& t = type(state_.one_in(2) ? "u32" : state_.one_in(2) ? "u8" : "u64");
  const Sizes dims = state_.sizes();
  const std::string name = state_.name("bits");
  text_ += "  " + name + " = (u64[2], " + shape(t, dims) + ") rng-bit-generator(" + state.name +
           "), algorithm=" + (state_.one_in(2) ? "rng_three_fry" : "rng_philox") + "\n";
  emit(t, dims, "get-tuple-element(" + name + "), index=1");
}

// A reduction of pairs: the largest element and its index, the first one among equal elements.
void Writer::reduce_pairs() {
  const auto v = pick([](const Value& x) {
    return is_ranked(x) && x.exact && (x.type->kind == Kind::Signed || x.type->kind == Kind::Unsigned);
  });
  if (!v) return;
  const int64_t over = state_.below(static_cast<int64_t>(v->rank()));
  Sizes dims = v->dims;
  dims.erase(dims.begin() + over);
  const TypeRow& s32 = type("s32");
  const Value places = emit(s32, v->dims, "iota(), iota_dimension=" + std::to_string(over));
  const Value init = constant(*v->type), none = emit(s32, {}, "constant(-1)");
  const std::string name = state_.name("largest"), result = state_.name("pair"), t = shape(*v->type, {});
  state_.computations += name + " {\n  a = " + t + " parameter(0)\n  i = s32[] parameter(1)\n  b = " + t +
                         " parameter(2)\n  j = s32[] parameter(3)\n  more = pred[] compare(a, b), direction=GT\n"
                         "  same = pred[] compare(a, b), direction=EQ\n  first = pred[] compare(i, j), direction=LT\n"
                         "  tie = pred[] and(same, first)\n  left = pred[] or(more, tie)\n  x = " +
                         t + " select(left, a, b)\n  k = s32[] select(left, i, j)\n  ROOT r = (" + t +
                         ", s32[]) tuple(x, k)\n}\n\n";
  text_ += "  " + result + " = (" + shape(*v->type, dims) + ", " + shape(s32, dims) + ") reduce(" + v->name + ", " +
           places.name + ", " + init.name + ", " + none.name + "), dimensions={" + std::to_string(over) +
           "}, to_apply=" + name + "\n";
  emit(*v->type, dims, "get-tuple-element(" + result + "), index=0");
  emit(s32, dims, "get-tuple-element(" + result + "), index=1");
}

}  // namespace collet::hlo::testing::random
