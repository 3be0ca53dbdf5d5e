// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The launch plan of a program: a tree of steps, each with the memory that it touches. It is plain data: nothing in it is an
/// address, so it can be printed, written to a file, and sent to another process or machine.

#include <collet/codegen/array_type.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace collet::codegen {

/// The number of a function in LaunchPlan::functions.
using FunctionId = uint32_t;
inline constexpr FunctionId kNoFunction = UINT32_MAX;

/// A place in memory: a slot, which is an argument, a result, the workspace or the constants, and an offset in bytes.
struct Place {
  uint32_t slot = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  ///< of the buffer that begins there
  bool operator==(const Place& o) const { return slot == o.slot && offset == o.offset; }
};

/// A loop over the range of a kernel's first loop, which threads may share; then, perhaps, a second kernel.
struct KernelCall {
  FunctionId function = kNoFunction;  ///< a KernelFunction
  int64_t range = 1;                  ///< of the kernel's first loop
  int64_t grain = 1;                  ///< a part of the range is a multiple of this
  double cost_ns = 0;                 ///< estimate of the whole step
  bool parallel = false;              ///< parts of the range may run at the same time
  FunctionId tail = kNoFunction;      ///< a KernelFunction that runs after all of the kernel, whole
  uint32_t tail_place = 0;            ///< the first of its places in the step's
  int64_t tail_range = 1;
  /// For a target with grids: how many blocks of how many threads compute all of the kernel. Its function takes the addresses of its
  /// buffers; `range` and what follows it have no meaning.
  uint32_t blocks = 0;
  uint32_t block_threads = 0;
  uint32_t shared_bytes = 0;     ///< shared memory that each block gets beside what the kernel declares
  std::vector<int64_t> numbers;  ///< parameters behind the addresses
};

/// A matrix product for each batch, computed tile by tile with micro-kernels. Places of the step: a and b, or what their
/// packing kernels read, the result, scratch; then the target and the buffers of the epilogue, where there is one.
///
/// Batches that share b and lie next to each other are one matrix of many rows: their tiles are walked together, so that
/// each block of b is read once for all of them. Distances are in elements.
struct MatmulCall {
  FunctionId micro[2][2] = {{kNoFunction, kNoFunction}, {kNoFunction, kNoFunction}};  ///< [last rows][last columns]
  FunctionId after[2] = {kNoFunction, kNoFunction};  ///< [last columns]: the epilogue as a function of its own
  FunctionId pack_a = kNoFunction;
  FunctionId pack_b = kNoFunction;
  bool epilogue = false;  ///< in the micro-kernels or in `after`
  int64_t element_bytes = 4;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t ldc = 0;
  int64_t c_offset = 0;
  int64_t tile_rows = 1;
  int64_t tiles = 0;  ///< of one matrix, in rows
  int64_t lanes = 1;
  int64_t panel = 1;  ///< columns of a panel
  int64_t panels = 0;
  int64_t last_rows = 0;  ///< rows of a last, smaller tile; 0: there is none
  int64_t last_columns = 0;
  int64_t tail = 0;  ///< lanes of the last vector that count
  int64_t depth_block = 0;
  int64_t run = 0;        ///< elements of a segment of the depth
  int64_t run_block = 0;  ///< segments in a depth block
  std::vector<int64_t> segments;
  int64_t chunks = 1;        ///< into which the tiles of one set of batches are cut
  int64_t column_parts = 1;  ///< into which the panels are cut
  int64_t batches = 1;
  int64_t shared = 1;  ///< batches that use the same b, one after the other
  bool a_packed = false;
  bool b_packed = false;
  bool b_in_panels = false;
  int64_t b_matrix = 0;  ///< elements of a packed b
  int64_t b_starts = 0;  ///< 1: behind each panel of b lies a row of sums that its columns of the result begin with
  bool packs_b = false;  ///< b is packed here, matrix by matrix, and not by a step before
  uint32_t a_buffers = 1;
  uint32_t b_buffers = 1;
  int64_t a_offset = 0;
  int64_t a_row = 0;
  int64_t a_depth = 0;
  int64_t a_tile = 0;
  int64_t a_pack_rows = 1;
  int64_t a_blocks = 1;  ///< of the depth, into which a is packed; 1: all of it at once
  int64_t b_offset = 0;
  int64_t b_depth = 0;
  int threads = 1;  ///< that it is cut for
  double cost_ns = 0;
  std::vector<int64_t> a_at, b_at, c_at;  ///< of each batch: elements, or matrices where packed
  std::vector<int64_t> positions;         ///< of each batch, in each of its loops
  uint64_t batch_rank = 0;

