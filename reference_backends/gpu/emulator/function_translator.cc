// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/function_translator.h"

#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cstddef>

namespace collet::gpu::emulator {

bool Modifiers::take(std::string_view name) {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i] && in_.modifiers[i] == name) {
      used_[i] = true;
      return true;
    }
  }
  return false;
}

void Modifiers::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) take(name);
}

int Modifiers::take_any(std::initializer_list<std::string_view> names) {
  int i = 0;
  for (const std::string_view name : names) {
    if (take(name)) return i;
    ++i;
  }
  return -1;
}

Type Modifiers::take_type() {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    const Type type = type_of_name(in_.modifiers[i]);
    if (type != Type::kNone) {
      used_[i] = true;
      return type;
    }
  }
  return Type::kNone;
}

Type Modifiers::need_type() {
  const Type type = take_type();
  if (type == Type::kNone) throw PtxError(in_.line, in_.opcode + " lacks a type");
  return type;
}

Space Modifiers::take_space() {
  if (take("shared") || take("shared::cta")) return Space::kShared;
  for (const Space space : {Space::kGlobal, Space::kConst, Space::kLocal, Space::kParam}) {
    if (take(name_of(space))) return space;
  }
  return Space::kGeneric;
}

void Modifiers::finish() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) throw PtxError(in_.line, "unknown modifier ." + in_.modifiers[i] + " of " + in_.opcode);
  }
}

FunctionTranslator::FunctionTranslator(const Module& module, const Function& function, const ModuleLayout& layout,
                                       llvm::Module& out, llvm::Function& code)
    : m_(module),
      f_(function),
      layout_(layout),
      out_(out),
      code_(code),
      b_(out.getContext()),
      registers_(function.registers.size(), nullptr) {}

const std::map<std::string_view, FunctionTranslator::Handler>& FunctionTranslator::handlers() {
  static const std::map<std::string_view, Handler> table = [] {
    std::map<std::string_view, Handler> t;
    const auto add = [&](std::string_view name, Handler handler) {
      if (name.back() == '_') name.remove_suffix(1);
      t[name] = handler;
    };
#define COLLET_EMU_HANDLER(name) add(#name, &FunctionTranslator::op_##name);
#include "reference_backends/gpu/emulator/opcodes.def"
    return t;
  }();
  return table;
}

void FunctionTranslator::fail(const Instruction& in, const std::string& message) const {
  std::string name = in.opcode;
  for (const std::string& m : in.modifiers) name += "." + m;
  throw PtxError(in.line, name + ": " + message);
}

void FunctionTranslator::run() {
  begin();
  for (const Statement& s : f_.body) {
    switch (s.kind) {
      case Statement::Kind::kLabel: {
        llvm::BasicBlock* const block = labels_.at(s.label);
        b_.CreateBr(block);
        b_.SetInsertPoint(block);
        passed_labels_.insert(s.label);
        break;
      }
      case Statement::Kind::kTargets:
        break;
      case Statement::Kind::kInstruction:
        translate(s.instruction);
        break;
    }
  }
  b_.CreateRetVoid();
  if (scratch_words_) {
    // The size of the buffer is known only after all instructions have been translated.
    b_.SetInsertPoint(entry_, entry_->getFirstInsertionPt());
    auto* const memory = b_.CreateAlloca(b_.getInt32Ty(), i32(scratch_words_));
    memory->setAlignment(llvm::Align(16));
    scratch_->replaceAllUsesWith(memory);
    scratch_->eraseFromParent();
  }
  // The entry block branches to the block of the first instruction.
  b_.SetInsertPoint(entry_);
  b_.CreateBr(entry_->getNextNode());
}

