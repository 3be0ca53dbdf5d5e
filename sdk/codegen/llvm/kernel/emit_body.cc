// SPDX-License-Identifier: Apache-2.0
// Emits scalar bodies: those of reductions, updates and loops over scalars. A body is computed for one lane or for all
// lanes of a vector at once.
#include <algorithm>

#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {
namespace {

using llvm::BasicBlock;

/// Returns the value of an index in a body. It depends on no loop, so it is the sum of its constant and its terms.
llvm::Value* index_of(Ir& ir, const Index& index, const std::vector<Val>& vals) {
  llvm::Value* sum = llvm::ConstantInt::getSigned(ir.b.getInt64Ty(), index.constant);
  for (auto [t, c] : index.terms) {
    llvm::Value* x = vals[static_cast<size_t>(t)].v;
    const int lanes = std::max(ir.lanes_of(x), ir.lanes_of(sum));
    if (c != 1) x = ir.b.CreateMul(x, ir.constant_int(x->getType(), static_cast<uint64_t>(c)));
    sum = ir.b.CreateAdd(ir.splat(sum, lanes), ir.splat(x, lanes));
  }
  return sum;
}

/// Returns the addresses of lanes that have no common stride, for a gather.
Lanes scattered(Ir& ir, llvm::Value* index) {
  Lanes where;
  where.count = ir.lanes_of(index);
  where.scalar = where.count == 1 ? index : ir.b.getInt64(0);
  if (where.count > 1) where.vec = index;
  return where;
}

Val body_instruction(Ir& ir, const ScalarBody& body, const Expr& i, const std::vector<Val>& vals, llvm::Value* active) {
  std::vector<Val> args;
  std::vector<uint32_t> types;
  for (ExprId a : i.args) {
    args.push_back(vals[static_cast<size_t>(a)]);
    types.push_back(body.exprs[static_cast<size_t>(a)].type);
  }
  llvm::Value* mask = i.mask == kNoExpr ? nullptr : vals[static_cast<size_t>(i.mask)].v;
  switch (i.op) {
    case ExprOp::kConstant:
      return ir.literal(i.type, i.bits.data());
    case ExprOp::kIndex:
      return {index_of(ir, i.index, vals)};
    case ExprOp::kDivide:
    case ExprOp::kModulo:
      return {emit_divide(ir, index_of(ir, i.index, vals), i.a, i.op == ExprOp::kModulo)};
    case ExprOp::kStart:
      return {emit_start(ir, i, args[0].v, types[0])};
    case ExprOp::kInRange: {
      llvm::Value* x = index_of(ir, i.index, vals);
      return {ir.b.CreateICmpULT(x, ir.constant_int(x->getType(), static_cast<uint64_t>(i.a)))};
    }
    case ExprOp::kOp:
      level_lanes(ir, args);
      return emit_op(ir, i, args, types);
    case ExprOp::kLookup: {
      llvm::Value* index = index_of(ir, i.index, vals);
      return emit_lookup(ir, i, scattered(ir, mask ? ir.splat(index, ir.lanes_of(mask)) : index), mask);
    }
    case ExprOp::kWhile:
      return emit_while(ir, i, std::move(args), emit_both(ir, mask, active));
    case ExprOp::kPart:
      return emit_part(ir, i, args[0]);
    case ExprOp::kArgument:
    case ExprOp::kLoad:
    case ExprOp::kReduced:
    case ExprOp::kScanned:
      break;
  }
  return {};  // unreachable: a body has no such expressions
}

}  // namespace

std::vector<Val> emit_body(Ir& ir, const ScalarBody& body, const std::vector<Val>& arguments, llvm::Value* active) {
  std::vector<Val> vals;
  for (const Expr& i : body.exprs) {
    vals.push_back(i.op == ExprOp::kArgument ? arguments[static_cast<size_t>(i.a)]
                                             : body_instruction(ir, body, i, vals, active));
  }
  std::vector<Val> results;
  for (ExprId r : body.results) results.push_back(vals[static_cast<size_t>(r)]);
  return results;
}

