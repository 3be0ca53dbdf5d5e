// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/passes/pattern_graph.h"
#include "hlo/patterns/choose.h"
#include "hlo/patterns/match_form.h"
#include "hlo/patterns/pattern_text.h"

/// \file
/// A pattern that a backend declares as HLO text with variables; docs/patterns.md describes the language.
///
/// A program is simplified before patterns are looked for, so the text is, too: once for each combination of types, choices
/// and ranks, and of sizes that are 1. Where the ops of such a skeleton match, the shapes of the parameters and the constants
/// give the values of the variables. Then the text with these values, simplified, must be the same as the program's ops.

namespace collet::hlo::patterns {

class DeclaredPattern : public PatternMatcher {
 public:
  /// Reads the text of a pattern: one or more modules, its forms. The first has the pattern's name; all have as many parameters
  /// and results. Errors name the line.
  static Expected<std::shared_ptr<const DeclaredPattern>> read(std::string_view text);

  /// The pattern's name.
  std::string_view name() const override { return name_; }
  /// The text that was read.
  std::string_view text() const override { return text_; }
  /// Matches a group whose first result is `root`. Thread-safe.
  std::optional<Match> match(const Graph& graph, InstrId root) const override { return match(graph, root, nullptr); }
  /// Does the same, and remembers in `miss` how far it came.
  std::optional<Match> match(const Graph& graph, InstrId root, NearestMiss* miss) const;

  /// A program that is the pattern alone.
  struct Instance {
    std::string text;    ///< HLO
    std::string values;  ///< of the variables: "T=f32 N=16"
  };
  /// Returns at most `count` instances, different ones: each form and combination of types, choices and ranks first, then
  /// other sizes. `seed` draws sizes and constants.
  Expected<std::vector<Instance>> instances(uint64_t seed, size_t count) const;

 private:
  /// A form with types, choices, ranks and units.
  struct Skeleton {
    const PatternText* text = nullptr;
    Bindings combination;
    std::unique_ptr<Module> module;  ///< simplified, with some sizes and constants
    /// The constants of `module` that stand for variables: the instruction, and the variable.
    std::vector<std::pair<InstrId, size_t>> constants;
  };
  /// A form, and the combinations of its types, choices and ranks.
  struct Form {
    PatternText text;
    std::vector<Bindings> combinations;
  };

  DeclaredPattern() = default;
  static Expected<Skeleton> make_skeleton(const PatternText& text, const Bindings& combination, const Units& units);
  /// Returns the skeleton of a combination; null if there is none.
  std::shared_ptr<const Skeleton> skeleton(size_t form, size_t combination, const Units& units) const;
  /// Returns the simplified module of a text; null if it cannot be read.
  std::shared_ptr<const Module> simplified(const std::string& text) const;
  std::optional<Match> match_skeleton(const Graph& graph, InstrId root, const Skeleton& skeleton,
                                      NearestMiss* miss) const;

  std::string name_, text_;
  std::vector<Form> forms_;
  mutable std::mutex mutex_;  // for what follows
  mutable std::unordered_map<std::string, std::shared_ptr<const Skeleton>> skeletons_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Module>> simplified_;
};

}  // namespace collet::hlo::patterns
