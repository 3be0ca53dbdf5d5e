// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/module.h"

#include <algorithm>

#include "hlo/program/leaves.h"
#include "hlo/verify/verify.h"

namespace collet::runtime {
namespace {

Status leaf_types(const hlo::Shape& shape, std::vector<const ArrayType*>& out) {
  std::vector<hlo::Shape> leaves;
  hlo::append_leaf_shapes(shape, leaves);
  for (const hlo::Shape& leaf : leaves) {
    COLLET_ASSIGN(const ArrayType* type, array_type(leaf));
    out.push_back(type);
  }
  return ok_status();
}

const hlo::Sharding* sharding_of(const hlo::Instruction& instr) {
  return instr.extras ? instr.extras->sharding : nullptr;
}

// A text for each leaf of `shape`. A tuple's sharding has an element per element, or, as XLA writes it, per leaf; any
// other holds for all leaves.
void leaf_shardings(const hlo::Shape& shape, const hlo::Sharding* sharding, std::vector<std::string>& out) {
  const size_t first = out.size();
  std::vector<hlo::Shape> leaves;
  hlo::append_leaf_shapes(shape, leaves);
  out.resize(first + leaves.size());
  if (!sharding) return;
  if (sharding->kind != hlo::Sharding::Kind::Tuple) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), sharding->to_string());
  } else if (sharding->elements.size() == leaves.size()) {
    for (size_t i = 0; i < leaves.size(); ++i) out[first + i] = sharding->elements[i].to_string();
  }
}

const Format* format_of(uint32_t id) {
  for (const Format& f : formats())
    if (f.id == id) return &f;
  return nullptr;
}

}  // namespace

Expected<Signature> signature_of(const hlo::Module& module) {
  Signature out;
  const hlo::Computation& entry = module.entry_computation();
  for (hlo::InstrId p : entry.parameters) {
    COLLET_TRY(leaf_types(module[p].shape, out.parameters));
    leaf_shardings(module[p].shape, sharding_of(module[p]), out.parameter_shardings);
  }
  const hlo::Instruction& root = module[entry.root];
  COLLET_TRY(leaf_types(root.shape, out.results));
  leaf_shardings(root.shape, sharding_of(root), out.result_shardings);
  return out;
}

Expected<ProgramModule*> ProgramModule::make(std::unique_ptr<hlo::Module> module) {
  if (module->entry() == hlo::CompId::None) return invalid_argument("the module has no entry computation");
  struct Release {
    void operator()(ProgramModule* m) const { m->release(); }
  };
  std::unique_ptr<ProgramModule, Release> out(new ProgramModule);
  COLLET_ASSIGN(out->signature_, signature_of(*module));
  out->name_ = module->name();
  out->module_ = std::move(module);
  return out.release();
}

Expected<ProgramModule*> read_module(std::string_view bytes, const collet_read_options& options,
                                     std::string& messages) {
  const Format* format = nullptr;
  if (options.format == COLLET_FORMAT_AUTO) {
    for (const Format& f : formats())
      if (!format && f.looks_like(bytes)) format = &f;
    if (!format) return invalid_argument("this is no program in a form that is known");
  } else {
    format = format_of(options.format);
    if (!format) return invalid_argument("there is no format " + std::to_string(options.format));
  }
  if (!format->read) return unimplemented(std::string("reading ") + format->name + " is not supported yet");
  COLLET_ASSIGN(std::unique_ptr<hlo::Module> module, format->read(bytes, options, messages));
  if (!options.skip_verify) COLLET_TRY(hlo::verify_module(*module));
  return ProgramModule::make(std::move(module));
}

Expected<std::string> write_module(const hlo::Module& module, uint32_t id) {
  const Format* format = format_of(id == COLLET_FORMAT_AUTO ? uint32_t{COLLET_FORMAT_HLO_TEXT} : id);
  if (!format) return invalid_argument("there is no format " + std::to_string(id));
  if (!format->write) return unimplemented(std::string("writing ") + format->name + " is not supported yet");
  return format->write(module);
}

}  // namespace collet::runtime
