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

// Names that a reader gave are made known, so that new ones differ from them; and the module is whole.
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

// The cleaning crew. Folding comes after simplify, which brings constants together; sharing after both have made equal
// what was different; dead code last, for it is all theirs.
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
    // Programs of sums, products and movement.
    "expand_convolution", "expand_factorizations", "expand_linalg", "expand_fft", "expand_dot", "canonicalize_dots",
    "expand_batch_norm", "expand_random", "expand_window", "expand_sort",
    // Their parts.
    "expand_complex", "expand_movement", "expand_convert", "expand_math", "expand_elementwise"};

constexpr Pipeline kPipelines[] = {
    {"prepare", "target-independent: one computation of arrays, row-major, simplified", &prepare},
    {"patterns", "prepare, then groups ops that some devices take as one", &prepare_patterns},
    {"legalize", "expands what the device does not take, until nothing is left to expand", &legalize},
    {"fuse", "proposes fusions and keeps those that the device takes", &propose_fusions},
    {"optimize", "simplify, fold, share and drop until nothing changes", &optimize},
    {"spmd-propagate", "before partitioning: finds a sharding for every value and states it", &spmd_propagate},
    {"spmd-partition", "from whole arrays to what each partition does", &spmd_partition},
    {"canonicalize", "products and convolutions in the form of libraries, movement out of the way", &canonicalize},
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
      "join_async",         // what another queue might have run is run here; its wrappers may hold nothing else
      "inline_calls",       // so that everything below sees through calls
      "dissolve_fusions",   // another compiler's choice for another device
      "normalize_layouts",  // before anything makes shapes of its own, which have no layout
      "remove_markers",     // copies that only changed a layout are the same array now
      "flatten_tuples",     // after copies of tuples are gone, and barriers are all that is left to hold tuples
      "eliminate_dead",     // elements of tuples that nobody looked at
      "pad_dynamic",        // what comes after sees static shapes alone
  };
  int number = 0;
  COLLET_TRY(begin(module, observer));
  COLLET_ASSIGN(const bool first, run_list(module, context, kFirst, observer, number));
  COLLET_ASSIGN(const bool second, clean(module, context, observer, number));
  // Loops once what they hold is simple: written out where they are short, relieved of state that nobody needs. They
  // leave constants and dead code to clean up; what leaves a loop's body may leave state behind that the body no longer
  // reads, and what is simpler may be found to change no more; counting is last, for unrolling and shrinking change what is counted.
  static constexpr std::string_view kLoops[] = {"unroll_loops", "shrink_conditionals", "hoist_invariants",
                                                "shrink_loops"};
  bool loops = false;
  for (int round = 0; round < kMostLoopRounds; ++round) {
    COLLET_ASSIGN(const bool again, run_list(module, context, kLoops, observer, number));
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
    // Claims were made for the module as it stood; each round asks again about what is new.
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
  // Convolutions first: what they leave is movement; products after, for both; then what meets is joined.
  static constexpr std::string_view kForms[] = {"canonicalize_convolutions", "canonicalize_dots", "sink_movement"};
  int number = 0;
  COLLET_TRY(begin(module, observer));
  COLLET_ASSIGN(const bool changed, run_list(module, context, kForms, observer, number));
  COLLET_ASSIGN(const bool cleaned, clean(module, context, observer, number));
  return changed || cleaned;
}

// Removes forms that the SPMD partitioner does not support (asynchronous pairs, fusions, layouts, nested tuples), then
// propagates shardings.
Expected<bool> spmd_propagate(Module& module, PassContext& context, const PassObserver& observer) {
  static constexpr std::string_view kPasses[] = {"join_async", "dissolve_fusions", "normalize_layouts",
                                                 "flatten_tuples", "propagate_shardings"};
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
