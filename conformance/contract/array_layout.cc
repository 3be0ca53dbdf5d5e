// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/array_layout.h"

#include <algorithm>
#include <cstring>

#include "conformance/contract/program.h"
#include "hlo/ir/types.h"

namespace collet::conformance {
namespace {

constexpr uint32_t kMostRank = 8, kMostTileRank = 4;
constexpr collet_layout kDense{};

// The dimensions of an array in memory, outermost first, and the index of one element.
struct Axes {
  std::vector<uint64_t> sizes, index;
};

// Divides the innermost dimensions by a tile.
void divide(Axes& axes, const uint32_t* tile, uint32_t rank) {
  const size_t first = axes.sizes.size() - rank;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint64_t size = axes.sizes[first + i], index = axes.index[first + i];
    axes.sizes[first + i] = (size + tile[i] - 1) / tile[i];
    axes.index[first + i] = index / tile[i];
    axes.sizes.push_back(tile[i]);
    axes.index.push_back(index % tile[i]);
  }
}

Axes axes_of(const collet_layout& layout, const hlo::Shape& shape, const std::vector<int64_t>& index) {
  Axes out;
  for (uint32_t i = 0; i < layout.rank; ++i) {
    const uint8_t dimension = layout.order[i];
    out.sizes.push_back(static_cast<uint64_t>(shape.dim(dimension)));
    out.index.push_back(static_cast<uint64_t>(index[dimension]));
  }
  for (int t = 0; t < 2; ++t)
    if (layout.tile_rank[t] != 0) divide(out, layout.tile[t], layout.tile_rank[t]);
  return out;
}

}  // namespace

bool ArrayLayout::is_dense() const {
  return std::memcmp(&layout_, &kDense, sizeof kDense) == 0;
}

bool ArrayLayout::operator==(const ArrayLayout& other) const {
  return shape_.same_without_layout(other.shape_) && std::memcmp(&layout_, &other.layout_, sizeof layout_) == 0;
}

uint64_t ArrayLayout::place_count() const {
  uint64_t count = 1;
  for (const uint64_t size :
       axes_of(layout_, shape_, std::vector<int64_t>(static_cast<size_t>(shape_.rank()), 0)).sizes)
    count *= size;
  return count;
}

std::string ArrayLayout::complaint() const {
  if (is_dense()) return {};
  if (layout_.rank != static_cast<uint32_t>(shape_.rank()) || layout_.rank > kMostRank)
    return fmt::format("the layout of an array of rank {} has rank {}", shape_.rank(), layout_.rank);
  if (layout_.reserved[0] != 0 || layout_.reserved[1] != 0) return "a reserved field of a layout is not zero";
  uint32_t seen = 0;
  for (uint32_t i = 0; i < layout_.rank; ++i)
    if (layout_.order[i] < layout_.rank) seen |= 1u << layout_.order[i];
  if (seen != (1u << layout_.rank) - 1) return "the order of a layout does not name each dimension once";
  if (layout_.tile_rank[0] > std::min(layout_.rank, kMostTileRank) || layout_.tile_rank[1] > layout_.tile_rank[0])
    return fmt::format("the tiles of the layout of an array of rank {} have the ranks {} and {}", shape_.rank(),
                       layout_.tile_rank[0], layout_.tile_rank[1]);
  for (int t = 0; t < 2; ++t)
    for (uint32_t i = 0; i < layout_.tile_rank[t]; ++i)
      if (layout_.tile[t][i] == 0) return "a tile of a layout has a size of 0";
  const uint32_t bits = layout_.element_bits;
  if (bits != 0 && bits != uint32_t{hlo::type_info(shape_.type()).bits})
    return fmt::format("the layout of an array of {} has {} bits for each element", hlo::type_info(shape_.type()).text,
                       bits);
  return {};
}

uint64_t ArrayLayout::needed_bytes() const {
  if (is_dense()) return bytes();
  const uint32_t bits = layout_.element_bits;
  const auto element = static_cast<uint64_t>(hlo::type_info(shape_.type()).bytes());
  return bits != 0 ? (place_count() * bits + 7) / 8 : place_count() * element;
}

