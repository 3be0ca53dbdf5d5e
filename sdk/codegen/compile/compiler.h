// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/fusion/fusion.h"
#include "sdk/codegen/kernel/used_range.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/memory/buffer_planner.h"
#include "sdk/codegen/schedule/actions.h"

namespace collet::codegen {

struct Pipeline;
struct PipelineWork;
enum class PipelineOutcome : uint8_t;

/// Makes the launch plan of a program. Steps first refer to live ranges that have no address; when all steps are known,
/// the buffer planner assigns each live range an offset in memory.
class Compiler {
 public:
  Compiler(const collet_program* program, const Target& target, const CompileOptions& options, PlannedProgram& out);

  Status run();

 private:
  friend struct Pipeline;
  friend struct PipelineWork;
  friend struct Pipelines;

  /// A step before memory is assigned.
  struct Draft {
    Step step;
    std::vector<RangeId> ranges;  ///< live ranges of the step's operands; they become Step's places
    std::vector<std::vector<Draft>> children;
  };
  using Drafts = std::vector<Draft>;

  /// The loop whose body is being compiled.
  struct LoopScope {
    int begin = 0;               ///< time at which its variables get their first values
    Drafts* before = nullptr;    ///< list for steps that are moved out of the loop and run once
    std::vector<ValueId> fixed;  ///< variables of the body that no iteration changes
    std::vector<RangeId> kept;   ///< results of those steps; they stay live in all iterations
  };

  // Values and their live ranges.
  uint64_t bytes_of(ValueId v) const { return static_cast<uint64_t>(graph_.type(v).bytes()); }
  /// Returns the live range of a value in memory. A constant gets its live range when it is first used.
  RangeId range(ValueId v);
  RangeId read(ValueId v);
  RangeId write(ValueId v);
  bool is_input(ValueId v) const { return fusion_.in_memory[v] || graph_.value(v).constant != nullptr; }
  /// Adds a value in memory that is not a value of the program, for intermediate results.
  ValueId temporary(uint32_t element, Dims dims);
  MakeValue maker();  ///< makes such values

  /// The readers of each value of a block, and the group of each node.
  struct Readers {
    std::map<ValueId, std::vector<NodeId>> users;
    std::map<NodeId, size_t> group_of;
  };

  /// A product, kernels of rows that read its result, and a product that reads theirs, as a softmax of scores between
  /// the two products of an attention. They run for one block of rows after the other.
  struct RowBlocks {
    Product first;
    Product second;
    std::vector<KernelPlan> between;
    std::vector<KernelPlan> after;  ///< conversions of the second product's result
    int64_t blocks = 0;
    /// The kernel that reads the first product's result, before it was cut into blocks, and its number of that buffer.
    /// Without loops if nothing is known of which columns it uses.
    Kernel reader;
    uint32_t read = 0;
    std::vector<std::optional<Sequence>> sequences;  ///< what is known of the buffers of `reader`
    /// Returns the columns of the first product's result that are used in the given rows, at least one.
    LoopRange used_columns(int64_t row, int64_t rows) const;
    /// Leaves out scores that are not used, and what is multiplied by weights of such scores if they are zero.
    void set_parts(BlockedProduct& scores, BlockedProduct& result) const;
    /// The values that the steps write for each other, and the bytes of each in a block.
    std::vector<std::pair<ValueId, uint64_t>> passed;
  };
  /// The groups of a block.
  struct Groups {
    const Block& block;
    const std::vector<FusionGroup>& groups;
    const Readers& readers;
    std::vector<bool>& done;                 ///< groups that are compiled with another one, or not at all
    std::map<size_t, RowBlocks> row_blocks;  ///< by the group that computes the result
  };