void FunctionTranslator::begin() {
  llvm::LLVMContext& context = out_.getContext();
  entry_ = llvm::BasicBlock::Create(context, "entry", &code_);
  auto* const first = llvm::BasicBlock::Create(context, "", &code_);
  thread_ = code_.getArg(0);
  b_.SetInsertPoint(entry_);
  carry_ = b_.CreateAlloca(b_.getInt1Ty());
  b_.CreateStore(b_.getFalse(), carry_);
  if (!f_.is_entry) {
    unsigned i = 1;
    for (const auto* list : {&f_.results, &f_.parameters}) {
      for (const Variable& v : *list) parameter_memory_[&v] = code_.getArg(i++);
    }
  }
  uint64_t parameter_bytes = 0;
  for (const auto& v : f_.variables) {
    if (v->space != Space::kParam) continue;
    parameter_bytes += v->bytes;
    if (parameter_bytes > 16384)
      throw PtxError(v->line, "the parameters of the calls of " + f_.name + " are too large");
    auto* const memory = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), v->bytes));
    memory->setAlignment(llvm::Align(std::max<uint64_t>(v->align, 8)));
    parameter_memory_[v.get()] = memory;
  }
  for (const Statement& s : f_.body) {
    if (s.kind == Statement::Kind::kLabel) {
      if (!labels_.emplace(s.label, llvm::BasicBlock::Create(context, "", &code_)).second) {
        throw PtxError(s.line, "a label is defined twice: " + s.label);
      }
    } else if (s.kind == Statement::Kind::kTargets) {
      targets_[s.label] = &s.targets;
    }
  }
  b_.SetInsertPoint(first);
}

void FunctionTranslator::translate(const Instruction& in) {
  const auto found = handlers().find(in.opcode);
  if (found == handlers().end()) fail(in, "unknown instruction");
  llvm::BasicBlock* next = nullptr;
  if (in.guard >= 0) {
    V condition = b_.CreateLoad(b_.getInt1Ty(), register_at(in.guard));
    auto* const now = llvm::BasicBlock::Create(out_.getContext(), "", &code_);
    next = llvm::BasicBlock::Create(out_.getContext(), "", &code_);
    b_.CreateCondBr(condition, in.guard_negated ? next : now, in.guard_negated ? now : next);
    b_.SetInsertPoint(now);
  }
  Modifiers modifiers(in);
  (this->*found->second)(in, modifiers);
  modifiers.finish();
  if (next) {
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }
}

void FunctionTranslator::begin_block() {
  b_.SetInsertPoint(llvm::BasicBlock::Create(out_.getContext(), "", &code_));
}

llvm::BasicBlock* FunctionTranslator::label(const Instruction& in, const std::string& name) {
  const auto found = labels_.find(name);
  if (found == labels_.end()) fail(in, "no such label: " + name);
  return found->second;
}

// A backward branch calls the runtime now and then, so that other threads can run, and so that the loop ends when the
// launch has failed or takes too long.
void FunctionTranslator::poll(int line) {
  V at = b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offsetof(Thread, poll));
  V left = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), at), i32(1));
  b_.CreateStore(left, at);
  auto* const rare = llvm::BasicBlock::Create(out_.getContext(), "", &code_);
  auto* const next = llvm::BasicBlock::Create(out_.getContext(), "", &code_);
  b_.CreateCondBr(b_.CreateICmpSLE(left, i32(0)), rare, next);
  b_.SetInsertPoint(rare);
  call(b_.getVoidTy(), &collet_emu_poll, {thread_, i32(static_cast<uint32_t>(line))});
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

llvm::Type* FunctionTranslator::type(Type t) {
  if (t == Type::kF32) return b_.getFloatTy();
  if (t == Type::kF64) return b_.getDoubleTy();
  return bits(bits_of(t));
}

const Operand& FunctionTranslator::operand(const Instruction& in, size_t i) const {
  if (i >= in.operands.size()) fail(in, "operand " + std::to_string(i + 1) + " is missing");
  return in.operands[i];
}

void FunctionTranslator::want_operands(const Instruction& in, size_t least, size_t most) const {
  if (in.operands.size() < least || in.operands.size() > most) {
    fail(in, std::to_string(in.operands.size()) + " operands");
  }
}

llvm::AllocaInst* FunctionTranslator::register_at(int index) {
  llvm::AllocaInst*& reg = registers_[static_cast<size_t>(index)];
  if (!reg) {
    const llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_);
    llvm::Type* const t = bits(bits_of(register_type(index)));
    reg = b_.CreateAlloca(t);
    b_.CreateStore(llvm::Constant::getNullValue(t), reg);
  }
  return reg;
}

FunctionTranslator::V FunctionTranslator::as_bits(V value) {
  llvm::Type* const t = value->getType();
  if (t->isFloatTy()) return b_.CreateBitCast(value, b_.getInt32Ty());
  if (t->isDoubleTy()) return b_.CreateBitCast(value, b_.getInt64Ty());
  return value;
}

