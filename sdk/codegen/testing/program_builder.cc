// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen::testing {
namespace {

int64_t elements_of(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

}  // namespace

Handle RegionBuilder::argument(uint32_t element, std::vector<int64_t> dims, uint32_t flags) {
  arguments_.push_back({element, std::move(dims), program_->next_handle_++});
  flags_.push_back(flags | COLLET_VALUE_ARGUMENT);
  return arguments_.back();
}

Handle RegionBuilder::op(uint32_t opcode, uint32_t element, std::vector<int64_t> dims,
                         const std::vector<Handle>& operands, const std::vector<RegionBuilder*>& regions) {
  return several(opcode, {{element, std::move(dims), 0}}, operands, regions)[0];
}

std::vector<Handle> RegionBuilder::several(uint32_t opcode, const std::vector<Handle>& like,
                                           const std::vector<Handle>& operands,
                                           const std::vector<RegionBuilder*>& regions) {
  std::vector<Handle> results;
  for (const Handle& h : like) results.push_back({h.element, h.dims, program_->next_handle_++});
  ops_.push_back({opcode, operands, results, regions, {}});
  return results;
}

void RegionBuilder::set_record(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  ops_.back().record.assign(p, p + bytes);
}

Handle RegionBuilder::constant_bytes(uint32_t element, std::vector<int64_t> dims, const void* data, size_t bytes) {
  auto& pool = program_->data_;
  pool.resize((pool.size() + 63) / 64 * 64);
  collet_constant c{};
  c.type = program_->type(element, dims);
  c.argument = COLLET_NONE;
  c.offset = pool.size();
  c.bytes = bytes;
  c.content_id[0] = program_->constants_.size() + 1;
  pool.resize(pool.size() + bytes);
  if (bytes) std::memcpy(&pool[c.offset], data, bytes);
  program_->constants_.push_back(c);
  collet_constant_attrs record{static_cast<uint32_t>(program_->constants_.size() - 1), 0};
  return op(COLLET_OP_CONSTANT, element, std::move(dims), {}, record);
}

Handle RegionBuilder::broadcast(const Handle& x, std::vector<int64_t> dims, std::vector<int64_t> at) {
  return op(COLLET_OP_BROADCAST, x.element, std::move(dims), {x}, collet_broadcast_attrs{program_->list(at)});
}

Handle RegionBuilder::reshape(const Handle& x, std::vector<int64_t> dims) {
  return op(COLLET_OP_RESHAPE, x.element, std::move(dims), {x}, collet_reshape_attrs{});
}

Handle RegionBuilder::reduce(uint32_t opcode, uint32_t how, const Handle& x, const Handle& init,
                             std::vector<int64_t> dims) {
  RegionBuilder& body = program_->region();
  Handle a = body.argument(x.element);
  Handle b = body.argument(x.element);
  body.results({body.binary(opcode, a, b)});
  body.combine = how;
  std::vector<int64_t> kept;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    bool gone = false;
    for (int64_t r : dims) gone = gone || r == static_cast<int64_t>(d);
    if (!gone) kept.push_back(x.dims[d]);
  }
  return op(COLLET_OP_REDUCE, x.element, kept, {x, init}, collet_dimensions_attrs{program_->list(dims)}, {&body});
}

collet_range ProgramBuilder::list(const std::vector<int64_t>& integers) {
  const auto first = static_cast<uint32_t>(integers_.size());
  integers_.insert(integers_.end(), integers.begin(), integers.end());
  return {first, static_cast<uint32_t>(integers.size())};
}

uint32_t ProgramBuilder::type(uint32_t element, const std::vector<int64_t>& dims) {
  collet_type t{};
  t.element = element;
  t.dims = list(dims);
  t.elements = static_cast<uint64_t>(elements_of(dims));
  t.bytes = t.elements * collet_type_bytes(element);
  types_.push_back(t);
  return static_cast<uint32_t>(types_.size() - 1);
}

