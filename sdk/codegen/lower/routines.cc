// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/routines.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/base/factorization.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/scalar_block.h"
#include "sdk/codegen/routines/lapack.h"
#include "sdk/codegen/routines/routine.h"

namespace collet::codegen {
namespace {

bool real_or_complex(uint32_t type) {
  return type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64 || type == COLLET_TYPE_C64 || type == COLLET_TYPE_C128;
}

/// True for the custom call of frontends that returns the largest elements and their indices.
bool is_topk_call(const Graph& graph, const Node& node) {
  const auto a = attributes<collet_custom_call_attrs>(graph, node);
  if (std::string_view(collet_string(graph.program, a.target), a.target.count) != "TopK") return false;
  if (node.operands.size() != 1 || node.results.size() != 2) return false;
  const auto& from = graph.type(node.operands[0]);
  const auto& values = graph.type(node.results[0]);
  const auto& places = graph.type(node.results[1]);
  if (from.rank() == 0 || values.element != from.element || places.element != COLLET_TYPE_S32) return false;
  Dims rows = from.dims;
  rows.back() = values.rank() == from.rank() ? values.dims.back() : -1;
  const bool fits = values.dims == rows && places.dims == rows && rows.back() <= from.dims.back();
  return fits && (from.element == COLLET_TYPE_F32 || from.element == COLLET_TYPE_BF16);
}

bool is_constant(const Graph& graph, ValueId v, bool (*accept)(uint64_t bits, uint32_t type)) {
  const Value& value = graph.value(v);
  if (!value.constant || collet_type_bytes(value.type.element) > sizeof(uint64_t)) return false;
  uint64_t bits = 0;
  std::memcpy(&bits, value.constant, collet_type_bytes(value.type.element));
  return accept(bits, value.type.element);
}

bool is_zero(uint64_t bits, uint32_t) {
  return bits == 0;
}

/// True if the bits are a NaN without a sign bit.
bool is_nan(uint64_t bits, uint32_t type) {
  switch (type) {
    case COLLET_TYPE_F16:
      return bits > 0x7c00 && bits < 0x8000;
    case COLLET_TYPE_BF16:
      return bits > 0x7f80 && bits < 0x8000;
    case COLLET_TYPE_F32:
      return bits > 0x7f800000u && bits < 0x80000000u;
    default:
      return bits > 0x7ff0000000000000u && bits < 0x8000000000000000u;
  }
}

/// True if `v` is the argument, possibly with -0 replaced by 0 or with all NaNs replaced by one, as in JAX's
/// comparators. Adds the corresponding kSortEqual* to `flags`.
bool is_canonical(const Graph& graph, ValueId v, ValueId argument, int64_t& flags) {
  if (v == argument) return true;
  const Node* select = graph.def(v);
  if (!select || select->opcode != COLLET_OP_SELECT) return false;
  const Node* condition = graph.def(select->operands[0]);
  if (!condition || condition->opcode != COLLET_OP_COMPARE) return false;
  if (!is_canonical(graph, select->operands[2], argument, flags)) return false;
  const auto a = attributes<collet_compare_attrs>(graph, *condition);
  if (a.type == COLLET_COMPARE_TOTALORDER) return false;
  int64_t ignored = 0;
  const ValueId x = condition->operands[0];
  const ValueId y = condition->operands[1];
  // The same value is not examined twice: each select of a chain would double the time.
  const auto is_read = [&](ValueId value) {
    return value == select->operands[2] || is_canonical(graph, value, argument, ignored);
  };
  if (a.direction == COLLET_DIRECTION_NE && x == y && is_read(x) && is_constant(graph, select->operands[1], is_nan)) {
    flags |= kSortEqualNaNs;
    return true;
  }
  const ValueId compared = is_constant(graph, y, is_zero) ? x : y;
  const ValueId zero = compared == x ? y : x;
  if (a.direction == COLLET_DIRECTION_EQ && is_constant(graph, zero, is_zero) && is_read(compared) &&
      is_constant(graph, select->operands[1], is_zero)) {
    flags |= kSortEqualZeros;
    return true;
  }
  return false;
}

/// Two arguments of a comparator that belong to one operand, and what is_canonical finds out about how they are read.
struct ComparedPair {
  size_t operand = 0;
  bool swapped = false;  ///< the second argument is the left one
  int64_t flags = 0;
};

/// Returns the pair that a comparison compares, if it compares nothing else.
std::optional<ComparedPair> compared_pair(const Graph& graph, const Block& block, const Node& compare) {
  for (size_t operand = 0; 2 * operand + 1 < block.arguments.size(); ++operand) {
    for (const bool swapped : {false, true}) {
      const ValueId first = block.arguments[2 * operand + (swapped ? 1 : 0)];
      const ValueId second = block.arguments[2 * operand + (swapped ? 0 : 1)];
      int64_t left = 0;
      int64_t right = 0;
      if (is_canonical(graph, compare.operands[0], first, left) &&
          is_canonical(graph, compare.operands[1], second, right) && left == right)
        return ComparedPair{operand, swapped, left};
    }
  }
  return std::nullopt;
}

/// A key of a comparator, and the kSort* of the comparison that orders it.
struct ComparedKey {
  SortKey key;
  ComparedPair pair;
  uint32_t compare_type = 0;
  int64_t flags = 0;
};

/// Returns the key that a node orders, if it is a comparison by < or > of one pair of arguments.
std::optional<ComparedKey> compared_key(const Graph& graph, const Block& block, const Node& node) {
  if (node.opcode != COLLET_OP_COMPARE) return std::nullopt;
  const auto a = attributes<collet_compare_attrs>(graph, node);
  const bool less = a.direction == COLLET_DIRECTION_LT;
  if (!less && a.direction != COLLET_DIRECTION_GT) return std::nullopt;
  const std::optional<ComparedPair> pair = compared_pair(graph, block, node);
  if (!pair) return std::nullopt;
  ComparedKey out;
  out.pair = *pair;
  out.flags = pair->flags;
  out.compare_type = a.type;
  const uint32_t type = graph.type(node.operands[0]).element;
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX) return std::nullopt;
  if (collet_type_kind(type) == COLLET_KIND_FLOAT) {
    if (type != COLLET_TYPE_F16 && type != COLLET_TYPE_BF16 && type != COLLET_TYPE_F32 && type != COLLET_TYPE_F64)
      return std::nullopt;
    // An ordinary comparison defines no position for NaN.
    if (a.type != COLLET_COMPARE_TOTALORDER) out.flags = kSortEqualZeros | kSortButForNaN;
  }
  out.key.operand = pair->operand;
  out.key.rule = {type, less == pair->swapped, (out.flags & kSortEqualZeros) != 0, (out.flags & kSortEqualNaNs) != 0};
  return out;
}

/// Returns true if a comparator only compares its first pair of arguments, and stores the order that it defines.
bool plain_comparison(const Graph& graph, const Block& block, bool& descending, int64_t& flags) {
  flags = 0;
  if (block.results.size() != 1 || block.arguments.size() < 2) return false;
  const Node* node = graph.def(block.results[0]);
  const std::optional<ComparedKey> found = node ? compared_key(graph, block, *node) : std::nullopt;
  if (!found || found->key.operand != 0) return false;
  descending = found->key.rule.descending;
  flags = found->flags;
  return true;
}

/// Adds the keys of a lexicographic comparison, the most significant one first: a comparison, or one key is less, or it is
/// equal and another such comparison of the other keys is true.
bool add_keys(const Graph& graph, const Block& block, ValueId v, std::vector<SortKey>& keys) {
  const Node* const node = graph.def(v);
  if (!node) return false;
  if (const std::optional<ComparedKey> only = compared_key(graph, block, *node)) {
    keys.push_back(only->key);
    return true;
  }
  if (node->opcode != COLLET_OP_OR) return false;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Node* const less = graph.def(node->operands[side]);
    const Node* const others = graph.def(node->operands[1 - side]);
    const std::optional<ComparedKey> first = less ? compared_key(graph, block, *less) : std::nullopt;
    if (!first || !others || others->opcode != COLLET_OP_AND) continue;
    for (const size_t part : {size_t{0}, size_t{1}}) {
      const Node* const equal = graph.def(others->operands[part]);
      if (!equal || equal->opcode != COLLET_OP_COMPARE) continue;
      const auto a = attributes<collet_compare_attrs>(graph, *equal);
      const std::optional<ComparedPair> pair = compared_pair(graph, block, *equal);
      const bool is_same = pair && pair->operand == first->pair.operand && pair->flags == first->pair.flags;
      if (!is_same || a.direction != COLLET_DIRECTION_EQ || a.type != first->compare_type) continue;
      keys.push_back(first->key);
      return add_keys(graph, block, others->operands[1 - part], keys);
    }
  }
  return false;
}