  // Compilation of blocks and groups.
  Status block(BlockId id, Drafts& drafts);
  Status group(const FusionGroup& u, Drafts& drafts);
  Status node(const Node& n, Drafts& drafts);
  // Steps of pipelines: nodes of grids.
  bool take_host_value(const Node& n, Drafts& drafts);
  bool take_collective(const Node& n, Drafts& drafts);
  bool take_scalar_loop(const Node& n, Drafts& drafts);
  void routine(const Node& n, Drafts& drafts);
  /// The shape of an array of three dimensions, [above, length, below], whose rows run along the middle dimension.
  struct RowShape {
    int64_t above = 1;
    int64_t length = 1;
    int64_t below = 1;
    int64_t rows() const { return above * below; }
  };
  /// Returns the rows that a sort sorts.
  RowShape rows_of_sort(const Node& n) const;
  /// Adds the kernels of a sort for a target with grids.
  void add_sort(const Node& n, Drafts& drafts);
  /// Sorts `arrays`, of dimensions [above, length, below], along their rows.
  void sort_on_grid(GridSort sort, const std::vector<ValueId>& arrays, ValueId numbers, Drafts& drafts);
  /// The arrays of a radix sort. Rows run along the last dimension.
  struct RadixArrays {
    ValueId keys = kNone;
    ValueId sorted_keys = kNone;
    std::vector<ValueId> others;  ///< arrays that move along
    std::vector<ValueId> sorted_others;
    ValueId sorted_numbers = kNone;  ///< if there are no others: gets the sorted numbers of the elements, or kNone
    int64_t key_bits = 0;  ///< lowest bits of the keys, of which the others are zero; 0: keys are of any value
  };
  /// Adds the kernels of a radix sort. Returns false, and adds nothing, if the target does not allow it.
  bool radix_on_grid(const KeyRule& key, int64_t rows, int64_t length, const RadixArrays& arrays, Drafts& drafts);
  /// Writes the first `kept` elements of each sorted row to the begins of the rows of the sorted arrays, whose other
  /// elements nobody reads. Selects elements of each tile of a row, then elements of each tile of what they make together,
  /// and so on, until a block can sort a row. Returns false, and adds nothing, if the target does not allow it.
  bool select_by_radix(const KeyRule& key, int64_t rows, int64_t length, int64_t kept, RadixArrays arrays,
                       Drafts& drafts);
  /// Adds a step that runs a kernel of a radix sort.
  void add_radix_step(const GridRadix& radix, std::vector<RangeId> ranges, Drafts& drafts);
  /// Returns a kernel that sets the first `count` elements of `v` to zero.
  KernelPlan fill_kernel(ValueId v, int64_t count);
  /// How a sort on a grid runs.
  enum class SortForm : uint8_t {
    kNetwork,      ///< by a bitonic network
    kSelected,     ///< by a network of segments, of which the first elements are kept
    kRadix,        ///< by its keys
    kNumbers,      ///< by its keys; its other operand has the numbers of the elements, which the kernels make
    kSeveralKeys,  ///< by several keys, from the least significant one to the most significant one
  };
  SortForm form_of_sort(const Node& n);
  /// Marks the groups as done that make arrays of numbers that only sorts of the form kNumbers read.
  void find_unread_numbers(Groups& groups);
  /// True if an operand of a sort has the number of each element in its row.
  bool has_numbers(const Node& n, size_t operand) const;
  /// Returns the keys of a sort, without those that only keep the order of equal elements.
  std::vector<SortKey> keys_of_sort(const Node& n) const;
  /// Returns a kernel that writes, for each element of `rows` rows, the element of the row with its number, from each array
  /// of `from` to that of `to`. The numbers are s32.
  KernelPlan gather_kernel(const std::vector<ValueId>& from, ValueId numbers, int64_t rows, int64_t length,
                           const std::vector<ValueId>& to);
  /// Sorts the rows of `from` by several keys: by the least significant key, then by the next one, and so on.
  void sort_by_keys(const std::vector<SortKey>& keys, int64_t rows, int64_t length, const std::vector<ValueId>& from,
                    const std::vector<ValueId>& to, Drafts& drafts);
  /// Adds a sort by keys.
  void add_radix_sort(const Node& n, SortForm form, Drafts& drafts);
  /// Moves the `needed` elements of each row that sort first to the begin of the row, in order, without sorting the
  /// whole row. Each segment of a row is sorted by itself; then the first elements of all segments form shorter rows,
  /// and so on until one segment is left.
  void select_on_grid(const Comparator& comparator, std::vector<ValueId> arrays, RowShape rows, int64_t needed,
                      Drafts& drafts);
  /// Copies the first `needed` elements of each segment of the rows of `from` to the rows of `to`, one segment after
  /// the other.
  void copy_first(const std::vector<ValueId>& from, const RowShape& rows, int64_t segment, int64_t needed,
                  const std::vector<ValueId>& to, const RowShape& to_rows, Drafts& drafts);
  /// A call of a library of the device that computes the same as some kernels.
  struct LibraryWay {
    LibraryCall call;
    std::vector<ValueId> operands;
    std::vector<KernelPlan>
        before;  ///< kernels that compute operands, or copy them in the order that the library needs
    /// See ConvolutionMatch: how the library writes the result.
    std::vector<size_t> result_order;
    Dims result_dims;
  };
  /// Returns the library call for a product or convolution that `kernels` compute. Empty if the target has no library
  /// for it, or if an op is fused into its operands.
  std::optional<LibraryWay> library_way(const Node& n, const std::vector<KernelPlan>& kernels);
  std::optional<LibraryWay> convolution_way(const Node& n);
  /// Adds a choice between kernels, the last of which writes `result`, and a library. The epilogue is part of the last
  /// kernel; the library's alternative runs it as a separate kernel.
  void add_choice(std::vector<KernelPlan>& kernels, ValueId result, LibraryWay& way, Drafts& drafts);
  /// Adds the alternative of a choice that calls the library. The call writes to the memory of `computed`. `epilogue`
  /// may be null.
  void add_library_way(LibraryWay& way, ValueId result, RangeId computed, KernelPlan* epilogue, Drafts& drafts);
  /// Adds a library call that accesses the live ranges `ranges`.
  void add_library_call(LibraryCall call, std::vector<RangeId> ranges, Drafts& drafts);
  /// Adds an fft that the device's library computes.
  void add_fft(const Node& n, Drafts& drafts);
  /// Adds factorizations that the device's library computes.
  void add_factorization(const Node& n, LibraryFactorization f, Drafts& drafts);
  /// Adds a value that the host writes: a number of the participant, or a state of random numbers.
  void add_host_value(const Node& n, Drafts& drafts);
  /// An array of each member of a collective, from which it makes another one.
  struct CollectiveArrays {
    ValueId source = kNone;
    ValueId target = kNone;
    CollectiveCall::Part part;
  };
  /// Adds a collective for a target with grids.
  void add_collective(const Node& n, Drafts& drafts);
  /// Adds an all-reduce or reduce-scatter of `arrays`. The sources of a reduce-scatter have its blocks outermost.
  void add_combination(const Node& n, const CollectiveCall& call, const std::vector<CollectiveArrays>& arrays,
                       Drafts& drafts);
  /// Adds an exchange of `arrays`.
  void add_exchange(CollectiveCall call, CollectiveCall::Kind kind, const std::vector<CollectiveArrays>& arrays,
                    Drafts& drafts);
  /// Returns a value that is the same memory as `v`, as an array of other dimensions.
  ValueId view(ValueId v, Dims dims);
  /// Transposes `from`, as an array of dimensions [a, b, c], to `to`: [b, a, c].
  void exchange_outer_dims(ValueId from, const Dims& dims, ValueId to, Drafts& drafts);
  /// Adds a scatter for a target with grids, whose updates are grouped by the element that they update.
  void add_grouped_updates(const KernelPlan& k, UpdateSchedule updates, Drafts& drafts);
  /// An attention that is computed by one kernel.
  struct Attention {
    AttentionKernel kernel;
    AttentionSchedule schedule;
  };
  /// Finds the attentions whose scores and weights no other node reads. All groups of an attention except the last one
  /// are marked as done.
  void find_attentions(Groups& groups);
  void add_attention(KernelPlan& k, const AttentionSchedule& schedule, Drafts& drafts);
  class RowBlocksFinder;
  /// Finds what can run in blocks of rows, by the group of the second product. The other groups are marked as done.
  void find_row_blocks(Groups& groups);
  void add_row_blocks(RowBlocks& r, Drafts& drafts);
  /// Adds kernels, which compute a block in each iteration of their first loop, to the steps of a kBlocks.
  void add_block_kernels(std::vector<KernelPlan>& kernels, Draft& blocks);
  /// Adds the kernels of a concatenation along dimension `dim` of `result`: they write a block of its rows in turn,
  /// because pages and cache lines between whole passes over the result would be fetched again for each operand. Returns
  /// false, and adds nothing, if that does not pay.
  bool add_in_blocks(std::vector<KernelPlan>& kernels, ValueId result, size_t dim, Drafts& drafts);
  RangeId copy(RangeId from, ValueId to, Drafts& drafts);
  RangeId copy_ranges(RangeId from, RangeId to, uint64_t bytes, Drafts& drafts);

