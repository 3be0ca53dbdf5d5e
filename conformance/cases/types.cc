// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using hlo::Type;
using hlo::TypeSet;

constexpr Type kTypes[] = {Type::F32, Type::F64, Type::F16, Type::BF16, Type::S32,  Type::S8,  Type::S16, Type::S64,
                           Type::U8,  Type::U16, Type::U32, Type::U64,  Type::PRED, Type::C64, Type::C128};
constexpr Type kNarrow[] = {Type::F8E4M3FN, Type::F8E5M2, Type::S4, Type::U4};

bool belongs(TypeSet set, Type type) {
  const bool pred = type == Type::PRED, integer = hlo::is_integer(type), real = integer || hlo::is_float(type);
  switch (set) {
    case TypeSet::ANY:
    case TypeSet::NUMBER_PRED:
      return true;
    case TypeSet::NUMBER:
      return !pred;
    case TypeSet::REAL:
      return real;
    case TypeSet::REAL_PRED:
      return real || pred;
    case TypeSet::INTEGER:
      return integer;
    case TypeSet::INTEGER_PRED:
      return integer || pred;
    case TypeSet::FLOAT:
      return hlo::is_float(type);
    case TypeSet::FLOAT_COMPLEX:
      return hlo::is_float(type) || hlo::is_complex(type);
  }
  return false;
}

}  // namespace

std::vector<Type> types_of(TypeSet set, bool narrow) {
  std::vector<Type> types;
  for (const Type type : kTypes) {
    if (belongs(set, type)) types.push_back(type);
  }
  if (!narrow) return types;
  for (const Type type : kNarrow) {
    if (belongs(set, type)) types.push_back(type);
  }
  return types;
}

std::vector<Type> all_types_of(TypeSet set) {
  std::vector<Type> types = types_of(set, true);
  for (const Type type : {Type::F8E4M3B11FNUZ, Type::F8E5M2FNUZ, Type::F8E4M3FNUZ, Type::F8E4M3, Type::F8E3M4,
                          Type::F4E2M1FN, Type::S2, Type::U2})
    if (belongs(set, type)) types.push_back(type);
  return types;
}

std::vector<Type> moving_types() {
  return {Type::F32, Type::BF16, Type::S8,   Type::PRED, Type::F64,      Type::U16,
          Type::S64, Type::C64,  Type::C128, Type::U4,   Type::F8E4M3FN, Type::S4};
}

Values moving_values(Type type) {
  const bool is_short = hlo::type_info(type).bits < 8 || (hlo::is_float(type) && hlo::type_info(type).bits == 8);
  return is_short && type != Type::PRED ? Values::Edges : Values::Large;
}

}  // namespace collet::conformance
