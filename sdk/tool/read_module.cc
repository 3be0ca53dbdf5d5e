// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/read_module.h"

#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"
#include "sdk/tool/files.h"

namespace collet::tool {

Expected<std::unique_ptr<hlo::Module>> read_module(const std::string& path) {
  COLLET_ASSIGN(const std::string text, read_file(path));
  COLLET_ASSIGN(std::unique_ptr<hlo::Module> module, hlo::parse_module(text, path == "-" ? "stdin" : path));
  COLLET_TRY(hlo::verify_module(*module));
  return module;
}

}  // namespace collet::tool
