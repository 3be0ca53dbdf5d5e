/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_CHECK_HPP
#define COLLET_KERNEL_CHECK_HPP

/** \file
 * Checks a description of a backend for mistakes. Included by kernel_backend.hpp. */

#include "kernel_describe.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** Returns the name of a row in messages. */
inline std::string row_name(size_t number, const Kernel& row) {
  std::string out = "Backend::kernels[" + std::to_string(number) + "] (" + collet_op_name(row.opcode);
  if (!row.pattern.empty()) out += ", pattern '" + row.pattern + "'";
  if (!row.target.empty()) out += ", target '" + row.target + "'";
  return out + ")";
}

/** Throws an error for a description that is invalid, with the field and the row. Opens and calls nothing. */
inline void check_description(const Backend& backend) {
  const auto wrong = [](const std::string& text) { throw Error(COLLET_FAILED_PRECONDITION, text); };
  const auto check_alignment = [&](const std::string& field, uint32_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
      wrong(field + " is " + std::to_string(alignment) + ", no power of two");
    }
  };
  const std::string& name = backend.name;
  if (name.empty()) wrong("Backend::name is empty");
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-.") != std::string::npos) {
    wrong("Backend::name is '" + name + "': lower case letters, digits, '_', '-' and '.' are allowed");
  }
  if (!backend.open_device) wrong("Backend::open_device is empty");
  check_alignment("Backend::alignment", backend.alignment);
  for (size_t i = 0; i < backend.types.size(); ++i) {
    if (backend.types[i].type < COLLET_TYPE_LIMIT) continue;
    wrong("Backend::types[" + std::to_string(i) + "] is " + std::to_string(backend.types[i].type) +
          ", no element type");
  }
  for (size_t i = 0; i < backend.more_spaces.size(); ++i) {
    const Space& space = backend.more_spaces[i];
    const std::string field = "Backend::more_spaces[" + std::to_string(i) + "]";
    if (space.kind.empty()) wrong(field + ": kind is empty");
    if (space.kind.size() >= sizeof(collet_memory_space::kind)) {
      wrong(field + ": kind '" + space.kind + "' has more than " +
            std::to_string(sizeof(collet_memory_space::kind) - 1) + " characters");
    }
    check_alignment(field + ": alignment", space.alignment);
  }
  for (size_t i = 0; i < backend.kernels.size(); ++i) {
    const Kernel& row = backend.kernels[i];
    const std::string field = row_name(i, row);
    if (std::string(collet_op_name(row.opcode)) == "?") {
      wrong(field + ": there is no op " + std::to_string(row.opcode));
    }
    if (!row.run && !row.run_together) wrong(field + ": run is empty");
    if (row.opcode == COLLET_OP_CALL && row.pattern.empty()) wrong(field + ": pattern is empty");
    if (row.opcode != COLLET_OP_CALL && !row.pattern.empty()) wrong(field + ": a pattern is a row for COLLET_OP_CALL");
    if (row.pattern.empty() && !row.pattern_text.empty()) wrong(field + ": pattern_text without a pattern");
    if (row.pattern.empty() && row.features != 0) wrong(field + ": features without a pattern");
    if (row.opcode != COLLET_OP_CUSTOM_CALL && !row.target.empty()) {
      wrong(field + ": a target is a row for COLLET_OP_CUSTOM_CALL");
    }
    if (!row.packing.bytes != !row.packing.make) {
      wrong(field + ": packing." + (row.packing.bytes ? "make" : "bytes") + " is empty");
    }
  }
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
