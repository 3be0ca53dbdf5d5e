// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hlo.pb.h>

#include "hlo/base/status.h"
#include "hlo/ir/limits.h"
#include "hlo/ir/module.h"

/// \file
/// Internal functions of the library: from_wire reads a message, to_wire fills one.

namespace collet::hlo::proto {

/// Converts a descriptive number for a field of 32 bits; returns 0, which means unknown, if it does not fit.
inline int32_t described(int64_t number) {
  return number == static_cast<int32_t>(number) ? static_cast<int32_t>(number) : 0;
}

// shape.cc
Expected<Shape> from_wire(const wire::ShapeProto& in);
void to_wire(const Shape& shape, wire::ShapeProto* out);

// literal.cc
/// Reads a value with the shape `shape`, or with the message's own shape if that is null.
Expected<Literal> from_wire(const wire::LiteralProto& in, const Shape* shape = nullptr);
void to_wire(const Literal& literal, wire::LiteralProto* out);

// sharding.cc
Expected<Sharding> from_wire(const wire::OpSharding& in);
Status to_wire(const Sharding& sharding, wire::OpSharding* out);

}  // namespace collet::hlo::proto
