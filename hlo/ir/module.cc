// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/module.h"

#include <algorithm>

namespace collet::hlo {

Module::Module(std::string_view name) {
  name_ = arena_.string(name);
}

size_t Module::instruction_count() const {
  size_t n = 0;
  for (CompId c : order_) n += (*this)[c].order.size();
  return n;
}

CompId Module::add_computation(std::string_view name) {
  const auto id = static_cast<CompId>(computations_.size());
  computations_.emplace_back();
  computations_.back().name = arena_.string(name);
  order_.push_back(id);
  return id;
}

InstrId Module::create(CompId parent, Op op, const Shape& shape, std::span<const InstrId> operands, const void* attrs,
                       std::span<const CompId> called, std::string_view name) {
  const auto id = static_cast<InstrId>(instructions_.size());
  Instruction& instr = instructions_.emplace_back();
  instr.op = op;
  instr.parent = parent;
  instr.name = name.empty() ? unique_name(op_info(op).text) : arena_.string(name);
  instr.shape = shape;
  instr.operands = arena_.list<InstrId>(operands);
  instr.called = arena_.list<CompId>(called);
  const Record record = op_info(op).record;
  instr.attrs = attrs || record == Record::None ? attrs : make_record(record, arena_);
  return id;
}

InstrId Module::append(CompId parent, Op op, const Shape& shape, std::span<const InstrId> operands, const void* attrs,
                       std::span<const CompId> called, std::string_view name) {
  const InstrId id = create(parent, op, shape, operands, attrs, called, name);
  (*this)[parent].order.push_back(id);
  return id;
}

InstrId Module::append_parameter(CompId parent, int64_t number, const Shape& shape, std::string_view name) {
  auto* attrs = make<ParameterAttrs>();
  attrs->number = number;
  const InstrId id = append(parent, Op::PARAMETER, shape, {}, attrs, {}, name);
  auto& parameters = (*this)[parent].parameters;
  const auto at = static_cast<size_t>(number);
  if (parameters.size() <= at) parameters.resize(at + 1, InstrId::None);
  parameters[at] = id;
  return id;
}

InstrId Module::append_constant(CompId parent, Literal value, std::string_view name) {
  const Shape shape = value.shape();
  return append(parent, Op::CONSTANT, shape, {}, constant_attrs(std::move(value)), {}, name);
}

const ConstantAttrs* Module::constant_attrs(Literal value) {
  auto* attrs = make<ConstantAttrs>();
  attrs->constant = add_literal(std::move(value));
  return attrs;
}

uint32_t Module::add_literal(Literal value) {
  literals_.push_back(std::move(value));
  return static_cast<uint32_t>(literals_.size() - 1);
}

const Shape* Module::keep(Shape shape) {
  return &shapes_.emplace_back(std::move(shape));
}
const Literal* Module::keep(Literal literal) {
  return &kept_literals_.emplace_back(std::move(literal));
}
const Sharding* Module::keep(Sharding sharding) {
  return &shardings_.emplace_back(std::move(sharding));
}

std::string_view Module::unique_among(Names& names, std::string_view stem) {
  auto it = names.find(stem);
  if (it == names.end()) {
    const std::string_view name = arena_.string(stem);
    names.emplace(name, 0);
    return name;
  }
  std::string candidate;
  do {
    candidate = std::string(stem) + "." + std::to_string(++it->second);
  } while (names.contains(candidate));
  const std::string_view name = arena_.string(candidate);
  names.emplace(name, 0);
  return name;
}

std::string_view Module::unique_name(std::string_view stem) {
  return unique_among(names_, stem);
}

std::string_view Module::unique_computation_name(std::string_view stem) {
  for (; named_computations_ < computations_.size(); ++named_computations_)
    computation_names_.try_emplace(computations_[named_computations_].name, 0);
  return unique_among(computation_names_, stem);
}

void Module::note_name(std::string_view name) {
  names_.try_emplace(name, 0);
}

const void* Module::clone_attrs(const Module& from, const Instruction& instr) {
  const Record record = op_info(instr.op).record;
  if (record == Record::None || !instr.attrs) return nullptr;
  if (record == Record::Constant) return constant_attrs(from.literal(instr));
  if (&from == this) return instr.attrs;
  void* copy = copy_record(record, instr.attrs, arena_);
  if (record == Record::Outfeed) {
    auto* outfeed = static_cast<OutfeedAttrs*>(copy);
    if (outfeed->shape) outfeed->shape = keep(*outfeed->shape);
  }
  if (record == Record::CustomCall) {
    auto* call = static_cast<CustomCallAttrs*>(copy);
    if (call->literal) call->literal = keep(*call->literal);
    std::vector<const Shape*> shapes;
    for (const Shape* s : call->operand_layouts) shapes.push_back(keep(*s));
    call->operand_layouts = arena_.list(shapes);
  }
  return copy;
}

const Extras* Module::clone_extras(const Module& from, const Extras* extras) {
  if (!extras || &from == this) return extras;
  Extras copy = *extras;
  copy.control_predecessors = {};  // these are ids of the other module; the caller converts them
  if (copy.metadata) {
    Metadata m = *copy.metadata;
    for (std::string_view* s : {&m.op_type, &m.op_name, &m.source_file, &m.deduplicated_name, &m.scheduling_name})
      *s = arena_.string(*s);
    m.profile_type = dims(m.profile_type);
    copy.metadata = arena_.make<Metadata>(m);
  }
  if (copy.sharding) copy.sharding = keep(*copy.sharding);
  std::vector<FrontendAttribute> attributes;
  for (const FrontendAttribute& a : copy.frontend_attributes)
    attributes.push_back({arena_.string(a.name), arena_.string(a.value), a.is_json});
  copy.frontend_attributes = arena_.list(attributes);
  for (std::string_view* s : {&copy.backend_config, &copy.statistics, &copy.origin}) *s = arena_.string(*s);
  copy.parameter_replication = arena_.list<const bool>(std::span<const bool>(copy.parameter_replication));
  if (copy.result_accuracy) {
    ResultAccuracy accuracy = *copy.result_accuracy;
    accuracy.mode = arena_.string(accuracy.mode);
    copy.result_accuracy = arena_.make<ResultAccuracy>(accuracy);
  }
  return arena_.make<Extras>(copy);
}

namespace {

void clone_header(Module& to, const ModuleHeader& from) {
  ModuleHeader& header = to.header();
  header = from;
  for (InputOutputAlias& alias : header.aliases) {
    alias.output_index = to.dims(alias.output_index);
    alias.parameter_index = to.dims(alias.parameter_index);
  }
  for (BufferDonor& donor : header.donors) donor.parameter_index = to.dims(donor.parameter_index);
  for (FrontendAttribute& a : header.frontend_attributes) {
    a.name = to.arena().string(a.name);
    a.value = to.arena().string(a.value);
  }
  header.origin_recovery_table = to.arena().string(header.origin_recovery_table);
  header.verbatim = to.arena().string(header.verbatim);
}

}  // namespace

std::unique_ptr<Module> Module::clone() const {
  auto out = std::make_unique<Module>(name_);
  clone_header(*out, header_);
  std::vector<CompId> computation(computations_.size(), CompId::None);
  for (CompId c : order_) computation[index_of(c)] = out->add_computation((*this)[c].name);
  std::vector<InstrId> instruction(instructions_.size(), InstrId::None);
  for (CompId c : order_) {
    const Computation& from = (*this)[c];
    Computation& to = (*out)[computation[index_of(c)]];
    to.execution_thread = out->arena().string(from.execution_thread);
    to.line = from.line;
    for (InstrId id : from.order) {
      const Instruction& instr = (*this)[id];
      std::vector<InstrId> operands;
      for (InstrId o : instr.operands) operands.push_back(instruction[index_of(o)]);
      std::vector<CompId> called;
      for (CompId k : instr.called) called.push_back(computation[index_of(k)]);
      const InstrId copy = out->append(computation[index_of(c)], instr.op, instr.shape, operands,
                                       out->clone_attrs(*this, instr), called, instr.name);
      out->note_name((*out)[copy].name);
      (*out)[copy].line = instr.line;
      (*out)[copy].extras = out->clone_extras(*this, instr.extras);
      instruction[index_of(id)] = copy;
    }
    for (InstrId id : from.order) {
      const Instruction& instr = (*this)[id];
      if (!instr.extras || instr.extras->control_predecessors.empty()) continue;
      std::vector<InstrId> before;
      for (InstrId p : instr.extras->control_predecessors) before.push_back(instruction[index_of(p)]);
      Extras extras = *(*out)[instruction[index_of(id)]].extras;
      extras.control_predecessors = out->arena().list(before);
      (*out)[instruction[index_of(id)]].extras = out->arena().make<Extras>(extras);
    }
    for (InstrId p : from.parameters) to.parameters.push_back(p == InstrId::None ? p : instruction[index_of(p)]);
    to.root = from.root == InstrId::None ? from.root : instruction[index_of(from.root)];
  }
  if (entry_ != CompId::None) out->set_entry(computation[index_of(entry_)]);
  return out;
}

void Module::drop_unreachable_computations() {
  if (entry_ == CompId::None) return;
  std::vector<bool> reached(computations_.size());
  std::vector<CompId> work{entry_};
  reached[index_of(entry_)] = true;
  while (!work.empty()) {
    const CompId c = work.back();
    work.pop_back();
    for (InstrId id : (*this)[c].order)
      for (CompId k : (*this)[id].called)
        if (!reached[index_of(k)]) {
          reached[index_of(k)] = true;
          work.push_back(k);
        }
  }
  std::erase_if(order_, [&](CompId c) { return !reached[index_of(c)]; });
}

UserMap::UserMap(const Module& module, CompId computation) {
  const auto& order = module[computation].order;
  for (size_t i = 0; i < order.size(); ++i) slot_.emplace(index_of(order[i]), static_cast<uint32_t>(i));
  begin_.assign(order.size() + 1, 0);
  for (InstrId id : order)
    for (InstrId o : module[id].operands) ++begin_[slot_.at(index_of(o)) + 1];
  for (size_t i = 0; i < order.size(); ++i) begin_[i + 1] += begin_[i];
  users_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (InstrId id : order)
    for (InstrId o : module[id].operands) users_[next[slot_.at(index_of(o))]++] = id;
}

std::span<const InstrId> UserMap::users(InstrId id) const {
  auto it = slot_.find(index_of(id));
  if (it == slot_.end()) return {};
  return std::span(users_).subspan(begin_[it->second], begin_[it->second + 1] - begin_[it->second]);
}

}  // namespace collet::hlo
