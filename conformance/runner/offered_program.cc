// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/offered_program.h"

#include <collet/collet.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>
#include <utility>

#include "conformance/cases/op_case.h"
#include "hlo/base/files.h"
#include "hlo/base/temporary_folder.h"
#include "hlo/ops/flops.h"
#include "hlo/passes/rewriter.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{4} << 30;

// Returns the text of the dump's file with this ending; NOT_FOUND if there is none.
Expected<std::string> read_dump(const std::string& folder, std::string_view ending) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().ends_with(ending)) return read_file(it->path().string(), kMostBytes);
  return not_found("the program was not offered to a device");
}

// True for an op of which a device is asked, or a group of them.
bool is_asked(const hlo::Instruction& instr) {
  if (instr.op == Op::FUSION || instr.op == Op::CUSTOM_CALL) return true;
  if (instr.op == Op::CALL) return instr.as<hlo::CallAttrs>().is_composite;
  return hlo::op_info(instr.op).op_class != hlo::OpClass::EXECUTOR;
}

double elements_of(const hlo::Shape& shape) {
  double elements = shape.is_array() ? static_cast<double>(shape.element_count()) : 0;
  if (shape.is_tuple())
    for (const hlo::Shape& element : shape.elements()) elements += elements_of(element);
  return elements;
}

// Returns why the expected results of an op would take too much memory or time; empty if they do not.
std::string too_large(const hlo::Module& module, const hlo::Instruction& instr) {
  constexpr double kMostElements = 3e7;  // of operands and results; each takes about 100 ns
  // The evaluator does about 10^9 operations in a second, and fewer of types other than f32 and f64.
  constexpr double kMostOperations = 4e10, kMostOfOthers = 1e9;
  double elements = elements_of(instr.shape), operations = hlo::flops_of(module, instr);
  for (const hlo::InstrId operand : instr.operands) elements += elements_of(module[operand].shape);
  if (instr.op == Op::FUSION || instr.op == Op::CALL)
    for (const hlo::InstrId id : module[instr.called[0]].order) operations += hlo::flops_of(module, module[id]);
  if (elements > kMostElements) return fmt::format("its arrays have {:.0f} million elements", elements * 1e-6);
  const Type type = instr.shape.is_array() ? instr.shape.type() : Type::Invalid;
  if (operations > (type == Type::F32 || type == Type::F64 ? kMostOperations : kMostOfOthers))
    return fmt::format("it has {:.0f} thousand million operations", operations * 1e-9);
  return {};
}

}  // namespace

Expected<OfferedProgram> offer_program(const Session& session, const std::string& path) {
  OfferedProgram out;
  COLLET_ASSIGN(std::string bytes, read_file(path, kMostBytes));
  bytes = session.unpacked(std::move(bytes));
  const TemporaryFolder folder;
  if (folder.path().empty()) return Status(Code::Unavailable, "cannot make a folder for temporary files");
  Expected<Program> program = session.compile(bytes, {.file = path,
                                                      .elided = COLLET_ELIDED_COUNTER,
                                                      .one_participant = true,
                                                      .dump_to = folder.path(),
                                                      .dump_only = ".offered.hlo",
                                                      .ignore_costs = true});
  out.compiled = program.status();
  if (program.ok()) out.program = *std::move(program);
  const Expected<std::string> text = read_dump(folder.path(), ".offered.hlo");
  if (!text.ok()) return out.compiled.ok() ? text.status() : out.compiled;
  COLLET_ASSIGN(out.module, hlo::parse_module(*text, path));
  return out;
}

std::string text_without_names(const std::string& text) {
  const auto module = hlo::parse_module(text, "case");
  if (!module.ok()) return text;
  (*module)->set_name("case");
  return hlo::print_module(**module, {.style = hlo::PrintStyle::Canonical});
}

ProgramOps ops_of_program(const hlo::Module& offered, std::string_view name) {
  ProgramOps out;
  std::unordered_set<std::string> seen;
  std::set<std::string> left_out;
  for (const hlo::CompId comp : hlo::flow_computations(offered)) {
    for (const hlo::InstrId id : offered[comp].order) {
      const hlo::Instruction& instr = offered[id];
      if (!is_asked(instr)) continue;
      ++out.ops;
      OpCases cases;
      cases.why_not = too_large(offered, instr);
      if (cases.why_not.empty()) cases = cases_of_op(offered, id, name);
      if (cases.cases.empty()) {
        const std::string what = instr.op == Op::CUSTOM_CALL
                                     ? fmt::format("custom-call '{}'", instr.as<hlo::CustomCallAttrs>().target)
                                     : std::string(hlo::op_info(instr.op).text);
        left_out.insert(what + ": " + cases.why_not);
        continue;
      }
      if (!seen.insert(text_without_names(cases.cases[0].text)).second) continue;
      std::move(cases.cases.begin(), cases.cases.end(), std::back_inserter(out.cases));
    }
  }
  out.left_out.assign(left_out.begin(), left_out.end());
  return out;
}

}  // namespace collet::conformance
