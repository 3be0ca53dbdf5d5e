// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/module_hash.h"

#include <algorithm>

#include "hlo/base/hash.h"
#include "hlo/testing/inputs.h"

namespace collet::hlo::testing {
namespace {

const Layout* stated_layout(const Shape& shape) {
  const Layout* layout = shape.layout();
  return layout && !layout->is_default() ? layout : nullptr;
}

}  // namespace

std::string frontend_text(const Extras& extras) {
  std::vector<std::string> lines;
  for (const FrontendAttribute& f : extras.frontend_attributes)
    lines.push_back(std::string(f.name) + "=" + std::string(f.value));
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : ",") + line;
  return out;
}

std::string accuracy_text(const Extras& extras) {
  if (!extras.result_accuracy) return {};
  const ResultAccuracy& r = *extras.result_accuracy;
  if (r.is_mode) return r.mode == "default" ? std::string() : std::string(r.mode);
  return std::to_string(r.atol) + "," + std::to_string(r.rtol) + "," + std::to_string(r.ulps);
}

ModuleHash::ModuleHash(const Module& module, const CompareOptions& options)
    : module_(module),
      options_(options),
      own_(module.instruction_limit()),
      value_(module.instruction_limit()),
      computation_(module.computation_limit()) {
  for (CompId c : module.computations()) visit(c);
}

void ModuleHash::visit(CompId c) {
  const Computation& computation = module_[c];
  uint64_t all = computation.order.size();
  for (InstrId id : computation.order) {
    const Instruction& instr = module_[id];
    uint64_t h = own_[index_of(id)] = hash_own(instr);
    for (InstrId o : instr.operands) h = collet_hash_number(h, value_[index_of(o)]);
    uint64_t before = 0;
    if (instr.extras)
      for (InstrId p : instr.extras->control_predecessors) before += value_[index_of(p)];
    value_[index_of(id)] = collet_hash_number(h, before);
    all += mix(value_[index_of(id)]);
  }
  const uint64_t root = computation.root == InstrId::None ? 0 : value_[index_of(computation.root)];
  computation_[index_of(c)] =
      collet_hash_number(collet_hash_number(all, root), hash_text(computation.execution_thread));
}

uint64_t ModuleHash::hash_own(const Instruction& instr) const {
  uint64_t h = collet_hash_number(static_cast<uint64_t>(instr.op), hash_shape(instr.shape));
  if (instr.op == Op::CONSTANT)
    h = collet_hash_number(h, options_.literals ? module_.literal(instr).hash() : 0);
  else if (const Record record = op_info(instr.op).record; record != Record::None && instr.attrs)
    h = collet_hash_number(h, hash_record(record, instr.attrs));
  for (CompId callee : instr.called) h = collet_hash_number(h, computation_[index_of(callee)]);
  return instr.extras ? collet_hash_number(h, hash_extras(*instr.extras)) : h;
}

uint64_t ModuleHash::hash_extras(const Extras& extras) const {
  uint64_t h = 0;
  if (options_.shardings && extras.sharding) h = collet_hash_number(h, hash_text(extras.sharding->to_string()));
  if (options_.frontend_attributes && !extras.frontend_attributes.empty())
    h = collet_hash_number(h, hash_text(frontend_text(extras)));
  if (options_.backend_configs && !extras.backend_config.empty())
    h = collet_hash_number(h, hash_text(extras.backend_config));
  if (const std::string accuracy = accuracy_text(extras); !accuracy.empty())
    h = collet_hash_number(h, hash_text(accuracy));
  return h;
}

uint64_t ModuleHash::hash_shape(const Shape& shape) const {
  uint64_t h = static_cast<uint64_t>(shape.type());
  for (int i = 0; i < shape.rank(); ++i)
    h = collet_hash_number(h, static_cast<uint64_t>(shape.dim(i)) * 2 + shape.is_dynamic(i));
  for (const Shape& element : shape.elements()) h = collet_hash_number(h, hash_shape(element));
  if (const Layout* layout = options_.layouts ? stated_layout(shape) : nullptr)
    h = collet_hash_number(h, hash_text(layout_to_string(*layout)));
  return h;
}

bool ModuleHash::same_shape(const Shape& a, const Shape& b) const {
  if (a.elements().size() != b.elements().size() || a.type() != b.type()) return false;
  for (size_t i = 0; i < a.elements().size(); ++i)
    if (!same_shape(a.element(i), b.element(i))) return false;
  if (!a.elements().empty()) return true;
  if (!a.same_without_layout(b)) return false;
  if (!options_.layouts) return true;
  const Layout *x = stated_layout(a), *y = stated_layout(b);
  return x && y ? *x == *y : x == y;
}

}  // namespace collet::hlo::testing
