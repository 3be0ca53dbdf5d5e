/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TILING_PROGRAM_HPP
#define COLLET_TILING_PROGRAM_HPP

/** \file
 * Writes the program of a piece: the ops of a group, with the shapes that their arrays have in the piece. A part of
 * tiling.hpp.
 */

#include "hash.h"
#include "record_ranges.hpp"
#include "tiling_axes.hpp"

namespace collet {
namespace tiling {
namespace detail {

/** What a program of a piece consists of. */
struct PieceBody {
  uint32_t op = COLLET_NONE;    /**< the op that stands for all; COLLET_NONE: a fusion, if there are several */
  std::vector<uint32_t> ops;    /**< ops of the group */
  std::vector<uint32_t> inputs; /**< values of the group; each becomes an argument */
  std::vector<uint32_t> outputs;
  uint32_t main = COLLET_NONE;            /**< the value that is accumulated; COLLET_NONE: none */
  uint32_t accumulator = COLLET_TYPE_S32; /**< its element type outside of the op that makes it */
  bool finishes = false;                  /**< `main` is the last argument; else it is a result */
};

/** Writes one program. An object is used once. */
class PieceWriter {
 public:
  PieceWriter(const collet_program* program, const Axes& axes, const std::vector<Range>& ranges)
      : p_(program), axes_(axes), ranges_(ranges) {}

  /** Returns the block of a program whose entry has one op. */
  std::vector<uint64_t> write(const PieceBody& body) {
    body_ = &body;
    regions_.resize(1);
    regions_[0].op = COLLET_NONE;
    std::map<uint32_t, uint32_t> names;  // values of the group to those of the new program
    std::vector<uint32_t> arguments;
    for (const uint32_t value : body.inputs) {
      arguments.push_back(add_value(type_of(value), COLLET_VALUE_ARGUMENT, 0, arguments.size()));
      names.emplace(value, arguments.back());
    }
    const bool widened = body.main != COLLET_NONE && element(body.main) != body.accumulator;
    if (body.finishes) {
      arguments.push_back(add_value(type_of(body.main, body.accumulator), COLLET_VALUE_ARGUMENT, 0, arguments.size()));
      if (!widened) names[body.main] = arguments.back();
    }
    regions_[0].arguments = {0, count(arguments)};
    regions_[0].ops = {0, 1};
    std::vector<uint32_t> results;
    const bool single = body.op == COLLET_NONE && body.ops.size() == 1 && !(body.finishes && widened);
    const bool wrapped = !single && !(body.op != COLLET_NONE && body.ops.size() == 1 && body.ops[0] == body.op);
    if (!wrapped) {
      ops_.resize(1);
      write_op(body.ops[0], 0, &names);
      for (const uint32_t value : body.outputs) results.push_back(names.at(value));
    } else {
      write_group(arguments, widened, &results);
    }
    regions_[0].results = refs(results);
    while (!pending_.empty()) {
      const Pending next = pending_.back();
      pending_.pop_back();
      copy_region(next);
    }
    return block();
  }

 private:
  struct Pending {
    uint32_t from, to;  // regions
  };

  static uint32_t count(const std::vector<uint32_t>& list) { return static_cast<uint32_t>(list.size()); }
  uint32_t element(uint32_t value) const { return collet_value_type(p_, value)->element; }

  /** Writes the op that stands for the group, and its region. */
  void write_group(const std::vector<uint32_t>& arguments, bool widened, std::vector<uint32_t>* results) {
    const PieceBody& body = *body_;
    const bool own = body.op != COLLET_NONE;
    ops_.resize(1);
    collet_op op{};
    op.opcode = COLLET_OP_FUSION;
    op.since = 1;
    op.operands = refs(arguments);
    if (own) {
      const collet_op* from = collet_op_at(p_, body.op);
      op.opcode = from->opcode;
      op.since = from->since;
      op.name = text(from->name);
      copy_record(from, &op);
    } else {
      set_record(&op, collet_fusion_attrs{});
    }
    op.results = {static_cast<uint32_t>(values_.size()), count(body.outputs)};
    for (const uint32_t value : body.outputs) {
      results->push_back(add_value(output_type(value), 0, 0, results->size()));
    }
    regions_.resize(2);
    op.regions = {1, 1};
    ops_[0] = op;
    std::map<uint32_t, uint32_t> names;
    collet_region region{};
    region.op = 0;
    region.arguments = {static_cast<uint32_t>(values_.size()), count(arguments)};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t inner = add_value(values_[arguments[i]].type, COLLET_VALUE_ARGUMENT, 1, i);
      if (i < body.inputs.size()) names.emplace(body.inputs[i], inner);
      if (i == body.inputs.size() && !widened) names[body.main] = inner;
    }
    const bool converts = body.finishes && widened;
    region.ops = {1, count(body.ops) + (converts ? 1 : 0)};
    ops_.resize(1 + region.ops.count);
    uint32_t next = 1;
    if (converts) {
      collet_op convert{};
      convert.opcode = COLLET_OP_CONVERT;
      convert.since = 1;
      convert.operands = refs({region.arguments.first + region.arguments.count - 1});
      convert.results = {static_cast<uint32_t>(values_.size()), 1};
      names[body.main] = add_value(type_of(body.main), 0, next, 0);
      ops_[next++] = convert;
    }
    for (const uint32_t id : body.ops) write_op(id, next++, &names);
    std::vector<uint32_t> inner;
    for (const uint32_t value : body.outputs) inner.push_back(names.at(value));
    region.results = refs(inner);
    regions_[1] = region;
    if (own && ops_[0].opcode == COLLET_OP_CALL && !pad_low_.empty()) restate_padding();
  }

