// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/launch/matmul_runner.h"

#include <algorithm>

#include "sdk/codegen/launch/matmul_loops.h"

namespace collet::codegen {
namespace {

template <typename Function>
Function at(const std::vector<void*>& addresses, FunctionId id) {
  return id == kNoFunction ? nullptr : reinterpret_cast<Function>(addresses[id]);
}

}  // namespace

int64_t MatmulCall::jobs() const {
  return batches / shared * chunks * column_parts;
}

int64_t MatmulCall::depth_blocks() const {
  return segments.empty() ? divide_up(depth, depth_block) : divide_up(static_cast<int64_t>(segments.size()), run_block);
}

int64_t MatmulCall::a_scratch() const {
  return a_packed ? (divide_up(tiles, chunks) * a_tile * element_bytes + 127) / 64 * 64 : 0;
}

int64_t MatmulCall::total_columns() const {
  return divide_up(panels, column_parts) * panel;
}

int64_t MatmulCall::total_scratch() const {
  if (group_blocks == 0) return 0;
  const int64_t rows_of_job = divide_up(tiles * shared, chunks) * tile_rows;
  return divide_up(rows_of_job * total_columns() * element_bytes, 64) * 64;
}

int64_t MatmulCall::b_scratch() const {
  const int64_t elements = packs_b ? b_matrix : copies_b ? panel * depth_block : 0;
  return elements == 0 ? 0 : (elements * element_bytes + 127) / 64 * 64;
}

MatmulRunner::MatmulRunner(const MatmulCall& call, const std::vector<void*>& addresses)
    : c_(call),
      pack_a_(at<KernelFunction>(addresses, call.pack_a)),
      pack_b_(at<KernelFunction>(addresses, call.pack_b)),
      copy_b_(at<KernelFunction>(addresses, call.copy_b)) {
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column)
      micro_[row][column] = at<MicroFunction>(addresses, call.micro[row][column]);
  }
  for (int column = 0; column < 2; ++column) {
    after_[column] = at<MicroFunction>(addresses, call.after[column]);
    fold_[column] = at<MicroFunction>(addresses, call.fold[column]);
  }
}

/// A Machine for MatmulLoops that executes the operations immediately.
class MatmulRunner::Interpreter {
 public:
  using Number = int64_t;
  using Address = char*;
  using Flag = bool;
  using Table = std::vector<int64_t> MatmulCall::*;

  Interpreter(const MatmulRunner& runner, char* const* buffers, Tile& tile)
      : r_(runner),
        buffers_(buffers),
        tile_(tile),
        uses_parts_(!runner.c_.first_step.empty() && !runner.c_.checks_parts) {}

  void use_parts(bool whether) { uses_parts_ = whether; }
  bool uses_parts(const MatmulCall&) const { return uses_parts_; }

  static Number number(int64_t x) { return x; }
  static Number least(Number x, Number y) { return std::min(x, y); }
  static Number most(Number x, Number y) { return std::max(x, y); }
  static Number choose(Flag which, int64_t x, int64_t y) { return which ? x : y; }
  static Address choose(Flag which, Address x, Address y) { return which ? x : y; }
  static Flag no() { return false; }
  static Flag either(Flag x, Flag y) { return x || y; }
  Number element(Table table, Number i) const { return elements(table, i)[0]; }
  const int64_t* elements(Table table, Number i) const { return (r_.c_.*table).data() + i; }
  Address buffer(uint32_t i) const { return buffers_[i]; }
  char* const* buffers(uint32_t i) const { return buffers_ + i; }
  template <typename Field, typename Value>
  void put(Field Tile::* field, Value value) {
    tile_.*field = value;
  }
  template <typename Body>
  static void loop(Number begin, Number end, const Body& body) {
    for (Number i = begin; i < end; ++i) body(i);
  }
  template <typename Body>
  static void when(Flag condition, const Body& body) {
    if (condition) body();
  }
  void compute(Flag last_row, Flag last_column) const { r_.micro_[last_row ? 1 : 0][last_column ? 1 : 0](&tile_); }
  void fold(Flag last_column) const { r_.fold_[last_column ? 1 : 0](&tile_); }
  void finish(Flag is_last_block, Flag last_column) const {
    const MicroFunction after = r_.after_[last_column ? 1 : 0];
    if (is_last_block && after) after(&tile_);
  }
  void pack(FunctionId id, uint32_t from, uint32_t count, Address packed, Number begin, Number end) const {
    char* places[kMostPackBuffers];
    std::copy_n(buffers_ + from, count, places);
    places[count] = packed;
    (id == r_.c_.pack_a ? r_.pack_a_ : r_.pack_b_)(places, begin, end);
  }
  void copy(Address from, Address to, Number steps) const {
    char* places[] = {from, to};
    r_.copy_b_(places, 0, steps);
  }

