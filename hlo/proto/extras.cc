// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/extras.h"

#include <algorithm>

#include "hlo/ir/metadata.h"

namespace collet::hlo::proto {

std::vector<FrontendAttribute> read_frontend(const wire::FrontendAttributes& in, Module& module) {
  std::vector<FrontendAttribute> out;
  for (const auto& entry : in.map())
    out.push_back(
        {module.arena().string(entry.key()), module.arena().string(entry.value()), is_dictionary(entry.value())});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

const Metadata* read_metadata(const wire::OpMetadata& in, Module& module) {
  auto* out = module.make<Metadata>();
  out->op_type = module.arena().string(in.op_type());
  out->op_name = module.arena().string(in.op_name());
  out->source_file = module.arena().string(in.source_file());
  out->deduplicated_name = module.arena().string(in.deduplicated_name());
  out->scheduling_name = module.arena().string(in.scheduling_name());
  out->source_line = in.source_line();
  out->source_end_line = in.source_end_line();
  out->source_column = in.source_column();
  out->source_end_column = in.source_end_column();
  out->stack_frame_id = in.stack_frame_id();
  const auto& types = in.profile_type_size() ? in.profile_type() : in.profile_info().profile_type();
  out->profile_type = module.dims(std::vector<int64_t>(types.begin(), types.end()));
  return is_empty(*out) ? nullptr : out;
}

const ResultAccuracy* read_accuracy(const wire::ResultAccuracy& in, Module& module) {
  auto* out = module.make<ResultAccuracy>();
  out->is_mode = !in.has_tolerance();
  out->mode = in.mode() == 1 ? "highest" : "default";
  out->atol = in.tolerance().atol();
  out->rtol = in.tolerance().rtol();
  out->ulps = in.tolerance().ulps();
  return out->is_mode && in.mode() != 1 ? nullptr : out;
}

}  // namespace collet::hlo::proto
