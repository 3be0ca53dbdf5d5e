// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/program_tasks.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <system_error>

#include "conformance/cases/op_case.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/run_case.h"
#include "conformance/runner/sequence.h"
#include "hlo/base/files.h"
#include "hlo/text/parser.h"

namespace collet::conformance {

std::string blame_in_group(const Case& one, const Session& session, uint64_t seed,
                           const std::vector<std::string>& worker) {
  constexpr size_t kMostNamed = 3;
  constexpr double kSecondsOfOp = 10;
  const auto module = hlo::parse_module(one.text, one.name);
  if (!module.ok()) return {};
  const hlo::Instruction& root = (**module)[(*module)->entry_computation().root];
  if (root.called.empty()) return {};
  std::string names;
  size_t named = 0, ran = 0, after_others = 0;
  for (const hlo::InstrId id : (**module)[root.called[0]].order) {
    const hlo::Instruction& instr = (**module)[id];
    if (hlo::op_info(instr.op).op_class == hlo::OpClass::EXECUTOR) continue;
    for (const Case& alone : cases_of_op(**module, id, "group").cases) {
      const Fields fields = run_case(alone, session, seed);
      ++ran;
      if (find_field(fields, "status") != "fail") continue;
      if (!last_fails(worker, {alone}, kSecondsOfOp).value_or(true)) {
        ++after_others;
        continue;
      }
      names += fmt::format("{}{} '{}'", named ? ", " : "", hlo::op_info(instr.op).text, instr.name);
      ++named;
      break;
    }
    if (named == kMostNamed) break;
  }
  if (named > 0) return "; alone are wrong, too: " + names;
  if (after_others > 0)
    return "; ops of it are wrong only after other ops ran: each of them alone in a new process is right";
  return ran > 0 ? "; each of its ops alone is right" : "";
}

// Answers a task that asks for the cases of a program: the field `cases` is a file of them, `note` describes the program.
Fields offer_cases(std::string_view task, const Session& session) {
  const Fields asked = decode_fields(task);
  const std::string path(find_field(asked, "path")), name(find_field(asked, "name"));
  std::error_code error;
  if (std::filesystem::is_directory(path, error))  // find_programs has found that it may not look into it
    return {{"unread", path + " cannot be read: " + std::make_error_code(std::errc::permission_denied).message()}};
  const Expected<std::string> bytes = read_file(path, uint64_t{4} << 30);
  if (!bytes.ok()) return {{"unread", bytes.status().to_string()}};
  if (is_case_file(*bytes)) return {{"cases", *bytes}, {"note", "cases of an earlier run"}};
  if (const Status read = Session::can_read(session.unpacked(*bytes), {.file = path, .elided = COLLET_ELIDED_COUNTER});
      !read.ok())
    return {{"unread", read.to_string()}};
  std::vector<Case> cases = {{.name = fmt::format("{}{}", kWholeProgram, name), .op = Op::CALL, .program = path}};
  const Expected<OfferedProgram> offered = offer_program(session, path);
  if (!offered.ok()) return {{"cases", case_file_text(cases)}, {"note", offered.status().to_string()}};
  ProgramOps ops = ops_of_program(*offered->module, name);
  std::string note = fmt::format("{} ops, {} cases", ops.ops, ops.cases.size() + 1);
  for (const std::string& line : ops.left_out) note += "; no case for " + line;
  std::move(ops.cases.begin(), ops.cases.end(), std::back_inserter(cases));
  return {{"cases", case_file_text(cases)}, {"note", note}};
}

}  // namespace collet::conformance
