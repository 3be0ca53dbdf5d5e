// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "hlo/text/parser.h"
#include "sdk/runtime/module.h"

namespace collet::runtime {
namespace {

std::string_view without_space(std::string_view bytes) {
  while (!bytes.empty() && std::isspace(static_cast<unsigned char>(bytes.front()))) bytes.remove_prefix(1);
  return bytes;
}

bool is_artifact(std::string_view bytes) {
  return bytes.starts_with("ML\xEFR");
}

bool is_text(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 4096);
  for (char c : head)
    if (static_cast<unsigned char>(c) < 9) return false;
  return true;
}

bool is_stablehlo_text(std::string_view bytes) {
  if (!is_text(bytes)) return false;
  const std::string_view start = without_space(bytes);
  return start.starts_with("module @") || start.starts_with("module {") || start.starts_with("module attributes") ||
         start.starts_with("func.func") || bytes.substr(0, 65536).find("stablehlo.") != std::string_view::npos;
}

bool is_proto(std::string_view bytes) {
  return !is_text(bytes);
}

Expected<std::unique_ptr<hlo::Module>> read_hlo_text(std::string_view bytes, const collet_read_options& options,
                                                     std::string& messages) {
  hlo::ParseOptions parse;
  parse.file_name = options.file ? options.file : "";
  parse.elided = options.elided == COLLET_ELIDED_ZEROS    ? hlo::ElidedConstants::Zeros
                 : options.elided == COLLET_ELIDED_RANDOM ? hlo::ElidedConstants::Random
                                                          : hlo::ElidedConstants::Refuse;
  parse.seed = options.seed;
  parse.floats_as_f64 = options.floats_as_f64 != 0;
  if (options.max_errors) parse.max_errors = options.max_errors;
  Diagnostics diagnostics(parse.file_name, parse.max_errors);
  std::unique_ptr<hlo::Module> module = hlo::parse_module(bytes, parse, diagnostics);
  if (module) return module;
  messages = diagnostics.to_string();
  if (diagnostics.empty()) return internal_error("the text could not be read");
  const Diagnostic& first = diagnostics.list().front();
  const std::string file = parse.file_name.empty() ? "" : parse.file_name + ":";
  return invalid_argument(file + std::to_string(first.line) + ":" + std::to_string(first.column) + ": " +
                          first.message);
}

// Told apart from the most certain to the least.
constexpr Format kFormats[] = {
    {COLLET_FORMAT_STABLEHLO, "StableHLO portable artifacts", is_artifact, nullptr, nullptr},
    {COLLET_FORMAT_HLO_PROTO, "HloModuleProto", is_proto, nullptr, nullptr},
    {COLLET_FORMAT_STABLEHLO_TEXT, "StableHLO text", is_stablehlo_text, nullptr, nullptr},
    {COLLET_FORMAT_HLO_TEXT, "HLO text", is_text, read_hlo_text, nullptr},
};

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

}  // namespace collet::runtime
