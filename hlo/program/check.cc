// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/check.h"

#include <cstring>
#include <string>
#include <vector>

#include "hlo/ir/ops.h"
#include "hlo/program/attributes.h"

namespace collet::hlo {
namespace {

class Checker {
 public:
  Checker(const void* bytes, size_t size) : p_(static_cast<const collet_program*>(bytes)), size_(size) {}

  Status check() {
    COLLET_TRY(head());
    COLLET_TRY(arrays());
    budget_ = {p_->integers.count, p_->bytes.count};
    refs_left_ = p_->refs.count;
    COLLET_TRY(types());
    COLLET_TRY(constants());
    COLLET_TRY(values());
    COLLET_TRY(regions());
    for (uint32_t r = 0; r < p_->regions.count; ++r) COLLET_TRY(region(r));
    COLLET_TRY(aliases());
    return ok_status();
  }

 private:
  static Status fail(const std::string& what) { return invalid_argument("program: " + what); }
  static std::string number(std::string_view what, uint64_t i) { return std::string(what) + " " + std::to_string(i); }

  Status head() const {
    if (reinterpret_cast<uintptr_t>(p_) % 8 != 0) return fail("the block is not 8-byte aligned");
    if (size_ < sizeof(collet_program)) return fail("shorter than its head");
    if (p_->magic != COLLET_PROGRAM_MAGIC) return fail("does not begin with its magic number");
    if (p_->struct_size < sizeof(collet_program) || p_->struct_size > size_) return fail("the head has no such size");
    if (p_->total_bytes > size_) return fail("longer than its block");
    if (p_->flags != 0 || p_->reserved[0] || p_->reserved[1] || p_->reserved[2])
      return fail("a reserved field of the head is not zero");
    if (p_->replica_count == 0 || p_->partition_count == 0) return fail("has no participants");
    return ok_status();
  }

  Status arrays() const {
    const struct {
      const char* name;
      const collet_array& array;
      size_t stride;
    } all[] = {
        {"types", p_->types, sizeof(collet_type)},
        {"values", p_->values, sizeof(collet_value)},
        {"ops", p_->ops, sizeof(collet_op)},
        {"regions", p_->regions, sizeof(collet_region)},
        {"constants", p_->constants, sizeof(collet_constant)},
        {"aliases", p_->aliases, sizeof(collet_alias)},
        {"refs", p_->refs, sizeof(uint32_t)},
        {"integers", p_->integers, sizeof(int64_t)},
        {"records", p_->records, 1},
        {"bytes", p_->bytes, 1},
        {"data", p_->data, 1},
    };
    for (const auto& a : all) {
      if (a.array.offset % 8 != 0 || a.array.stride != a.stride || a.array.offset > p_->total_bytes ||
          uint64_t{a.array.count} * a.array.stride > p_->total_bytes - a.array.offset)
        return fail(std::string("the array of ") + a.name + " does not lie in the block");
    }
    if (uint64_t{p_->name.first} + p_->name.count > p_->bytes.count) return fail("its name does not lie in the block");
    return ok_status();
  }

  Status text(collet_range r, const std::string& whose) {
    if (uint64_t{r.first} + r.count > p_->bytes.count || r.count > budget_.bytes)
      return fail("the name of " + whose + " does not lie in the block, or belongs to others too");
    budget_.bytes -= r.count;
    return ok_status();
  }

  Status types() {
    for (uint32_t i = 0; i < p_->types.count; ++i) {
      const collet_type& t = *collet_type_at(p_, i);
      const std::string who = number("type", i);
      const TypeInfo& info = t.element < COLLET_TYPE_LIMIT ? type_info(static_cast<Type>(t.element)) : TypeInfo{};
      if (info.text.empty()) return fail(who + " has an unknown element type");
      if (t.layout != 0) return fail(who + " has a layout, which was not agreed");
      if (t.reserved != 0) return fail("a reserved field of " + who + " is not zero");
      if (uint64_t{t.dims.first} + t.dims.count > p_->integers.count) return fail(who + " has no such dimensions");
      if (t.dims.count > budget_.integers) return fail(who + " has dimensions that belong to others too");
      budget_.integers -= t.dims.count;
      uint64_t elements = 1;
      for (uint32_t d = 0; d < t.dims.count; ++d) {
        const int64_t dim = collet_integers(p_, t.dims)[d];
        if (dim < 0) return fail(who + " has a negative dimension");
        if (__builtin_mul_overflow(elements, static_cast<uint64_t>(dim), &elements)) return fail(who + " is too large");
      }
      uint64_t bytes;
      if (__builtin_mul_overflow(elements, uint64_t{collet_type_bytes(t.element)}, &bytes) || bytes > INT64_MAX)
        return fail(who + " is too large");
      if (t.elements != elements || t.bytes != bytes)
        return fail("the size of " + who + " is not that of its dimensions");
    }
    return ok_status();
  }

