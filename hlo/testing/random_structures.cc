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

namespace {

struct WindowSizes {
  int64_t size, stride, low, high, base, dilation;
};

// Returns the number of places of the window along a dimension of size n > 0; 0 if it does not fit.
int64_t places_of(const WindowSizes& w, int64_t n) {
  const int64_t padded = w.low + (n - 1) * w.base + 1 + w.high, dilated = (w.size - 1) * w.dilation + 1;
  return padded < dilated ? 0 : (padded - dilated) / w.stride + 1;
}

}  // namespace

void Writer::reduce_window() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  static const std::vector<std::string> kOps = {"add", "maximum", "minimum"};
  const std::string op = is_narrow(*v) ? "maximum" : state_.of(kOps);
  std::string parts[5];
  Sizes dims;
  // A cumulative reduction has a window as large as the dimension.
  const int64_t cumulative = state_.one_in(3) ? state_.below(static_cast<int64_t>(v->rank())) : -1;
  for (size_t i = 0; i < v->rank(); ++i) {
    const int64_t n = v->dims[i];
    int64_t size = state_.between(1, std::min<int64_t>(n, 3)), stride = state_.between(1, 2);
    int64_t low = state_.below(2), high = state_.below(2), base = 1, dilation = 1;
    if (cumulative >= 0) {
      const bool here = cumulative == static_cast<int64_t>(i);
      size = here ? n : 1;
      stride = 1;
      low = here ? n - 1 : 0;
      high = 0;
      if (state_.one_in(2)) std::swap(low, high);
    } else if (state_.everything && state_.one_in(4)) {
      base = state_.between(1, 2);
      dilation = state_.between(1, 2);
      low = state_.between(-1, 2);
    }
    const int64_t places = places_of({size, stride, low, high, base, dilation}, n);
    if (places == 0) return;
    dims.push_back(places);
    const std::string values[] = {std::to_string(size), std::to_string(stride),
                                  std::to_string(low) + "_" + std::to_string(high), std::to_string(base),
                                  std::to_string(dilation)};
    for (size_t j = 0; j < std::size(parts); ++j) parts[j] += (i ? "x" : "") + values[j];
  }
  const Value init = constant(*v->type);
  emit(*v->type, dims,
       "reduce-window(" + v->name + ", " + init.name + "), window={size=" + parts[0] + " stride=" + parts[1] + " pad=" +
           parts[2] + " lhs_dilate=" + parts[3] + " rhs_dilate=" + parts[4] + "}, to_apply=" + combiner(op, *v->type),
       v->type->kind != Kind::Float || op != "add");
}

void Writer::dot() {
  const auto v = pick(
      [](const Value& x) { return x.exact && x.rank() > 0 && x.type->kind != Kind::Pred && x.type->name != "c64"; });
  if (!v) return;
  const auto inner = static_cast<size_t>(state_.below(static_cast<int64_t>(v->rank())));
  const bool batched = v->rank() == 3 && inner != 0 && state_.one_in(2);
  // The dimensions of the second operand in a random order.
  enum Role { kBatch, kInner, kFree };
  std::vector<Role> roles = {kInner};
  if (batched) roles.insert(roles.begin(), kBatch);
  if (state_.one_in(2)) roles.insert(roles.begin() + state_.between(0, static_cast<int64_t>(roles.size())), kFree);
  Sizes dims, other;
  std::string places[2];
  for (size_t i = 0; i < v->rank(); ++i)
    if (i != inner) dims.push_back(v->dims[i]);
  const int64_t rest = v->count() / std::max<int64_t>(v->dims[inner], 1);
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == kFree) {
      other.push_back(state_.small_or_any(4, state_.most_elements / std::max<int64_t>({rest, v->dims[inner], 1})));
      dims.push_back(other.back());
    } else {
      other.push_back(v->dims[roles[i] == kBatch ? 0 : inner]);
      places[roles[i]] = std::to_string(i);
    }
  }
  const Value w = mate({"", v->type, other});
  if (count(dims) > state_.most_elements) return;
  const std::string batch = batched ? "lhs_batch_dims={0}, rhs_batch_dims={" + places[kBatch] + "}, " : "";
  emit(*v->type, dims,
       "dot(" + v->name + ", " + w.name + "), " + batch + "lhs_contracting_dims={" + std::to_string(inner) +
           "}, rhs_contracting_dims={" + places[kInner] + "}",
       v->type->kind != Kind::Float);
}

