// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <cmath>
#include <collet/kernel_match.hpp>

#include "device.h"

namespace tile {

namespace kernel = collet::kernel;
using kernel::Array;
using kernel::Loop;
using kernel::MatrixProduct;
using kernel::Op;

namespace {

constexpr kernel::TypeSet f32{COLLET_TYPE_F32};
constexpr kernel::TypeSet words{COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_U32};
constexpr kernel::TypeSet integers{COLLET_TYPE_S8, COLLET_TYPE_S4};
constexpr kernel::TypeSet quantized = f32 | integers;
constexpr int64_t kTile = 64;
constexpr uint32_t kTileWords = kTile * kTile;

// A command list that is written once, when a program is compiled, and that refers to arrays by number: operands first,
// then results. `run` adds the addresses, which differ from run to run.
class List {
 public:
  // Adds a load. `loops` begin at element `first` of the array; Loop::from is the step in it.
  void load(uint32_t array, uint32_t to, int64_t first, Loop rows, Loop columns, uint32_t bits = 32) {
    Instruction in = transfer(Code::kLoad, array, first, rows, columns);
    in.row_step = rows.from;
    in.column_step = columns.from;
    in.c = to;
    in.bits = bits;
    commands_.push_back(in);
  }
  void store(uint32_t array, uint32_t from, int64_t first, Loop rows, Loop columns) {
    Instruction in = transfer(Code::kStore, array, first, rows, columns);
    in.row_step = rows.to;
    in.column_step = columns.to;
    in.a = from;
    commands_.push_back(in);
  }
  void fill(uint32_t c, int64_t n, float value) {
    compute(Code::kFill, 0, 0, c, n);
    commands_.back().value = value;
  }
  void scale(uint32_t c, int64_t n, double value) {
    compute(Code::kScale, c, 0, c, n);
    commands_.back().value = static_cast<float>(value);
  }
  void compute(Code code, uint32_t a, uint32_t b, uint32_t c, int64_t n) {
    Instruction in;
    in.code = code;
    in.a = a;
    in.b = b;
    in.c = c;
    in.n = static_cast<uint32_t>(n);
    commands_.push_back(in);
  }
  void compute_rows(Code code, uint32_t a, uint32_t b, uint32_t c, int64_t rows, int64_t columns, int64_t depth = 0) {
    compute(code, a, b, c, depth);
    commands_.back().rows = static_cast<uint32_t>(rows);
    commands_.back().columns = static_cast<uint32_t>(columns);
  }

  Commands at(const Op& op) const {
    Commands out = commands_;
    for (Instruction& in : out) {
      if (in.code > Code::kStore) continue;
      const Array& array =
          in.array < op.operand_count() ? op.operand(in.array) : op.result(in.array - op.operand_count());
      in.memory = array.memory + array.offset / 4;
    }
    return out;
  }

 private:
  static Instruction transfer(Code code, uint32_t array, int64_t first, Loop rows, Loop columns) {
    Instruction in;
    in.code = code;
    in.array = array;
    in.first = first;
    in.rows = static_cast<uint32_t>(rows.extent);
    in.columns = static_cast<uint32_t>(columns.extent);
    return in;
  }

