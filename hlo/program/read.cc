// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/read.h"

#include <string>

#include "hlo/program/attributes.h"
#include "hlo/program/check.h"

namespace collet::hlo {
namespace {

class Reader {
 public:
  explicit Reader(const collet_program* program) : p_(program) {}

  Expected<ReadProgram> read() {
    out_.module = std::make_unique<Module>(text(p_->name, "program"));
    Module& m = *out_.module;
    m.header().replica_count = p_->replica_count;
    m.header().num_partitions = p_->partition_count;
    out_.ops.assign(p_->ops.count, InstrId::None);
    values_.assign(p_->values.count, InstrId::None);
    computations_.assign(p_->regions.count, CompId::None);
    for (uint32_t i = 0; i < p_->types.count; ++i) shapes_.push_back(shape(*collet_type_at(p_, i)));
    // A region comes after the region that calls it. So computations are made from the last region to the first.
    for (uint32_t r = p_->regions.count; r-- > 0;) COLLET_TRY(region(r));
    m.set_entry(computations_[0]);
    aliases();
    return std::move(out_);
  }

 private:
  std::string_view text(collet_range r, std::string_view otherwise) const {
    return r.count ? std::string_view(collet_string(p_, r), r.count) : otherwise;
  }

  Shape shape(const collet_type& t) const {
    if (t.element == COLLET_TYPE_TOKEN) return Shape::token();
    if (t.element == COLLET_TYPE_OPAQUE) return Shape::opaque();
    return Shape::array(static_cast<Type>(t.element), std::span(collet_integers(p_, t.dims), t.dims.count));
  }
  const Shape& value_shape(uint32_t value) const { return shapes_[collet_value_at(p_, value)->type]; }

  // Returns a unique name: names in a program need not be unique, those in a module must be.
  std::string_view name(collet_range r, std::string_view otherwise) {
    return out_.module->unique_name(text(r, otherwise));
  }

  // Whether the computation of a region has one parameter, a tuple of the region's arguments, as HLO has it for while and conditional.
  bool takes_tuple(const collet_region& region) const {
    if (region.op == COLLET_NONE || region.arguments.count == 1) return false;
    const uint32_t opcode = collet_op_at(p_, region.op)->opcode;
    return opcode == COLLET_OP_WHILE || opcode == COLLET_OP_CONDITIONAL;
  }

  Status region(uint32_t r) {
    Module& m = *out_.module;
    const collet_region& region = *collet_region_at(p_, r);
    const CompId c = m.add_computation(text(region.name, r == 0 ? "entry" : "region"));
    computations_[r] = c;
    if (takes_tuple(region)) {
      std::vector<Shape> elements;
      for (uint32_t i = 0; i < region.arguments.count; ++i) elements.push_back(value_shape(region.arguments.first + i));
      const Shape tuple = Shape::tuple(elements);
      const InstrId parameter = m.append_parameter(c, 0, tuple, m.unique_name("arguments"));
      for (uint32_t i = 0; i < region.arguments.count; ++i)
        values_[region.arguments.first + i] = element(c, parameter, i, elements[i], region.arguments.first + i);
    } else {
      for (uint32_t i = 0; i < region.arguments.count; ++i) {
        const uint32_t v = region.arguments.first + i;
        values_[v] = m.append_parameter(c, i, value_shape(v), name(collet_value_at(p_, v)->name, "argument"));
      }
    }
    for (uint32_t i = 0; i < region.ops.count; ++i) COLLET_TRY(op(c, region.ops.first + i));
    std::vector<InstrId> results;
    for (uint32_t i = 0; i < region.results.count; ++i)
      results.push_back(values_[collet_ref_at(p_, region.results.first + i)]);
    m[c].root = results.size() == 1 ? results[0] : tuple(c, results);
    return ok_status();
  }

  InstrId element(CompId c, InstrId from, uint32_t index, const Shape& shape, uint32_t value) {
    Module& m = *out_.module;
    auto* attrs = m.make<TupleIndexAttrs>();
    attrs->index = index;
    const InstrId operands[] = {from};
    return m.append(c, Op::GET_TUPLE_ELEMENT, shape, operands, attrs, {},
                    name(collet_value_at(p_, value)->name, "element"));
  }

  InstrId tuple(CompId c, const std::vector<InstrId>& items) {
    Module& m = *out_.module;
    std::vector<Shape> elements;
    for (InstrId id : items) elements.push_back(m[id].shape);
    return m.append(c, Op::TUPLE, Shape::tuple(elements), items);
  }

