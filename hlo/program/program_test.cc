// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "hlo/ops/rules.h"
#include "hlo/program/check.h"
#include "hlo/program/print.h"
#include "hlo/program/read.h"
#include "hlo/program/write.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

const Shape kF32 = Shape::scalar(Type::F32);

InstrId append(Module& m, CompId c, Op op, std::vector<InstrId> operands, const void* attrs = nullptr,
               std::vector<CompId> called = {}, const Shape* declared = nullptr) {
  auto id = append_inferred(m, c, op, operands, attrs, called, declared);
  EXPECT_TRUE(id.ok()) << id.status().to_string();
  return *id;
}

CompId add_computation(Module& m, Op op) {
  const CompId c = m.add_computation("combine");
  const InstrId a = m.append_parameter(c, 0, kF32), b = m.append_parameter(c, 1, kF32);
  m[c].root = append(m, c, op, {a, b});
  return c;
}

// x -> while (i < 5) { x = x * k, i = i + 1 }, with a reduce of the result and a large constant.
std::unique_ptr<Module> sample() {
  auto module = std::make_unique<Module>("sample");
  Module& m = *module;
  const Shape x_shape = Shape::array(Type::F32, {4, 3});
  const Shape state = Shape::tuple({Shape::scalar(Type::S32), x_shape});
  const CompId sum = add_computation(m, Op::ADD);

  auto get = [&](CompId c, InstrId tuple, int64_t i) {
    auto* attrs = m.make<TupleIndexAttrs>();
    attrs->index = i;
    return append(m, c, Op::GET_TUPLE_ELEMENT, {tuple}, attrs);
  };
  const CompId condition = m.add_computation("condition");
  {
    const InstrId p = m.append_parameter(condition, 0, state);
    auto* attrs = m.make<CompareAttrs>();
    attrs->direction = Direction::LT;
    const InstrId five = m.append_constant(condition, Literal::scalar_int(Type::S32, 5));
    m[condition].root = append(m, condition, Op::COMPARE, {get(condition, p, 0), five}, attrs);
  }
  const CompId body = m.add_computation("body");
  {
    const InstrId p = m.append_parameter(body, 0, state);
    const InstrId one = m.append_constant(body, Literal::scalar_int(Type::S32, 1));
    const InstrId i = append(m, body, Op::ADD, {get(body, p, 0), one});
    const InstrId x = get(body, p, 1);
    m[body].root = append(m, body, Op::TUPLE, {i, append(m, body, Op::MULTIPLY, {x, x})});
  }
  const CompId entry = m.add_computation("main");
  m.set_entry(entry);
  const InstrId x = m.append_parameter(entry, 0, x_shape, "x");
  const InstrId zero = m.append_constant(entry, Literal::scalar_int(Type::S32, 0));
  const InstrId loop =
      append(m, entry, Op::WHILE, {append(m, entry, Op::TUPLE, {zero, x})}, nullptr, {condition, body});
  auto* along = m.make<DimensionsAttrs>();
  along->dimensions = m.dims({1});
  const InstrId init = m.append_constant(entry, Literal::scalar(Type::F32, 0));
  const InstrId reduced = append(m, entry, Op::REDUCE, {get(entry, loop, 1), init}, along, {sum});
  const InstrId big = m.append_constant(entry, Literal::zeros(Shape::array(Type::F32, {2048})));
  m[entry].root = append(m, entry, Op::TUPLE, {reduced, get(entry, loop, 0), big});
  const int64_t out[] = {0};
  m.header().aliases.push_back({m.dims(out), 0, {}, true});
  return module;
}

Program write(const Module& m, const ProgramOptions& options = {}) {
  auto program = write_program(m, options);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return *std::move(program);
}

TEST(Program, IsWalkable) {
  const auto m = sample();
  const Program program = write(*m);
  const collet_program* p = program.get();
  ASSERT_TRUE(check_program(p, p->total_bytes).ok()) << check_program(p, p->total_bytes).to_string();
  const collet_region* entry = collet_region_at(p, 0);
  EXPECT_EQ(entry->arguments.count, 2u);  // x and the large constant
  EXPECT_EQ(entry->results.count, 3u);
  ASSERT_EQ(program.constants.size(), 1u);
  EXPECT_EQ(program.constants[0].argument, 1u);
  uint32_t seen = 0;
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    const collet_op* op = collet_op_at(p, entry->ops.first + i);
    if (op->opcode == COLLET_OP_WHILE) {
      ++seen;
      EXPECT_EQ(op->operands.count, 2u);
      EXPECT_EQ(op->results.count, 2u);
      EXPECT_EQ(op->regions.count, 2u);
    }
    if (op->opcode == COLLET_OP_REDUCE) {
      ++seen;
      EXPECT_EQ(collet_region_at(p, op->regions.first)->combine, uint32_t{COLLET_COMBINE_ADD});
    }
  }
  EXPECT_EQ(seen, 2u);
}

TEST(Program, ReadAndWrittenAgainIsTheSame) {
  const auto m = sample();
  const ProgramOptions all_inline{.inline_limit = 1 << 20, .without_names = true};
  const Program first = write(*m, all_inline);
  auto again = read_program(first.block.data(), first.block.size());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  const Program second = write(*again->module, all_inline);
  ASSERT_EQ(first.block.size(), second.block.size());
  // The first program has no names of the module and its ops; the rest is equal except for the name that the reader
  // generates.
  EXPECT_EQ(*print_program(first.block.data(), first.block.size()),
            *print_program(second.block.data(), second.block.size()));
  EXPECT_EQ(0, std::memcmp(first.block.data(), second.block.data(), first.block.size()));
}

