// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/module.h"

#include <algorithm>
#include <optional>

#include "hlo/formats/formats.h"
#include "hlo/passes/append_sizes.h"
#include "hlo/program/leaves.h"

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

std::vector<std::vector<bool>> dynamic_dimensions(const hlo::Shape& shape) {
  std::vector<hlo::Shape> leaves;
  hlo::append_leaf_shapes(shape, leaves);
  std::vector<std::vector<bool>> out;
  for (const hlo::Shape& leaf : leaves) {
    std::vector<bool>& dynamic = out.emplace_back();
    for (int d = 0; leaf.is_array() && d < leaf.rank(); ++d) dynamic.push_back(leaf.is_dynamic(d));
  }
  return out;
}

const hlo::Sharding* sharding_of(const hlo::Instruction& instr) {
  return instr.extras ? instr.extras->sharding : nullptr;
}

// Appends a text for each leaf of `shape`. The sharding of a tuple has one element per tuple element or, as XLA writes
// it, per leaf; any other sharding applies to all leaves.
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

// Appends the order of dimensions of each leaf of `shape`, if it is stated and not row-major.
void leaf_layouts(const hlo::Shape& shape, std::vector<std::string>& out) {
  std::vector<hlo::Shape> leaves;
  hlo::append_leaf_shapes(shape, leaves);
  for (const hlo::Shape& leaf : leaves) {
    const hlo::Layout* layout = leaf.is_array() ? leaf.layout() : nullptr;
    std::string& text = out.emplace_back();
    if (!layout || std::is_sorted(layout->minor_to_major.rbegin(), layout->minor_to_major.rend())) continue;
    for (int64_t d : layout->minor_to_major) text += (text.empty() ? "{" : ",") + std::to_string(d);
    text += "}";
  }
}

Expected<std::optional<hlo::Format>> format_of(uint32_t id) {
  switch (id) {
    case COLLET_FORMAT_AUTO:
      return std::optional<hlo::Format>();
    case COLLET_FORMAT_HLO_TEXT:
      return std::optional(hlo::Format::HloText);
    case COLLET_FORMAT_HLO_PROTO:
      return std::optional(hlo::Format::HloProto);
    case COLLET_FORMAT_STABLEHLO_TEXT:
      return std::optional(hlo::Format::StablehloText);
    case COLLET_FORMAT_STABLEHLO:
      return std::optional(hlo::Format::Artifact);
    default:
      return invalid_argument("there is no format " + std::to_string(id));
  }
}

Expected<hlo::ElidedConstants> elided_of(uint32_t id) {
  switch (id) {
    case COLLET_ELIDED_REFUSE:
      return hlo::ElidedConstants::Refuse;
    case COLLET_ELIDED_ZEROS:
      return hlo::ElidedConstants::Zeros;
    case COLLET_ELIDED_RANDOM:
      return hlo::ElidedConstants::Random;
    case COLLET_ELIDED_COUNTER:
      return hlo::ElidedConstants::Counter;
    default:
      return invalid_argument("unknown way to fill elided constants");
  }
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
  if (root.shape.has_dynamic()) out.dynamic_results = dynamic_dimensions(root.shape);
  const hlo::ModuleHeader& header = module.header();
  if (!header.has_entry_layout) return out;
  for (const hlo::Shape& shape : header.entry_parameters) leaf_layouts(shape, out.parameter_layouts);
  leaf_layouts(header.entry_result, out.result_layouts);
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
  COLLET_ASSIGN(const std::optional<hlo::Format> format, format_of(options.format));
  hlo::ParseOptions parse;
  parse.file_name = options.file ? options.file : "";
  COLLET_ASSIGN(parse.elided, elided_of(options.elided));
  parse.seed = options.seed;
  parse.floats_as_f64 = options.floats_as_f64 != 0;
  if (options.max_errors) parse.max_errors = options.max_errors;
  Diagnostics diagnostics(parse.file_name, parse.max_errors);
  auto module = options.skip_verify ? hlo::read_module(bytes, parse, diagnostics, format)
                                    : hlo::read_verified_module(bytes, parse, diagnostics, format);
  if (!diagnostics.empty()) messages = diagnostics.to_string();
  COLLET_TRY(module.status());
  if (options.append_sizes && (*module)->entry() != hlo::CompId::None)
    COLLET_TRY(hlo::append_result_sizes(**module).status());
  return ProgramModule::make(std::move(*module));
}

Expected<std::string> write_module(const hlo::Module& module, uint32_t id) {
  COLLET_ASSIGN(const std::optional<hlo::Format> format, format_of(id));
  return hlo::write_module(module, format.value_or(hlo::Format::HloText));
}

}  // namespace collet::runtime
