// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/base/utf8.h"
#include "hlo/ir/limits.h"
#include "hlo/text/lexer.h"
#include "hlo/text/name_table.h"
#include "hlo/text/parser.h"

/// \file
/// The implementation of the parser. A function that returns bool reads the part of the text after which it is named,
/// and says whether it succeeded. Before it returns false it reports an error, unless the failure follows from an
/// earlier error (such as a name whose definition was refused).

namespace collet::hlo::text {

/// Deeper nesting of tuples, operands, computations and the like is refused.
constexpr int kMaxDepth = kDeepestShape;

/// Attributes that any instruction may have.
enum class Common : uint8_t {
  Sharding,
  FrontendAttributes,
  ParameterReplication,
  ControlPredecessors,
  Statistics,
  Origin,
  Metadata,
  BackendConfig,
  ResultAccuracy,
  Count,
};

/// An instruction that is being read.
struct Draft {
  Op op = Op::INVALID;
  Op wrapped = Op::INVALID;  ///< for asynchronous forms that name an op, such as all-to-all-start
  const Shape* shape = nullptr;
  Record record = Record::None;
  void* attrs = nullptr;
  /// For async-start around `wrapped`: its own record; `record` is that of the wrapped op.
  Record async_record = Record::None;
  void* async_attrs = nullptr;
  uint64_t seen = 0;  ///< bit i: field i of `record` was read
  uint32_t seen_common = 0, seen_regions = 0, seen_async = 0;
  bool seen_mode = false;
  bool has_extras = false;
  Extras extras;
  std::vector<InstrId> operands;
  std::vector<CompId> called;
  const char* operands_at = nullptr;