std::vector<uint64_t> ArrayLayout::places() const {
  std::vector<uint64_t> out;
  std::vector<int64_t> index(static_cast<size_t>(shape_.rank()), 0);
  for (int64_t n = 0; n < shape_.element_count(); ++n) {
    const Axes axes = axes_of(layout_, shape_, index);
    uint64_t place = 0;
    for (size_t i = 0; i < axes.sizes.size(); ++i) place = place * axes.sizes[i] + axes.index[i];
    out.push_back(place);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < shape_.dim(static_cast<int>(i))) break;
      index[i] = 0;
    }
  }
  return out;
}

void ArrayLayout::write(const hlo::Literal& from, uint8_t* to) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from.bytes());
  if (is_dense()) {
    std::copy_n(bytes, from.byte_size(), to);
    return;
  }
  const auto element = static_cast<uint64_t>(hlo::type_info(shape_.type()).bytes());
  for (const uint64_t place : places()) {
    if (const uint32_t bits = layout_.element_bits) {
      const uint32_t shift = static_cast<uint32_t>(place * bits % 8), mask = ((1u << bits) - 1) << shift;
      uint8_t& byte = to[place * bits / 8];
      byte = static_cast<uint8_t>((byte & ~mask) | (static_cast<uint32_t>(*bytes) << shift & mask));
    } else {
      std::copy_n(bytes, element, to + place * element);
    }
    bytes += element;
  }
}

hlo::Literal ArrayLayout::read(const uint8_t* from) const {
  if (is_dense()) return hlo::Literal::from_bytes(shape_, from);
  const auto element = static_cast<uint64_t>(hlo::type_info(shape_.type()).bytes());
  std::vector<uint8_t> dense(static_cast<size_t>(shape_.byte_size()));
  uint8_t* to = dense.data();
  for (const uint64_t place : places()) {
    if (const uint32_t bits = layout_.element_bits) {
      uint32_t value = from[place * bits / 8] >> (place * bits % 8) & ((1u << bits) - 1);
      if (hlo::is_signed(shape_.type()) && (value >> (bits - 1)) != 0) value |= ~0u << bits;
      *to = static_cast<uint8_t>(value);
    } else {
      std::copy_n(from + place * element, element, to);
    }
    to += element;
  }
  return hlo::Literal::from_bytes(shape_, dense.data());
}

bool Layouts::any() const {
  const auto has = [](const std::vector<ArrayLayout>& all) {
    return std::any_of(all.begin(), all.end(), [](const ArrayLayout& one) { return !one.is_dense(); });
  };
  return has(arguments) || has(results);
}

std::optional<Layouts> layouts_of(Instance& instance, const TestProgram& program, const Executable& executable) {
  Contract& c = instance.contract();
  const auto* table = instance.query<collet_layout_table>("layout");
  Layouts out;
  for (uint32_t is_result = 0; is_result < 2; ++is_result) {
    const std::vector<hlo::Shape>& shapes = is_result ? program.results() : program.inputs();
    for (uint32_t i = 0; i < shapes.size(); ++i) {
      collet_layout layout{};
      if (table && table->of) {
        const collet_status status = checked_call(
            c, "of", [&](collet_error* error) { return table->of(executable.handle(), is_result, i, &layout, error); });
        if (!c.check(status == COLLET_OK, Promise::LAYOUT_OF, "the layout of {} {} gave status {}",
                     is_result ? "result" : "argument", i, status))
          return std::nullopt;
      }
      ArrayLayout one(shapes[i], layout);
      const std::string wrong = one.complaint();
      if (!c.check(wrong.empty(), Promise::LAYOUT_OF, "{} {}: {}", is_result ? "result" : "argument", i, wrong) ||
          !c.check(one.bytes() >= one.needed_bytes(), Promise::LAYOUT_BYTES,
                   "the layout of {} {} has {} bytes, and the array takes {}", is_result ? "result" : "argument", i,
                   one.bytes(), one.needed_bytes()))
        return std::nullopt;
      (is_result ? out.results : out.arguments).push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace collet::conformance
