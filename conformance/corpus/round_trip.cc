// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/round_trip.h"

#include "hlo/base/files.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

// Returns options that omit large constants, because hundreds of megabytes of numbers test reading and printing no
// better than a few numbers.
hlo::PrintOptions options_for(const hlo::Module& module) {
  constexpr int64_t kMostConstantBytes = int64_t{1} << 24;
  int64_t bytes = 0;
  for (const hlo::CompId computation : module.computations()) {
    for (const hlo::InstrId id : module[computation].order) {
      if (module[id].op == hlo::Op::CONSTANT) bytes += module[id].shape.byte_size();
    }
  }
  return {.large_constants = bytes <= kMostConstantBytes};
}

}  // namespace

Status check_round_trip(const hlo::Module& module) {
  const hlo::PrintOptions style = options_for(module);
  const std::string printed = hlo::print_module(module, style);
  const Expected<std::unique_ptr<hlo::Module>> again = hlo::parse_module(printed, "what was printed");
  if (!again.ok()) return internal_error("what was printed was refused: " + first_line(again.status().message()));
  return hlo::print_module(**again, style) == printed ? ok_status()
                                                      : internal_error("printing it twice gives two texts");
}

Expected<std::string> contents(const std::string& path) {
  Expected<std::string> bytes = read_file(path, kMostProgramBytes);
  if (!bytes.ok()) return not_found(bytes.status().message());
  return bytes;
}

std::string first_line(std::string text) {
  if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text;
}

}  // namespace collet::conformance
