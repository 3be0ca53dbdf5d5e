// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/limits.h"
#include "hlo/ir/module.h"
#include "hlo/ir/shardy.h"
#include "hlo/ops/rules.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// The state of one import, shared by the files that translate the families of ops.

namespace collet::hlo {

/// Limit for tuple elements that an import creates, per byte of the program. Loops and branches pass the values that
/// their bodies use in tuples, so that deeply nested regions could otherwise multiply them.
constexpr int64_t kPartsPerByte = 16;

/// Maps values of a region to their instructions, in the computation that is being built.
struct ImportScope {
  CompId computation = CompId::None;
  std::unordered_map<const mlir::Value*, InstrId> values;
};

class Importer {
 public:
  Importer(const mlir::Program& program, Module& module)
      : program_(program), module_(module), budget_(kPartsPerByte * program.file_bytes()) {}

  Status run(std::string_view entry);

  Module& module() { return module_; }

  // Building.
  Expected<Shape> shape(mlir::TypeRef type) const;
  /// Returns the shape of the op's only result, or the tuple of its results.
  Expected<Shape> result_shape(const mlir::Op& op) const;
  Expected<InstrId> value(ImportScope& scope, const mlir::Op& op, size_t operand);
  Expected<std::vector<InstrId>> all_values(ImportScope& scope, const mlir::Op& op, size_t first = 0);
  InstrId emit(ImportScope& scope, Op op, const Shape& shape, std::span<const InstrId> operands,
               const void* attrs = nullptr, std::span<const CompId> called = {});
  InstrId emit(ImportScope& scope, Op op, const Shape& shape, std::initializer_list<InstrId> operands,
               const void* attrs = nullptr, std::span<const CompId> called = {}) {
    return emit(scope, op, shape, std::span<const InstrId>(operands.begin(), operands.size()), attrs, called);
  }
  InstrId emit_constant(ImportScope& scope, Literal literal);
  /// Returns a scalar of `type` broadcast to the dimensions of `like`.
  InstrId emit_splat(ImportScope& scope, const Shape& like, Type type, double value);
  const Shape& shape_of(InstrId id) const { return module_[id].shape; }
  /// Records `id` as the op's result; if the op has several results, get-tuple-elements read them.
  Status define(ImportScope& scope, const mlir::Op& op, InstrId id);

  // Attributes, by their flat names. The optional forms give the default when there is none.
  Expected<Dims> ints(const mlir::Op& op, std::string_view name);
  Dims ints_or_empty(const mlir::Op& op, std::string_view name);
  Expected<int64_t> integer(const mlir::Op& op, std::string_view name);
  int64_t integer_or(const mlir::Op& op, std::string_view name, int64_t otherwise) const;
  bool flag(const mlir::Op& op, std::string_view name) const { return integer_or(op, name, 0) != 0; }
  std::string_view text(const mlir::Op& op, std::string_view name) const;
  /// Returns the precisions of the two operands; empty if both are the default.
  Expected<Dims> precisions(const mlir::Op& op);
  /// Returns the index in `words` of an enumeration's name. If the attribute is missing, returns `otherwise`, or an
  /// error if that is -1; a name that is not in `words` is an error.
  Expected<size_t> word(const mlir::Op& op, std::string_view name, std::span<const std::string_view> words,
                        int otherwise = -1) const;
  /// Returns the elements of a Dense attribute; ops that use the attribute share them.
  Expected<Literal> literal(mlir::AttrRef dense, bool* splat);
  /// Reads replica groups; groups that are given by mesh axes are an error.
  Expected<Groups> groups(const mlir::Op& op);

  // Regions and functions.
  Expected<CompId> function(std::string_view name, const mlir::Op& caller);
  /// Imports a region without captures (constants aside) as a computation of its arguments.
  Expected<CompId> region(ImportScope& scope, const mlir::Op& op, size_t index);
  /// Returns the values of outer scopes that the regions of `op` use, constants aside.
  std::vector<const mlir::Value*> captures(const mlir::Op& op) const;
  /// Imports a region as a computation whose one parameter is the tuple of `arguments` and `captured`, or the value
  /// itself if there is one only.
  Expected<CompId> tuple_region(ImportScope& outer, const mlir::Op& op, size_t index,
                                std::span<const mlir::Value* const> captured, bool return_captured,
                                std::string_view name);

  // Shardings.
  std::optional<Sharding> read_sharding(const NamedSharding& named, const Shape& shape) const;
  void set_sharding(InstrId id, Sharding sharding);
  /// Keeps the text of Shardy's sharding with an instruction, and the HLO sharding if there is one.
  void add_sharding(InstrId id, mlir::AttrRef attr);

  Status translate(ImportScope& scope, const mlir::Op& op);
  Status fail(const mlir::Op& op, std::string_view message) const;
  /// Returns the status with the op's line and name before the message, unless it states a line already.
  static Status placed(const mlir::Op& op, Status status);

