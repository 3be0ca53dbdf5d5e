// SPDX-License-Identifier: Apache-2.0
#include <collet/command_rows.hpp>
#include <collet/list_program.hpp>

#include <gtest/gtest.h>

#include "hlo/program/write.h"
#include "hlo/text/parser.h"

namespace collet::commands {
namespace {

using kernel::Op;

enum Engine : uint32_t { kLoad, kStore, kAlu };

std::shared_ptr<const std::vector<kernel::Kernel>> test_rows() {
  kernel::Rows rows(address_of);
  rows.arithmetic<float>()
      .arithmetic<int32_t>()
      .moves(kernel::types_of<float, int32_t>())
      .product<float, float, float>();
  rows.reduce<int32_t>();
  // A pattern of the backend's own: 2 x + y.
  kernel::Kernel twice{
      COLLET_OP_CALL, kernel::types_of<float>(), kernel::types_of<float>(), [](kernel::Device& device, const Op& op) {
        const auto at = [&](const kernel::Array& a) { return static_cast<float*>(address_of(device, a)); };
        for (uint64_t i = 0; i < op.result().elements; ++i)
          at(op.result())[i] = 2 * at(op.operand(0))[i] + at(op.operand(1))[i];
      }};
  twice.pattern = "acme.twice";
  rows.add(std::move(twice));
  return std::make_shared<const std::vector<kernel::Kernel>>(rows.take());
}

/// Computes f32 and s32 by the rows of the headers.
class TestUnits final : public RowUnits {
 public:
  TestUnits() : RowUnits(test_rows(), {"acme.twice"}) {}
  Cost cost(const PieceOp&) const override { return {kAlu, 1}; }
  std::string refusal_of_layer(const Op&) const override { return "no layers"; }
};

/// Computes products of s8, and the ends of quantized layers of any kind.
class LayerUnits final : public RowUnits {
 public:
  LayerUnits() : RowUnits(rows(), {"integer_dot", "quantize", "requantize"}) {}
  Cost cost(const PieceOp&) const override { return {kAlu, 1}; }
  std::string refusal_of_layer(const Op&) const override { return {}; }

 private:
  static std::shared_ptr<const std::vector<kernel::Kernel>> rows() {
    kernel::Rows rows(address_of);
    rows.product<int8_t, int32_t, int32_t>();
    return std::make_shared<const std::vector<kernel::Kernel>>(rows.take());
  }
};

class TestMachine final : public RowMachine {
 public:
  using RowMachine::RowMachine;
  uint64_t copy_cycles(const Command& command) const override { return command.reads.at(0).rows; }
};

/// A device that nobody uses: rows of the headers only pass it on.
class NoDevice final : public kernel::Device {
  kernel::Memory allocate(uint64_t, uint64_t) override { return kernel::no_memory; }
  void free(kernel::Memory) noexcept override {}
  void write(kernel::Memory, uint64_t, const void*, uint64_t) override {}
  void read(kernel::Memory, uint64_t, void*, uint64_t) override {}
  void copy(kernel::Memory, uint64_t, kernel::Memory, uint64_t, uint64_t) override {}
};

class ProgramLists : public ::testing::Test {
 protected:
  void make(const std::string& text, uint64_t scratchpad) {
    const auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    auto program = hlo::write_program(**module, {.inline_limit = SIZE_MAX});
    ASSERT_TRUE(program.ok());
    program_ = std::move(*program);
    options_.engines = {"load", "store", "alu"};
    options_.limits.scratchpad_bytes = scratchpad;
    options_.limits.operand_copies = options_.limits.result_copies = 2;
    made_ = std::make_unique<ProgramList>(program_.get(), options_, units_);
  }
  void run(std::vector<std::vector<float>>& arguments, std::vector<std::vector<float>>& results) {
    std::vector<char> workspace(made_->workspace_bytes()), scratch(options_.limits.scratchpad_bytes);
    std::string resident = made_->resident();
    std::vector<char*> arrays;
    for (auto& one : arguments) arrays.push_back(reinterpret_cast<char*>(one.data()));
    for (auto& one : results) arrays.push_back(reinterpret_cast<char*>(one.data()));
    arrays.push_back(workspace.data());
    arrays.push_back(resident.data());
    TestMachine machine(units_, &device_);
    EXPECT_EQ(simulate(machine, made_->list(), scratch, arrays, made_->array_bytes()).complaint, "");
  }

