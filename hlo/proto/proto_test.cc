// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/proto/wire.h"
#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

void set_shape(wire::ShapeProto* out, Type type, std::initializer_list<int64_t> dims) {
  out->set_element_type(static_cast<int32_t>(type));
  for (int64_t d : dims) out->add_dimensions(d);
}

wire::HloInstructionProto* add(wire::HloComputationProto* to, int64_t id, const char* name, const char* opcode,
                               Type type, std::initializer_list<int64_t> dims,
                               std::initializer_list<int64_t> operands = {}) {
  auto* out = to->add_instructions();
  out->set_id(id);
  out->set_name(name);
  out->set_opcode(opcode);
  set_shape(out->mutable_shape(), type, dims);
  for (int64_t operand : operands) out->add_operand_ids(operand);
  return out;
}

// p0 * constant, where the constant lies column by column.
wire::HloModuleProto small_module() {
  wire::HloModuleProto module;
  module.set_name("small one");
  module.set_entry_computation_id(7);
  auto* entry = module.add_computations();
  entry->set_id(7);
  entry->set_name("main");
  entry->set_root_id((int64_t{7} << 32) | 3);
  const int64_t base = int64_t{7} << 32;
  add(entry, base | 1, "p0", "parameter", Type::F32, {2, 2});
  auto* constant = add(entry, base | 2, "c", "constant", Type::F32, {2, 2});
  for (auto* shape : {constant->mutable_shape(), constant->mutable_literal()->mutable_shape()}) {
    shape->clear_dimensions();
    set_shape(shape, Type::F32, {2, 2});
    shape->mutable_layout()->add_minor_to_major(0);
    shape->mutable_layout()->add_minor_to_major(1);
  }
  for (float value : {1.f, 2.f, 3.f, 4.f}) constant->mutable_literal()->add_f32s(value);
  add(entry, base | 3, "r", "multiply", Type::F32, {2, 2}, {base | 1, base | 2})
      ->mutable_metadata()
      ->set_op_name("a/b");
  return module;
}

Status refusal(const wire::HloModuleProto& module) {
  return read_proto(module.SerializeAsString()).status();
}

TEST(Proto, ReadsAModule) {
  const auto module = read_proto(small_module().SerializeAsString());
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_EQ((*module)->name(), "small one");
  const Computation& entry = (*module)->entry_computation();
  EXPECT_EQ(entry.name, "main");
  ASSERT_EQ(entry.order.size(), 3u);
  const Instruction& constant = (**module)[entry.order[1]];
  EXPECT_EQ(constant.name, "c");
  const float* values = (*module)->literal(constant).data<float>();
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{1, 3, 2, 4}));
  const Instruction& root = (**module)[entry.root];
  EXPECT_EQ(root.op, Op::MULTIPLY);
  EXPECT_EQ(root.extras->metadata->op_name, "a/b");
}

TEST(Proto, ReadsEveryMessageAroundIt) {
  const std::string plain = print_module(**read_proto(small_module().SerializeAsString()));
  wire::HloProto hlo;
  *hlo.mutable_hlo_module() = small_module();
  wire::HloSnapshot snapshot;
  *snapshot.mutable_hlo() = hlo;
  wire::HloUnoptimizedSnapshot unoptimized;
  *unoptimized.mutable_hlo_module() = small_module();
  unoptimized.add_partitions()->add_arguments()->add_f32s(1);
  for (const std::string& bytes :
       {hlo.SerializeAsString(), snapshot.SerializeAsString(), unoptimized.SerializeAsString()}) {
    const auto module = read_proto(bytes);
    ASSERT_TRUE(module.ok()) << module.status().message();
    EXPECT_EQ(print_module(**module), plain);
  }
}

TEST(Proto, FollowsTheSchedule) {
  auto wire = small_module();
  auto* entry = wire.mutable_schedule()->add_sequences();
  entry->set_key(7);
  for (int64_t id : {2, 1, 3}) entry->mutable_value()->add_instruction_ids(int64_t{7} << 32 | id);
  const auto module = read_proto(wire.SerializeAsString());
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_TRUE((*module)->header().is_scheduled);
  EXPECT_EQ((**module)[(*module)->entry_computation().order[0]].name, "c");
  entry->mutable_value()->mutable_instruction_ids()->RemoveLast();
  EXPECT_THAT(refusal(wire).message(), HasSubstr("leaves out instruction \"r\""));
}

TEST(Proto, SaysWhatIsWrongWhere) {
  const auto expect = [](auto change, const char* message) {
    wire::HloModuleProto module = small_module();
    change(module, *module.mutable_computations(0), *module.mutable_computations(0)->mutable_instructions(2));
    const Status status = refusal(module);
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  using M = wire::HloModuleProto&;
  using C = wire::HloComputationProto&;
  using I = wire::HloInstructionProto&;
  expect([](M, C, I i) { i.set_opcode("multipl"); },
         "computation \"main\": instruction \"r\": field 'opcode': there is no opcode \"multipl\"");
  expect([](M, C, I i) { i.set_operand_ids(0, 5); },
         "instruction \"r\": field 'operand_ids': there is no instruction 5");
  expect([](M, C, I i) { i.add_operand_ids(i.operand_ids(0)); }, "instruction \"r\": multiply expects 2 operands");
  expect([](M, C, I i) { i.add_called_computation_ids(9); }, "there is no computation 9");
  expect([](M, C, I i) { i.mutable_shape()->set_element_type(99); }, "instruction \"r\": field 'shape': ");
  expect([](M, C, I i) { i.mutable_shape()->set_dimensions(0, -2); }, "a size of -2");
  expect([](M, C, I i) { i.set_id(0); }, "field 'root_id'");
  expect([](M, C c, I) { c.mutable_instructions(1)->mutable_literal()->add_f32s(5); }, "has 5 elements");
  expect([](M, C c, I) { c.mutable_instructions(0)->set_parameter_number(-1); }, "instruction \"p0\": ");
  expect([](M m, C, I) { m.set_entry_computation_id(8); }, "field 'entry_computation_id'");
  expect([](M m, C, I) { *m.add_computations() = m.computations(0); }, "two have the id 7");
}

TEST(Proto, TextInAFieldStaysInTheField) {
  auto module = small_module();
  auto* root = module.mutable_computations(0)->mutable_instructions(2);
  root->set_opcode("compare");
  root->mutable_shape()->set_element_type(static_cast<int32_t>(Type::PRED));
  root->set_comparison_direction("LT, metadata={}");
  EXPECT_THAT(refusal(module).message(), HasSubstr("attribute 'direction': there is no value"));
}

TEST(Proto, RefusesOtherBytes) {
  for (const char* bytes : {"", "HloModule m", "\x0a\x03"}) EXPECT_FALSE(read_proto(bytes).ok());
  const std::string whole = small_module().SerializeAsString();
  for (size_t n = 0; n < whole.size(); ++n) (void)read_proto(whole.substr(0, n));
}

}  // namespace
}  // namespace collet::hlo