  /** Replaces the padding in the attributes of a quantized group, which also stands in its region, by that of the piece. */
  void restate_padding() {
    auto attributes = record_of<collet_call_attrs>(ops_[0]);
    std::string all(bytes_.data() + attributes.attributes.first, attributes.attributes.count);
    const auto replace = [&](const std::string& name, const std::vector<int64_t>& values) {
      const std::string key = name + " = array<i64:";
      const size_t at = all.find(key), end = at == std::string::npos ? at : all.find('>', at);
      if (end == std::string::npos) return;
      std::string list;
      for (const int64_t value : values) list += (list.empty() ? " " : ", ") + std::to_string(value);
      all.replace(at + key.size(), end - at - key.size(), list);
    };
    replace("lhs_pad_low", pad_low_);
    replace("lhs_pad_high", pad_high_);
    attributes.attributes = text(all.data(), all.size());
    set_record(&ops_[0], attributes);
  }

  uint32_t output_type(uint32_t value) {
    return value == body_->main && !body_->finishes ? type_of(value, body_->accumulator) : type_of(value);
  }

  /** Returns the type of a value of the group in the piece. */
  uint32_t type_of(uint32_t value) { return type_of(value, element(value)); }
  uint32_t type_of(uint32_t value, uint32_t element_type) {
    std::vector<int64_t> dims;
    for (uint32_t d = 0; d < axes_.rank(value); ++d) dims.push_back(ranges_[axes_.at(value, d)].size);
    return add_type(element_type, dims);
  }

  uint32_t add_type(uint32_t element_type, const std::vector<int64_t>& dims) {
    collet_type type{};
    type.element = element_type;
    type.dims = list(dims);
    type.elements = 1;
    for (const int64_t dim : dims) type.elements *= static_cast<uint64_t>(dim);
    type.bytes = type.elements * collet_type_bytes(element_type);
    types_.push_back(type);
    return static_cast<uint32_t>(types_.size() - 1);
  }

