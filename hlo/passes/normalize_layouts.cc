// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/library_calls.h"
#include "hlo/ops/markers.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

bool has_layout(const Shape& shape) {
  if (shape.layout()) return true;
  return std::any_of(shape.elements().begin(), shape.elements().end(), has_layout);
}

// Returns the dimensions from the slowest varying in memory to the fastest.
std::vector<int64_t> major_to_minor(const Shape& shape) {
  std::vector<int64_t> out;
  if (shape.layout() && shape.layout()->minor_to_major.size() == shape.dims().size())
    out.assign(shape.layout()->minor_to_major.rbegin(), shape.layout()->minor_to_major.rend());
  else
    for (int i = 0; i < shape.rank(); ++i) out.push_back(i);
  return out;
}

bool is_row_major(const Shape& shape) {
  if (shape.is_tuple()) return std::all_of(shape.elements().begin(), shape.elements().end(), is_row_major);
  const std::vector<int64_t> order = major_to_minor(shape);
  return std::is_sorted(order.begin(), order.end());
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

// Reads the same memory as another shape: transposes to memory order, reshapes to the new sizes in memory order, and
// transposes back to logical order.
InstrId unfold_bitcast(Builder& b, InstrId x, const Shape& from, const Shape& to) {
  const std::vector<int64_t> source = major_to_minor(from), target = major_to_minor(to);
  std::vector<int64_t> sizes;
  for (int64_t d : target) sizes.push_back(to.dim(static_cast<int>(d)));
  x = b.transpose(x, source);
  if (from.type() != to.type()) {
    const bool converts = type_info(from.type()).bits == type_info(to.type()).bits &&
                          is_complex(from.type()) == is_complex(to.type()) &&
                          from.element_count() == to.element_count();
    if (!converts)
      return b.fail(unimplemented("bitcast from " + from.to_string(true) + " to " + to.to_string(true) +
                                  ": the element types differ in width"));
    x = b.bitcast_convert(x, to.type());
  }
  x = b.reshape(x, sizes);
  return b.transpose(x, inverse(target));
}

// True if a routine of others gets arrays in another order than row-major. What the SDK computes itself is defined on
// values, for which the order in memory does not matter.
bool has_foreign_layouts(const Instruction& instr) {
  if (instr.op != Op::CUSTOM_CALL) return false;
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (!attrs.constrains_layouts || is_marker_target(attrs.target) || is_library_target(attrs.target)) return false;
  const auto is_other = [](const Shape* shape) { return !is_row_major(*shape); };
  return !is_row_major(instr.shape) ||
         std::any_of(attrs.operand_layouts.begin(), attrs.operand_layouts.end(), is_other);
}

// Returns the value, whose elements lie in memory as those of `from` do, as one that is laid out as `to`; both have
// the same dimensions.
InstrId relabel(Builder& b, InstrId x, const Shape& from, const Shape& to) {
  if (from.is_tuple()) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < from.elements().size(); ++i)
      parts.push_back(relabel(b, b.get(x, static_cast<int64_t>(i)), from.element(i), to.element(i)));
    return b.tuple(parts);
  }
  if (is_row_major(from) && is_row_major(to)) return x;
  if (from.is_array() && !from.has_dynamic()) return unfold_bitcast(b, x, from, to);
  return b.fail(unimplemented("a custom call with the layout " + (is_row_major(from) ? to : from).to_string(true)));
}

// Gives the routine row-major arrays of the same dimensions whose bytes are those of the stated layouts, and reads
// its results likewise. A sharding speaks of the dimensions of the result, not of the call's.
void unfold_custom_call(Rewriter& rewriter, InstrId id) {
  Module& module = rewriter.builder().module();
  Builder& b = rewriter.builder();
  const auto& attrs = module[id].as<CustomCallAttrs>();
  for (size_t i = 0; i < std::min(module[id].operands.size(), attrs.operand_layouts.size()); ++i) {
    const Shape& stated = *attrs.operand_layouts[i];
    const InstrId operand = relabel(b, module[id].operand(i), stated, stated.without_layout());
    if (operand == InstrId::None) return;
    module[id].operands[i] = operand;
  }
  const Shape stated = module[id].shape;
  module[id].shape = stated.without_layout();
  rewriter.keep(id);
  if (is_row_major(stated)) return;
  const InstrId result = relabel(b, id, stated.without_layout(), stated);
  if (result == InstrId::None) return;
  if (const Extras* extras = module[id].extras; extras && extras->sharding) {
    Extras inside = *extras, outside;
    outside.sharding = extras->sharding;
    inside.sharding = nullptr;
    module[id].extras = module.arena().make<Extras>(inside);
    module[result].extras = module.arena().make<Extras>(outside);
  }
  module[result].shape = stated;  // for bitcasts of it
  rewriter.replace(id, result);
}

// Returns the attribute record without the layouts in it; null if it has none.
const void* attributes_without_layouts(Module& module, const Instruction& instr) {
  if (instr.op == Op::OUTFEED) {
    const auto& attrs = instr.as<OutfeedAttrs>();
    if (!attrs.shape || !has_layout(*attrs.shape)) return nullptr;
    auto* out = module.make<OutfeedAttrs>();
    *out = attrs;
    out->shape = module.keep(attrs.shape->without_layout());
    return out;
  }
  if (instr.op == Op::CUSTOM_CALL && !instr.as<CustomCallAttrs>().operand_layouts.empty()) {
    auto* out = module.make<CustomCallAttrs>();
    *out = instr.as<CustomCallAttrs>();
    out->operand_layouts = {};
    out->constrains_layouts = false;
    return out;
  }
  return nullptr;
}

bool normalize_header(ModuleHeader& header) {
  bool changed = false;
  const auto drop = [&](Shape& shape) {
    if (!has_layout(shape)) return;
    shape = shape.without_layout();
    changed = true;
  };
  for (Shape& shape : header.entry_parameters) drop(shape);
  drop(header.entry_result);
  return changed;
}

}  // namespace

Expected<bool> normalize_layouts(Module& module, PassContext&) {
  bool changed = normalize_header(module.header());
  for (CompId computation : module.computations()) {
    bool any = false;
    for (InstrId id : module[computation].order) any |= module[id].op == Op::BITCAST || has_foreign_layouts(module[id]);
    if (any) {
      Rewriter rewriter(module, computation);
      for (InstrId id : rewriter.instructions()) {
        const Instruction& instr = rewriter.enter(id);
        if (has_foreign_layouts(instr)) {
          unfold_custom_call(rewriter, id);
          changed = true;
          continue;
        }
        if (instr.op != Op::BITCAST) {
          rewriter.keep(id);
          continue;
        }
        const InstrId x = instr.operand(0);
        rewriter.replace(id, unfold_bitcast(rewriter.builder(), x, module[x].shape, instr.shape));
        // Later instructions must see the layout that the bitcast has.
        if (rewriter.builder().status().ok() && rewriter.now(id) != x) module[rewriter.now(id)].shape = instr.shape;
      }
      changed |= rewriter.finish();
      COLLET_TRY(rewriter.builder().status());
    }
  }
  for (CompId computation : module.computations())
    for (InstrId id : module[computation].order) {
      Instruction& instr = module[id];
      if (has_layout(instr.shape)) {
        instr.shape = instr.shape.without_layout();
        changed = true;
      }
      if (const void* attrs = attributes_without_layouts(module, instr)) {
        instr.attrs = attrs;
        changed = true;
      }
    }
  return changed;
}

}  // namespace collet::hlo
