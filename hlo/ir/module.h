// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/base/arena.h"
#include "hlo/base/blocks.h"
#include "hlo/ir/attributes.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"
#include "hlo/ir/sharding.h"

/// \file
/// The IR. A Module owns everything. Instructions and computations have integer ids that stay valid as long as the
/// module exists; erasing an instruction only removes it from its computation's order. A computation lists its
/// instructions in an order in which operands come before users. There are no user lists: passes iterate forward and
/// replace operands as they go (see passes/rewriter.h), or build a UserMap once.
///
/// Thread safety: several threads may read a module while none writes.

namespace collet::hlo {

enum class InstrId : uint32_t { None = UINT32_MAX };
enum class CompId : uint32_t { None = UINT32_MAX };
inline uint32_t index_of(InstrId id) {
  return static_cast<uint32_t>(id);
}
inline uint32_t index_of(CompId id) {
  return static_cast<uint32_t>(id);
}

/// The contents of metadata={...}.
struct Metadata {
  std::string_view op_type, op_name, source_file, deduplicated_name, scheduling_name;
  int64_t source_line = 0, source_end_line = 0, source_column = 0, source_end_column = 0;
  int64_t stack_frame_id = 0;
  Dims profile_type;
};

/// A name="value" pair; a value that was a JSON dictionary, not a string, is kept verbatim.
struct FrontendAttribute {
  std::string_view name;
  std::string_view value;
  bool is_json = false;
};

/// The contents of result_accuracy={...}.
struct ResultAccuracy {
  bool is_mode = true;
  std::string_view mode;  ///< "default", "highest"
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
};

/// Attributes that any instruction may have. They are rare, so they are stored separately.
struct Extras {
  const Metadata* metadata = nullptr;
  const Sharding* sharding = nullptr;
  List<const FrontendAttribute> frontend_attributes;
  List<const InstrId> control_predecessors;
  std::string_view backend_config;
  bool backend_config_is_json = false;  ///< it is written without quotes
  std::string_view statistics;          ///< the text inside of the braces, verbatim
  std::string_view origin;              ///< inside of the braces, verbatim
  List<const bool> parameter_replication;
  const ResultAccuracy* result_accuracy = nullptr;
  bool zero_channel = false;  ///< the text states channel_id=0, which is a channel, although 0 in records means none
};

struct Instruction {
  Op op = Op::INVALID;
  CompId parent = CompId::None;
  uint32_t line = 0;  ///< line in the text it was read from; 0: none
  std::string_view name;
  Shape shape;
  List<InstrId> operands;
  List<CompId> called;
  const void* attrs = nullptr;  ///< a record of type op_info(op).record; null only for Record::None
  const Extras* extras = nullptr;

  InstrId operand(size_t i) const { return operands[i]; }
  /// The attributes; T must be the op's record: `instr.as<DotAttrs>()`.
  template <typename T>
  const T& as() const {
    return *static_cast<const T*>(attrs);
  }
};

struct Computation {
  std::string_view name;
  std::vector<InstrId> order;       ///< operands before users
  std::vector<InstrId> parameters;  ///< in the order of their numbers
  InstrId root = InstrId::None;
  std::string_view execution_thread;  ///< empty: the main thread
  uint32_t line = 0;
};

/// input_output_alias={ {out}: (param, {index}, kind) }.
struct InputOutputAlias {
  Dims output_index;
  int64_t parameter = 0;
  Dims parameter_index;
  bool must = false;
  uint32_t line = 0;  ///< line in the text; 0: none
};

/// buffer_donor={ (param, {index}) }.
struct BufferDonor {
  int64_t parameter = 0;
  Dims parameter_index;
  uint32_t line = 0;
};

/// The attributes after the module's name in its header.
struct ModuleHeader {
  uint32_t line = 0;         ///< line in which the header begins
  uint32_t layout_line = 0;  ///< line of entry_computation_layout
  bool is_scheduled = false;
  bool has_entry_layout = false;
  std::vector<Shape> entry_parameters;  ///< with layouts; valid if has_entry_layout
  Shape entry_result;
  std::vector<InputOutputAlias> aliases;
  std::vector<BufferDonor> donors;
  bool alias_passthrough_params = false;
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  std::vector<bool> spmd_to_parameters, spmd_to_output;  ///< allow_spmd_sharding_propagation_to_*
  std::vector<FrontendAttribute> frontend_attributes;
  std::string_view origin_recovery_table;  ///< verbatim
  /// Header sections that are kept as text (FileNames, StackFrames, ...).
  std::string_view verbatim;
};

class Module {
 public:
  explicit Module(std::string_view name = "module");
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string_view name() const { return name_; }
  void set_name(std::string_view name) { name_ = arena_.string(name); }
  ModuleHeader& header() { return header_; }
  const ModuleHeader& header() const { return header_; }

