// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// The state of one export, shared by the files that translate the families of ops.

namespace collet::hlo {

/// How an instruction is represented in the exported program: as one value, or as the elements of a tuple that no op
/// has built.
struct ExportNode {
  mlir::Value* value = nullptr;
  std::vector<ExportNode> parts;
};

/// The block that is being filled, and the exported values of the instructions of one computation.
struct ExportScope {
  mlir::Block* block = nullptr;
  std::unordered_map<InstrId, ExportNode> nodes;
};

class Exporter {
 public:
  Exporter(const Module& module, mlir::Program& program) : module_(module), program_(program) {}

  /// Exports the module. Stores the entry's values in `values` unless it is null.
  Status run(std::unordered_map<InstrId, mlir::Value*>* values = nullptr);

  const Module& module() const { return module_; }
  mlir::Program& program() { return program_; }

  // Values.
  Expected<mlir::TypeRef> type(const Shape& shape);
  const ExportNode& node(const ExportScope& scope, const Instruction& instr, size_t operand) const {
    return scope.nodes.at(instr.operand(operand));
  }
  /// Returns the node as one value. A tuple is built from its elements if necessary.
  Expected<mlir::Value*> whole(ExportScope& scope, const ExportNode& node);
  /// Appends the arrays and tokens of a node; tuples are flattened.
  Status leaves(ExportScope& scope, const ExportNode& node, std::vector<mlir::Value*>& out);
  /// Returns the `index`-th element of a tuple.
  Expected<ExportNode> part(ExportScope& scope, const ExportNode& node, size_t index);
  Expected<mlir::Value*> operand(ExportScope& scope, const Instruction& instr, size_t i);
  Expected<std::vector<mlir::Value*>> operands(ExportScope& scope, const Instruction& instr);
  /// Appends the types of a shape's arrays and tokens.
  Status leaf_types(const Shape& shape, std::vector<mlir::TypeRef>& out);
  /// Returns the node of results that have the types of leaf_types(shape).
  static ExportNode from_leaves(const Shape& shape, std::span<mlir::Value* const> values, size_t* next);
  static ExportNode from_leaves(const Shape& shape, std::span<mlir::Value* const> values) {
    size_t next = 0;
    return from_leaves(shape, values, &next);
  }
  /// Returns the result types of an op for `shape`: those of a tuple's elements; a tuple of one element stays one
  /// value.
  Expected<std::vector<mlir::TypeRef>> result_types(const Shape& shape);
  static ExportNode from_results(const mlir::Op& op);

  // Building.
  mlir::Op* emit(ExportScope& scope, std::string_view name, std::span<mlir::Value* const> operands,
                 std::span<const mlir::TypeRef> results);
  mlir::Op* emit(ExportScope& scope, std::string_view name, std::span<mlir::Value* const> operands,
                 std::initializer_list<mlir::TypeRef> results) {
    return emit(scope, name, operands, std::span<const mlir::TypeRef>(results.begin(), results.size()));
  }
  /// Emits an op on all operands; its results have the instruction's shape.
  Expected<mlir::Op*> emit_like(ExportScope& scope, std::string_view name, const Instruction& instr);
  mlir::Value* emit_ints(ExportScope& scope, hlo::Type type, std::span<const int64_t> values);
  mlir::Value* emit_constant(ExportScope& scope, const Literal& literal, mlir::TypeRef type);
  /// Converts to elements of `type`; returns `value` if it has them already.
  mlir::Value* emit_convert(ExportScope& scope, mlir::Value* value, hlo::Type type);
  Expected<mlir::Value*> emit_reshape(ExportScope& scope, mlir::Value* value, std::span<const int64_t> dims);