  Commands commands_;
};

void submit(kernel::Device& device, const Op& op, const List& list) {
  static_cast<Device&>(device).submit(list.at(op), collet_op_name(op.opcode()) + (" " + op.name()), op.run_id());
}

// Returns a row whose list is written during compile and sent at each run.
kernel::Kernel row(uint32_t opcode, kernel::TypeSet operands, kernel::TypeSet results, List (*write)(const Op& op)) {
  kernel::Kernel out{opcode, operands, results, nullptr};
  out.prepare = [write](kernel::Device&, const Op& op) -> std::any { return write(op); };
  out.run = [](kernel::Device& device, const Op& op) { submit(device, op, op.state<List>()); };
  return out;
}

// Cuts loops into pieces of at most `room` words, and calls visit(from, to, rows, columns) for each, with offsets in
// words.
template <class Visit>
void for_each_piece(std::vector<Loop> loops, int64_t room, const Visit& visit) {
  while (loops.size() < 2) loops.insert(loops.begin(), Loop{1, 0, 0});
  const Loop columns = loops.back();
  loops.pop_back();
  const Loop rows = loops.back();
  loops.pop_back();
  const int64_t width = std::min(columns.extent, room),
                height = std::max<int64_t>(1, std::min(rows.extent, room / width));
  std::vector<int64_t> index(loops.size(), 0);
  for (;;) {
    int64_t from = 0, to = 0;
    for (size_t i = 0; i < loops.size(); ++i) from += index[i] * loops[i].from, to += index[i] * loops[i].to;
    for (int64_t r = 0; r < rows.extent; r += height) {
      for (int64_t c = 0; c < columns.extent; c += width) {
        visit(from + r * rows.from + c * columns.from, to + r * rows.to + c * columns.to,
              Loop{std::min(height, rows.extent - r), rows.from, rows.to},
              Loop{std::min(width, columns.extent - c), columns.from, columns.to});
      }
    }
    size_t d = loops.size();
    while (d > 0 && ++index[d - 1] == loops[d - 1].extent) index[--d] = 0;
    if (d == 0) return;
  }
}

// Writes the list of an elementwise op: loads a piece of each operand, computes, stores the result.
template <Code code>
List write_elementwise(const Op& op) {
  constexpr uint32_t kPiece = kScratchWords / 4;
  List list;
  for_each_piece({{static_cast<int64_t>(op.result().elements), 1, 1}}, kPiece,
                 [&](int64_t from, int64_t to, Loop rows, Loop columns) {
                   for (uint32_t i = 0; i < op.operand_count(); ++i) list.load(i, i * kPiece, from, rows, columns);
                   list.compute(code, 0, kPiece, 2 * kPiece, columns.extent);
                   list.store(op.operand_count(), 2 * kPiece, to, rows, columns);
                 });
  return list;
}

// Writes the list of a conversion from integers to floats, which the DMA engine makes while it loads.
List write_convert(const Op& op) {
  List list;
  for_each_piece({{static_cast<int64_t>(op.result().elements), 1, 1}}, kScratchWords,
                 [&](int64_t from, int64_t to, Loop rows, Loop columns) {
                   list.load(0, 0, from, rows, columns, 8);
                   list.store(1, 0, to, rows, columns);
                 });
  return list;
}

// Rearranges elements: loads with the reader's strides, stores with the writer's.
void run_move(kernel::Device& device, const kernel::Move& move, const Array& from, const Array& to) {
  Commands commands;
  for_each_piece(move.loops, kScratchWords, [&](int64_t from_offset, int64_t to_offset, Loop rows, Loop columns) {
    Instruction in;
    in.rows = static_cast<uint32_t>(rows.extent);
    in.columns = static_cast<uint32_t>(columns.extent);
    in.code = Code::kLoad;
    in.memory = from.memory + from.offset / 4;
    in.first = move.from_base + from_offset;
    in.row_step = rows.from;
    in.column_step = columns.from;
    commands.push_back(in);
    in.code = Code::kStore;
    in.memory = to.memory + to.offset / 4;
    in.first = move.to_base + to_offset;
    in.row_step = rows.to;
    in.column_step = columns.to;
    commands.push_back(in);
  });
  static_cast<Device&>(device).submit(std::move(commands), "move", 0);
}

kernel::Verdict takes_reduction(const Op& op) {
  if (!kernel::is_simple_reduction(op)) return "only reductions of one array by one op";
  const uint32_t c = op.combine();
  const bool known = c == COLLET_COMBINE_ADD || c == COLLET_COMBINE_MAXIMUM || c == COLLET_COMBINE_MULTIPLY;
  return known ? kernel::Verdict(true) : "only sums, maxima and products";
}

// Each reduced index loads one piece of the operand. The pieces of a block are combined first, and then the blocks with
// each other, because the error of a sum of n numbers grows with n if they are added one after another, but with its
// root if they are added in blocks.
List write_reduction(const Op& op) {
  constexpr uint32_t kPiece = kScratchWords / 4, kBlock = kPiece, kNext = 2 * kPiece;
  const kernel::Reduction reduction = kernel::reduction_of(op);
  const Code code = reduction.combine == COLLET_COMBINE_ADD       ? Code::kAdd
                    : reduction.combine == COLLET_COMBINE_MAXIMUM ? Code::kMaximum
                                                                  : Code::kMultiply;
  std::vector<int64_t> offsets;
  if (op.operand(0).elements != 0) {
    for_each_piece(reduction.reduced, 1, [&](int64_t offset, int64_t, Loop, Loop) { offsets.push_back(offset); });
  }
  const auto block = static_cast<size_t>(std::sqrt(static_cast<double>(offsets.size()))) + 1;
  List list;
  for_each_piece(reduction.kept, kPiece, [&](int64_t from, int64_t to, Loop rows, Loop columns) {
    const int64_t count = rows.extent * columns.extent;
    list.load(1, 0, 0, {rows.extent, 0, 0}, {columns.extent, 0, 0});
    for (size_t i = 0; i < offsets.size(); ++i) {
      const bool begins = i % block == 0, ends = i + 1 == offsets.size() || (i + 1) % block == 0;
      list.load(0, begins ? kBlock : kNext, from + offsets[i], rows, columns);
      if (!begins) list.compute(code, kBlock, kNext, kBlock, count);
      if (ends) list.compute(code, 0, kBlock, 0, count);
    }
    list.store(2, 0, to, rows, columns);
  });
  return list;
}

int64_t tiles(int64_t extent) {
  return (extent + kTile - 1) / kTile;
}

// The layout of an operand of a product: dense, strided, or in tiles of 64 x 64 words with padding.
struct Matrix {
  uint32_t array;
  int64_t rows, columns, batch_step, row_step, column_step;
  uint32_t bits = 32;
  bool tiled = false;