  /// Returns the group that can be the epilogue of group `at`, a matrix product: the only reader of its result, elementwise. Returns
  /// the number of groups if there is none.
  size_t epilogue_of(const Block& block, const std::vector<FusionGroup>& groups, const Readers& readers, size_t at,
                     KernelPlan& kernel) const;
  Readers readers_in(const Block& block, const std::vector<FusionGroup>& groups) const;
  /// True if all values that a group reads have been written to memory by the steps so far.
  bool is_ready(const FusionGroup& u) const;
  /// Compiles those groups after `at` whose results `kernel`, the epilogue of group `at`, reads, so that the epilogue can run with
  /// group `at`. Sets `there` to false, and does nothing, if one of them is not ready.
  Status make_ready(const std::vector<FusionGroup>& groups, const Readers& readers, const KernelPlan& kernel, size_t at,
                    std::vector<bool>& done, Drafts& drafts, bool& there);
  /// Returns the only group that reads `v`, itself or through nodes that are inlined in the group; SIZE_MAX if there
  /// are several or none. If `names` is not null, the search continues through reshapes that share the memory of `v`,
  /// and their groups are added to `names`.
  size_t only_reader(const Block& block, const Readers& readers, ValueId v, std::vector<size_t>* names = nullptr) const;

  /// Returns the number of elements of 4 bytes that the second cache holds, see edges_pay.
  int64_t near_points() const { return target_.second_cache / 4; }