  hlo::Program program_;
  ListOptions options_;
  TestUnits units_;
  NoDevice device_;
  std::unique_ptr<ProgramList> made_;
};

std::vector<float> counted(size_t n, float start) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = start + static_cast<float>(i % 13);
  return out;
}

TEST_F(ProgramLists, ProductWhoseSumIsCut_AndItsConstants) {
  std::string rows;
  for (int i = 0; i < 300 * 8; ++i) rows += (i % 8 == 0 ? (i == 0 ? "{" : "}, {") : ", ") + std::to_string(i % 5 - 2);
  ASSERT_NO_FATAL_FAILURE(make("HloModule m\nENTRY e {\n x = f32[17,300] parameter(0)\n w = f32[300,8] constant({" +
                                   rows +
                                   "}})\n two = f32[] constant(2)\n twos = f32[17,8] broadcast(two), dimensions={}\n"
                                   " y = f32[17,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                                   " ROOT z = f32[17,8] multiply(y, twos)\n}\n",
                               4096));
  ASSERT_EQ(made_->rejected().size(), 0u);
  EXPECT_EQ(made_->group_count(), 1u);  // the epilogue stays with its product, and the broadcast is in no memory
  EXPECT_EQ(made_->workspace_bytes(), 0u);
  EXPECT_GE(made_->resident().size(), 300u * 8 * 4 + 4);
  EXPECT_LE(made_->resident().size(), 300u * 8 * 4 + 64 * 40);  // each element once, and gaps
  bool accumulates = false;
  for (const RowWork& one : units_.works()) accumulates |= one.what.combine == COLLET_COMBINE_ADD;
  EXPECT_TRUE(accumulates);
  std::vector<std::vector<float>> arguments{counted(17 * 300, -4)}, results{std::vector<float>(17 * 8, -1)};
  run(arguments, results);
  for (size_t m = 0; m < 17; ++m) {
    for (size_t n = 0; n < 8; ++n) {
      float sum = 0;
      for (size_t k = 0; k < 300; ++k) sum += arguments[0][m * 300 + k] * (static_cast<float>((k * 8 + n) % 5) - 2);
      EXPECT_EQ(results[0][m * 8 + n], 2 * sum) << m << ", " << n;
    }
  }
}

TEST_F(ProgramLists, ARowForAPatternIsOneCommandForEachPiece) {
  ASSERT_NO_FATAL_FAILURE(make(R"(HloModule m
f {
  x = f32[900] parameter(0)
  y = f32[900] parameter(1)
  z = f32[900] add(x, x)
  ROOT s = f32[900] add(z, y)
}
ENTRY e {
  x = f32[900] parameter(0)
  y = f32[900] parameter(1)
  ROOT c = f32[900] call(x, y), to_apply=f, is_composite=true, frontend_attributes={composite.name="acme.twice",composite.attributes={},composite.version="0"}
})",
                               4096));
  ASSERT_EQ(made_->rejected().size(), 0u);
  size_t computed = 0;
  for (const Command& one : made_->list().commands()) computed += one.engine == kAlu;
  EXPECT_GT(computed, 1u);
  for (const RowWork& one : units_.works()) EXPECT_EQ(one.row->pattern, "acme.twice");
  std::vector<std::vector<float>> arguments{counted(900, 1), counted(900, 5)}, results{std::vector<float>(900)};
  run(arguments, results);
  for (size_t i = 0; i < 900; ++i) EXPECT_EQ(results[0][i], 2 * arguments[0][i] + arguments[1][i]);
}

/// Returns a program that calls a quantized pattern.
std::string calling(const std::string& pattern, const std::string& attributes, const std::string& parameters,
                    const std::string& body, const std::string& call) {
  return "HloModule m\nf {\n" + parameters + body + "}\nENTRY e {\n" + parameters + " ROOT c = " + call +
         ", to_apply=f, is_composite=true, frontend_attributes={composite.name=\"" + pattern +
         "\",composite.version=\"0\",composite.attributes={" + attributes +
         ", low = -128 : i64, high = 127 : i64, rounding = \"even\"}}\n}\n";
}