  /// Parts that threads may compute at the same time.
  int64_t jobs() const;
  /// Number of blocks in which the depth is taken.
  int64_t depth_blocks() const;
  /// Scratch bytes of one thread for packed a, and for packed b.
  int64_t a_scratch() const;
  int64_t b_scratch() const;
  uint64_t scratch_bytes() const { return static_cast<uint64_t>(threads * (a_scratch() + b_scratch())); }
};

/// An op that is no loop nest: sort, top-k, fft, cholesky, triangular solve, other factorizations, random bits. Places of the step: operands,
/// results, scratch.
struct RoutineCall {
  uint32_t opcode = 0;
  std::vector<ArrayType> operands;
  std::vector<ArrayType> results;
  /// By opcode. SORT: dimension, by key, descending, flags of the order, elements of a row that are read. TOPK: smallest. FFT: type, lengths. CHOLESKY: lower.
  /// TRIANGULAR_SOLVE: left side, lower, unit diagonal, transpose. RNG_BIT_GENERATOR: algorithm.
  /// RNG_GET_AND_UPDATE_STATE: delta, number of the source. CALL, the other factorizations: which one.
  std::vector<int64_t> numbers;
  FunctionId compare = kNoFunction;  ///< of SORT, unless by key alone: a CompareFunction
};

/// One of the matrices of a LibraryProduct. Distances are in elements.
struct LibraryMatrix {
  uint32_t type = 0;
  int64_t offset = 0;  ///< of its first element from the start of its place
  int64_t batch = 0;   ///< from one batch to the next
  int64_t row = 0;     ///< from one row to the next
  int64_t column = 0;  ///< from one column to the next
  bool operator==(const LibraryMatrix& o) const {
    return type == o.type && offset == o.offset && batch == o.batch && row == o.row && column == o.column;
  }
};

/// For each batch, c[i][j] = the sum over k of a[i][k] * b[k][j]. Places of the step: a, b, c.
struct LibraryProduct {
  LibraryMatrix a;  ///< rows x depth
  LibraryMatrix b;  ///< depth x columns
  LibraryMatrix c;  ///< rows x columns
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  uint32_t sum_type = 0;  ///< the type in which products are added; c is rounded from it once
  bool tf32 = false;      ///< factors of f32 may be rounded to tf32
  bool operator==(const LibraryProduct& o) const {
    return a == o.a && b == o.b && c == o.c && batches == o.batches && rows == o.rows && columns == o.columns &&
           depth == o.depth && sum_type == o.sum_type && tf32 == o.tf32;
  }
};

/// A convolution as the op defines it (a correlation: the window is not reversed), with the same padding on both sides of each dimension and
/// no holes in the input. Places of the step: input, filter, result. Distances are in elements.
struct LibraryConvolution {
  /// A spatial dimension.
  struct Dimension {
    int64_t input = 0;
    int64_t window = 0;
    int64_t output = 0;
    int64_t stride = 1;
    int64_t padding = 0;
    int64_t dilation = 1;  ///< of the window
    bool operator==(const Dimension& o) const {
      return input == o.input && window == o.window && output == o.output && stride == o.stride &&
             padding == o.padding && dilation == o.dilation;
    }
  };
  uint32_t type = 0;      ///< of all arrays
  uint32_t sum_type = 0;  ///< the type in which products are added
  bool tf32 = false;      ///< factors of f32 may be rounded to tf32
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t input_features = 0;
  int64_t output_features = 0;
  std::vector<Dimension> dims;  ///< 1 to 3
  /// Distances of the input and of the result: from one batch to the next, one feature to the next, then along each of `dims`.
  std::vector<int64_t> input_strides;
  std::vector<int64_t> output_strides;
  /// The filter is dense: output features, `dims`, input features of a group. If false: output features, input features, `dims`.
  bool filter_has_features_last = false;
  bool operator==(const LibraryConvolution& o) const {
    return type == o.type && sum_type == o.sum_type && tf32 == o.tf32 && batch == o.batch && groups == o.groups &&
           input_features == o.input_features && output_features == o.output_features && dims == o.dims &&
           input_strides == o.input_strides && output_strides == o.output_strides &&
           filter_has_features_last == o.filter_has_features_last;
  }
};

