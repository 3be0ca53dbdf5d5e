// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/text/printer.h"

namespace collet::hlo::text {

/// Writes the text of one module to `out`. printer.cc wraps it in the functions of printer.h.
class Printer {
 public:
  Printer(const Module& module, const PrintOptions& options, std::string& out)
      : module_(module), options_(options), out_(out) {}

  void module_text();
  void computation(CompId id);
  void instruction(InstrId id);
  /// Chooses a new name, with a number at its end, for each name that occurs twice or that HLO text cannot hold. Must be
  /// called before computations are printed.
  void find_double_names();

 private:
  bool canonical() const {
    return options_.style == PrintStyle::Canonical || options_.style == PrintStyle::Fingerprint;
  }
  bool large_constants() const { return options_.large_constants && options_.style != PrintStyle::Fingerprint; }
  void header();
  void entry_layout();
  void aliases();
  void spmd(std::string_view name, const std::vector<bool>& list);
  void fingerprint();
  void signature(const Computation& c);
  void body(CompId id, int indent);
  void line(InstrId id, int indent);
  void operands(const Instruction& instr);
  void regions(const Instruction& instr, int indent);
  void called(CompId id, int indent);
  void instruction_name(InstrId id);
  void computation_name(CompId id);
  void name(std::string_view text);

  void fields(const Instruction& instr);
  void field(const FieldInfo& f, const void* attrs);
  void frontend(std::span<const FrontendAttribute> list);
  void metadata(const Metadata& m);
  void accuracy(const ResultAccuracy& accuracy);
  void extras(const Extras& e);

  const Module& module_;
  const PrintOptions& options_;
  std::string& out_;
  std::unordered_map<uint32_t, std::string> instruction_names_;  // names that replace the instruction's own, by id
  std::unordered_map<uint32_t, std::string> computation_names_;  // the same for computations
  std::vector<uint32_t> number_;  // position of each instruction in its computation; for the canonical style only
};

}  // namespace collet::hlo::text
