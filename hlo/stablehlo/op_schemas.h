// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collet::hlo::mlir {

/// Encodes a version of StableHLO as one number, so that numbers compare as the versions do.
constexpr uint64_t vhlo_version(uint64_t major, uint64_t minor, uint64_t patch) {
  return (major << 40) | (minor << 20) | patch;
}
/// The newest version that can be written.
constexpr uint64_t kNewestVhlo = vhlo_version(1, 20, 0);

/// The encoding of an op in an artifact.
struct OpSchema {
  std::string_view name;  ///< name in the artifact, with its dialect: "vhlo.add_v1", "chlo.top_k"
  std::string normal;     ///< name in the normal form: "stablehlo.add"
  uint64_t from = 0, to = 0;
  struct Property {
    std::string_view name;
    bool optional = false;
  };
  std::vector<Property> properties;  ///< in the order of the artifact
};

/// Returns the schema of an op; null if the op is not known.
const OpSchema* find_schema(std::string_view dialect, std::string_view op);
/// True if some version of the op has an attribute of that name; other attributes are those that any op may have.
bool is_own_attribute(std::string_view normal, std::string_view attribute);
/// Returns the schema of "stablehlo.add" that `version` writes; null if it has none.
const OpSchema* find_schema_for(std::string_view normal, uint64_t version);

}  // namespace collet::hlo::mlir
