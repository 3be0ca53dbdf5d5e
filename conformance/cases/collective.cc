// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

// Adds a case in which the collective has a group of one participant. The expected result is then a copy of the operand.
void add(CaseList& list, Op op, Type type, const char* attributes, const char* body) {
  Text text;
  const Shape shape = Shape::array(type, {4, 17});
  std::string apply;
  if (body != nullptr) apply = fmt::format(", to_apply={}", text.combiner(body, type));
  const std::string x = text.parameter(shape);
  const std::string_view name = hlo::op_info(op).text;
  list.add({fmt::format("{}/{}/group_of_one/large", name, type_name(type)),
            op,
            type,
            text.root(shape, fmt::format("{}({}), {}{}", name, x, attributes, apply)),
            {{.values = Values::Large}},
            {.kind = Bound::Kind::Bits}});
}

}  // namespace

void add_collective_cases(CaseList& list) {
  for (const Type type : {Type::F32, Type::S32, Type::BF16}) {
    add(list, Op::ALL_REDUCE, type, "replica_groups={}", "add");
    add(list, Op::ALL_GATHER, type, "replica_groups={}, dimensions={0}", nullptr);
    add(list, Op::ALL_TO_ALL, type, "replica_groups={{0}}, dimensions={0}", nullptr);
    add(list, Op::REDUCE_SCATTER, type, "replica_groups={}, dimensions={1}", "add");
    add(list, Op::COLLECTIVE_PERMUTE, type, "source_target_pairs={{0,0}}", nullptr);
    add(list, Op::COLLECTIVE_BROADCAST, type, "replica_groups={{0}}", nullptr);
  }
}

}  // namespace collet::conformance
