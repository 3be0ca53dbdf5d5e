// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "reference_backends/cpu/tests/plugin.h"

// Checks attention that is computed in blocks of rows, with masks whose elements are left out of the products. The peer
// is the same program without fusion, which computes the products and the softmax one after the other.

namespace collet::cpu::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Mask : uint8_t { kNone, kCausal, kLater, kWindow, kNothingFirst, kArgument };

/// What else is done with the scores of an attention.
enum class Also : uint8_t {
  kNothing,
  kScaleByHead,    ///< a factor for each head
  kSecondProduct,  ///< the product of keys and values is added
  kMinusFirstRow,  ///< the scores of the first query are subtracted from all
  kWeightsTwice,   ///< the result is the product of the weights with themselves
  kBytes,          ///< the weights and values are rounded to bytes
};

struct Attention {
  int64_t heads = 2;
  int64_t queries = 1024;
  int64_t keys = 1024;
  int64_t depth = 32;
  uint32_t type = kF32;  ///< of queries, keys, values and weights
  Mask mask = Mask::kCausal;
  float instead = -kInfinity;  ///< replaces scores that are masked
  bool values_first = false;   ///< the result is values * weights, with the queries innermost
  bool separate_sums = false;  ///< another shape of the exponentials splits the softmax into two kernels
  Also also = Also::kNothing;
  bool in_blocks = true;       ///< whether the fused program should run in blocks of rows
  bool one_per_group = false;  ///< queries are [heads, queries, 1, depth]
  int64_t shared = 1;          ///< queries are [heads, queries, shared, depth]: some heads share their keys
};

class Builder {
 public:
  explicit Builder(const Attention& a) : a_(a) {}

