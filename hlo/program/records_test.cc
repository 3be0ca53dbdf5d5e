// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/records.h"

#include <gtest/gtest.h>

namespace collet::hlo {
namespace {

size_t expected_bytes(FieldKind kind) {
  switch (kind) {
    case FieldKind::I64:
    case FieldKind::DIM:
      return 8;
    case FieldKind::U32:
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
    case FieldKind::F32:
    case FieldKind::ENUM:
      return 4;
    case FieldKind::WINDOW:
      return sizeof(collet_window);
    case FieldKind::SLICES:
    case FieldKind::PADS:
      return 3 * sizeof(collet_range);
    case FieldKind::DIM_LABELS:
      return sizeof(collet_dim_labels);
    case FieldKind::GROUPS:
      return sizeof(collet_groups);
    default:
      return sizeof(collet_range);
  }
}

// attributes.h is written by hand, and the IR is generated from attributes.def: this test compares them.
TEST(Records, StructsAgreeWithTheTable) {
  for (int r = 1; r <= static_cast<int>(Record::Constant); ++r) {
    const auto record = static_cast<Record>(r);
    size_t end = 0;
    for (const AbiField& f : abi_fields(record)) {
      SCOPED_TRACE(std::string(f.name) + " of record " + std::to_string(r));
      EXPECT_EQ(f.bytes, expected_bytes(f.kind));
      EXPECT_GE(f.offset, end) << "fields stand in the order of the table";
      EXPECT_LE(f.offset - end, 4u) << "something between fields that the table does not know";
      end = f.offset + f.bytes;
    }
    const size_t size = joint_record_size(record);
    EXPECT_EQ(size % 4, 0u);
    EXPECT_GE(size, end) << "record " << r;
    EXPECT_LE(size - end, 8u) << "record " << r << " has a field at its end that the table does not know";
  }
}

static_assert(offsetof(collet_slice_attrs, start) == 0 && offsetof(collet_slice_attrs, limit) == 8 &&
              offsetof(collet_slice_attrs, stride) == 16 && sizeof(collet_slice_attrs) == 24);
static_assert(offsetof(collet_pad_attrs, low) == 0 && offsetof(collet_pad_attrs, high) == 8 &&
              offsetof(collet_pad_attrs, interior) == 16 && sizeof(collet_pad_attrs) == 24);

}  // namespace
}  // namespace collet::hlo
