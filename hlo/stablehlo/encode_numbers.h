// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "hlo/base/float_format.h"
#include "hlo/ir/types.h"
#include "hlo/stablehlo/byte_writer.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Encodes numbers as artifacts store them.

namespace collet::hlo::mlir {

inline void write_ap_int(ByteWriter& w, uint64_t bits, int width) {
  if (width <= 8) return w.byte(static_cast<uint8_t>(bits & ((1u << width) - 1)));
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  w.svarint(static_cast<int64_t>(bits));
}

inline void write_f64(ByteWriter& w, double value) {
  w.svarint(static_cast<int64_t>(std::bit_cast<uint64_t>(value)));
}

inline void write_ap_float(ByteWriter& w, double value, hlo::Type type) {
  write_ap_int(w, encode_float(float_format(static_cast<uint32_t>(type)), value), type_info(type).bits);
}

inline void write_ints(ByteWriter& w, List<const int64_t> values) {
  w.varint(values.size());
  for (int64_t v : values) w.svarint(v);
}

}  // namespace collet::hlo::mlir
