// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/llvm/emit_memory.h"
#include "sdk/codegen/llvm/ir.h"
#include "sdk/codegen/schedule/passes.h"

namespace collet::codegen {

/// Lets multiplications and additions become one instruction while it lives.
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

/// A program may count on each rounding of such a type.
bool is_wide(uint32_t type);
Val emit_op(Ir& ir, const Expr& i, const std::vector<Val>& args, const std::vector<uint32_t>& types,
            bool sums_products = false);
/// Gives all the same number of lanes.
void level_lanes(Ir& ir, std::vector<Val>& args);

// What kernels and scalar bodies have in common.

/// The results of a body. Where `active` is false, if it is not null, nobody needs them, and no loop turns for their sake.
std::vector<Val> emit_body(Ir& ir, const ScalarBody& body, const std::vector<Val>& arguments,
                           llvm::Value* active = nullptr);
/// A kWhile: all its final values in one, for emit_part.
Val emit_while(Ir& ir, const Expr& i, std::vector<Val> args, llvm::Value* active);
Val emit_part(Ir& ir, const Expr& i, const Val& loop);
/// The elements of a kLookup at given places.
Val emit_lookup(Ir& ir, const Expr& i, const Lanes& where, llvm::Value* mask);
/// floor(x / by), or what is left of x.
llvm::Value* emit_divide(Ir& ir, llvm::Value* x, int64_t by, bool modulo);
/// A kStart of an argument of `type`.
llvm::Value* emit_start(Ir& ir, const Expr& i, llvm::Value* x, uint32_t type);
/// Both conditions, of which either may be null and either a scalar.
llvm::Value* emit_both(Ir& ir, llvm::Value* x, llvm::Value* y);

/// Writes one kernel as a function. Its inner loops are walked once per stage: what a stage reads of a row was reduced
/// by those before.
class KernelEmitter {
 public:
  KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name);
  KernelEmitter(const KernelEmitter&) = delete;
  KernelEmitter& operator=(const KernelEmitter&) = delete;
  virtual ~KernelEmitter() = default;
  llvm::Function* run();

