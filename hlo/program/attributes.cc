// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/attributes.h"

#include <algorithm>
#include <cstring>

#include "hlo/program/records.h"

namespace collet::hlo {
namespace {

template <typename T>
const T& at(const void* record, uint16_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(record) + offset);
}
template <typename T>
T& at(void* record, uint16_t offset) {
  return *reinterpret_cast<T*>(static_cast<char*>(record) + offset);
}

// Adds a list with one entry per dimension. The IR omits a list whose entries all have the default, which is written
// out here.
collet_range add_filled(AttributePools& pools, const Dims& list, size_t rank, int64_t fallback) {
  if (!list.empty()) return pools.add(list);
  return pools.add(std::vector<int64_t>(rank, fallback));
}

void write_window(const Window& w, collet_window& out, AttributePools& pools) {
  const size_t n = w.rank();
  out.size = pools.add(w.size);
  out.stride = add_filled(pools, w.stride, n, 1);
  out.padding_low = add_filled(pools, w.padding_low, n, 0);
  out.padding_high = add_filled(pools, w.padding_high, n, 0);
  out.base_dilation = add_filled(pools, w.base_dilation, n, 1);
  out.window_dilation = add_filled(pools, w.window_dilation, n, 1);
  out.reversal = add_filled(pools, w.reversal, n, 0);
}

void write_labels(const DimLabels& l, collet_dim_labels& out, AttributePools& pools) {
  out.input_batch = l.input_batch;
  out.input_feature = l.input_feature;
  out.kernel_input_feature = l.kernel_input_feature;
  out.kernel_output_feature = l.kernel_output_feature;
  out.output_batch = l.output_batch;
  out.output_feature = l.output_feature;
  out.input_spatial = pools.add(l.input_spatial);
  out.kernel_spatial = pools.add(l.kernel_spatial);
  out.output_spatial = pools.add(l.output_spatial);
}

void write_groups(const Groups& g, collet_groups& out, AttributePools& pools) {
  size_t longest = 0;
  for (const Dims& group : g.groups) longest = std::max(longest, group.size());
  std::vector<int64_t> ids;
  for (const Dims& group : g.groups)
    for (size_t i = 0; i < longest; ++i) ids.push_back(i < group.size() ? group[i] : -1);
  out.ids = pools.add(ids);
  out.group_size = static_cast<int64_t>(longest);
}

void write_field(const AbiField& f, const void* from, void* to, AttributePools& pools) {
  const uint16_t o = f.ir_offset;
  switch (f.kind) {
    case FieldKind::I64:
    case FieldKind::DIM:
      at<int64_t>(to, f.offset) = at<int64_t>(from, o);
      return;
    case FieldKind::U32:
    case FieldKind::ENUM:
      at<uint32_t>(to, f.offset) = at<uint32_t>(from, o);
      return;
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
      at<uint32_t>(to, f.offset) = at<bool>(from, o);
      return;
    case FieldKind::F32:
      at<float>(to, f.offset) = at<float>(from, o);
      return;
    case FieldKind::DIMS:
    case FieldKind::PRECISIONS:
    case FieldKind::PAIRS:
      at<collet_range>(to, f.offset) = pools.add(at<Dims>(from, o));
      return;
    case FieldKind::STRING:
      at<collet_range>(to, f.offset) = pools.add(at<std::string_view>(from, o));
      return;
    case FieldKind::WINDOW:
      return write_window(at<Window>(from, o), at<collet_window>(to, f.offset), pools);
    case FieldKind::SLICES: {
      const auto& s = at<SliceRanges>(from, o);
      auto* out = &at<collet_range>(to, f.offset);
      out[0] = pools.add(s.start);
      out[1] = pools.add(s.limit);
      out[2] = add_filled(pools, s.stride, s.start.size(), 1);
      return;
    }
    case FieldKind::PADS: {
      const auto& p = at<Padding>(from, o);
      auto* out = &at<collet_range>(to, f.offset);
      out[0] = pools.add(p.low);
      out[1] = add_filled(pools, p.high, p.low.size(), 0);
      out[2] = add_filled(pools, p.interior, p.low.size(), 0);
      return;
    }
    case FieldKind::DIM_LABELS:
      return write_labels(at<DimLabels>(from, o), at<collet_dim_labels>(to, f.offset), pools);
    case FieldKind::GROUPS:
      return write_groups(at<Groups>(from, o), at<collet_groups>(to, f.offset), pools);
    default:
      return;  // kinds that occur in HLO text only
  }
}

// Fills in defaults that depend on the instruction.
void complete(const Module& module, const Instruction& instr, void* record, AttributePools& pools) {
  switch (op_info(instr.op).record) {
    case Record::Compare: {
      auto& compare = *static_cast<collet_compare_attrs*>(record);
      if (compare.type != COLLET_COMPARE_DEFAULT) return;
      const Type type = module[instr.operand(0)].shape.type();
      compare.type = is_float(type) || is_complex(type) ? COLLET_COMPARE_FLOAT
                     : is_signed(type)                  ? COLLET_COMPARE_SIGNED
                                                        : COLLET_COMPARE_UNSIGNED;
      return;
    }
    case Record::Convolution: {
      auto& convolution = *static_cast<collet_convolution_attrs*>(record);
      convolution.feature_groups = std::max<int64_t>(convolution.feature_groups, 1);
      convolution.batch_groups = std::max<int64_t>(convolution.batch_groups, 1);
      return;
    }
    case Record::Map: {
      auto& map = *static_cast<collet_map_attrs*>(record);
      if (map.dimensions.count != 0 || !instr.shape.is_array()) return;
      std::vector<int64_t> all;
      for (int i = 0; i < instr.shape.rank(); ++i) all.push_back(i);
      map.dimensions = pools.add(all);
      return;
    }
    default:
      return;
  }
}

class Checker {
 public:
  Checker(const collet_program* program, const collet_op& op, PoolBudget& budget)
      : p_(program), op_(op), budget_(budget) {}

