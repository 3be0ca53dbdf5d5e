// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"

namespace collet::hlo {

/// True if `metadata` has no information; readers drop such metadata.
inline bool is_empty(const Metadata& metadata) {
  const Metadata& m = metadata;
  return m.op_type.empty() && m.op_name.empty() && m.source_file.empty() && m.deduplicated_name.empty() &&
         m.scheduling_name.empty() && !m.source_line && !m.source_end_line && !m.source_column &&
         !m.source_end_column && !m.stack_frame_id && m.profile_type.empty();
}

}  // namespace collet::hlo
