// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/emit.h"

#include <algorithm>
#include <utility>

#include "hlo/base/diagnostics.h"
#include "hlo/formats/formats.h"
#include "hlo/passes/pipeline.h"
#include "hlo/stablehlo/write.h"
#include "hlo/text/printer.h"
#include "sdk/tool/support/graphviz.h"

namespace collet::tool {
namespace {

/// Writes a module in some form. `parameter` is the text after the form's `=`; empty if there is none.
using Emit = Expected<std::string> (*)(hlo::Module& module, std::string_view parameter);

struct Form {
  std::string_view name;
  Emit emit;
  /// Checks the text after `=`. Null if the form has no parameter.
  Status (*check_parameter)(std::string_view parameter) = nullptr;
};

Expected<std::string> emit_hlo(hlo::Module& module, std::string_view) {
  return hlo::print_module(module);
}

Expected<std::string> emit_proto(hlo::Module& module, std::string_view) {
  return hlo::write_module(module, hlo::Format::HloProto);
}

Expected<std::string> emit_dot(hlo::Module& module, std::string_view) {
  return to_dot(module);
}

Expected<std::string> emit_svg(hlo::Module& module, std::string_view) {
  return to_svg(module);
}

/// Removes layouts, which StableHLO does not have: bitcasts are replaced by the ops that they stand for.
Status take_layouts_out(hlo::Module& module) {
  hlo::PassContext context;
  const std::string_view passes[] = {"normalize_layouts"};
  return hlo::run_passes(module, context, passes, {}).status();
}

Expected<std::string> emit_stablehlo(hlo::Module& module, std::string_view) {
  COLLET_TRY(take_layouts_out(module));
  return hlo::write_stablehlo_text(module);
}

Expected<std::string> emit_artifact(hlo::Module& module, std::string_view version) {
  COLLET_TRY(take_layouts_out(module));
  return hlo::write_stablehlo_artifact(module, version.empty() ? hlo::kDefaultArtifactVersion : version);
}

Status check_version(std::string_view version) {
  return hlo::mlir::parse_vhlo_version(version).status();
}

constexpr Form kForms[] = {
    {"hlo", emit_hlo},
    {"hlo-proto", emit_proto},
    {"stablehlo", emit_stablehlo},
    {"artifact", emit_artifact, check_version},
    {"dot", emit_dot},
    {"svg", emit_svg},
};

std::pair<std::string_view, std::string_view> split_form(std::string_view form) {
  const size_t equal = form.find('=');
  return {form.substr(0, equal), equal == std::string_view::npos ? std::string_view() : form.substr(equal + 1)};
}

const Form* find_form(std::string_view name) {
  const auto it = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.name == name; });
  return it == std::end(kForms) ? nullptr : it;
}

}  // namespace

std::vector<std::string_view> emit_forms() {
  std::vector<std::string_view> out;
  for (const Form& form : kForms) out.push_back(form.name);
  return out;
}

Status check_form(std::string_view form) {
  const auto [name, parameter] = split_form(form);
  const Form* found = find_form(name);
  if (!found) {
    const std::string_view near = nearest_spelling(name, emit_forms());
    return invalid_argument("there is no form '" + std::string(name) + "'" +
                            (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
  }
  if (name.size() == form.size()) return ok_status();
  if (!found->check_parameter) return invalid_argument("the form " + std::string(name) + " takes no parameter");
  return found->check_parameter(parameter);
}

Expected<std::string> emit_module(hlo::Module& module, std::string_view form) {
  COLLET_TRY(check_form(form));
  const auto [name, parameter] = split_form(form);
  return find_form(name)->emit(module, parameter);
}

}  // namespace collet::tool