FunctionTranslator::V FunctionTranslator::read_bits(const Instruction& in, const Operand& o, unsigned n,
                                                    bool truncates) {
  switch (o.kind) {
    case Operand::Kind::kRegister: {
      V value = b_.CreateLoad(register_at(o.reg)->getAllocatedType(), register_at(o.reg));
      const unsigned width = bits_of(register_type(o.reg));
      if (o.is_negated) fail(in, "'!' stands before a register that is no predicate");
      if (width == n) return value;
      if (width < n || !truncates) {
        fail(in, "register " + f_.registers[static_cast<size_t>(o.reg)].name + " has " + std::to_string(width) +
                     " bits, and not " + std::to_string(n));
      }
      return b_.CreateTrunc(value, bits(n));
    }
    case Operand::Kind::kInteger:
      return llvm::ConstantInt::get(b_.getContext(), llvm::APInt(128, o.integer).trunc(n));
    case Operand::Kind::kFloat:
      if (n == 64) return i64(o.integer);
      if (n == 32)
        return i32(o.is_f32 ? o.f32 : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(o.integer))));
      fail(in, "no floating-point constant of " + std::to_string(n) + " bits");
    case Operand::Kind::kVariable: {
      V address = address_of(in, *o.variable, o.offset);
      if (n != 64 && n != 32) fail(in, "an address has 64 or 32 bits");
      return n == 64 ? address : b_.CreateTrunc(address, bits(n));
    }
    case Operand::Kind::kSpecial: {
      V value = special(in, o.name);
      return b_.CreateZExtOrTrunc(value, bits(n));
    }
    default:
      fail(in, "a register or a constant is expected");
  }
}

FunctionTranslator::V FunctionTranslator::read(const Instruction& in, const Operand& o, Type t, bool truncates) {
  if (t == Type::kPred) return read_predicate(in, o);
  if ((t == Type::kF32 || t == Type::kF64) && o.kind == Operand::Kind::kInteger) {
    fail(in, "a floating-point constant is expected, and not an integer");
  }
  return as(read_bits(in, o, bits_of(t), truncates), t);
}

FunctionTranslator::V FunctionTranslator::read_predicate(const Instruction& in, const Operand& o) {
  if (o.kind == Operand::Kind::kInteger) return b_.getInt1(o.integer != 0);
  if (o.kind != Operand::Kind::kRegister || register_type(o.reg) != Type::kPred) fail(in, "a predicate is expected");
  V value = b_.CreateLoad(b_.getInt1Ty(), register_at(o.reg));
  return o.is_negated ? b_.CreateNot(value) : value;
}

void FunctionTranslator::write_register(const Instruction& in, int reg, V value, bool sign_extends) {
  value = as_bits(value);
  const unsigned width = bits_of(register_type(reg)), n = value->getType()->getIntegerBitWidth();
  if (n > width || (n == 1) != (width == 1)) {
    fail(in, "register " + f_.registers[static_cast<size_t>(reg)].name + " has " + std::to_string(width) +
                 " bits; the result has " + std::to_string(n));
  }
  if (n < width) value = sign_extends ? b_.CreateSExt(value, bits(width)) : b_.CreateZExt(value, bits(width));
  b_.CreateStore(value, register_at(reg));
}

void FunctionTranslator::write(const Instruction& in, const Operand& o, V value, bool sign_extends) {
  if (o.kind == Operand::Kind::kSink) return;
  if (o.kind != Operand::Kind::kRegister || o.is_negated) fail(in, "a register is expected for the result");
  write_register(in, o.reg, value, sign_extends);
}

FunctionTranslator::V FunctionTranslator::thread_word(size_t offset) {
  V at = b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offset);
  return b_.CreateLoad(b_.getInt32Ty(), at);
}

