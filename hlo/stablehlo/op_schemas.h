// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collet::hlo::mlir {

/// A version of StableHLO as one number that orders as versions do.
constexpr uint64_t vhlo_version(uint64_t major, uint64_t minor, uint64_t patch) {
  return (major << 40) | (minor << 20) | patch;
}
/// The version that writers write for by default and the newest that can be asked for.
constexpr uint64_t kNewestVhlo = vhlo_version(1, 20, 0);

/// The encoding of an op in an artifact.
struct OpSchema {
  std::string_view name;  ///< in the artifact, with its dialect: "vhlo.add_v1", "chlo.top_k"
  std::string normal;     ///< in the normal form: "stablehlo.add"
  uint64_t from = 0, to = 0;
  struct Property {
    std::string_view name;
    bool optional = false;
  };
  std::vector<Property> properties;  ///< in the order of the artifact
};

/// Null when the op is not known.
const OpSchema* find_schema(std::string_view dialect, std::string_view op);
/// True when any version of the op has an attribute of that name; the others are such as any op may have.
bool is_own_attribute(std::string_view normal, std::string_view attribute);
/// The form of "stablehlo.add" that `version` writes; null when it has none.
const OpSchema* find_schema_for(std::string_view normal, uint64_t version);

}  // namespace collet::hlo::mlir