  Status check() {
    if (op_.opcode == COLLET_OP_INVALID || op_.opcode > kLastOp) return fail("has no opcode that is known");
    const auto record = op_info(static_cast<Op>(op_.opcode)).record;
    const size_t size = joint_record_size(record);
    std::vector<char> bytes(std::max<size_t>(size, 8));
    collet_read_attributes(p_, &op_, bytes.data(), size);
    // A longer record comes from a newer writer. Its additional fields must have their defaults; otherwise the op's
    // `since` would exceed the reader's opset.
    const char* tail = reinterpret_cast<const char*>(p_) + p_->records.offset + op_.record;
    for (size_t i = size; i < op_.record_bytes; ++i)
      if (tail[i]) return fail("says more than this version knows");
    for (const AbiField& f : abi_fields(record)) COLLET_TRY(field(f, bytes.data()));
    return ok_status();
  }

 private:
  Status fail(std::string_view what) const {
    return invalid_argument("the attributes of an op " + std::string(collet_op_name(op_.opcode)) + " have " +
                            std::string(what));
  }
  Status integers(collet_range r) const {
    if (uint64_t{r.first} + r.count > p_->integers.count) return fail("a list that is not there");
    if (r.count > budget_.integers) return fail("a list that belongs to others too");
    budget_.integers -= r.count;
    return ok_status();
  }
  Status text(collet_range r) const {
    if (uint64_t{r.first} + r.count > p_->bytes.count) return fail("a string that is not there");
    if (r.count > budget_.bytes) return fail("a string that belongs to others too");
    budget_.bytes -= r.count;
    return ok_status();
  }
  Status all(std::initializer_list<collet_range> ranges) const {
    for (collet_range r : ranges) COLLET_TRY(integers(r));
    return ok_status();
  }
  Status same(std::initializer_list<collet_range> ranges) const {
    COLLET_TRY(all(ranges));
    for (collet_range r : ranges)
      if (r.count != ranges.begin()->count) return fail("lists of different lengths");
    return ok_status();
  }

