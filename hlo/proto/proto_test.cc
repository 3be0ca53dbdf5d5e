// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "hlo/proto/wire.h"
#include "hlo/text/parser.h"
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

// The module p0 * constant, where the constant has a column-major layout.
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

TEST(Proto, AScalarIsPaddedByNothing) {
  wire::HloModuleProto module;
  module.set_name("scalars");
  module.set_entry_computation_id(7);
  auto* entry = module.add_computations();
  entry->set_id(7);
  entry->set_name("main");
  entry->set_root_id(2);
  add(entry, 1, "a", "parameter", Type::F32, {});
  add(entry, 2, "b", "pad", Type::F32, {}, {1, 1})->mutable_padding_config();
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto written = write_proto(**read);
  ASSERT_TRUE(written.ok()) << written.status().message();
  const auto again = read_proto(*written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE((**again)[(*again)->entry_computation().root].as<PadAttrs>().padding.low.empty());
}

// XlaBuilder leaves the computation's id out of references to instructions.
TEST(Proto, ReferencesMayLackTheComputationsId) {
  wire::HloModuleProto module = small_module();
  auto* entry = module.mutable_computations(0);
  entry->set_root_id(3);
  auto* product = entry->mutable_instructions(2);
  product->clear_operand_ids();
  for (int64_t operand : {1, 2}) product->add_operand_ids(operand);
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto whole = read_proto(small_module().SerializeAsString());
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(print_module(**read), print_module(**whole));
}

// If two instructions have the same lower half, the whole ids are compared.
TEST(Proto, IdsMayDifferInTheUpperHalfAlone) {
  wire::HloModuleProto module = small_module();
  auto* entry = module.mutable_computations(0);
  entry->mutable_instructions(1)->set_id((int64_t{8} << 32) | 1);
  entry->mutable_instructions(2)->set_operand_ids(1, (int64_t{8} << 32) | 1);
  EXPECT_TRUE(read_proto(module.SerializeAsString()).ok());
  entry->set_root_id(3);
  EXPECT_FALSE(read_proto(module.SerializeAsString()).ok());
}

TEST(Proto, RecordsHoldWhatExtrasSay) {
  auto text = parse_module(R"(HloModule m
f {
  x = f32[2] parameter(0)
  ROOT y = f32[2] negate(x)
}
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] custom-call(a), custom_call_target="t", backend_config="0,1,15"
  ROOT c = f32[2] call(b), to_apply=f, is_composite=true, frontend_attributes={composite.attributes={k = 1 : i32},composite.name="acme.f",composite.version="7"}
})");
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto bytes = write_proto(**text);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto module = read_proto(*bytes);
  ASSERT_TRUE(module.ok()) << module.status().message();
  const Computation& entry = (*module)->entry_computation();
  EXPECT_EQ((**module)[entry.order[1]].as<CustomCallAttrs>().config, "0,1,15");
  const auto& composite = (**module)[entry.root].as<CallAttrs>();
  EXPECT_EQ(composite.name, "acme.f");
  EXPECT_EQ(composite.attributes, "{k = 1 : i32}");
  EXPECT_EQ(composite.version, 7);
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

// Every kind of field: writing and reading a module must give the same text.
constexpr std::string_view kPieces[] = {
    "a = f32[4,4]{0,1:T(8,128)S(1)} parameter(0), sharding={devices=[2,1]<=[2]}\n"
    "ROOT d = f32[4,4]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32_x9",
    "a = f32[2,8,8,4]{3,2,1,0} parameter(0)\nb = f32[3,3,2,6]{3,2,1,0} parameter(1)\n"
    "ROOT c = f32[2,8,8,6]{3,2,1,0} convolution(a, b), window={size=3x3 pad=1_1x1_1 rhs_reversal=1x0}, "
    "dim_labels=b01f_01io->b01f, feature_group_count=2",
    "a = s32[8]{0} parameter(0)\nROOT c = s32[8]{0} custom-call(a), custom_call_target=\"f \\\"g\", "
    "custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, operand_layout_constraints={s32[8]{0}}, "
    "output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_EARLIEST, backend_config=\"\\001x\"",
    "ROOT c = s32[8]{0} custom-call(), custom_call_target=\"f\", operand_layout_constraints={}",
    "a = f32[8]{0} parameter(0), origin={{\"x\"}}\nb = f32[8]{0} exponential(a), result_accuracy={mode=highest}\n"
    "u = (f32[8]{0}) tuple(b)\nROOT t = (f32[8]{0}, (f32[8]{0})) tuple(a, u), origin={({\"x\"}, ({\"y\" {1}}))}",
    "a = s32[2,8]{1,0} parameter(0), sharding={mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}}\n"
    "ROOT g = s32[2,16]{1,0} all-gather(a), replica_groups=mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'x'}, "
    "channel_id=3, use_global_device_ids=true, dimensions={1}",
    "a = s32[2,8]{1,0} parameter(0), sharding={mesh['x'=2,'y'=4], replicated}\n"
    "ROOT b = s32[2,8]{1,0} negate(a), sharding={mesh['x'=2,'y'=4], [{'y':(2)2}, {}], unreduced={'x'}}",
    "a = s32[4]{0} parameter(0), sharding={maximal device=1 metadata={op_name=\"a\" source_line=3}}\n"
    "ROOT d = s32[4]{0} domain(a), domain={kind=\"sharding\", entry={replicated}, exit={maximal device=0}}",
    "a = s4[3]{0:E(4)} constant({-8, 7, 0})\nb = f8e4m3fn[2]{0} constant({1.5, nan})\n"
    "c = c64[2]{0} constant({(1, -0.0), (inf, 2)})\nROOT t = (s4[3]{0:E(4)}, f8e4m3fn[2]{0}, c64[2]{0}) tuple(a, b, c)",
};

