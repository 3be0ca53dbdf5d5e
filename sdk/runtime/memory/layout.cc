// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/layout.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hlo/ir/types.h"

namespace collet::runtime {
namespace {

constexpr uint32_t kMostRank = std::size(collet_layout{}.order);
constexpr uint32_t kMostTileRank = std::size(collet_layout{}.tile[0]);

// One term in the offset of an element, from an index of a dimension: (index / divisor) % modulus * stride.
struct Piece {
  uint64_t divisor, modulus, stride;
};

// The offsets of an array's elements: the sum of the terms of all its indices. This form is sufficient if the sizes of
// a tile divide those of the tile around it, because each dimension is then divided separately.
struct Placement {
  std::vector<std::vector<Piece>> dims;  ///< terms of each dimension of the array
  uint64_t elements = 1;                 ///< number of elements in memory, with padding
};

// A dimension of the array in memory: it counts index / divisor of dimension `dim`. A tile of 8 splits dimension 0, for
// example, into {0, 8, ceil(size / 8)} and {0, 1, 8}.
struct Digit {
  uint32_t dim;
  uint64_t divisor, size;
};

Expected<Placement> place(const ArrayType& type, const collet_layout& layout) {
  const auto bad = [](const char* what) { return internal_error(std::string("a layout ") + what); };
  if (layout.rank != type.dims.size() || layout.rank > kMostRank) return bad("of another rank than its array's");
  std::vector<Digit> digits;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < layout.rank; ++i) {
    const uint32_t d = layout.order[i];
    if (d >= layout.rank || (seen >> d & 1)) return bad("whose order is no permutation");
    seen |= 1u << d;
    digits.push_back({d, 1, static_cast<uint64_t>(type.dims[d])});
  }
  uint32_t most = layout.rank;
  for (int t = 0; t < 2 && layout.tile_rank[t]; ++t) {
    const uint32_t rank = layout.tile_rank[t];
    if (rank > most || rank > kMostTileRank) return bad("with a tile of too many dimensions");
    const size_t first = digits.size() - rank;
    std::vector<Digit> inner;
    for (uint32_t i = 0; i < rank; ++i) {
      Digit& digit = digits[first + i];
      const uint64_t size = layout.tile[t][i];
      if (size == 0) return bad("with an empty tile");
      if (t > 0 && digit.size % size != 0) return bad("whose second tile does not divide its first tile");
      inner.push_back({digit.dim, digit.divisor, size});
      digit.divisor *= size;
      digit.size = (digit.size + size - 1) / size;
    }
    digits.insert(digits.end(), inner.begin(), inner.end());
    most = rank;
  }
  Placement out;
  out.dims.resize(layout.rank);
  for (size_t i = digits.size(); i-- > 0;) {
    if (__builtin_mul_overflow(out.elements, std::max<uint64_t>(digits[i].size, 1), &out.elements) ||
        out.elements > uint64_t{1} << 56)
      return bad("of too many elements");
  }
  uint64_t stride = 1;
  for (size_t i = digits.size(); i-- > 0;) {
    out.dims[digits[i].dim].push_back({digits[i].divisor, std::max<uint64_t>(digits[i].size, 1), stride});
    stride *= std::max<uint64_t>(digits[i].size, 1);
  }
  return out;
}

// Calls `move(dense, placed)` with the dense and the placed offset of each element, in the order of the dense array.
template <typename Move>
void for_each_element(const ArrayType& type, const Placement& placement, const Move& move) {
  const size_t rank = type.dims.size();
  std::vector<std::vector<uint64_t>> offsets(rank);
  for (size_t d = 0; d < rank; ++d)
    for (uint64_t i = 0; i < static_cast<uint64_t>(type.dims[d]); ++i) {
      uint64_t offset = 0;
      for (const Piece& piece : placement.dims[d]) offset += i / piece.divisor % piece.modulus * piece.stride;
      offsets[d].push_back(offset);
    }
  if (type.elements == 0) return;
  std::vector<size_t> index(rank);
  for (uint64_t dense = 0; dense < type.elements; ++dense) {
    uint64_t placed = 0;
    for (size_t d = 0; d < rank; ++d) placed += offsets[d][index[d]];
    move(dense, placed);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < offsets[d].size()) break;
      index[d] = 0;
    }
  }
}

