// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/attributes.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "hlo/base/hash.h"
#include "hlo/ir/fields.h"
#include "hlo/ir/literal.h"

namespace collet::hlo {
namespace {

#define COLLET_ENUM(Enum, PREFIX) constexpr EnumValue k##Enum##Values[] = {
#define COLLET_ENUM_VALUE(Enum, PREFIX, NAME, value, text) {text, value},
#define COLLET_ENUM_END(Enum) \
  }                           \
  ;
#include <collet/attributes.def>

// The FieldKind and the table of enumeration values for each kind of attributes.def.
struct KindInfo {
  FieldKind kind;
  std::span<const EnumValue> values;
};
namespace kind {
#define COLLET_KIND(NAME) constexpr KindInfo NAME{FieldKind::NAME, {}};
COLLET_KIND(I64)
COLLET_KIND(U32)
COLLET_KIND(BOOL)
COLLET_KIND(NOT_BOOL)
COLLET_KIND(F32)
COLLET_KIND(DIM)
COLLET_KIND(DIMS)
COLLET_KIND(STRING)
COLLET_KIND(WINDOW)
COLLET_KIND(SLICES)
COLLET_KIND(PADS)
COLLET_KIND(DIM_LABELS)
COLLET_KIND(PRECISIONS)
COLLET_KIND(GROUPS)
COLLET_KIND(PAIRS)
COLLET_KIND(SHAPE)
COLLET_KIND(SHAPES)
COLLET_KIND(LITERAL)
COLLET_KIND(ALIASING)
COLLET_KIND(LISTS)
#undef COLLET_KIND
#define COLLET_ENUM(Enum, PREFIX) constexpr KindInfo ENUM_##Enum{FieldKind::ENUM, k##Enum##Values};
#include <collet/attributes.def>
}  // namespace kind

constexpr bool REQUIRED = true;
constexpr bool OPTIONAL = false;

#define COLLET_RECORD(Name, name) constexpr FieldInfo k##Name##Fields[] = {
#define COLLET_FIELD(Name, nm, member, text, KIND, presence, since) \
  {#member, text, kind::KIND.kind, presence, true, since, offsetof(Name##Attrs, member), kind::KIND.values},
#define COLLET_TEXT_FIELD(Name, nm, member, text, KIND, presence) \
  {#member, text, kind::KIND.kind, presence, false, 1, offsetof(Name##Attrs, member), kind::KIND.values},
#define COLLET_RECORD_END(Name, name) \
  }                                   \
  ;
#include <collet/attributes.def>

struct RecordInfo {
  std::span<const FieldInfo> fields;
  size_t size;
  void* (*make)(Arena&);
};

template <typename T>
void* make(Arena& arena) {
  return arena.make<T>();
}

const RecordInfo& record_info(Record record) {
  static const RecordInfo table[] = {
      {{}, sizeof(NoneAttrs), &make<NoneAttrs>},
#define COLLET_RECORD(Name, name) {k##Name##Fields, sizeof(Name##Attrs), &make<Name##Attrs>},
#include <collet/attributes.def>
  };
  return table[static_cast<size_t>(record)];
}

template <typename T>
const T& at(const void* attrs, const FieldInfo& f) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(attrs) + f.offset);
}
template <typename T>
T& at(void* attrs, const FieldInfo& f) {
  return *reinterpret_cast<T*>(static_cast<char*>(attrs) + f.offset);
}

void copy_lists(Dims& d, Arena& arena) {
  d = arena.list<const int64_t>(std::span<const int64_t>(d));
}

void copy_lists(List<const Dims>& lists, Arena& arena) {
  std::vector<Dims> copy(lists.begin(), lists.end());
  for (Dims& d : copy) copy_lists(d, arena);
  lists = arena.list(copy);
}

