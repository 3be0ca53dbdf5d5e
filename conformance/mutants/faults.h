// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace collet::mutants {

/// The faults of faults.def, each of which breaks one sentence of the headers, and its legal variants, which break none.
enum class Fault : uint16_t {
  none,
#define COLLET_FAULT(name, cases) name,
#define COLLET_LEGAL(name, cases) name,
#include "conformance/mutants/faults.def"
};

/// Returns the fault or variant of that name. The name "none" is valid.
inline std::optional<Fault> fault_named(std::string_view name) {
  if (name == "none") return Fault::none;
#define COLLET_FAULT(id, cases) \
  if (name == #id) return Fault::id;
#define COLLET_LEGAL(id, cases) COLLET_FAULT(id, cases)
#include "conformance/mutants/faults.def"
  return std::nullopt;
}

}  // namespace collet::mutants
