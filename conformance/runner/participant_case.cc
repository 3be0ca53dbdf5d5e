// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/participant_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/oracle/bounds.h"
#include "conformance/runner/run_program.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using Clock = std::chrono::steady_clock;

Fields with_status(std::string status, std::string detail) {
  return {{"status", std::move(status)}, {"detail", std::move(detail)}};
}

Fields of_error(const Status& status) {
  return with_status(status.code() == Code::Unimplemented ? "unsupported" : "fail", status.to_string());
}

Expected<std::vector<BufferHandle>> upload(const Session& session, const ByParticipant& inputs, uint32_t first,
                                           uint32_t count) {
  std::vector<BufferHandle> out;
  for (uint32_t k = 0; k < count; ++k)
    for (const Literal& value : inputs[first + k]) {
      COLLET_ASSIGN(BufferHandle buffer, copy_to_device(session.client(), value, k, "input"));
      out.push_back(std::move(buffer));
    }
  return out;
}

Expected<std::vector<Literal>> fetch_all(const std::vector<BufferHandle>& buffers) {
  std::vector<Literal> out;
  for (const BufferHandle& buffer : buffers) {
    COLLET_ASSIGN(Literal value, fetch(buffer.get()));
    out.push_back(std::move(value));
  }
  return out;
}

// Returns the first wrong element of the results; empty if all are right.
std::string judge(const ParticipantCase& which, const ByParticipant& inputs, uint32_t first, uint32_t count,
                  const std::vector<Literal>& got) {
  size_t at = 0;
  for (uint32_t p = first; p < first + count; ++p) {
    const std::vector<Literal> expected = which.answer(inputs, p);
    for (size_t r = 0; r < expected.size(); ++r, ++at) {
      if (at >= got.size()) return fmt::format("there are {} results", got.size());
      if (got[at] == expected[r]) continue;
      if (!got[at].shape().same_without_layout(expected[r].shape()))
        return fmt::format("result {} of participant {} is {} and should be {}", r, p, got[at].shape().to_string(),
                           expected[r].shape().to_string());
      int64_t wrong = 0, i = -1;
      const int64_t size = got[at].byte_size() / std::max<int64_t>(got[at].element_count(), 1);
      for (int64_t e = got[at].element_count() - 1; e >= 0; --e)
        if (std::memcmp(got[at].bytes() + e * size, expected[r].bytes() + e * size, static_cast<size_t>(size)) != 0) {
          ++wrong;
          i = e;
        }
      return fmt::format("result {} of participant {}: {} of {} elements are wrong; at {}: expected {}, got {}", r, p,
                         wrong, got[at].element_count(), index_text(got[at].shape(), i), element_text(expected[r], i),
                         element_text(got[at], i));
    }
  }
  return at == got.size() ? std::string() : fmt::format("there are {} results", got.size());
}

}  // namespace

Fields run_participant_case(const ParticipantCase& which, const Session& session, uint64_t seed, uint32_t first) {
  auto start = Clock::now();
  const Expected<Program> program = session.compile(which.one.text, {.file = which.one.name, .ignore_costs = true});
  if (!program.ok()) return of_error(program.status());
  const double compile_seconds = seconds_since(start);
  const Expected<collet_executable_facts> facts = program->facts();
  if (!facts.ok()) return of_error(facts.status());
  const uint32_t count = facts->local_participants;
  // As other cases, it runs with some inputs, with others, and with the first ones again. The results of the first run are read after the
  // second one. All processes run it three times, whatever they find.
  const ByParticipant inputs = draw_inputs(which, seed), others = draw_inputs(which, seed + 1);
  const auto in = upload(session, inputs, first, count), other_in = upload(session, others, first, count);
  if (!in.ok()) return of_error(in.status());
  if (!other_in.ok()) return of_error(other_in.status());
  const auto out = program->execute(*in);
  if (!out.ok()) return of_error(out.status());
  const auto other_out = program->execute(*other_in);
  if (!other_out.ok()) return of_error(other_out.status());
  start = Clock::now();
  const auto again = program->execute(*in);
  if (!again.ok()) return of_error(again.status());
  const double run_seconds = seconds_since(start);
  std::string wrong;
  const auto look = [&](const std::vector<BufferHandle>& buffers, const ByParticipant& of, const char* run) {
    if (!wrong.empty()) return;
    const auto got = fetch_all(buffers);
    wrong = got.ok() ? judge(which, of, first, count, *got) : got.status().to_string();
    if (!wrong.empty()) wrong = run + wrong;
  };
  look(*out, inputs, "");
  look(*other_out, others, "in the second execution, ");
  look(*again, inputs, "in the third execution, ");
  Fields fields = with_status(wrong.empty() ? "pass" : "fail", wrong);
  fields.emplace_back("device_ops", std::to_string(facts->device_ops));
  fields.emplace_back("fallback_ops", std::to_string(facts->fallback_ops));
  fields.emplace_back("independent", "1");
  fields.emplace_back("compile_seconds", fmt::format("{}", compile_seconds));
  fields.emplace_back("run_seconds", fmt::format("{}", run_seconds));
  return fields;
}

}  // namespace collet::conformance
