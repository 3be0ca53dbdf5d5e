// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/write.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "hlo/ops/rules.h"
#include "hlo/program/attributes.h"
#include "hlo/program/check.h"
#include "hlo/program/records.h"

namespace collet::hlo {
namespace {

constexpr size_t kLargestProgram = size_t{1} << 24;  // most ops of a program

class Writer {
 public:
  Writer(const Module& module, const ProgramOptions& options)
      : m_(module), options_(options), first_value_(module.instruction_limit(), COLLET_NONE) {}

  Expected<Program> write(const Cluster& cluster) {
    COLLET_TRY(entry(cluster));
    while (!pending_.empty()) {
      const Pending next = pending_.front();
      pending_.pop_front();
      COLLET_TRY(called(next));
    }
    for (const ProgramAlias& a : cluster.aliases)
      aliases_.push_back({a.result, a.argument, a.must ? uint32_t{COLLET_ALIAS_MUST} : uint32_t{COLLET_ALIAS_MAY}, 0});
    return assemble();
  }

 private:
  struct Pending {
    uint32_t region;
    CompId computation;
    uint32_t depth;
  };

  collet_range name(std::string_view text) { return options_.without_names ? collet_range{0, 0} : pools_.add(text); }

  ContentId id_of(const Literal& literal) {
    return options_.content_ids ? options_.content_ids->of(literal) : ContentIds().of(literal);
  }

  Expected<uint32_t> type(const Shape& shape) {
    if (!shape.is_array() && !shape.is_token() && !shape.is_opaque())
      return unimplemented("a value of type " + shape.to_string() + " cannot stand in a program");
    if (shape.has_dynamic())
      return unimplemented("dynamic dimensions (" + shape.to_string() + ") are not supported at the ABI boundary");
    std::vector<int64_t> key(shape.dims().begin(), shape.dims().end());
    key.push_back(static_cast<int64_t>(shape.type()));
    const auto [it, fresh] = type_ids_.try_emplace(std::move(key), static_cast<uint32_t>(types_.size()));
    if (!fresh) return it->second;
    collet_type t{};
    t.element = static_cast<uint32_t>(shape.type());
    t.dims = pools_.add(shape.dims());
    t.elements = shape.is_array() ? static_cast<uint64_t>(shape.element_count()) : 1;
    t.bytes = shape.is_array() ? static_cast<uint64_t>(shape.byte_size()) : 0;
    if (t.elements >= INT64_MAX || t.bytes >= INT64_MAX)
      return invalid_argument("an array of type " + shape.to_string() + " is too large");
    types_.push_back(t);
    return it->second;
  }