  void load(List* list, uint32_t to, int64_t batch, int64_t row, int64_t column) const {
    const Loop height{std::min(kTile, rows - row), tiled ? kTile : row_step, 0};
    const Loop width{std::min(kTile, columns - column), tiled ? 1 : column_step, 0};
    const int64_t first = tiled ? (row / kTile * tiles(columns) + column / kTile) * kTileWords
                                : batch * batch_step + row * row_step + column * column_step;
    list->load(array, to, first, height, width, bits);
  }
};

// Writes the list of a product, in tiles of at most 64 x 64 results and steps of at most 64 of the depth. `scale` is
// the array by whose elements the columns are multiplied, or COLLET_NONE.
List write_product(const MatrixProduct& p, const Matrix& lhs, const Matrix& rhs, uint32_t scale, uint32_t result) {
  constexpr uint32_t kA = 0, kB = kTileWords, kC = 2 * kTileWords;
  List list;
  const auto tile = [&](int64_t b, int64_t m, int64_t n) {
    const int64_t rows = std::min(kTile, p.m - m), columns = std::min(kTile, p.n - n);
    list.fill(kC, rows * columns, 0);
    for (int64_t k = 0; k < p.k; k += kTile) {
      lhs.load(&list, kA, b, m, k);
      rhs.load(&list, kB, b, k, n);
      list.compute_rows(Code::kMultiplyAdd, kA, kB, kC, rows, columns, std::min(kTile, p.k - k));
    }
    if (scale != COLLET_NONE) {
      list.load(scale, kA, n, {rows, 0, 0}, {columns, 1, 0});
      list.compute(Code::kMultiply, kC, kA, kC, rows * columns);
    }
    list.store(result, kC, b * p.out_b + m * p.out_m + n * p.out_n, {rows, 0, p.out_m}, {columns, 0, p.out_n});
  };
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t m = 0; m < p.m; m += kTile) {
      for (int64_t n = 0; n < p.n; n += kTile) tile(b, m, n);
    }
  }
  return list;
}

