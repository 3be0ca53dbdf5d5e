// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "sdk/codegen/launch/routine.h"

namespace collet::codegen {
namespace {

/// How rows lie along one dimension.
struct Rows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;  ///< distance between neighbours, in elements

  Rows(const Dims& dims, int64_t dim) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int64_t>(d) < dim) outer *= dims[d];
      if (static_cast<int64_t>(d) == dim) length = dims[d];
      if (static_cast<int64_t>(d) > dim) inner *= dims[d];
    }
  }
  int64_t count() const { return outer * inner; }
  int64_t start(int64_t row) const { return row / inner * length * inner + row % inner; }
};

template <size_t kBytes>
void copy_strided(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
}

void copy_elements(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n, size_t bytes) {
  switch (bytes) {
    case 1:
      return copy_strided<1>(from, from_step, to, to_step, n);
    case 2:
      return copy_strided<2>(from, from_step, to, to_step, n);
    case 4:
      return copy_strided<4>(from, from_step, to, to_step, n);
    case 8:
      return copy_strided<8>(from, from_step, to, to_step, n);
    default:
      return copy_strided<16>(from, from_step, to, to_step, n);
  }
}

void permute(const char* from, const int32_t* order, char* to, int64_t n, size_t bytes) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(order[i]) * bytes, bytes);
  }
}

/// Bits of an element such that unsigned comparison of them is the element's order.
struct KeyRule {
  uint32_t type = 0;
  bool descending = false;
  bool total = false;  ///< floats by total order; else what is not a number comes last and zeros are equal
};

uint64_t key_of(const char* p, const KeyRule& rule) {
  const size_t bytes = collet_type_bytes(rule.type);
  uint64_t bits = 0;
  std::memcpy(&bits, p, bytes);
  const unsigned width = static_cast<unsigned>(bytes * 8);
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t all = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  switch (collet_type_kind(rule.type)) {
    case COLLET_KIND_FLOAT:
      if (!rule.total && bits == sign) bits = 0;
      bits = bits & sign ? ~bits & all : bits | sign;
      break;
    case COLLET_KIND_SIGNED:
      bits ^= sign;
      break;
    default:
      break;
  }
  return rule.descending ? ~bits & all : bits;
}

class Sort : public Routine {
 public:
  Sort(const RoutineCall& call, CompareFunction compare)
      : rows_(call.results[0].dims, call.numbers[0]), keyed_(call.numbers[1] != 0), compare_(compare) {
    rule_ = {call.results[0].element, call.numbers[2] != 0, call.numbers[3] != 0};
    for (const ArrayType& type : call.results) bytes_.push_back(collet_type_bytes(type.element));
    for (size_t b : bytes_) row_bytes_ += (b * static_cast<size_t>(rows_.length) + 63) / 64 * 64;
  }

  uint64_t scratch_bytes() const override {
    // Every row's copy and sorted copy, the order, keys with their places and room to merge.
    return 2 * row_bytes_ + static_cast<uint64_t>(rows_.length) * (2 * sizeof(int32_t) + 2 * sizeof(Keyed)) + 256;
  }

  void run(char* const* buffers, Threads&) const override {
    const size_t n = bytes_.size();
    char* scratch = buffers[2 * n];
    std::vector<char*> row(n);
    for (size_t k = 0; k < n; ++k) {
      row[k] = scratch;
      scratch += (bytes_[k] * static_cast<size_t>(rows_.length) + 63) / 64 * 64;
    }
    char* sorted = scratch;
    scratch += row_bytes_;
    auto* keys = reinterpret_cast<Keyed*>(scratch);
    scratch += static_cast<size_t>(rows_.length) * 2 * sizeof(Keyed);
    auto* order = reinterpret_cast<int32_t*>(scratch);
    for (int64_t r = 0; r < rows_.count(); ++r) {
      const int64_t start = rows_.start(r);
      for (size_t k = 0; k < n; ++k) {
        const auto b = static_cast<int64_t>(bytes_[k]);
        copy_elements(buffers[k] + start * b, rows_.inner * b, row[k], b, rows_.length, bytes_[k]);
      }
      sort_row(row, keys, order);
      for (size_t k = 0; k < n; ++k) {
        const auto b = static_cast<int64_t>(bytes_[k]);
        permute(row[k], order, sorted, rows_.length, bytes_[k]);
        copy_elements(sorted, b, buffers[n + k] + start * b, rows_.inner * b, rows_.length, bytes_[k]);
      }
    }
  }

 private:
  struct Keyed {
    uint64_t key;
    int64_t place;
  };

