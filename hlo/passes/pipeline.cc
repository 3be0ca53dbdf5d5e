// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/pipeline.h"

#include <array>
#include <chrono>

#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

constexpr int kMostRounds = 8;
constexpr int kMostLoopRounds = 4;
constexpr int kMostExpansions = 24;

Status check(const Module& module, const PassObserver& observer, std::string_view when) {
  Status status;
  if (observer.verify) {
    status = observer.verify(module);
  } else {
#ifndef NDEBUG
    status = verify_module(module);
#endif
  }
  return status.ok() ? status : internal_error(std::string(when) + ": " + status.to_string());
}

// Registers the names that a reader gave to instructions, so that new names differ from them, and verifies the module.
Status begin(Module& module, const PassObserver& observer) {
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) module.note_name(module[id].name);
  return check(module, observer, "before the first pass");
}

Expected<bool> run_pass(Module& module, PassContext& context, const PassInfo& pass, const PassObserver& observer,
                        int& number) {
  if (observer.before) observer.before(pass.name, number, module);
  const auto start = std::chrono::steady_clock::now();
  auto changed = pass.run(module, context);
  if (!changed.ok()) return changed.status().with_prefix("pass " + std::string(pass.name) + ": ");
  if (observer.runs) {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    observer.runs->push_back({pass.name, time.count(), *changed, module.instruction_count()});
  }
  if (observer.after) observer.after(pass.name, number, module, *changed);
  ++number;
  if (*changed) COLLET_TRY(check(module, observer, "after pass " + std::string(pass.name)));
  return *changed;
}

Expected<bool> run_list(Module& module, PassContext& context, std::span<const std::string_view> names,
                        const PassObserver& observer, int& number) {
  bool any = false;
  for (std::string_view name : names) {
    const PassInfo* pass = find_pass(name);
    if (!pass) return not_found("no pass is called " + std::string(name));
    COLLET_ASSIGN(const bool changed, run_pass(module, context, *pass, observer, number));
    any |= changed;
  }
  return any;
}

// The passes that clean up after others. Folding comes after simplify, which brings constants together; common
// subexpressions are eliminated after both have made more values equal; dead code is removed last, because all three
// leave some.
constexpr std::string_view kClean[] = {"simplify", "fold_constants", "eliminate_common", "eliminate_dead"};

Expected<bool> clean(Module& module, PassContext& context, const PassObserver& observer, int& number) {
  bool any = false;
  for (int round = 0; round < kMostRounds; ++round) {
    COLLET_ASSIGN(const bool changed, run_list(module, context, kClean, observer, number));
    if (!changed) break;
    any = true;
  }
  return any;
}

// Passes whose results are expanded by others come first.
constexpr std::string_view kExpand[] = {
    // Ops that expand into sums, products and data movement.
    "expand_convolution", "expand_factorizations", "expand_linalg", "expand_fft", "expand_dot", "canonicalize_dots",
    "expand_batch_norm", "expand_random", "expand_window", "expand_sort",
    // Ops that the expansions above may produce.
    "expand_complex", "expand_movement", "expand_convert", "expand_math", "expand_elementwise"};

constexpr Pipeline kPipelines[] = {
    {"prepare", "target-independent: one computation of arrays, row-major, simplified", &prepare},
    {"patterns", "prepare, then groups ops that some devices support as one op", &prepare_patterns},
    {"legalize", "expands ops that the device does not support, until no expansion applies", &legalize},
    {"fuse", "proposes fusions and keeps those that the device accepts", &propose_fusions},
    {"optimize", "simplifies, folds, and removes duplicate and unused instructions until nothing changes", &optimize},
    {"spmd-propagate", "finds a sharding for every value; the first part of spmd-partition", &spmd_propagate},
    {"spmd-partition", "rewrites a program with shardings as the program of one partition", &spmd_partition},
    {"canonicalize", "rewrites products and convolutions to library forms, and sinks data movement", &canonicalize},
};

}  // namespace

Expected<bool> run_passes(Module& module, PassContext& context, std::span<const std::string_view> names,
                          const PassObserver& observer) {
  int number = 0;
  COLLET_TRY(begin(module, observer));
  return run_list(module, context, names, observer, number);
}

