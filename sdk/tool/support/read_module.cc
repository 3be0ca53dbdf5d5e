// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/read_module.h"

#include "hlo/formats/formats.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/task.h"

namespace collet::tool {
namespace {

hlo::ElidedConstants elided_constants(uint32_t how) {
  switch (how) {
    case COLLET_ELIDED_ZEROS:
      return hlo::ElidedConstants::Zeros;
    case COLLET_ELIDED_RANDOM:
      return hlo::ElidedConstants::Random;
    case COLLET_ELIDED_COUNTER:
      return hlo::ElidedConstants::Counter;
    default:
      return hlo::ElidedConstants::Refuse;
  }
}

}  // namespace

Expected<std::unique_ptr<hlo::Module>> read_module(const std::string& path, const ElidedChoice& elided) {
  begin_task("reading '" + path + "'");
  COLLET_ASSIGN(const std::string bytes, read_program(path));
  hlo::ParseOptions options;
  options.file_name = path == "-" ? "stdin" : path;
  options.elided = elided_constants(elided.how);
  options.seed = elided.seed;
  Diagnostics diagnostics(options.file_name, options.max_errors);
  auto module = hlo::read_verified_module(bytes, options, diagnostics);
  // Returns all errors that have a location.
  if (!module.ok()) COLLET_TRY(diagnostics.to_status());
  return module;
}

}  // namespace collet::tool
