// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/reduce_module.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/reduce_edits.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo::testing {
namespace {

using Edit = std::function<bool(Module&)>;
using EditOf = std::function<bool(Module&, std::span<const InstrId>)>;

class Reducer {
 public:
  Reducer(const Module& module, const ReduceOptions& options) : options_(options), best_(module.clone()) {
    cost_ = cost_of(*best_);
  }

  Status begin() {
    COLLET_TRY(verify_module(*best_).with_prefix("the module to reduce: "));
    ++tried_;
    is_new(*best_);
    if (!options_.fails(*best_)) return invalid_argument("the fault does not show with the module as it is");
    return ok_status();
  }

  ReduceResult run() {
    bool again = true;
    while (again && !stopped_) {
      again = false;
      if (!drop_dead_) bring_to_life();
      for (const Step& step : kSteps) {
        if (stopped_) break;
        step_ = step.name;
        again |= (this->*step.run)();
      }
    }
    return {std::move(best_), tried_, kept_, stopped_};
  }

 private:
  struct Step {
    std::string_view name;
    bool (Reducer::*run)();
  };
  static const std::vector<Step> kSteps;

  bool is_new(const Module& module) { return seen_.insert(std::hash<std::string>{}(print_module(module))).second; }

  // Decides how dead instructions are treated. If the module shows the fault without them, each later edit drops them too.
  // Else the entry's dead instructions are made results, and this is tried again. If the fault is still in dead instructions, which are
  // then in the body of another computation, they are kept, and the step drop_dead tries to drop them one by one.
  void bring_to_life() {
    for (bool all : {false, true}) {
      std::unique_ptr<Module> live = best_->clone();
      PassContext context;
      if (all && !cut_after(*live, live->entry_computation().order.size())) break;
      if (!eliminate_dead(*live, context).ok()) break;
      live = live->clone();
      drop_dead_ = live->instruction_count() == best_->instruction_count();
      if (drop_dead_) break;
      if (!verify_module(*live).ok() || !options_.fails(*live)) continue;
      drop_dead_ = true;
      best_ = std::move(live);
      cost_ = cost_of(*best_);
      break;
    }
  }

  // Keeps the module that `edit` makes if it costs less and still shows the fault.
  bool attempt(const Edit& edit) {
    if (stopped_ || (options_.stop && options_.stop())) {
      stopped_ = true;
      return false;
    }
    std::unique_ptr<Module> next = best_->clone();
    PassContext context;
    if (!edit(*next)) return false;
    if (drop_dead_ && !eliminate_dead(*next, context).ok()) return false;
    order_computations(*next);
    next = next->clone();  // numbers the instructions without gaps, so that later clones have the same ids
    const Cost cost = cost_of(*next);
    if (!(cost < cost_) || !verify_module(*next).ok() || !is_new(*next)) return false;
    ++tried_;
    const bool fails = options_.fails(*next);
    if (fails) {
      best_ = std::move(next);
      cost_ = cost;
      ++kept_;
      if (options_.smaller) options_.smaller(*best_);
    }
    if (options_.progress) options_.progress({step_, tried_, kept_, best_->instruction_count()});
    return fails;
  }

  // Applies `edit` to as many items of a list as possible: to all at once, then to halves, quarters, and so on.
  bool each(const std::function<std::vector<InstrId>()>& list, const EditOf& edit) {
    bool any = false;
    for (size_t chunk = list().size(); chunk > 0 && !stopped_; chunk /= 2) {
      for (size_t at = 0;;) {
        const std::vector<InstrId> items = list();
        if (at >= items.size() || stopped_) break;
        const auto some = std::span(items).subspan(at, std::min(chunk, items.size() - at));
        const bool done = attempt([&](Module& m) { return edit(m, some); });
        any |= done;
        if (!done || list().size() >= items.size()) at += chunk;
      }
    }
    return any;
  }

