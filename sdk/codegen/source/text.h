// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Writes functions of C99 or OpenCL C. A function is first a list of values and statements; when it is printed, values that are used once
/// become part of the expression that uses them, values that nothing uses are left out, and others get a name.

#include <collet/codegen/target.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen::source {

/// The number of a value of a function.
using Id = int;
inline constexpr Id kNoId = -1;

/// Precedence of the outermost operator of an expression. An operand whose level is below the one that its place needs is
/// put into parentheses.
enum class Level : uint8_t { kAny, kConditional, kBits, kCompare, kSum, kProduct, kUnary, kPrimary };

/// Iterations of a loop that compilers make vectors of: at least as many as a vector has lanes, and more than they unroll
/// before they look for vectors.
inline constexpr int64_t kStrip = 32;

/// What differs between the languages in which text is written.
struct Language {
  const char* preamble;
  const char*
      memory;     ///< stands before the type of what a pointer to the memory of a program points to: "" or "__global "
  bool one_unit;  ///< one translation unit has all kernels, so that a compiler may reorder accesses of two of them
  const char* table;     ///< stands before the type of a constant table
  const char* in_table;  ///< stands before the type of what a pointer to a constant table points to
  bool has_suffixes;     ///< functions of float have names of their own: sqrtf
  bool has_fmod;         ///< fmod is exact everywhere: drivers of OpenCL compute it from a quotient
  /// The bodies of functions that return the bits of a float x, and the float with the bits i. $T is the float, $U the integer.
  const char* bits_of;
  const char* of_bits;
  /// The same for the bits of an f16, of a float; null if the language has no such type.
  const char* bits_of_half;
  const char* of_half_bits;
  bool has_vectors;  ///< floatN and its like, which vloadN loads, are vectors of 2, 4, 8 or 16
  const char* part;  ///< ends the name of a function that runs a part of a kernel, if the kernel has the name itself
};
extern const Language kC99;
/// OpenCL C 1.2, with double.
extern const Language kOpenCl;

/// A translation unit: helper functions and tables that its functions use, in the order in which they are first needed.
class Unit {
 public:
  explicit Unit(const Target& machine, const Language& of = kC99) : target(machine), language(of) {}

  const Target& target;
  const Language& language;

  /// Returns the type of a pointer to memory of a program, such as "__global const float *". In C99 its type is one that may
  /// alias all others, such as "const stored_float *": values of several types use the same memory one after the other, and
  /// the bits of one are read as another.
  std::string pointer(const std::string& pointee);
  /// Returns the macro before a loop whose iterations do not depend on each other. `iterations`: about so many.
  std::string independent(int64_t iterations) const {
    const bool is_long = iterations >= target.tuning.interleaved_iterations;
    return language.has_vectors && is_long ? "INTERLEAVED" : "INDEPENDENT";
  }
  /// Returns the macro before a loop of kStrip iterations that do not depend on each other.
  std::string strip() const { return language.has_vectors ? "STRIP" : "INDEPENDENT"; }
  /// Returns the declaration of `name` as an array of places in that memory, which is a parameter where `name` has a "*".
  std::string places(const std::string& name) const { return language.memory + std::string("char *const ") + name; }
  /// Returns the name of the function that runs a part of kernel `name`.
  std::string part(const std::string& name) const { return name + language.part; }
  /// Returns the name of a function of <math.h>, such as "sqrt", for float or double.
  std::string math(const std::string& function, bool is_double) const {
    return is_double || !language.has_suffixes ? function : function + "f";
  }

  /// Adds the definition that `make` returns, unless there is one of that name, and returns the name. `make` may ask for
  /// other helpers, which come first.
  const std::string& helper(const std::string& name, const std::function<std::string()>& make);
  /// Adds a table of constants, `static const type name[] = {elements}`, and returns its name.
  std::string table(const std::string& type, const std::string& elements);
  /// Adds a function.
  void add(const std::string& text) { functions_ += text + "\n"; }