Matrix left_of(const MatrixProduct& p) {
  return {0, p.m, p.k, p.lhs_b, p.lhs_m, p.lhs_k};
}
Matrix right_of(const MatrixProduct& p) {
  return {1, p.k, p.n, p.rhs_b, p.rhs_k, p.rhs_n};
}

// True if tiles pay: then the first operand may be tiled by "layout", and the second may be kept in tiles by
// "residency".
bool may_tile(const MatrixProduct& p) {
  return p.batch == 1 && p.k >= kTile && (p.m >= kTile || p.n >= kTile);
}
MatrixProduct product_of(const Op& op) {
  MatrixProduct p;
  kernel::matrix_product_of(op, &p);
  return p;
}

kernel::Kernel product() {
  kernel::Kernel out{COLLET_OP_DOT, f32, f32, nullptr, kernel::is_plain_product};
  // One list for each combination of forms that the operands may have.
  out.prepare = [](kernel::Device&, const Op& op) -> std::any {
    const MatrixProduct p = product_of(op);
    std::vector<List> lists;
    for (uint32_t form = 0; form < (may_tile(p) ? 4u : 1u); ++form) {
      Matrix left = left_of(p), right = right_of(p);
      left.tiled = (form & 1) != 0;
      right.tiled = (form & 2) != 0;
      lists.push_back(write_product(p, left, right, COLLET_NONE, 2));
    }
    return lists;
  };
  out.run = [](kernel::Device& device, const Op& op) {
    const size_t form = (op.operand(0).layout ? 1 : 0) + (op.operand(1).packed ? 2 : 0);
    submit(device, op, op.state<std::vector<List>>()[form]);
  };
  out.packing.operand = 1;
  out.packing.bytes = [](const Op& op) -> uint64_t {
    const MatrixProduct p = product_of(op);
    return may_tile(p) ? static_cast<uint64_t>(tiles(p.k) * tiles(p.n)) * kTileWords * 4 : 0;
  };
  out.packing.make = [](kernel::Device& device, const Op& op, const Array& packed) {
    const MatrixProduct p = product_of(op);
    const Matrix from = right_of(p);
    List list;
    for (int64_t k = 0; k < p.k; k += kTile) {
      for (int64_t n = 0; n < p.n; n += kTile) {
        const int64_t rows = std::min(kTile, p.k - k), columns = std::min(kTile, p.n - n);
        from.load(&list, 0, 0, k, n);
        // Array 2 is the result; here it is the packed form.
        list.store(2, 0, (k / kTile * tiles(p.n) + n / kTile) * kTileWords, {rows, 0, kTile}, {columns, 0, 1});
      }
    }
    const Array arrays[] = {op.operand(0), op.operand(1), packed};
    submit(device, Op(op.program(), &op.raw(), arrays), list);
  };
  out.layout = [](const Op& op, uint32_t index, collet_layout* layout) {
    const MatrixProduct p = product_of(op);
    const Array& array = op.operand(0);
    if (index != 0 || !may_tile(p) || array.rank != 2 || p.lhs_k != 1 || p.lhs_m != p.k) return;
    layout->rank = 2;
    layout->order[0] = 0;
    layout->order[1] = 1;
    layout->tile_rank[0] = 2;
    layout->tile[0][0] = layout->tile[0][1] = kTile;
    layout->bytes = static_cast<uint64_t>(tiles(array.dims[0]) * tiles(array.dims[1])) * kTileWords * 4;
  };
  return out;
}

