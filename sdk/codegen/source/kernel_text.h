// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/source/scalar_text.h"
#include "sdk/codegen/source/text.h"

namespace collet::codegen::source {

/// Writes kernels as nests of loops. Of the schedule it uses only which loop is in lanes: sums of floats along it have one
/// accumulator for each of kStrip iterations, since compilers do not change the order of additions.
class KernelWriter {
 public:
  KernelWriter(Function& f, const Kernel& kernel);

  /// Writes the body of a KernelFunction whose parameters are `buffers`, `begin` and `end`.
  void run();

  /// Writes the body of a function of OpenCL C that work-items run, with these places of buffers. The kernel has no lanes.
  void run_grid(const GridSchedule& schedule, const std::vector<std::string>& places);

  /// Writes the body of a CompareFunction whose parameters are `buffers`, `i` and `j`. The kernel is empty.
  void compare(const ScalarBody& b, const std::vector<uint32_t>& types);

  /// For kernels without inner loops, reductions and stores: declares the buffers, of which `buffers` is the table.
  void open(const std::string& buffers);
  /// Returns the value of `wanted` where the loops have these variables, and loads from buffer `product` give `value`.
  Id point(const std::vector<std::string>& loops, uint32_t product, Id value, ExprId wanted);

 private:
  /// The variables that hold a result of a reduction. In strips they are arrays with an element for each iteration.
  struct Accumulator {
    uint32_t type = 0;
    bool in_strip = false;
    bool blocks = false;             ///< sums of blocks are added with their rounding errors
    std::vector<std::string> names;  ///< one, or two for complex numbers
  };
  /// How a pass with reductions runs.
  enum class Form : uint8_t { kPlain, kInnerStrips, kOuterStrips };
  /// Where sums of blocks are added: at iterations of `loop`, each `steps` of them.
  struct Blocks {
    size_t loop = SIZE_MAX;
    int64_t steps = 0;
  };

  // Expressions.
  Val expr(const std::vector<Expr>& exprs, size_t k, std::vector<Val>& vals, const std::vector<Val>* arguments);
  std::vector<Val> body(const ScalarBody& b, const std::vector<Val>& arguments);
  Val while_loop(const Expr& e, const std::vector<Val>& vals);
  Val element(uint32_t type, Id array, Id at, Id mask);
  /// Returns the index, in an array of floats, of the real (part 0) or imaginary part (1) of complex element `at`.
  Id part_of_complex(Id at, int64_t part);
  Id index(const Index& x, const std::vector<Expr>& exprs, const std::vector<Val>& vals);
  Id index(const Index& x) { return index(x, k_.exprs, vals_); }
  Id start(const Expr& e, const std::vector<Expr>& exprs, const std::vector<Val>& vals);
  Id quotient(const Expr& e, const std::vector<Expr>& exprs, const std::vector<Val>& vals, bool rest);
  /// True if the value of an index cannot overflow, or cannot be negative.
  bool is_bounded(const Index& x, const std::vector<Expr>& exprs) const;
  bool is_positive(const Index& x, const std::vector<Expr>& exprs) const;
  /// Finds the reductions whose results are used.
  void find_used();
  Val val(ExprId id) const { return vals_[static_cast<size_t>(id)]; }
  const Expr& at(ExprId id) const { return k_.exprs[static_cast<size_t>(id)]; }
  void compute(size_t level, int stage);
  void compute_for_pass(size_t level, int pass);
  /// Returns the place of the current point in a row that holds a kept value of each point of the inner loops.
  Id place_in_row();

  // Loops.
  /// Declares the buffers. `place` returns the address of one as text.
  void declare_buffers(const std::function<std::string(uint32_t)>& place);
  Id buffer(uint32_t number, uint32_t type) const;
  void open_loop(size_t l, const std::string& from, const std::string& to);
  void nest(size_t l);
  void point();
  void loop_over(size_t l, const std::string& from, const std::string& to, bool is_independent);
  bool is_independent() const;
  /// True if the loop, the last one, has functions with a branch for large arguments, with which compilers would make no vectors.
  bool tests_strips(size_t l) const;
  /// Writes a loop in strips: those without large arguments have no branch.
  void tested_strips(size_t l, const std::string& from, const std::string& to);
  bool outer_strips_pay() const;
  void outer_strips(size_t l, const std::string& from, const std::string& to);
  void store(const Store& s);
  void put(uint32_t number, uint32_t type, Id at, const Val& x, Id mask);
  void update(const Update& u);
  void scan();
  std::vector<Val> scan_step(const Scan& s, const std::vector<Accumulator>& held, const std::string& begun);

