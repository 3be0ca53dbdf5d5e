// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/op_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/ops/rules.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

constexpr const char* kComputations = R"(
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = f32[] add(x, y) }
add_bf16 { x = bf16[] parameter(0)  y = bf16[] parameter(1)  ROOT r = bf16[] add(x, y) }
add_s32 { x = s32[] parameter(0)  y = s32[] parameter(1)  ROOT r = s32[] add(x, y) }
add_vector { x = f32[2] parameter(0)  y = f32[2] parameter(1)  ROOT r = f32[2] add(x, y) }
mixed { x = f32[] parameter(0)  y = s32[] parameter(1)  ROOT r = f32[] negate(x) }
argmax { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  m = f32[] maximum(a, b)  k = s32[] minimum(i, j)  ROOT r = (f32[], s32[]) tuple(m, k) }
less { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = pred[] compare(x, y), direction=LT }
less_pair { x = f32[] parameter(0)  y = f32[] parameter(1)  i = s32[] parameter(2)  j = s32[] parameter(3)
  ROOT r = pred[] compare(x, y), direction=LT }
negate { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }
negate_vector { x = f32[2] parameter(0)  ROOT r = f32[2] negate(x) }
grow { x = f32[2] parameter(0)  ROOT r = f32[4] concatenate(x, x), dimensions={0} }
dynamic { x = f32[<=2] parameter(0)  ROOT r = f32[<=2] negate(x) }
never { x = f32[2] parameter(0)  ROOT r = pred[] constant(false) }
never_vector { x = f32[2] parameter(0)  ROOT r = pred[1] constant({0}) }
never_scalar { x = f32[] parameter(0)  ROOT r = pred[] constant(false) }
)";

// Finds the begin and end of the operand list of `text`: it begins at a parenthesis directly after a word.
bool find_operands(const std::string& text, size_t& begin, size_t& end) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] != '(' || !(std::isalnum(static_cast<unsigned char>(text[i - 1])))) continue;
    begin = i + 1;
    int depth = 1;
    for (end = begin; end < text.size(); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')' && --depth == 0) return true;
    }
  }
  return false;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  std::string item;
  int depth = 0;
  for (char c : list) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(item);
      item.clear();
    } else {
      item += c;
    }
  }
  if (item.find_first_not_of(' ') != std::string::npos) out.push_back(item);
  return out;
}

std::string module_of(const std::string& text) {
  size_t begin = 0, end = 0;
  if (!find_operands(text, begin, end)) return {};
  std::string head = "HloModule test, replica_count=4\n" + std::string(kComputations) + "ENTRY main {\n";
  std::string names;
  int number = 0;
  for (const std::string& shape : split(text.substr(begin, end - begin))) {
    head += "  p" + std::to_string(number) + " =" + (shape[0] == ' ' ? "" : " ") + shape + " parameter(" +
            std::to_string(number) + ")\n";
    names += (number ? ", p" : "p") + std::to_string(number);
    ++number;
  }
  return head + "  ROOT it = " + text.substr(0, begin) + names + text.substr(end) + "\n}\n";
}

void check_inferred(const Module& module, const Instruction& instr) {
  if (op_info(instr.op).has(COLLET_OP_SHAPED) || instr.op == Op::BROADCAST) return;
  std::vector<const Shape*> operands;
  for (InstrId o : instr.operands) operands.push_back(&module[o].shape);
  const Expected<Shape> shape = infer_shape({module, instr.op, operands, instr.attrs, instr.called, nullptr});
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  // Products may declare a wider type than their operands have, so the inferred type may differ.
  const Family family = op_info(instr.op).family;
  const bool typed = family == Family::dot || family == Family::convolution;
  EXPECT_EQ((typed ? shape->with_type(instr.shape.type()) : *shape).to_string(), instr.shape.to_string());
}

void check_case(const OpCase& c) {
  SCOPED_TRACE(c.text);
  const Expected<std::unique_ptr<Module>> module = parse_module(module_of(c.text));
  ASSERT_TRUE(module.ok()) << module.status().message();
  const Module& m = **module;
  const Instruction& instr = m[m.entry_computation().root];
  const Status status = verify_instruction(m, instr);
  if (c.error) {
    EXPECT_THAT(status.message(), ::testing::HasSubstr(c.error));
    EXPECT_THAT(status.message(), ::testing::StartsWith(std::string(op_info(instr.op).text)));
    return;
  }
  ASSERT_TRUE(status.ok()) << status.message();
  check_inferred(m, instr);
}

}  // namespace

void check_cases(std::span<const OpCase> cases) {
  for (const OpCase& c : cases) check_case(c);
}

}  // namespace collet::hlo
