// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Kernel IR, the form between the graph and machine code: a kernel is a loop nest and a list of expressions in SSA form
/// that are evaluated at each point of the nest. It knows no machine. Every access to memory is an affine map of the loop
/// variables, plus terms that are computed (gathered indices, quotients).

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

using ExprId = int32_t;
inline constexpr ExprId kNoExpr = -1;

/// constant + sum of coefficient * loop variable + sum of coefficient * expression.
struct Index {
  std::vector<int64_t> coefficients;  ///< one per loop; missing ones are zero
  int64_t constant = 0;
  std::vector<std::pair<ExprId, int64_t>> terms;

  int64_t coefficient(size_t loop) const { return loop < coefficients.size() ? coefficients[loop] : 0; }
  bool is_constant() const;
  bool operator==(const Index&) const = default;
  auto operator<=>(const Index&) const = default;
};

/// The variable of a loop.
Index loop_index(size_t loop);
/// a + scale * b.
Index add_scaled(const Index& a, const Index& b, int64_t scale);
/// Writes `index` as by * whole + rest: the parts that are multiples of `by` go to `whole`, the others to `rest`, whose constant is in
/// [0, by). If `rest` is in [0, by) at all points, `whole` is the quotient and `rest` the remainder.
void split_index(const Index& index, int64_t by, Index& whole, Index& rest);

enum class ExprOp : uint8_t {
  kConstant,  ///< `bits`
  kLoad,      ///< buffer[index], zero where `mask` is false
  kIndex,     ///< value of `index`, as s64
  kDivide,    ///< floor(index / a), s64
  kModulo,    ///< index - a * floor(index / a), s64
  kStart,     ///< args[0], an integer of any type, clamped into [0, a]; s64
  kInRange,   ///< 0 <= index < a; pred
  kOp,        ///< an elementwise opcode over args
  kArgument,  ///< argument `a` of a scalar body
  kLookup,    ///< table[index], zero where `mask` is false
  kWhile,     ///< a loop over scalars, not run where `mask` is false: `bodies` are its condition and its body
  kPart,      ///< final value `a` of a kWhile, args[0]
  kReduced,   ///< result `a` of reduction `b`
  kScanned,   ///< result `a` of the scan, at this point
};

struct ScalarBody;

struct Expr {
  ExprOp op = ExprOp::kConstant;
  uint32_t opcode = 0;  ///< of kOp
  uint32_t type = 0;    ///< element type of the result
  std::vector<ExprId> args;
  Index index;
  int64_t a = 0;  ///< also: comparison direction, bits of reduce-precision
  int64_t b = 0;
  uint32_t buffer = 0;    ///< of kLoad
  ExprId mask = kNoExpr;  ///< a pred
  std::array<uint64_t, 2> bits{};
  std::string table;               ///< of kLookup: the elements as they lie in memory
  std::vector<ScalarBody> bodies;  ///< of kWhile: args are what it carries, then what its body reads besides

  bool operator==(const Expr&) const;
  std::weak_ordering operator<=>(const Expr&) const;
};

/// A scalar computation with expressions of its own: body of a reduction, condition or body of a loop.
struct ScalarBody {
  uint32_t arguments = 0;
  std::vector<Expr> exprs;
  std::vector<ExprId> results;
  bool operator==(const ScalarBody&) const = default;
  auto operator<=>(const ScalarBody&) const = default;
};

inline bool Expr::operator==(const Expr&) const = default;
inline std::weak_ordering Expr::operator<=>(const Expr&) const = default;

/// Reduces `inputs` over the inner loops, beginning with `inits`.
struct Reduction {
  uint32_t combine = COLLET_COMBINE_OTHER;
  std::vector<ExprId> inputs;
  std::vector<ExprId> inits;  ///< kNoExpr: the identity of `combine`
  std::vector<uint32_t> types;
  ScalarBody body;             ///< where combine is OTHER: accumulators, then inputs
  ExprId condition = kNoExpr;  ///< a point where it is false is skipped
  bool contract = false;       ///< a product of f64 that is summed need not be rounded
  bool tf32 = false;           ///< f32 factors of a product that is summed may be rounded to tf32, to 11 bits
  bool operator==(const Reduction&) const = default;
  auto operator<=>(const Reduction&) const = default;
};

/// A prefix scan along the one inner loop: a reduction whose running value is a result at each point. A kernel with a scan has
/// no reductions, and stores nothing but the scan's results.
struct Scan {
  Reduction reduction;
  bool reverse = false;  ///< the loop runs from its end to its begin
  /// The running value begins with the first point whose condition is true, without the initial value. Each result combines
  /// the initial value with the running value. This keeps the order of operands when the loop runs in reverse.
  bool fresh = false;
  bool operator==(const Scan&) const = default;
  auto operator<=>(const Scan&) const = default;
};

/// Writes `value` to buffer[index].
struct Store {
  uint32_t buffer = 0;
  ExprId value = kNoExpr;
  Index index;
  ExprId mask = kNoExpr;  ///< a pred; nothing is written where it is false
  bool operator==(const Store&) const = default;
  auto operator<=>(const Store&) const = default;
};

/// Several stores that read and write together: scatter with any body.
struct Update {
  std::vector<uint32_t> buffers;
  std::vector<ExprId> values;
  std::vector<uint32_t> types;
  Index index;  ///< one for all
  ExprId mask = kNoExpr;
  uint32_t combine = COLLET_COMBINE_OTHER;
  ScalarBody body;
  bool operator==(const Update&) const = default;
  auto operator<=>(const Update&) const = default;
};

struct Loop {
  int64_t size = 0;
  bool operator==(const Loop&) const = default;
  auto operator<=>(const Loop&) const = default;
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
  uint32_t buffers = 0;     ///< buffers that the kernel names: 0 .. buffers - 1
  bool sequential = false;  ///< iterations of the outer loops must keep their order
  size_t lane_loop =
      0;  ///< the loop that is vectorised, chosen by choose_lanes; the number of loops where there is none
  int lanes = 1;

  bool operator==(const Kernel&) const = default;
  auto operator<=>(const Kernel&) const = default;
};

/// Loops that each expression depends on, as a bit set.
std::vector<uint64_t> loop_dependencies(const Kernel& kernel);

/// Product of the sizes of the inner loops.
int64_t inner_points(const Kernel& kernel);

}  // namespace collet::codegen