  std::vector<InstrId> pick(CompId c, bool (*wanted)(const Module&, const Instruction&)) const {
    std::vector<InstrId> out;
    if (c == CompId::None || index_of(c) >= best_->computation_limit()) return out;
    for (InstrId id : (*best_)[c].order)
      if (wanted(*best_, (*best_)[id])) out.push_back(id);
    return out;
  }

  // ---- steps ----

  bool strip_clutter() {
    bool any = attempt([](Module& m) { return strip(m, true) && strip_layouts(m); });
    if (!any) any = attempt([](Module& m) { return strip(m, true); });
    if (!any) any = attempt([](Module& m) { return strip(m, false); });
    any |= attempt(strip_layouts);
    any |= attempt([](Module& m) {
      m.header().replica_count = m.header().num_partitions = 1;
      return true;
    });
    return any;
  }

  bool cut_end() {
    bool any = false;
    size_t step = best_->entry_computation().order.size() / 2;
    while (step > 0 && !stopped_) {
      const size_t size = best_->entry_computation().order.size();
      if (size > step && attempt([&](Module& m) { return cut_after(m, size - step); }))
        any = true;
      else
        step /= 2;
    }
    return any;
  }

  bool drop_results() {
    const auto list = [&] {
      const Instruction& root = (*best_)[best_->entry_computation().root];
      std::vector<InstrId> out;
      if (root.op == Op::TUPLE)
        for (InstrId o : root.operands)
          if (std::find(out.begin(), out.end(), o) == out.end()) out.push_back(o);
      return out;
    };
    bool any = false;
    if (list().size() > 1) any = each(list, keep_results);
    // Makes an operand of the root the new root, as often as the fault still shows.
    for (bool again = true; again && !stopped_;) {
      again = false;
      const Instruction root = (*best_)[best_->entry_computation().root];
      for (InstrId o : std::vector<InstrId>(root.operands.begin(), root.operands.end()))
        if (attempt([&](Module& m) { return root_at(m, o); })) {
          again = any = true;
          break;
        }
    }
    return any;
  }

  bool replace_instructions() {
    bool any = false;
    // Computations are counted from the end, the entry first, since ids change when computations are removed.
    for (size_t k = 0; k < best_->computations().size() && !stopped_; ++k) {
      const auto which = [&] {
        const auto& all = best_->computations();
        return k < all.size() ? all[all.size() - 1 - k] : CompId::None;
      };
      const auto list = [&] {
        return pick(which(),
                    [](const Module& m, const Instruction& i) { return i.op != Op::PARAMETER && !is_filler(m, i); });
      };
      for (Replacement how : {Replacement::Parameter, Replacement::Zero, Replacement::Operand})
        any |= each(list, [&](Module& m, std::span<const InstrId> some) {
          return substitute(m, m[some[0]].parent, some, how);
        });
    }
    return any;
  }

  bool inline_bodies() {
    bool any = false;
    for (bool again = true; again && !stopped_;) {
      again = false;
      for (CompId c : std::vector<CompId>(best_->computations()))
        for (InstrId id : pick(c, [](const Module&, const Instruction& i) { return !i.called.empty(); })) {
          const size_t branches = (*best_)[id].op == Op::CONDITIONAL ? (*best_)[id].called.size() : 1;
          for (size_t k = 0; k < branches && !again; ++k)
            again = attempt([&](Module& m) { return inline_at(m, c, id, k); });
          if (again) break;
        }
      any |= again;
    }
    return any;
  }

  bool run_simplifying_passes() {
    bool any = false;
    for (const char* name : {"inline_calls", "dissolve_fusions", "remove_markers", "flatten_tuples", "shrink_loops",
                             "unroll_loops", "remove_barriers", "simplify", "fold_constants", "eliminate_common"}) {
      any |= attempt([&](Module& m) {
        PassContext context;
        const auto done = find_pass(name)->run(m, context);
        m.header().has_entry_layout = false;
        return done.ok() && *done;
      });
    }
    return any;
  }

