// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hlo/ir/module.h"

namespace collet::hlo {

/// True if `metadata` has no information; readers drop such metadata.
inline bool is_empty(const Metadata& metadata) {
  const Metadata& m = metadata;
  return m.op_type.empty() && m.op_name.empty() && m.source_file.empty() && m.deduplicated_name.empty() &&
         m.scheduling_name.empty() && !m.source_line && !m.source_end_line && !m.source_column &&
         !m.source_end_column && !m.stack_frame_id && m.profile_type.empty();
}

/// True if the text consists of a '{', its matching '}' and the text between them. XLA distinguishes dictionaries,
/// which HLO text has without quotes, from strings in this way.
inline bool is_dictionary(std::string_view text) {
  if (!text.starts_with('{')) return false;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        quoted = false;
      continue;
    }
    if (text[i] == '"') quoted = true;
    depth += (text[i] == '{') - (text[i] == '}');
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

}  // namespace collet::hlo