  const collet_program* run() {
    const Handle k = e_.argument(a_.type, {a_.heads, a_.keys, a_.depth});
    const Handle v = e_.argument(a_.type, {a_.heads, a_.keys, a_.depth});
    const bool shares = a_.shared > 1 || a_.one_per_group;
    std::vector<int64_t> of_queries{a_.heads, a_.queries};
    if (shares) of_queries.push_back(a_.shared);
    std::vector<int64_t> shape = of_queries;
    of_queries.push_back(a_.depth);
    shape.push_back(a_.keys);
    const Handle q = e_.argument(a_.type, of_queries);
    Handle scores = dot(q, k, shares ? 3 : 2, 2, kF32, shape);
    if (shares && !a_.one_per_group) {
      shape = {a_.heads, a_.shared, a_.queries, a_.keys};
      scores = e_.op(COLLET_OP_TRANSPOSE, kF32, shape, {scores}, collet_dimensions_attrs{b_.list({0, 2, 1, 3})});
    }
    const int64_t row = a_.one_per_group ? 1 : static_cast<int64_t>(shape.size()) - 2;
    const auto column = static_cast<int64_t>(shape.size()) - 1;
    scores = e_.binary(COLLET_OP_MULTIPLY, scores, e_.broadcast(e_.scalar(kF32, 0.25F), shape));
    scores = with(scores, k, v);
    if (a_.mask != Mask::kNone) {
      const Handle mask = e_.broadcast(this->mask(), shape, {row, column});
      scores = e_.op(COLLET_OP_SELECT, kF32, shape, {mask, scores, e_.broadcast(e_.scalar(kF32, a_.instead), shape)});
    }
    std::vector<int64_t> own;
    for (int64_t d = 0; d < column; ++d) own.push_back(d);
    const Handle most =
        e_.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, scores, e_.scalar(kF32, -kInfinity), {column});
    Handle x = e_.unary(COLLET_OP_EXPONENTIAL, e_.binary(COLLET_OP_SUBTRACT, scores, e_.broadcast(most, shape, own)));
    if (a_.separate_sums) {
      shape.insert(shape.begin() + 1, 1);
      x = e_.reshape(x, shape);
      own.push_back(column);
    }
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    const Handle sums = e_.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, x, e_.scalar(kF32, 0.0F), {last});
    Handle weights = e_.binary(COLLET_OP_DIVIDE, x, e_.broadcast(sums, shape, own));
    if (a_.type != kF32) weights = e_.op(COLLET_OP_CONVERT, a_.type, shape, {weights});
    std::vector<int64_t> result(shape.begin(), shape.end() - 1);
    if (a_.also == Also::kWeightsTwice) {
      e_.results({dot(weights, weights, last, 1, a_.type, shape)});
    } else if (a_.also == Also::kBytes) {
      const Handle hundred = e_.broadcast(e_.scalar(kF32, 100.0F), shape);
      const Handle bytes =
          e_.op(COLLET_OP_CONVERT, COLLET_TYPE_S8, shape, {e_.binary(COLLET_OP_MULTIPLY, weights, hundred)});
      const Handle tens = e_.binary(COLLET_OP_MULTIPLY, v, e_.broadcast(e_.scalar(kF32, 10.0F), v.dims));
      const Handle of_values = e_.op(COLLET_OP_CONVERT, COLLET_TYPE_S8, v.dims, {tens});
      const std::vector<int64_t> dims{a_.heads, a_.queries, a_.depth};
      e_.results({e_.op(COLLET_OP_CONVERT, kF32, dims, {dot(bytes, of_values, last, 1, COLLET_TYPE_S32, dims)})});
    } else if (a_.values_first) {
      e_.results({dot(v, weights, 1, last, a_.type, {a_.heads, a_.depth, a_.queries})});
    } else {
      result.push_back(a_.depth);
      e_.results({dot(weights, v, last, 1, a_.type, result)});
    }
    return b_.finish();
  }

 private:
  Handle dot(const Handle& x, const Handle& y, int64_t of_x, int64_t of_y, uint32_t type, std::vector<int64_t> dims) {
    collet_dot_attrs a{};
    a.lhs_batch = a.rhs_batch = b_.list({0});
    a.lhs_contracting = b_.list({of_x});
    a.rhs_contracting = b_.list({of_y});
    return e_.op(COLLET_OP_DOT, type, std::move(dims), {x, y}, a);
  }

  /// Returns the scores with what else is done with them.
  Handle with(const Handle& scores, const Handle& k, const Handle& v) {
    switch (a_.also) {
      case Also::kScaleByHead: {
        const Handle heads = e_.op(COLLET_OP_IOTA, kF32, {a_.heads}, {}, collet_iota_attrs{0});
        return e_.binary(COLLET_OP_MULTIPLY, scores, e_.broadcast(heads, scores.dims, {0}));
      }
      case Also::kSecondProduct:
        return e_.binary(COLLET_OP_ADD, scores, dot(k, v, 2, 2, kF32, scores.dims));
      case Also::kMinusFirstRow: {
        const std::vector<int64_t> none{0, 0, 0};
        const std::vector<int64_t> limit{a_.heads, 1, a_.keys};
        const std::vector<int64_t> ones{1, 1, 1};
        const Handle first = e_.op(COLLET_OP_SLICE, kF32, limit, {scores},
                                   collet_slice_attrs{b_.list(none), b_.list(limit), b_.list(ones)});
        const Handle rows = e_.broadcast(e_.reshape(first, {a_.heads, a_.keys}), scores.dims, {0, 2});
        return e_.binary(COLLET_OP_SUBTRACT, scores, rows);
      }
      default:
        return scores;
    }
  }

  Handle count(int64_t dimension) {
    return e_.op(COLLET_OP_IOTA, COLLET_TYPE_S32, {a_.queries, a_.keys}, {}, collet_iota_attrs{dimension});
  }

  Handle compare(uint32_t direction, const Handle& x, const Handle& y) {
    return e_.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {a_.queries, a_.keys}, {x, y},
                 collet_compare_attrs{direction, COLLET_COMPARE_SIGNED});
  }

  Handle mask() {
    if (a_.mask == Mask::kArgument) return e_.argument(COLLET_TYPE_PRED, {a_.queries, a_.keys});
    const Handle row = count(0);
    const Handle column = count(1);
    const Handle far = e_.broadcast(e_.scalar(COLLET_TYPE_S32, 100), {a_.queries, a_.keys});
    switch (a_.mask) {
      case Mask::kLater:
        return compare(COLLET_DIRECTION_LT, row, column);
      case Mask::kWindow:
        return e_.binary(COLLET_OP_AND, compare(COLLET_DIRECTION_GE, row, column),
                         compare(COLLET_DIRECTION_LE, row, e_.binary(COLLET_OP_ADD, column, far)));
      case Mask::kNothingFirst:
        return compare(COLLET_DIRECTION_GE, e_.binary(COLLET_OP_SUBTRACT, row, far), column);
      default:
        return compare(COLLET_DIRECTION_GE, row, column);
    }
  }

  const Attention a_;
  ProgramBuilder b_;
  RegionBuilder& e_ = b_.entry();
};

/// Numbers in the type of the arguments; bf16 is the upper half of f32.
Bytes numbers(const Attention& a, int64_t n, unsigned seed,
              const std::vector<std::pair<int64_t, float>>& changed = {}) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = draw(random);
  for (const auto& [at, x] : changed) v[static_cast<size_t>(at)] = x;
  if (a.type == kF32) return bytes_of(v);
  std::vector<uint16_t> halves;
  for (const float x : v) halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
  return bytes_of(halves);
}

