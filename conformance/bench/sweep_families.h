// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// \file
/// The table of what `collet bench --sweep` measures: families of programs, each with parameters. One parameter is swept while the
/// others keep their usual values.

namespace collet::bench {

/// How a program's arguments are made.
struct SweepInputs {
  int64_t modulo = 0;     ///< integers are from 0 to modulo - 1; 0: from 0 to 9
  bool definite = false;  ///< square matrices are symmetric and positive definite
  bool operator==(const SweepInputs&) const = default;
};

/// One program of a family.
struct SweepProgram {
  std::string text;       ///< HLO
  double operations = 0;  ///< useful operations, as f32 operations of the peak: a multiply-add counts as two
  SweepInputs inputs = {};
  double moved = 0;  ///< bytes that must be moved; 0: all arguments and results
};

struct SweepParameter {
  std::string name;
  std::vector<std::string> values;  ///< in an order in which neighbours should cost about the same
  size_t usual = 0;                 ///< index of the value that it has while others are swept
  bool fixed = false;               ///< swept by the fixed part, too
};

/// A choice of a value for each parameter of a family.
class SweepChoice {
 public:
  explicit SweepChoice(const std::vector<SweepParameter>& parameters) : parameters_(&parameters) {
    for (const SweepParameter& p : parameters) values_.push_back(p.values[p.usual]);
  }
  void set(size_t parameter, const std::string& value) { values_[parameter] = value; }
  /// Returns the value of a parameter, which the family has.
  const std::string& text(const std::string& name) const;
  int64_t number(const std::string& name) const { return std::stoll(text(name)); }

 private:
  const std::vector<SweepParameter>* parameters_;
  std::vector<std::string> values_;
};

struct SweepFamily {
  std::string name;
  std::vector<SweepParameter> parameters;
  /// Makes the program of a choice; nothing if the values do not fit together.
  std::optional<SweepProgram> (*make)(const SweepChoice& choice);
};

const std::vector<SweepFamily>& sweep_families();

}  // namespace collet::bench
