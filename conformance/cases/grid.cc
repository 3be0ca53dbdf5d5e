// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

// Generates the grid of cases: every op with every type that the table allows, combined with shapes, values and special
// attributes.

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// Adds a case of one op on parameters of the given shapes.
struct Grid {
  CaseList& list;
  Op op;
  Type type;

  template <typename Write>
  void add(std::string_view label, Values values, std::vector<InputSpec> inputs, const Bound& bound,
           Write write) const {
    Case one{fmt::format("{}/{}/grid_{}/{}", hlo::op_info(op).text, type_name(type), label, values_name(values)),
             op,
             type,
             "",
             std::move(inputs),
             bound};
    if (!list.names_only()) one.text = write();
    list.add(std::move(one));
  }

  // Adds a case of data movement, whose result must be equal bit by bit.
  void move(std::string_view label, const std::vector<Dims>& operands, const Dims& result,
            const std::string& attributes) const {
    std::vector<InputSpec> inputs(operands.size(), InputSpec{.values = Values::Large});
    add(label, Values::Large, std::move(inputs), {.kind = Bound::Kind::Bits}, [&] {
      Text text;
      std::string names;
      for (const Dims& dims : operands) names += (names.empty() ? "" : ", ") + text.parameter(Shape::array(type, dims));
      return text.root(Shape::array(type, result), fmt::format("{}({}), {}", hlo::op_info(op).text, names, attributes));
    });
  }
};