void copy_field_lists(const FieldInfo& f, void* attrs, Arena& arena) {
  switch (f.kind) {
    case FieldKind::I64:
    case FieldKind::U32:
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
    case FieldKind::F32:
    case FieldKind::ENUM:
    case FieldKind::DIM:
    case FieldKind::SHAPE:
    case FieldKind::LITERAL:
      return;
    case FieldKind::DIMS:
    case FieldKind::PRECISIONS:
    case FieldKind::PAIRS:
      return copy_lists(at<Dims>(attrs, f), arena);
    case FieldKind::STRING: {
      auto& s = at<std::string_view>(attrs, f);
      s = arena.string(s);
      return;
    }
    case FieldKind::WINDOW: {
      auto& w = at<Window>(attrs, f);
      for (Dims* d :
           {&w.size, &w.stride, &w.padding_low, &w.padding_high, &w.base_dilation, &w.window_dilation, &w.reversal})
        copy_lists(*d, arena);
      return;
    }
    case FieldKind::SLICES: {
      auto& s = at<SliceRanges>(attrs, f);
      for (Dims* d : {&s.start, &s.limit, &s.stride}) copy_lists(*d, arena);
      return;
    }
    case FieldKind::PADS: {
      auto& p = at<Padding>(attrs, f);
      for (Dims* d : {&p.low, &p.high, &p.interior}) copy_lists(*d, arena);
      return;
    }
    case FieldKind::DIM_LABELS: {
      auto& l = at<DimLabels>(attrs, f);
      for (Dims* d : {&l.input_spatial, &l.kernel_spatial, &l.output_spatial}) copy_lists(*d, arena);
      l.text = arena.string(l.text);
      return;
    }
    case FieldKind::GROUPS: {
      auto& g = at<Groups>(attrs, f);
      copy_lists(g.groups, arena);
      copy_lists(g.iota_dims, arena);
      copy_lists(g.iota_permutation, arena);
      g.mesh = arena.string(g.mesh);
      return;
    }
    case FieldKind::SHAPES: {
      auto& s = at<List<const Shape* const>>(attrs, f);
      s = arena.list<const Shape* const>(std::span<const Shape* const>(s));
      return;
    }
    case FieldKind::ALIASING: {
      auto& list = at<List<const AliasEntry>>(attrs, f);
      std::vector<AliasEntry> copy(list.begin(), list.end());
      for (AliasEntry& e : copy) {
        copy_lists(e.output_index, arena);
        copy_lists(e.operand_index, arena);
      }
      list = arena.list(copy);
      return;
    }
    case FieldKind::LISTS:
      return copy_lists(at<List<const Dims>>(attrs, f), arena);
  }
}

bool equal(const Window& a, const Window& b) {
  if (!(a.size == b.size)) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (a.stride_at(i) != b.stride_at(i) || a.low_at(i) != b.low_at(i) || a.high_at(i) != b.high_at(i) ||
        a.base_dilation_at(i) != b.base_dilation_at(i) || a.window_dilation_at(i) != b.window_dilation_at(i) ||
        a.reversed_at(i) != b.reversed_at(i))
      return false;
  return true;
}

bool equal(const DimLabels& a, const DimLabels& b) {
  return a.input_batch == b.input_batch && a.input_feature == b.input_feature &&
         a.kernel_input_feature == b.kernel_input_feature && a.kernel_output_feature == b.kernel_output_feature &&
         a.output_batch == b.output_batch && a.output_feature == b.output_feature &&
         a.input_spatial == b.input_spatial && a.kernel_spatial == b.kernel_spatial &&
         a.output_spatial == b.output_spatial;
}

struct Hasher {
  uint64_t h = 0;
  void operator()(uint64_t v) { h = collet_hash_number(h, v); }
  void operator()(const Dims& d) {
    (*this)(d.size());
    for (int64_t v : d) (*this)(static_cast<uint64_t>(v));
  }
};

void hash_field(const FieldInfo& f, const void* a, Hasher& mix) {
  switch (f.kind) {
    case FieldKind::I64:
    case FieldKind::DIM:
      return mix(static_cast<uint64_t>(at<int64_t>(a, f)));
    case FieldKind::U32:
    case FieldKind::ENUM:
      return mix(at<uint32_t>(a, f));
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
      return mix(uint64_t{at<bool>(a, f)});
    case FieldKind::DIMS:
    case FieldKind::PRECISIONS:
    case FieldKind::PAIRS:
      return mix(at<Dims>(a, f));
    case FieldKind::STRING:
      return mix(hash_text(at<std::string_view>(a, f)));
    case FieldKind::WINDOW:
      return mix(at<Window>(a, f).size);
    case FieldKind::SLICES: {
      mix(at<SliceRanges>(a, f).start);
      return mix(at<SliceRanges>(a, f).limit);
    }
    case FieldKind::PADS:
      return mix(at<Padding>(a, f).low);
    default:
      return;  // not hashed, because the field is rare or large; comparison decides
  }
}

}  // namespace

