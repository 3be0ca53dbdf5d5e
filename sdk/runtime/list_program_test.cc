// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_rows.hpp>
#include <collet/list_program.hpp>

#include <gtest/gtest.h>

#include "hlo/program/write.h"
#include "hlo/text/parser.h"

namespace collet::commands {
namespace {

using kernel::Kernel;
using kernel::Op;

enum Engine : uint32_t { kLoad, kStore, kAlu };

/// Computes f32 and s32 by the rows of the headers.
class TestUnits final : public Units {
 public:
  TestUnits() {
    kernel::Rows rows([](kernel::Device&, const kernel::Array& a) { return reinterpret_cast<void*>(a.memory); });
    rows.arithmetic<float>()
        .arithmetic<int32_t>()
        .moves(kernel::types_of<float, int32_t>())
        .product<float, float, float>();
    rows.reduce<int32_t>();
    rows_ = rows.take();
  }
  std::string refusal(const Op& op) const override {
    if (op.opcode() == COLLET_OP_CONSTANT || row_of(op)) return {};
    return std::string("no ") + collet_op_name(op.opcode());
  }
  Command command(const PieceOp& what) override {
    made.push_back(what);
    return {collet_op_name(what.op.op().opcode()), kAlu, {}, {}, {static_cast<int64_t>(made.size()) - 1}};
  }
  const Kernel* row_of(const Op& op) const {
    for (const Kernel& row : rows_) {
      if (row.opcode == op.opcode() && row.results.has(op.result().type) && (!row.takes || row.takes(op))) return &row;
    }
    return nullptr;
  }
  std::vector<PieceOp> made;

 private:
  std::vector<Kernel> rows_;
};

class TestMachine final : public Machine {
 public:
  explicit TestMachine(const TestUnits& units) : units_(units) {}
  uint64_t cycles(const Command&) const override { return 1; }
  void run(const Command& command, const std::function<char*(const Operand&)>& at) override {
    const Operand &from = command.reads.at(0), &to = command.writes.at(0);
    if (command.engine != kAlu) {
      for (uint64_t r = 0; r < from.rows; ++r)
        std::copy_n(at(from) + r * from.pitch, from.bytes, at(to) + r * to.pitch);
      return;
    }
    const PieceOp& what = units_.made.at(static_cast<size_t>(command.values.at(0)));
    const Op op = what.op.op();
    std::vector<kernel::Array> arrays(op.arrays(), op.arrays() + op.operand_count() + 1);
    for (size_t i = 0; i < what.reads.size(); ++i)
      arrays[what.reads[i]].memory = reinterpret_cast<kernel::Memory>(at(command.reads[i]));
    std::vector<char> part(to.bytes);
    arrays.back().memory = reinterpret_cast<kernel::Memory>(part.data());
    const Kernel* row = units_.row_of(op);
    kernel::OpContext context;
    const std::any state = row->prepare ? row->prepare(device_, op) : std::any();
    context.state = &state;
    row->run(device_, Op(op.program(), &op.raw(), arrays.data(), context));
    if (what.combine == COLLET_COMBINE_OTHER) {
      std::copy(part.begin(), part.end(), at(to));
      return;
    }
    ASSERT_EQ(what.combine, uint32_t{COLLET_COMBINE_ADD});
    auto* sum = reinterpret_cast<float*>(at(to));
    for (size_t i = 0; i < part.size() / 4; ++i) sum[i] += reinterpret_cast<const float*>(part.data())[i];
  }

 private:
  class None final : public kernel::Device {
    kernel::Memory allocate(uint64_t, uint64_t) override { return kernel::no_memory; }
    void free(kernel::Memory) noexcept override {}
    void write(kernel::Memory, uint64_t, const void*, uint64_t) override {}
    void read(kernel::Memory, uint64_t, void*, uint64_t) override {}
    void copy(kernel::Memory, uint64_t, kernel::Memory, uint64_t, uint64_t) override {}
  };
  const TestUnits& units_;
  None device_;
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
    TestMachine machine(units_);
    EXPECT_EQ(simulate(machine, made_->list(), scratch, arrays, made_->array_bytes()).complaint, "");
  }

  hlo::Program program_;
  ListOptions options_;
  TestUnits units_;
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
  for (const PieceOp& one : units_.made) accumulates |= one.combine == COLLET_COMBINE_ADD;
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

TEST_F(ProgramLists, WhatCannotBeComputed_IsNamed) {
  ASSERT_NO_FATAL_FAILURE(
      make("HloModule m\nENTRY e {\n x = f32[100] parameter(0)\n y = f32[100] add(x, x)\n"
           " ROOT z = f32[100] tanh(y)\n}\n",
           1024));
  ASSERT_EQ(made_->rejected().size(), 1u);
  EXPECT_EQ(ProgramList::refusal(program_.get(), made_->rejected()[0], options_, units_), "no tanh");
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