 private:
  const MatmulRunner& r_;
  char* const* buffers_;
  Tile& tile_;
  bool uses_parts_;
};

[[gnu::flatten]] void MatmulRunner::jobs(void* context, int64_t begin, int64_t end, int worker) {
  const Work& w = *static_cast<const Work*>(context);
  Tile tile;  // not initialised: setting all fields would take as long as a small product
  Interpreter interpreter(w.runner, w.buffers, tile);
  MatmulLoops<Interpreter> loops(w.runner.c_, interpreter);
  if (!w.runner.c_.checks_parts) return loops.jobs(begin, end, worker);
  for (int64_t batch = begin; batch < end; ++batch) {
    interpreter.use_parts(w.finite && w.runner.is_zero_outside(w.buffers, batch));
    loops.jobs(batch, batch + 1, worker);
  }
}

bool MatmulRunner::has_finite_b(char* const* buffers) const {
  if (!c_.checks_parts) return false;
  const auto [least, most] = std::minmax_element(c_.b_at.begin(), c_.b_at.end());
  int64_t first = *least * c_.b_matrix;
  int64_t end = (*most + 1) * c_.b_matrix;
  if (!c_.b_packed) {
    first = *least + c_.b_offset;
    end = *most + c_.b_offset + (c_.depth - 1) * c_.b_depth + c_.columns;
  }
  const auto* const b = reinterpret_cast<const uint32_t*>(buffers[c_.a_buffers]);
  // All bits of the exponent are set in infinities and NaN, and only there.
  constexpr uint32_t high = 0x7f800000;
  const uint32_t low = c_.pairs ? 0x7f80 : high;
  uint32_t found = 0;
  for (int64_t i = first; i < end; ++i)
    found |= static_cast<uint32_t>((b[i] & high) == high) | static_cast<uint32_t>((b[i] & low) == low);
  return found == 0;
}

bool MatmulRunner::is_zero_outside(char* const* buffers, int64_t batch) const {
  const auto* const a =
      reinterpret_cast<const uint32_t*>(buffers[0]) + c_.a_offset + c_.a_at[static_cast<size_t>(batch)];
  for (int64_t tile = 0; tile < c_.tiles; ++tile) {
    const auto at = static_cast<size_t>(batch * c_.tiles + tile);
    const int64_t last = std::min((tile + 1) * c_.tile_rows, c_.rows);
    for (int64_t row = tile * c_.tile_rows; row < last; ++row) {
      const uint32_t* const elements = a + row * c_.a_row;
      uint32_t bits = 0;
      for (int64_t i = 0; i < c_.first_step[at]; ++i) bits |= elements[i];
      for (int64_t i = c_.end_step[at]; i < c_.depth; ++i) bits |= elements[i];
      if (bits != 0) return false;
    }
  }
  return true;
}

void MatmulRunner::run(char* const* buffers, Threads& threads) const {
  if (c_.threads > 1 && threads.worthwhile(c_.cost_ns)) {
    Work work{*this, buffers, false};
    threads.loop(c_.jobs(), 1, jobs, &work);
  } else {
    run_jobs(buffers, 0, c_.jobs(), 0);
  }
}

}  // namespace collet::codegen