  Status constants() const {
    for (uint32_t i = 0; i < p_->constants.count; ++i) {
      const collet_constant& c = *collet_constant_at(p_, i);
      if (c.type >= p_->types.count) return fail(number("constant", i) + " has no such type");
      if (c.bytes != collet_type_at(p_, c.type)->bytes)
        return fail(number("constant", i) + " has not the size of its type");
      if (c.argument == COLLET_NONE && (c.offset > p_->data.count || c.bytes > p_->data.count - c.offset))
        return fail(number("constant", i) + " does not lie in the block");
    }
    return ok_status();
  }

  Status values() {
    for (uint32_t i = 0; i < p_->values.count; ++i) {
      const collet_value& v = *collet_value_at(p_, i);
      if (v.type >= p_->types.count) return fail(number("value", i) + " has no such type");
      if (v.reserved != 0) return fail("a reserved field of " + number("value", i) + " is not zero");
      COLLET_TRY(text(v.name, number("value", i)));
    }
    return ok_status();
  }

  bool owns_values(collet_range r, uint32_t definition, bool argument) const {
    if (uint64_t{r.first} + r.count > p_->values.count) return false;
    for (uint32_t i = 0; i < r.count; ++i) {
      const collet_value& v = *collet_value_at(p_, r.first + i);
      if (v.definition != definition || v.index != i || ((v.flags & COLLET_VALUE_ARGUMENT) != 0) != argument)
        return false;
    }
    return true;
  }

  // Checks the regions: a region has a larger number than the region that contains its op, so that they form a tree.
  Status regions() {
    if (p_->regions.count == 0) return fail("has no entry");
    region_of_op_.assign(p_->ops.count, COLLET_NONE);
    for (uint32_t r = 0; r < p_->regions.count; ++r) {
      const collet_region& region = *collet_region_at(p_, r);
      const std::string who = number("region", r);
      if (region.reserved != 0) return fail("a reserved field of " + who + " is not zero");
      COLLET_TRY(text(region.name, who));
      if ((region.op == COLLET_NONE) != (r == 0)) return fail(who + " is called by no op");
      if (region.op != COLLET_NONE && region.op >= p_->ops.count) return fail(who + " is called by no op");
      if (uint64_t{region.ops.first} + region.ops.count > p_->ops.count) return fail(who + " has no such ops");
      if (uint64_t{region.results.first} + region.results.count > p_->refs.count)
        return fail(who + " has no such results");
      if (!owns_values(region.arguments, r, true)) return fail(who + " has no such arguments");
      for (uint32_t i = 0; i < region.ops.count; ++i) {
        uint32_t& owner = region_of_op_[region.ops.first + i];
        if (owner != COLLET_NONE) return fail(number("op", region.ops.first + i) + " stands in two regions");
        owner = r;
      }
    }
    depth_.assign(p_->regions.count, 0);
    for (uint32_t r = 1; r < p_->regions.count; ++r) {
      const collet_region& region = *collet_region_at(p_, r);
      const uint32_t parent = region_of_op_[region.op];
      const collet_range mine = collet_op_at(p_, region.op)->regions;
      if (parent >= r || r < mine.first || r - mine.first >= mine.count)
        return fail(number("region", r) + " is not below the op that it names");
      depth_[r] = depth_[parent] + 1;
      if (depth_[r] > kDeepestRegion)
        return fail("region '" + std::string(collet_string(p_, region.name), region.name.count) +
                    "' is nested too deeply, in more than " + std::to_string(kDeepestRegion) + " others");
    }
    return ok_status();
  }

  // Claims entries of refs. Each entry belongs to one op or region.
  bool take_refs(uint32_t count) {
    if (count > refs_left_) return false;
    refs_left_ -= count;
    return true;
  }