void add_transposes(const Grid& grid) {
  for (const Dims& dims :
       {Dims{17}, Dims{16, 33}, Dims{5, 64}, Dims{3, 17, 8}, Dims{2, 1, 33}, Dims{2, 3, 5, 7}, Dims{4, 1, 3, 16}}) {
    Dims order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      Dims result;
      for (const int64_t d : order) result.push_back(dims[static_cast<size_t>(d)]);
      grid.move(fmt::format("{}_by_{}", dims_name(dims), fmt::join(order, "")), {dims}, result,
                fmt::format("dimensions={}", braces(order)));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Calls the function for every subset of the dimensions of a shape.
template <typename Function>
void for_subsets(size_t rank, Function function) {
  for (size_t bits = 0; bits < size_t{1} << rank; ++bits) {
    Dims subset;
    for (size_t d = 0; d < rank; ++d)
      if (bits >> d & 1) subset.push_back(static_cast<int64_t>(d));
    function(subset);
  }
}

void add_reverses(const Grid& grid) {
  for (const Dims& dims :
       {Dims{1}, Dims{16}, Dims{65}, Dims{1025}, Dims{7, 33}, Dims{64, 3}, Dims{3, 5, 17}, Dims{2, 3, 2, 9}}) {
    for_subsets(dims.size(), [&](const Dims& over) {
      grid.move(
          fmt::format("{}_by_{}", dims_name(dims), over.empty() ? "none" : fmt::format("{}", fmt::join(over, ""))),
          {dims}, dims, fmt::format("dimensions={}", braces(over)));
    });
  }
}

void add_slices(const Grid& grid) {
  const auto part = [](int64_t start, int64_t limit, int64_t stride) {
    return fmt::format("[{}:{}:{}]", start, limit, stride);
  };
  const auto length = [](int64_t start, int64_t limit, int64_t stride) {
    return (limit - start + stride - 1) / stride;
  };
  for (const int64_t size : {1, 16, 17, 129})
    for (const int64_t start : std::set<int64_t>{0, size / 2, size - 1, size > 1 ? 1 : 0})
      for (const int64_t limit : std::set<int64_t>{start, start + 1, (start + size + 1) / 2, size - 1, size})
        for (const int64_t stride : {1, 2, 3, 7, 200}) {
          if (limit < start) continue;
          grid.move(fmt::format("{}_{}_{}_{}", size, start, limit, stride), {{size}}, {length(start, limit, stride)},
                    fmt::format("slice={{{}}}", part(start, limit, stride)));
          if (size < 16 || stride > 3) continue;
          grid.move(fmt::format("5x{}_{}_{}_{}", size, start, limit, stride), {{5, size}},
                    {2, length(start, limit, stride)},
                    fmt::format("slice={{{},{}}}", part(1, 5, 2), part(start, limit, stride)));
        }
}

void add_pads(const Grid& grid) {
  for (const int64_t size : {0, 1, 2, 16, 33})
    for (const int64_t low : {-2, -1, 0, 1, 5})
      for (const int64_t high : {-2, -1, 0, 1, 5})
        for (const int64_t interior : {0, 1, 3}) {
          const int64_t out = size + low + high + std::max<int64_t>(size - 1, 0) * interior;
          if (out < 0) continue;
          grid.move(fmt::format("{}_by_{}_{}_{}", size, low, high, interior), {{size}, {}}, {out},
                    fmt::format("padding={}_{}_{}", low, high, interior));
          if (size != 16) continue;
          grid.move(fmt::format("3x{}_by_{}_{}_{}", size, low, high, interior), {{3, size}, {}}, {5, out},
                    fmt::format("padding=1_1_0x{}_{}_{}", low, high, interior));
        }
}

void add_concatenates(const Grid& grid) {
  constexpr int64_t kSizes[] = {0, 1, 2, 7, 16, 33, 129};
  for (const int64_t a : kSizes)
    for (const int64_t b : kSizes)
      for (const int64_t other : {1, 5}) {
        grid.move(fmt::format("{0}x{2}_{1}x{2}_by_0", a, b, other), {{a, other}, {b, other}}, {a + b, other},
                  "dimensions={0}");
        grid.move(fmt::format("{2}x{0}_{2}x{1}_by_1", a, b, other), {{other, a}, {other, b}}, {other, a + b},
                  "dimensions={1}");
      }
}

void add_broadcasts(const Grid& grid) {
  for (const Dims& result :
       {Dims{17}, Dims{16, 33}, Dims{3, 17, 8}, Dims{2, 1, 33}, Dims{2, 3, 5, 7}, Dims{0, 4}, Dims{1025, 2}})
    for_subsets(result.size(), [&](const Dims& kept) {
      Dims operand;
      for (const int64_t d : kept) operand.push_back(result[static_cast<size_t>(d)]);
      grid.move(
          fmt::format("{}_of_{}", dims_name(result), kept.empty() ? "none" : fmt::format("{}", fmt::join(kept, ""))),
          {operand}, result, fmt::format("dimensions={}", braces(kept)));
    });
}

}  // namespace

void add_movement_grid(CaseList& list, Op op, Type type) {
  const Grid grid{list, op, type};
  switch (op) {
    case Op::TRANSPOSE:
      return add_transposes(grid);
    case Op::REVERSE:
      return add_reverses(grid);
    case Op::SLICE:
      return add_slices(grid);
    case Op::PAD:
      return add_pads(grid);
    case Op::CONCATENATE:
      return add_concatenates(grid);
    case Op::BROADCAST:
      return add_broadcasts(grid);
    default:
      return;
  }
}

void add_reduce_grid(CaseList& list, Type type) {
  const Grid grid{list, Op::REDUCE, type};
  const bool integer = hlo::is_integer(type), is_pred = type == Type::PRED, complex = hlo::is_complex(type);
  // For sums with more terms than `most` in a narrow type, the error bound would be so wide that the test says nothing.
  const double most = integer || is_pred               ? 1e9
                      : hlo::type_info(type).bits < 16 ? 3
                      : hlo::type_info(type).bits < 32 ? 40
                                                       : 1e9;
  std::vector<const char*> bodies;
  if (!is_pred) bodies.push_back("add");
  if (!complex) bodies.insert(bodies.end(), {"maximum", "minimum"});
  if (integer || is_pred) bodies.insert(bodies.end(), {"and", "or", "xor"});
  for (const Dims& dims : {Dims{1}, Dims{2}, Dims{7}, Dims{8}, Dims{31}, Dims{64}, Dims{129}, Dims{1025}, Dims{4099},
                           Dims{3, 33}, Dims{33, 3}, Dims{16, 16}, Dims{129, 2}, Dims{2, 129}, Dims{3, 5, 17},
                           Dims{8, 1, 9}, Dims{2, 3, 5, 7}, Dims{4, 0, 3}})
    for_subsets(dims.size(), [&](const Dims& over) {
      if (over.empty()) return;
      double terms = 2;
      Dims kept;
      for (size_t d = 0; d < dims.size(); ++d) {
        const bool is_over = std::find(over.begin(), over.end(), static_cast<int64_t>(d)) != over.end();
        if (is_over) terms *= static_cast<double>(dims[d]);
        if (!is_over) kept.push_back(dims[d]);
      }
      for (const std::string_view body : bodies) {
        const bool sum = body == "add";
        if (sum && terms > most) continue;
        for (const Values values : {Values::Unit, integer || is_pred ? Values::Large : Values::Ties}) {
          const bool neutral = counts_initial_values(body) && std::find(dims.begin(), dims.end(), 0) == dims.end();
          const double start = neutral ? 0 : body == "and" || is_pred ? 1 : 2;
          grid.add(fmt::format("{}_{}_by_{}", body, dims_name(dims), fmt::join(over, "")), values,
                   {{.values = values, .low = -9, .high = 9}, {.values = Values::Fixed, .fixed = {start}}},
                   sum ? sum_bound(type, terms, false) : Bound{}, [&] {
                     Text text;
                     const std::string combine = text.combiner(body, type);
                     const std::string x = text.parameter(Shape::array(type, dims)),
                                       init = text.parameter(Shape::scalar(type));
                     return text.root(
                         Shape::array(type, kept),
                         fmt::format("reduce({}, {}), dimensions={}, to_apply={}", x, init, braces(over), combine));
                   });
        }
      }
    });
}

void add_dot_grid(CaseList& list, Type type) {
  const Grid grid{list, Op::DOT, type};
  constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 129};
  const double most = hlo::is_integer(type) ? 9 : 1;
  const size_t n = std::size(kSizes);
  // Tests all pairs of sizes of M and N, of M and K, and of N and K: the third size follows from the other two as in a
  // Latin square.
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const int64_t rows = kSizes[i], columns = kSizes[j], depth = kSizes[(i + j) % n];
      for (const bool lhs_turned : {false, true})
        for (const bool rhs_turned : {false, true}) {
          const Values values = hlo::is_integer(type) && (i + j) % 2 ? Values::Large : Values::Unit;
          grid.add(
              fmt::format("{}x{}x{}{}{}", rows, depth, columns, lhs_turned ? "_lhs_turned" : "",
                          rhs_turned ? "_rhs_turned" : ""),
              values, {{.values = values, .low = -most, .high = most}, {.values = values, .low = -most, .high = most}},
              sum_bound(type, static_cast<double>(depth)), [&] {
                Text text;
                const std::string a =
                    text.parameter(Shape::array(type, lhs_turned ? Dims{depth, rows} : Dims{rows, depth}));
                const std::string b =
                    text.parameter(Shape::array(type, rhs_turned ? Dims{columns, depth} : Dims{depth, columns}));
                return text.root(Shape::array(type, Dims{rows, columns}),
                                 fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", a,
                                             b, lhs_turned ? 0 : 1, rhs_turned ? 1 : 0));
              });
        }
    }
}