Val emit_while(Ir& ir, const Expr& i, std::vector<Val> args, llvm::Value* active) {
  auto& b = ir.b;
  if (active) args.push_back({active});
  level_lanes(ir, args);
  if (active) {
    active = args.back().v;
    args.pop_back();
  }
  const int lanes = ir.lanes_of(args[0]);
  const size_t carried = i.bodies[1].results.size();
  BasicBlock* before = b.GetInsertBlock();
  llvm::Function* f = before->getParent();
  BasicBlock* head = BasicBlock::Create(ir.context(), "while", f);
  BasicBlock* body = BasicBlock::Create(ir.context(), "body", f);
  BasicBlock* exit = BasicBlock::Create(ir.context(), "ended", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  std::vector<Val> state = args;
  std::vector<llvm::PHINode*> phis;
  auto carry = [&](llvm::Value*& v) {
    llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    phis.push_back(phi);
    v = phi;
  };
  for (size_t k = 0; k < carried; ++k) {
    carry(state[k].v);
    if (state[k].im) carry(state[k].im);
  }
  auto arguments_of = [&](const ScalarBody& scalar) {
    return std::vector<Val>(state.begin(), state.begin() + static_cast<int64_t>(scalar.arguments));
  };
  llvm::Value* continues = emit_body(ir, i.bodies[0], arguments_of(i.bodies[0]), active)[0].v;
  continues = ir.splat(emit_both(ir, continues, active), lanes);
  b.CreateCondBr(lanes == 1 ? continues : b.CreateOrReduce(continues), body, exit);
  b.SetInsertPoint(body);
  const std::vector<Val> next = emit_body(ir, i.bodies[1], arguments_of(i.bodies[1]), lanes == 1 ? nullptr : continues);
  std::vector<llvm::Value*> kept;
  for (size_t k = 0; k < carried; ++k) {
    Val x = ir.splat(next[k], lanes);
    if (lanes > 1) x = ir.select(continues, x, state[k]);
    kept.push_back(x.v);
    if (x.im) kept.push_back(x.im);
  }
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(kept[k], b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(exit);
  std::vector<llvm::Type*> fields;
  for (llvm::PHINode* phi : phis) fields.push_back(phi->getType());
  llvm::Value* all = llvm::PoisonValue::get(llvm::StructType::get(ir.context(), fields));
  for (size_t k = 0; k < phis.size(); ++k) all = b.CreateInsertValue(all, phis[k], {static_cast<unsigned>(k)});
  return {all};
}

Val emit_part(Ir& ir, const Expr& i, const Val& loop) {
  const auto field = static_cast<unsigned>(i.b);
  Val x{ir.b.CreateExtractValue(loop.v, {field})};
  if (collet_type_kind(i.type) == COLLET_KIND_COMPLEX) x.im = ir.b.CreateExtractValue(loop.v, {field + 1});
  return x;
}

Val emit_lookup(Ir& ir, const Expr& i, const Lanes& where, llvm::Value* mask) {
  llvm::Constant* data = llvm::ConstantDataArray::getString(ir.context(), i.table, false);
  for (llvm::GlobalVariable& g : ir.module.globals()) {
    if (g.hasInitializer() && g.getInitializer() == data) return load_lanes(ir, &g, i.type, where, mask);
  }
  auto* global =
      new llvm::GlobalVariable(ir.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "table");
  global->setAlignment(llvm::Align(64));
  return load_lanes(ir, global, i.type, where, mask);
}

llvm::Value* emit_divide(Ir& ir, llvm::Value* x, int64_t by, bool modulo) {
  auto& b = ir.b;
  llvm::Type* t = x->getType();
  llvm::Value* d = ir.constant_int(t, static_cast<uint64_t>(by));
  // Floor division by a positive number: for x < 0, floor(x / d) is ~(~x / d). Lanes have 64 bits.
  llvm::Value* negative = b.CreateAShr(x, ir.constant_int(t, 63));
  llvm::Value* flipped = b.CreateXor(x, negative);
  llvm::Value* q = b.CreateXor(b.CreateUDiv(flipped, d), negative);
  return modulo ? b.CreateSub(x, b.CreateMul(q, d)) : q;
}

llvm::Value* emit_start(Ir& ir, const Expr& i, llvm::Value* x, uint32_t type) {
  auto& b = ir.b;
  llvm::Type* t = ir.like(x, b.getInt64Ty());
  // 32-bit lanes, so that a register holds twice as many
  if (x->getType()->getScalarSizeInBits() == 32 && i.a <= INT32_MAX) {
    llvm::Value* const limit = ir.constant_int(x->getType(), static_cast<uint64_t>(i.a));
    if (collet_type_kind(type) == COLLET_KIND_SIGNED) {
      x = ir.binary(llvm::Intrinsic::smax, x, llvm::Constant::getNullValue(x->getType()));
    }
    return b.CreateZExt(ir.binary(llvm::Intrinsic::umin, x, limit), t);
  }
  llvm::Value* limit = ir.constant_int(t, static_cast<uint64_t>(i.a));
  if (collet_type_kind(type) != COLLET_KIND_SIGNED) {
    return ir.binary(llvm::Intrinsic::umin, b.CreateZExt(x, t), limit);
  }
  llvm::Value* low = ir.binary(llvm::Intrinsic::smax, b.CreateSExt(x, t), llvm::Constant::getNullValue(t));
  return ir.binary(llvm::Intrinsic::smin, low, limit);
}

llvm::Value* emit_both(Ir& ir, llvm::Value* x, llvm::Value* y) {
  if (!x || !y) return x ? x : y;
  const int lanes = std::max(ir.lanes_of(x), ir.lanes_of(y));
  return ir.b.CreateAnd(ir.splat(x, lanes), ir.splat(y, lanes));
}

}  // namespace collet::codegen
