// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The launch plan of a program: a tree of steps, each with the memory that it touches. It is plain data: nothing in it is an
/// address, so it can be printed, written to a file, and sent to another process or machine.

#include <collet/codegen/array_type.h>

#include <cstddef>
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
  uint64_t bytes = 0;  ///< size of the buffer that begins at this place
  bool operator==(const Place& o) const { return slot == o.slot && offset == o.offset; }
};

/// An array of which a kernel on a grid copies boxes to shared memory: see GridLimits::warpgroups. In shared memory the
/// rows of a box follow each other, each with 128 bytes; the eight pieces of 16 bytes in row r are in the order of
/// their numbers xor r modulo 8.
struct TensorMap {
  uint32_t place = 0;  ///< the step's place that holds the array
  uint32_t element_type = 0;
  bool rounds_to_tf32 = false;  ///< whether copied elements, f32, are rounded to tf32
  int64_t offset = 0;           ///< bytes from the place to the first element
  /// Elements in each of at most five dimensions, the contiguous one first. What a box has beyond them is 0.
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  ///< bytes between neighbours in each dimension but the first: multiples of 16
  std::vector<int64_t> box;      ///< elements of a box in each dimension, at most 256; 128 bytes in the first
  bool operator==(const TensorMap& o) const {
    return place == o.place && element_type == o.element_type && rounds_to_tf32 == o.rounds_to_tf32 &&
           offset == o.offset && sizes == o.sizes && strides == o.strides && box == o.box;
  }
};

/// A kernel whose first loop is cut into parts that threads may share. A second kernel, the tail, may follow.
struct KernelCall {
  FunctionId function = kNoFunction;  ///< a KernelFunction
  int64_t range = 1;                  ///< trip count of the kernel's first loop
  int64_t grain = 1;                  ///< parts of the range are multiples of this
  double cost_ns = 0;                 ///< estimated time of the whole step
  bool parallel = false;              ///< true if parts of the range may run at the same time
  FunctionId tail = kNoFunction;      ///< a KernelFunction that runs once after all parts of the first
  uint32_t tail_place = 0;            ///< index of the tail's first place among the places of the step
  int64_t tail_range = 1;
  /// For a target with grids: the number of blocks and of threads per block that compute the kernel. Its function takes
  /// the addresses of its buffers; `range` and the fields after it are not used.
  uint32_t blocks = 0;
  uint32_t block_threads = 0;
  uint32_t shared_bytes = 0;     ///< bytes of shared memory for each block, in addition to what the kernel declares
  std::vector<int64_t> numbers;  ///< integer parameters that follow the addresses
  std::vector<TensorMap> maps;   ///< arrays whose descriptors are the last parameters
};

/// An op that is computed by a library routine and not by a loop nest: sort, top-k, fft, cholesky, triangular solve,
/// other factorizations, random bits. The step's places are its operands, results and scratch memory.
struct RoutineCall {
  uint32_t opcode = 0;
  std::vector<ArrayType> operands;
  std::vector<ArrayType> results;
  /// Parameters of the op, by opcode.
  /// SORT: dimension, 1 to sort by the key alone, 1 for descending, flags of the order, number of elements of a row
  /// that are read later.
  /// TOPK: 1 for the smallest elements.
  /// FFT: type, lengths.
  /// CHOLESKY: 1 for the lower triangle.
  /// TRIANGULAR_SOLVE: left side, lower, unit diagonal, transpose.
  /// RNG_BIT_GENERATOR: algorithm.
  /// RNG_GET_AND_UPDATE_STATE: delta, number of the source.
  /// CALL, for other factorizations: the Factorization.
  std::vector<int64_t> numbers;
  FunctionId compare = kNoFunction;  ///< for SORT with a general comparator: its CompareFunction
};