  void sort_row(const std::vector<char*>& row, Keyed* keys, int32_t* order) const {
    const int64_t n = rows_.length;
    if (keyed_) {
      for (int64_t i = 0; i < n; ++i) keys[i] = {key_of(row[0] + static_cast<size_t>(i) * bytes_[0], rule_), i};
      Keyed* sorted = n < 64 ? merge(keys, n) : radix(keys, keys + n, n);
      for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(sorted[i].place);
      return;
    }
    std::iota(order, order + n, 0);
    merge_sort(row, order, order + n, n);
  }

  static Keyed* merge(Keyed* keys, int64_t n) {
    std::sort(keys, keys + n,
              [](const Keyed& x, const Keyed& y) { return x.key != y.key ? x.key < y.key : x.place < y.place; });
    return keys;
  }

  /// Byte by byte from the lowest; bytes that are the same everywhere are skipped.
  Keyed* radix(Keyed* from, Keyed* to, int64_t n) const {
    for (unsigned byte = 0; byte < bytes_[0]; ++byte) {
      int64_t counts[257] = {};
      for (int64_t i = 0; i < n; ++i) ++counts[(from[i].key >> (8 * byte) & 0xff) + 1];
      bool one = std::any_of(counts + 1, counts + 257, [&](int64_t c) { return c == n; });
      if (one) continue;
      for (int i = 1; i < 257; ++i) counts[i] += counts[i - 1];
      for (int64_t i = 0; i < n; ++i) to[counts[from[i].key >> (8 * byte) & 0xff]++] = from[i];
      std::swap(from, to);
    }
    return from;
  }

  /// Bottom-up and stable, whatever the comparator says.
  void merge_sort(const std::vector<char*>& row, int32_t* order, int32_t* room, int64_t n) const {
    char* const* buffers = row.data();
    int32_t* from = order;
    int32_t* to = room;
    for (int64_t width = 1; width < n; width *= 2) {
      for (int64_t low = 0; low < n; low += 2 * width) {
        int64_t i = low;
        const int64_t middle = std::min(low + width, n);
        int64_t j = middle;
        const int64_t high = std::min(low + 2 * width, n);
        for (int64_t k = low; k < high; ++k) {
          bool second = i >= middle || (j < high && compare_(buffers, from[j], from[i]));
          to[k] = second ? from[j++] : from[i++];
        }
      }
      std::swap(from, to);
    }
    if (from != order) std::memcpy(order, from, static_cast<size_t>(n) * sizeof(int32_t));
  }

  Rows rows_;
  std::vector<size_t> bytes_;
  size_t row_bytes_ = 0;
  bool keyed_;
  KeyRule rule_;
  CompareFunction compare_;
};

/// The k largest or smallest of each row, by total order; of equal ones the first.
class TopK : public Routine {
 public:
  explicit TopK(const RoutineCall& call) {
    const ArrayType& type = call.operands[0];
    length_ = type.dims.back();
    rows_ = length_ == 0 ? 0 : type.elements / length_;
    k_ = call.results[0].dims.back();
    rule_ = {type.element, call.numbers[0] == 0, true};
  }

  uint64_t scratch_bytes() const override { return static_cast<uint64_t>(length_) * sizeof(Entry) + 64; }

  void run(char* const* buffers, Threads&) const override {
    const size_t bytes = collet_type_bytes(rule_.type);
    auto* entries = reinterpret_cast<Entry*>(buffers[3]);
    auto* places = reinterpret_cast<int32_t*>(buffers[2]);
    for (int64_t r = 0; r < rows_; ++r) {
      const char* row = buffers[0] + static_cast<size_t>(r * length_) * bytes;
      for (int64_t i = 0; i < length_; ++i) entries[i] = {key_of(row + static_cast<size_t>(i) * bytes, rule_), i};
      auto less = [](const Entry& x, const Entry& y) { return x.key != y.key ? x.key < y.key : x.place < y.place; };
      if (k_ < length_) std::nth_element(entries, entries + k_, entries + length_, less);
      std::sort(entries, entries + k_, less);
      for (int64_t i = 0; i < k_; ++i) {
        std::memcpy(buffers[1] + static_cast<size_t>(r * k_ + i) * bytes,
                    row + static_cast<size_t>(entries[i].place) * bytes, bytes);
        places[r * k_ + i] = static_cast<int32_t>(entries[i].place);
      }
    }
  }

 private:
  struct Entry {
    uint64_t key;
    int64_t place;
  };
  int64_t length_ = 0;
  int64_t rows_ = 0;
  int64_t k_ = 0;
  KeyRule rule_;
};

}  // namespace

std::unique_ptr<Routine> make_sort(const RoutineCall& call, CompareFunction compare) {
  return std::make_unique<Sort>(call, compare);
}

std::unique_ptr<Routine> make_topk(const RoutineCall& call) {
  return std::make_unique<TopK>(call);
}

}  // namespace collet::codegen
