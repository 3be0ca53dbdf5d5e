// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Kernel IR, the form between the graph and machine code: a kernel is a loop nest and a list of expressions in SSA
/// form that are evaluated at each point of the nest. It does not depend on a machine. Every access to memory is an
/// affine map of the loop variables, plus terms that are computed (gathered indices, quotients). docs/code_generation.md describes it, and
/// kernel_text.h, kernel_verify.h, kernel_evaluate.h, kernel_transform.h and kernel_contraction.h work on it. C++20.

#include <collet/program.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

using ExprId = int32_t;
inline constexpr ExprId kNoExpr = -1;

/// An affine index: constant + sum of coefficient * loop variable + sum of coefficient * expression.
struct Index {
  std::vector<int64_t> coefficients;  ///< one per loop; missing ones are zero
  int64_t constant = 0;
  std::vector<std::pair<ExprId, int64_t>> terms;

  int64_t coefficient(size_t loop) const { return loop < coefficients.size() ? coefficients[loop] : 0; }
  bool is_constant() const;
  bool operator==(const Index&) const = default;
  auto operator<=>(const Index&) const = default;
};

/// Returns the index that is the variable of a loop.
Index loop_index(size_t loop);
/// Returns a + scale * b.
Index add_scaled(const Index& a, const Index& b, int64_t scale);
/// Splits `index` into by * whole + rest: the terms whose coefficients are multiples of `by` go to `whole`, the others
/// to `rest`, whose constant is in [0, by). If `rest` is in [0, by) at all points, `whole` is the quotient and `rest`
/// the remainder.
void split_index(const Index& index, int64_t by, Index& whole, Index& rest);

enum class ExprOp : uint8_t {
  kConstant,  ///< the constant in `bits`
  kLoad,      ///< buffer[index], zero where `mask` is false
  kIndex,     ///< value of `index`, as s64
  kDivide,    ///< floor(index / a), s64
  kModulo,    ///< index - a * floor(index / a), s64
  kStart,     ///< args[0], an integer of any type, clamped to [0, a]; s64
  kInRange,   ///< 0 <= index < a; pred
  kOp,        ///< elementwise op `opcode` of args
  kArgument,  ///< argument `a` of a scalar body
  kLookup,    ///< table[index], zero where `mask` is false
  /// A loop over scalars, which runs no iteration if `mask` is false; `bodies` are its condition and its body.
  kWhile,
  kPart,     ///< final value number `a` of the kWhile that is args[0]
  kReduced,  ///< result number `a` of reduction number `b`
  kScanned,  ///< result number `a` of the scan, at this point
};

struct ScalarBody;

struct Expr {
  ExprOp op = ExprOp::kConstant;
  uint32_t opcode = 0;  ///< for kOp
  uint32_t type = 0;    ///< element type of the result
  std::vector<ExprId> args;
  Index index;
  int64_t a = 0;  ///< also the comparison direction, or the exponent bits of reduce-precision
  int64_t b = 0;
  uint32_t buffer = 0;    ///< for kLoad
  ExprId mask = kNoExpr;  ///< a pred; kNoExpr if the access is unconditional
  std::array<uint64_t, 2> bits{};
  std::string table;  ///< for kLookup: the elements as bytes in memory
  /// For kWhile: args are the initial values of its variables, then the other values that its bodies read.
  std::vector<ScalarBody> bodies;

  bool operator==(const Expr&) const;
  std::weak_ordering operator<=>(const Expr&) const;
};

/// A scalar computation with expressions of its own: the body of a reduction, or the condition or body of a loop.
struct ScalarBody {
  uint32_t arguments = 0;
  std::vector<Expr> exprs;
  std::vector<ExprId> results;
  bool operator==(const ScalarBody&) const = default;
  auto operator<=>(const ScalarBody&) const = default;
};

inline bool Expr::operator==(const Expr&) const = default;
inline std::weak_ordering Expr::operator<=>(const Expr&) const = default;

/// Returns the expression of an elementwise op.
Expr op_expr(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a = 0, int64_t b = 0);

/// Reduces `inputs` over the inner loops, beginning with `inits`.
struct Reduction {
  uint32_t combine = COLLET_COMBINE_OTHER;
  std::vector<ExprId> inputs;
  std::vector<ExprId> inits;  ///< initial values; kNoExpr stands for the identity of `combine`
  std::vector<uint32_t> types;
  ScalarBody body;             ///< used if combine is OTHER; its arguments are the accumulators, then the inputs
  ExprId condition = kNoExpr;  ///< points where this pred is false are skipped
  bool contract = false;       ///< true if a product of f64 that is summed need not be rounded before the addition
  /// True if f32 factors of a product that is summed may be rounded to tf32, which has 11 significant bits.
  bool tf32 = false;
  bool operator==(const Reduction&) const = default;
  auto operator<=>(const Reduction&) const = default;
};

/// A prefix scan along the one inner loop: a reduction whose running value is a result at each point. A kernel with a scan has
/// no reductions, and stores nothing but the scan's results.
struct Scan {
  Reduction reduction;
  bool reverse = false;  ///< the loop runs from its end to its begin
  /// If true, the running value starts at the first point whose condition is true, without the initial value, and each
  /// result combines the initial value with the running value. This keeps the order of operands when the loop runs in
  /// reverse.
  bool fresh = false;
  bool operator==(const Scan&) const = default;
  auto operator<=>(const Scan&) const = default;
};

