// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/base/diagnostics.h"
#include "hlo/stablehlo/mlir.h"
#include "hlo/stablehlo/text_lexer.h"

namespace collet::hlo::mlir {

/// Reads one program and stops at the first error, because after an error MLIR text can only be resumed safely at the
/// next function, and errors in a function would be reported again for each of its callers. Functions that return bool
/// return false after error().
class TextReader {
 public:
  TextReader(std::string_view text, Program& program, Diagnostics& diagnostics)
      : lexer_(text), program_(program), diagnostics_(diagnostics) {}

  bool run();
  /// Reads the whole text as one attribute.
  bool run_attribute(AttrRef* out);

 private:
  using Names = std::unordered_map<std::string_view, std::vector<Value*>>;

  // text_reader.cc: structure.
  bool error(const Token& at, std::string message);
  bool error(std::string message) { return error(lexer_.peek(), std::move(message)); }
  bool expect(char c);
  bool accept(char c);
  bool accept_word(std::string_view word);
  bool expect_word(std::string_view word);
  uint32_t line_of(size_t offset);
  bool skip_location();
  bool read_alias();
  bool read_op(Block* block);
  bool read_one_op(Block* block);
  bool read_generic(Op* op);
  /// Reads `(%a, %b)`.
  bool read_operands(Op* op);
  /// Checks that the types that an op states are those of its operands.
  bool check_operands(const Op& op, const std::vector<TypeRef>& types, const Token& at);
  bool read_function(Op* op);
  bool read_function_arguments(Op* op, Block* block, std::vector<TypeRef>* inputs);
  bool read_function_results(Op* op, std::vector<TypeRef>* outputs);
  bool read_module(Op* op);
  bool read_region(Op* op, const std::vector<Value*>* arguments = nullptr);
  bool read_block_label(Block* block);
  bool read_ops_until_brace(Block* block);
  bool define_results(Op* op, const std::vector<std::pair<std::string_view, size_t>>& names,
                      const std::vector<TypeRef>& types);
  Value* use(const Token& token);
  bool read_value(Value** out);
  bool bind(std::string_view name, std::vector<Value*> values);

  // text_types.cc
  bool read_type(TypeRef* out);
  bool read_types_in_parens(std::vector<TypeRef>* out);
  /// Reads one type, or several in parentheses.
  bool read_result_types(std::vector<TypeRef>* out);
  bool read_tensor(TypeRef* out, Type::Kind kind);
  bool read_bounds(List<const int64_t>* out);
  bool read_quantized(TypeRef* out);
  /// Reads the types in angle brackets of a tuple or a future.
  bool read_elements(Type::Kind kind, TypeRef* out);
  bool read_scalar_type(hlo::Type* out);
  bool complete(Type* type);

  // text_attributes.cc
  bool read_attr(AttrRef* out);
  bool complete(Attr* attr);
  bool read_attr_dict(std::vector<NamedAttr>* out);
  bool read_dense(AttrRef* out);
  bool read_array(AttrRef* out);
  bool read_dense_array(AttrRef* out);
  bool read_dense_resource(AttrRef* out);
  bool read_resources();
  bool read_resource_block(size_t begin);
  bool read_resource_entries();
  bool read_sharding_op(Op* op, size_t result_count, std::vector<TypeRef>* result_types, bool* done);
  bool read_raw(Op* op, std::string_view name, std::string_view prefix, char open, char close, std::string_view suffix);
  bool read_manual_computation(Op* op, std::vector<TypeRef>* result_types);
  Attr* make_record(std::string_view name, const std::vector<NamedAttr>& fields);
  bool read_hash_attr(AttrRef* out);
  bool read_number(AttrRef* out);
  bool read_int_list(std::vector<int64_t>* out);
  bool read_int(int64_t* out);
  bool skip_balanced(char open, char close, std::string_view* text);
  /// Reads [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] into flat attributes.
  bool read_conv_labels(std::vector<NamedAttr>* out);

  // text_pretty.cc: the short forms.
  bool read_pretty(Op* op, size_t result_count, std::vector<TypeRef>* result_types);
  bool read_items(Op* op);
  bool read_keyword(Op* op, std::string_view keyword);
  bool read_signature(Op* op, size_t result_count, std::vector<TypeRef>* result_types);
  bool read_constant(Op* op, std::vector<TypeRef>* result_types);
  bool read_call(Op* op, std::vector<TypeRef>* result_types);
  bool read_custom_call(Op* op, std::vector<TypeRef>* result_types);
  bool read_while(Op* op, std::vector<TypeRef>* result_types);
  bool read_reduce(Op* op, std::vector<TypeRef>* result_types);
  bool read_convolution(Op* op, std::vector<TypeRef>* result_types);
  bool read_slice_ranges(Op* op);
  bool read_dot_pair(Op* op, std::string_view keyword);
  bool read_window(Op* op);
  bool read_functional(std::vector<TypeRef>* inputs, std::vector<TypeRef>* outputs);
  void flatten_attributes(Op* op);
  AttrRef make_ints(const std::vector<int64_t>& values);
  AttrRef make_int(int64_t value, hlo::Type type = hlo::Type::S64);
  AttrRef make_enum(std::string_view text);
  std::string_view keep(std::string_view text) { return program_.arena().string(text); }

  Lexer lexer_;
  Program& program_;
  Diagnostics& diagnostics_;
  std::vector<Names> scopes_;
  std::unordered_map<std::string_view, AttrRef> aliases_;
  std::unordered_map<std::string_view, TypeRef> type_aliases_;
  struct Resource {
    Token digits;
    AttrRef elements = nullptr;  // decoded at the first use
  };
  std::unordered_map<std::string_view, Resource> resources_;
  std::unordered_map<size_t, size_t> resource_blocks_;  // offsets at which resource blocks begin and end
  size_t counted_to_ = 0;
  uint32_t counted_lines_ = 1;
  int depth_ = 0;         // nesting of types and attributes
  int region_depth_ = 0;  // nesting of ops
};

}  // namespace collet::hlo::mlir