TEST(Program, NeedsNothingButItsBytes) {
  Program program = write(*sample());
  const Expected<std::string> before = print_program(program.block.data(), program.block.size());
  ASSERT_TRUE(before.ok());
  const Block copy(program.block.data(), program.block.size());
  std::memset(program.block.data(), 0xA5, program.block.size());
  EXPECT_EQ(*before, *print_program(copy.data(), copy.size()));
  EXPECT_TRUE(read_program(copy.data(), copy.size()).ok());
}

TEST(Program, TellsContentApart) {
  EXPECT_EQ(content_id(std::span("abc", 3)), content_id(std::span("abc", 3)));
  EXPECT_NE(content_id(std::span("abc", 3)), content_id(std::span("abd", 3)));
  EXPECT_NE(content_id(std::span("abc\0", 4)), content_id(std::span("abc", 3)));
  EXPECT_NE(content_id({}), content_id(std::span("", 1)));
}

// The id is the SHA-256, so equal ids cannot be made. Hashes that multiply lose the part of the state that the other
// factor meets as zero: two arrays of 8 KiB that differ in their fifth number had equal ids.
TEST(Program, IdOfContentIsASecureHash) {
  const ContentId id = content_id(std::span("abc", 3));
  const auto* bytes = reinterpret_cast<const unsigned char*>(&id);
  EXPECT_EQ(bytes[0], 0xba);
  EXPECT_EQ(bytes[1], 0x78);
  EXPECT_EQ(bytes[31], 0xad);
  std::vector<uint64_t> one(1024), other;
  const uint64_t start[] = {149643782572411146,   13503953896175478586U, 11912009170470909680U, 4710263896411059476, 1,
                            13503953896175478587U};
  std::copy(std::begin(start), std::end(start), one.begin());
  other = one;
  other[4] = 2;
  const auto span = [](const std::vector<uint64_t>& v) {
    return std::span(reinterpret_cast<const char*>(v.data()), 8 * v.size());
  };
  EXPECT_NE(content_id(span(one)), content_id(span(other)));
}

TEST(Program, RefusesDynamicDimensions) {
  Module m("m");
  const CompId c = m.add_computation("main");
  m.set_entry(c);
  const int64_t dims[] = {4};
  m[c].root = m.append_parameter(c, 0, Shape::array(Type::F32, dims, {true}));
  EXPECT_EQ(write_program(m).status().code(), Code::Unimplemented);
}

TEST(Program, ClustersHaveTheGivenInputsAndOutputs) {
  const auto m = sample();
  const Computation& entry = m->entry_computation();
  InstrId loop = InstrId::None, reduce = InstrId::None, init = InstrId::None;
  for (InstrId id : entry.order) {
    if ((*m)[id].op == Op::WHILE) loop = id;
    if ((*m)[id].op == Op::REDUCE) reduce = id;
    if ((*m)[id].op == Op::CONSTANT && (*m)[id].shape.type() == Type::F32 && (*m)[id].shape.is_scalar()) init = id;
  }
  const InstrId members[] = {init, reduce};
  const Leaf inputs[] = {{loop, 1}}, outputs[] = {{reduce, 0}};
  auto program = write_cluster(*m, {m->entry(), members, inputs, outputs, {}});
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  ASSERT_TRUE(check_program(program->block.data(), program->block.size()).ok());
  EXPECT_EQ(program->get()->ops.count, 3u);  // constant, reduce, and the add in it
  EXPECT_EQ(collet_region_at(program->get(), 0)->arguments.count, 1u);
}

// Damaged bytes are accepted or refused, but never crash the check.
TEST(Program, SurvivesDamage) {
  const Program program = write(*sample());
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Block copy(program.block.data(), program.block.size());
    const auto structural = program.get()->data.offset;
    for (int k = 0; k <= i % 3; ++k) copy.data()[random() % structural] = static_cast<char>(random());
    const size_t size = i % 5 ? copy.size() : random() % copy.size();
    auto text = print_program(copy.data(), size);
    refused += !text.ok();
    auto module = read_program(copy.data(), size);
    EXPECT_TRUE(text.ok() || !module.ok());
  }
  EXPECT_GT(refused, 5000);
}

// Readers use recursion, so deeper programs are refused, with the line, before a backend gets them.
TEST(Program, RegionsThatAreNestedTooDeeplyAreRefusedWithTheirLine) {
  const auto loops = [](int n) {
    std::string text =
        "HloModule m\nc { s = s32[] parameter(0)\n ROOT y = pred[] constant(false) }\n"
        "b0 { ROOT s = s32[] parameter(0) }\n";
    const auto loop = [](int callee) {
      return "{ s = s32[] parameter(0)\n ROOT w = s32[] while(s), condition=c, body=b" + std::to_string(callee) +
             " }\n";
    };
    for (int i = 1; i < n; ++i) text += "b" + std::to_string(i) + " " + loop(i - 1);
    return write_program(**parse_module(text + "ENTRY e " + loop(n - 1)));
  };
  const auto deepest = loops(kDeepestRegion);
  ASSERT_TRUE(deepest.ok()) << deepest.status().message();
  EXPECT_TRUE(check_program(deepest->get(), deepest->get()->total_bytes).ok());
  const auto deeper = loops(5000);
  EXPECT_EQ(deeper.status().message(),
            "line 9604: while 'w': its computation 'c' is nested too deeply, in more than 200 others");
}

}  // namespace
}  // namespace collet::hlo
