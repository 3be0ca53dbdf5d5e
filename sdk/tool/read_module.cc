// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/read_module.h"

#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"
#include "sdk/tool/files.h"

namespace collet::tool {
namespace {

Expected<std::unique_ptr<hlo::Module>> read_any(std::string_view bytes, const std::string& file) {
  if (hlo::mlir::is_bytecode(bytes)) {
    COLLET_ASSIGN(const std::unique_ptr<hlo::mlir::Program> program, hlo::mlir::read_bytecode(bytes));
    return hlo::import_program(*program);
  }
  if (hlo::mlir::looks_like_text(bytes)) {
    COLLET_ASSIGN(const std::unique_ptr<hlo::mlir::Program> program, hlo::mlir::read_text(bytes, file));
    return hlo::import_program(*program);
  }
  return hlo::parse_module(bytes, file);
}

}  // namespace

Expected<std::unique_ptr<hlo::Module>> read_module(const std::string& path) {
  COLLET_ASSIGN(const std::string text, read_file(path));
  COLLET_ASSIGN(std::unique_ptr<hlo::Module> module, read_any(text, path == "-" ? "stdin" : path));
  COLLET_TRY(hlo::verify_module(*module));
  return module;
}

}  // namespace collet::tool
