// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "reference_backends/cpu/fusion.h"
#include "reference_backends/cpu/library.h"
#include "reference_backends/cpu/planner.h"
#include "reference_backends/cpu/storage.h"
#include "sdk/codegen/contraction.h"
#include "sdk/codegen/kernels.h"

namespace collet::cpu {

class ProductCall;

/// Makes a plan of a program: first steps over webs, then, when the life of each is known, over memory.
class Compiler {
 public:
  Compiler(const collet_program* program, codegen::Jit& jit, const PlanOptions& options)
      : program_(program), jit_(jit), options_(options), plan_(std::make_unique<Plan>()) {}

  codegen::Status run(std::unique_ptr<Plan>& out);

 private:
  using Block = codegen::Block;
  using BlockId = codegen::BlockId;
  using Graph = codegen::Graph;
  using Kernel = codegen::Kernel;
  using KernelPlan = codegen::KernelPlan;
  using Node = codegen::Node;
  using Status = codegen::Status;
  using ValueId = codegen::ValueId;

  /// A step before memory is known.
  struct Draft {
    Step step;
    std::vector<WebId> webs;  ///< becomes places
    int function = -1;        ///< of the kernel functions
    int tail = -1;            ///< of the kernel functions: runs after the other
    std::vector<std::vector<Draft>> children;
  };
  using Drafts = std::vector<Draft>;

  /// The loop whose body is being compiled.
  struct LoopScope {
    int begin = 0;               ///< when its variables have their first values
    Drafts* before = nullptr;    ///< where steps go that run once
    std::vector<ValueId> fixed;  ///< variables of the body that no turn changes
    std::vector<WebId> kept;     ///< what those steps leave for all turns
  };

  /// A micro-kernel that a product needs.
  struct Micro {
    codegen::MicroKernel kernel;  ///< no rows: the epilogue alone
    const codegen::Epilogue* epilogue = nullptr;
    codegen::MicroFunction* target = nullptr;
    int number = 0;  ///< with an epilogue: of those of this program
  };

  // Values and their webs.
  uint64_t bytes_of(ValueId v) const { return static_cast<uint64_t>(graph_.type(v).bytes()); }
  /// The web of a value in memory; constants get theirs when first used.
  WebId web(ValueId v);
  WebId read(ValueId v);
  WebId write(ValueId v);
  bool leaf(ValueId v) const { return block_plan_.in_memory[v] || graph_.value(v).constant != nullptr; }
  /// A value of the planner's own, in memory.
  ValueId temporary(uint32_t element, codegen::Dims dims);

  // Blocks, units and what each becomes.
  Status block(BlockId id, Drafts& drafts);
  Status unit(const Unit& u, Drafts& drafts);
  Status node(const Node& n, Drafts& drafts);
  Status library(const Node& n, Drafts& drafts);
  WebId copy(WebId from, ValueId to, Drafts& drafts);
  WebId copy_webs(WebId from, WebId to, uint64_t bytes, Drafts& drafts);

  /// Who reads each value of a block, and which unit holds each node.
  struct Readers {
    std::map<ValueId, std::vector<codegen::NodeId>> users;
    std::map<codegen::NodeId, size_t> unit_of;
  };
  /// The unit that alone reads what unit `at`, a product, writes, element by element, and could run with it; the number
  /// of units where there is none.
  size_t epilogue_of(const Block& block, const std::vector<Unit>& units, const Readers& readers, size_t at,
                     KernelPlan& kernel) const;
  Readers readers_in(const Block& block, const std::vector<Unit>& units) const;
  /// Whether all that a unit reads is in memory by now.
  bool is_ready(const Unit& u) const;
  /// Runs first what `kernel`, the epilogue of unit `at`, reads and what would come later; `there` is false, and nothing
  /// is done, where that depends on more.
  Status make_ready(const std::vector<Unit>& units, const Readers& readers, const KernelPlan& kernel, size_t at,
                    std::vector<bool>& done, Drafts& drafts, bool& there);
  /// The only unit that reads `v`, itself or through what is inlined in it; SIZE_MAX where there is none.
  size_t only_reader(const Block& block, const Readers& readers, codegen::ValueId v) const;

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
  void add_packing(codegen::ProductOperand& o, codegen::KernelFunction* target, Draft& d);
  void add_product(codegen::Product& p, Drafts& drafts);
  /// epilogue_ as part of the product, where that is possible; else null.
  const codegen::Epilogue* take_epilogue(const codegen::Product& p, Draft& d);
  void add_micros(const codegen::Product& p, const codegen::Epilogue* epilogue, ProductCall& call);
  int function_of(const Kernel& kernel);

  // Control flow.
  /// Compiles a block whose arguments have webs already; leaves its results' webs in `results`.
  Status child(BlockId id, Drafts& drafts, std::vector<WebId>& results);
  Status while_loop(const Node& n, Drafts& drafts);
  /// Results that are another variable's old content are saved before any variable is written.
  void save_permuted(const std::vector<WebId>& state, std::vector<WebId>& next, const std::vector<ValueId>& values,
                     Drafts& drafts);
  Status conditional(const Node& n, Drafts& drafts);
  /// Every result gets a copy of its value, which vanishes where the value can be computed in place.
  void finish_entry(Drafts& drafts);

  // When all steps are known.
  void unite_copies();
  /// Micro-kernels that all programs share; leaves those that are this program's own, each once.
  Status shared_micros(std::vector<const Micro*>& own);
  Status compile_functions();
  static uint32_t count_places(const Drafts& drafts);
  void resolve(Drafts& drafts, Sequence& out);
  Status store_constants();

  const collet_program* program_;
  codegen::Jit& jit_;
  PlanOptions options_;
  Graph graph_;
  std::unique_ptr<Plan> plan_;
  BlockPlan block_plan_;
  Storages storages_;
  std::vector<WebId> web_;
  int time_ = 0;
  std::vector<std::pair<WebId, WebId>> copies_;
  std::map<Kernel, int> function_numbers_;
  std::vector<const Kernel*> functions_;
  std::vector<codegen::KernelFunction> addresses_;
  std::vector<Comparator> comparators_;
  std::vector<Micro> micros_;
  std::vector<std::unique_ptr<codegen::Epilogue>> epilogues_;
  std::vector<std::pair<int, codegen::KernelFunction*>> pack_functions_;
  std::vector<ValueId> constants_;
  uint64_t constant_bytes_ = 0;
  LoopScope* scope_ = nullptr;
  KernelPlan* epilogue_ = nullptr;  ///< what the product that is being added may take with it; then null
};

}  // namespace collet::cpu