/// Writes `value` to buffer[index].
struct Store {
  uint32_t buffer = 0;
  ExprId value = kNoExpr;
  Index index;
  ExprId mask = kNoExpr;         ///< a pred; nothing is written if it is false
  bool bypasses_caches = false;  ///< whole vectors go past the caches
  bool operator==(const Store&) const = default;
  auto operator<=>(const Store&) const = default;
};

/// Several stores that first read and then write their elements together, for a scatter with any body.
struct Update {
  std::vector<uint32_t> buffers;
  std::vector<ExprId> values;
  std::vector<uint32_t> types;
  Index index;  ///< one index for all buffers
  ExprId mask = kNoExpr;
  uint32_t combine = COLLET_COMBINE_OTHER;
  ScalarBody body;
  bool operator==(const Update&) const = default;
  auto operator<=>(const Update&) const = default;
};

/// Most iterations of a loop that are computed at a time, interleaved or as the rows of a square.
inline constexpr int kMostAtATime = 64;

/// How the iterations of a loop run.
enum class LoopKind : uint8_t {
  kSerial,      ///< one after the other; in lanes, if it is the kernel's lane_loop
  kUnroll,      ///< an inner loop of which each iteration is emitted by itself
  kInterleave,  ///< `factor` iterations at a time, so that they share loads and fill each other's latency
  /// As many iterations at a time as there are lanes: loads that are contiguous along this loop and not along
  /// the lanes are read by rows of such a square, and transposed in registers.
  kTranspose,
};

struct Loop {
  int64_t size = 0;
  LoopKind kind = LoopKind::kSerial;
  int factor = 1;  ///< of kInterleave
  /// If not 0, the loop in lanes is run in strips of so many iterations. All iterations of the loop inside run for one
  /// strip before the next, and the accumulators of a strip are in memory.
  int64_t strip = 0;
  bool operator==(const Loop&) const = default;
  auto operator<=>(const Loop&) const = default;
};

/// How one pass over the inner loops runs, see KernelPasses.
struct PassSchedule {
  int lanes = 1;     ///< of the vectorised loop; they may fill several vectors, to hide the latency of a reduction
  int together = 1;  ///< vectors that are computed at a time, as one wider vector, to hide the latency of functions
  bool operator==(const PassSchedule&) const = default;
  auto operator<=>(const PassSchedule&) const = default;
};

/// One compiled function. Loops [0, outer) run over results. The others, the inner loops, run over the elements of reductions
/// or of a row-wise fusion, once per pass.
struct Kernel {
  std::vector<Loop> loops;
  size_t outer = 0;
  std::vector<Expr> exprs;
  std::vector<Reduction> reductions;
  std::optional<Scan> scan;
  std::vector<Store> stores;
  std::vector<Update> updates;
  uint32_t buffers = 0;     ///< number of buffers, which are named 0 .. buffers - 1
  bool sequential = false;  ///< iterations of the outer loops must keep their order
  bool in_parts = false;    ///< the caller runs loop 0 in parts of any size, so it is not in lanes
  size_t lane_loop = 0;     ///< the loop that is vectorised, chosen by choose_lanes; the number of loops if none is
  int lanes = 1;
  std::vector<PassSchedule> passes;  ///< by pass; empty if no pass differs from the kernel's lanes
  /// Expressions, in ascending order, that the first pass that computes them stores for the whole row, and from which
  /// later passes load them.
  std::vector<ExprId> kept;
  bool scalable = false;  ///< vectors are as long as the processor's, see Target::scalable_bits
  /// The lanes may hold the elements of a row in any order, the same for all loads: all lanes are reduced.
  bool unordered = false;

  bool operator==(const Kernel&) const = default;
  auto operator<=>(const Kernel&) const = default;
};

/// Removes the schedule of a kernel but its lanes: the kinds of the loops, the schedules of the passes, the kept values, and
/// whether vectors are scalable, values unordered and stores past the caches.
void clear_schedule(Kernel& kernel);

/// Returns for each expression the set of loops that it depends on, as bits.
std::vector<uint64_t> loop_dependencies(const Kernel& kernel);

/// True if a kernel computes and stores elements at each point of its loops, and may do so in any order: it has no inner
/// loops, reductions, scan or updates.
bool is_plain(const Kernel& kernel);

/// True for a kernel without lanes, scan or updates that has so few points that each may be emitted by itself.
bool is_tiny(const Kernel& kernel);

/// True if iterations of a loop that follow each other update elements that follow each other, so that lanes are updated together.
/// `dependencies` is the result of loop_dependencies.
bool updates_neighbours(const Update& update, size_t loop, const std::vector<uint64_t>& dependencies);

/// True if what a kernel computes in lanes of its last loop may be computed before these lanes are updated, one after the other: the
/// kernel only updates, in one way, and reads nothing of what it updates.
bool may_update_in_order(const Kernel& kernel);

/// Returns the loop whose variable `index` is; nullopt for any other index.
std::optional<size_t> loop_of(const Index& index);

/// Returns the type with the digits of f64 in which products of many numbers of `type` are computed; 0 if `combine` is no product, or
/// the type has these digits itself or is none of floats.
uint32_t product_type(uint32_t combine, uint32_t type);

/// True for a product of floats. Processors multiply the factors of a row in their order: a product for each lane would be infinite or 0
/// where every other factor is large and the others are small.
bool is_float_product(const Reduction& reduction);

/// True if windows of `count` elements, `by` elements apart, have elements in common when one begins `step` elements after the other.
bool windows_share(int64_t step, int64_t by, int64_t count);

/// Returns the product of the sizes of the inner loops.
int64_t inner_points(const Kernel& kernel);

}  // namespace collet::codegen
