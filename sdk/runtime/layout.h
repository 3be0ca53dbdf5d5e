// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <cstdint>
#include <string>

#include "hlo/base/status.h"
#include "sdk/runtime/array_type.h"

/// \file
/// How arrays are placed in device memory, from the optional table "layout".

namespace collet::runtime {

/// A layout of arrays of one type: one object per layout and type in the process, never freed, so that equal layouts have
/// equal addresses. Null in place of it: dense and row-major.
struct Layout {
  collet_layout c{};
  const ArrayType* type = nullptr;

  uint64_t bytes() const { return c.bytes; }
  /// As XLA writes it: "{1,0:T(8,128)(2,1)E(4)}", the dimensions from the innermost to the outermost.
  std::string to_string() const;
};

/// The layout that a backend stated for arrays of `type`: null where that is dense and row-major. INTERNAL for one that
/// cannot be.
Expected<const Layout*> intern_layout(const ArrayType* type, const collet_layout& layout);

/// Bytes of an array of `type` in a layout, which may be null.
inline uint64_t layout_bytes(const ArrayType& type, const Layout* layout) {
  return layout ? layout->bytes() : type.bytes;
}

/// Writes the dense array at `from` in `layout` to `to`. What is padding becomes zero.
void to_layout(const Layout& layout, const void* from, void* to);
/// The other way.
void from_layout(const Layout& layout, const void* from, void* to);

}  // namespace collet::runtime
