// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/describe_backend.h"

#include <fmt/format.h>

namespace collet::conformance {

Fields describe_failure(const Status& status) {
  return {{"status", "fail"},
          {"detail", status.to_string()},
          {"error", status.message()},
          {"code", std::to_string(static_cast<int>(status.code()))}};
}

Fields describe_backend(const Session& session) {
  const Expected<collet_client_info> info = session.info();
  if (!info.ok()) return describe_failure(info.status());
  std::string declared;  // one character for each element type
  for (uint32_t type = 0; type < COLLET_TYPE_LIMIT; ++type) declared += session.declares(type) ? '1' : '0';
  const Expected<std::string> machine = session.machine();
  if (!machine.ok()) return describe_failure(machine.status());
  return {{"name", info->backend},      {"version", info->backend_version},
          {"path", info->backend_path}, {"interface", fmt::format("{}.{}", info->abi_major, info->abi_minor)},
          {"fallback", info->fallback}, {"opset", std::to_string(info->opset)},
          {"machine", *machine},        {"declared", declared}};
}

}  // namespace collet::conformance