  /// For kernels without reductions whose points are computed within another function.
  KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, llvm::Function* within);
  /// Reads the addresses of the buffers; `at` is where the function is being written, here and below.
  void open(llvm::IRBuilder<>& at, llvm::Value* buffers);
  /// `wanted` at `lanes` neighbouring points of the last loop, of which those count where `mask` is true or null. What
  /// the kernel reads of buffer `known` is `value`.
  llvm::Value* point(llvm::IRBuilder<>& at, const std::vector<llvm::Value*>& loops, int lanes, llvm::Value* mask,
                     uint32_t known, llvm::Value* value, ExprId wanted);

 protected:
  using Type = llvm::Type;
  using Value = llvm::Value;

  /// What a reduction holds while its loops run.
  struct Accumulator {
    size_t reduction;
    std::vector<Value*> slots;       ///< two per result: re, im; of an extremum: value, none, NaN seen, signs
    std::vector<Value*> tail_slots;  ///< of the scalar loop after the vectors
    std::vector<Value*> sums;        ///< of the blocks before, for sums of floats
  };

  void read_bases(Value* buffers);

  /// All of the turns that run side by side.
  void turns();

  // Loops.
  /// A counted loop.
  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body);
  void loop(Value* begin, Value* end, Value* step, const std::function<void(Value*)>& body);
  void branch(Value* condition, const std::function<void()>& body);
  /// Walks loop `l`; where it is the vectorised one, in full vectors and then what is left.
  void walk(size_t l, const std::function<void()>& body);
  /// Full vectors of a short innermost loop, one after the other: what depends on the lane alone is then constant.
  bool walk_straight(size_t l, int64_t steps, int width, const std::function<void()>& body);
  /// The body for those of `width` lanes that lie before `end`.
  void masked(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body);
  /// The loop of the columns and that of the rows within, row by row.
  void fold_rows();
  /// Lanes [begin, end) of the vectorised loop: full vectors and then what is left.
  void walk_lanes(Value* begin, Value* end, const std::function<void()>& body);
  /// Adds `count` rows from `first` on to what is folded of the columns where the builder stands.
  void take_rows(Value* first, int count, const std::vector<Value*>& folded);
  /// Walks the loop along which loads are transposed, a square at a time.
  void walk_squares(size_t l, const std::function<void()>& body);
  /// Turns [skip, width) of the square that begins at turn `begin` of loop `l`.
  void square(size_t l, Value* begin, int width, int skip, const std::function<void()>& body);
  /// What load `k` reads in `width` turns from `begin` on: for each of them a vector, as it lies in memory.
  std::vector<Value*> read_square(size_t k, size_t l, Value* begin, int width);
  void walk_rest(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body);
  /// The loop, in blocks after each of which the sums so far are put aside where there are many terms: the error of a sum
  /// grows with the terms that one accumulator takes.
  void blocks(size_t l, Value* begin, Value* end, int width, const std::function<void(Value*)>& body);
  /// Of `n` turns those that full vectors take.
  Value* whole_vectors(Value* n, int lanes);
  void outer(size_t l);
  /// Passes over the inner loops, with what comes between them.
  void stages();
  void inner_pass(int pass);
  virtual void inner(size_t l, int pass, std::vector<Accumulator>& accumulators);

  // Reductions.
  Value* slot(Type* t);
  void put(const std::vector<Value*>& slots, size_t r, const Val& x);
  Val get(const std::vector<Value*>& slots, size_t r, uint32_t type, int lanes);
  std::vector<Value*> make_slots(const Reduction& r, int lanes);
  Accumulator open_accumulator(size_t reduction, int outer_lanes);
  /// The largest or least float: the comparison that a processor has, with what it leaves out on the side.
  static bool is_extremum(const Reduction& r);
  std::vector<Value*> extremum_slots(uint32_t type, int lanes);
  void start_extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes);
  virtual void accumulate(Accumulator& a);
  void accumulate_extremum(const std::vector<Value*>& slots, const Reduction& r, Value* x);
  /// What an extremum's slots come to: one element or, without `across`, one for each lane.
  Val extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes, bool across);
  /// All lanes in one.
  Val fold(Val x, int lanes, const std::function<Val(const Val&, const Val&)>& combine);
  /// All lanes of a scalable vector in one, sums of floats in any order.
  Value* fold_scalable(uint32_t combine, uint32_t type, Value* x);
  /// All lanes and the scalar rest.
  virtual Val total(const Accumulator& a, size_t result, int outer_lanes);
  /// Adds the initial value; from here on the reduction's value is known.
  virtual void finish(const Accumulator& a, int outer_lanes);
  /// The same, for what it comes to without that.
  void finish_fold(size_t reduction, std::vector<Val> results);

  // Scans.
  /// The inner loop, with what is folded so far in registers.
  void scan();
  void scan_point(const Scan& s, const std::vector<Value*>& slots, Value* begun);
  /// What a known combination and a body make of the point; `slots` hold it afterwards, `begun` that there is something.
  std::vector<Val> scan_known(const Reduction& r, const std::vector<Value*>& slots, bool reverse);
  std::vector<Val> scan_body(const Scan& s, const std::vector<Value*>& slots, Value* begun);
  /// Each lane with all lanes before it, in reverse with all behind it.
  Val fold_lanes(const Reduction& r, Val x, bool reverse);

  // Values.
  const Val& val(ExprId t) const { return vals_[static_cast<size_t>(t)]; }
  Value* condition_mask(ExprId t) { return t == kNoExpr ? nullptr : val(t).v; }
  /// Computes a value, or reads what an earlier pass over this row has kept of it.
  Val inner_value(size_t k, int pass);
  /// Where the inner loops are written out: what another pass has computed at the same point is still there.
  Val known(size_t k);
  /// The value at a point of the outer loops: an instruction, or what a square has of it.
  Val outer_value(size_t k);
  Lanes lanes(const Index& index);
  /// The index as a value: a scalar where it is the same in all lanes.
  Value* index_value(const Index& index);
  Val instruction(const Expr& i);
  Val operation(const Expr& i);
  Value* in_range(const Index& index, int64_t size);
  /// All places of the index are numbers of 32 bits.
  bool is_small(const Index& index) const;
  /// Whether a division of lanes by what is the same for all of them is better done by multiplication.
  bool is_quotient(uint32_t type, const std::vector<Val>& args) const;
  /// x / y, rounded as a division: x times 1 / y, corrected twice by what is left. Vectors with very small or large
  /// numbers are divided.
  Value* quotient(Value* x, Value* y);
  Val while_loop(const Expr& i);
  /// A mask of the access together with that of the last, partial vector.
  Value* access_mask(ExprId own, const Lanes& where);
  Val load(const Expr& i);
  void store(const Store& s);
  void update(const Update& u);

  const Kernel& k_;
  const KernelPasses passes_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> bases_;
  std::vector<Value*> iv_;
  std::vector<int64_t> iv_plus_;  ///< known parts of the loop variables
  std::vector<Val> vals_;
  std::map<size_t, Value*> kept_slots_;    ///< by expression that is kept for a later pass: an array with a row of it
  std::map<size_t, Value*> square_slots_;  ///< by load that is made in squares: an array with the vectors of one square
  std::map<std::pair<size_t, std::vector<int64_t>>, Val> known_;  ///< by instruction and point of the inner loops
  bool contracts_ = false;
  int turns_now_ = 1;                         ///< of the side loop, side by side, where the builder stands
  std::vector<Accumulator>* open_ = nullptr;  ///< of the pass that is being emitted
  int width_ = 1;                             ///< lanes of the vectorised loop in this pass
  int lanes_ = 1;                             ///< where the builder stands
  Value* mask_ = nullptr;
  Value* counted_ = nullptr;          ///< where there is a mask: i64, how many lanes count
  std::map<size_t, Value*> squares_;  ///< by load: what it reads in the turn where the builder stands
};

}  // namespace collet::codegen