collet_range ProgramBuilder::refs(const std::vector<Handle>& handles) {
  const auto first = static_cast<uint32_t>(refs_.size());
  for (const Handle& h : handles) refs_.push_back(value_of_[h.id]);
  return {first, static_cast<uint32_t>(handles.size())};
}

void ProgramBuilder::write(uint32_t region, const RegionBuilder& from, uint32_t caller) {
  auto add = [&](const Handle& h, uint32_t flags, uint32_t definition, uint32_t index) {
    collet_value v{};
    v.type = type(h.element, h.dims);
    v.flags = flags;
    v.definition = definition;
    v.index = index;
    v.offset = COLLET_NONE64;
    value_of_[h.id] = static_cast<uint32_t>(values_.size());
    values_.push_back(v);
  };
  collet_region r{};
  r.arguments = {static_cast<uint32_t>(values_.size()), static_cast<uint32_t>(from.arguments_.size())};
  for (size_t i = 0; i < from.arguments_.size(); ++i) {
    add(from.arguments_[i], from.flags_[i], region, static_cast<uint32_t>(i));
  }
  r.ops = {static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(from.ops_.size())};
  for (const RegionBuilder::Op& op : from.ops_) {
    collet_op o{};
    o.opcode = op.opcode;
    o.since = 1;
    o.operands = refs(op.operands);
    o.results = {static_cast<uint32_t>(values_.size()), static_cast<uint32_t>(op.results.size())};
    for (size_t i = 0; i < op.results.size(); ++i) {
      add(op.results[i], 0, static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(i));
    }
    records_.resize((records_.size() + 7) / 8 * 8);
    o.record = static_cast<uint32_t>(records_.size());
    o.record_bytes = static_cast<uint32_t>(op.record.size());
    records_.insert(records_.end(), op.record.begin(), op.record.end());
    ops_.push_back(o);
  }
  r.results = refs(from.results_);
  r.op = caller;
  r.combine = from.combine;
  written_[region] = r;
  for (size_t i = 0; i < from.ops_.size(); ++i) {
    const auto& called = from.ops_[i].regions;
    if (called.empty()) continue;
    const uint32_t id = r.ops.first + static_cast<uint32_t>(i);
    const auto first = static_cast<uint32_t>(written_.size());
    ops_[id].regions = {first, static_cast<uint32_t>(called.size())};
    written_.resize(written_.size() + called.size());
    for (size_t k = 0; k < called.size(); ++k) write(first + static_cast<uint32_t>(k), *called[k], id);
  }
}

const collet_program* ProgramBuilder::finish() {
  value_of_.assign(next_handle_, 0);
  written_.resize(1);
  write(0, entry(), COLLET_NONE);
  std::vector<char> bytes(sizeof(collet_program));
  auto append = [&](const auto& elements) {
    bytes.resize((bytes.size() + 63) / 64 * 64);
    using T = typename std::decay_t<decltype(elements)>::value_type;
    collet_array a{bytes.size(), static_cast<uint32_t>(elements.size()), sizeof(T)};
    const char* p = reinterpret_cast<const char*>(elements.data());
    bytes.insert(bytes.end(), p, p + elements.size() * sizeof(T));
    return a;
  };
  collet_program head{};
  head.magic = COLLET_PROGRAM_MAGIC;
  head.struct_size = sizeof head;
  head.opset = COLLET_OPSET;
  head.types = append(types_);
  head.values = append(values_);
  head.ops = append(ops_);
  head.regions = append(written_);
  head.constants = append(constants_);
  head.aliases = append(aliases_);
  head.refs = append(refs_);
  head.integers = append(integers_);
  head.records = append(records_);
  head.data = append(data_);
  head.bytes = {bytes.size(), 0, 1};
  head.arena_alignment = 64;
  head.replica_count = replica_count;
  head.partition_count = 1;
  head.total_bytes = (bytes.size() + 7) / 8 * 8;
  std::memcpy(bytes.data(), &head, sizeof head);
  block_.assign(head.total_bytes / 8, 0);
  std::memcpy(block_.data(), bytes.data(), bytes.size());
  return reinterpret_cast<const collet_program*>(block_.data());
}

}  // namespace collet::codegen::testing
