// SPDX-License-Identifier: Apache-2.0
// Translates branches, calls, and instructions in which threads wait for each other.
#include <llvm/IR/Intrinsics.h>

#include <cstddef>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {

void FunctionTranslator::op_bra(const Instruction& in, Modifiers& m) {
  m.take("uni");
  want_operands(in, 1, 1);
  const Operand& to = operand(in, 0);
  if (to.kind != Operand::Kind::kName) fail(in, "a label is expected");
  llvm::BasicBlock* const target = label(in, to.name);
  if (passed_labels_.count(to.name)) poll(in.line);
  b_.CreateBr(target);
  begin_block();
}

void FunctionTranslator::op_brx(const Instruction& in, Modifiers& m) {
  m.take("uni");
  if (!m.take("idx")) fail(in, "not a known form");
  want_operands(in, 2, 2);
  const Operand& list = operand(in, 1);
  const auto found = targets_.find(list.name);
  if (list.kind != Operand::Kind::kName || found == targets_.end()) fail(in, "a .branchtargets list is expected");
  V index = read_i32(in, 0);
  poll(in.line);
  // An index beyond the list of targets is undefined in PTX, so it ends the launch.
  auto* const wrong = llvm::BasicBlock::Create(out_.getContext(), "", &code_);
  auto* const choice = b_.CreateSwitch(index, wrong, static_cast<unsigned>(found->second->size()));
  for (size_t i = 0; i < found->second->size(); ++i) {
    choice->addCase(b_.getInt32(static_cast<uint32_t>(i)), label(in, (*found->second)[i]));
  }
  b_.SetInsertPoint(wrong);
  call(b_.getVoidTy(), &collet_emu_trap, {thread_, line_of(in)});
  b_.CreateUnreachable();
  begin_block();
}

void FunctionTranslator::op_call(const Instruction& in, Modifiers& m) {
  m.take("uni");
  // The operands are (results), function, (arguments). The lists may be omitted.
  size_t at = 0;
  std::vector<Operand> results, arguments;
  if (operand(in, at).kind == Operand::Kind::kVector) results = operand(in, at++).elements;
  const Operand& name = operand(in, at++);
  if (name.kind != Operand::Kind::kName) fail(in, "calls through pointers are not supported");
  if (at < in.operands.size()) {
    if (operand(in, at).kind != Operand::Kind::kVector) fail(in, "a list of arguments is expected");
    arguments = operand(in, at++).elements;
  }
  want_operands(in, at, at);
  const Function* const callee = m_.find_function(name.name);
  if (!callee || !callee->has_body) fail(in, "no definition of the function " + name.name);
  if (callee->is_entry) fail(in, "a kernel cannot be called");
  if (results.size() != callee->results.size() || arguments.size() != callee->parameters.size()) {
    fail(in, name.name + " takes " + std::to_string(callee->parameters.size()) + " arguments and gives " +
                 std::to_string(callee->results.size()) + " results");
  }
  std::vector<V> values{thread_};
  const auto pass = [&](const Operand& o, const Variable& v) {
    const bool known = o.kind == Operand::Kind::kVariable && o.offset == 0 && parameter_memory_.count(o.variable);
    if (!known) fail(in, "arguments and results are .param variables");
    if (o.variable->bytes < v.bytes) fail(in, "the variable for " + v.name + " is too small");
    values.push_back(parameter_memory_.at(o.variable));
  };
  for (size_t i = 0; i < results.size(); ++i) pass(results[i], callee->results[i]);
  for (size_t i = 0; i < arguments.size(); ++i) pass(arguments[i], callee->parameters[i]);
  callees_.insert(callee);
  for (size_t i = 0; i < m_.functions.size(); ++i) {
    if (m_.functions[i].get() == callee) b_.CreateCall(out_.getFunction("ptx_" + std::to_string(i)), values);
  }
}

void FunctionTranslator::op_ret(const Instruction& in, Modifiers& m) {
  m.take("uni");
  want_operands(in, 0, 0);
  b_.CreateRetVoid();
  begin_block();
}

void FunctionTranslator::op_exit(const Instruction& in, Modifiers&) {
  want_operands(in, 0, 0);
  if (!f_.is_entry) fail(in, "exit in a function that is called is not supported");
  b_.CreateRetVoid();
  begin_block();
}

void FunctionTranslator::op_trap(const Instruction& in, Modifiers&) {
  want_operands(in, 0, 0);
  call(b_.getVoidTy(), &collet_emu_trap, {thread_, line_of(in)});
  b_.CreateUnreachable();
  begin_block();
}

void FunctionTranslator::op_nanosleep(const Instruction& in, Modifiers& m) {
  want_operands(in, 1, 1);
  m.need_type();
  call(b_.getVoidTy(), &collet_emu_poll, {thread_, line_of(in)});
}

void FunctionTranslator::op_pmevent(const Instruction& in, Modifiers& m) {
  m.take("mask");
  want_operands(in, 1, 1);
}