  // Attributes.
  void set(mlir::Op* op, std::string_view name, mlir::AttrRef value) { op->attrs.push_back({name, value}); }
  void set_ints(mlir::Op* op, std::string_view name, std::span<const int64_t> values);
  /// Omits the attribute if the list is empty.
  void set_list(mlir::Op* op, std::string_view name, std::span<const int64_t> values) {
    if (!values.empty()) set_ints(op, name, values);
  }
  void set_table(mlir::Op* op, std::string_view name, std::span<const int64_t> values, int64_t columns);
  void set_int(mlir::Op* op, std::string_view name, int64_t value, hlo::Type type = hlo::Type::S64);
  void set_bool(mlir::Op* op, std::string_view name, bool value);
  /// Omits the attribute if the flag is false.
  void set_flag(mlir::Op* op, std::string_view name, bool value) {
    if (value) set_bool(op, name, true);
  }
  void set_enum(mlir::Op* op, std::string_view name, std::string_view value);
  void set_text(mlir::Op* op, std::string_view name, std::string_view value);
  void set_frontend_attributes(mlir::Op* op, std::span<const FrontendAttribute> attributes) {
    if (mlir::AttrRef all = frontend_dictionary(attributes)) set(op, "mhlo.frontend_attributes", all);
  }
  void set_precisions(mlir::Op* op, Dims precision);
  mlir::AttrRef text_attr(std::string_view value);
  mlir::AttrRef int_attr(int64_t value, hlo::Type type);
  mlir::AttrRef bool_attr(bool value);
  mlir::AttrRef type_attr(mlir::TypeRef type);

  // Computations.
  /// Adds a region for the computation. Its arguments are the leaves of the parameters, except for the parameters that
  /// `bound` replaces by values.
  Status region(mlir::Op* op, CompId computation, const std::vector<ExportNode>* bound = nullptr);
  /// Adds a region that combines two scalars of `type`; if the computation has another type, they are converted.
  Status combiner(mlir::Op* op, CompId computation, hlo::Type type);
  /// Exports the computation's ops into the current block.
  Expected<ExportNode> inlined(ExportScope& scope, CompId computation, std::vector<ExportNode> arguments);
  /// Returns the name of the function for the computation, which is exported at the first call.
  Expected<std::string_view> function(CompId computation);

  Status fail(const Instruction& instr, std::string_view why) const;

 private:
  Expected<ExportNode> translate(ExportScope& scope, InstrId id);
  Status translate_all(ExportScope& scope, CompId computation);
  void add_extras(const Instruction& instr, mlir::Op* op);
  Expected<mlir::Op*> build_function(CompId computation, std::string_view name, bool entry);
  Status add_returns(ExportScope& scope, const Shape& shape, const ExportNode& root, mlir::Op* function,
                     mlir::Type* type);
  void add_entry_attributes(mlir::Op* function);
  void add_module_attributes();
  mlir::AttrRef frontend_dictionary(std::span<const FrontendAttribute> attributes);

  const Module& module_;
  mlir::Program& program_;
  mlir::Block* functions_ = nullptr;
  std::unordered_map<CompId, std::string_view> function_names_;
  std::unordered_set<std::string_view> taken_;
  std::unordered_map<std::string, int> numbers_;  // last number appended to make a name unique
  mlir::Op* last_ = nullptr;                      ///< the op that gets the attributes of the current instruction
  int depth_ = 0;
  size_t written_ = 0;  ///< instructions so far, once for each copy of their computation
  std::unordered_map<InstrId, mlir::Value*>* entry_values_ = nullptr;
};

/// Error text for a value that contains an unfinished transfer or asynchronous op: StableHLO cannot pass it between
/// regions.
constexpr std::string_view kUnfinished = "it holds a transfer or an async op that has not ended";

/// Translates one kind of instruction.
using ExportFunction = Expected<ExportNode> (*)(Exporter&, ExportScope&, const Instruction&);
struct ExportRow {
  Op op;
  ExportFunction function;
};
std::span<const ExportRow> export_structured_rows();
std::span<const ExportRow> export_windowed_rows();
std::span<const ExportRow> export_control_rows();
std::span<const ExportRow> export_call_rows();
std::span<const ExportRow> export_collective_rows();

}  // namespace collet::hlo