namespace {

uint64_t clock_now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

FunctionTranslator::V FunctionTranslator::special(const Instruction& in, const std::string& name) {
  static_assert(offsetof(Thread, tid) == 0);
  struct Vector {
    const char* name;
    size_t offset;
  };
  constexpr Vector kVectors[] = {{"%tid", offsetof(Thread, tid)},
                                 {"%ntid", offsetof(Thread, ntid)},
                                 {"%ctaid", offsetof(Thread, ctaid)},
                                 {"%nctaid", offsetof(Thread, nctaid)}};
  for (const Vector& v : kVectors) {
    const std::string_view prefix = v.name;
    if (name.size() == prefix.size() + 2 && name.starts_with(prefix) && name[prefix.size()] == '.') {
      const char axis = name.back();
      if (axis < 'x' || axis > 'z') fail(in, "no such special register: " + name);
      return thread_word(v.offset + 4 * static_cast<size_t>(axis - 'x'));
    }
  }
  const auto lane = [&] { return thread_word(offsetof(Thread, lane)); };
  const auto below = [&] { return b_.CreateSub(b_.CreateShl(i32(1), lane()), i32(1)); };
  const auto own = [&] { return b_.CreateShl(i32(1), lane()); };
  if (name == "%laneid") return lane();
  if (name == "%warpid") return thread_word(offsetof(Thread, warp));
  if (name == "%nwarpid") return thread_word(offsetof(Thread, warps));
  if (name == "%smid" || name == "%nsmid" || name == "%gridid") return i32(name == "%nsmid" ? 1 : 0);
  if (name == "%lanemask_eq") return own();
  if (name == "%lanemask_lt") return below();
  if (name == "%lanemask_le") return b_.CreateOr(below(), own());
  if (name == "%lanemask_ge") return b_.CreateNot(below());
  if (name == "%lanemask_gt") return b_.CreateNot(b_.CreateOr(below(), own()));
  if (name == "%clock" || name == "%clock64" || name == "%globaltimer" || name == "%clock_hi" ||
      name == "%globaltimer_lo") {
    V now = call(b_.getInt64Ty(), &clock_now, {});
    return name == "%clock_hi" ? b_.CreateLShr(now, i64(32)) : now;
  }
  if (name == "%dynamic_smem_size") {
    return b_.CreateSub(thread_word(offsetof(Thread, shared_end)), thread_word(offsetof(Thread, dynamic_shared)));
  }
  fail(in, "no such register: " + name);
}

FunctionTranslator::V FunctionTranslator::address_of(const Instruction& in, const Variable& v, int64_t offset) {
  const auto plus = static_cast<uint64_t>(offset);
  switch (v.space) {
    case Space::kGlobal:
    case Space::kConst:
      return i64(layout_.global.at(&v) + plus);
    case Space::kShared:
      note_space(v.space);
      if (v.is_unsized) {
        return b_.CreateAdd(b_.CreateZExt(thread_word(offsetof(Thread, dynamic_shared)), b_.getInt64Ty()), i64(plus));
      }
      return i64(layout_.shared.at(&v) + plus);
    case Space::kLocal:
      return i64(layout_.local.at(&v) + plus);
    case Space::kParam: {
      if (!f_.is_entry || parameter_memory_.count(&v))
        fail(in, "the address of a parameter of a function is not supported");
      uint32_t bytes = 0;
      const auto places = parameters_of(f_, bytes);
      return i64(kParamWindow + places[static_cast<size_t>(v.index)].offset + plus);
    }
    default:
      fail(in, "this variable has no address");
  }
}

FunctionTranslator::V FunctionTranslator::call(llvm::Type* result, const void* address, llvm::ArrayRef<V> arguments) {
  std::vector<llvm::Type*> types;
  for (V v : arguments) types.push_back(v->getType());
  auto* const type = llvm::FunctionType::get(result, types, false);
  V target = llvm::ConstantExpr::getIntToPtr(llvm::cast<llvm::Constant>(i64(reinterpret_cast<uint64_t>(address))),
                                             llvm::PointerType::get(b_.getContext(), 0));
  auto* const made = b_.CreateCall(type, target, arguments);
  made->setDoesNotThrow();
  return made;
}

FunctionTranslator::V FunctionTranslator::intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> types,
                                                    llvm::ArrayRef<V> arguments) {
  return b_.CreateIntrinsic(id, types, arguments);
}

// Returns a buffer that functions of the runtime read and write. Its contents are needed only within one instruction.
FunctionTranslator::V FunctionTranslator::scratch(unsigned words) {
  scratch_words_ = std::max(scratch_words_, words);
  if (!scratch_) {
    const llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_, entry_->getFirstInsertionPt());
    scratch_ = b_.CreateAlloca(b_.getInt32Ty());
  }
  return scratch_;
}

}  // namespace collet::gpu::emulator
