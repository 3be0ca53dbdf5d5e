// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/warpgroup_code.h"

#include <llvm/IR/InlineAsm.h>

namespace collet::codegen {

llvm::Value* WarpgroupCode::assembly(llvm::Type* result, const std::string& text, const std::string& constraints,
                                     const std::vector<Value*>& operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* const function = llvm::FunctionType::get(result, types, false);
  return b_.CreateCall(llvm::InlineAsm::get(function, text, constraints, true), operands);
}

llvm::Value* WarpgroupCode::address(Value* shared) {
  return b_.CreatePtrToInt(shared, b_.getInt32Ty());
}

void WarpgroupCode::init_barrier(Value* barrier, uint32_t arrivals) {
  assembly(b_.getVoidTy(), "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}",
           {barrier, b_.getInt32(arrivals)});
}

void WarpgroupCode::publish_barriers() {
  assembly(b_.getVoidTy(), "fence.mbarrier_init.release.cluster;", "~{memory}", {});
}

void WarpgroupCode::arrive_with_bytes(Value* barrier, int64_t bytes) {
  assembly(b_.getVoidTy(), "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}",
           {barrier, b_.getInt32(static_cast<uint32_t>(bytes))});
}

void WarpgroupCode::arrive(Value* barrier) {
  assembly(b_.getVoidTy(), "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {barrier});
}

llvm::Value* WarpgroupCode::has_ended(Value* barrier, Value* parity) {
  Value* const ended = assembly(b_.getInt32Ty(),
                                "{\n.reg .pred ended;\nmbarrier.try_wait.parity.shared::cta.b64 ended, [$1], $2;\n"
                                "selp.b32 $0, 1, 0, ended;\n}",
                                "=r,r,r,~{memory}", {barrier, parity});
  return b_.CreateICmpNE(ended, b_.getInt32(0));
}

void WarpgroupCode::copy_box(Value* to, Value* map, const std::vector<Value*>& coordinates, Value* barrier) {
  std::string text = "cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {";
  std::string constraints = "r,l,r";
  std::vector<Value*> operands{to, map, barrier};
  for (size_t i = 0; i < coordinates.size(); ++i) {
    text += (i == 0 ? "$" : ", $") + std::to_string(i + 3);
    constraints += ",r";
    operands.push_back(coordinates[i]);
  }
  assembly(b_.getVoidTy(), text + "}], [$2];", constraints + ",~{memory}", operands);
}

void WarpgroupCode::prefetch_map(Value* map) {
  assembly(b_.getVoidTy(), "prefetch.tensormap [$0];", "l,~{memory}", {map});
}

/// Calls assembly whose operands 0 to n - 1 are the sums, which it reads and writes; the others come after 2 n.
std::vector<llvm::Value*> WarpgroupCode::with_sums(const std::string& text, const std::vector<Value*>& sums,
                                                   const std::vector<Value*>& others) {
  llvm::Type* const type = sums[0]->getType();
  std::string outputs;
  std::string inputs;
  for (size_t i = 0; i < sums.size(); ++i) {
    outputs += type->isFloatTy() ? "=f," : "=r,";
    inputs += std::to_string(i) + ",";
  }
  for (size_t i = 0; i < others.size(); ++i) inputs += "l,";
  std::vector<Value*> operands = sums;
  operands.insert(operands.end(), others.begin(), others.end());
  llvm::Type* const result = llvm::StructType::get(b_.getContext(), std::vector<llvm::Type*>(sums.size(), type));
  Value* const all = assembly(result, text, outputs + inputs + "~{memory}", operands);
  std::vector<Value*> out;
  for (unsigned i = 0; i < sums.size(); ++i) out.push_back(b_.CreateExtractValue(all, {i}));
  return out;
}

std::vector<llvm::Value*> WarpgroupCode::start_products(const Product& what, const std::vector<Value*>& a,
                                                        const std::vector<Value*>& b, const std::vector<Value*>& sums) {
  std::string registers = "{";
  for (size_t i = 0; i < sums.size(); ++i) registers += (i == 0 ? "$" : ", $") + std::to_string(i);
  registers += "}";
  // The factors are neither negated; 1 says that one lies by rows (columns).
  const bool is_float = what.types.substr(0, 3) == "f32";
  std::string flags = is_float ? ", 1, 1" : "";
  if (what.can_transpose)
    flags += std::string(what.a_by_depth ? ", 0" : ", 1") + (what.b_by_depth ? ", 0" : ", 1");
  std::string text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\nwgmma.fence.sync.aligned;\n";
  std::vector<Value*> others;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t at = 2 * sums.size() + others.size();
    text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(what.columns) + "k" + std::to_string(what.depth) + "." +
            what.types + " " + registers + ", $" + std::to_string(at) + ", $" + std::to_string(at + 1) + ", adds" +
            flags + ";\n";
    others.insert(others.end(), {a[i], b[i]});
  }
  text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n}";
  return with_sums(text, sums, others);
}

std::vector<llvm::Value*> WarpgroupCode::finish_products(const std::vector<Value*>& sums) {
  return with_sums("wgmma.wait_group.sync.aligned 0;", sums, {});
}

llvm::Value* WarpgroupCode::descriptor(Value* at, int64_t leading, int64_t stride) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  const uint64_t layout =
      kSwizzle128 | static_cast<uint64_t>(leading >> 4) << 16 | static_cast<uint64_t>(stride >> 4) << 32;
  Value* const place = b_.CreateLShr(b_.CreateZExt(at, b_.getInt64Ty()), b_.getInt64(4));
  return b_.CreateOr(place, b_.getInt64(layout));
}

}  // namespace collet::codegen