// Sorts one array, or keys with the numbers of their places. Floats have the total order, in which no two values are unordered.
void Writer::sort() {
  const auto v = pick([](const Value& x) { return is_ranked(x) && is_plain(x); });
  if (!v) return;
  const auto along = state_.below(static_cast<int64_t>(v->rank()));
  const std::string name = state_.name("order"), scalar = shape(*v->type, {});
  const bool pairs = state_.everything && state_.one_in(2);
  state_.computations += name + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar + " parameter(1)\n" +
                         (pairs ? "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n" : "") +
                         "  ROOT c = pred[] compare(a, b), direction=" + (state_.one_in(2) ? "LT" : "GT") +
                         (v->type->kind == Kind::Float ? ", type=TOTALORDER" : "") + "\n}\n\n";
  const std::string rest =
      "), dimensions={" + std::to_string(along) + "}, " + (pairs ? "is_stable=true, " : "") + "to_apply=" + name;
  if (!pairs) {
    emit(*v->type, v->dims, "sort(" + v->name + rest);
    return;
  }
  const TypeRow& s32 = type("s32");
  const Value places = emit(s32, v->dims, "iota(), iota_dimension=" + std::to_string(along));
  const std::string sorted = state_.name("sorted");
  text_ += "  " + sorted + " = (" + shape(*v) + ", " + shape(places) + ") sort(" + v->name + ", " + places.name + rest +
           "\n";
  emit(*v->type, v->dims, "get-tuple-element(" + sorted + "), index=0");
  emit(s32, v->dims, "get-tuple-element(" + sorted + "), index=1");
}

// A convolution with one or two spatial dimensions, a random window, groups, and a random order of dimensions.
void Writer::convolution() {
  const auto v = pick([](const Value& x) { return x.rank() >= 3 && x.rank() <= 4 && is_filled(x) && is_plain(x); });
  if (!v || v->type->kind == Kind::Pred) return;
  const size_t spatial = v->rank() - 2;
  const auto text = [](int64_t i) { return std::to_string(i); };
  // The numbers of dimensions: batch (or output features of the kernel), features, and the spatial ones.
  const auto places = [&] {
    Sizes at(v->rank());
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i);
    if (state_.one_in(2))
      for (size_t i = at.size(); i > 1; --i)
        std::swap(at[i - 1], at[static_cast<size_t>(state_.below(static_cast<int64_t>(i)))]);
    return at;
  };
  const auto labels = [&](const Sizes& at, char first, char second) {
    std::string out(at.size(), ' ');
    for (size_t i = 0; i < at.size(); ++i)
      out[static_cast<size_t>(at[i])] = i == 0 ? first : i == 1 ? second : static_cast<char>('0' + i - 2);
    return out;
  };
  const Sizes in = places(), kernel_at = places(), out = places();
  const auto size_of = [&](size_t i) { return v->dims[static_cast<size_t>(in[i])]; };
  const int64_t batch = size_of(0), channels = size_of(1);
  int64_t groups = 1, batch_groups = 1;
  if (const int64_t n = state_.between(2, 4); state_.one_in(3) && channels % n == 0) groups = n;
  if (groups == 1 && state_.one_in(4) && channels % 2 == 0) groups = channels;
  if (const int64_t n = state_.between(2, 4); groups == 1 && state_.one_in(3) && batch % n == 0) batch_groups = n;
  if (groups == 1 && batch_groups == 1 && state_.one_in(8)) batch_groups = batch;
  const int64_t features = groups * batch_groups * state_.between(1, 3);
  Sizes kernel(v->rank()), dims(v->rank());
  const auto set = [](Sizes& sizes, const Sizes& at, size_t i, int64_t size) {
    sizes[static_cast<size_t>(at[i])] = size;
  };
  set(kernel, kernel_at, 0, features);
  set(kernel, kernel_at, 1, channels / groups);
  set(dims, out, 0, batch / batch_groups);
  set(dims, out, 1, features);
  std::string parts[6];
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t n = size_of(i + 2), size = state_.between(1, 3), stride = state_.between(1, 2);
    const int64_t low = state_.between(-1, 2), high = state_.between(0, 2);
    const int64_t base = state_.between(1, 2), dilation = state_.between(1, 2);
    const int64_t windows = places_of({size, stride, low, high, base, dilation}, n);
    if (windows == 0) return;
    set(kernel, kernel_at, i + 2, size);
    set(dims, out, i + 2, windows);
    const std::string values[] = {text(size), text(stride),   text(low) + "_" + text(high),
                                  text(base), text(dilation), text(state_.below(2))};
    for (size_t j = 0; j < std::size(parts); ++j) parts[j] += (i ? "x" : "") + values[j];
  }
  // The kernel and the result are of the order of the operand, and so is the time of the evaluator.
  if (count(kernel) > state_.most_elements || count(dims) > state_.most_elements ||
      count(dims) * (channels / groups) > 64 * state_.most_elements)
    return;
  const Value weights = mate({"", v->type, kernel});
  const std::string kernel_labels = labels(kernel_at, 'o', 'i');
  emit(*v->type, dims,
       "convolution(" + v->name + ", " + weights.name + "), window={size=" + parts[0] + " stride=" + parts[1] +
           " pad=" + parts[2] + " lhs_dilate=" + parts[3] + " rhs_dilate=" + parts[4] + " rhs_reversal=" + parts[5] +
           "}, dim_labels=" + labels(in, 'b', 'f') + "_" + kernel_labels + "->" + labels(out, 'b', 'f') +
           (groups > 1 ? ", feature_group_count=" + text(groups) : "") +
           (batch_groups > 1 ? ", batch_group_count=" + text(batch_groups) : ""),
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