  /// Returns the text of the unit, without the helpers that nothing uses.
  std::string text() const;

 private:
  std::set<std::string> names_;
  std::map<std::string, std::string> tables_;
  std::vector<std::pair<std::string, std::string>> helpers_;  ///< names and definitions
  std::string functions_;
};

/// A function under construction.
///
/// In a format, `$` and the letter of a level stand before the number of an operand: `$a0` any expression, `$c0` one that binds more
/// tightly than a conditional one, `$b0` a comparison or tighter, `$s0`, `$m0`, `$u0`, `$p0` a sum, product, unary or primary expression or tighter, `$v0`
/// a name or a constant.
class Function {
 public:
  explicit Function(Unit& of) : unit(of) { scopes_.emplace_back(); }

  Unit& unit;

  /// What functions do that take another way for large arguments, such as sines: see reduce_quarter.
  struct Large {
    bool unlikely = false;             ///< arguments are not large
    std::vector<Id>* tests = nullptr;  ///< gets values that are true for large arguments
  } large;

  /// Adds a value. `reads`: it depends on memory or variables that statements change, so it is computed before the next
  /// statement.
  Id value(const std::string& type, const std::string& format, std::vector<Id> args = {}, Level level = Level::kPrimary,
           bool reads = false);
  /// Returns a constant, or a name that never changes.
  Id constant(const std::string& type, const std::string& text);
  /// Returns a value that gets this name, if anything uses it.
  Id named(const std::string& name, const std::string& type, const std::string& format, std::vector<Id> args = {});
  /// Returns the current value of a variable.
  Id variable(const std::string& type, const std::string& name) { return value(type, name, {}, Level::kPrimary, true); }
  Id number(double x, const std::string& type);
  Id integer(int64_t x);

  Id binary(const std::string& type, const std::string& op, Id x, Id y);
  Id cast(const std::string& type, Id x);
  Id call(const std::string& type, const std::string& function, const std::vector<Id>& args);
  /// Adds p ? x : y. Both are computed before, so that no branch is needed.
  Id select(Id p, Id x, Id y);

  void statement(const std::string& format, std::vector<Id> args = {});
  /// Opens a block: "for (...)", "if ($a0)".
  void open(const std::string& head, std::vector<Id> args = {});
  /// Closes it; `tail` is printed behind the brace.
  void close(const std::string& tail = "");
  /// Returns a name that no other value or variable of the function has.
  std::string fresh(const std::string& prefix) { return prefix + std::to_string(names_[prefix]++); }

  /// Returns a copy: a reference would not outlive the next value, which may be made in the same expression.
  std::string type_of(Id id) const { return items_[static_cast<size_t>(id)].type; }
  /// Returns the text of a constant; an empty string for other values.
  std::string text_of_constant(Id id) const;
  /// Returns `head { ... }`.
  std::string print(const std::string& head);

 private:
  enum class Kind : uint8_t { kValue, kAtom, kStatement, kOpen, kClose };
  struct Item {
    Kind kind = Kind::kValue;
    std::string type, format;
    std::vector<Id> args;
    Level level = Level::kPrimary;
    bool reads = false;
    int block = 0;
    int epoch = 0;          ///< number of statements before
    std::string name = {};  ///< given to the value; empty if print chooses one
    // Set by print.
    bool live = false, named = false;
    int uses = 0;
    Id user = kNoId;
    std::string text = {};
  };
  Id add(Item item);
  void count_uses();
  std::string expand(const Item& item) const;

  std::vector<Item> items_;
  std::vector<std::map<std::string, Id>> scopes_;  ///< values of the open blocks, by what computes them
  std::vector<int> blocks_{0};
  std::map<std::string, int> names_;
  int last_block_ = 0, epoch_ = 0;
};

/// Returns the shortest constant of C that is the number `x` of type float or double.
std::string text_of_number(double x, const std::string& type);
/// Returns a constant of C of at least the type int.
std::string text_of_integer(int64_t x);

}  // namespace collet::codegen::source
