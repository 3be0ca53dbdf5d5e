// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/emulator/support.h"
#include "reference_backends/gpu/emulator/translate.h"

namespace collet::gpu::emulator {

/// The modifiers of an instruction. The translator takes them one by one; a modifier that is left at the end is an
/// error.
class Modifiers {
 public:
  explicit Modifiers(const Instruction& in) : in_(in), used_(in.modifiers.size(), false) {}
  bool take(std::string_view name);
  /// Removes all of these modifiers.
  void ignore(std::initializer_list<std::string_view> names);
  /// Takes the first of these modifiers that the instruction has, and returns its index in the list, or -1.
  int take_any(std::initializer_list<std::string_view> names);
  /// Takes the next modifier that is a type; kNone if there is none.
  Type take_type();
  Type need_type();
  Space take_space();
  /// Throws an error if a modifier is left.
  void finish() const;

 private:
  const Instruction& in_;
  std::vector<bool> used_;
};

/// Translates one PTX function to an LLVM function. PTX registers become local variables, as integers of their size,
/// which LLVM then converts to SSA values.
class FunctionTranslator {
 public:
  FunctionTranslator(const Module& module, const Function& function, const ModuleLayout& layout, llvm::Module& out,
                     llvm::Function& code);
  void run();

  const FunctionFacts& facts() const { return facts_; }
  const std::set<const Function*>& callees() const { return callees_; }

 private:
  using V = llvm::Value*;
  using Handler = void (FunctionTranslator::*)(const Instruction&, Modifiers&);
  static const std::map<std::string_view, Handler>& handlers();

  [[noreturn]] void fail(const Instruction& in, const std::string& message) const;
  void begin();
  void translate(const Instruction& in);
  void branch_to(llvm::BasicBlock* to, bool backward, int line);
  llvm::BasicBlock* label(const Instruction& in, const std::string& name);
  void poll(int line);
  /// Begins a block for the code after an instruction that ends a block.
  void begin_block();

  // Values.
  llvm::IntegerType* bits(unsigned n) { return b_.getIntNTy(n); }
  llvm::Type* type(Type t);
  V i32(uint32_t v) { return b_.getInt32(v); }
  V i64(uint64_t v) { return b_.getInt64(v); }
  V line_of(const Instruction& in) { return i32(static_cast<uint32_t>(in.line)); }
  const Operand& operand(const Instruction& in, size_t i) const;
  void want_operands(const Instruction& in, size_t least, size_t most) const;
  llvm::AllocaInst* register_at(int index);
  Type register_type(int index) const { return f_.registers[static_cast<size_t>(index)].type; }
  /// Returns an operand as an integer of n bits. A register may be wider if `truncates`.
  V read_bits(const Instruction& in, const Operand& o, unsigned n, bool truncates = false);
  /// Returns an operand as float or double for f32 and f64, else as an integer.
  V read(const Instruction& in, const Operand& o, Type t, bool truncates = false);
  V read(const Instruction& in, size_t i, Type t) { return read(in, operand(in, i), t); }
  V read_predicate(const Instruction& in, const Operand& o);
  V read_i32(const Instruction& in, size_t i) { return read_bits(in, operand(in, i), 32); }
  void write(const Instruction& in, const Operand& o, V value, bool sign_extends = false);
  void write(const Instruction& in, V value) { write(in, operand(in, 0), value); }
  void write_register(const Instruction& in, int reg, V value, bool sign_extends = false);
  V special(const Instruction& in, const std::string& name);
  V address_of(const Instruction& in, const Variable& v, int64_t offset);
  V thread_word(size_t offset);
  V as_bits(V value);
  V as(V value, Type t) { return b_.CreateBitCast(value, type(t)); }

  /// Emits a call of a runtime function by its address.
  V call(llvm::Type* result, const void* address, llvm::ArrayRef<V> arguments);
  template <typename F>
  V call(llvm::Type* result, F* function, llvm::ArrayRef<V> arguments) {
    return call(result, reinterpret_cast<const void*>(function), arguments);
  }
  V intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> types, llvm::ArrayRef<V> arguments);
  V scratch(unsigned words);

  // Floating point.
  V flush(V value);
  V saturate(V value);
  V is_nan(V value) { return b_.CreateFCmpUNO(value, value); }
  V convert_format(V bits, const Conversion& c);
  /// Converts f16 or bf16 to f32.
  V widen(V value, Type t);
  V half_op(Type t, HalfOp op, uint32_t flags, V a, V b = nullptr, V c = nullptr);
  V float_minmax(Type t, bool is_max, bool nan, bool xor_sign, V a, V b);
  V rounded(Type t, RoundedOp op, int rounding, V a, V b, V c);
  V compare(const Instruction& in, const std::string& op, Type t, V a, V b, bool ftz);

  // Memory.
  V pointer(const Instruction& in, const Operand& o, Space space, AccessKind kind, unsigned bytes);
  V address(const Instruction& in, const Operand& o);
  V parameter_pointer(const Instruction& in, const Operand& o, unsigned bytes, bool is_write);
  void note_space(Space space) { facts_.uses_shared |= space == Space::kShared; }
  void atomic(const Instruction& in, Modifiers& m, bool returns);
  V atomic_value(const Instruction& in, const std::string& op, Type t, V p, V value, V other);

  // One handler for each instruction. They are in several files: arithmetic, floats, conversions, memory, control flow,
  // warps.
#define COLLET_EMU_HANDLER(name) void op_##name(const Instruction& in, Modifiers& m);
#include "reference_backends/gpu/emulator/opcodes.def"

  void add_or_sub(const Instruction& in, Modifiers& m, bool is_sub);
  void add_or_sub_with_carry(const Instruction& in, Modifiers& m, bool is_sub);
  void multiply(const Instruction& in, Modifiers& m, bool adds);
  void float_arithmetic(const Instruction& in, Modifiers& m, Type t, int op);
  V read_pair(const Instruction& in, size_t operand);
  void write_pair(const Instruction& in, V pair);
  void minmax(const Instruction& in, Modifiers& m, bool is_max);
  void logic(const Instruction& in, Modifiers& m, int op);
  void set_predicate(const Instruction& in, Modifiers& m, bool as_value);
  void barrier(const Instruction& in, Modifiers& m, uint32_t mode);
  void copy_box(const Instruction& in, Modifiers& m);
  /// Returns the offset in shared memory that an operand names, as an i32.
  V shared_offset(const Instruction& in, const Operand& o);
  void approximate(const Instruction& in, Modifiers& m, const char* f32_name);

  const Module& m_;
  const Function& f_;
  const ModuleLayout& layout_;
  llvm::Module& out_;
  llvm::Function& code_;
  llvm::IRBuilder<> b_;
  llvm::BasicBlock* entry_ = nullptr;
  V thread_ = nullptr;
  V carry_ = nullptr;
  std::vector<llvm::AllocaInst*> registers_;
  /// Memory of the parameters of a device function, and of the calls in it.
  std::map<const Variable*, V> parameter_memory_;
  std::map<std::string, llvm::BasicBlock*, std::less<>> labels_;
  std::set<std::string, std::less<>> passed_labels_;
  std::map<std::string, const std::vector<std::string>*, std::less<>> targets_;
  unsigned scratch_words_ = 0;
  llvm::AllocaInst* scratch_ = nullptr;
  FunctionFacts facts_;
  std::set<const Function*> callees_;
};

}  // namespace collet::gpu::emulator