std::vector<float> floats(const Attention& a, const Bytes& bytes) {
  if (a.type == kF32) return elements_of<float>(bytes);
  std::vector<float> v;
  for (const uint16_t x : elements_of<uint16_t>(bytes)) v.push_back(std::bit_cast<float>(uint32_t{x} << 16));
  return v;
}

class AttentionTest : public ::testing::TestWithParam<const char*> {
 protected:
  /// Compares attention with the program that is not fused. `changed`: elements of the values; `of_keys`: of the keys.
  void check(const Attention& a, const std::vector<std::pair<int64_t, float>>& changed = {},
             const std::vector<std::pair<int64_t, float>>& of_keys = {}) {
    std::vector<Bytes> arguments{numbers(a, a.heads * a.keys * a.depth, 1, of_keys),
                                 numbers(a, a.heads * a.keys * a.depth, 2, changed),
                                 numbers(a, a.heads * a.queries * a.shared * a.depth, 3)};
    if (a.mask == Mask::kArgument) {
      Bytes mask(static_cast<size_t>(a.queries * a.keys));
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 0 ? 1 : 0;
      arguments.push_back(mask);
    }
    std::vector<std::vector<float>> results;
    for (Plugin* plugin : {&fused_, &plain_}) {
      Builder builder(a);
      Compiled c(*plugin, builder.run());
      ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
      // Programs of these sizes fit whole in larger caches.
      if (plugin == &fused_ && a.in_blocks && sysconf(_SC_LEVEL2_CACHE_SIZE) <= 1 << 20) {
        EXPECT_LT(c.info.workspace_bytes, static_cast<uint64_t>(a.heads * a.shared * a.queries * a.keys * 4));
      }
      results.push_back(floats(a, c.run(arguments)[0]));
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    const float tolerance = a.type == kF32 ? 2e-6F : 2e-2F;
    for (size_t i = 0; i < results[0].size(); ++i) {
      if (std::isnan(results[1][i])) {
        ASSERT_TRUE(std::isnan(results[0][i])) << i;
      } else if (results[0][i] != results[1][i]) {  // infinities are equal
        ASSERT_NEAR(results[0][i], results[1][i], tolerance) << i;
      }
    }
  }

  Plugin fused_{GetParam()};
  Plugin plain_{GetParam(), "1", "0"};
};

TEST_P(AttentionTest, MasksOfAllKinds) {
  for (const Mask mask :
       {Mask::kNone, Mask::kCausal, Mask::kLater, Mask::kWindow, Mask::kNothingFirst, Mask::kArgument}) {
    for (const float instead : {-kInfinity, -1e9F}) check({.mask = mask, .instead = instead});
    check({.type = COLLET_TYPE_BF16, .mask = mask});
  }
}

TEST_P(AttentionTest, FormsOfAllKinds) {
  check({.separate_sums = true});
  check({.values_first = true, .in_blocks = false});
  check({.queries = 512, .shared = 2});
  check({.heads = 1, .queries = 3000, .keys = 300, .depth = 17});
  check({.heads = 3, .queries = 330, .keys = 1000, .mask = Mask::kNone});
  check({.heads = 5, .queries = 600, .keys = 602, .depth = 48, .type = COLLET_TYPE_BF16});
  check({.heads = 7, .queries = 577, .keys = 577, .in_blocks = false});
}

TEST_P(AttentionTest, OtherUsesOfScoresAndWeights) {
  check({.heads = 16, .queries = 32, .also = Also::kScaleByHead});
  check({.also = Also::kSecondProduct, .in_blocks = false});
  check({.heads = 24, .queries = 256, .keys = 256, .also = Also::kMinusFirstRow});
  check({.heads = 24, .queries = 128, .keys = 128, .also = Also::kWeightsTwice, .in_blocks = false});
  check({.also = Also::kBytes, .in_blocks = false});
  check({.queries = 512, .one_per_group = true});
}

// A weight of zero gives NaN with a value that is not finite, so such values must not be left out.
TEST_P(AttentionTest, ValuesThatAreMaskedAndNotFinite) {
  const Attention a;
  const int64_t last = (a.keys - 1) * a.depth + 5;
  for (const float x : {kInfinity, -kInfinity, kNan}) {
    check(a, {{last, x}});
    check({.type = COLLET_TYPE_BF16}, {{last, x}});
    check({.type = COLLET_TYPE_BF16}, {{last - 1, x}});
  }
}

// NaN in one score makes all weights of its row NaN, those of masked scores too.
TEST_P(AttentionTest, ScoresThatAreNotFinite) {
  const Attention a;
  for (const float x : {kInfinity, kNan}) check(a, {}, {{500 * a.depth, x}});
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