/// A matrix operand or result of a LibraryProduct. Distances are in elements.
struct LibraryMatrix {
  uint32_t type = 0;
  int64_t offset = 0;  ///< offset of the first element from the start of its place
  int64_t batch = 0;   ///< distance from one batch to the next
  int64_t row = 0;     ///< distance from one row to the next
  int64_t column = 0;  ///< distance from one column to the next
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

/// A convolution as the op defines it (a correlation: the window is not reversed), with the same padding on both sides
/// of each dimension and without dilation of the input; or one of its two gradients. Distances are in elements.
struct LibraryConvolution {
  /// What is computed from what. The other fields always describe the convolution itself, with its input, filter and
  /// output.
  enum class Direction : uint8_t {
    kForward,        ///< the step's places: input, filter; output
    kInputGradient,  ///< the output's gradient, filter; the input's gradient
    kFilterGradient  ///< input, the output's gradient; the filter's gradient
  };
  /// The sizes of one spatial dimension.
  struct Dimension {
    int64_t input = 0;
    int64_t window = 0;
    int64_t output = 0;
    int64_t stride = 1;
    int64_t padding = 0;
    int64_t dilation = 1;  ///< dilation of the window
    bool operator==(const Dimension& o) const {
      return input == o.input && window == o.window && output == o.output && stride == o.stride &&
             padding == o.padding && dilation == o.dilation;
    }
  };
  Direction direction = Direction::kForward;
  uint32_t type = 0;      ///< type of the elements of all arrays
  uint32_t sum_type = 0;  ///< the type in which products are added
  bool tf32 = false;      ///< factors of f32 may be rounded to tf32
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t input_features = 0;
  int64_t output_features = 0;
  std::vector<Dimension> dims;  ///< 1 to 3 spatial dimensions
  /// Distances in the input and in the output from one batch to the next, from one feature to the next, then along each
  /// of `dims`.
  std::vector<int64_t> input_strides;
  std::vector<int64_t> output_strides;
  /// The order of dimensions of the dense filter, outermost first. True: output features, `dims`, input features of a
  /// group. False: output features, input features of a group, `dims`.
  bool filter_has_features_last = false;
  bool operator==(const LibraryConvolution& o) const {
    return direction == o.direction && type == o.type && sum_type == o.sum_type && tf32 == o.tf32 && batch == o.batch &&
           groups == o.groups && input_features == o.input_features && output_features == o.output_features &&
           dims == o.dims && input_strides == o.input_strides && output_strides == o.output_strides &&
           filter_has_features_last == o.filter_has_features_last;
  }
};

/// Discrete Fourier transforms of the innermost dimensions. They differ from the op fft in that inverse transforms are
/// not divided by the number of points. The step's places are operand and result. The library may overwrite the
/// operand.
struct LibraryFft {
  uint32_t operand_type = 0;  ///< F32, F64, C64 or C128
  uint32_t result_type = 0;
  bool inverse = false;
  std::vector<int64_t> lengths;  ///< lengths of the transformed dimensions in points, outermost first: at most 3
  int64_t batches = 1;
  bool operator==(const LibraryFft& o) const {
    return operand_type == o.operand_type && result_type == o.result_type && inverse == o.inverse &&
           lengths == o.lengths && batches == o.batches;
  }
};

/// Factorizations of the matrices of a batch, or triangular systems, as LAPACK defines them. All matrices are dense and
/// column-major, one after the other; so are the vectors. In the lists of the step's places, `info` is an s32 for each
/// matrix: 0 if it was factorized; other results of the matrix are then arbitrary.
struct LibraryFactorization {
  enum class Kind : uint8_t {
    /// potrf. a: rows = columns; its triangle `lower` is read and replaced by the factor, the other one is arbitrary. info.
    kCholesky,
    /// trsm with factor 1. a: the triangular matrix, which is square; b: rows x columns, replaced by the solution.
    kTriangularSolve,
    /// getrf. a: replaced by both factors; pivots: min(rows, columns) s32, from 1 on; the order of the rows of a that the
    /// pivots mean: `rows` s32, from 0 on. An exactly singular matrix has factors as well.
    kLu,
    kQr,          ///< geqrf. a: replaced by r and the reflectors; their min(rows, columns) factors.
    kReflectors,  ///< orgqr or ungqr. a: `factors` reflectors, replaced by rows x columns of their product; factors.
    /// syevd or heevd. a: rows = columns; its triangle `lower` is read, and all of it replaced by the vectors; the
    /// values, in ascending order; info.
    kEigh,
    /// gesvd with rows >= columns. a: overwritten; the values, in descending order; with `vectors`, then u: rows x rows
    /// if `full`, else rows x columns; v, not its adjoint: columns x columns; info.
    kSvd
  };
  Kind kind = Kind::kCholesky;
  uint32_t type = 0;  ///< type of matrices: F32, F64, C64 or C128. Singular and eigenvalues are real.
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t factors = 0;         ///< for kReflectors: their number, at most `columns`, which is at most `rows`
  bool lower = false;          ///< for kCholesky, kTriangularSolve and kEigh
  bool left = false;           ///< for kTriangularSolve: a x = b rather than x a = b
  bool unit_diagonal = false;  ///< for kTriangularSolve
  bool transposed = false;     ///< for kTriangularSolve: the transpose of a is meant
  bool conjugated = false;     ///< for kTriangularSolve, if `transposed`: the adjoint of a is meant
  bool vectors = false;        ///< for kSvd
  bool full = false;           ///< for kSvd
  bool operator==(const LibraryFactorization& o) const {
    return kind == o.kind && type == o.type && batches == o.batches && rows == o.rows && columns == o.columns &&
           factors == o.factors && lower == o.lower && left == o.left && unit_diagonal == o.unit_diagonal &&
           transposed == o.transposed && conjugated == o.conjugated && vectors == o.vectors && full == o.full;
  }
};

/// Returns the name of a factorization for records and plans, such as "cholesky".
inline const char* name_of(LibraryFactorization::Kind kind) {
  switch (kind) {
    case LibraryFactorization::Kind::kCholesky:
      return "cholesky";
    case LibraryFactorization::Kind::kTriangularSolve:
      return "triangular-solve";
    case LibraryFactorization::Kind::kLu:
      return "lu";
    case LibraryFactorization::Kind::kQr:
      return "qr";
    case LibraryFactorization::Kind::kReflectors:
      return "product of reflectors";
    case LibraryFactorization::Kind::kEigh:
      return "eigh";
    case LibraryFactorization::Kind::kSvd:
      return "svd";
  }
  return "factorization";
}

/// A computation that a library of the device may do, see GridDevice::prepare.
using LibraryCall = std::variant<LibraryProduct, LibraryConvolution, LibraryFft, LibraryFactorization>;

/// A few words that the host writes when it comes to the step, because it knows them and the device does not. The
/// step's place is the result.
struct HostValue {
  enum class Kind : uint8_t {
    kReplica,     ///< u32: number of the replica that runs the program
    kPartition,   ///< u32: number of its partition
    kRandomState  ///< two words of 64 bits: the state of a source of random numbers, which each run advances
  };
  Kind kind = Kind::kReplica;
  uint32_t partitions = 1;  ///< number of partitions of the program
  uint64_t source = 0;      ///< for kRandomState: number of the source, the upper word of its first state
  uint64_t delta = 0;       ///< for kRandomState: by how much a run advances the state
};

/// The lower word of the first state of every source of random numbers.
inline constexpr uint64_t kFirstRandomState = 0x7012395;

/// An exchange between the members of groups of participants, which all run the same plan. Each member has a source
/// and a target for every part; both are dense arrays. Where an array consists of blocks, there is one for each member,
/// in the order of the group.
struct CollectiveCall {
  enum class Kind : uint8_t {
    kAllGather,       ///< block i of each target is the source of member i
    kAllToAll,        ///< block i of the target of member j is block j of the source of member i
    kAllToAllArrays,  ///< the target of part i of member j is the source of part j of member i
    kPermute,         ///< targets receive the sources of other members, see `pairs`
    kBroadcast,       ///< each target receives the source of the first member
    /// Each target is the combination of all sources. Only for devices that have GridLibraries::collectives.
    kAllReduce,
    /// The target of member i is the combination of block i of all sources. Only for those devices, too.
    kReduceScatter
  };
  /// One array of each member.
  struct Part {
    uint32_t type = 0;            ///< element type
    int64_t block = 0;            ///< elements of a block; of a whole array if it does not consist of blocks
    int64_t source_elements = 0;  ///< elements of the source
    int64_t target_elements = 0;  ///< elements of the target
    uint32_t combine = 0;         ///< for kAllReduce and kReduceScatter: COLLET_COMBINE_ADD and so on
    /// Returns the first element of block number `i` in an array of `elements` elements. The last blocks overlap if
    /// the blocks do not divide the array: then members write equal data to the common elements.
    int64_t first(size_t i, int64_t elements) const {
      const int64_t begin = static_cast<int64_t>(i) * block;
      return begin < elements - block ? begin : elements - block;
    }
  };
  Kind kind = Kind::kAllGather;
  std::vector<std::vector<uint32_t>> groups;  ///< participants; each one is in one group
  std::vector<uint32_t> group_of;             ///< by participant: its group
  /// For kBroadcast, by participant: whether the op names it. Targets of others become zeros.
  std::vector<char> listed;
  /// For kPermute: source and target alternating, as positions in the group. Targets that are not named become zeros.
  std::vector<int64_t> pairs;
  std::vector<Part> parts;  ///< the step's places are the source and the target of each part
};

/// Returns the name of an exchange for records and messages, such as "all-gather".
inline const char* name_of(CollectiveCall::Kind kind) {
  switch (kind) {
    case CollectiveCall::Kind::kAllGather:
      return "all-gather";
    case CollectiveCall::Kind::kAllToAll:
    case CollectiveCall::Kind::kAllToAllArrays:
      return "all-to-all";
    case CollectiveCall::Kind::kPermute:
      return "collective-permute";
    case CollectiveCall::Kind::kBroadcast:
      return "collective-broadcast";
    case CollectiveCall::Kind::kAllReduce:
      return "all-reduce";
    case CollectiveCall::Kind::kReduceScatter:
      return "reduce-scatter";
  }
  return "collective";
}

/// The kinds of steps. kLibrary calls a library of the device. kChoice has several lists of steps that compute the same
/// in different ways, one of which runs.
enum class StepKind : uint8_t {
  kKernel,
  kRoutine,
  kCopy,
  kWhile,
  kConditional,
  kLibrary,
  kChoice,
  kHostValue,
  kCollective,
  /// Runs its steps, kernels and products, for one block of rows after the other, so that what they write for each
  /// other, or beside each other, stays in the cache. Threads share the blocks.
  kBlocks
};

struct Step;
using StepList = std::vector<Step>;

struct Step {
  StepKind kind = StepKind::kKernel;
  uint32_t first_place = 0;  ///< index in LaunchPlan::places
  uint32_t places = 0;
  /// kKernel. For kBlocks: `range` is the number of blocks, `cost_ns` and `parallel` are used as well. A kernel in a
  /// kBlocks is called for one iteration of its first loop for each block, and a product for one of its batches.
  KernelCall kernel;
  /// For kRoutine, kLibrary, kHostValue and kCollective: index in LaunchPlan::routines, libraries,
  /// host_values or collectives. For kChoice: number of the choice among all choices.
  uint32_t call = 0;
  /// For kCopy: number of bytes copied from the first place to the second. For kHostValue: number of bytes written.
  uint64_t bytes = 0;
  /// For kConditional: bytes of the branch index; 0 if it is a pred, where true selects branch 0.
  uint32_t index_bytes = 0;
  /// For kWhile: the condition, then the body. For kConditional: the branches. For kChoice: the alternatives, of which
  /// the first calls no library. For kBlocks: the steps.
  std::vector<StepList> children;
  /// For a step of a kBlocks: for each of its places, 0, or the bytes that it has for each thread. A thread that runs
  /// block i of rows uses the bytes of its own as if they were the part of a whole array that belongs to block i.
  std::vector<uint64_t> block_bytes;
  /// For kWhile on a target with grids: the trip count; then there is no condition, no place, and children[0] is empty.
  /// -1 if the condition decides.
  int64_t trips = -1;
  /// For kWhile: a LoopFunction that runs the whole loop, which then has no children; kNoFunction if there is none.
  FunctionId loop = kNoFunction;
};

/// Returns the number of the branch that a kConditional takes, of `branches`. `value` is its index or, if index_bytes is 0, its pred: true
/// takes branch 0. An index that is out of range takes the last branch, as XLA defines.
inline size_t branch_of(size_t branches, uint32_t index_bytes, int64_t value) {
  const size_t last = branches - 1;
  if (index_bytes == 0) return value != 0 ? 0 : last;
  return value < 0 || static_cast<size_t>(value) > last ? last : static_cast<size_t>(value);
}

/// A compiled program without its machine code.
struct LaunchPlan {
  StepList steps;
  std::vector<Place> places;
  std::vector<std::string> functions;  ///< names of the functions in the object code
  std::vector<RoutineCall> routines;
  std::vector<LibraryCall> libraries;
  std::vector<HostValue> host_values;       ///< on targets with grids
  std::vector<CollectiveCall> collectives;  ///< on targets with grids
  uint32_t choices = 0;                     ///< number of steps of kind kChoice
  std::vector<char> constants;              ///< to be placed at a multiple of 64 bytes
  uint64_t workspace_bytes = 0;
  uint64_t traffic_bytes = 0;  ///< estimated bytes that all steps read and write; each loop body counts once
  uint32_t kernels = 0;
  uint32_t arguments = 0;
  uint32_t results = 0;
  std::vector<uint64_t> argument_bytes;
  std::vector<uint64_t> result_bytes;
};

/// These functions return the numbers of a plan's slots: arguments, results, workspace, constants.
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
