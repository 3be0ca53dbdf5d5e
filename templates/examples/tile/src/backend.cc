// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>

#include "machine.h"

namespace tile {

namespace kernel = collet::kernel;
using kernel::Array;
using kernel::Loop;
using kernel::Op;

namespace {

constexpr kernel::TypeSet f32{COLLET_TYPE_F32};
constexpr kernel::TypeSet words{COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_U32};

// The machine behind the five functions that the SDK asks for. A piece of memory is named by its word address.
class Device final : public kernel::Device {
 public:
  kernel::Memory allocate(uint64_t bytes, uint64_t alignment) override {
    const uint64_t address = machine.allocate((bytes + 3) / 4, alignment / 4);
    if (address == 0) throw kernel::Error(COLLET_RESOURCE_EXHAUSTED, "the machine's 256 MiB are full");
    return address;
  }
  void free(kernel::Memory memory) noexcept override { machine.free(memory); }
  void write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    machine.write(to * 4 + offset, from, bytes);
  }
  void read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    machine.read(from * 4 + offset, to, bytes);
  }
  void copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) override {
    machine.copy(to * 4 + to_offset, from * 4 + from_offset, bytes);
  }
  void finish() override { machine.finish(); }

  Machine machine;
};

Machine& machine_of(kernel::Device& device) {
  return static_cast<Device&>(device).machine;
}
uint64_t address_of(const Array& array) {
  return array.memory + array.offset / 4;
}

Instruction transfer(Code code, uint32_t scratch, uint64_t memory, Loop rows, Loop columns, bool from) {
  Instruction in;
  in.code = code;
  in.a = scratch;
  in.memory = memory;
  in.rows = static_cast<uint32_t>(rows.extent);
  in.columns = static_cast<uint32_t>(columns.extent);
  in.row_step = from ? rows.from : rows.to;
  in.column_step = from ? columns.from : columns.to;
  return in;
}

Instruction arithmetic(Code code, uint32_t a, uint32_t b, uint32_t c, uint32_t n) {
  Instruction in;
  in.code = code;
  in.a = a;
  in.b = b;
  in.c = c;
  in.n = n;
  return in;
}

// Cuts loops into pieces of at most `room` words: visit(from, to, rows, columns) for each, with offsets in words.
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

// Element-wise: bring in a piece of each operand, compute, bring out.
kernel::Kernel elementwise(uint32_t opcode, Code code) {
  return {opcode, f32, f32, [code](kernel::Device& device, const Op& op) {
            constexpr uint32_t kPiece = kScratchWords / 4;
            Commands commands;
            const auto all = static_cast<int64_t>(op.result().elements);
            for_each_piece({{all, 1, 1}}, kPiece, [&](int64_t from, int64_t to, Loop rows, Loop columns) {
              for (uint32_t i = 0; i < op.operand_count(); ++i) {
                const uint64_t memory = address_of(op.operand(i)) + static_cast<uint64_t>(from);
                commands.push_back(transfer(Code::kLoad, i * kPiece, memory, rows, columns, true));
              }
              commands.push_back(arithmetic(code, 0, kPiece, 2 * kPiece, static_cast<uint32_t>(columns.extent)));
              const uint64_t memory = address_of(op.result()) + static_cast<uint64_t>(to);
              commands.push_back(transfer(Code::kStore, 2 * kPiece, memory, rows, columns, false));
            });
            machine_of(device).submit(std::move(commands));
          }};
}

// All that only rearranges: in with the reader's strides, out with the writer's.
void run_move(kernel::Device& device, const kernel::Move& move, const Array& from, const Array& to) {
  Commands commands;
  const auto source = static_cast<int64_t>(address_of(from)) + move.from_base;
  const auto target = static_cast<int64_t>(address_of(to)) + move.to_base;
  for_each_piece(move.loops, kScratchWords, [&](int64_t from_offset, int64_t to_offset, Loop rows, Loop columns) {
    commands.push_back(transfer(Code::kLoad, 0, static_cast<uint64_t>(source + from_offset), rows, columns, true));
    commands.push_back(transfer(Code::kStore, 0, static_cast<uint64_t>(target + to_offset), rows, columns, false));
  });
  machine_of(device).submit(std::move(commands));
}

bool takes_reduction(const Op& op) {
  return kernel::is_simple_reduction(op) &&
         (op.combine() == COLLET_COMBINE_ADD || op.combine() == COLLET_COMBINE_MAXIMUM ||
          op.combine() == COLLET_COMBINE_MULTIPLY);
}