// Finds product number `i` in the region of a pattern.
bool product_in(const Op& op, uint32_t i, MatrixProduct* out) {
  const kernel::RegionGraph graph(op.program(), op.raw().regions.first);
  for (uint32_t k = 0; k < graph.op_count(); ++k) {
    if (graph.op(k)->opcode != COLLET_OP_DOT || i-- != 0) continue;
    const std::vector<Array> arrays = graph.arrays(graph.op(k));
    return kernel::matrix_product_of(Op(op.program(), graph.op(k), arrays.data()), out);
  }
  return false;
}

// Pattern "quantized_dot": x f32, w integers of 8 or 4 bits, scale f32 for each column. Integers of 4 bits are packed
// two in a byte by "layout", or stored one in a byte if other ops use them too.
kernel::Kernel quantized_product() {
  kernel::Kernel out{COLLET_OP_CALL, quantized, f32, nullptr};
  out.pattern = "quantized_dot";
  out.takes = [](const Op& op) -> kernel::Verdict {
    MatrixProduct p;
    if (!integers.has(op.operand(1).type) || op.operand(0).type != COLLET_TYPE_F32) return "only f32 by s8 or s4";
    if (!product_in(op, 0, &p) || p.batch != 1 || op.result().rank == 0) return "only products of two matrices";
    return p.out_n == 1 && op.result().dims[op.result().rank - 1] == p.n;
  };
  out.prepare = [](kernel::Device&, const Op& op) -> std::any {
    MatrixProduct p;
    product_in(op, 0, &p);
    std::vector<List> lists;
    for (const uint32_t bits : {8u, 4u}) {
      Matrix right = right_of(p);
      right.bits = bits;
      lists.push_back(write_product(p, left_of(p), right, 2, 3));
    }
    return lists;
  };
  out.run = [](kernel::Device& device, const Op& op) {
    submit(device, op, op.state<std::vector<List>>()[op.operand(1).layout ? 1 : 0]);
  };
  out.layout = [](const Op& op, uint32_t index, collet_layout* layout) {
    const Array& array = op.operand(1);
    if (index != 1 || array.type != COLLET_TYPE_S4 || array.rank > 8) return;
    layout->rank = array.rank;
    for (uint32_t d = 0; d < array.rank; ++d) layout->order[d] = static_cast<uint8_t>(d);
    layout->element_bits = 4;
    layout->bytes = (array.elements + 1) / 2;
  };
  return out;
}

// Pattern "attention": computes softmax(q k * scale + mask) v for 32 rows of q at a time, with all intermediate values
// in the scratchpad.
constexpr int64_t kRows = 32, kMostKeys = 128;

kernel::Verdict takes_attention(const Op& op) {
  MatrixProduct scores, sums;
  const std::string mask = op.pattern_attribute("mask");
  if (mask != "none" && mask != "add") return "only masks that are added";
  if (!product_in(op, 0, &scores) || !product_in(op, 1, &sums)) return "products that are none of matrices";
  if (scores.n > kMostKeys) return "more than 128 keys";
  // The weights must be the first factor, in the row-major order in which the scores were written.
  if (sums.k != scores.n || sums.m != scores.m || sums.batch != scores.batch || sums.lhs_k != 1 ||
      sums.lhs_m != scores.n || (sums.batch > 1 && sums.lhs_b != scores.m * scores.n)) {
    return "weights that are not the first factor";
  }
  if (mask == "add" && op.operand(3).elements != static_cast<uint64_t>(scores.batch * scores.m * scores.n)) {
    return "a mask of another shape";
  }
  return true;
}

