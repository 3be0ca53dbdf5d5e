// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/append_sizes.h"

#include <utility>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/passes/flat_form.h"

namespace collet::hlo {
namespace {

class Appender {
 public:
  explicit Appender(Module& module) : m_(module), b_(module, module.entry()) {}

  Expected<size_t> run() {
    const InstrId root = m_.entry_computation().root;
    const bool is_tuple = m_[root].shape.is_tuple();
    std::vector<InstrId> results;
    if (is_tuple) {
      for (size_t i = 0; i < m_[root].shape.elements().size(); ++i)
        results.push_back(m_[root].op == Op::TUPLE ? m_[root].operand(i) : b_.get(root, static_cast<int64_t>(i)));
    } else {
      results.push_back(root);
    }
    for (const InstrId result : std::vector(results)) visit(result);
    if (sizes_.empty()) return size_t{0};
    results.insert(results.end(), sizes_.begin(), sizes_.end());
    b_.set_origin(&m_[root]);
    const InstrId tuple = b_.tuple(results);
    COLLET_TRY(b_.status());
    shard(root, tuple);
    m_.entry_computation().root = tuple;
    change_header(is_tuple);
    return sizes_.size();
  }

 private:
  void visit(InstrId value) {
    const Shape shape = m_[value].shape;
    if (shape.is_tuple()) {
      for (size_t i = 0; shape.has_dynamic() && i < shape.elements().size(); ++i)
        visit(m_[value].op == Op::TUPLE ? m_[value].operand(i) : b_.get(value, static_cast<int64_t>(i)));
      return;
    }
    for (int d = 0; shape.is_array() && d < shape.rank(); ++d) {
      if (!shape.is_dynamic(d)) continue;
      auto* const attrs = m_.make<DimensionAttrs>();
      attrs->dimension = d;
      sizes_.push_back(b_.op(Op::GET_DIMENSION_SIZE, Shape::scalar(Type::S32), {value}, attrs));
    }
  }

  // Each participant has its sizes; the other results keep their shardings.
  void shard(InstrId from, InstrId tuple) {
    const Extras* const extras = m_[from].extras;
    if (!extras || !extras->sharding) return;
    Sharding sharding;
    sharding.kind = Sharding::Kind::Tuple;
    const size_t leaves = leaf_shapes(m_[from].shape).size();
    if (extras->sharding->kind == Sharding::Kind::Tuple)
      sharding.elements = extras->sharding->elements;
    else
      sharding.elements.assign(leaves, *extras->sharding);
    sharding.elements.resize(sharding.elements.size() + sizes_.size());
    auto* const changed = m_.make<Extras>();
    *changed = *extras;
    changed->sharding = m_.keep(std::move(sharding));
    m_[tuple].extras = changed;
  }

  void change_header(bool was_tuple) {
    ModuleHeader& header = m_.header();
    if (header.has_entry_layout) {
      std::vector<Shape> shapes;
      if (was_tuple)
        shapes.assign(header.entry_result.elements().begin(), header.entry_result.elements().end());
      else
        shapes.push_back(header.entry_result);
      shapes.insert(shapes.end(), sizes_.size(), Shape::scalar(Type::S32));
      header.entry_result = Shape::tuple(std::move(shapes));
    }
    if (header.spmd_to_output.size() > 1 || (!was_tuple && !header.spmd_to_output.empty()))
      header.spmd_to_output.insert(header.spmd_to_output.end(), sizes_.size(), false);
    if (was_tuple) return;
    for (InputOutputAlias& alias : header.aliases) alias.output_index = m_.dims({0});
  }

  Module& m_;
  Builder b_;
  std::vector<InstrId> sizes_;
};

}  // namespace

Expected<size_t> append_result_sizes(Module& module) {
  if (!module[module.entry_computation().root].shape.has_dynamic()) return size_t{0};
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) module.note_name(module[id].name);
  return Appender(module).run();
}

}  // namespace collet::hlo
