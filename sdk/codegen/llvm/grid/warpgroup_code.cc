// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/grid/warpgroup_code.h"

#include <collet/collet.h>
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

void WarpgroupCode::set_registers(int count, bool increases) {
  const std::string direction = increases ? "inc" : "dec";
  assembly(b_.getVoidTy(), "setmaxnreg." + direction + ".sync.aligned.u32 " + std::to_string(count) + ";", "", {});
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
  for (Value* v : others) inputs += v->getType()->isIntegerTy(64) ? "l," : "r,";
  std::vector<Value*> operands = sums;
  operands.insert(operands.end(), others.begin(), others.end());
  llvm::Type* const result = llvm::StructType::get(b_.getContext(), std::vector<llvm::Type*>(sums.size(), type));
  Value* const all = assembly(result, text, outputs + inputs + "~{memory}", operands);
  std::vector<Value*> out;
  for (unsigned i = 0; i < sums.size(); ++i) out.push_back(b_.CreateExtractValue(all, {i}));
  return out;
}

WarpgroupCode::Product WarpgroupCode::product_of(uint32_t type, int columns, bool a_by_depth, bool b_by_depth) {
  constexpr int kDepthBytes = 32;
  Product out;
  out.columns = columns;
  out.depth = kDepthBytes / static_cast<int>(collet_type_bytes(type));
  out.a_by_depth = a_by_depth;
  out.b_by_depth = b_by_depth;
  out.can_transpose = collet_type_bytes(type) == 2;
  switch (type) {
    case COLLET_TYPE_BF16:
      out.types = "f32.bf16.bf16";
      break;
    case COLLET_TYPE_F16:
      out.types = "f32.f16.f16";
      break;
    case COLLET_TYPE_S8:
      out.types = "s32.s8.s8";
      break;
    case COLLET_TYPE_U8:
      out.types = "s32.u8.u8";
      break;
    default:
      out.types = "f32.tf32.tf32";
      break;
  }
  return out;
}

std::vector<llvm::Value*> WarpgroupCode::start_products(const Product& what, const std::vector<Value*>& a,
                                                        const std::vector<Value*>& b, const std::vector<Value*>& sums,
                                                        int most_groups) {
  const size_t each = a.size() / b.size();  // operands of a first factor: a descriptor or four registers
  const auto list = [](size_t first, size_t count) {
    std::string out = "{";
    for (size_t i = 0; i < count; ++i) out += (i == 0 ? "$" : ", $") + std::to_string(first + i);
    return out + "}";
  };
  // The factors are not negated; 1 says that one lies by rows (columns).
  std::string flags = what.types.starts_with("f32") ? ", 1, 1" : "";
  if (what.can_transpose && each == 1) flags += what.a_by_depth ? ", 0" : ", 1";
  if (what.can_transpose) flags += what.b_by_depth ? ", 0" : ", 1";
  std::string text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, " + std::string(what.begins ? "0" : "1") +
                     ", 0;\nwgmma.fence.sync.aligned;\n";
  std::vector<Value*> others;
  for (size_t i = 0; i < b.size(); ++i) {
    const size_t at = 2 * sums.size() + others.size();
    if (what.begins && i == 1) text += "setp.ne.b32 adds, 1, 0;\n";
    text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(what.columns) + "k" + std::to_string(what.depth) +
            "." + what.types + " " + list(0, sums.size()) + ", " +
            (each == 1 ? "$" + std::to_string(at) : list(at, each)) + ", $" + std::to_string(at + each) + ", adds" +
            flags + ";\n";
    for (size_t k = 0; k < each; ++k) others.push_back(a[i * each + k]);
    others.push_back(b[i]);
  }
  text += "wgmma.commit_group.sync.aligned;\n";
  if (most_groups >= 0) text += "wgmma.wait_group.sync.aligned " + std::to_string(most_groups) + ";\n";
  return with_sums(text + "}", sums, others);
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