  // Grids, see grid_text.cc.
  /// Writes a loop over the points of `loops` from number `first` on, by `step`, below `end`.
  void each_point(uint64_t loops, const std::string& first, const std::string& end, const std::string& step,
                  const std::function<void()>& body);
  /// Sets the variables of `loops` from the number of their point.
  void set_loops(uint64_t loops, const std::string& point);
  void points(const GridSchedule& schedule);
  void rows(const GridSchedule& schedule);
  void row_pass(int number);
  void tiles(const GridSchedule& schedule);
  /// Loads a part of a factor of a tile to the array `name` in local memory.
  void tile_operand(const TileOperand& o, const std::string& name, int64_t length, int64_t round, int64_t threads);
  /// Computes what `wanted` depends on, for the loops' current variables.
  Val value_at(ExprId wanted);
  void barrier() { f_.statement("barrier(CLK_LOCAL_MEM_FENCE);"); }

  // Passes over the inner loops.
  void find_reductions_of(int number);
  bool stores_in(int number) const;
  void pass(int number);
  void inner_loops(size_t l, int number);
  void inner_point(int number);
  void accumulate(size_t r);
  Form form_of(const std::vector<size_t>& reductions, int number) const;
  void declare_accumulators(size_t r);
  /// Adds the sum of a block to the total, and what rounding has lost so far. What is lost then stays below half a unit in the
  /// last place of the total, however many blocks there are.
  void add_block(const Accumulator& a);
  void add_blocks();
  void finish(size_t r);
  /// Returns the result of a reduction whose accumulator holds `x` at the end.
  Val finished(const Reduction& r, uint32_t type, Val x);
  Val read(const Accumulator& a, bool total = false);
  void write(const Accumulator& a, const Val& x);
  std::string place(const Accumulator& a, const std::string& name) const { return a.in_strip ? name + "[l]" : name; }
  void each_lane(const std::function<void()>& body);

  Function& f_;
  const Kernel& k_;
  KernelPasses passes_;
  std::vector<Val> vals_;
  std::map<const Expr*, std::vector<Val>> whiles_;  ///< final values of loops over scalars
  std::map<std::pair<uint32_t, std::string>, Id> buffers_;
  std::vector<std::string> loops_;      ///< the names of the loop variables; "0" for a loop of one iteration
  std::map<uint32_t, Val> given_;       ///< loads from these buffers are known
  std::map<size_t, std::string> kept_;  ///< arrays of kept values
  std::vector<std::vector<Val>> reduced_;
  std::vector<Val> scanned_;
  std::vector<std::vector<Accumulator>> accumulators_;
  std::vector<bool> used_;          ///< by reduction
  std::vector<size_t> reductions_;  ///< those of the current pass
  Form form_ = Form::kPlain;
  bool in_grid_ = false;   ///< the function runs all of the kernel, not a part of its first loop
  uint64_t parallel_ = 0;  ///< loops whose variables are set from the number of the work-item
  int64_t group_ = 0;      ///< work-items that share the inner loops; 0 if one runs them
  Blocks blocks_;
};

/// Adds a kernel to the unit, as a static KernelFunction. `ops` names what it computes.
void write_kernel(Unit& unit, const Kernel& kernel, const std::string& name, const std::string& ops);

/// Adds a comparator to the unit, as a static CompareFunction.
void write_comparator(Unit& unit, const ScalarBody& body, const std::vector<uint32_t>& types, const std::string& name);

/// Returns a comment of C with this text.
std::string comment(std::string text);

}  // namespace collet::codegen::source
