// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// Adds a generator, whose bits and new state must be exact.
void add_generator(CaseList& list, const char* algorithm, int64_t words, Type type, const Dims& dims) {
  Text text;
  const Shape state = Shape::array(Type::U64, {words}), bits = Shape::array(type, dims);
  const std::string x = text.parameter(state);
  Case one{fmt::format("rng-bit-generator/{}/{}_{}/large", type_name(type), algorithm, dims_name(dims)),
           Op::RNG_BIT_GENERATOR,
           type,
           "",
           {{.values = Values::Large}},
           {.kind = Bound::Kind::Bits}};
  one.text = text.root(Shape::tuple({state, bits}), fmt::format("rng-bit-generator({}), algorithm={}", x, algorithm));
  list.add(std::move(one));
}

}  // namespace

void add_rng_cases(CaseList& list) {
  for (const Type type : {Type::U32, Type::U64, Type::U8, Type::U16, Type::S32, Type::S64}) {
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{17}, Dims{64}, Dims{129}, Dims{5, 7}}) {
      add_generator(list, "rng_three_fry", 2, type, dims);
      add_generator(list, "rng_philox", 3, type, dims);
    }
  }
}

}  // namespace collet::conformance