  Status field(const AbiField& f, const void* record) const {
    switch (f.kind) {
      case FieldKind::BOOL:
      case FieldKind::NOT_BOOL:
        return at<uint32_t>(record, f.offset) <= 1 ? ok_status() : fail("a flag that is neither 0 nor 1");
      case FieldKind::ENUM: {
        const uint32_t value = at<uint32_t>(record, f.offset);
        for (const EnumValue& known : f.values)
          if (known.value == value) return ok_status();
        return fail("an unknown value of " + std::string(f.name));
      }
      case FieldKind::DIMS:
      case FieldKind::PRECISIONS:
        return integers(at<collet_range>(record, f.offset));
      case FieldKind::PAIRS: {
        const auto& r = at<collet_range>(record, f.offset);
        COLLET_TRY(integers(r));
        return r.count % 2 == 0 ? ok_status() : fail("half a pair");
      }
      case FieldKind::STRING:
        return text(at<collet_range>(record, f.offset));
      case FieldKind::WINDOW: {
        const auto& w = at<collet_window>(record, f.offset);
        return same({w.size, w.stride, w.padding_low, w.padding_high, w.base_dilation, w.window_dilation, w.reversal});
      }
      case FieldKind::SLICES:
      case FieldKind::PADS: {
        const auto* r = &at<collet_range>(record, f.offset);
        return same({r[0], r[1], r[2]});
      }
      case FieldKind::DIM_LABELS: {
        const auto& l = at<collet_dim_labels>(record, f.offset);
        return all({l.input_spatial, l.kernel_spatial, l.output_spatial});
      }
      case FieldKind::GROUPS: {
        const auto& g = at<collet_groups>(record, f.offset);
        COLLET_TRY(integers(g.ids));
        const bool whole = g.ids.count == 0 || (g.group_size > 0 && g.ids.count % g.group_size == 0);
        return whole ? ok_status() : fail("a group that is not whole");
      }
      default:
        return ok_status();
    }
  }

  const collet_program* p_;
  const collet_op& op_;
  PoolBudget& budget_;
};

class Reader {
 public:
  Reader(const collet_program* program, Module& module) : p_(program), module_(module) {}

  void field(const AbiField& f, const void* from, void* to) const {
    const uint16_t o = f.ir_offset;
    switch (f.kind) {
      case FieldKind::I64:
      case FieldKind::DIM:
        at<int64_t>(to, o) = at<int64_t>(from, f.offset);
        return;
      case FieldKind::U32:
      case FieldKind::ENUM:
        at<uint32_t>(to, o) = at<uint32_t>(from, f.offset);
        return;
      case FieldKind::BOOL:
      case FieldKind::NOT_BOOL:
        at<bool>(to, o) = at<uint32_t>(from, f.offset) != 0;
        return;
      case FieldKind::F32:
        at<float>(to, o) = at<float>(from, f.offset);
        return;
      case FieldKind::DIMS:
      case FieldKind::PRECISIONS:
      case FieldKind::PAIRS:
        at<Dims>(to, o) = list(at<collet_range>(from, f.offset));
        return;
      case FieldKind::STRING: {
        const auto& r = at<collet_range>(from, f.offset);
        at<std::string_view>(to, o) = module_.arena().string({collet_string(p_, r), r.count});
        return;
      }
      case FieldKind::WINDOW:
        at<Window>(to, o) = window(at<collet_window>(from, f.offset));
        return;
      case FieldKind::SLICES: {
        const auto* r = &at<collet_range>(from, f.offset);
        at<SliceRanges>(to, o) = {list(r[0]), list(r[1]), list(r[2])};
        return;
      }
      case FieldKind::PADS: {
        const auto* r = &at<collet_range>(from, f.offset);
        at<Padding>(to, o) = {list(r[0]), list(r[1]), list(r[2])};
        return;
      }
      case FieldKind::DIM_LABELS:
        at<DimLabels>(to, o) = labels(at<collet_dim_labels>(from, f.offset));
        return;
      case FieldKind::GROUPS:
        at<Groups>(to, o) = groups(at<collet_groups>(from, f.offset));
        return;
      default:
        return;
    }
  }