  // Returns the operands of the HLO instruction for an op. A program lists values one by one. HLO packs those of while and opt-barrier, the data
  // of outfeed, and those of each branch of conditional into a tuple.
  Expected<std::vector<InstrId>> operands(CompId c, const collet_op& op) {
    std::vector<InstrId> all;
    for (uint32_t i = 0; i < op.operands.count; ++i) all.push_back(values_[collet_operand(p_, &op, i)]);
    switch (op.opcode) {
      case COLLET_OP_WHILE:
      case COLLET_OP_OPT_BARRIER:
        if (all.size() == 1) return all;
        return std::vector{tuple(c, all)};
      case COLLET_OP_OUTFEED: {
        if (all.empty()) return invalid_argument("program: outfeed without a token");
        if (all.size() == 2) return all;
        const std::vector<InstrId> data(all.begin(), all.end() - 1);
        return std::vector{tuple(c, data), all.back()};
      }
      case COLLET_OP_CONDITIONAL: {
        if (all.empty()) return invalid_argument("program: conditional without a predicate");
        std::vector<InstrId> out{all[0]};
        size_t at = 1;
        for (uint32_t r = 0; r < op.regions.count; ++r) {
          const size_t n = collet_region_at(p_, op.regions.first + r)->arguments.count;
          if (at + n > all.size()) return invalid_argument("program: conditional with too few operands");
          const std::vector<InstrId> mine(all.begin() + static_cast<ptrdiff_t>(at),
                                          all.begin() + static_cast<ptrdiff_t>(at + n));
          out.push_back(n == 1 ? mine[0] : tuple(c, mine));
          at += n;
        }
        if (at != all.size()) return invalid_argument("program: conditional with too many operands");
        return out;
      }
      default:
        return all;
    }
  }

  Shape result_shape(const collet_op& op) const {
    std::vector<Shape> elements;
    for (uint32_t i = 0; i < op.results.count; ++i) elements.push_back(value_shape(op.results.first + i));
    if (elements.size() == 1) return elements[0];
    if (op.opcode == COLLET_OP_INFEED && elements.size() > 2) {
      const Shape token = elements.back();
      elements.pop_back();
      return Shape::tuple({Shape::tuple(elements), token});
    }
    return Shape::tuple(elements);
  }

  Status op(CompId c, uint32_t number) {
    Module& m = *out_.module;
    const collet_op& op = *collet_op_at(p_, number);
    const Op code = static_cast<Op>(op.opcode);
    if (code == Op::PARAMETER || code == Op::TUPLE || code == Op::GET_TUPLE_ELEMENT)
      return invalid_argument("program: op " + std::to_string(number) + " (" + collet_op_name(op.opcode) +
                              ") cannot stand in a program");
    InstrId id;
    if (code == Op::CONSTANT) {
      id = m.append_constant(c, constant(op), name(op.name, "constant"));
    } else {
      COLLET_ASSIGN(const std::vector<InstrId> in, operands(c, op));
      std::vector<CompId> called;
      for (uint32_t i = 0; i < op.regions.count; ++i) called.push_back(computations_[op.regions.first + i]);
      id = m.append(c, code, result_shape(op), in, read_attributes(p_, op, m), called,
                    name(op.name, collet_op_name(op.opcode)));
    }
    out_.ops[number] = id;
    if (op.results.count == 1) values_[op.results.first] = id;
    if (op.results.count < 2) return ok_status();
    if (code == Op::INFEED && op.results.count > 2) return infeed_elements(c, id, op);
    for (uint32_t i = 0; i < op.results.count; ++i)
      values_[op.results.first + i] = element(c, id, i, value_shape(op.results.first + i), op.results.first + i);
    return ok_status();
  }

  // Takes the result of infeed apart: a tuple of the data, also a tuple, and the token.
  Status infeed_elements(CompId c, InstrId id, const collet_op& op) {
    const uint32_t last = op.results.first + op.results.count - 1;
    const Shape data = out_.module->operator[](id).shape.element(0);
    const InstrId inner = element(c, id, 0, data, op.results.first);
    for (uint32_t v = op.results.first; v < last; ++v)
      values_[v] = element(c, inner, v - op.results.first, value_shape(v), v);
    values_[last] = element(c, id, 1, value_shape(last), last);
    return ok_status();
  }

  Literal constant(const collet_op& op) const {
    collet_constant_attrs attrs;
    collet_read_attributes(p_, &op, &attrs, sizeof attrs);
    const collet_constant& c = *collet_constant_at(p_, attrs.constant);
    if (!shapes_[c.type].is_array()) return Literal::zeros(shapes_[c.type]);
    return Literal::from_bytes(shapes_[c.type], collet_constant_data(p_, &c));
  }

  void aliases() {
    Module& m = *out_.module;
    const bool one = collet_region_at(p_, 0)->results.count == 1;
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias& a = *collet_alias_at(p_, i);
      const int64_t result[] = {a.result};
      m.header().aliases.push_back(
          {one ? Dims() : m.dims(std::span<const int64_t>(result)), a.argument, Dims(), a.kind == COLLET_ALIAS_MUST});
    }
  }

  const collet_program* p_;
  ReadProgram out_;
  std::vector<Shape> shapes_;
  std::vector<InstrId> values_;
  std::vector<CompId> computations_;
};

}  // namespace

Expected<ReadProgram> read_program(const void* bytes, size_t size) {
  COLLET_TRY(check_program(bytes, size));
  return Reader(static_cast<const collet_program*>(bytes)).read();
}

}  // namespace collet::hlo