/// True if there is a routine for the factorization that the call denotes, with its types and shapes.
bool can_factorize(const Graph& graph, const Node& node) {
  constexpr int64_t kMost = 16384;  // sizes of work arrays, which are s32, must not overflow
  const Factorization kind = factorization_of(graph.program, node.op);
  if (kind == Factorization::kUnknown || node.operands.empty() || node.results.empty()) return false;
  // JAX passes constants of the decomposition before the actual operands.
  const size_t inputs = kind == Factorization::kReflectors ? 2 : 1;
  if (node.operands.size() < inputs) return false;
  const ValueId* operands = node.operands.data() + (node.operands.size() - inputs);
  const ArrayType& a = graph.type(operands[0]);
  const size_t rank = a.dims.size();
  if (!real_or_complex(a.element) || rank < 2) return false;
  const int64_t m = a.dims[rank - 2];
  const int64_t n = a.dims[rank - 1];
  const int64_t k = std::min(m, n);
  if (k < 1 || std::max(m, n) > kMost) return false;
  const uint32_t type = a.element;
  const bool wide = type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128;
  const uint32_t real = wide ? COLLET_TYPE_F64 : COLLET_TYPE_F32;
  const uint32_t complex = wide ? COLLET_TYPE_C128 : COLLET_TYPE_C64;
  const auto is = [&](ValueId v, uint32_t element, std::initializer_list<int64_t> last) {
    Dims dims(a.dims.begin(), a.dims.end() - 2);
    dims.insert(dims.end(), last);
    return graph.type(v).element == element && graph.type(v).dims == dims;
  };
  const std::vector<ValueId>& out = node.results;
  switch (kind) {
    case Factorization::kLu:
      return out.size() == 3 && is(out[0], type, {m, n}) && is(out[1], COLLET_TYPE_S32, {k}) &&
             is(out[2], COLLET_TYPE_S32, {m});
    case Factorization::kQr:
      return out.size() == 2 && is(out[0], type, {m, n}) && is(out[1], type, {k});
    case Factorization::kReflectors: {
      const Dims& factors = graph.type(operands[1]).dims;
      if (factors.empty() || factors.back() > n || n > m || factors.back() < 1) return false;
      return is(operands[1], type, {factors.back()}) && out.size() == 1 && is(out[0], type, {m, n});
    }
    case Factorization::kEigh:
      return m == n && out.size() == 2 && is(out[0], type, {n, n}) && is(out[1], real, {n});
    case Factorization::kSvd: {
      if (!is(out[0], real, {k})) return false;
      if (out.size() == 1) return true;
      const bool square = out.size() == 3 && is(out[1], type, {m, m}) && is(out[2], type, {n, n});
      return square || (out.size() == 3 && is(out[1], type, {m, k}) && is(out[2], type, {k, n}));
    }
    case Factorization::kEig:
      return m == n && out.size() <= 3 && is(out[0], complex, {n}) &&
             std::all_of(out.begin() + 1, out.end(), [&](ValueId v) { return is(v, complex, {n, n}); });
    case Factorization::kSchur:
      return m == n && out.size() <= 2 &&
             std::all_of(out.begin(), out.end(), [&](ValueId v) { return is(v, type, {n, n}); });
    case Factorization::kHessenberg:
      return m == n && n > 1 && out.size() == 2 && is(out[0], type, {n, n}) && is(out[1], type, {n - 1});
    default:
      return false;
  }
}

}  // namespace

