// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/run_entry.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "conformance/corpus/judge.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Module;
using hlo::testing::Index;
using hlo::testing::IndexEntry;
using hlo::testing::ModelCase;

constexpr int64_t kMostLinesAway = 2;

EntryOutcome failed(std::string detail) {
  return {CorpusStatus::Fail, std::move(detail)};
}

Expected<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found(path + " cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string first_line(std::string text) {
  if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text;
}

EntryOutcome expect_refusal(const IndexEntry& entry, const std::string& text) {
  Diagnostics diagnostics(entry.file);
  const std::unique_ptr<Module> module = hlo::parse_module(text, {.file_name = entry.file}, diagnostics);
  if (module || diagnostics.empty()) {
    return failed(
        fmt::format("it was read; it should be refused at line {}: {}", entry.line, first_line(entry.message)));
  }
  const Diagnostic& first = diagnostics.list().front();
  const std::string where = fmt::format("refused at line {}: {}", first.line, first_line(first.message));
  if (std::abs(static_cast<int64_t>(first.line) - entry.line) <= kMostLinesAway) return {CorpusStatus::Pass, where};
  return failed(fmt::format("{}; expected at line {}: {}", where, entry.line, first_line(entry.message)));
}

// Hundreds of megabytes of numbers say nothing more about reading and printing than a few do.
hlo::PrintOptions options_for(const Module& module) {
  constexpr int64_t kMostConstantBytes = int64_t{1} << 24;
  int64_t bytes = 0;
  for (const hlo::CompId computation : module.computations()) {
    for (const hlo::InstrId id : module[computation].order) {
      if (module[id].op == hlo::Op::CONSTANT) bytes += module[id].shape.byte_size();
    }
  }
  return {.large_constants = bytes <= kMostConstantBytes};
}

// print(parse(text)) is a fixed point of print and parse.
EntryOutcome expect_round_trip(const IndexEntry& entry, const std::string& text) {
  const Expected<std::unique_ptr<Module>> module = hlo::parse_module(text, entry.file);
  if (!module.ok()) return failed("it was refused: " + first_line(module.status().message()));
  const hlo::PrintOptions style = options_for(**module);
  const std::string printed = hlo::print_module(**module, style);
  const Expected<std::unique_ptr<Module>> again = hlo::parse_module(printed, "what was printed");
  if (!again.ok()) return failed("what was printed was refused: " + first_line(again.status().message()));
  if (hlo::print_module(**again, style) != printed) return failed("printing it twice gives two texts");
  const Status verified = hlo::verify_module(**module);
  return {CorpusStatus::Pass, verified.ok() ? "" : "the verifier says: " + first_line(verified.message())};
}

std::string share_text(const Agreement& agreement) {
  return agreement.share == 0 ? "exact" : fmt::format("largest error {:.2g} of what is allowed", agreement.share);
}

// Constants that the text leaves out are filled by the reader's rule; written out, they reach the backend as any others.
Expected<std::string> with_constants(std::string text, ProgramOptions& options) {
  if (text.find("{...}") == std::string::npos) return text;
  hlo::ParseOptions parse{.file_name = options.file};
  parse.floats_as_f64 = std::exchange(options.floats_as_f64, false);
  COLLET_ASSIGN(const std::unique_ptr<Module> module, hlo::parse_module(text, options.file, parse));
  return hlo::print_module(*module);
}

Expected<std::vector<Literal>> run(const std::string& text, ProgramOptions options, const Session& session,
                                   const std::vector<Literal>& inputs) {
  COLLET_ASSIGN(const std::string whole, with_constants(text, options));
  COLLET_ASSIGN(const Program program, session.compile(whole, options));
  return program.run(inputs);
}

EntryOutcome expect_result(const Index& index, const IndexEntry& entry, const std::string& text,
                           const Session& session) {
  const Expected<std::vector<Literal>> expected = hlo::testing::expected_results(index, entry);
  if (!expected.ok()) return failed(expected.status().to_string());
  // The results were made by one device, also of modules that ask for several.
  const ProgramOptions options{.file = entry.file, .one_participant = true};
  const Expected<std::vector<Literal>> got = run(text, options, session, hlo::testing::inputs_by_type(entry.inputs));
  if (!got.ok()) return failed(got.status().to_string());
  const Agreement agreement = agrees_with_index(*expected, *got);
  return agreement.wrong.empty() ? EntryOutcome{CorpusStatus::Pass, share_text(agreement)} : failed(agreement.wrong);
}

EntryOutcome judge_model(const ModelCase& model, const std::string& text, const Session& session) {
  const ProgramOptions options{.file = model.program};
  const Expected<std::vector<Literal>> got =
      run(text, options, session, hlo::testing::model_inputs(model.inputs, false));
  if (!got.ok()) return failed(got.status().to_string());
  const Agreement agreement = agrees_with_model(model, *got);
  if (!agreement.wrong.empty()) return failed(agreement.wrong);
  if (!needs_f64(model)) return {CorpusStatus::Pass, share_text(agreement)};
  ProgramOptions wide = options;
  wide.floats_as_f64 = true;
  const Expected<std::vector<Literal>> got_wide =
      run(text, wide, session, hlo::testing::model_inputs(model.inputs, true));
  if (!got_wide.ok()) return failed("as f64: " + got_wide.status().to_string());
  const Agreement in_f64 = agrees_with_model_in_f64(model, *got_wide);
  if (!in_f64.wrong.empty()) return failed("as f64: " + in_f64.wrong);
  return {CorpusStatus::Pass, share_text(agreement) + "; as f64: " + share_text(in_f64)};
}

}  // namespace

Expected<const Session*> LazySession::get() {
  if (!session_) {
    COLLET_ASSIGN(session_, Session::open(choice_));
  }
  return session_.get();
}

EntryOutcome run_index_entry(const Index& index, const IndexEntry& entry, LazySession& session) {
  const Expected<std::string> text = contents(index.folder + "/" + entry.file);
  if (!text.ok()) return failed(text.status().to_string());
  if (!entry.read) return expect_refusal(entry, *text);
  if (!entry.has_result()) return expect_round_trip(entry, *text);
  const Expected<const Session*> opened = session.get();
  if (!opened.ok()) return failed(opened.status().to_string());
  return expect_result(index, entry, *text, **opened);
}

EntryOutcome run_model(const std::string& folder, LazySession& session) {
  const Expected<ModelCase> model = hlo::testing::read_model(folder);
  if (!model.ok()) return failed(model.status().to_string());
  const Expected<std::string> text = contents(model->program);
  if (!text.ok()) return failed(text.status().to_string());
  const Expected<const Session*> opened = session.get();
  if (!opened.ok()) return failed(opened.status().to_string());
  return judge_model(*model, *text, **opened);
}

}  // namespace collet::conformance
