// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/llvm/ir.h"
#include "sdk/codegen/llvm/kernel/emit_memory.h"

namespace collet::codegen {

/// While an object of this class lives, LLVM may contract multiplications and additions into fused multiply-adds, if `allowed`.
class Contraction {
 public:
  Contraction(Ir& ir, bool allowed) : guard_(ir.b) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(allowed);
    if (allowed) ir.b.setFastMathFlags(flags);
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

/// True if the type is f64 or c128. Programs may rely on the rounding of each operation of these types, so they are not
/// contracted.
bool is_wide(uint32_t type);
Val emit_op(Ir& ir, const Expr& i, const std::vector<Val>& args, const std::vector<uint32_t>& types,
            bool sums_products = false);
/// Broadcasts scalars and narrower values so that all of `args` have the same number of lanes.
void level_lanes(Ir& ir, std::vector<Val>& args);

// Functions that emit expressions for both kernels and scalar bodies.

/// Emits a body and returns its results. In lanes in which `active` is false the results are not used and loops do not iterate;
/// null means that all lanes are used.
std::vector<Val> emit_body(Ir& ir, const ScalarBody& body, const std::vector<Val>& arguments,
                           llvm::Value* active = nullptr);
/// Emits a kWhile expression. Returns all its final values packed in one Val, from which emit_part takes one.
Val emit_while(Ir& ir, const Expr& i, std::vector<Val> args, llvm::Value* active);
Val emit_part(Ir& ir, const Expr& i, const Val& loop);
/// Emits a kLookup: loads the elements at the places `where`.
Val emit_lookup(Ir& ir, const Expr& i, const Lanes& where, llvm::Value* mask);
/// Emits floor(x / by) or, with `modulo`, the remainder of that division.
llvm::Value* emit_divide(Ir& ir, llvm::Value* x, int64_t by, bool modulo);
/// Emits a kStart (a clamped start index) of an argument of `type`.
llvm::Value* emit_start(Ir& ir, const Expr& i, llvm::Value* x, uint32_t type);
/// Emits x and y. Either may be null, which means true, and either may be a scalar.
llvm::Value* emit_both(Ir& ir, llvm::Value* x, llvm::Value* y);

/// Emits one kernel as an LLVM function. The inner loops are emitted once per pass: a pass may use the results of reductions of
/// the passes before it.
class KernelEmitter {
 public:
  KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name);
  KernelEmitter(const KernelEmitter&) = delete;
  KernelEmitter& operator=(const KernelEmitter&) = delete;
  virtual ~KernelEmitter() = default;
  /// `whole`: see emit_kernel.
  llvm::Function* run(bool whole = false);
  /// Like run(). Stores for which bypasses_caches() is true leave nothing in the caches, where the function finds
  /// that their buffers are aligned to `alignment` bytes; else it calls `otherwise`, which is the same kernel.
  llvm::Function* run_bypassing(llvm::Function* otherwise, int alignment);

  /// For kernels without reductions whose points are computed within another function.
  KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, llvm::Function* within);
  /// Loads the addresses of the buffers from the array `buffers`. `at` is the insertion point in the other function, here and
  /// in `point`.
  void open(llvm::IRBuilder<>& at, llvm::Value* buffers);
  /// Returns expression `wanted` at `lanes` neighbouring points of the last loop. Lanes in which `mask` is false are not
  /// computed; null means all. Loads from buffer `known` are replaced by `value`.
  llvm::Value* point(llvm::IRBuilder<>& at, const std::vector<llvm::Value*>& loops, int lanes, llvm::Value* mask,
                     uint32_t known, llvm::Value* value, ExprId wanted);
  /// Returns a pair for each load of `element`: the address that it reads at the point `loops`, and the number of
  /// elements from there to the address in the next iteration of the last loop but one. Only the first few loads are
  /// considered that are contiguous along the last loop and not the same for all iterations of the loop before it, and
  /// whose indices are affine. Loads from buffer `known` are left out.
  std::vector<std::pair<llvm::Value*, llvm::Value*>> rows_of_loads(llvm::IRBuilder<>& at,
                                                                   const std::vector<llvm::Value*>& loops,
                                                                   llvm::Type* element, uint32_t known);