TEST(ProtoWriter, WhatIsWrittenIsReadAsTheSameText) {
  for (std::string_view piece : kPieces) {
    const std::string text = "HloModule m\n\nENTRY e {\n" + std::string(piece) + "\n}\n";
    const auto module = parse_module(text, "piece");
    ASSERT_TRUE(module.ok()) << module.status().message();
    const auto bytes = write_module_proto(**module);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto again = read_proto(*bytes);
    ASSERT_TRUE(again.ok()) << again.status().message() << text;
    const auto body = [](const Module& m) {
      const std::string printed = print_module(m);
      return printed.substr(printed.find('\n'));
    };
    EXPECT_EQ(body(**again), body(**module));
  }
}

TEST(ProtoWriter, KeepsTheHeader) {
  const auto module = parse_module(
      "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, "
      "entry_computation_layout={(f32[2]{0:T(128)}, f32[2]{0})->(f32[2]{0})}, replica_count=2, num_partitions=4, "
      "frontend_attributes={a=\"b\",c={d}}\n\nFileNames\n1 \"f.py\"\n\nFunctionNames\n1 \"g\"\n\nFileLocations\n"
      "1 {file_name_id=1 function_name_id=1 line=2 end_line=3 column=4 end_column=5}\n\nStackFrames\n"
      "1 {file_location_id=1 parent_frame_id=1}\n\n\nENTRY e {\n  a = f32[2]{0:T(128)} parameter(0)\n"
      "  b = f32[2]{0} parameter(1)\n  ROOT t = (f32[2]{0}) tuple(b)\n}\n",
      "header");
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto again = read_proto(*write_module_proto(**module));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print_module(**again), print_module(**module));
}

TEST(ProtoWriter, NamesDifferThroughoutTheModule) {
  const auto module = parse_module(
      "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c.1 = f32[] add(a, b)\n}\n"
      "ENTRY e {\n  a = f32[4]{0} parameter(0)\n  b = f32[] constant(0)\n"
      "  ROOT c.1 = f32[] reduce(a, b), dimensions={0}, to_apply=add\n}\n",
      "names");
  ASSERT_TRUE(module.ok()) << module.status().message();
  wire::HloModuleProto wire;
  ASSERT_TRUE(wire.ParseFromString(*write_module_proto(**module)));
  std::set<std::string> names;
  for (const auto& computation : wire.computations())
    for (const auto& instruction : computation.instructions())
      EXPECT_TRUE(names.insert(instruction.name()).second) << instruction.name();
  EXPECT_EQ(names.size(), 6u);
}

TEST(ProtoWriter, SnapshotsHoldValues) {
  const auto module = parse_module("HloModule m\nENTRY e {\n  ROOT a = s32[2]{0} parameter(0)\n}\n", "snapshot");
  ASSERT_TRUE(module.ok());
  Snapshot values;
  const int32_t numbers[] = {3, -4};
  values.arguments.push_back(Literal::from_bytes(Shape::array(Type::S32, {2}), numbers));
  values.result = Literal::tuple({Literal::scalar(Type::BF16, 1.5), Literal::scalar(Type::PRED, 1)});
  values.platform = "cpu";
  const auto bytes = write_snapshot(**module, values);
  ASSERT_TRUE(bytes.ok());
  EXPECT_TRUE(read_proto(*bytes).ok());
  const auto again = read_snapshot_values(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_EQ(again->arguments.size(), 1u);
  EXPECT_TRUE(again->arguments[0] == values.arguments[0]);
  EXPECT_TRUE(again->result == values.result);
  EXPECT_EQ(again->platform, "cpu");
  EXPECT_FALSE(read_snapshot_values(*write_module_proto(**module)).ok());
  EXPECT_TRUE(read_proto(*write_proto(**module)).ok());
}

}  // namespace
}  // namespace collet::hlo
