// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/attributes.h"

namespace collet::hlo {

/// Compares one field of two records of the same type.
bool equal_fields(const FieldInfo& field, const void* a, const void* b);

}  // namespace collet::hlo