/// Discrete Fourier transforms of the innermost dimensions, as the op fft defines them but for the scale: inverse transforms are
/// not divided by the number of points. Places of the step: operand, result. The library may overwrite the operand.
struct LibraryFft {
  uint32_t operand_type = 0;  ///< F32, F64, C64 or C128
  uint32_t result_type = 0;
  bool inverse = false;
  std::vector<int64_t> lengths;  ///< of the transform, outermost first, in real or complex points: at most 3
  int64_t batches = 1;
  bool operator==(const LibraryFft& o) const {
    return operand_type == o.operand_type && result_type == o.result_type && inverse == o.inverse &&
           lengths == o.lengths && batches == o.batches;
  }
};

/// What a library of the device computes, see GridDevice::prepare.
using LibraryCall = std::variant<LibraryProduct, LibraryConvolution, LibraryFft>;

/// kLibrary: call a library of the device. kChoice: one of several lists of steps, which compute the same in different ways.
enum class StepKind : uint8_t { kKernel, kMatmul, kRoutine, kCopy, kWhile, kConditional, kLibrary, kChoice };

struct Step;
using StepList = std::vector<Step>;

struct Step {
  StepKind kind = StepKind::kKernel;
  uint32_t first_place = 0;  ///< in LaunchPlan::places
  uint32_t places = 0;
  KernelCall kernel;  ///< kKernel
  /// kMatmul, kRoutine, kLibrary: its number in LaunchPlan::matmuls, routines or libraries. kChoice: its number among all choices.
  uint32_t call = 0;
  uint64_t bytes = 0;        ///< kCopy: from the first place to the second
  uint32_t index_bytes = 0;  ///< kConditional: width of the branch number; 0: a pred, true is branch 0
  /// kWhile: condition, body; kConditional: branches; kChoice: what can be chosen, of which the first calls no library.
  std::vector<StepList> children;
  /// kWhile, for a target with grids: how often the body runs, and then there is no condition, no place, and children[0] is empty;
  /// -1: the condition decides.
  int64_t trips = -1;
  /// kWhile: a LoopFunction that runs all of the loop, which then has no children; kNoFunction: there is none.
  FunctionId loop = kNoFunction;
};

/// A compiled program but for its code.
struct LaunchPlan {
  StepList steps;
  std::vector<Place> places;
  std::vector<std::string> functions;  ///< names, as the code has them
  std::vector<MatmulCall> matmuls;
  std::vector<RoutineCall> routines;
  std::vector<LibraryCall> libraries;
  uint32_t choices = 0;         ///< steps of kind kChoice
  std::vector<char> constants;  ///< to be placed at a multiple of 64 bytes
  uint64_t workspace_bytes = 0;
  uint64_t traffic_bytes = 0;  ///< estimate of what all steps read and write, each loop body once
  uint32_t kernels = 0;
  uint32_t arguments = 0;
  uint32_t results = 0;
  std::vector<uint64_t> argument_bytes;
  std::vector<uint64_t> result_bytes;
};

/// Slots of a plan: arguments, results, workspace, constants.
inline uint32_t result_slot(const LaunchPlan& plan, uint32_t i) {
  return plan.arguments + i;
}
inline uint32_t workspace_slot(const LaunchPlan& plan) {
  return plan.arguments + plan.results;
}
inline uint32_t constant_slot(const LaunchPlan& plan) {
  return plan.arguments + plan.results + 1;
}

}  // namespace collet::codegen
