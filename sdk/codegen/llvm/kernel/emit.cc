// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/kernel/emit.h"

#include <algorithm>

#include "sdk/codegen/llvm/kernel/emit_memory.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
namespace {

/// True if LLVM may contract this operation into a fused multiply-add, which XLA allows too. False for f64, since
/// programs may rely on each rounding, and for mathematical functions.
bool may_contract(const Expr& i) {
  return !is_wide(i.type) &&
         (i.opcode == COLLET_OP_ADD || i.opcode == COLLET_OP_SUBTRACT || i.opcode == COLLET_OP_MULTIPLY);
}

}  // namespace

bool is_wide(uint32_t type) {
  return type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128;
}

Val emit_op(Ir& ir, const Expr& i, const std::vector<Val>& args, const std::vector<uint32_t>& types,
            bool sums_products) {
  const Contraction contraction(ir, may_contract(i) || (sums_products && i.opcode == COLLET_OP_MULTIPLY));
  return emit_scalar(ir, {i.opcode, i.type, types, args, i.a, i.b});
}

void level_lanes(Ir& ir, std::vector<Val>& args) {
  int lanes = 1;
  for (const Val& x : args) lanes = std::max(lanes, ir.lanes_of(x));
  for (Val& x : args) x = ir.splat(x, lanes);
}

llvm::FunctionType* kernel_function(llvm::LLVMContext& context) {
  llvm::Type* const number = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                 {llvm::PointerType::get(context, 0), number, number, llvm::Type::getInt32Ty(context)},
                                 false);
}

void set_function_attributes(llvm::Function* f, const Target& target) {
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("target-cpu", target.cpu);
  f->addFnAttr("target-features", target.features);
  f->addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  if (target.scalable_bits != 0) {
    const auto least = static_cast<unsigned>(target.vector_bits / target.scalable_bits);
    f->addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(f->getContext(), least, 0));
  }
  f->addFnAttr("min-legal-vector-width", std::to_string(target.vector_bits));
}

llvm::Function* emit_kernel(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name,
                            bool whole) {
  const int bytes = target.vector_bits / 8;
  const bool bypasses = !whole && std::any_of(kernel.stores.begin(), kernel.stores.end(),
                                              [](const Store& s) { return s.bypasses_caches; });
  if (!bypasses) return KernelEmitter(kernel, module, target, name).run(whole);
  llvm::Function* const cached = KernelEmitter(kernel, module, target, name + "_cached").run();
  cached->setLinkage(llvm::Function::InternalLinkage);
  return KernelEmitter(kernel, module, target, name).run_bypassing(cached, bytes);
}

llvm::Function* emit_comparator(const ScalarBody& body, const std::vector<uint32_t>& types, llvm::Module& module,
                                const Target& target, const std::string& name) {
  Ir ir(module, target);
  auto& b = ir.b;
  llvm::Type* i64 = b.getInt64Ty();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getInt8Ty(), {b.getPtrTy(), i64, i64}, false),
                                   llvm::Function::ExternalLinkage, name, module);
  set_function_attributes(f, target);
  b.SetInsertPoint(llvm::BasicBlock::Create(ir.context(), "entry", f));
  std::vector<Val> args;
  for (size_t k = 0; k < types.size(); ++k) {
    llvm::Value* base = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), f->getArg(0), b.getInt64(k)));
    for (unsigned side = 1; side <= 2; ++side) {
      args.push_back(load_lanes(ir, base, types[k], {f->getArg(side), 0, nullptr, 1}, nullptr));
    }
  }
  b.CreateRet(b.CreateZExt(emit_body(ir, body, args)[0].v, b.getInt8Ty()));
  return f;
}

}  // namespace collet::codegen
