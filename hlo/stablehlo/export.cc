// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/write.h"

namespace collet::hlo {

Expected<std::unique_ptr<mlir::Program>> export_program(const Module&) {
  return unimplemented("a module of HLO cannot be written as StableHLO: only programs that were read as StableHLO can");
}
Expected<std::string> write_stablehlo_text(const Module& module) {
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, export_program(module));
  return mlir::print_program(*program);
}

Expected<std::string> write_stablehlo_artifact(const Module& module, std::string_view version) {
  COLLET_ASSIGN(uint64_t number, mlir::parse_vhlo_version(version));
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, export_program(module));
  return mlir::write_bytecode(*program, number);
}

}  // namespace collet::hlo
