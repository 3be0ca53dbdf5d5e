// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hlo.pb.h>

#include "hlo/base/status.h"
#include "hlo/ir/limits.h"
#include "hlo/ir/module.h"

/// \file
/// The library's inside: from_wire reads a message, to_wire fills one.

namespace collet::hlo::proto {

/// A number that only describes, in a field of 32 bits: 0, which says nothing, where it does not fit.
inline int32_t described(int64_t number) {
  return number == static_cast<int32_t>(number) ? static_cast<int32_t>(number) : 0;
}

// shape.cc
Expected<Shape> from_wire(const wire::ShapeProto& in);
void to_wire(const Shape& shape, wire::ShapeProto* out);

// literal.cc
/// The value under `shape`, or under the message's own where that is null.
Expected<Literal> from_wire(const wire::LiteralProto& in, const Shape* shape = nullptr);
void to_wire(const Literal& literal, wire::LiteralProto* out);

// sharding.cc
Expected<Sharding> from_wire(const wire::OpSharding& in);
Status to_wire(const Sharding& sharding, wire::OpSharding* out);

}  // namespace collet::hlo::proto