  void reset() {
    const auto keep_operands = std::move(operands);
    const auto keep_called = std::move(called);
    *this = Draft();
    operands = std::move(const_cast<std::vector<InstrId>&>(keep_operands));
    called = std::move(const_cast<std::vector<CompId>&>(keep_called));
    operands.clear();
    called.clear();
  }
};

/// The names of a computation that is being read, and its parameters.
struct Scope {
  NameTable names;
  CompId computation = CompId::None;
  InstrId root = InstrId::None;
  bool root_marked = false;
  bool failed = false;
  std::vector<std::pair<int64_t, InstrId>> parameters;
  std::unordered_set<int64_t> parameter_numbers;
};

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options, Diagnostics& diagnostics);
  std::unique_ptr<Module> run();
  bool shape_only(Shape& out);
  bool sharding_only(Sharding& out);

 private:
  // parser.cc: the module and its computations
  bool module_text();
  bool header();
  bool header_attribute(std::string_view name);
  bool source_tables();
  bool aliases();
  bool donors();
  bool entry_layout();
  bool recovery_table();
  bool bool_list(std::vector<bool>& out);
  bool computations();
  bool computation();
  bool signature(const Shape*& result, const char*& at);
  bool instruction_list(Scope& scope, std::string_view name);
  bool finish_parameters(Scope& scope, const char* at);
  bool single_instruction();
  bool check_aliases();
  void choose_entry();
  void put_last(CompId id);
  Scope& push_scope();
  void pop_scope() { --scope_depth_; }
  Scope& scope() { return *scopes_[scope_depth_ - 1]; }
  bool recover_instruction(const char* from);
  bool recover_computation(const char* from);

  // parse_instruction.cc
  bool instruction(Scope& scope);
  bool right_hand_side(std::string_view name, const char* name_at, bool attributes_allowed, InstrId& out);
  bool opcode(Draft& draft);
  bool operand_list(Draft& draft);
  bool operand(Draft& draft);
  bool named_operand(Draft& draft, const Shape* shape, std::string_view name, const char* at);
  bool parameter_number(Draft& draft);
  bool constant_value(Draft& draft);
  bool check_operand_count(const Draft& draft);
  bool check_before_attributes(Draft& draft);
  bool check_after_attributes(Draft& draft);
  bool check_custom_call(const Draft& draft);
  bool check_async_link(Draft& draft);
  bool wrap_async(Draft& draft);
  bool infer(Draft& draft, Shape& inferred);
  bool charge(const Draft& draft, const Shape& shape);
  bool add_instruction(Draft& draft, std::string_view name, const char* name_at, InstrId& out);
  std::string_view anonymous_name(Op op);
  bool undefined(std::string_view what, std::string_view name, const NameTable& names, const char* at);

  // parse_attributes.cc
  bool attributes(Draft& draft, bool allowed);
  bool attribute(Draft& draft);
  bool common_attribute(Draft& draft, Common which);
  bool region_attribute(Draft& draft, int index, bool list);
  int region_index(const Draft& draft, std::string_view name, bool& list) const;
  bool unknown_attribute(const Draft& draft, std::string_view name, const char* at);
  bool missing_attributes(const Draft& draft, const char* at);
  bool field(const FieldInfo& info, void* attrs);
  bool enum_value(const FieldInfo& info, uint32_t& out);
  bool dims(Dims& out);
  bool int_list(std::vector<int64_t>& out, Tok open, Tok close, Tok separator);
  bool window(Window& out);
  bool window_sizes(std::string_view name, Dims& out);
  bool split_numbers(std::string_view text, char separator, std::vector<int64_t>& out);
  bool slices(SliceRanges& out);
  /// Whether the token is the first of its line.
  bool is_first_of_line() const;
  bool pads(Padding& out);
  bool dim_labels(DimLabels& out);
  bool label_part(std::string_view part, char first, char second, int64_t& first_at, int64_t& second_at, Dims& spatial);
  bool precisions(Dims& out);
  bool groups(Groups& out);
  bool iota_groups(Groups& out);
  bool mesh_groups(Groups& out);
  bool known_groups(const std::string& text, Groups& out) const;
  bool keep_groups(std::span<const int64_t> ids, int64_t size, const std::string& text, Groups& out);
  bool pairs(Dims& out);
  bool lists(List<const Dims>& out);
  bool shapes(List<const Shape* const>& out);
  bool aliasing(List<const AliasEntry>& out);
  bool shape_index(Dims& out);
  bool alias_target(int64_t& number, Dims& index);
  bool domain(std::string_view& out);
  bool computation_reference(CompId& out);

  // parse_extras.cc
  bool sharding(const Sharding*& out);
  bool single_sharding(Sharding& out);
  bool named_sharding(Sharding& out, const char* open);
  bool sharding_item(Sharding& out, uint32_t& kinds);
  bool tile_assignment(Sharding& out);
  bool iota_assignment(std::vector<int64_t>& reshape, std::vector<int64_t>& permutation);
  bool sharding_kinds(std::vector<Sharding::Kind>& out);
  bool finish_sharding(Sharding& out, uint32_t kinds, const char* at);
  bool frontend_attributes(std::vector<FrontendAttribute>& out);
  bool parameter_replication(List<const bool>& out);
  bool control_predecessors(List<const InstrId>& out);
  bool statistics(std::string_view& out);
  bool origin(std::string_view& out);
  bool origin_array();
  bool metadata(const Metadata*& out);
  bool metadata_item(Metadata& out, uint32_t& seen);
  bool metadata_list();
  bool backend_config(Extras& out);
  bool result_accuracy(const ResultAccuracy*& out);
  bool tolerance(ResultAccuracy& out);
  bool json(std::string_view& out);

  // parse_shape.cc
  bool at_shape();
  bool shape(const Shape*& out);
  bool read_shape(Shape& out);
  bool read_array(Shape& out);
  bool dimension_sizes(std::vector<int64_t>& out, std::vector<bool>& dynamic);
  bool layout(Layout& out);
  bool layout_parts(Layout& out);
  bool tiles(std::vector<Tile>& out);
  bool layout_number(int64_t& out);
  bool layout_type(Type& out);
  bool split_configs(std::vector<SplitConfig>& out);
  bool level_types(std::string& out);
  std::string_view shape_extent() const;
  Type widened(Type type) const;

  // parse_literal.cc
  bool literal(const Shape& shape, Literal& out);
  bool shaped_literal(Literal& out);
  bool tuple_literal(const Shape& shape, Literal& out);
  bool dense_literal(const Shape& shape, Literal& out);
  bool elided_literal(const Shape& shape, Literal& out);
  bool first_element(const Shape& shape, Literal& out);
  bool claim_elided(const Shape& shape);
  bool at_number() const;
  template <typename Store>
  bool literal_elements(const Shape& shape, Literal& out, Store store);
  bool number(double& out);
  bool float_element(const struct FloatTarget& target, uint8_t* to);
  bool integer_element(Type type, uint8_t* to);
  bool complex_element(Type type, uint8_t* to);
  bool component(const struct FloatTarget& target, Type shown, std::string_view which, uint8_t* to);
  void fill_elided(Literal& out);

  // tokens and error messages
  void next() {
    behind_ = tok_.end;
    lexer_.next(tok_);
  }
  bool is(Tok kind) const { return tok_.kind == kind; }
  bool is_word(Word word) const { return tok_.kind == Tok::Keyword && tok_.word == word; }
  bool eat(Tok kind) {
    if (tok_.kind != kind) return false;
    next();
    return true;
  }
  bool expect(Tok kind, std::string_view what);
  bool integer(int64_t& out);
  bool boolean(bool& out);
  bool name(std::string_view& out);
  bool string(std::string_view& out);  ///< the result is in the arena, with escapes resolved
  Tok peek();
  bool complain(std::string message) { return complain(tok_.begin, std::move(message)); }
  bool complain(const char* at, std::string message);
  bool expected(std::string_view what);
  bool expected_attribute(std::string_view what);
  bool expected_name();
  uint32_t line_at(const char* at);
  bool enter();
  void leave() { --depth_; }
  bool stop() const { return diagnostics_.full(); }

  Lexer lexer_;
  Token tok_;
  const char* behind_ = nullptr;  // end of the token before the current one
  const ParseOptions& options_;
  Diagnostics& diagnostics_;
  size_t errors_at_start_;
  std::unique_ptr<Module> module_holder_;
  Module& module_;
  int depth_ = 0;

  std::vector<std::unique_ptr<Scope>> scopes_;
  size_t scope_depth_ = 0;
  NameTable computation_names_;
  CompId entry_ = CompId::None;
  bool entry_marked_ = false;
  bool computation_failed_ = false;
  bool single_ = false;
  // Computations that are written inline, or created for the short form of asynchronous ops.
  std::vector<CompId> unnamed_;
  std::array<uint32_t, COLLET_OP_LIMIT> anonymous_{};
  size_t made_up_ = 0;
  std::unordered_map<uint32_t, InstrId> async_start_;  // for updates and dones: their start
  std::unordered_map<uint32_t, InstrId> async_caller_;
  std::vector<const char*> alias_places_;

  std::vector<std::unique_ptr<Draft>> drafts_;
  size_t draft_depth_ = 0;

  NameTable shape_names_;
  std::deque<Shape> shapes_;
  ShapeBudget budget_;  // limits the parts that the text does not write out
  // Groups in short form, by their text, because programs repeat them.
  std::unordered_map<std::string, List<const Dims>> groups_;
  const char* shape_end_ = nullptr;  // end of the last shape that was read by tokens

  const char* line_from_ = nullptr;
  uint32_t line_ = 1;

  int64_t elided_bytes_ = 0;
  uint64_t elided_count_ = 0;
  uint8_t elided_byte_ = 0;
  std::string scratch_;
  std::vector<int64_t> numbers_;
};

/// The number of a name whose definition was refused.
constexpr uint32_t kRefused = UINT32_MAX - 1;

}  // namespace collet::hlo::text