 private:
  Dims list(collet_range r) const { return module_.dims({collet_integers(p_, r), r.count}); }

  Window window(const collet_window& w) const {
    Window out;
    out.size = list(w.size);
    out.stride = list(w.stride);
    out.padding_low = list(w.padding_low);
    out.padding_high = list(w.padding_high);
    out.base_dilation = list(w.base_dilation);
    out.window_dilation = list(w.window_dilation);
    out.reversal = list(w.reversal);
    return out;
  }

  DimLabels labels(const collet_dim_labels& l) const {
    DimLabels out;
    out.input_batch = l.input_batch;
    out.input_feature = l.input_feature;
    out.kernel_input_feature = l.kernel_input_feature;
    out.kernel_output_feature = l.kernel_output_feature;
    out.output_batch = l.output_batch;
    out.output_feature = l.output_feature;
    out.input_spatial = list(l.input_spatial);
    out.kernel_spatial = list(l.kernel_spatial);
    out.output_spatial = list(l.output_spatial);
    return out;
  }

  Groups groups(const collet_groups& g) const {
    Groups out;
    std::vector<Dims> all;
    const int64_t* ids = collet_integers(p_, g.ids);
    const auto size = static_cast<size_t>(g.group_size);
    for (size_t i = 0; i < g.ids.count; i += size) {
      size_t n = size;
      while (n > 0 && ids[i + n - 1] == -1) --n;
      all.push_back(module_.dims({ids + i, n}));
    }
    out.groups = module_.arena().list(all);
    return out;
  }

  const collet_program* p_;
  Module& module_;
};

}  // namespace

collet_range AttributePools::add(std::span<const int64_t> list) {
  const collet_range range{static_cast<uint32_t>(integers.size()), static_cast<uint32_t>(list.size())};
  integers.insert(integers.end(), list.begin(), list.end());
  return list.empty() ? collet_range{0, 0} : range;
}

collet_range AttributePools::add(std::string_view text) {
  const collet_range range{static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(text.size())};
  bytes.insert(bytes.end(), text.begin(), text.end());
  return text.empty() ? collet_range{0, 0} : range;
}

std::vector<char> write_attributes(const Module& module, const Instruction& instr, AttributePools& pools) {
  const Record record = op_info(instr.op).record;
  std::vector<char> out(joint_record_size(record));
  if (!instr.attrs || out.empty()) return out;
  for (const AbiField& f : abi_fields(record)) write_field(f, instr.attrs, out.data(), pools);
  complete(module, instr, out.data(), pools);
  return out;
}

uint32_t attributes_since(const Instruction& instr) {
  uint32_t since = 1;
  const Record record = op_info(instr.op).record;
  if (!instr.attrs) return since;
  for (const AbiField& f : abi_fields(record)) {
    if (f.since <= since) continue;
    std::vector<char> bytes(joint_record_size(record));
    AttributePools pools;
    write_field(f, instr.attrs, bytes.data(), pools);
    if (std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0; })) since = f.since;
  }
  return since;
}

Status check_attributes(const collet_program* program, const collet_op& op, PoolBudget& budget) {
  return Checker(program, op, budget).check();
}

const void* read_attributes(const collet_program* program, const collet_op& op, Module& module) {
  const Record record = op_info(static_cast<Op>(op.opcode)).record;
  if (record == Record::None) return nullptr;
  std::vector<int64_t> bytes(joint_record_size(record) / 8 + 1);
  collet_read_attributes(program, &op, bytes.data(), joint_record_size(record));
  void* out = make_record(record, module.arena());
  const Reader reader(program, module);
  for (const AbiField& f : abi_fields(record)) reader.field(f, bytes.data(), out);
  return out;
}

}  // namespace collet::hlo