  Instruction& operator[](InstrId id) { return instructions_[index_of(id)]; }
  const Instruction& operator[](InstrId id) const { return instructions_[index_of(id)]; }
  Computation& operator[](CompId id) { return computations_[index_of(id)]; }
  const Computation& operator[](CompId id) const { return computations_[index_of(id)]; }

  /// Computations in the order of the text: callees before callers.
  std::vector<CompId>& computations() { return order_; }
  const std::vector<CompId>& computations() const { return order_; }
  CompId entry() const { return entry_; }
  void set_entry(CompId id) { entry_ = id; }
  Computation& entry_computation() { return (*this)[entry_]; }
  const Computation& entry_computation() const { return (*this)[entry_]; }
  /// All ids are less than this limit, including those of erased instructions.
  size_t instruction_limit() const { return instructions_.size(); }
  size_t computation_limit() const { return computations_.size(); }
  /// Returns the number of instructions that are in the order of some computation.
  size_t instruction_count() const;

  /// Adds a computation at the end of computations().
  CompId add_computation(std::string_view name);
  /// Creates an instruction that is in no order yet. `attrs` must be in this module's arena; null makes default
  /// attributes. An empty name is replaced by unique_name of the op.
  InstrId create(CompId parent, Op op, const Shape& shape, std::span<const InstrId> operands,
                 const void* attrs = nullptr, std::span<const CompId> called = {}, std::string_view name = {});
  /// Creates an instruction and appends it to `parent`'s order; a parameter is also added to the parameters.
  InstrId append(CompId parent, Op op, const Shape& shape, std::span<const InstrId> operands,
                 const void* attrs = nullptr, std::span<const CompId> called = {}, std::string_view name = {});
  InstrId append_parameter(CompId parent, int64_t number, const Shape& shape, std::string_view name = {});
  InstrId append_constant(CompId parent, Literal value, std::string_view name = {});
  /// Returns attributes of a constant with this value.
  const ConstantAttrs* constant_attrs(Literal value);

  /// Returns the value of a CONSTANT instruction.
  const Literal& literal(const Instruction& constant) const { return literals_[constant.as<ConstantAttrs>().constant]; }
  Literal& literal(uint32_t index) { return literals_[index]; }
  const Literal& literal(uint32_t index) const { return literals_[index]; }
  uint32_t add_literal(Literal value);
  /// All indices of literals are less than this limit.
  size_t literal_limit() const { return literals_.size(); }

  Arena& arena() { return arena_; }
  /// Returns a default-constructed record, to be filled before it is attached to an instruction: `auto* a =
  /// m.make<DotAttrs>();`.
  template <typename T>
  T* make() {
    return arena_.make<T>();
  }
  Dims dims(std::span<const int64_t> values) { return arena_.list<const int64_t>(values); }
  Dims dims(std::initializer_list<int64_t> values) {
    return dims(std::span<const int64_t>(values.begin(), values.size()));
  }
  /// Stores a copy and returns a stable pointer to it, for attributes that hold a shape or literal.
  const Shape* keep(Shape shape);
  const Literal* keep(Literal literal);
  const Sharding* keep(Sharding sharding);

  /// Returns `stem` if unique_name has not returned it and note_name has not registered it, else `stem.N`.
  std::string_view unique_name(std::string_view stem);
  /// Registers a name that was given to an instruction, so that unique_name does not return it.
  void note_name(std::string_view name);
  /// Returns `stem`, or `stem.N`: a name that no computation of the module has or had.
  std::string_view unique_computation_name(std::string_view stem);

  /// Copies `instr`'s attributes and extras from module `from` into this one.
  const void* clone_attrs(const Module& from, const Instruction& instr);
  const Extras* clone_extras(const Module& from, const Extras* extras);
  /// Returns a deep copy.
  std::unique_ptr<Module> clone() const;
  /// Drops computations that the entry does not reach.
  void drop_unreachable_computations();

 private:
  std::string_view name_;
  ModuleHeader header_;
  Arena arena_;
  Blocks<Instruction> instructions_;
  std::deque<Computation> computations_;
  std::vector<CompId> order_;
  CompId entry_ = CompId::None;
  std::deque<Literal> literals_;
  std::deque<Shape> shapes_;
  std::deque<Literal> kept_literals_;
  std::deque<Sharding> shardings_;
  /// The names that are taken, and the last number that was tried with each as stem.
  using Names = std::unordered_map<std::string_view, uint32_t>;
  std::string_view unique_among(Names& names, std::string_view stem);

  Names names_;
  Names computation_names_;
  size_t named_computations_ = 0;  ///< so many of computations_ have their names in computation_names_
};

/// The users of each instruction of one computation; valid until the computation changes.
class UserMap {
 public:
  UserMap(const Module& module, CompId computation);
  /// Returns the users; a user occurs once per operand that is `id`.
  std::span<const InstrId> users(InstrId id) const;

 private:
  std::unordered_map<uint32_t, uint32_t> slot_;
  std::vector<uint32_t> begin_;
  std::vector<InstrId> users_;
};

}  // namespace collet::hlo