TEST(LayersOfRows, ReadShortFloats) {
  LayerUnits units;
  NoDevice device;
  ListOptions options;
  options.engines = {"load", "store", "alu"};
  options.limits.scratchpad_bytes = 4096;
  const auto run = [&](const std::string& text, std::vector<char*> arrays) {
    const auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.ok()) << module.status().to_string() << text;
    const auto program = hlo::write_program(**module, {.inline_limit = SIZE_MAX});
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const ProgramList made(program->get(), options, units);
    ASSERT_EQ(made.rejected().size(), 0u);
    std::vector<char> workspace(made.workspace_bytes()), scratch(options.limits.scratchpad_bytes);
    std::string resident = made.resident();
    arrays.push_back(workspace.data());
    arrays.push_back(resident.data());
    TestMachine machine(units, &device);
    EXPECT_EQ(simulate(machine, made.list(), scratch, arrays, made.array_bytes()).complaint, "");
  };
  const auto bytes = [](auto& list) { return reinterpret_cast<char*>(list.data()); };
  const auto check = [&](auto zero, const std::string& type) {
    using Short = decltype(zero);
    SCOPED_TRACE(type);
    std::vector<int8_t> x = {1, 2, 3, 4, 5, 6}, w = {1, 0, 2, 1, 1, 1};  // their product is 8 5 / 20 11
    std::vector<Short> scales = {Short(0.75f), Short(-0.25f)};
    std::vector<int8_t> out(4);
    run(calling("integer_dot",
                R"(operands = "lhs,rhs,scale", scale_dims = array<i64: 1>, scale_type = ")" + type +
                    R"(", step_type = ")" + type + "\"",
                " x = s8[2,3] parameter(0)\n w = s8[3,2] parameter(1)\n s = " + type + "[2] parameter(2)\n",
                " d = s32[2,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n c = " + type +
                    "[2,2] convert(d)\n b = " + type + "[2,2] broadcast(s), dimensions={1}\n m = " + type +
                    "[2,2] multiply(c, b)\n r = " + type +
                    "[2,2] round-nearest-even(m)\n ROOT q = s8[2,2] convert(r)\n",
                "s8[2,2] call(x, w, s)"),
        {bytes(x), bytes(w), bytes(scales), bytes(out)});
    EXPECT_EQ(out, (std::vector<int8_t>{6, -1, 15, -3}));
    std::vector<Short> real = {Short(0.75f), Short(-2.5f), Short(1.0f), Short(-0.25f)};
    run(calling(
            "quantize",
            R"(operands = "x", result_factor = 2.0 : f64, scale_type = ")" + type + R"(", step_type = ")" + type + "\"",
            " x = " + type + "[4] parameter(0)\n",
            " two = " + type + "[] constant(2)\n twos = " + type + "[4] broadcast(two), dimensions={}\n m = " + type +
                "[4] multiply(x, twos)\n r = " + type + "[4] round-nearest-even(m)\n ROOT q = s8[4] convert(r)\n",
            "s8[4] call(x)"),
        {bytes(real), bytes(out)});
    EXPECT_EQ(out, (std::vector<int8_t>{2, -5, 2, 0}));
  };
  check(kernel::half(), "f16");
  check(kernel::bfloat16(), "bf16");
}

TEST(LayersOfRows, OperandsOfOtherTypes_AreRefused) {
  const LayerUnits units;
  ListOptions options;
  options.engines = {"load", "store", "alu"};
  options.limits.scratchpad_bytes = 4096;
  const auto refusal = [&](const std::string& type) {
    const auto module = hlo::parse_module(calling("requantize", R"(operands = "x", factor = 0.5 : f64)",
                                                  " x = " + type + "[4] parameter(0)\n", " ROOT q = s8[4] convert(x)\n",
                                                  "s8[4] call(x)"));
    EXPECT_TRUE(module.ok()) << module.status().to_string();
    const auto program = hlo::write_program(**module, {.inline_limit = SIZE_MAX});
    return ProgramList::refusal(program->get(), 0, options, units);
  };
  EXPECT_EQ(refusal("s32"), "");
  EXPECT_EQ(refusal("s64"), "no end of a layer reads s64");
}

