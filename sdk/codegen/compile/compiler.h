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

/// Makes a plan of a program: first steps over ranges, then, when the life of each is known, over memory.
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
    std::vector<RangeId> ranges;  ///< becomes places
    std::vector<std::vector<Draft>> children;
  };
  using Drafts = std::vector<Draft>;

  /// The loop whose body is being compiled.
  struct LoopScope {
    int begin = 0;               ///< when its variables have their first values
    Drafts* before = nullptr;    ///< where steps go that run once
    std::vector<ValueId> fixed;  ///< variables of the body that no turn changes
    std::vector<RangeId> kept;   ///< what those steps leave for all turns
  };

  // Values and their ranges.
  uint64_t bytes_of(ValueId v) const { return static_cast<uint64_t>(graph_.type(v).bytes()); }
  /// The range of a value in memory; constants get theirs when first used.
  RangeId range(ValueId v);
  RangeId read(ValueId v);
  RangeId write(ValueId v);
  bool is_input(ValueId v) const { return fusion_.in_memory[v] || graph_.value(v).constant != nullptr; }
  /// A value of the planner's own, in memory.
  ValueId temporary(uint32_t element, Dims dims);

  // Blocks, groups and what each becomes.
  Status block(BlockId id, Drafts& drafts);
  Status group(const FusionGroup& u, Drafts& drafts);
  Status node(const Node& n, Drafts& drafts);
  void routine(const Node& n, Drafts& drafts);
  /// A sort as kernels of grids.
  /// The kernels of a sort, on a grid.
  void add_sort(const Node& n, Drafts& drafts);
  void sort_on_grid(GridSort sort, const std::vector<ValueId>& arrays, ValueId numbers, Drafts& drafts);
  /// A kernel whose updates a grid groups by what they update.
  void add_grouped_updates(const KernelPlan& k, UpdateSchedule updates, Drafts& drafts);
  RangeId copy(RangeId from, ValueId to, Drafts& drafts);
  RangeId copy_webs(RangeId from, RangeId to, uint64_t bytes, Drafts& drafts);

  /// Who reads each value of a block, and which group holds each node.
  struct Readers {
    std::map<ValueId, std::vector<NodeId>> users;
    std::map<NodeId, size_t> group_of;
  };
  /// The group that alone reads what group `at`, a product, writes, element by element, and could run with it; the number
  /// of groups where there is none.
  size_t epilogue_of(const Block& block, const std::vector<FusionGroup>& groups, const Readers& readers, size_t at,
                     KernelPlan& kernel) const;
  Readers readers_in(const Block& block, const std::vector<FusionGroup>& groups) const;
  /// Whether all that a group reads is in memory by now.
  bool is_ready(const FusionGroup& u) const;
  /// Runs first what `kernel`, the epilogue of group `at`, reads and what would come later; `there` is false, and nothing
  /// is done, where that depends on more.
  Status make_ready(const std::vector<FusionGroup>& groups, const Readers& readers, const KernelPlan& kernel, size_t at,
                    std::vector<bool>& done, Drafts& drafts, bool& there);
  /// The only group that reads `v`, itself or through what is inlined in it; SIZE_MAX where there is none.
  size_t only_reader(const Block& block, const Readers& readers, ValueId v) const;

  // Kernels and products of matrices.
  void add_kernel(KernelPlan& k, Drafts& drafts);
  /// Whether a kernel may write its result over an operand: a pair of k.in_place, and no other buffer is that memory.
  bool reads_in_place(const KernelPlan& k, const std::pair<ValueId, ValueId>& pair);
  /// A reduction that threads share: parts of it, and then, in the same step, what they come to.
  void add_parts(KernelPlan& parts, KernelPlan& rest, Drafts& drafts);
  void describe(const Kernel& kernel, Step& step) const;
  void add_buffers(const KernelPlan& k, Draft& d);
  /// Whether every turn of the loop would write the same.
  bool is_fixed(const KernelPlan& k) const;
  /// Runs once before the loop what its every turn would repeat.
  void add_before_loop(KernelPlan& k);
  /// A packing that the call itself runs, part by part: loop 0 must stay what it is.
  FunctionId add_packing(ProductOperand& o, Draft& d);
  void add_product(Product& p, Drafts& drafts);
  /// epilogue_ as part of the product, where that is possible.
  std::optional<Epilogue> take_epilogue(const Product& p, Draft& d);
  void add_micros(const Product& p, const Epilogue* epilogue, MatmulCall& call);
  FunctionId function_of(const MicroKernel& kernel, const Epilogue* epilogue);
  FunctionId function_of(const Kernel& kernel);
  /// Remembers the first kernel that breaks a rule.
  void verify(const Kernel& kernel, const char* stage);
  FunctionId add_function(FunctionSource source);

  // Control flow.
  /// Compiles a block whose arguments have ranges already; leaves its results' ranges in `results`.
  Status child(BlockId id, Drafts& drafts, std::vector<RangeId>& results);
  Status while_loop(const Node& n, Drafts& drafts);
  /// Results that are another variable's old content are saved before any variable is written.
  void save_permuted(const std::vector<RangeId>& state, std::vector<RangeId>& next, const std::vector<ValueId>& values,
                     Drafts& drafts);
  Status conditional(const Node& n, Drafts& drafts);
  /// Every result gets a copy of its value, which vanishes where the value can be computed in place.
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
  std::map<MicroKernel, FunctionId> micros_;
  std::map<std::tuple<MicroKernel, Kernel, uint32_t, ExprId>, FunctionId> epilogues_;
  std::vector<ValueId> constants_;
  uint64_t constant_bytes_ = 0;
  LoopScope* scope_ = nullptr;
  Status defect_;                   ///< of a kernel
  KernelPlan* epilogue_ = nullptr;  ///< what the product that is being added may take with it; then null
};

}  // namespace collet::codegen
