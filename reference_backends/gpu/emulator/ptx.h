// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// A PTX text as data. Names are resolved: an operand is a register, a variable, or the name of a label or function.
namespace collet::gpu::emulator {

/// An error in a PTX text. It does not leave the emulator: compile_module() converts it to a message.
class PtxError : public std::runtime_error {
 public:
  PtxError(int line, const std::string& message)
      : std::runtime_error("line " + std::to_string(line) + ": " + message) {}
};

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kTf32,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
};

/// The type that a suffix such as ".u32" names (given without its dot), or kNone.
Type type_of_name(std::string_view name);
const char* name_of(Type type);
/// Returns the bits of a type in a register or in memory; 1 for a predicate.
unsigned bits_of(Type type);
inline unsigned bytes_of(Type type) {
  return (bits_of(type) + 7) / 8;
}
bool is_float(Type type);
bool is_signed(Type type);

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };
const char* name_of(Space space);

/// The address of a variable inside an initialiser.
struct Relocation {
  uint64_t offset = 0;
  std::string symbol;
  int64_t addend = 0;
  bool is_generic = false;
};

struct Variable {
  std::string name;
  Space space = Space::kGeneric;
  Type type = Type::kNone;
  uint64_t align = 1;
  uint64_t bytes = 0;
  bool is_unsized = false;  ///< `.extern .shared .b8 x[]`: the launch determines the size
  bool is_extern = false;
  std::vector<uint8_t> initial;  ///< the first bytes; the remaining ones up to `bytes` are zeros
  std::vector<Relocation> relocations;
  int line = 0;
  int index = 0;  ///< number in its function, or in the module
};

struct Operand {
  enum class Kind : uint8_t {
    kNone,
    kRegister,
    kInteger,
    kFloat,
    kVariable,
    kSpecial,
    kVector,
    kAddress,
    kName,
    kSink
  };
  Kind kind = Kind::kNone;
  bool is_negated = false;             ///< written as `!%p`
  int reg = -1;                        ///< for kRegister, and for kAddress with a register as base
  int second = -1;                     ///< the register after '|', or -1
  const Variable* variable = nullptr;  ///< for kVariable, and for kAddress with a variable as base
  uint64_t integer = 0;                ///< kInteger: the value; kFloat: the bits of a double
  int64_t offset = 0;                  ///< for kAddress and kVariable
  bool is_f32 = false;                 ///< for kFloat: true if it is written as 0f...; `f32` has its bits
  uint32_t f32 = 0;
  bool is_list = false;           ///< for kVector: true for a list in (), as in calls
  std::string name;               ///< for kName and kSpecial
  std::vector<Operand> elements;  ///< for kVector; for kAddress: coordinates after the address
};

struct Instruction {
  int line = 0;
  int guard = -1;  ///< register of the guard predicate, or -1
  bool guard_negated = false;
  std::string opcode;
  std::vector<std::string> modifiers;  ///< without dots
  std::vector<Operand> operands;
};

struct Statement {
  enum class Kind : uint8_t { kInstruction, kLabel, kTargets };
  Kind kind = Kind::kInstruction;
  Instruction instruction;
  int line = 0;
  std::string label;
  std::vector<std::string> targets;  ///< labels of .branchtargets
};

struct Register {
  std::string name;
  Type type = Type::kNone;
};

struct Function {
  std::string name;
  int line = 0;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> parameters;
  std::vector<Variable> results;
  std::vector<Register> registers;
  /// Variables of the body in any state space: local, shared, param, global, const.
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<Statement> body;
  unsigned max_threads = 0;                  ///< limit of .maxntid or .reqntid; 0 if it is not declared
  unsigned required_threads[3] = {0, 0, 0};  ///< block size of .reqntid; 0 if it is not declared
};

struct Module {
  unsigned version = 0;  ///< version of PTX, 78 for 7.8
  std::string target;    ///< target as written, such as "sm_80"
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<std::unique_ptr<Function>> functions;

  const Function* find_function(std::string_view name) const;
};

/// Parses a PTX text. Throws PtxError.
Module parse_ptx(std::string_view text);

}  // namespace collet::gpu::emulator