TEST_F(ProgramLists, ResultsThatAreArgumentsConstantsOrTwice) {
  ASSERT_NO_FATAL_FAILURE(
      make("HloModule m\nENTRY e {\n x = f32[100] parameter(0)\n c = f32[2] constant({5, 7})\n"
           " y = f32[100] add(x, x)\n ROOT t = (f32[100], f32[2], f32[100], f32[100]) tuple(x, c, y, y)\n}\n",
           1024));
  ASSERT_EQ(made_->rejected().size(), 0u);
  std::vector<std::vector<float>> arguments{counted(100, 1)},
      results{counted(100, 0), {0, 0}, counted(100, 0), counted(100, 0)};
  run(arguments, results);
  EXPECT_EQ(results[0], arguments[0]);
  EXPECT_EQ(results[1], (std::vector<float>{5, 7}));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(results[2][i], 2 * arguments[0][i]);
  EXPECT_EQ(results[3], results[2]);
}

TEST_F(ProgramLists, PackedArgument_LoadsDensePartsWithTheSameResults) {
  const std::string text =
      "HloModule m\nENTRY e {\n x = f32[17,300] parameter(0)\n w = f32[300,80] parameter(1)\n v = f32[17,80] "
      "parameter(2)\n"
      " y = f32[17,80] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n z = f32[17,80] add(y, v)\n"
      " ROOT t = (f32[17,80], f32[17,80]) tuple(z, v)\n}\n";
  ASSERT_NO_FATAL_FAILURE(make(text, 8192));
  ASSERT_EQ(made_->rejected().size(), 0u);
  const uint64_t bytes = made_->packed_bytes(1);
  EXPECT_GE(bytes, 300u * 80 * 4);
  EXPECT_LE(bytes, 2 * 300u * 80 * 4);
  EXPECT_EQ(made_->packed_bytes(2), 0u) << "an argument that is a result";
  std::vector<std::vector<float>> arguments{counted(17 * 300, -4), counted(300 * 80, -6), counted(17 * 80, 1)};
  std::vector<std::vector<float>> results{counted(17 * 80, 0), counted(17 * 80, 0)};
  run(arguments, results);
  const auto rows_of = [&](const ProgramList& list) {
    uint64_t out = 0;
    for (const Command& one : list.list().commands())
      out += one.engine == kLoad && one.reads[0].base == 1 ? one.reads[0].rows : 0;
    return out;
  };
  const uint64_t before = rows_of(*made_);

  const List packing = made_->packing(1);
  std::vector<float> packed(bytes / 4);
  std::vector<char> scratch(1);
  TestMachine copies(units_, &device_);
  EXPECT_EQ(simulate(copies, packing, scratch,
                     {reinterpret_cast<char*>(arguments[1].data()), reinterpret_cast<char*>(packed.data())},
                     {arguments[1].size() * 4, bytes})
                .complaint,
            "");
  options_.packed = {1};
  ASSERT_NO_FATAL_FAILURE(make(text, 8192));
  EXPECT_EQ(made_->array_bytes()[1], bytes);
  EXPECT_LT(rows_of(*made_), before / 4);
  arguments[1] = packed;
  std::vector<std::vector<float>> again{counted(17 * 80, 0), counted(17 * 80, 0)};
  run(arguments, again);
  EXPECT_EQ(again, results);
}

TEST_F(ProgramLists, WhatCannotBeComputed_IsNamed) {
  ASSERT_NO_FATAL_FAILURE(
      make("HloModule m\nENTRY e {\n x = f32[100] parameter(0)\n y = f32[100] add(x, x)\n"
           " ROOT z = f32[100] tanh(y)\n}\n",
           1024));
  ASSERT_EQ(made_->rejected().size(), 1u);
  EXPECT_EQ(ProgramList::refusal(program_.get(), made_->rejected()[0], options_, units_), "no unit computes tanh");
  ASSERT_NO_FATAL_FAILURE(
      make("HloModule m\nENTRY e {\n x = f32[5000] parameter(0)\n"
           " ROOT z = f32[5000] reverse(x), dimensions={0}\n}\n",
           1024));
  ASSERT_EQ(made_->rejected().size(), 1u);
  const std::string said = ProgramList::refusal(program_.get(), made_->rejected()[0], options_, units_);
  EXPECT_NE(said.find("cannot be cut further"), std::string::npos) << said;
}

}  // namespace
}  // namespace collet::commands