std::span<const FieldInfo> record_fields(Record record) {
  return record_info(record).fields;
}

size_t record_size(Record record) {
  return record_info(record).size;
}

const FieldInfo* find_field(Record record, std::string_view text) {
  for (const FieldInfo& f : record_fields(record))
    if (!f.text.empty() && f.text == text) return &f;
  return nullptr;
}

std::string_view enum_text(std::span<const EnumValue> values, uint32_t value) {
  for (const EnumValue& v : values)
    if (v.value == value) return v.text;
  return {};
}

void* make_record(Record record, Arena& arena) {
  return record_info(record).make(arena);
}

void* copy_record(Record record, const void* attrs, Arena& arena) {
  if (!attrs) return nullptr;
  void* out = make_record(record, arena);
  std::memcpy(out, attrs, record_size(record));
  for (const FieldInfo& f : record_fields(record)) copy_field_lists(f, out, arena);
  return out;
}

bool equal_fields(const FieldInfo& f, const void* a, const void* b) {
  switch (f.kind) {
    case FieldKind::I64:
    case FieldKind::DIM:
      return at<int64_t>(a, f) == at<int64_t>(b, f);
    case FieldKind::U32:
    case FieldKind::ENUM:
      return at<uint32_t>(a, f) == at<uint32_t>(b, f);
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
      return at<bool>(a, f) == at<bool>(b, f);
    case FieldKind::F32:
      return at<float>(a, f) == at<float>(b, f);
    case FieldKind::DIMS:
    case FieldKind::PRECISIONS:
    case FieldKind::PAIRS:
      return at<Dims>(a, f) == at<Dims>(b, f);
    case FieldKind::STRING:
      return at<std::string_view>(a, f) == at<std::string_view>(b, f);
    case FieldKind::WINDOW:
      return equal(at<Window>(a, f), at<Window>(b, f));
    case FieldKind::SLICES: {
      const auto &x = at<SliceRanges>(a, f), &y = at<SliceRanges>(b, f);
      return x.start == y.start && x.limit == y.limit && x.stride == y.stride;
    }
    case FieldKind::PADS: {
      const auto &x = at<Padding>(a, f), &y = at<Padding>(b, f);
      return x.low == y.low && x.high == y.high && x.interior == y.interior;
    }
    case FieldKind::DIM_LABELS:
      return equal(at<DimLabels>(a, f), at<DimLabels>(b, f));
    case FieldKind::GROUPS:
      return at<Groups>(a, f).groups == at<Groups>(b, f).groups;
    case FieldKind::SHAPE: {
      const Shape *x = at<const Shape*>(a, f), *y = at<const Shape*>(b, f);
      return x && y ? *x == *y : x == y;
    }
    case FieldKind::SHAPES: {
      const auto &x = at<List<const Shape* const>>(a, f), &y = at<List<const Shape* const>>(b, f);
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!(*x[i] == *y[i])) return false;
      return true;
    }
    case FieldKind::LITERAL: {
      const Literal *x = at<const Literal*>(a, f), *y = at<const Literal*>(b, f);
      return x && y ? *x == *y : x == y;
    }
    case FieldKind::ALIASING: {
      const auto &x = at<List<const AliasEntry>>(a, f), &y = at<List<const AliasEntry>>(b, f);
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!(x[i].output_index == y[i].output_index) || x[i].operand != y[i].operand ||
            !(x[i].operand_index == y[i].operand_index))
          return false;
      return true;
    }
    case FieldKind::LISTS:
      return at<List<const Dims>>(a, f) == at<List<const Dims>>(b, f);
  }
  return false;
}

bool equal_records(Record record, const void* a, const void* b) {
  if (a == b) return true;
  if (!a || !b) return false;
  for (const FieldInfo& f : record_fields(record))
    if (!equal_fields(f, a, b)) return false;
  return true;
}

uint64_t hash_record(Record record, const void* attrs) {
  Hasher mix;
  if (attrs)
    for (const FieldInfo& f : record_fields(record)) hash_field(f, attrs, mix);
  return mix.h;
}

}  // namespace collet::hlo
