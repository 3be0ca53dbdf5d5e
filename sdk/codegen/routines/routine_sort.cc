// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/routines/sort_keys.h"
#include "sdk/codegen/routines/sort_lanes.h"
#include "sdk/codegen/routines/worker_memory.h"

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

/// Sorts of several short rows at once, by a network.
class LaneSorter {
 public:
  LaneSorter() = default;
  /// `ns` is the time that sorting a row by itself takes; `alone` says whether elements are sorted without their
  /// places.
  LaneSorter(const KeyRule& rule, const Rows& rows, int64_t needed, bool alone, double ns) : type_(rule.type) {
    const size_t bytes = collet_type_bytes(rule.type);
    const int64_t n = rows.length;
    const bool few = needed <= kMostSelected;
    if (n < 2 || (!few && n > kMostInNetwork)) return;
    // Places have as many bits as elements.
    if (bytes > 2 || n <= int64_t{1} << (8 * bytes)) with_places_ = lanes_of_sort(bytes, true);
    lanes_ = alone ? lanes_of_sort(bytes, false) : with_places_;
    if (lanes_ == 0) return;
    steps_ = sorting_network(n, needed);
    // Rows that are not adjacent are sorted in groups that begin with a whole group of rows.
    adjacent_ = rows.inner >= lanes_;
    block_ = adjacent_ ? rows.inner : rows.count();
    per_block_ = (block_ + lanes_ - 1) / lanes_;
    groups_ = rows.count() / std::max<int64_t>(block_, 1) * per_block_;
    const double moved = static_cast<double>(n * lanes_) * (adjacent_ ? 0.1 : bytes >= 4 ? 0.2 : 0.6);
    const double by_place = alone ? 0 : 1.5 * static_cast<double>(needed * lanes_);
    const double sorted =
        few ? (needed > 8 ? 6 : 3) * static_cast<double>(n) : 2.2 * static_cast<double>(steps_.size());
    group_ns_ = sorted + moved + by_place + 30;
    if (group_ns_ * static_cast<double>(groups_) > ns * static_cast<double>(rows.count())) lanes_ = 0;
  }

  /// True if sorting in lanes is faster.
  explicit operator bool() const { return lanes_ > 0; }
  int64_t groups() const { return groups_; }
  double group_ns() const { return group_ns_; }
  /// Returns the number of rows that are sorted at once with their places, or 0.
  int64_t with_places() const { return with_places_; }
  /// True if neighbouring rows of a group are neighbours in memory.
  bool are_adjacent() const { return adjacent_; }
  int64_t first_row(int64_t group) const { return group / per_block_ * block_ + group % per_block_ * lanes_; }
  int64_t row_count(int64_t group) const { return std::min(lanes_, block_ - group % per_block_ * lanes_); }

  /// Sorts rows [first, first + count), which are at most lanes() or with_places() rows of one group. Stores the
  /// elements to `to` or, if it is null, their places.
  template <typename U>
  LaneSorted run(const Keys<U>& keys, const Rows& rows, int64_t first, int64_t count, bool refuse_nan, int64_t needed,
                 const char* from, char* to, int32_t* places, char* work) const {
    LaneSort<U> job;
    job.steps = steps_.data();
    job.step_count = steps_.size();
    job.n = rows.length;
    job.needed = needed;
    job.from = from;
    job.distance = rows.inner;
    for (int64_t l = 0; l < count; ++l) job.starts[l] = rows.start(first + l);
    job.rows = count;
    job.adjacent = adjacent_ && count == (to ? lanes_ : with_places_);
    job.refuse_nan = refuse_nan;
    job.to = to;
    job.places = places;
    return sort_lanes(job, keys, type_, !to, work);
  }

 private:
  uint32_t type_ = 0;
  int64_t lanes_ = 0;
  int64_t with_places_ = 0;
  std::vector<NetworkStep> steps_;
  bool adjacent_ = false;
  int64_t block_ = 1;  ///< number of rows that are divided into groups
  int64_t per_block_ = 1;
  int64_t groups_ = 0;
  double group_ns_ = 0;
};

