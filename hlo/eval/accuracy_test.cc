// SPDX-License-Identifier: Apache-2.0
// Compares math functions with a table of values from MPFR: f64 within one unit in the last place, narrower types
// correctly rounded (unless the f64 value is too close to a tie to determine the rounding).
#include <bit>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "hlo/base/float_format.h"
#include "hlo/eval/text_modules_test.h"

namespace collet::hlo {
namespace {

struct Row {
  std::vector<double> arguments;
  double result;
};

std::map<std::string, std::vector<Row>> read_table() {
  std::map<std::string, std::vector<Row>> table;
  std::ifstream file("hlo/eval/testdata/functions.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string op, word;
    words >> op;
    Row row;
    while (words >> word) row.arguments.push_back(std::strtod(word.c_str(), nullptr));
    row.result = row.arguments.back();
    row.arguments.pop_back();
    table[op].push_back(row);
  }
  return table;
}

double rounded(Type type, double value) {
  const FloatFormat format = float_format(static_cast<uint32_t>(type));
  return decode_float(format, encode_float(format, value));
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// True if `got` is between the roundings of the two f64 neighbours of the true value.
bool correct(Type type, double got, double truth) {
  if (same(got, rounded(type, truth))) return true;
  return same(got, rounded(type, std::nextafter(truth, INFINITY))) ||
         same(got, rounded(type, std::nextafter(truth, -INFINITY)));
}

bool within_one_ulp(double got, double truth) {
  if (std::isnan(got) || std::isnan(truth) || std::signbit(got) != std::signbit(truth)) return same(got, truth);
  return std::llabs(std::bit_cast<int64_t>(got) - std::bit_cast<int64_t>(truth)) <= 1;
}

void check(const std::string& op, const std::vector<Row>& rows, Type type) {
  std::vector<const Row*> usable;
  for (const Row& row : rows) {
    bool exact = true;
    for (double x : row.arguments) exact &= same(rounded(type, x), x);
    if (exact) usable.push_back(&row);
  }
  ASSERT_GE(usable.size(), 8u) << op;
  const Shape shape = Shape::array(type, {static_cast<int64_t>(usable.size())});
  const size_t arity = usable[0]->arguments.size();
  std::vector<Literal> arguments(arity, Literal::zeros(shape));
  for (size_t i = 0; i < usable.size(); ++i)
    for (size_t k = 0; k < arity; ++k) arguments[k].set_double(static_cast<int64_t>(i), usable[i]->arguments[k]);
  const std::string text = shape.to_string();
  auto got = testing::evaluate_text("HloModule m\nENTRY e {\n x = " + text + " parameter(0)\n" +
                                        (arity > 1 ? " y = " + text + " parameter(1)\n" : "") + " ROOT r = " + text +
                                        " " + op + (arity > 1 ? "(x, y)" : "(x)") + "\n}\n",
                                    arguments);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  for (size_t i = 0; i < usable.size(); ++i) {
    const double value = got->as_double(static_cast<int64_t>(i)), truth = usable[i]->result;
    const bool good = type == Type::F64 ? within_one_ulp(value, truth) : correct(type, value, truth);
    EXPECT_TRUE(good) << op << " of " << usable[i]->arguments[0] << (arity > 1 ? ", " : "")
                      << (arity > 1 ? std::to_string(usable[i]->arguments[1]) : "") << " in " << type_info(type).text
                      << " is " << std::hexfloat << value << ", not " << truth;
  }
}

TEST(Accuracy, MathFunctions) {
  const auto table = read_table();
  ASSERT_EQ(table.size(), 22u);
  for (const auto& [op, rows] : table)
    for (Type type : {Type::F64, Type::F32, Type::F16, Type::BF16}) check(op, rows, type);
}

}  // namespace
}  // namespace collet::hlo
