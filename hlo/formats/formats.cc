// SPDX-License-Identifier: Apache-2.0
#include "hlo/formats/formats.h"

#include <algorithm>
#include <cctype>

#include "hlo/proto/proto.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

constexpr size_t kHead = 4096;

// True for characters below ' ' that are not white space. Text does not have them, but the tags and lengths of binary
// messages do.
bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' && !std::isspace(static_cast<unsigned char>(c));
}

bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), is_control);
}

// At the beginning of a binary message at least every sixth byte is a tag or a length, which are control characters;
// text has hardly any.
bool is_mostly_text(std::string_view head) {
  return static_cast<size_t>(std::count_if(head.begin(), head.end(), is_control)) * 16 <= head.size();
}

// True if the bytes can be parsed as fields of a protobuf message from the first byte to the last.
bool is_message(std::string_view bytes) {
  const auto varint = [&](uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      out |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  while (!bytes.empty()) {
    uint64_t tag = 0, size = 0;
    if (!varint(tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
    switch (tag & 7) {
      case 0:
        if (!varint(size)) return false;
        size = 0;
        break;
      case 1:
        size = 8;
        break;
      case 2:
        if (!varint(size)) return false;
        break;
      case 5:
        size = 4;
        break;
      default:
        return false;
    }
    if (size > bytes.size()) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

// HLO text may mention StableHLO ops in its metadata.
bool begins_as_hlo(std::string_view bytes) {
  while (!bytes.empty()) {
    if (bytes.starts_with("//")) {
      bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
    } else if (bytes.starts_with("/*")) {
      bytes.remove_prefix(std::min(bytes.find("*/"), bytes.size() - 2) + 2);
    } else if (std::isspace(static_cast<unsigned char>(bytes.front()))) {
      bytes.remove_prefix(1);
    } else {
      break;
    }
  }
  return bytes.starts_with("HloModule");
}

Status first_of(const Diagnostics& diagnostics, std::string_view form) {
  if (diagnostics.empty()) return internal_error("the " + std::string(form) + " could not be read");
  const Diagnostic& first = diagnostics.list().front();
  const std::string file = diagnostics.file().empty() ? "" : diagnostics.file() + ":";
  return invalid_argument(file + std::to_string(first.line) + ":" + std::to_string(first.column) + ": " +
                          first.message);
}

Expected<std::unique_ptr<Module>> read_stablehlo(std::string_view bytes, Format format, Diagnostics& diagnostics) {
  std::unique_ptr<mlir::Program> program;
  if (format == Format::Artifact) {
    COLLET_ASSIGN(program, mlir::read_bytecode(bytes));
  } else {
    program = mlir::read_text(bytes, diagnostics);
    if (!program) return first_of(diagnostics, format_name(format));
  }
  return import_program(*program);
}

}  // namespace

std::string_view format_name(Format format) {
  constexpr std::string_view kNames[] = {"HLO text", "HloModuleProto", "StableHLO text", "StableHLO portable artifact"};
  return kNames[static_cast<size_t>(format)];
}

Format format_of(std::string_view bytes) {
  if (mlir::is_bytecode(bytes)) return Format::Artifact;
  const std::string_view head = bytes.substr(0, kHead);
  const bool hlo = begins_as_hlo(bytes);
  const bool begins = is_text(head) && (hlo || mlir::looks_like_text(head));
  // A message may begin with a name that is longer than the examined part. Text with a stray control byte is treated as
  // text, so that its reader can report the position of that byte.
  if (!begins && !is_text(bytes) && (is_message(bytes) || !(hlo || is_mostly_text(head)))) return Format::HloProto;
  return !hlo && mlir::looks_like_text(bytes) ? Format::StablehloText : Format::HloText;
}

Expected<std::unique_ptr<Module>> read_module(std::string_view bytes, const ParseOptions& options,
                                              Diagnostics& diagnostics, std::optional<Format> wanted) {
  const Format format = wanted ? *wanted : format_of(bytes);
  if (format == Format::HloText) {
    std::unique_ptr<Module> module = parse_module(bytes, options, diagnostics);
    if (!module) return first_of(diagnostics, format_name(format));
    return module;
  }
  if (options.floats_as_f64)
    return unimplemented("reading a " + std::string(format_name(format)) + " with floats as f64 is not supported");
  Expected<std::unique_ptr<Module>> module =
      format == Format::HloProto ? read_proto(bytes) : read_stablehlo(bytes, format, diagnostics);
  if (!module.ok() && diagnostics.empty() && !diagnostics.file().empty())
    return module.status().with_prefix(diagnostics.file() + ": ");
  return module;
}

Expected<std::unique_ptr<Module>> read_verified_module(std::string_view bytes, const ParseOptions& options,
                                                       Diagnostics& diagnostics, std::optional<Format> wanted) {
  const Format format = wanted ? *wanted : format_of(bytes);
  COLLET_ASSIGN(std::unique_ptr<Module> module, read_module(bytes, options, diagnostics, format));
  verify_module(*module, {}, diagnostics);
  if (format == Format::HloText || format == Format::StablehloText) diagnostics.show_source(bytes);
  COLLET_TRY(diagnostics.to_status());
  return module;
}

Expected<std::string> write_module(const Module& module, Format format) {
  switch (format) {
    case Format::HloText:
      return print_module(module);
    case Format::HloProto:
      return write_module_proto(module);
    case Format::StablehloText:
      return write_stablehlo_text(module);
    case Format::Artifact:
      return write_stablehlo_artifact(module);
  }
  return invalid_argument("there is no such form");
}

}  // namespace collet::hlo