Expected<bool> prepare(Module& module, PassContext& context, const PassObserver& observer) {
  static constexpr std::string_view kFirst[] = {
      // Everything runs on one queue; also, the computation of an asynchronous op may hold no other op.
      "join_async",
      "inline_calls",       // later passes then need not handle calls
      "dissolve_fusions",   // they were chosen by another compiler for another device
      "split_starts",       // later passes and devices see scalar start indices only
      "normalize_layouts",  // before passes that create shapes, which have no layout
      "remove_markers",     // a copy that only changed a layout has no effect now
      "flatten_tuples",     // after copies of tuples are removed, so that only barriers still hold tuples
      "eliminate_dead",     // removes tuple elements that nobody reads
      "pad_dynamic",        // later passes see static shapes only
  };
  int number = 0;
  COLLET_TRY(begin(module, observer));
  COLLET_ASSIGN(const bool first, run_list(module, context, kFirst, observer, number));
  COLLET_ASSIGN(const bool second, clean(module, context, observer, number));
  // refine_functions comes once constants are folded, which tells it what is added to what. swap_dots comes after simplify, which joins consecutive transposes, and so does split_phases, since simplify makes
  // dilation of padding. Loop passes run once the loop bodies are
  // simplified: short loops are unrolled, and unneeded state is dropped. They leave constants and dead code, so
  // clean-up follows. Hoisting may leave state that the body no longer reads, and simpler bodies may show more
  // invariants, so shrink_loops comes after it. Trips are counted last, because unrolling and shrinking change the
  // loops.
  static constexpr std::string_view kSimplified[] = {
      "refine_functions", "swap_dots",    "sink_movement",       "split_phases",     "split_complex",
      "reduce_as_trees",  "unroll_loops", "shrink_conditionals", "hoist_invariants", "shrink_loops"};
  bool loops = false;
  for (int round = 0; round < kMostLoopRounds; ++round) {
    COLLET_ASSIGN(const bool again, run_list(module, context, kSimplified, observer, number));
    if (!again) break;
    loops = true;
    COLLET_TRY(clean(module, context, observer, number).status());
  }
  COLLET_ASSIGN(const bool counted,
                run_list(module, context, std::array{std::string_view("count_trips")}, observer, number));
  return first || second || loops || counted;
}

Expected<bool> prepare_patterns(Module& module, PassContext& context, const PassObserver& observer) {
  COLLET_ASSIGN(const bool prepared, prepare(module, context, observer));
  int number = 0;
  COLLET_ASSIGN(const bool found,
                run_list(module, context, std::array{std::string_view("find_patterns")}, observer, number));
  return prepared || found;
}

Expected<bool> legalize(Module& module, PassContext& context, const PassObserver& observer) {
  int number = 0;
  COLLET_TRY(begin(module, observer));
  COLLET_ASSIGN(bool any, run_list(module, context, std::array{std::string_view("remove_barriers")}, observer, number));
  for (int round = 0; round < kMostExpansions; ++round) {
    // Claims were made for the instructions of the last round; each round asks again about new instructions.
    if (context.prepare_claims) context.prepare_claims(module);
    context.claims_end = static_cast<uint32_t>(module.instruction_limit());
    COLLET_ASSIGN(const bool expanded, run_list(module, context, kExpand, observer, number));
    if (!expanded) return any;
    any = true;
    COLLET_ASSIGN(const bool cleaned, clean(module, context, observer, number));
    (void)cleaned;
  }
  return internal_error("expanding did not end after " + std::to_string(kMostExpansions) + " rounds");
}

Expected<bool> optimize(Module& module, PassContext& context, const PassObserver& observer) {
  int number = 0;
  COLLET_TRY(begin(module, observer));
  return clean(module, context, observer, number);
}

Expected<bool> propose_fusions(Module& module, PassContext& context, const PassObserver& observer) {
  int number = 0;
  COLLET_TRY(begin(module, observer));
  return run_list(module, context, std::array{std::string_view("fuse")}, observer, number);
}

Expected<bool> canonicalize(Module& module, PassContext& context, const PassObserver& observer) {
  // Convolutions come first, because their rewriting produces data movement; products come next; then sink_movement
  // joins movements that meet.
  static constexpr std::string_view kForms[] = {"canonicalize_convolutions", "canonicalize_dots", "sink_movement"};
  int number = 0;
  COLLET_TRY(begin(module, observer));
  COLLET_ASSIGN(const bool changed, run_list(module, context, kForms, observer, number));
  COLLET_ASSIGN(const bool cleaned, clean(module, context, observer, number));
  return changed || cleaned;
}

// Removes forms that the SPMD partitioner does not support (asynchronous pairs, fusions, layouts, nested tuples) or only
// with replicated operands (start indices in one array), then propagates shardings.
Expected<bool> spmd_propagate(Module& module, PassContext& context, const PassObserver& observer) {
  static constexpr std::string_view kPasses[] = {"join_async",        "dissolve_fusions", "split_starts",
                                                 "normalize_layouts", "flatten_tuples",   "propagate_shardings"};
  return run_passes(module, context, kPasses, observer);
}

Expected<bool> spmd_partition(Module& module, PassContext& context, const PassObserver& observer) {
  static constexpr std::string_view kPasses[] = {"partition_spmd", "eliminate_dead"};
  COLLET_ASSIGN(const bool propagated, spmd_propagate(module, context, observer));
  COLLET_ASSIGN(const bool partitioned, run_passes(module, context, kPasses, observer));
  return propagated || partitioned;
}

std::span<const Pipeline> pipelines() {
  return kPipelines;
}

const Pipeline* find_pipeline(std::string_view name) {
  for (const Pipeline& pipeline : kPipelines)
    if (pipeline.name == name) return &pipeline;
  return nullptr;
}

}  // namespace collet::hlo