// Every reduced index adds one piece to the piece of results in the scratchpad.
void run_reduction(kernel::Device& device, const Op& op) {
  constexpr uint32_t kPiece = kScratchWords / 4;
  const kernel::Reduction reduction = kernel::reduction_of(op);
  const Code code = reduction.combine == COLLET_COMBINE_ADD       ? Code::kAdd
                    : reduction.combine == COLLET_COMBINE_MAXIMUM ? Code::kMaximum
                                                                  : Code::kMultiply;
  Commands commands;
  for_each_piece(reduction.kept, kPiece, [&](int64_t from, int64_t to, Loop rows, Loop columns) {
    const auto count = static_cast<uint32_t>(rows.extent * columns.extent);
    commands.push_back(
        transfer(Code::kLoad, 0, address_of(op.operand(1)), {rows.extent, 0, 0}, {columns.extent, 0, 0}, true));
    if (op.operand(0).elements != 0) {
      for_each_piece(reduction.reduced, 1, [&](int64_t offset, int64_t, Loop, Loop) {
        const auto memory = static_cast<uint64_t>(static_cast<int64_t>(address_of(op.operand(0))) + from + offset);
        commands.push_back(transfer(Code::kLoad, kPiece, memory, rows, columns, true));
        commands.push_back(arithmetic(code, 0, kPiece, 0, count));
      });
    }
    const uint64_t memory = address_of(op.result()) + static_cast<uint64_t>(to);
    commands.push_back(transfer(Code::kStore, 0, memory, rows, columns, false));
  });
  machine_of(device).submit(std::move(commands));
}

// Tiles of at most 64 x 64 results, 64 deep.
void run_product(kernel::Device& device, const Op& op) {
  constexpr int64_t kTile = 64;
  constexpr uint32_t kA = 0, kB = kTile * kTile, kC = 2 * kTile * kTile;
  kernel::MatrixProduct p;
  kernel::matrix_product_of(op, &p);
  const auto lhs = static_cast<int64_t>(address_of(op.operand(0))),
             rhs = static_cast<int64_t>(address_of(op.operand(1)));
  const auto out = static_cast<int64_t>(address_of(op.result()));
  Commands commands;
  const auto tile = [&](int64_t b, int64_t m, int64_t n) {
    const int64_t rows = std::min(kTile, p.m - m), columns = std::min(kTile, p.n - n);
    Instruction clear = arithmetic(Code::kFill, kC, 0, 0, static_cast<uint32_t>(rows * columns));
    commands.push_back(clear);
    for (int64_t k = 0; k < p.k; k += kTile) {
      const int64_t depth = std::min(kTile, p.k - k);
      commands.push_back(transfer(Code::kLoad, kA, static_cast<uint64_t>(lhs + b * p.lhs_b + m * p.lhs_m + k * p.lhs_k),
                                  {rows, p.lhs_m, 0}, {depth, p.lhs_k, 0}, true));
      commands.push_back(transfer(Code::kLoad, kB, static_cast<uint64_t>(rhs + b * p.rhs_b + k * p.rhs_k + n * p.rhs_n),
                                  {depth, p.rhs_k, 0}, {columns, p.rhs_n, 0}, true));
      Instruction in = arithmetic(Code::kMultiplyAdd, kA, kB, kC, static_cast<uint32_t>(depth));
      in.rows = static_cast<uint32_t>(rows);
      in.columns = static_cast<uint32_t>(columns);
      commands.push_back(in);
    }
    commands.push_back(transfer(Code::kStore, kC, static_cast<uint64_t>(out + b * p.out_b + m * p.out_m + n * p.out_n),
                                {rows, 0, p.out_m}, {columns, 0, p.out_n}, false));
  };
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t m = 0; m < p.m; m += kTile) {
      for (int64_t n = 0; n < p.n; n += kTile) tile(b, m, n);
    }
  }
  machine_of(device).submit(std::move(commands));
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "tile";
  backend.version = "0.1.0";
  backend.device_kind = "Tile, a simulated machine";
  backend.fingerprint = "tile-0";
  backend.memory_bytes = kMemoryWords * 4;
  backend.traits = COLLET_TRAIT_SERIAL;  // one driver, one scratchpad: the kernels of two programs must not mix
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_MOVE},
                   {COLLET_TYPE_U32, COLLET_MAY_STORE | COLLET_MAY_MOVE}};
  backend.kernels = {
      elementwise(COLLET_OP_ADD, Code::kAdd),
      elementwise(COLLET_OP_SUBTRACT, Code::kSubtract),
      elementwise(COLLET_OP_MULTIPLY, Code::kMultiply),
      elementwise(COLLET_OP_DIVIDE, Code::kDivide),
      elementwise(COLLET_OP_MAXIMUM, Code::kMaximum),
      elementwise(COLLET_OP_EXPONENTIAL, Code::kExponential),
      {COLLET_OP_DOT, f32, f32, run_product, kernel::is_plain_product},
      {COLLET_OP_REDUCE, f32, f32, run_reduction, takes_reduction},
  };
  kernel::add_moves(&backend.kernels, words, run_move);
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  return backend;
}

}  // namespace tile

COLLET_KERNEL_BACKEND(tile::describe)
