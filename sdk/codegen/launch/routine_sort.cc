// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "sdk/codegen/launch/routine.h"
#include "sdk/codegen/launch/sort_keys.h"
#include "sdk/codegen/launch/worker_memory.h"

namespace collet::codegen {
namespace {

/// Strides of the rows along one dimension.
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

template <typename U>
U bits_at(const char* p) {
  U bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

template <size_t kBytes, typename Order>
void gather(const char* from, int64_t from_step, const Order& order, char* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + order(i) * from_step, kBytes);
}

/// Copies elements order(0), order(1), ... of `from`, n in total, to places that are `step` bytes apart.
template <typename Order>
void gather_elements(const char* from, const Order& order, char* to, int64_t step, int64_t n, size_t bytes) {
  switch (bytes) {
    case 1:
      return gather<1>(from, step, order, to, step, n);
    case 2:
      return gather<2>(from, step, order, to, step, n);
    case 4:
      return gather<4>(from, step, order, to, step, n);
    case 8:
      return gather<8>(from, step, order, to, step, n);
    default:
      return gather<16>(from, step, order, to, step, n);
  }
}

class Sort : public Routine {
 public:
  Sort(const RoutineCall& call, CompareFunction compare)
      : rows_(call.results[0].dims, call.numbers[0]),
        needed_(call.numbers[4]),
        keyed_(call.numbers[1] != 0),
        but_for_nan_((call.numbers[3] & kSortButForNaN) != 0),
        compare_(compare) {
    rule_ = {call.results[0].element, call.numbers[2] != 0, (call.numbers[3] & kSortEqualZeros) != 0,
             (call.numbers[3] & kSortEqualNaNs) != 0};
    for (const ArrayType& type : call.results) bytes_.push_back(collet_type_bytes(type.element));
    for (size_t b : bytes_) row_bytes_ += (b * static_cast<size_t>(rows_.length) + 63) / 64 * 64;
  }

  uint64_t scratch_bytes() const override {
    const auto n = static_cast<uint64_t>(rows_.length);
    // A radix sort has two arrays of keys with their indices; a merge sort has a copy of the row and two arrays of indices.
    const uint64_t keys = 2 * (n + Selection<uint64_t>::kBlock) * sizeof(KeyAndPlace) + 128;
    const uint64_t merge = row_bytes_ + 2 * n * sizeof(int32_t) + 128;
    return std::max(keyed_ ? keys : 0, !keyed_ || but_for_nan_ ? merge : 0);
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (rows_.count() == 0 || rows_.length == 0) return;
    const WorkerMemory memory(buffers[2 * bytes_.size()], scratch_bytes(), rows_.count(), threads);
    const double ns = 10.0 * static_cast<double>(rows_.length) * static_cast<double>(bytes_.size());
    for_each_part(rows_.count(), ns, threads, [&](int64_t r, int worker) {
      const int64_t start = rows_.start(r);
      char* work = memory.of(worker);
      const bool sorted = keyed_ && by_key(buffers, start, work);
      if (!sorted) by_comparison(buffers, start, work);
    });
  }

 private:
  int64_t step(size_t k) const { return rows_.inner * static_cast<int64_t>(bytes_[k]); }
  const char* input(char* const* buffers, size_t k, int64_t start) const {
    return buffers[k] + start * static_cast<int64_t>(bytes_[k]);
  }
  char* output(char* const* buffers, size_t k, int64_t start) const {
    return buffers[bytes_.size() + k] + start * static_cast<int64_t>(bytes_[k]);
  }

  bool by_key(char* const* buffers, int64_t start, char* work) const {
    switch (bytes_[0]) {
      case 1:
        return by_key_of<uint8_t>(buffers, start, work);
      case 2:
        return by_key_of<uint16_t>(buffers, start, work);
      case 4:
        return by_key_of<uint32_t>(buffers, start, work);
      default:
        return by_key_of<uint64_t>(buffers, start, work);
    }
  }

  /// Sorts a row by key. Returns false if the row contains a NaN and only the comparator can place it.
  template <typename U>
  bool by_key_of(char* const* buffers, int64_t start, char* work) const {
    const Keys<U> keys(rule_);
    const char* row = input(buffers, 0, start);
    const int64_t n = rows_.length;
    if (but_for_nan_) {
      bool any = false;
      for (int64_t i = 0; i < n; ++i) any |= keys.is_nan(bits_at<U>(row + i * step(0)), rule_.type);
      if (any) return false;
    }
    using E = typename Entry<U>::type;
    E* entries = reinterpret_cast<E*>(work);
    const auto place = [](const E* sorted) { return [sorted](int64_t i) { return Entry<U>::place(sorted[i]); }; };
    if (needed_ <= n / 4 && rows_.inner == 1) {
      write(buffers, start, place(Selection<U>::run(keys, row, n, needed_, entries)));
      return true;
    }
    if (bytes_.size() == 1 && sort_alone(keys, row, output(buffers, 0, start), work)) return true;
    for (int64_t i = 0; i < n; ++i) entries[i] = Entry<U>::make(keys.key(bits_at<U>(row + i * step(0))), i);
    write(buffers, start, place(sort_by_bits(entries, entries + n, n, Entry<U>::kFirst, sizeof(U))));
    return true;
  }