 protected:
  using Type = llvm::Type;
  using Value = llvm::Value;

  /// The variables that hold the state of a reduction while its loops run.
  struct Accumulator {
    size_t reduction = 0;
    std::vector<Value*> slots;       ///< two per result: re, im; for an extremum: value, null, NaN seen, signs
    std::vector<Value*> tail_slots;  ///< the same for the scalar tail loop
    std::vector<Value*> sums;    ///< for sums of floats: the sum of the blocks that are finished, of the current group
    std::vector<Value*> totals;  ///< for sums of floats: the sum of the groups that are finished
    std::vector<Value*> lost;    ///< for sums of floats: the rounding errors of `totals`
    bool has_groups = false;     ///< whether `totals` and `lost` are used
  };

  /// Emits the begin of the function.
  void begin();
  void read_bases(Value* buffers);

  /// Emits the body of the outer loops, for as many iterations of the side loop as are unrolled and interleaved.
  void side_iterations();

  // Loops.
  /// Emits a loop from `begin` to `end`.
  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body);
  void loop(Value* begin, Value* end, Value* step, const std::function<void(Value*)>& body);
  void branch(Value* condition, const std::function<void()>& body);
  /// Emits loop `l`. If it is the vectorised loop, emits one loop of full vectors and a tail.
  void emit_loop(size_t l, const std::function<void()>& body);
  /// Unrolls a short innermost loop completely into `steps` full vectors, so that its counter is constant. Returns false, and
  /// emits nothing, if the loop is too long.
  bool emit_straight(size_t l, int64_t steps, int width, const std::function<void()>& body);
  /// Emits the body once, with a mask that is true for those of `width` lanes that lie before `end`.
  void masked(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body);
  /// Emits a reduction over the rows of a matrix, row by row: the loop over the columns is inside of that over the rows, and the
  /// accumulators of a strip of columns are in memory.
  void reduce_rows();
  /// Emits iterations [begin, end) of the vectorised loop: a loop of full vectors and a tail.
  void emit_lane_loop(Value* begin, Value* end, const std::function<void()>& body);
  /// Combines `count` rows, from row `first` on, into the `accumulators` of the current columns.
  void combine_rows(Value* first, int count, const std::vector<Value*>& accumulators);
  /// Emits the loop along which loads are transposed, one square of iterations times lanes at a time.
  void emit_squares(size_t l, const std::function<void()>& body);
  /// Emits iterations [skip, width) of the square that begins at iteration `begin` of loop `l`.
  void square(size_t l, Value* begin, int width, int skip, const std::function<void()>& body);
  /// True if an outer loop advances `index` by the size of loop `l` at a time, at least `count` times, and each of its
  /// iterations reads few rows: the next squares of a row then directly follow in memory, and are soon needed.
  bool squares_follow(const Index& index, size_t l, int64_t count) const;
  /// Emits load `k` for `width` iterations from `begin` on. Returns one vector per iteration, in the type that memory has.
  std::vector<Value*> read_square(size_t k, size_t l, Value* begin, int width);
  /// Emits what is left of loop `l` after vectors of `width` lanes as shorter vectors, without masks. Returns false, and emits nothing, unless
  /// the kernel updates elements in memory. There the next update may load what this one has stored, and processors forward
  /// only stores without a mask to a load.
  bool emit_short_vectors(size_t l, int width, const std::function<void()>& body);
  /// Emits the tail of loop `l`, [begin, end), as one masked iteration that is skipped if the tail is empty.
  void emit_tail(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body);
  /// Emits loop `l`. A long sum of floats is computed in blocks: after each block the accumulator is added to
  /// Accumulator::sums and cleared, because the error of a sum grows with the number of terms in one accumulator.
  void blocks(size_t l, Value* begin, Value* end, int width, const std::function<void(Value*)>& body);
  /// Iterations [first, last) of a loop, in which all `tests` are true, whatever the variables of other loops are. They
  /// are the tests of indices that depend on the loop. There are none if these iterations are few.
  struct Interior {
    int64_t first;
    int64_t last;
    std::vector<const Expr*> tests;
  };
  Interior interior(size_t l) const;
  /// True if the kernel is so small, and so simple, that what is inside of a loop may be emitted several times.
  bool may_repeat_body() const;
  /// Emits `body` for points at which the tests of `in` are true.
  void inside(const Interior& in, const std::function<void()>& body);
  /// Emits one iteration of loop `l`, which is not vectorised, or `count` interleaved ones: twice, if the loop has an interior,
  /// without the tests there.
  void iteration(size_t l, int count, const std::function<void()>& body);
  /// Emits a loop of which `times` iterations are interleaved, and a loop for the iterations left over. Sets `unroll` for
  /// `body` to the number of interleaved iterations.
  void emit_unrolled(size_t l, Value* begin, Value* end, int times, int& unroll, const std::function<void()>& body);
  /// Emits the vectorised loop `l` as three loops, of which the middle one is for vectors in its interior. Returns
  /// false, and emits nothing, if the interior is small or if that does not suit the kernel. Whole vectors end at
  /// `main_end`.
  bool emit_interior(size_t l, Value* begin, Value* end, Value* main_end, int width, const std::function<void()>& body);
  /// True if loop `l` needs no tail after vectors of `width` lanes. Parts of loop 0 begin at multiples of the lanes.
  bool fills_vectors(size_t l, int width) const;
  /// Combines what scalar tail loops have accumulated with the accumulators, for sums of floats and ordered products.
  void fold_tails();
  /// Rounds `n` down to a multiple of `lanes`.
  Value* whole_vectors(Value* n, int lanes);
  /// Emits the outer loops from `l` on, with the expressions that depend on them, and then the inner ones.
  void outer(size_t l);
  /// Emits all passes over the inner loops, and between them the expressions of the outer loops that use their reductions.
  void stages();
  /// Emits the expressions of the outer loops that pass `pass` needs, and then the pass.
  void stage(int pass);
  /// Emits several rows, each pass for all of them before the next pass.
  void interleaved_rows();
  void inner_pass(int pass);
  virtual void inner(size_t l, int pass, std::vector<Accumulator>& accumulators);

  // Reductions.
  Value* slot(Type* t);
  void put(const std::vector<Value*>& slots, size_t r, const Val& x);
  Val get(const std::vector<Value*>& slots, size_t r, uint32_t type, int lanes);
  std::vector<Value*> make_slots(const Reduction& r, int lanes);
  Accumulator open_accumulator(size_t reduction, int outer_lanes);
  /// True for a product of floats along the lanes, which are multiplied in the order of the elements, into one number: see
  /// is_float_product.
  bool is_ordered(const Reduction& r) const;
  /// Returns the number of lanes of an accumulator. `outer_lanes` are those of the outer loops.
  int lanes_of_accumulator(const Reduction& r, int outer_lanes) const;
  /// Returns the product of the lanes: of neighbours first, then of neighbouring pairs.
  Value* product_of_neighbours(Value* x);
  /// True for a maximum or minimum of floats. A reduction by it is computed with the processor's comparison, which ignores
  /// NaN and signs of zeros; further variables track those.
  bool is_extremum(uint32_t combine, uint32_t type);
  bool is_extremum(const Reduction& r) { return is_extremum(r.combine, r.types[0]); }
  std::vector<Value*> extremum_slots(uint32_t type, int lanes);
  void start_extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes);
  virtual void accumulate(Accumulator& a);
  void accumulate_extremum(const std::vector<Value*>& slots, const Reduction& r, Value* x);
  /// Computes the extremum from its slots: one element or, without `across`, one for each lane.
  Val extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes, bool across);
  /// Reduces all lanes to one element by a tree of `combine`.
  Val reduce_lanes(Val x, int lanes, const std::function<Val(const Val&, const Val&)>& combine);
  /// Reduces all lanes of a scalable vector to one element. Sums of floats are added in any order.
  Value* reduce_scalable(uint32_t combine, uint32_t type, Value* x);
  /// Returns Ir::add_exactly of x and y, and of their imaginary parts.
  std::pair<Val, Val> add_exactly(const Val& x, const Val& y);
  /// Returns `sum` plus its rounding error; `sum` alone where that is 0 or NaN.
  Val corrected(const Val& sum, const Val& lost);
  /// Adds the sum of a block to a total, and what rounding has lost so far. Returns the new total and what is lost now: at
  /// most half a unit in the last place of the total, however many blocks there are.
  std::pair<Val, Val> add_block(const Val& total, const Val& lost, const Val& block);
  /// Reduces all lanes of result `result`, and combines it with the accumulator of the scalar tail loop.
  virtual Val total(const Accumulator& a, size_t result, int outer_lanes);
  /// Ends a reduction: computes its totals and calls finish_reduction.
  virtual void finish(const Accumulator& a, int outer_lanes);
  /// Combines the totals `results` with the initial values, and sets the expressions that use the reduction.
  /// `begins_with_zero`: the results are sums that began with 0, to which an initial value of 0 adds nothing.
  void finish_reduction(size_t reduction, std::vector<Val> results, bool begins_with_zero = false);

  // Scans.
  /// Emits the loop of a scan, whose running values are in registers.
  void scan();
  void scan_point(const Scan& s, const std::vector<Value*>& slots, Value* begun);
  /// Emit one step of a scan, by a known combination or by a body. They update the running values in `slots` and return the
  /// results at this point. `begun` is a flag per lane: some element has been combined already.
  std::vector<Val> scan_known(const Reduction& r, const std::vector<Value*>& slots, bool reverse);
  std::vector<Value*> scan_start_;  ///< the running sum before the current block; empty where a scan has no blocks
  std::vector<Val> scan_body(const Scan& s, const std::vector<Value*>& slots, Value* begun);
  /// Computes a prefix scan across the lanes of `x`: lane i becomes the combination of lanes 0 to i, in reverse of lanes i to
  /// the last.
  Val prefix_lanes(const Reduction& r, Val x, bool reverse);

  /// True if the tail of a loop in lanes is one masked vector, instead of one element at a time.
  bool has_masks() const { return ir_.target.masks || k_.scalable; }

  // Values.
  const Val& val(ExprId t) const { return vals_[static_cast<size_t>(t)]; }
  Value* condition_mask(ExprId t) { return t == kNoExpr ? nullptr : val(t).v; }
  /// Computes expression `k`, or loads it if an earlier pass over this row has stored it.
  Val inner_value(size_t k, int pass);
  /// For inner loops that are completely unrolled: returns expression `k` as an earlier pass has computed it at the same point,
  /// or computes it.
  Val known(size_t k);
  /// Returns expression `k` at a point of the outer loops. If it is a transposed load, its value comes from the square.
  Val outer_value(size_t k);
  Lanes lanes(const Index& index);
  /// Returns the index as a value: a scalar if it is the same in all lanes.
  Value* index_value(const Index& index);
  Val instruction(const Expr& i);
  Val operation(const Expr& i);
  Value* in_range(const Index& index, int64_t size);
  /// True if all values of the index fit in 32 bits.
  bool is_small(const Index& index) const;
  /// True if a division should be computed by `quotient`: all lanes are divided by the same float.
  bool is_quotient(uint32_t type, const std::vector<Val>& args) const;
  /// True for a conversion of integers, which are 0 or of ordinary magnitude.
  bool is_whole(ExprId id) const;
  /// Returns x / y, the operands of `division`, with the rounding of a division, without one for ordinary numbers. Vectors with
  /// very small or large numbers take a branch that divides.
  Value* quotient(const Expr& division, Value* x, Value* y);
  /// Returns x / y of ordinary numbers: x * (1 / y), corrected twice by the remainder. The reciprocal of a constant has twice the
  /// precision, so that one correction is enough: a quotient that is off by less than a unit in the last place, and the
  /// rounded reciprocal, give the right rounding (Markstein, Computation of elementary functions on the IBM RISC System/6000).
  Value* corrected_quotient(Value* x, Value* y);
  Val while_loop(const Expr& i);
  /// The mask of the access itself and the mask of a partial last vector, combined.
  Value* access_mask(ExprId own, const Lanes& where);
  /// Splits a conjunction. `uniform` becomes the conjunction of the conditions that are the same in all lanes, and
  /// stays null if there are none. The other conditions are added to `by_lane`.
  void find_conditions(ExprId mask, Value*& uniform, std::vector<ExprId>& by_lane);
  /// True if a condition, which differs by lane, is true in some lane of each vector.
  bool reaches_all_vectors(ExprId condition) const;
  /// Makes an access that no lane makes, because `mask` is false in all lanes, refer to the begin of the buffer.
  /// Elsewhere there may be no memory, and processors take long to find out that a masked access does not touch it.
  void avoid_unmapped(ExprId mask, Lanes& where);
  Val load(const Expr& i);
  /// Returns the term floor(i / a) of `index` if i is the variable of the vectorised loop, a divides the number of lanes,
  /// and all else is equal in all lanes. Then each group of `a` lanes accesses one element. Returns kNoExpr otherwise.
  ExprId repeating_term(const Index& index);
  /// Loads at an index that has such a term, `divided`: loads each element once and copies it to its lanes.
  Val load_repeated(const Expr& i, ExprId divided);
  void store(const Store& s);
  void update(const Update& u);
  /// Returns what becomes of elements, which begin `args`, by the values that follow them.
  std::vector<Val> updated(const Update& u, const std::vector<Val>& args, Value* mask);
  /// Makes an update whose lanes may have the same element: one lane after the other, or all at once where all have the same.
  void update_in_order(const Update& u);
  class LanesInMemory;
  /// Returns the addresses of elements, one for each lane, that begin as 0 and that nothing reads but the lane's own updates.
  Value* spare_elements(Type* element, int count);
  /// Returns the maximum or minimum of floats `old` and `x`. It takes few steps from `old`, the result of the update before.
  llvm::Value* updated_extremum(bool maximum, llvm::Value* old, llvm::Value* x);

  const Kernel& k_;
  const KernelPasses passes_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> bases_;
  std::vector<Value*> iv_;
  std::vector<int64_t> iv_plus_;  ///< constants to add to the loop variables, from unrolled loops
  std::vector<Val> vals_;
  std::map<size_t, Value*> kept_slots_;    ///< by expression that is kept for a later pass: an array with a row of it
  std::map<size_t, Value*> square_slots_;  ///< by load that is made in squares: an array with the vectors of one square
  std::map<std::pair<size_t, std::vector<int64_t>>, Val> known_;  ///< by instruction and point of the inner loops
  bool contracts_ = false;
  bool whole_ = false;     ///< the function runs all iterations of loop 0
  bool bypasses_ = false;  ///< see run_bypassing
  int unroll_ = 1;         ///< interleaved iterations of the side loop at the insertion point
  int row_unroll_ = 1;     ///< interleaved iterations of the row loop at the insertion point
  /// Accumulators of the pass that is being emitted; null outside of passes.
  std::vector<Accumulator>* open_ = nullptr;
  int width_ = 1;                     ///< lanes of the vectorised loop in this pass
  int together_ = 1;                  ///< vectors of the vectorised loop that this pass computes at a time
  int lanes_ = 1;                     ///< lanes at the insertion point; 1 outside of the vectorised loop
  Value* mask_ = nullptr;             ///< mask of a partial last vector; null if all lanes are used
  std::set<const Expr*> inside_;      ///< tests that are true at the insertion point
  bool at_edge_ = false;              ///< true where a loop around the insertion point is outside of its interior
  Value* counted_ = nullptr;          ///< with mask_: an i64, the number of lanes that are used
  std::map<size_t, Value*> squares_;  ///< by transposed load: its vector in the current iteration
};

}  // namespace collet::codegen