List write_attention(const Op& op) {
  constexpr uint32_t kA = 0, kB = kRows * kTile, kC = kB + kMostKeys * kTile, kRow = kC + kRows * kMostKeys;
  static_assert(kRow + kRows <= kScratchWords, "all of it in the scratchpad");
  MatrixProduct scores, sums;
  product_in(op, 0, &scores);
  product_in(op, 1, &sums);
  const int64_t keys = scores.n;
  const uint32_t result = op.operand_count();
  List list;
  const auto write_rows = [&](int64_t b, int64_t m, int64_t rows) {
    list.fill(kC, rows * keys, 0);
    for (int64_t k = 0; k < scores.k; k += kTile) {
      const int64_t depth = std::min(kTile, scores.k - k);
      list.load(0, kA, b * scores.lhs_b + m * scores.lhs_m + k * scores.lhs_k, {rows, scores.lhs_m, 0},
                {depth, scores.lhs_k, 0});
      list.load(1, kB, b * scores.rhs_b + k * scores.rhs_k, {depth, scores.rhs_k, 0}, {keys, scores.rhs_n, 0});
      list.compute_rows(Code::kMultiplyAdd, kA, kB, kC, rows, keys, depth);
    }
    list.scale(kC, rows * keys, op.pattern_number("scale", 1));
    if (op.operand_count() > 3) {
      list.load(3, kB, (b * scores.m + m) * keys, {rows, keys, 0}, {keys, 1, 0});
      list.compute(Code::kAdd, kC, kB, kC, rows * keys);
    }
    list.compute_rows(Code::kRowMaximum, kC, 0, kRow, rows, keys);
    list.compute_rows(Code::kRowSubtract, kC, kRow, kC, rows, keys);
    list.compute(Code::kExponential, kC, 0, kC, rows * keys);
    list.compute_rows(Code::kRowSum, kC, 0, kRow, rows, keys);
    list.compute_rows(Code::kRowDivide, kC, kRow, kC, rows, keys);
    for (int64_t n = 0; n < sums.n; n += kTile) {
      const int64_t columns = std::min(kTile, sums.n - n);
      list.load(2, kB, b * sums.rhs_b + n * sums.rhs_n, {keys, sums.rhs_k, 0}, {columns, sums.rhs_n, 0});
      list.fill(kA, rows * columns, 0);
      list.compute_rows(Code::kMultiplyAdd, kC, kB, kA, rows, columns, keys);
      list.store(result, kA, b * sums.out_b + m * sums.out_m + n * sums.out_n, {rows, 0, sums.out_m},
                 {columns, 0, sums.out_n});
    }
  };
  for (int64_t b = 0; b < scores.batch; ++b) {
    for (int64_t m = 0; m < scores.m; m += kRows) write_rows(b, m, std::min(kRows, scores.m - m));
  }
  return list;
}

}  // namespace

bool move_words(kernel::Device& device, const kernel::Move& move, const Array& from, const Array& to) {
  if (move.element_bytes != 4) return false;
  run_move(device, move, from, to);
  return true;
}

std::vector<kernel::Kernel> kernels() {
  std::vector<kernel::Kernel> table = {
      row(COLLET_OP_ADD, f32, f32, write_elementwise<Code::kAdd>),
      row(COLLET_OP_SUBTRACT, f32, f32, write_elementwise<Code::kSubtract>),
      row(COLLET_OP_MULTIPLY, f32, f32, write_elementwise<Code::kMultiply>),
      row(COLLET_OP_DIVIDE, f32, f32, write_elementwise<Code::kDivide>),
      row(COLLET_OP_MAXIMUM, f32, f32, write_elementwise<Code::kMaximum>),
      row(COLLET_OP_EXPONENTIAL, f32, f32, write_elementwise<Code::kExponential>),
      row(COLLET_OP_CONVERT, integers, f32, write_convert),
      row(COLLET_OP_REDUCE, f32, f32, write_reduction),
      row(COLLET_OP_CALL, f32, f32, write_attention),
      product(),
      quantized_product(),
  };
  table[7].takes = takes_reduction;
  table[8].takes = takes_attention;
  table[8].pattern = "attention";
  kernel::add_moves(&table, words, run_move);
  return table;
}

}  // namespace tile
