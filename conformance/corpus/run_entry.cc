// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/run_entry.h"

#include <fmt/format.h>

#include <cstdlib>

#include "conformance/corpus/judge.h"
#include "conformance/corpus/round_trip.h"
#include "conformance/corpus/variants.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Module;
using hlo::testing::Index;
using hlo::testing::IndexEntry;
using hlo::testing::ModelCase;

constexpr int64_t kMostLinesAway = 2;
constexpr double kVariantSeconds = 2.5;  // time limit for each of three runs

EntryOutcome failed(std::string detail) {
  return {CorpusStatus::Fail, std::move(detail)};
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

EntryOutcome expect_round_trip(const IndexEntry& entry, const std::string& text) {
  const Expected<std::unique_ptr<Module>> module = hlo::parse_module(text, entry.file);
  if (!module.ok()) return failed("it was refused: " + first_line(module.status().message()));
  if (const Status status = check_round_trip(**module); !status.ok()) return failed(status.message());
  const Status verified = hlo::verify_module(**module);
  return {CorpusStatus::Pass, verified.ok() ? "" : "the verifier says: " + first_line(verified.message())};
}

Expected<std::vector<Literal>> run(const std::string& text, const ProgramOptions& options, const Session& session,
                                   const std::vector<Literal>& inputs) {
  COLLET_ASSIGN(const Program program, session.compile(text, options));
  return program.run(inputs);
}

std::string share_text(const Agreement& agreement) {
  return agreement.share == 0 ? "exact" : fmt::format("largest error {:.2g} of what is allowed", agreement.share);
}

EntryOutcome expect_result(const Index& index, const IndexEntry& entry, const std::string& text,
                           const Session& session) {
  const Expected<std::vector<Literal>> expected = hlo::testing::expected_results(index, entry);
  if (!expected.ok()) return failed(expected.status().to_string());
  // The known results were computed by one device, also for modules that are written for several.
  const ProgramOptions options{.file = entry.file, .elided = COLLET_ELIDED_COUNTER, .one_participant = true};
  const std::vector<Literal> inputs = hlo::testing::inputs_by_type(entry.inputs);
  const Expected<std::vector<Literal>> got = run(text, options, session, inputs);
  if (!got.ok()) return failed(got.status().to_string());
  Agreement agreement = agrees_with_index(*expected, *got);
  if (agreement.wrong.empty()) return {CorpusStatus::Pass, share_text(agreement)};
  // The module may not determine its results more precisely, so the variants are computed.
  const VariantRuns variants = run_variants(text, entry.file, inputs, kVariantSeconds);
  agreement = agrees_with_index(*expected, *got, variants.lists());
  if (!agreement.wrong.empty()) return failed(agreement.wrong);
  return {CorpusStatus::Pass, share_text(agreement) + "; " + agreement.note};
}

EntryOutcome judge_model(const ModelCase& model, const std::string& text, const Session& session) {
  const ProgramOptions options{.file = model.program, .elided = COLLET_ELIDED_COUNTER};
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
