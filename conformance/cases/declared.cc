// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/declared.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/op_case.h"
#include "hlo/passes/pipeline.h"
#include "hlo/patterns/declared_pattern.h"
#include "hlo/text/parser.h"

namespace collet::conformance {
namespace {

constexpr uint64_t kSeed = 1;

// Returns the call that takes the place of all ops; None if the pattern was not found, or not all ops are part of it.
hlo::InstrId only_call(const hlo::Module& module) {
  hlo::InstrId out = hlo::InstrId::None;
  for (const hlo::InstrId id : module.entry_computation().order) {
    const Op op = module[id].op;
    if (op == Op::PARAMETER || op == Op::TUPLE || op == Op::GET_TUPLE_ELEMENT) continue;
    if (op != Op::CALL || out != hlo::InstrId::None) return hlo::InstrId::None;
    out = id;
  }
  return out;
}

}  // namespace

Expected<std::vector<Case>> cases_of_pattern(std::string_view text, size_t instances) {
  COLLET_ASSIGN(const std::shared_ptr<const hlo::patterns::DeclaredPattern> pattern,
                hlo::patterns::DeclaredPattern::read(text));
  COLLET_ASSIGN(const auto programs, pattern->instances(kSeed, instances));
  std::vector<Case> out;
  for (const auto& one : programs) {
    COLLET_ASSIGN(const std::unique_ptr<hlo::Module> module, hlo::parse_module(one.text, pattern->name()));
    hlo::PassContext context;
    context.keep_composite = [](const hlo::Module&, hlo::InstrId) { return true; };
    context.wants_pattern = [](std::string_view, uint32_t) { return false; };
    context.declared_patterns = {pattern};
    constexpr std::string_view kClean[] = {"eliminate_dead"};
    COLLET_TRY(hlo::prepare_patterns(*module, context).status());
    COLLET_TRY(hlo::run_passes(*module, context, kClean).status());
    const hlo::InstrId call = only_call(*module);
    if (call == hlo::InstrId::None)
      return internal_error(
          fmt::format("pattern '{}' is not found in a program of its own, with {}", pattern->name(), one.values));
    std::string values = one.values;
    std::replace(values.begin(), values.end(), ' ', ',');
    for (Case& each : cases_of_op(*module, call, "pattern").cases) {
      const std::string kind = each.name.substr(each.name.rfind('/') + 1);
      each.name = fmt::format("{}/{}/{}/{}", pattern->name(), hlo::type_info(each.type).text, values, kind);
      out.push_back(std::move(each));
    }
  }
  return out;
}

}  // namespace collet::conformance
