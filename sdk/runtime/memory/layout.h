// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <cstdint>
#include <string>

#include "hlo/base/status.h"
#include "sdk/runtime/memory/array_type.h"

/// \file
/// Layouts of arrays in device memory, from the optional table "layout".

namespace collet::runtime {

/// A layout of arrays of one type. There is one object per layout and type in the process, which is never freed, so
/// equal layouts have equal addresses. A null pointer stands for dense and row-major.
struct Layout {
  collet_layout c{};
  const ArrayType* type = nullptr;

  uint64_t bytes() const { return c.bytes; }
  /// Returns the layout as XLA writes it: "{1,0:T(8,128)(2,1)E(4)}", with dimensions from the innermost to the
  /// outermost.
  std::string to_string() const;
};

/// Returns the layout that a backend stated for arrays of `type`: null if it is dense and row-major. INTERNAL if it is
/// not valid.
Expected<const Layout*> intern_layout(const ArrayType* type, const collet_layout& layout);

/// Returns the bytes of an array of `type` in a layout, which may be null.
inline uint64_t layout_bytes(const ArrayType& type, const Layout* layout) {
  return layout ? layout->bytes() : type.bytes;
}

/// Converts the dense array at `from` to `layout` and writes it to `to`. Padding is set to zero.
void to_layout(const Layout& layout, const void* from, void* to);
/// Converts in the reverse direction.
void from_layout(const Layout& layout, const void* from, void* to);

}  // namespace collet::runtime