 private:
  friend struct ImportTable;
  /// Checks that the instructions of the op's results have the declared shapes.
  Status check_results(ImportScope& scope, const mlir::Op& op) const;
  /// Checks that the returned values of a function have the declared types.
  Status check_returned(const mlir::Op& function, std::span<const InstrId> returned) const;
  Status add_annotations(ImportScope& scope, const mlir::Op& op, size_t before);
  Status translate_plain(ImportScope& scope, const mlir::Op& op);
  /// Checks that the attributes of the op are of the kinds as which they are read.
  Status check_attributes(const mlir::Op& op) const;
  /// Adds the shardings of an op's results.
  void add_shardings_per_value(const mlir::Op& op, InstrId id);
  /// Adds a sharding that is given as HLO text.
  Status add_text_sharding(const mlir::Op& op, InstrId id, mlir::AttrRef attr);
  /// Returns the sharding of an op's results, completed by that of the values that it captures if it is a loop, whose
  /// instruction `id` has them as results too.
  Sharding of_state(const mlir::Op& op, InstrId id, Sharding sharding) const;
  Status add_result_shardings(const mlir::Op& function);
  Status read_entry_layouts(const mlir::Op& function);
  Status read_aliases(const mlir::Op& root);
  /// Adds sharding constraints to results whose shardings the function states.
  void constrain_results(ImportScope& scope, const mlir::Op& function, std::vector<InstrId>& results);
  void read_meshes();
  void add_frontend_attributes(InstrId id, mlir::AttrRef dictionary);
  /// Translates a block. Blocks nest by regions and by calls, so the depth is limited.
  Status translate_block(ImportScope& scope, const mlir::Block& block, std::vector<InstrId>* returned);
  Expected<InstrId> lookup(ImportScope& scope, const mlir::Value* value, const mlir::Op& user);
  InstrId make_root(ImportScope& scope, std::span<const InstrId> returned, bool always_tuple);
  /// Begins a computation. It is added to the module's order when it is complete, because callees come before callers.
  CompId open_computation(std::string_view name);
  Status read_argument_shardings(const mlir::Op& function, const std::vector<InstrId>& parameters);
  Status read_entry_attributes(const mlir::Op& function);
  std::vector<FrontendAttribute> frontend_list(mlir::AttrRef dictionary);

  const mlir::Program& program_;
  Module& module_;
  std::unordered_map<std::string_view, const mlir::Op*> functions_;
  std::unordered_map<std::string_view, CompId> imported_;
  std::vector<std::string_view> importing_;
  std::unordered_map<mlir::AttrRef, Literal> literals_;
  ShapeBudget budget_;
  Status too_large_;
  uint32_t line_ = 0;  // line of the op that is being translated
  int depth_ = 0;
};

/// Translates one kind of op.
using ImportFunction = Status (*)(Importer&, ImportScope&, const mlir::Op&);
/// Returns the function that translates an op; null if the table of regular ops suffices.
ImportFunction find_import(std::string_view op_name);
/// A row of the table of translations; each import_*.cc file has a table for its ops.
struct ImportRow {
  std::string_view name;
  ImportFunction function;
};
std::span<const ImportRow> import_structured_rows();
std::span<const ImportRow> import_control_rows();
std::span<const ImportRow> import_dynamic_rows();
std::span<const ImportRow> import_chlo_rows();
std::span<const ImportRow> import_chlo_math_rows();
std::span<const ImportRow> import_collective_rows();
std::span<const ImportRow> import_sharding_rows();
std::span<const ImportRow> import_special_rows();
/// Translates an op to the HLO op `code`, which has the same operands and result.
Status translate_regular(Importer& importer, ImportScope& scope, const mlir::Op& op, Op code);

/// Keeps an op as a custom call of its name with its attributes as text: for ops that HLO does not have, and for those
/// whose shapes are not known yet.
Status keep_op(Importer& importer, ImportScope& scope, const mlir::Op& op);

/// Broadcasts an operand as in NumPy, with trailing dimensions aligned, or as broadcast_dimensions states. Shapes must
/// be static.
Expected<InstrId> broadcast_operand(Importer& importer, ImportScope& scope, const mlir::Op& op, InstrId x,
                                    const Shape& to);

/// Checks an operand that states the result's sizes: it must be a list of integers and, if constant, agree with `shape`.
Status check_shape_operand(Importer& importer, const mlir::Op& op, size_t operand, const Shape& shape);

/// True if any operand or result of the op is quantized.
bool has_quantized(const mlir::Op& op);
/// Translates an op on quantized values: on their integers where the result is the same, else on expressed values, with
/// operands dequantized and results quantized. NotFound: the op is to be translated like any other.
Status translate_quantized(Importer& importer, ImportScope& scope, const mlir::Op& op);
Expected<InstrId> dequantize(Importer& importer, ImportScope& scope, InstrId stored, mlir::TypeRef type);
Expected<InstrId> quantize(Importer& importer, ImportScope& scope, InstrId expressed, mlir::TypeRef type);

/// Returns the literal of a Dense attribute; for a splat it has one element, and *splat is set.
Expected<Literal> literal_of(const mlir::Attr& dense, bool* splat);

}  // namespace collet::hlo