int64_t needed_of_sort(const Graph& graph, const Node& node) {
  const auto d = static_cast<size_t>(attributes<collet_sort_attrs>(graph, node).dimension);
  const int64_t all = graph.type(node.operands[0]).dims[d];
  const auto is_result = [&](ValueId v) {
    return std::find(node.results.begin(), node.results.end(), v) != node.results.end();
  };
  for (const Block& block : graph.blocks) {
    if (std::any_of(block.results.begin(), block.results.end(), is_result)) return all;
  }
  int64_t needed = 1;
  for (const Node& user : graph.nodes) {
    if (std::none_of(user.operands.begin(), user.operands.end(), is_result)) continue;
    if (user.opcode != COLLET_OP_SLICE) return all;
    needed = std::max(needed, integers(graph, attributes<collet_slice_attrs>(graph, user).limit)[d]);
  }
  return std::min(needed, all);
}

bool has_long_rows(const Graph& graph, const Node& node) {
  const bool topk = node.opcode == COLLET_OP_TOPK || node.opcode == COLLET_OP_CUSTOM_CALL;
  if (node.opcode != COLLET_OP_SORT && !topk) return false;
  if (node.opcode == COLLET_OP_CUSTOM_CALL && !is_topk_call(graph, node)) return false;
  const Dims& dims = graph.type(node.operands[0]).dims;
  if (dims.empty()) return false;
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  const int64_t dim = topk ? last : attributes<collet_sort_attrs>(graph, node).dimension;
  return dims[static_cast<size_t>(dim)] > INT32_MAX;
}

bool has_factorization(const Graph& graph, const Node& node) {
  if (node.opcode == COLLET_OP_CHOLESKY || node.opcode == COLLET_OP_TRIANGULAR_SOLVE)
    return real_or_complex(graph.type(node.operands[0]).element);
  return can_factorize(graph, node);
}

