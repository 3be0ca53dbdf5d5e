// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/fusion/fusion.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/memory/buffer_planner.h"

namespace collet::codegen {

/// Makes the launch plan of a program. Steps are first written with ranges (live ranges without a place); when all steps are known,
/// the buffer planner gives each range a place in memory.
class Compiler {
 public:
  Compiler(const collet_program* program, const Target& target, const CompileOptions& options, PlannedProgram& out)
      : program_(program),
        target_(target),
        options_(options),
        plan_(&out.plan),
        sources_(out.sources),
        stages_(out.stages) {}

  Status run();

 private:
  /// A step before memory is known.
  struct Draft {
    Step step;
    std::vector<RangeId> ranges;  ///< the step's operands; become Step's places
    std::vector<std::vector<Draft>> children;
  };
  using Drafts = std::vector<Draft>;

  /// The loop whose body is being compiled.
  struct LoopScope {
    int begin = 0;               ///< time at which its variables get their first values
    Drafts* before = nullptr;    ///< list for steps that are moved out of the loop and run once
    std::vector<ValueId> fixed;  ///< variables of the body that no iteration changes
    std::vector<RangeId> kept;   ///< results of those steps, which stay live in all iterations
  };

  // Values and their ranges.
  uint64_t bytes_of(ValueId v) const { return static_cast<uint64_t>(graph_.type(v).bytes()); }
  /// The range of a value in memory; a constant gets its range when it is first used.
  RangeId range(ValueId v);
  RangeId read(ValueId v);
  RangeId write(ValueId v);
  bool is_input(ValueId v) const { return fusion_.in_memory[v] || graph_.value(v).constant != nullptr; }
  /// Makes a temporary value in memory that the program does not have.
  ValueId temporary(uint32_t element, Dims dims);

  /// The readers of each value of a block, and the group of each node.
  struct Readers {
    std::map<ValueId, std::vector<NodeId>> users;
    std::map<NodeId, size_t> group_of;
  };

  // Blocks, groups and what each becomes.
  Status block(BlockId id, Drafts& drafts);
  Status group(const FusionGroup& u, Drafts& drafts);
  Status node(const Node& n, Drafts& drafts);
  void routine(const Node& n, Drafts& drafts);
  /// Rows along the middle dimension of an array of three.
  struct RowShape {
    int64_t above = 1;
    int64_t length = 1;
    int64_t below = 1;
  };
  /// Adds the kernels of a sort for a target with grids.
  void add_sort(const Node& n, Drafts& drafts);
  /// Sorts `arrays`, of dimensions [above, length, below], along their rows.
  void sort_on_grid(GridSort sort, const std::vector<ValueId>& arrays, ValueId numbers, Drafts& drafts);
  /// Puts the first `needed` elements of each row to its begin, sorted, without sorting the whole row: each segment is sorted by itself,
  /// then what its first elements make together, until one segment is left.
  void select_on_grid(const Comparator& comparator, std::vector<ValueId> arrays, RowShape rows, int64_t needed,
                      Drafts& drafts);
  /// Copies the first elements of the segments of each row to the rows of `to`, one segment behind the other.
  void copy_first(const std::vector<ValueId>& from, const RowShape& rows, int64_t segment, int64_t needed,
                  const std::vector<ValueId>& to, const RowShape& to_rows, Drafts& drafts);
  /// A way to compute what kernels compute: by a library of the device.
  struct LibraryWay {
    LibraryCall call;
    std::vector<ValueId> operands;
    std::optional<KernelPlan> before;  ///< writes an operand that the library wants in another order
  };
  /// The way of a product or convolution, which `kernels` compute, if the target has a library for it and nothing is fused to the operands.
  std::optional<LibraryWay> library_way(const Node& n, const std::vector<KernelPlan>& kernels);
  std::optional<LibraryWay> convolution_way(const Node& n);
  /// Adds a choice between kernels, the last of which writes `result`, and a library. The epilogue is part of the last kernel, and a kernel of
  /// its own behind the library.
  void add_choice(std::vector<KernelPlan>& kernels, ValueId result, LibraryWay& way, Drafts& drafts);
  /// Adds the library's way of a choice, which writes to the memory of `computed`. `epilogue` may be null.
  void add_library_way(LibraryWay& way, ValueId result, RangeId computed, KernelPlan* epilogue, Drafts& drafts);
  /// Adds a call of a library whose places are the ranges of a draft.
  void add_library_call(LibraryCall call, std::vector<RangeId> ranges, Drafts& drafts);
  /// Adds an fft that the device's library computes.
  void add_fft(const Node& n, Drafts& drafts);
  /// Adds a scatter for a target with grids, whose updates are grouped by the element that they update.
  void add_grouped_updates(const KernelPlan& k, UpdateSchedule updates, Drafts& drafts);
  /// An attention that is computed by one kernel.
  struct Attention {
    AttentionKernel kernel;
    AttentionSchedule schedule;
  };
  /// Finds the attentions whose scores and weights nobody else reads. Their groups, but for the last ones, are marked as done.
  void find_attentions(const Block& block, const std::vector<FusionGroup>& groups, const Readers& readers,
                       std::vector<bool>& done);
  void add_attention(KernelPlan& k, const AttentionSchedule& schedule, Drafts& drafts);
  RangeId copy(RangeId from, ValueId to, Drafts& drafts);
  RangeId copy_webs(RangeId from, RangeId to, uint64_t bytes, Drafts& drafts);