/// Calls f with a value of the unsigned integer type of so many bytes.
template <typename F>
auto with_integer(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
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
    if (keyed_) lanes_ = LaneSorter(rule_, rows_, needed_, bytes_.size() == 1, row_ns());
  }

  uint64_t scratch_bytes() const override {
    const auto n = static_cast<uint64_t>(rows_.length);
    // A radix sort has two arrays of keys with their indices; a merge sort has a copy of the row and two arrays of indices.
    const uint64_t keys = 2 * (n + Selection<uint64_t>::kBlock) * sizeof(KeyAndPlace) + 128;
    const uint64_t merge = row_bytes_ + 2 * n * sizeof(int32_t) + 128;
    return std::max(keyed_ ? keys : 0, !keyed_ || but_for_nan_ ? merge : 0) + static_cast<uint64_t>(lanes_bytes());
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (rows_.count() == 0 || rows_.length == 0) return;
    const int64_t parts = lanes_ ? lanes_.groups() : rows_.count();
    const WorkerMemory memory(buffers[2 * bytes_.size()], scratch_bytes(), parts, threads);
    const double ns = lanes_ ? lanes_.group_ns() : row_ns();
    for_each_part(parts, ns, threads, [&](int64_t part, int worker) {
      char* work = memory.of(worker);
      if (!lanes_) return row(buffers, part, work);
      with_integer(bytes_[0], [&](auto u) { group<decltype(u)>(buffers, part, work); });
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

  /// Returns the estimated time of sorting a row by itself, in ns.
  double row_ns() const {
    const auto n = static_cast<double>(rows_.length);
    if (!keyed_) return 10 * n * static_cast<double>(bytes_.size());
    const double moved = 2 * n * static_cast<double>(bytes_.size());
    return moved + (n <= 64 ? n * n / 3 : static_cast<double>(bytes_[0]) * (120 + n));
  }
  int64_t lanes_bytes() const {
    if (!lanes_) return 0;
    const int64_t places = lanes_.with_places() * needed_ * static_cast<int64_t>(sizeof(int32_t));
    return sort_lanes_bytes(rows_.length, needed_) + (places + 63) / 64 * 64;
  }

  void row(char* const* buffers, int64_t r, char* work) const {
    const int64_t start = rows_.start(r);
    const bool sorted =
        keyed_ && with_integer(bytes_[0], [&](auto u) { return by_key_of<decltype(u)>(buffers, start, work); });
    if (!sorted) by_comparison(buffers, start, work);
  }

  /// Sorts a group of rows in lanes, as far as that is possible.
  template <typename U>
  void group(char* const* buffers, int64_t g, char* work) const {
    const Keys<U> keys(rule_);
    const int64_t first = lanes_.first_row(g);
    const int64_t end = first + lanes_.row_count(g);
    if (bytes_.size() == 1) {
      const LaneSorted sorted =
          lanes_.run(keys, rows_, first, end - first, but_for_nan_, needed_, buffers[0], buffers[1], nullptr, work);
      if (sorted == LaneSorted::kYes) return;
    }
    int32_t* places = reinterpret_cast<int32_t*>(work + sort_lanes_bytes(rows_.length, needed_));
    char* rest = work + lanes_bytes();
    const int64_t together = lanes_.with_places();
    if (together == 0) {
      for (int64_t r = first; r < end; ++r) row(buffers, r, rest);
      return;
    }
    for (int64_t f = first; f < end; f += together) {
      const int64_t count = std::min(together, end - f);
      const LaneSorted sorted =
          lanes_.run(keys, rows_, f, count, but_for_nan_, needed_, buffers[0], nullptr, places, work);
      if (sorted != LaneSorted::kYes) {
        for (int64_t r = f; r < f + count; ++r) row(buffers, r, rest);
      } else if (lanes_.are_adjacent()) {
        // All rows at the same time, so that whole cache lines are written.
        for (size_t k = 0; k < bytes_.size(); ++k) {
          const char* from = input(buffers, k, rows_.start(f));
          char* to = output(buffers, k, rows_.start(f));
          const auto place = [&](int64_t l) { return places[l * needed_] * rows_.inner + l; };
          for (int64_t i = 0; i < needed_; ++i, ++places, to += step(k))
            gather_elements(from, place, to, static_cast<int64_t>(bytes_[k]), count, bytes_[k]);
          places -= needed_;
        }
      } else {
        for (int64_t r = f; r < f + count; ++r) {
          const int32_t* order = places + (r - f) * needed_;
          write(buffers, rows_.start(r), [order](int64_t i) { return int64_t{order[i]}; });
        }
      }
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
  LaneSorter lanes_;
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
    if (length_ > 0 && k_ > 0) lanes_ = LaneSorter(rule_, rows(), k_, false, row_ns());
  }

  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(2 * Selection<uint64_t>::capacity(length_, k_)) * sizeof(KeyAndPlace) + 128 +
           static_cast<uint64_t>(lanes_ ? sort_lanes_bytes(length_, k_) : 0);
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (rows_ == 0 || k_ == 0) return;
    const int64_t parts = lanes_ ? lanes_.groups() : rows_;
    const WorkerMemory memory(buffers[3], scratch_bytes(), parts, threads);
    for_each_part(parts, lanes_ ? lanes_.group_ns() : row_ns(), threads, [&](int64_t part, int worker) {
      with_integer(collet_type_bytes(rule_.type), [&](auto u) {
        using U = decltype(u);
        lanes_ ? group<U>(buffers, part, memory.of(worker)) : row<U>(buffers, part, memory.of(worker));
      });
    });
  }

 private:
  Rows rows() const { return Rows({rows_, length_}, 1); }
  /// Returns the estimated time of a row by itself, in ns.
  double row_ns() const {
    const auto n = static_cast<double>(length_);
    const auto k = static_cast<double>(k_);
    if (k_ <= 2 && n <= 512) return 2 * n;
    return std::min(10 * n, 700 + 0.6 * n) + 40 * k;
  }

  template <typename U>
  void group(char* const* buffers, int64_t g, char* work) const {
    const int64_t first = lanes_.first_row(g);
    const int64_t count = lanes_.row_count(g);
    auto* places = reinterpret_cast<int32_t*>(buffers[2]) + first * k_;
    lanes_.run(Keys<U>(rule_), rows(), first, count, false, k_, buffers[0], nullptr, places, work);
    for (int64_t r = first; r < first + count; ++r) {
      const char* in = buffers[0] + static_cast<size_t>(r * length_) * sizeof(U);
      char* values = buffers[1] + static_cast<size_t>(r * k_) * sizeof(U);
      const int32_t* order = places + (r - first) * k_;
      for (int64_t j = 0; j < k_; ++j)
        std::memcpy(values + static_cast<size_t>(j) * sizeof(U), in + static_cast<size_t>(order[j]) * sizeof(U),
                    sizeof(U));
    }
  }

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
  LaneSorter lanes_;
};

}  // namespace

std::unique_ptr<Routine> make_sort(const RoutineCall& call, CompareFunction compare) {
  return std::make_unique<Sort>(call, compare);
}

std::unique_ptr<Routine> make_topk(const RoutineCall& call) {
  return std::make_unique<TopK>(call);
}

}  // namespace collet::codegen