  Status region(uint32_t r) {
    const collet_region& region = *collet_region_at(p_, r);
    if (defined_.empty()) defined_.assign(p_->values.count, COLLET_NONE);
    for (uint32_t i = 0; i < region.arguments.count; ++i) {
      if (defined_[region.arguments.first + i] != COLLET_NONE) return fail("a value is defined twice");
      defined_[region.arguments.first + i] = r;
    }
    for (uint32_t i = 0; i < region.ops.count; ++i) COLLET_TRY(op(region.ops.first + i, r));
    if (!take_refs(region.results.count)) return fail(number("region", r) + " has results that belong to others too");
    for (uint32_t i = 0; i < region.results.count; ++i)
      COLLET_TRY(use(region.results.first + i, r, number("region", r)));
    return ok_status();
  }

  Status use(uint32_t ref, uint32_t r, const std::string& who) const {
    const uint32_t value = collet_ref_at(p_, ref);
    if (value >= p_->values.count || defined_[value] != r) return fail(who + " uses a value that is not defined there");
    return ok_status();
  }

  Status op(uint32_t i, uint32_t r) {
    const collet_op& op = *collet_op_at(p_, i);
    const std::string who = number("op", i);
    if (op.since > COLLET_OPSET)
      return unimplemented("program: " + who + " needs opset " + std::to_string(op.since) + ", this is opset " +
                           std::to_string(COLLET_OPSET));
    if (op.opcode == COLLET_OP_INVALID || op.opcode > kLastOp) return fail(who + " has an unknown opcode");
    if (op.flags != 0 || op.reserved != 0) return fail("a reserved field of " + who + " is not zero");
    COLLET_TRY(text(op.name, who));
    if (uint64_t{op.operands.first} + op.operands.count > p_->refs.count) return fail(who + " has no such operands");
    if (!take_refs(op.operands.count)) return fail(who + " has operands that belong to others too");
    for (uint32_t j = 0; j < op.operands.count; ++j) COLLET_TRY(use(op.operands.first + j, r, who));
    if (!owns_values(op.results, i, false)) return fail(who + " has no such results");
    for (uint32_t j = 0; j < op.results.count; ++j) {
      if (defined_[op.results.first + j] != COLLET_NONE) return fail("a value is defined twice");
      defined_[op.results.first + j] = r;
    }
    if (uint64_t{op.regions.first} + op.regions.count > p_->regions.count) return fail(who + " has no such regions");
    for (uint32_t j = 0; j < op.regions.count; ++j)
      if (collet_region_at(p_, op.regions.first + j)->op != i) return fail(who + " does not own its regions");
    if (op.record % 8 != 0 || uint64_t{op.record} + op.record_bytes > p_->records.count)
      return fail(who + " has no such attributes");
    COLLET_TRY(check_attributes(p_, op, budget_).with_prefix("program: "));
    if (op.opcode == COLLET_OP_CONSTANT) COLLET_TRY(constant_op(op, who));
    return ok_status();
  }

  Status constant_op(const collet_op& op, const std::string& who) const {
    collet_constant_attrs attrs;
    collet_read_attributes(p_, &op, &attrs, sizeof attrs);
    if (attrs.constant >= p_->constants.count) return fail(who + " has no such constant");
    const collet_constant& c = *collet_constant_at(p_, attrs.constant);
    if (c.argument != COLLET_NONE) return fail(who + " names a constant that comes as an argument");
    if (op.results.count != 1 || collet_value_at(p_, op.results.first)->type != c.type)
      return fail(who + " has not the type of its constant");
    return ok_status();
  }

  Status aliases() const {
    const collet_region& entry = *collet_region_at(p_, 0);
    for (uint32_t i = 0; i < p_->constants.count; ++i) {
      const uint32_t argument = collet_constant_at(p_, i)->argument;
      if (argument != COLLET_NONE && argument >= entry.arguments.count)
        return fail(number("constant", i) + " comes through no argument");
    }
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias& a = *collet_alias_at(p_, i);
      if (a.result >= entry.results.count || a.argument >= entry.arguments.count || a.kind > COLLET_ALIAS_MUST ||
          a.reserved != 0)
        return fail(number("alias", i) + " names no result or argument");
    }
    return ok_status();
  }

  const collet_program* p_;
  size_t size_;
  PoolBudget budget_;
  uint32_t refs_left_ = 0;
  std::vector<uint32_t> region_of_op_, depth_, defined_;
};

}  // namespace

Status check_program(const void* bytes, size_t size) {
  return Checker(bytes, size).check();
}

}  // namespace collet::hlo