void FunctionTranslator::barrier(const Instruction& in, Modifiers& m, uint32_t mode) {
  facts_.meets = true;
  m.ignore({"cta", "aligned"});
  if (m.take("warp")) {
    if (!m.take("sync")) fail(in, "not a known form");
    want_operands(in, 1, 1);
    call(b_.getVoidTy(), &collet_emu_warp_barrier, {thread_, read_i32(in, 0), line_of(in)});
    return;
  }
  const int kind = m.take_any({"sync", "arrive", "red"});
  if (kind < 0) fail(in, "not a known form");
  if (kind < 2) {
    want_operands(in, 1, 2);
    if (kind == 1 && in.operands.size() < 2) fail(in, "the number of threads is missing");
    V count = in.operands.size() == 2 ? read_i32(in, 1) : i32(UINT32_MAX);
    call(b_.getInt32Ty(), &collet_emu_barrier,
         {thread_, read_i32(in, 0), count, i32(mode | static_cast<uint32_t>(kind)), i32(0), line_of(in)});
    return;
  }
  const int op = m.take_any({"popc", "and", "or"});
  const Type t = m.need_type();
  if (op < 0 || (t == Type::kPred) != (op > 0)) fail(in, "not a known form");
  want_operands(in, 3, 4);
  V count = in.operands.size() == 4 ? read_i32(in, 2) : i32(UINT32_MAX);
  V predicate = b_.CreateZExt(read_predicate(in, operand(in, in.operands.size() - 1)), b_.getInt32Ty());
  V r = call(b_.getInt32Ty(), &collet_emu_barrier,
             {thread_, read_i32(in, 1), count, i32(mode | (static_cast<uint32_t>(op) + 2)), predicate, line_of(in)});
  write(in, t == Type::kPred ? b_.CreateICmpNE(r, i32(0)) : r);
}

void FunctionTranslator::op_bar(const Instruction& in, Modifiers& m) {
  barrier(in, m, 0);
}
void FunctionTranslator::op_barrier(const Instruction& in, Modifiers& m) {
  barrier(in, m, m.take("aligned") ? 0 : kBarrierByLane);
}

void FunctionTranslator::op_shfl(const Instruction& in, Modifiers& m) {
  want_operands(in, 5, 5);
  facts_.meets = true;
  if (!m.take("sync")) fail(in, ".sync is missing");
  const int mode = m.take_any({"up", "down", "bfly", "idx"});
  if (mode < 0 || m.need_type() != Type::kB32) fail(in, "not a known form");
  V r = call(b_.getInt64Ty(), &collet_emu_shuffle,
             {thread_, i32(static_cast<uint32_t>(mode)), read_i32(in, 1), read_i32(in, 2), read_i32(in, 3),
              read_i32(in, 4), line_of(in)});
  write(in, b_.CreateTrunc(r, b_.getInt32Ty()));
  if (operand(in, 0).second >= 0) {
    write_register(in, operand(in, 0).second, b_.CreateTrunc(b_.CreateLShr(r, 32), b_.getInt1Ty()));
  }
}

void FunctionTranslator::op_vote(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  facts_.meets = true;
  if (!m.take("sync")) fail(in, ".sync is missing");
  const int mode = m.take_any({"all", "any", "uni", "ballot"});
  const Type t = m.need_type();
  if (mode < 0 || (t == Type::kPred) != (mode < 3)) fail(in, "not a known form");
  V predicate = b_.CreateZExt(read_predicate(in, operand(in, 1)), b_.getInt32Ty());
  V r = call(b_.getInt32Ty(), &collet_emu_vote,
             {thread_, i32(static_cast<uint32_t>(mode)), predicate, read_i32(in, 2), line_of(in)});
  write(in, mode == 3 ? r : b_.CreateICmpNE(r, i32(0)));
}

void FunctionTranslator::op_match(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  facts_.meets = true;
  const int mode = m.take_any({"any", "all"});
  if (mode < 0 || !m.take("sync")) fail(in, "not a known form");
  const unsigned n = bits_of(m.need_type());
  if (n != 32 && n != 64) fail(in, "the type has 32 or 64 bits");
  V value = b_.CreateZExt(read_bits(in, operand(in, 1), n), b_.getInt64Ty());
  V r = call(b_.getInt64Ty(), &collet_emu_match,
             {thread_, i32(static_cast<uint32_t>(mode)), value, read_i32(in, 2), line_of(in)});
  write(in, b_.CreateTrunc(r, b_.getInt32Ty()));
  if (operand(in, 0).second >= 0) {
    write_register(in, operand(in, 0).second, b_.CreateTrunc(b_.CreateLShr(r, 32), b_.getInt1Ty()));
  }
}

// Which lanes are active together depends on the hardware. A mask of this lane only is possible in any schedule.
void FunctionTranslator::op_activemask(const Instruction& in, Modifiers& m) {
  want_operands(in, 1, 1);
  if (m.need_type() != Type::kB32) fail(in, "the type is .b32");
  write(in, b_.CreateShl(i32(1), thread_word(offsetof(Thread, lane))));
}

void FunctionTranslator::op_redux(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  facts_.meets = true;
  if (!m.take("sync")) fail(in, ".sync is missing");
  const int op = m.take_any({"add", "min", "max", "and", "or", "xor"});
  const Type t = m.need_type();
  if (op < 0 || bits_of(t) != 32 || is_float(t)) fail(in, "not a known form");
  constexpr uint32_t kModes[] = {0, 1, 2, 5, 6, 7};
  uint32_t mode = kModes[op];
  if (is_signed(t) && (op == 1 || op == 2)) mode += 2;
  write(in,
        call(b_.getInt32Ty(), &collet_emu_redux, {thread_, i32(mode), read_i32(in, 1), read_i32(in, 2), line_of(in)}));
}

}  // namespace collet::gpu::emulator
