// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/attributes.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "hlo/base/arena.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"

/// \file
/// Attributes of instructions. One struct per record of attributes.def, generated from its rows: `DotAttrs`,
/// `GatherAttrs`, ... Lists live in the module's arena; attributes are immutable once attached, so that instructions of a
/// module may share them. Members have the names of attributes.def.

namespace collet::hlo {

class Literal;

using Dims = List<const int64_t>;

/// A window, as one list per property; the lists have equal length, or are empty if the property has its default in all
/// dimensions.
struct Window {
  Dims size, stride, padding_low, padding_high, base_dilation, window_dilation, reversal;
  size_t rank() const { return size.size(); }
  int64_t stride_at(size_t i) const { return stride.empty() ? 1 : stride[i]; }
  int64_t low_at(size_t i) const { return padding_low.empty() ? 0 : padding_low[i]; }
  int64_t high_at(size_t i) const { return padding_high.empty() ? 0 : padding_high[i]; }
  int64_t base_dilation_at(size_t i) const { return base_dilation.empty() ? 1 : base_dilation[i]; }
  int64_t window_dilation_at(size_t i) const { return window_dilation.empty() ? 1 : window_dilation[i]; }
  bool reversed_at(size_t i) const { return !reversal.empty() && reversal[i] != 0; }
};

struct SliceRanges {
  Dims start, limit, stride;
};

struct Padding {
  Dims low, high, interior;
};

/// Dimension numbers of a convolution; -1 if the labels do not name such a dimension.
struct DimLabels {
  int64_t input_batch = -1, input_feature = -1;
  int64_t kernel_input_feature = -1, kernel_output_feature = -1;
  int64_t output_batch = -1, output_feature = -1;
  Dims input_spatial, kernel_spatial, output_spatial;
  /// The labels as written; needed if they contain `?`, which skips a dimension.
  std::string_view text;
};

/// Replica groups, given either as explicit lists or in iota form, which is kept for printing.
struct Groups {
  List<const Dims> groups;  ///< explicit lists; the iota form is expanded to them, too
  bool iota = false;
  int64_t iota_groups = 0, iota_size = 0;
  Dims iota_dims, iota_permutation;
  std::string_view mesh;  ///< if the groups were given by mesh axes: their text, for printing
  bool empty() const { return groups.empty(); }
};

struct AliasEntry {
  Dims output_index;
  int64_t operand = 0;
  Dims operand_index;
};

#define COLLET_ENUM(Enum, PREFIX) enum class Enum : uint32_t {
#define COLLET_ENUM_VALUE(Enum, PREFIX, NAME, value, text) NAME = value,
#define COLLET_ENUM_END(Enum) \
  }                           \
  ;
#include <collet/attributes.def>

/// Kinds of fields, as attributes.def names them.
enum class FieldKind : uint8_t {
  I64,
  U32,
  BOOL,
  NOT_BOOL,
  F32,
  ENUM,
  DIM,
  DIMS,
  STRING,
  WINDOW,
  SLICES,
  PADS,
  DIM_LABELS,
  PRECISIONS,
  GROUPS,
  PAIRS,
  SHAPE,
  SHAPES,
  LITERAL,
  ALIASING,
  LISTS
};

namespace field {
// The C++ type of each kind.
using I64 = int64_t;
using U32 = uint32_t;
using BOOL = bool;
using NOT_BOOL = bool;
using F32 = float;
using DIM = int64_t;
using DIMS = Dims;
using STRING = std::string_view;
using WINDOW = Window;
using SLICES = SliceRanges;
using PADS = Padding;
using DIM_LABELS = DimLabels;
using PRECISIONS = Dims;
using GROUPS = Groups;
using PAIRS = Dims;  // source, target, source, target, ...
using SHAPE = const Shape*;
using SHAPES = List<const Shape* const>;
using LITERAL = const Literal*;
using ALIASING = List<const AliasEntry>;
using LISTS = List<const Dims>;
#define COLLET_ENUM(Enum, PREFIX) using ENUM_##Enum = Enum;
#include <collet/attributes.def>
}  // namespace field

struct NoneAttrs {
  static constexpr Record kRecord = Record::None;
};
#define COLLET_RECORD(Name, name) \
  struct Name##Attrs {            \
    static constexpr Record kRecord = Record::Name;
#define COLLET_FIELD(Name, name, member, text, KIND, presence, since) field::KIND member{};
#define COLLET_TEXT_FIELD(Name, name, member, text, KIND, presence) field::KIND member{};
#define COLLET_RECORD_END(Name, name) \
  }                                   \
  ;
#include <collet/attributes.def>

/// A name and value of an enumeration.
struct EnumValue {
  std::string_view text;
  uint32_t value;
};

/// A field of a record, for code that handles all records uniformly (text, protobuf, program view, comparison).
struct FieldInfo {
  std::string_view name;  ///< name of the member
  std::string_view text;  ///< name in HLO text; empty: none
  FieldKind kind;
  bool required = false;
  bool crosses = false;  ///< also a field of the C record that backends see
  uint16_t since = 0;
  uint16_t offset = 0;                ///< offset in the C++ struct
  std::span<const EnumValue> values;  ///< for ENUM
};

/// Returns all fields of `record`, in order.
std::span<const FieldInfo> record_fields(Record record);
/// Returns the size of the C++ struct.
size_t record_size(Record record);
/// Returns the field with this name in HLO text; null if the record has none.
const FieldInfo* find_field(Record record, std::string_view text);
/// Returns the name of `value`; empty if it has none.
std::string_view enum_text(std::span<const EnumValue> values, uint32_t value);

/// Creates a default-constructed record in the arena.
void* make_record(Record record, Arena& arena);
/// Copies a record into `arena`. Shapes and literals are shared by pointer; the caller replaces these pointers by
/// copies that its own module owns (Module::clone_attrs).
void* copy_record(Record record, const void* attrs, Arena& arena);
/// Compares two records field by field.
bool equal_records(Record record, const void* a, const void* b);
uint64_t hash_record(Record record, const void* attrs);

}  // namespace collet::hlo
