// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "hlo/proto/proto.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "sdk/runtime/module.h"

namespace collet::runtime {
namespace {

bool is_artifact(std::string_view bytes) {
  return bytes.starts_with("ML\xEFR");
}

bool is_text(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 4096);
  // Only white space of what lies below ' '; the tags and lengths of binary messages do.
  for (char c : head)
    if (static_cast<unsigned char>(c) < ' ' && !std::isspace(static_cast<unsigned char>(c))) return false;
  return true;
}

bool is_stablehlo_text(std::string_view bytes) {
  return is_text(bytes) && hlo::mlir::looks_like_text(bytes);
}

bool is_proto(std::string_view bytes) {
  return !is_text(bytes);
}

Expected<std::unique_ptr<hlo::Module>> read_hlo_text(std::string_view bytes, const collet_read_options& options,
                                                     std::string& messages) {
  hlo::ParseOptions parse;
  parse.file_name = options.file ? options.file : "";
  switch (options.elided) {
    case COLLET_ELIDED_REFUSE:
      parse.elided = hlo::ElidedConstants::Refuse;
      break;
    case COLLET_ELIDED_ZEROS:
      parse.elided = hlo::ElidedConstants::Zeros;
      break;
    case COLLET_ELIDED_RANDOM:
      parse.elided = hlo::ElidedConstants::Random;
      break;
    case COLLET_ELIDED_COUNTER:
      parse.elided = hlo::ElidedConstants::Counter;
      break;
    default:
      return invalid_argument("unknown way to fill elided constants");
  }
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

Expected<std::unique_ptr<hlo::Module>> import(const hlo::mlir::Program& program, const collet_read_options& options) {
  if (options.floats_as_f64) return unimplemented("reading StableHLO with floats as f64 is not supported");
  return hlo::import_program(program);
}

Expected<std::unique_ptr<hlo::Module>> read_artifact(std::string_view bytes, const collet_read_options& options,
                                                     std::string&) {
  COLLET_ASSIGN(std::unique_ptr<hlo::mlir::Program> program, hlo::mlir::read_bytecode(bytes));
  return import(*program, options);
}

Expected<std::unique_ptr<hlo::Module>> read_proto(std::string_view bytes, const collet_read_options& options,
                                                  std::string&) {
  if (options.floats_as_f64) return unimplemented("reading HloModuleProto with floats as f64 is not supported");
  return hlo::read_proto(bytes);
}

Expected<std::unique_ptr<hlo::Module>> read_stablehlo_text(std::string_view bytes, const collet_read_options& options,
                                                           std::string& messages) {
  Diagnostics diagnostics(options.file ? options.file : "");
  const std::unique_ptr<hlo::mlir::Program> program = hlo::mlir::read_text(bytes, diagnostics);
  if (program) return import(*program, options);
  messages = diagnostics.to_string();
  const Diagnostic& first = diagnostics.list().front();
  const std::string file = diagnostics.file().empty() ? "" : diagnostics.file() + ":";
  return invalid_argument(file + std::to_string(first.line) + ":" + std::to_string(first.column) + ": " +
                          first.message);
}

Expected<std::string> write_hlo_text(const hlo::Module& module) {
  return hlo::print_module(module);
}

Expected<std::string> write_artifact(const hlo::Module& module) {
  return hlo::write_stablehlo_artifact(module);
}

// Told apart from the most certain to the least.
constexpr Format kFormats[] = {
    {COLLET_FORMAT_STABLEHLO, "StableHLO portable artifacts", is_artifact, read_artifact, write_artifact},
    {COLLET_FORMAT_HLO_PROTO, "HloModuleProto", is_proto, read_proto, nullptr},
    {COLLET_FORMAT_STABLEHLO_TEXT, "StableHLO text", is_stablehlo_text, read_stablehlo_text, hlo::write_stablehlo_text},
    {COLLET_FORMAT_HLO_TEXT, "HLO text", is_text, read_hlo_text, write_hlo_text},
};

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

}  // namespace collet::runtime