  // Kernels and matrix products.
  /// True if `epilogue` should not be part of `reduction`: it costs much per element, and the elements of short rows of
  /// the reduction are in lanes, so that it would be computed for one row at a time.
  bool is_better_apart(const KernelPlan& reduction, const KernelPlan& epilogue) const;
  /// Adds the steps of a kernel. `again`: it is a further part of the kernel that was added before, and has its time.
  void add_kernel(KernelPlan& k, Drafts& drafts, bool again = false);
  /// True if a kernel may write its result over an operand, where `pair` is an entry of k.in_place. No other buffer of
  /// the kernel may share that memory.
  bool reads_in_place(const KernelPlan& k, const std::pair<ValueId, ValueId>& pair);
  // Steps of pipelines: kernels, see pipeline.cc.
  PipelineOutcome split_at_edges_step(PipelineWork& work);
  PipelineOutcome split_at_periods_step(PipelineWork& work);
  PipelineOutcome move_as_integers_step(PipelineWork& work);
  PipelineOutcome group_updates_step(PipelineWork& work);
  PipelineOutcome split_quotients_step(PipelineWork& work);
  PipelineOutcome collapse_loops_step(PipelineWork& work);
  PipelineOutcome unroll_and_jam_step(PipelineWork& work);
  PipelineOutcome pack_strided_step(PipelineWork& work);
  PipelineOutcome pack_factor_step(PipelineWork& work);
  PipelineOutcome split_reduction_step(PipelineWork& work);
  PipelineOutcome split_grid_reduction_step(PipelineWork& work);
  PipelineOutcome merge_rows_step(PipelineWork& work);
  /// Leaves the iterations that make whole squares, see uneven_squares; the others become the rest.
  PipelineOutcome split_squares_step(PipelineWork& work);
  PipelineOutcome widen_products_step(PipelineWork& work);
  PipelineOutcome compare_as_integers_step(PipelineWork& work);
  PipelineOutcome choose_lanes_step(PipelineWork& work);
  PipelineOutcome schedule_step(PipelineWork& work);
  PipelineOutcome launch_step(PipelineWork& work);
  /// Adds a reduction that threads share: `parts` computes partial results, and `rest`, which is in the same step,
  /// combines them.
  void add_parts(KernelPlan& parts, KernelPlan& rest, Drafts& drafts);
  /// Describes the call of a kernel's function in a step of the launch plan.
  void describe(const Kernel& kernel, Step& step) const;
  void describe_call(const Kernel& kernel, Step& step) const;
  void describe_grid(const Kernel& kernel, Step& step) const;
  void add_buffers(const KernelPlan& k, Draft& d);
  /// True if the kernel is invariant in the loop that is being compiled: it gives the same result in all iterations.
  bool is_fixed(const KernelPlan& k) const;
  /// Adds an invariant kernel before the loop.
  void add_before_loop(KernelPlan& k);
  /// Adds a kernel that prepares an operand: before the loop if it is invariant, else to `drafts`.
  void add_preparation(KernelPlan& k, Drafts& drafts);
  /// Adds a packing kernel that the product runs block by block, and returns its name. The product selects the block by the range of
  /// loop 0, so optimisations must keep that loop.
  std::string add_packing(ProductOperand& o, Draft& d);
  /// `key`: the schedule_key of its kernel, or "".
  void add_product(Product& p, const std::string& key, Drafts& drafts);
  /// The operands of a product that earlier steps prepare.
  struct PreparedOperands {
    ValueId b = kNone;
    ValueId starts = kNone;  ///< initial values of rows
    ValueId finite = kNone;  ///< whether all of b is finite, for BlockedProduct::checks_parts
  };
  /// Adds the steps that prepare the operands of a product.
  PreparedOperands prepare_operands(Product& p, const BlockedProduct& call, Drafts& drafts);
  /// Returns the step of a product whose result is written to `result`.
  Draft product_step(Product& p, BlockedProduct call, const PreparedOperands& operands, ValueId result);
  /// Makes epilogue_ part of the product, if that is possible.
  std::optional<Epilogue> take_epilogue(const Product& p, Draft& d);
  void add_micros(const Product& p, const Epilogue* epilogue, BlockedProduct& call);
  FunctionId function_of(const MicroKernel& kernel, const Epilogue* epilogue);
  FunctionId function_of(const Kernel& kernel);
  /// Returns the function of a product; `name`: its name, unless an equal product has one.
  FunctionId function_of(BlockedProduct product, const std::string& name);
  /// Returns the name of the product that is added next.
  std::string next_product() const { return "product" + std::to_string(product_count_); }
  /// Checks a kernel with verify_kernel, and stores the first error in defect_.
  void verify(const Kernel& kernel, const char* stage);
  /// Schedules a kernel whose lanes are chosen.
  void schedule(Kernel& kernel) const;
  /// Applies the schedule by hand of kernel `name`, if there is one for its name or for its key.
  void schedule_by_hand(const std::string& name, Kernel& kernel);
  /// Returns the actions for a kernel or a product that are given by its name or, after those, by its key; nullopt if there are none.
  std::optional<std::string> given_schedule(const std::string& name, const std::string& key);
  /// Returns the schedule_key of a kernel if anything asks for keys, else "".
  std::string key_of(const Kernel& kernel) const;
  /// True if a kernel, whose key is `key`, is a product that is computed by micro-kernels. Such a product has the schedule by hand, if there
  /// is one.
  bool find_scheduled_product(const KernelPlan& plan, const std::string& key, Product& out);
  /// Adds a kernel or a product to the artifact schedules.txt.
  void list_schedule(const std::string& name, const std::string& key, const std::string& actions,
                     const std::vector<std::string>& neighbours);
  /// Returns, as comments, which rules of schedules were applied to a kernel, and why the others were not.
  std::string what_rules_did(Kernel kernel) const;
  /// Returns, as a comment, which steps of the pipeline changed a kernel or made it of another one.
  std::string steps_of(const std::string& name) const;
  FunctionId add_function(FunctionSource source);
  /// Returns the names of ops for messages: "add 'sum.1', tanh".
  std::string names_of(const std::vector<NodeId>& nodes) const;