  /// Returns the group that can be the epilogue of group `at`, a matrix product: the only reader of its result, elementwise. Returns
  /// the number of groups if there is none.
  size_t epilogue_of(const Block& block, const std::vector<FusionGroup>& groups, const Readers& readers, size_t at,
                     KernelPlan& kernel) const;
  Readers readers_in(const Block& block, const std::vector<FusionGroup>& groups) const;
  /// Whether all values that a group reads are in memory already.
  bool is_ready(const FusionGroup& u) const;
  /// Compiles those groups after `at` whose results `kernel`, the epilogue of group `at`, reads, so that the epilogue can run with
  /// group `at`. Sets `there` to false, and does nothing, if one of them is not ready.
  Status make_ready(const std::vector<FusionGroup>& groups, const Readers& readers, const KernelPlan& kernel, size_t at,
                    std::vector<bool>& done, Drafts& drafts, bool& there);
  /// Returns the only group that reads `v`, itself or through nodes that are inlined in it; SIZE_MAX if there are several or none.
  /// Other names for the memory of `v` are followed if `names` is not null; their groups are added to it.
  size_t only_reader(const Block& block, const Readers& readers, ValueId v, std::vector<size_t>* names = nullptr) const;

  // Kernels and matrix products.
  void add_kernel(KernelPlan& k, Drafts& drafts);
  /// Whether a kernel may write its result over an operand, `pair` of k.in_place: no other buffer of it may share that memory.
  bool reads_in_place(const KernelPlan& k, const std::pair<ValueId, ValueId>& pair);
  /// Adds a reduction that threads share: `parts` computes partial results, and `rest`, in the same step, combines them.
  void add_parts(KernelPlan& parts, KernelPlan& rest, Drafts& drafts);
  void describe(const Kernel& kernel, Step& step) const;
  void add_buffers(const KernelPlan& k, Draft& d);
  /// Whether the kernel is invariant in the loop that is being compiled.
  bool is_fixed(const KernelPlan& k) const;
  /// Adds an invariant kernel before the loop.
  void add_before_loop(KernelPlan& k);
  /// Adds a packing kernel that the matmul call runs block by block. It chooses the blocks by loop 0, so that loop is not changed.
  FunctionId add_packing(ProductOperand& o, Draft& d);
  void add_product(Product& p, Drafts& drafts);
  /// Makes epilogue_ part of the product, if that is possible.
  std::optional<Epilogue> take_epilogue(const Product& p, Draft& d);
  void add_micros(const Product& p, const Epilogue* epilogue, MatmulCall& call);
  FunctionId function_of(const MicroKernel& kernel, const Epilogue* epilogue);
  FunctionId function_of(const Kernel& kernel);
  /// Checks a kernel with verify_kernel, and stores the first error in defect_.
  void verify(const Kernel& kernel, const char* stage);
  FunctionId add_function(FunctionSource source);

  // Control flow.
  /// Compiles a block whose arguments have ranges already; leaves its results' ranges in `results`.
  Status child(BlockId id, Drafts& drafts, std::vector<RangeId>& results);
  Status while_loop(const Node& n, Drafts& drafts);
  /// Copies results that are the old value of another variable to temporary memory, before any variable is overwritten.
  void save_permuted(const std::vector<RangeId>& state, std::vector<RangeId>& next, const std::vector<ValueId>& values,
                     Drafts& drafts);
  Status conditional(const Node& n, Drafts& drafts);
  /// Adds a copy for every result. coalesce_copies removes it if the value can be computed in the result's memory.
  void finish_entry(Drafts& drafts);

  // When all steps are known.
  void coalesce_copies();
  static uint32_t count_places(const Drafts& drafts);
  void resolve(Drafts& drafts, StepList& out);
  Status store_constants();
  void keep_stages();

  const collet_program* program_;
  const Target& target_;
  CompileOptions options_;
  LaunchPlan* plan_;
  std::vector<FunctionSource>& sources_;
  std::vector<std::pair<std::string, std::string>>& stages_;
  std::string groups_text_;
  Graph graph_;
  FusionPlan fusion_;
  BufferPlanner buffers_;
  std::vector<RangeId> range_;
  int time_ = 0;
  std::vector<std::pair<RangeId, RangeId>> copies_;
  std::map<Kernel, FunctionId> kernels_;
  std::map<GridSort, FunctionId> sorts_;
  std::map<Kernel, FunctionId> attention_functions_;
  std::map<NodeId, Attention> attentions_;  ///< by the product that gives the result
  std::map<MicroKernel, FunctionId> micros_;
  std::map<std::tuple<MicroKernel, Kernel, uint32_t, ExprId>, FunctionId> epilogues_;
  std::vector<ValueId> constants_;
  uint64_t constant_bytes_ = 0;
  LoopScope* scope_ = nullptr;
  Status defect_;  ///< the first error that `verify` found
  KernelPlan* epilogue_ =
      nullptr;  ///< epilogue that the product that is being added may take; set to null if it takes it
};

}  // namespace collet::codegen