  Expected<uint32_t> value(const Shape& shape, uint32_t definition, uint32_t index, uint32_t flags,
                           std::string_view text, Leaf leaf) {
    auto t = type(shape);
    if (!t.ok()) return text.empty() ? t.status() : t.status().with_prefix("'" + std::string(text) + "': ");
    collet_value v{};
    v.type = *t;
    v.flags = flags;
    v.definition = definition;
    v.index = index;
    v.name = name(text);
    v.offset = options_.arena_offset && leaf.instr != InstrId::None ? options_.arena_offset(leaf) : COLLET_NONE64;
    if (v.offset != COLLET_NONE64) arena_bytes_ = std::max(arena_bytes_, v.offset + types_[v.type].bytes);
    values_.push_back(v);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  // Returns the number of the value for a resolved leaf.
  Expected<uint32_t> ref(Leaf leaf) {
    const auto it = inputs_.find(leaf);
    if (it != inputs_.end()) return it->second;
    const uint32_t first = first_value_[index_of(leaf.instr)];
    if (first == COLLET_NONE)
      return internal_error("program writer: '" + std::string(m_[leaf.instr].name) + "' is used but not there");
    return first + leaf.index;
  }

  Status entry(const Cluster& cluster) {
    regions_.emplace_back();
    collet_region region{};
    region.op = COLLET_NONE;
    region.name = name(m_[cluster.computation].name);
    region.arguments.first = 0;
    for (size_t i = 0; i < cluster.inputs.size(); ++i) {
      const Leaf leaf = cluster.inputs[i];
      const Instruction& instr = m_[leaf.instr];
      const Shape& shape = leaf_shape(instr.shape, leaf.index);
      const bool by_value = options_.scalars_by_value && shape.is_array() && shape.rank() == 0 &&
                            std::none_of(cluster.aliases.begin(), cluster.aliases.end(),
                                         [&](const ProgramAlias& a) { return a.argument == i; });
      const uint32_t flags = COLLET_VALUE_ARGUMENT | (by_value ? uint32_t{COLLET_VALUE_SCALAR} : 0);
      COLLET_ASSIGN(const uint32_t v, value(shape, 0, static_cast<uint32_t>(i), flags, instr.name, {}));
      inputs_[leaf] = v;
    }
    const size_t inline_limit = options_.constants_as_arguments ? 0 : options_.inline_limit;
    std::vector<InstrId> body;
    for (InstrId id : cluster.members) {
      const Instruction& instr = m_[id];
      if (is_transparent(instr) || instr.op == Op::PARAMETER) continue;
      const bool large = instr.op == Op::CONSTANT && instr.shape.is_array() &&
                         static_cast<size_t>(instr.shape.byte_size()) > inline_limit;
      if (!large)
        body.push_back(id);
      else
        COLLET_TRY(constant_argument(id, static_cast<uint32_t>(cluster.inputs.size())));
    }
    region.arguments.count = static_cast<uint32_t>(values_.size());
    COLLET_TRY(ops(body, region));
    COLLET_TRY(results({cluster.outputs.begin(), cluster.outputs.end()}, region));
    regions_[0] = region;
    inputs_.clear();
    return ok_status();
  }

  Status constant_argument(InstrId id, uint32_t inputs) {
    const Instruction& instr = m_[id];
    const Literal& literal = m_.literal(instr);
    const auto bytes = static_cast<size_t>(literal.byte_size());
    const ContentId content = id_of(literal);
    const auto number = static_cast<uint32_t>(inputs + constants_out_.size());
    COLLET_ASSIGN(const uint32_t v,
                  value(instr.shape, 0, number, COLLET_VALUE_ARGUMENT | COLLET_VALUE_CONSTANT, instr.name, {}));
    first_value_[index_of(id)] = v;
    constants_out_.push_back({number, id, content});
    collet_constant c{};
    c.type = values_[v].type;
    c.argument = number;
    c.offset = COLLET_NONE64;
    c.bytes = bytes;
    c.content_id[0] = content.words[0];
    c.content_id[1] = content.words[1];
    constants_.push_back(c);
    return ok_status();
  }

  Status too_deep(const Instruction& instr) const {
    std::string out = instr.line ? "line " + std::to_string(instr.line) + ": " : std::string();
    out += std::string(op_info(instr.op).text) + " '" + std::string(instr.name) + "': its computation '";
    out += std::string(m_[instr.called[0]].name) + "' is nested too deeply, in more than ";
    return invalid_argument(out + std::to_string(kDeepestRegion) + " others");
  }

  Status called(const Pending& pending) {
    const Computation& computation = m_[pending.computation];
    depth_ = pending.depth;
    collet_region region{};
    region.op = regions_[pending.region].op;
    region.name = name(computation.name);
    region.combine = combine_kind(m_, pending.computation);
    region.arguments.first = static_cast<uint32_t>(values_.size());
    for (InstrId p : computation.parameters) {
      const Instruction& instr = m_[p];
      first_value_[index_of(p)] = static_cast<uint32_t>(values_.size());
      std::vector<Shape> shapes;
      append_leaf_shapes(instr.shape, shapes);
      for (size_t i = 0; i < shapes.size(); ++i)
        COLLET_TRY(value(shapes[i], pending.region, static_cast<uint32_t>(values_.size()) - region.arguments.first,
                         COLLET_VALUE_ARGUMENT, instr.name, {p, static_cast<uint32_t>(i)})
                       .status());
    }
    region.arguments.count = static_cast<uint32_t>(values_.size()) - region.arguments.first;
    std::vector<InstrId> body;
    for (InstrId id : computation.order)
      if (!is_transparent(m_[id]) && m_[id].op != Op::PARAMETER) body.push_back(id);
    COLLET_TRY(ops(body, region));
    COLLET_TRY(results(leaves_of(m_, computation.root), region));
    regions_[pending.region] = region;
    return ok_status();
  }

  Status results(const std::vector<Leaf>& leaves, collet_region& region) {
    region.results = {static_cast<uint32_t>(refs_.size()), static_cast<uint32_t>(leaves.size())};
    for (Leaf leaf : leaves) {
      COLLET_ASSIGN(const uint32_t v, ref(leaf));
      refs_.push_back(v);
      if (region.op == COLLET_NONE) values_[v].offset = COLLET_NONE64;
    }
    return ok_status();
  }

  Status ops(const std::vector<InstrId>& body, collet_region& region) {
    if (ops_.size() + body.size() > kLargestProgram)
      return Status(Code::ResourceExhausted, "the program has more than 16 million ops once its calls are written out");
    region.ops = {static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(body.size())};
    for (InstrId id : body) COLLET_TRY(op(id));
    return ok_status();
  }

  Status op(InstrId id) {
    const Instruction& instr = m_[id];
    const auto number = static_cast<uint32_t>(ops_.size());
    collet_op out{};
    out.opcode = static_cast<uint32_t>(instr.op);
    out.name = name(instr.name);
    out.since = std::max<uint32_t>(op_info(instr.op).since, attributes_since(instr));
    out.operands.first = static_cast<uint32_t>(refs_.size());
    for (InstrId operand : instr.operands) {
      const auto n = static_cast<uint32_t>(m_[operand].shape.leaf_count());
      for (uint32_t i = 0; i < n; ++i) {
        COLLET_ASSIGN(const uint32_t v, ref(resolve_leaf(m_, {operand, i})));
        refs_.push_back(v);
        out.since = std::max<uint32_t>(out.since, type_since(v));
      }
    }
    out.operands.count = static_cast<uint32_t>(refs_.size()) - out.operands.first;

    first_value_[index_of(id)] = static_cast<uint32_t>(values_.size());
    out.results.first = static_cast<uint32_t>(values_.size());
    std::vector<Shape> shapes;
    append_leaf_shapes(instr.shape, shapes);
    for (size_t i = 0; i < shapes.size(); ++i) {
      auto v = value(shapes[i], number, static_cast<uint32_t>(i), 0, {}, {id, static_cast<uint32_t>(i)});
      if (!v.ok()) return v.status().with_prefix("'" + std::string(instr.name) + "': ");
      out.since = std::max<uint32_t>(out.since, type_since(*v));
    }
    out.results.count = static_cast<uint32_t>(shapes.size());

    out.regions = {static_cast<uint32_t>(regions_.size()), static_cast<uint32_t>(instr.called.size())};
    if (!instr.called.empty() && depth_ >= kDeepestRegion) return too_deep(instr);
    for (CompId c : instr.called) {
      pending_.push_back({static_cast<uint32_t>(regions_.size()), c, depth_ + 1});
      regions_.emplace_back();
      regions_.back().op = number;
    }
    if (regions_.size() > kLargestProgram)
      return Status(Code::ResourceExhausted, "the program has more than 16 million regions");

    std::vector<char> record = write_attributes(m_, instr, pools_);
    if (instr.op == Op::CONSTANT) inline_constant(instr, record);
    out.record = static_cast<uint32_t>(records_.size());
    out.record_bytes = static_cast<uint32_t>(record.size());
    records_.insert(records_.end(), record.begin(), record.end());
    records_.resize((records_.size() + 7) & ~size_t{7});
    ops_.push_back(out);
    op_instructions_.push_back(id);
    return ok_status();
  }

  uint32_t type_since(uint32_t value) const {
    return type_info(static_cast<Type>(types_[values_[value].type].element)).since;
  }

  void inline_constant(const Instruction& instr, std::vector<char>& record) {
    const Literal& literal = m_.literal(instr);
    const auto bytes = static_cast<size_t>(literal.byte_size());
    collet_constant c{};
    c.type = values_.back().type;  // its only result is the last value that was added
    c.argument = COLLET_NONE;
    c.offset = data_.size();
    c.bytes = bytes;
    const auto* from = reinterpret_cast<const char*>(literal.bytes());
    const ContentId id = id_of(literal);
    c.content_id[0] = id.words[0];
    c.content_id[1] = id.words[1];
    data_.insert(data_.end(), from, from + bytes);
    data_.resize((data_.size() + 63) & ~size_t{63});
    collet_constant_attrs attrs{static_cast<uint32_t>(constants_.size()), 0};
    std::memcpy(record.data(), &attrs, sizeof attrs);
    constants_.push_back(c);
  }

  Expected<Program> assemble();

  const Module& m_;
  const ProgramOptions& options_;
  std::vector<uint32_t> first_value_;
  std::unordered_map<Leaf, uint32_t, LeafHash> inputs_;
  std::deque<Pending> pending_;
  uint32_t depth_ = 0;  // nesting depth of the current region
  std::map<std::vector<int64_t>, uint32_t> type_ids_;
  std::vector<collet_type> types_;
  std::vector<collet_value> values_;
  std::vector<collet_op> ops_;
  std::vector<collet_region> regions_;
  std::vector<collet_constant> constants_;
  std::vector<collet_alias> aliases_;
  std::vector<uint32_t> refs_;
  AttributePools pools_;
  std::vector<char> records_, data_;
  uint64_t arena_bytes_ = 0;
  std::vector<InstrId> op_instructions_;
  std::vector<ConstantArgument> constants_out_;
};

// Places arrays one after another in the block.
class BlockLayout {
 public:
  template <typename T>
  collet_array place(const std::vector<T>& items, size_t alignment = 8) {
    at_ = (at_ + alignment - 1) & ~(alignment - 1);
    const collet_array array{at_, static_cast<uint32_t>(items.size()), sizeof(T)};
    at_ += items.size() * sizeof(T);
    return array;
  }
  uint64_t at_ = (sizeof(collet_program) + 7) & ~size_t{7};
};

template <typename T>
void copy_into(Block& block, const collet_array& array, const std::vector<T>& items) {
  if (!items.empty()) std::memcpy(block.data() + array.offset, items.data(), items.size() * sizeof(T));
}

Expected<Program> Writer::assemble() {
  if (data_.size() > UINT32_MAX || pools_.integers.size() > UINT32_MAX || pools_.bytes.size() > UINT32_MAX ||
      records_.size() > UINT32_MAX || refs_.size() > UINT32_MAX || values_.size() >= COLLET_NONE)
    return Status(Code::ResourceExhausted, "the program is too large for its 32-bit numbers");
  collet_program head{};
  head.magic = COLLET_PROGRAM_MAGIC;
  head.struct_size = sizeof head;
  head.opset = COLLET_OPSET;
  head.name = name(m_.name());
  head.arena_bytes = arena_bytes_;
  head.arena_alignment = options_.arena_alignment;
  const ModuleHeader& header = m_.header();
  head.replica_count =
      options_.single_participant ? 1 : static_cast<uint32_t>(std::max<int64_t>(header.replica_count, 1));
  head.partition_count =
      options_.single_participant ? 1 : static_cast<uint32_t>(std::max<int64_t>(header.num_partitions, 1));
  BlockLayout layouter;
  head.types = layouter.place(types_);
  head.values = layouter.place(values_);
  head.ops = layouter.place(ops_);
  head.regions = layouter.place(regions_);
  head.constants = layouter.place(constants_);
  head.aliases = layouter.place(aliases_);
  head.refs = layouter.place(refs_);
  head.integers = layouter.place(pools_.integers);
  head.records = layouter.place(records_);
  head.bytes = layouter.place(pools_.bytes);
  head.data = layouter.place(data_, 64);
  head.total_bytes = (layouter.at_ + 7) & ~uint64_t{7};

  Program program{Block(head.total_bytes), std::move(op_instructions_), std::move(constants_out_)};
  std::memcpy(program.block.data(), &head, sizeof head);
  copy_into(program.block, head.types, types_);
  copy_into(program.block, head.values, values_);
  copy_into(program.block, head.ops, ops_);
  copy_into(program.block, head.regions, regions_);
  copy_into(program.block, head.constants, constants_);
  copy_into(program.block, head.aliases, aliases_);
  copy_into(program.block, head.refs, refs_);
  copy_into(program.block, head.integers, pools_.integers);
  copy_into(program.block, head.records, records_);
  copy_into(program.block, head.bytes, pools_.bytes);
  copy_into(program.block, head.data, data_);
  return program;
}

}  // namespace

Expected<Program> write_cluster(const Module& module, const Cluster& cluster, const ProgramOptions& options) {
  return Writer(module, options).write(cluster);
}

Expected<Program> write_program(const Module& module, const ProgramOptions& options) {
  const Computation& entry = module.entry_computation();
  std::vector<Leaf> inputs;
  for (InstrId p : entry.parameters) {
    const auto n = static_cast<uint32_t>(module[p].shape.leaf_count());
    for (uint32_t i = 0; i < n; ++i) inputs.push_back({p, i});
  }
  const std::vector<Leaf> outputs = leaves_of(module, entry.root);
  const std::vector<ProgramAlias> aliases = entry_aliases(module);
  return write_cluster(module, {module.entry(), entry.order, inputs, outputs, aliases}, options);
}

uint32_t flat_leaf(std::span<const Shape> shapes, int64_t number, std::span<const int64_t> index) {
  if (number < 0 || static_cast<size_t>(number) >= shapes.size()) return COLLET_NONE;
  int64_t flat = 0;
  for (int64_t i = 0; i < number; ++i) flat += shapes[static_cast<size_t>(i)].leaf_count();
  const Shape* at = &shapes[static_cast<size_t>(number)];
  for (int64_t i : index) {
    if (!at->is_tuple() || i < 0 || static_cast<size_t>(i) >= at->elements().size()) return COLLET_NONE;
    for (int64_t j = 0; j < i; ++j) flat += at->element(static_cast<size_t>(j)).leaf_count();
    at = &at->element(static_cast<size_t>(i));
  }
  return at->is_tuple() || flat >= COLLET_NONE ? COLLET_NONE : static_cast<uint32_t>(flat);
}

namespace {

std::vector<Shape> parameter_shapes(const Module& module) {
  std::vector<Shape> shapes;
  for (InstrId p : module.entry_computation().parameters) shapes.push_back(module[p].shape);
  return shapes;
}

}  // namespace

std::vector<ProgramAlias> entry_aliases(const Module& module) {
  const std::vector<Shape> parameters = parameter_shapes(module);
  const Shape result[] = {module[module.entry_computation().root].shape};
  std::vector<ProgramAlias> out;
  for (const InputOutputAlias& a : module.header().aliases) {
    const uint32_t r = flat_leaf(result, 0, a.output_index);
    const uint32_t p = flat_leaf(parameters, a.parameter, a.parameter_index);
    if (r != COLLET_NONE && p != COLLET_NONE) out.push_back({r, p, a.must});
  }
  return out;
}

std::vector<uint32_t> donated_arguments(const Module& module) {
  const std::vector<Shape> parameters = parameter_shapes(module);
  std::vector<uint32_t> out;
  for (const InputOutputAlias& a : module.header().aliases)
    out.push_back(flat_leaf(parameters, a.parameter, a.parameter_index));
  for (const BufferDonor& d : module.header().donors)
    out.push_back(flat_leaf(parameters, d.parameter, d.parameter_index));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  while (!out.empty() && out.back() == COLLET_NONE) out.pop_back();
  return out;
}

}  // namespace collet::hlo