  bool drop_dead() {
    if (drop_dead_) return false;
    bool any = false;
    for (size_t k = 0; k < best_->computations().size() && !stopped_; ++k) {
      const auto list = [&] {
        return k < best_->computations().size() ? unused(*best_, best_->computations()[k]) : std::vector<InstrId>();
      };
      any |= each(list, drop_instructions);
    }
    return any;
  }

  bool drop_unused_parameters() {
    return each([&] { return best_->entry_computation().parameters; }, drop_parameters);
  }

  bool shrink_sizes() {
    bool any = false;
    std::set<int64_t, std::greater<>> sizes;
    const std::function<void(const Shape&)> note = [&](const Shape& shape) {
      for (const Shape& element : shape.elements()) note(element);
      for (int64_t d : shape.dims())
        if (d > 1) sizes.insert(d);
    };
    for (CompId c : best_->computations())
      for (InstrId id : (*best_)[c].order) note((*best_)[id].shape);
    for (int64_t from : sizes) any |= shrink_size(from);
    return any;
  }

  /// Shrinks a size by 4 or 2 as long as the fault still shows, then searches by bisection between the least size that shows
  /// it and the largest that does not.
  bool shrink_size(int64_t from) {
    bool any = false;
    int64_t refused = 0;
    const auto resize = [&](int64_t to) {
      if (to <= refused || to >= from || stopped_) return false;
      if (!attempt([&](Module& m) { return resize_dimensions(m, from, to, true); }) &&
          !attempt([&](Module& m) { return resize_dimensions(m, from, to, false); })) {
        refused = to;
        return false;
      }
      from = to;
      return any = true;
    };
    while (resize(1) || resize(2) || resize(from / 4) || resize(from / 2)) {
    }
    while (from - refused > 1 && !stopped_) resize(refused + (from - refused) / 2);
    return any;
  }

  bool simplify_constants() {
    bool any = false;
    any |= attempt([&](Module& m) {
      bool changed = false;
      for (CompId c : m.computations()) changed |= make_constants(m, std::vector<InstrId>(m[c].order));
      return changed;
    });
    for (size_t k = 0; k < best_->computations().size() && !stopped_; ++k) {
      const auto list = [&] {
        return k < best_->computations().size()
                   ? pick(
                         best_->computations()[k],
                         [](const Module& m, const Instruction& i) {
                           return i.op == Op::CONSTANT && i.shape.is_array() && literal_cost(m.literal(i)) > 0;
                         })
                   : std::vector<InstrId>();
      };
      for (Plain how : {Plain::Zero, Plain::One, Plain::First})
        any |= each(list, [&](Module& m, std::span<const InstrId> some) { return make_plain(m, some, how); });
    }
    return any;
  }

  const ReduceOptions& options_;
  std::unique_ptr<Module> best_;
  Cost cost_{};
  std::string_view step_ = "as it is";
  size_t tried_ = 0, kept_ = 0;
  bool stopped_ = false, drop_dead_ = false;
  std::unordered_set<size_t> seen_;
};

const std::vector<Reducer::Step> Reducer::kSteps = {
    {"leaving out the end", &Reducer::cut_end},
    {"leaving out results", &Reducer::drop_results},
    {"leaving out what says nothing", &Reducer::strip_clutter},
    {"leaving out instructions", &Reducer::replace_instructions},
    {"leaving out what nothing needs", &Reducer::drop_dead},
    {"leaving out parameters", &Reducer::drop_unused_parameters},
    {"inlining bodies", &Reducer::inline_bodies},
    {"simplifying", &Reducer::run_simplifying_passes},
    {"shrinking sizes", &Reducer::shrink_sizes},
    {"simplifying constants", &Reducer::simplify_constants},
};

}  // namespace

Expected<ReduceResult> reduce_module(const Module& module, const ReduceOptions& options) {
  Reducer reducer(module, options);
  COLLET_TRY(reducer.begin());
  return reducer.run();
}

}  // namespace collet::hlo::testing
