// SPDX-License-Identifier: Apache-2.0
#include "hlo/verify/verify.h"

#include "hlo/verify/context.h"

namespace collet::hlo {

void verify_module(const Module& module, const VerifyOptions& options, Diagnostics& diagnostics) {
  verify::Context context{module, options, diagnostics};
  if (!verify::verify_structure(context)) return;
  bool sound = true;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      if (context.full()) return;
      sound &= context.check(module[id], verify_instruction(module, module[id], options.allow_mixed_precision));
    }
  if (!sound) return;  // the later checks rely on each op's own rules
  verify::verify_calls(context);
  verify::verify_pairs(context);
  verify::verify_buffers(context);
  verify::verify_annotations(context);
  verify::verify_header(context);
}

Status verify_module(const Module& module, const VerifyOptions& options) {
  Diagnostics diagnostics{std::string(module.name())};
  verify_module(module, options, diagnostics);
  return diagnostics.to_status();
}

}  // namespace collet::hlo