  // Control flow.
  /// Compiles a block whose arguments have live ranges already, and stores the live ranges of its results in `results`.
  Status child(BlockId id, Drafts& drafts, std::vector<RangeId>& results);
  Status while_loop(const Node& n, Drafts& drafts);
  /// Copies results that are the old value of another variable to temporary memory, before any variable is overwritten.
  void save_permuted(const std::vector<RangeId>& state, std::vector<RangeId>& next, const std::vector<ValueId>& values,
                     Drafts& drafts);
  Status conditional(const Node& n, Drafts& drafts);
  /// Adds a copy for every result of the entry. coalesce_copies removes it if the value can be computed in the result's
  /// memory.
  void finish_entry(Drafts& drafts);

  // Called when all steps are known.
  void coalesce_copies();
  static uint32_t count_places(const Drafts& drafts);
  void resolve(Drafts& drafts, StepList& out);
  Status store_constants();
  void keep_stages();

  const collet_program* program_;
  const Target& target_;
  const Pipeline& pipeline_;
  CompileOptions options_;
  LaunchPlan* plan_;
  std::vector<FunctionSource>& sources_;
  std::string ops_;  ///< names of the ops that are being compiled
  std::vector<ConstantArray>& constant_arrays_;
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
  std::map<GridRadix, FunctionId> radix_sorts_;
  std::map<Kernel, FunctionId> attention_functions_;
  std::map<NodeId, Attention> attentions_;  ///< attentions by the product that gives their result
  std::map<MicroKernel, FunctionId> micros_;
  std::map<BlockedProduct, FunctionId> products_;
  uint32_t product_count_ = 0;  ///< products that have been added
  std::map<std::tuple<MicroKernel, Kernel, uint32_t, ExprId>, FunctionId> epilogues_;
  std::vector<ValueId> constants_;
  uint64_t constant_bytes_ = 0;
  LoopScope* scope_ = nullptr;
  Schedules schedules_;  ///< by hand; those that were applied by the name of a kernel are removed
  Schedules tuned_;      ///< CompileOptions::tuning
  std::vector<std::string_view>
      history_;                           ///< steps that changed the kernel that is being added, or replaced its origin
  const char* why_no_product_ = nullptr;  ///< why micro-kernels do not compute the last kernel that sums products
  /// What the artifact kernels.txt says of how a function was made.
  struct History {
    std::vector<std::string_view> steps;
    const char* why_no_product = nullptr;
  };
  std::map<std::string, History> histories_;  ///< by function, if artifacts are kept
  std::set<std::string> by_hand_;             ///< kernels to which a schedule by hand was applied
  std::set<std::string> listed_;              ///< keys whose neighbours are in list_
  std::string list_;                          ///< the artifact schedules.txt
  Status defect_;                             ///< the first error that `verify` or a schedule by hand found
  /// The epilogue offered to the product that is being added; set to null when the product uses it.
  KernelPlan* epilogue_ = nullptr;
};

}  // namespace collet::codegen