bool is_packed(const Layout& layout) {
  return layout.c.element_bits != 0;
}

}  // namespace

std::string Layout::to_string() const {
  std::string out = "{";
  for (uint32_t i = c.rank; i-- > 0;) out += std::to_string(c.order[i]) + (i ? "," : "");
  if (c.tile_rank[0] || c.element_bits) out += ":";
  for (int t = 0; t < 2 && c.tile_rank[t]; ++t) {
    out += t ? "(" : "T(";
    for (uint32_t i = 0; i < c.tile_rank[t]; ++i) out += (i ? "," : "") + std::to_string(c.tile[t][i]);
    out += ")";
  }
  if (c.element_bits) out += "E(" + std::to_string(c.element_bits) + ")";
  return out + "}";
}

Expected<const Layout*> intern_layout(const ArrayType* type, const collet_layout& layout) {
  const collet_layout none{};
  if (std::memcmp(&layout, &none, sizeof none) == 0) return nullptr;
  if (layout.reserved[0] || layout.reserved[1]) return internal_error("a layout whose reserved fields are not zero");
  COLLET_ASSIGN(const Placement placement, place(*type, layout));
  const int bits = hlo::type_info(static_cast<hlo::Type>(type->element)).bits;
  if (layout.element_bits && (layout.element_bits != static_cast<uint32_t>(bits) || bits >= 8))
    return internal_error("a layout that packs elements of another width");
  const uint64_t element_bits = layout.element_bits ? layout.element_bits : collet_type_bytes(type->element) * 8;
  if (layout.bytes < (placement.elements * element_bits + 7) / 8)
    return internal_error("a layout of " + std::to_string(layout.bytes) + " bytes, which are too few for " +
                          type->to_string());
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<const ArrayType*, std::string>, std::unique_ptr<Layout>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Layout>& entry = known[{type, std::string(reinterpret_cast<const char*>(&layout), sizeof layout)}];
  if (!entry) entry = std::make_unique<Layout>(Layout{layout, type});
  return entry.get();
}

void to_layout(const Layout& layout, const void* from, void* to) {
  const Placement placement = *place(*layout.type, layout.c);
  std::memset(to, 0, layout.c.bytes);
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  if (is_packed(layout)) {
    const uint32_t bits = layout.c.element_bits, per_byte = 8 / bits, mask = (1u << bits) - 1;
    for_each_element(*layout.type, placement, [&](uint64_t dense, uint64_t placed) {
      out[placed / per_byte] |= static_cast<uint8_t>((in[dense] & mask) << (placed % per_byte * bits));
    });
    return;
  }
  const size_t bytes = collet_type_bytes(layout.type->element);
  for_each_element(*layout.type, placement, [&](uint64_t dense, uint64_t placed) {
    std::memcpy(out + placed * bytes, in + dense * bytes, bytes);
  });
}

void from_layout(const Layout& layout, const void* from, void* to) {
  const Placement placement = *place(*layout.type, layout.c);
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  if (is_packed(layout)) {
    const auto type = static_cast<hlo::Type>(layout.type->element);
    const bool sign = hlo::is_signed(type) && hlo::is_integer(type);
    const uint32_t bits = layout.c.element_bits, per_byte = 8 / bits, spare = 8 - bits;
    for_each_element(*layout.type, placement, [&](uint64_t dense, uint64_t placed) {
      const auto high = static_cast<uint8_t>((in[placed / per_byte] >> (placed % per_byte * bits)) << spare);
      out[dense] =
          sign ? static_cast<uint8_t>(static_cast<int8_t>(high) >> spare) : static_cast<uint8_t>(high >> spare);
    });
    return;
  }
  const size_t bytes = collet_type_bytes(layout.type->element);
  for_each_element(*layout.type, placement, [&](uint64_t dense, uint64_t placed) {
    std::memcpy(out + dense * bytes, in + placed * bytes, bytes);
  });
}

}  // namespace collet::runtime