  uint32_t add_value(uint32_t type, uint32_t flags, uint32_t definition, size_t index) {
    collet_value value{};
    value.type = type;
    value.flags = flags;
    value.definition = definition;
    value.index = static_cast<uint32_t>(index);
    value.offset = COLLET_NONE64;
    values_.push_back(value);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  collet_range list(const std::vector<int64_t>& numbers) {
    const auto first = static_cast<uint32_t>(integers_.size());
    integers_.insert(integers_.end(), numbers.begin(), numbers.end());
    return {first, static_cast<uint32_t>(numbers.size())};
  }
  collet_range text(const char* characters, size_t size) {
    const auto first = static_cast<uint32_t>(bytes_.size());
    bytes_.insert(bytes_.end(), characters, characters + size);
    return {first, static_cast<uint32_t>(size)};
  }
  /** Copies a text of the program. */
  collet_range text(collet_range from) { return text(collet_string(p_, from), from.count); }
  collet_range refs(const std::vector<uint32_t>& values) {
    const auto first = static_cast<uint32_t>(refs_.size());
    refs_.insert(refs_.end(), values.begin(), values.end());
    return {first, count(values)};
  }
  template <class Attributes>
  void set_record(collet_op* op, const Attributes& attributes) {
    set_record(op, reinterpret_cast<const char*>(&attributes), sizeof attributes);
  }
  void set_record(collet_op* op, const char* from, size_t bytes) {
    records_.resize((records_.size() + 7) / 8 * 8);
    op->record = static_cast<uint32_t>(records_.size());
    op->record_bytes = static_cast<uint32_t>(bytes);
    records_.insert(records_.end(), from, from + bytes);
  }
  /** Returns the record that has been set for an op of the new program. */
  template <class Attributes>
  Attributes record_of(const collet_op& op) const {
    Attributes out{};
    std::memcpy(&out, records_.data() + op.record, std::min<size_t>(op.record_bytes, sizeof out));
    return out;
  }
  /** Copies the record of an op of the program, with the lists and texts to which it refers. */
  void copy_record(const collet_op* from, collet_op* op) {
    const char* first = reinterpret_cast<const char*>(p_) + p_->records.offset + from->record;
    std::vector<char> record(first, first + from->record_bytes);
    for (const RecordRange& one : ranges_of_record(from->opcode)) {
      if (one.offset + sizeof(collet_range) > record.size()) continue;
      collet_range range;
      std::memcpy(&range, &record[one.offset], sizeof range);
      const int64_t* numbers = collet_integers(p_, range);
      range = one.is_text ? text(range) : list(std::vector<int64_t>(numbers, numbers + range.count));
      std::memcpy(&record[one.offset], &range, sizeof range);
    }
    set_record(op, record.data(), record.size());
  }

  /** Writes op `id` of the group as op `number`. */
  void write_op(uint32_t id, uint32_t number, std::map<uint32_t, uint32_t>* names) {
    const collet_op* from = collet_op_at(p_, id);
    collet_op op = *from;
    std::vector<uint32_t> operands;
    for (uint32_t i = 0; i < from->operands.count; ++i) operands.push_back(names->at(collet_operand(p_, from, i)));
    op.operands = refs(operands);
    op.results.first = static_cast<uint32_t>(values_.size());
    for (uint32_t i = 0; i < from->results.count; ++i) {
      (*names)[from->results.first + i] = add_value(output_type(from->results.first + i), 0, number, i);
    }
    op.name = text(from->name);
    copy_record(from, &op);
    rewrite_attributes(from, &op);
    reserve_regions(from, &op, number);
    ops_[number] = op;
  }

  /** Copies an op of a region that is not cut. */
  void copy_op(uint32_t id, uint32_t number, std::map<uint32_t, uint32_t>* names) {
    const collet_op* from = collet_op_at(p_, id);
    collet_op op = *from;
    std::vector<uint32_t> operands;
    for (uint32_t i = 0; i < from->operands.count; ++i) operands.push_back(names->at(collet_operand(p_, from, i)));
    op.operands = refs(operands);
    op.results.first = static_cast<uint32_t>(values_.size());
    for (uint32_t i = 0; i < from->results.count; ++i) {
      (*names)[from->results.first + i] = add_value(copy_type(from->results.first + i), 0, number, i);
    }
    op.name = text(from->name);
    copy_record(from, &op);
    if (op.opcode == COLLET_OP_CONSTANT) write_constant(from, &op, nullptr);
    reserve_regions(from, &op, number);
    ops_[number] = op;
  }

  uint32_t copy_type(uint32_t value) {
    const collet_type* type = collet_value_type(p_, value);
    const int64_t* dims = collet_integers(p_, type->dims);
    return add_type(type->element, std::vector<int64_t>(dims, dims + type->dims.count));
  }

  void reserve_regions(const collet_op* from, collet_op* op, uint32_t number) {
    op->regions.first = static_cast<uint32_t>(regions_.size());
    for (uint32_t r = 0; r < from->regions.count; ++r) {
      regions_.emplace_back();
      regions_.back().op = number;
      pending_.push_back({from->regions.first + r, op->regions.first + r});
    }
  }

  void copy_region(Pending which) {
    const collet_region* from = collet_region_at(p_, which.from);
    collet_region out{};
    out.op = regions_[which.to].op;
    out.combine = from->combine;
    std::map<uint32_t, uint32_t> names;
    out.arguments = {static_cast<uint32_t>(values_.size()), from->arguments.count};
    for (uint32_t i = 0; i < from->arguments.count; ++i) {
      const uint32_t value = from->arguments.first + i;
      names[value] = add_value(copy_type(value), COLLET_VALUE_ARGUMENT, which.to, i);
    }
    out.ops = {static_cast<uint32_t>(ops_.size()), from->ops.count};
    ops_.resize(ops_.size() + from->ops.count);
    for (uint32_t i = 0; i < from->ops.count; ++i) copy_op(from->ops.first + i, out.ops.first + i, &names);
    std::vector<uint32_t> results;
    for (uint32_t i = 0; i < from->results.count; ++i) {
      results.push_back(names.at(collet_ref_at(p_, from->results.first + i)));
    }
    out.results = refs(results);
    regions_[which.to] = out;
  }

  /** Returns the padding of a dimension in the piece: where its window begins and ends beyond the operand. */
  std::pair<int64_t, int64_t> padding(uint32_t child, const Range& result, const Window& window) const {
    const Range read = window.read(result), have = ranges_[child];
    return {have.begin - read.begin, read.begin + read.size - have.begin - have.size};
  }
  /** Returns the sizes of a window in the piece: where it has all of a dimension of `value`, it has all of the piece's. */
  std::vector<int64_t> window_sizes(uint32_t value, std::vector<int64_t> sizes) const {
    for (size_t d = 0; d < sizes.size(); ++d) {
      const uint32_t a = axes_.at(value, d);
      if (sizes[d] == axes_.all()[a].extent) sizes[d] = ranges_[a].size;
    }
    return sizes;
  }
  bool is_cut(uint32_t child) const {
    const Axis& axis = axes_.all()[child];
    return !axis.whole && axis.parent != no_axis;
  }
  /** Returns a list of the new program. */
  std::vector<int64_t> numbers(collet_range range) const {
    return {integers_.begin() + range.first, integers_.begin() + range.first + range.count};
  }

  void rewrite_attributes(const collet_op* from, collet_op* op) {
    const uint32_t in = from->operands.count != 0 ? collet_operand(p_, from, 0) : COLLET_NONE;
    const uint32_t out = from->results.first;
    const auto axis = [&](uint32_t value, int64_t d) { return axes_.at(value, static_cast<size_t>(d)); };
    const auto set_window = [&](collet_window* window, const std::vector<int64_t>& children,
                                const std::vector<int64_t>& parents) {
      std::vector<int64_t> low = numbers(window->padding_low), high = numbers(window->padding_high);
      for (size_t i = 0; i < children.size(); ++i) {
        const uint32_t child = axis(in, children[i]), parent = axis(out, parents[i]);
        if (!is_cut(child) || child == parent) continue;
        const auto edges = padding(child, ranges_[parent], axes_.all()[child].window);
        low[i] = edges.first, high[i] = edges.second;
      }
      window->padding_low = list(low);
      window->padding_high = list(high);
    };
    switch (from->opcode) {
      case COLLET_OP_CONSTANT:
        write_constant(from, op, &ranges_);
        return;
      case COLLET_OP_SLICE: {
        auto a = record_of<collet_slice_attrs>(*op);
        std::vector<int64_t> start = numbers(a.start), limit = numbers(a.limit);
        for (size_t d = 0; d < start.size(); ++d) {
          const uint32_t child = axis(in, static_cast<int64_t>(d)), parent = axis(out, static_cast<int64_t>(d));
          if (child == parent) {
            limit[d] = ranges_[child].size;
          } else if (is_cut(child)) {
            start[d] = 0, limit[d] = ranges_[child].size;
          }
        }
        a.start = list(start);
        a.limit = list(limit);
        set_record(op, a);
        return;
      }
      case COLLET_OP_GATHER: {
        auto a = record_of<collet_gather_attrs>(*op);
        a.slice_sizes = list(window_sizes(in, numbers(a.slice_sizes)));
        set_record(op, a);
        return;
      }
      case COLLET_OP_DYNAMIC_SLICE: {
        auto a = record_of<collet_dynamic_slice_attrs>(*op);
        a.sizes = list(window_sizes(in, numbers(a.sizes)));
        set_record(op, a);
        return;
      }
      case COLLET_OP_PAD: {
        auto a = record_of<collet_pad_attrs>(*op);
        std::vector<int64_t> low = numbers(a.low), high = numbers(a.high);
        for (size_t d = 0; d < low.size(); ++d) {
          const uint32_t child = axis(in, static_cast<int64_t>(d)), parent = axis(out, static_cast<int64_t>(d));
          if (child == parent || !is_cut(child)) continue;
          const auto edges = padding(child, ranges_[parent], axes_.all()[child].window);
          low[d] = edges.first, high[d] = edges.second;
        }
        a.low = list(low);
        a.high = list(high);
        set_record(op, a);
        pad_low_ = low;
        pad_high_ = high;
        return;
      }
      case COLLET_OP_REDUCE_WINDOW: {
        auto a = record_of<collet_window_attrs>(*op);
        std::vector<int64_t> all;
        for (uint32_t d = 0; d < axes_.rank(out); ++d) all.push_back(d);
        set_window(&a.window, all, all);
        set_record(op, a);
        return;
      }
      case COLLET_OP_CONVOLUTION: {
        auto a = record_of<collet_convolution_attrs>(*op);
        set_window(&a.window, numbers(a.labels.input_spatial), numbers(a.labels.output_spatial));
        const uint32_t features = axis(out, a.labels.output_feature);
        if (a.feature_groups > 1 && axis(in, a.labels.input_feature) == features) {
          a.feature_groups = ranges_[features].size;
        }
        set_record(op, a);
        return;
      }
      default:
        return;
    }
  }

  /** Writes the data of a constant, or those of the piece. */
  void write_constant(const collet_op* from, collet_op* op, const std::vector<Range>* ranges) {
    const collet_constant* constant = collet_constant_at(p_, attributes_of<collet_constant_attrs>(p_, from).constant);
    const uint32_t value = from->results.first;
    const auto* data = static_cast<const char*>(collet_constant_data(p_, constant));
    const uint32_t width = collet_type_bytes(element(value));
    collet_constant out{};
    out.type = values_.back().type;
    out.argument = COLLET_NONE;
    out.bytes = types_[out.type].bytes;
    out.content_id[0] = constant->content_id[0];
    out.content_id[1] = constant->content_id[1];
    data_.resize((data_.size() + 63) / 64 * 64);
    out.offset = data_.size();
    const uint64_t all = collet_value_type(p_, value)->elements;
    for (uint64_t i = 0; i < all; ++i) {
      uint64_t rest = i;
      bool inside = true;
      for (uint32_t d = ranges ? axes_.rank(value) : 0; d-- > 0;) {
        const Range& range = (*ranges)[axes_.at(value, d)];
        const auto extent = static_cast<uint64_t>(axes_.all()[axes_.at(value, d)].extent);
        const auto at = static_cast<int64_t>(rest % extent);
        inside = inside && at >= range.begin && at < range.begin + range.size;
        rest /= extent;
      }
      if (inside) data_.insert(data_.end(), data + i * width, data + (i + 1) * width);
    }
    if (out.bytes != constant->bytes) {  // another content
      const char* first = data_.data() + out.offset;
      for (uint64_t& id : out.content_id) {
        id = collet_hash_bytes(id, first, static_cast<size_t>(out.bytes));
      }
    }
    constants_.push_back(out);
    collet_constant_attrs attributes{};
    attributes.constant = static_cast<uint32_t>(constants_.size() - 1);
    set_record(op, attributes);
  }

  std::vector<uint64_t> block() const {
    collet_program head{};
    uint64_t end = (sizeof head + 7) / 8 * 8;
    std::vector<std::pair<uint64_t, const void*>> parts;
    std::vector<uint64_t> sizes;
    const auto place = [&](collet_array* array, const auto& items, uint64_t alignment) {
      end = (end + alignment - 1) / alignment * alignment;
      array->offset = end;
      array->count = static_cast<uint32_t>(items.size());
      array->stride = sizeof items[0];
      parts.push_back({end, items.data()});
      sizes.push_back(items.size() * sizeof items[0]);
      end += sizes.back();
    };
    head.magic = COLLET_PROGRAM_MAGIC;
    head.struct_size = sizeof head;
    head.opset = p_->opset;
    head.replica_count = head.partition_count = 1;
    head.arena_alignment = p_->arena_alignment;
    place(&head.types, types_, 8);
    place(&head.values, values_, 8);
    place(&head.ops, ops_, 8);
    place(&head.regions, regions_, 8);
    place(&head.constants, constants_, 8);
    place(&head.aliases, std::vector<collet_alias>(), 8);
    place(&head.refs, refs_, 8);
    place(&head.integers, integers_, 8);
    place(&head.records, records_, 8);
    place(&head.bytes, bytes_, 8);
    place(&head.data, data_, 64);
    std::vector<uint64_t> out((end + 7) / 8, 0);
    head.total_bytes = out.size() * sizeof(uint64_t);
    std::memcpy(out.data(), &head, sizeof head);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (sizes[i] != 0) std::memcpy(reinterpret_cast<char*>(out.data()) + parts[i].first, parts[i].second, sizes[i]);
    }
    return out;
  }

  const collet_program* p_;
  const Axes& axes_;
  const std::vector<Range>& ranges_;
  const PieceBody* body_ = nullptr;
  std::vector<collet_type> types_;
  std::vector<collet_value> values_;
  std::vector<collet_op> ops_;
  std::vector<collet_region> regions_;
  std::vector<collet_constant> constants_;
  std::vector<uint32_t> refs_;
  std::vector<int64_t> integers_;
  std::vector<char> records_, bytes_, data_;
  std::vector<Pending> pending_;
  std::vector<int64_t> pad_low_, pad_high_;  // of the pad of the group
};

}  // namespace detail
}  // namespace tiling
}  // namespace collet

#endif