const std::vector<GridBlock>& grid_blocks() {
  static const std::vector<GridBlock> kBlocks = [] {
    std::vector<GridBlock> blocks;
    for (int id = 1; id <= hlo::kLastOp; ++id) {
      const Op op = static_cast<Op>(id);
      const hlo::OpInfo& info = hlo::op_info(op);
      const bool moves = op == Op::TRANSPOSE || op == Op::REVERSE || op == Op::SLICE || op == Op::PAD ||
                         op == Op::CONCATENATE || op == Op::BROADCAST;
      if (info.family != hlo::Family::elementwise && !moves && op != Op::CONVERT && op != Op::REDUCE && op != Op::DOT)
        continue;
      if (op == Op::CLAMP) continue;
      const bool sums = op == Op::REDUCE || op == Op::DOT;
      for (const Type type :
           sums ? types_of(op == Op::DOT ? hlo::TypeSet::NUMBER : hlo::TypeSet::ANY) : all_types_of(info.types))
        blocks.push_back({op, type});
    }
    return blocks;
  }();
  return kBlocks;
}

std::vector<Case> grid_cases(const GridBlock& block, bool names_only) {
  CaseList list(true, names_only);
  if (block.op == Op::CONVERT) {
    add_convert_grid(list, block.type);
  } else if (block.op == Op::REDUCE) {
    add_reduce_grid(list, block.type);
  } else if (block.op == Op::DOT) {
    add_dot_grid(list, block.type);
  } else if (hlo::op_info(block.op).family == hlo::Family::elementwise) {
    add_elementwise_grid(list, block.op, block.type);
  } else {
    add_movement_grid(list, block.op, block.type);
  }
  return std::move(list.cases());
}

const Case& find_grid_case(std::string_view name) {
  static const Case kNone;
  static GridBlock block;
  static std::vector<Case> cases;
  const size_t slash = std::min(name.find('/'), name.size()), second = std::min(name.find('/', slash + 1), name.size());
  std::string_view label = name.substr(0, slash);
  if (label.starts_with("compare-")) label = "compare";
  const auto op = hlo::op_from_text(label);
  const auto type =
      slash < name.size() ? hlo::type_from_text(name.substr(slash + 1, second - slash - 1)) : std::nullopt;
  if (!op || !type) return kNone;
  if (const GridBlock wanted{*op, *type}; !(wanted == block)) {
    block = wanted;
    cases = grid_cases(block, false);
  }
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == name; });
  return found == cases.end() ? kNone : *found;
}

}  // namespace collet::conformance