  /// Sorts the only operand, by its keys alone. Returns false if elements with equal keys may differ.
  template <typename U>
  bool sort_alone(const Keys<U>& keys, const char* row, char* out, char* work) const {
    const int64_t n = rows_.length;
    U* from = reinterpret_cast<U*>(work);
    bool ambiguous = false;
    for (int64_t i = 0; i < n; ++i) {
      const U bits = bits_at<U>(row + i * step(0));
      ambiguous |= keys.is_ambiguous(bits);
      from[i] = keys.key(bits);
    }
    if (ambiguous) return false;
    const U* sorted = sort_by_bits(from, from + n, n, 0, sizeof(U));
    for (int64_t i = 0; i < n; ++i) {
      const U bits = keys.element(sorted[i]);
      std::memcpy(out + i * step(0), &bits, sizeof bits);
    }
    return true;
  }

  template <typename Order>
  void write(char* const* buffers, int64_t start, const Order& order) const {
    for (size_t k = 0; k < bytes_.size(); ++k)
      gather_elements(input(buffers, k, start), order, output(buffers, k, start), step(k), needed_, bytes_[k]);
  }

  void by_comparison(char* const* buffers, int64_t start, char* work) const {
    std::vector<char*> row(bytes_.size());
    for (size_t k = 0; k < bytes_.size(); ++k) {
      row[k] = work;
      work += (bytes_[k] * static_cast<size_t>(rows_.length) + 63) / 64 * 64;
      const auto b = static_cast<int64_t>(bytes_[k]);
      copy_elements(input(buffers, k, start), step(k), row[k], b, rows_.length, bytes_[k]);
    }
    int32_t* order = reinterpret_cast<int32_t*>(work);
    std::iota(order, order + rows_.length, 0);
    merge_sort(row, order, order + rows_.length, rows_.length);
    write(buffers, start, [order](int64_t i) { return int64_t{order[i]}; });
  }

  /// Sorts indices by the comparator, bottom-up. The sort is stable and ends for any comparator.
  void merge_sort(const std::vector<char*>& row, int32_t* order, int32_t* scratch, int64_t n) const {
    char* const* buffers = row.data();
    int32_t* from = order;
    int32_t* to = scratch;
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
  int64_t needed_;  ///< number of elements of each row that are read later
  std::vector<size_t> bytes_;
  size_t row_bytes_ = 0;
  bool keyed_;
  bool but_for_nan_;
  KeyRule rule_;
  CompareFunction compare_;
};

/// Finds the k largest or smallest elements of each row in total order. Of equal elements, those that come first are
/// chosen.
class TopK : public Routine {
 public:
  explicit TopK(const RoutineCall& call) {
    const ArrayType& type = call.operands[0];
    length_ = type.dims.back();
    rows_ = length_ == 0 ? 0 : type.elements / length_;
    k_ = call.results[0].dims.back();
    rule_ = {type.element, call.numbers[0] == 0, false, false};
  }

  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(2 * Selection<uint64_t>::capacity(length_, k_)) * sizeof(KeyAndPlace) + 128;
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (rows_ == 0 || k_ == 0) return;
    const WorkerMemory memory(buffers[3], scratch_bytes(), rows_, threads);
    const double ns = static_cast<double>(length_) + 20.0 * static_cast<double>(k_);
    for_each_part(rows_, ns, threads, [&](int64_t r, int worker) {
      switch (collet_type_bytes(rule_.type)) {
        case 1:
          return row<uint8_t>(buffers, r, memory.of(worker));
        case 2:
          return row<uint16_t>(buffers, r, memory.of(worker));
        case 4:
          return row<uint32_t>(buffers, r, memory.of(worker));
        default:
          return row<uint64_t>(buffers, r, memory.of(worker));
      }
    });
  }

 private:
  template <typename U>
  void row(char* const* buffers, int64_t r, char* work) const {
    using E = typename Entry<U>::type;
    const char* in = buffers[0] + static_cast<size_t>(r * length_) * sizeof(U);
    const E* found = Selection<U>::run(Keys<U>(rule_), in, length_, k_, reinterpret_cast<E*>(work));
    char* values = buffers[1] + static_cast<size_t>(r * k_) * sizeof(U);
    auto* places = reinterpret_cast<int32_t*>(buffers[2]) + r * k_;
    for (int64_t j = 0; j < k_; ++j) {
      const int64_t place = Entry<U>::place(found[j]);
      std::memcpy(values + static_cast<size_t>(j) * sizeof(U), in + static_cast<size_t>(place) * sizeof(U), sizeof(U));
      places[j] = static_cast<int32_t>(place);
    }
  }

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