bool has_routine(const Graph& graph, const Node& node) {
  switch (node.opcode) {
    case COLLET_OP_SORT:
      return is_scalar_block(graph, graph.blocks[node.blocks[0]]) && !has_long_rows(graph, node);
    case COLLET_OP_TOPK: {
      const uint32_t type = graph.type(node.operands[0]).element;
      const uint32_t kind = collet_type_kind(type);
      return kind != COLLET_KIND_COMPLEX && (kind != COLLET_KIND_FLOAT || collet_type_bytes(type) > 1) &&
             !has_long_rows(graph, node);
    }
    case COLLET_OP_RNG_BIT_GENERATOR: {
      // The routine fills whole bytes.
      const uint32_t type = graph.type(node.results[1]).element;
      return type != COLLET_TYPE_PRED && type_bits(type) >= 8;
    }
    case COLLET_OP_RNG_GET_AND_UPDATE_STATE: {
      const auto& type = graph.type(node.results[0]);
      return type.element == COLLET_TYPE_U64 && type.elements == 2;
    }
    case COLLET_OP_CUSTOM_CALL:
      return (can_factorize(graph, node) && has_lapack()) || (is_topk_call(graph, node) && !has_long_rows(graph, node));
    case COLLET_OP_CALL:
      return can_factorize(graph, node) && has_lapack();
    case COLLET_OP_FFT:
    case COLLET_OP_CHOLESKY:
    case COLLET_OP_TRIANGULAR_SOLVE:
      return real_or_complex(graph.type(node.operands[0]).element);
    default:
      return false;
  }
}

Comparator comparator_of(const Graph& graph, const Node& node) {
  Comparator out;
  Kernel scratch;
  KernelBuilder builder(graph, scratch, [](ValueId) { return false; });
  out.body = builder.body(graph.blocks[node.blocks[0]]);
  for (ValueId v : node.results) out.types.push_back(graph.type(v).element);
  return out;
}

std::vector<SortKey> sort_keys_of(const Graph& graph, const Node& node) {
  const Block& block = graph.blocks[node.blocks[0]];
  std::vector<SortKey> keys;
  if (block.results.size() != 1 || !add_keys(graph, block, block.results[0], keys)) return {};
  return keys;
}

RoutineCall routine_call(const Graph& graph, const Node& node, Comparator& comparator) {
  RoutineCall call;
  call.opcode = node.opcode;
  for (ValueId v : node.operands) call.operands.push_back(graph.type(v));
  for (ValueId v : node.results) call.results.push_back(graph.type(v));
  switch (node.opcode) {
    case COLLET_OP_SORT: {
      const Block& block = graph.blocks[node.blocks[0]];
      bool descending = false;
      int64_t flags = 0;
      const bool by_key = plain_comparison(graph, block, descending, flags);
      call.numbers = {attributes<collet_sort_attrs>(graph, node).dimension, by_key, descending, by_key ? flags : 0,
                      needed_of_sort(graph, node)};
      if (!by_key || (flags & kSortButForNaN)) comparator = comparator_of(graph, node);
      break;
    }
    case COLLET_OP_TOPK:
      call.numbers = {attributes<collet_topk_attrs>(graph, node).smallest != 0};
      break;
    case COLLET_OP_CALL:
    case COLLET_OP_CUSTOM_CALL:
      if (const Factorization kind = factorization_of(graph.program, node.op); kind != Factorization::kUnknown) {
        call.opcode = COLLET_OP_CALL;
        call.numbers = {static_cast<int64_t>(kind), reads_lower_triangle(graph.program, node.op)};
        call.operands.erase(call.operands.begin(), call.operands.end() - (kind == Factorization::kReflectors ? 2 : 1));
        break;
      }
      call.opcode = COLLET_OP_TOPK;
      call.numbers = {0};
      break;
    case COLLET_OP_RNG_BIT_GENERATOR:
      call.numbers = {attributes<collet_rng_bit_generator_attrs>(graph, node).algorithm};
      break;
    case COLLET_OP_RNG_GET_AND_UPDATE_STATE:
      call.numbers = {attributes<collet_rng_state_attrs>(graph, node).delta,
                      std::count_if(graph.nodes.data(), &node,
                                    [](const Node& n) { return n.opcode == COLLET_OP_RNG_GET_AND_UPDATE_STATE; })};
      break;
    case COLLET_OP_FFT: {
      const auto a = attributes<collet_fft_attrs>(graph, node);
      call.numbers = {a.type};
      for (int64_t n : integers(graph, a.length)) call.numbers.push_back(n);
      break;
    }
    case COLLET_OP_CHOLESKY:
      call.numbers = {attributes<collet_cholesky_attrs>(graph, node).lower != 0};
      break;
    case COLLET_OP_TRIANGULAR_SOLVE: {
      const auto a = attributes<collet_triangular_solve_attrs>(graph, node);
      call.numbers = {a.left_side != 0, a.lower != 0, a.unit_diagonal != 0, a.transpose_a};
      break;
    }
    default:
      break;
  }
  return call;
}

}  // namespace collet::codegen
