// SPDX-License-Identifier: Apache-2.0
// Tests that malformed messages are refused, and what happens to parts of a module for which messages have no field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "hlo/proto/kept_text.h"
#include "hlo/proto/mesh.h"
#include "hlo/proto/proto.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

wire::HloInstructionProto* add(wire::HloComputationProto* to, int64_t id, const char* opcode,
                               std::initializer_list<int64_t> operands = {}) {
  auto* out = to->add_instructions();
  out->set_id(id);
  out->set_name("i" + std::to_string(id));
  out->set_opcode(opcode);
  out->mutable_shape()->set_element_type(static_cast<int32_t>(Type::F32));
  out->mutable_shape()->add_dimensions(8);
  for (int64_t operand : operands) out->add_operand_ids(operand);
  return out;
}

// A parameter, two negations of it, and their sum.
wire::HloModuleProto diamond() {
  wire::HloModuleProto module;
  module.set_name("m");
  module.set_entry_computation_id(1);
  auto* entry = module.add_computations();
  entry->set_id(1);
  entry->set_name("e");
  entry->set_root_id(4);
  add(entry, 1, "parameter");
  add(entry, 2, "negate", {1});
  add(entry, 3, "negate", {1});
  add(entry, 4, "add", {2, 3});
  return module;
}

std::string refusal(const wire::HloModuleProto& module) {
  const auto read = read_proto(module.SerializeAsString());
  return read.ok() ? "read" : read.status().message();
}

TEST(HostileProto, OrdersOfDevices) {
  auto module = diamond();
  module.mutable_device_assignment()->set_replica_count(1);
  module.mutable_device_assignment()->set_computation_count(4);
  for (int i = 0; i < 4; ++i) module.mutable_device_assignment()->add_computation_devices()->add_replica_device_ids(i);
  auto* sharding = module.mutable_computations(0)->mutable_instructions(0)->mutable_sharding();
  sharding->set_type(3);
  sharding->add_tile_assignment_dimensions(4);
  sharding->add_iota_reshape_dims(2);
  sharding->add_iota_reshape_dims(2);
  sharding->add_iota_transpose_perm(1);
  sharding->add_iota_transpose_perm(0);
  EXPECT_EQ(refusal(module), "read");
  for (int32_t bad : {100000000, -1, 1}) {
    sharding->set_iota_transpose_perm(1, bad);
    EXPECT_THAT(refusal(module), HasSubstr("field 'iota_transpose_perm' is no order of the dimensions"));
  }
}

TEST(HostileProto, ControlPredecessorsStandBefore) {
  auto module = diamond();
  auto* entry = module.mutable_computations(0);
  entry->mutable_instructions(2)->add_control_predecessor_ids(2);
  EXPECT_EQ(refusal(module), "read");
  for (int64_t bad : {3, 4, 99}) {
    entry->mutable_instructions(2)->set_control_predecessor_ids(0, bad);
    EXPECT_THAT(refusal(module), HasSubstr("instruction \"i3\": field 'control_predecessor_ids': there is no "
                                           "instruction " +
                                           std::to_string(bad) + " before this one"));
  }
}

TEST(HostileProto, DimensionsWithoutEnd) {
  auto module = diamond();
  for (int i = 0; i < 100000; ++i)
    module.mutable_computations(0)->mutable_instructions(0)->mutable_shape()->add_dimensions(1);
  EXPECT_THAT(refusal(module), HasSubstr("more than 64 entries"));
}

TEST(HostileProto, StatisticsThatTextCannotHave) {
  for (double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e300, 0.1}) {
    auto module = diamond();
    auto* statistics = module.mutable_computations(0)->mutable_instructions(3)->mutable_statistics_viz();
    statistics->set_stat_index_to_visualize(std::numeric_limits<int64_t>::max());
    statistics->add_statistics()->set_stat_name("flops");
    statistics->mutable_statistics(0)->set_stat_val(value);
    const auto read = read_proto(module.SerializeAsString());
    ASSERT_TRUE(read.ok()) << read.status().message();
    const std::string text = print_module(**read);
    const auto again = parse_module(text, "printed");
    ASSERT_TRUE(again.ok()) << again.status().message();
    const bool kept = std::abs(value) <= 1e300;
    EXPECT_EQ(text.find("visualizing_index=9223372036854775807,flops=") != std::string::npos, kept) << text;
    const auto written = write_module_proto(**again);
    ASSERT_TRUE(written.ok()) << written.status().message();
    wire::HloModuleProto wire;
    ASSERT_TRUE(wire.ParseFromString(*written));
    const auto& out = wire.computations(0).instructions(3).statistics_viz();
    ASSERT_EQ(out.statistics_size(), kept);
    if (kept) {
      EXPECT_EQ(out.statistics(0).stat_val(), value);
      EXPECT_EQ(out.stat_index_to_visualize(), std::numeric_limits<int64_t>::max());
    }
  }
}

TEST(HostileProto, NamesThatTextCannotHave) {
  auto module = diamond();
  auto* root = module.mutable_computations(0)->mutable_instructions(3);
  for (const char* name : {"good", "a b", "", "x\"y", "1", "\xff\n", "a=b"}) {
    for (auto* map : {root->mutable_frontend_attributes(), module.mutable_frontend_attributes()}) {
      auto* entry = map->add_map();
      entry->set_key(name);
      entry->set_value("v");
    }
  }
  auto* other = module.mutable_computations(0)->mutable_instructions(2)->mutable_frontend_attributes()->add_map();
  other->set_key("a b");
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::string text = print_module(**read);
  const auto again = parse_module(text, "printed");
  ASSERT_TRUE(again.ok()) << text << again.status().message();
  EXPECT_EQ(print_module(**again), text);
  EXPECT_THAT(text, HasSubstr("frontend_attributes={good=\"v\"}"));
  wire::HloModuleProto written;
  ASSERT_TRUE(written.ParseFromString(*write_module_proto(**read)));
  EXPECT_EQ(written.frontend_attributes().map_size(), 7);
}

TEST(HostileProto, AModuleMayHaveTheNameOfAType) {
  auto module = diamond();
  module.set_name("s16");
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto again = parse_module(print_module(**read), "printed");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->name(), "s16");
}

TEST(HostileProto, DevicesThatAreCountedAreNamed) {
  auto module = diamond();
  auto* assignment = module.mutable_device_assignment();
  assignment->set_replica_count(1 << 30);
  EXPECT_THAT(refusal(module), HasSubstr("does not name 1073741824 devices for each of 0 computations"));
  assignment->set_computation_count(1);
  EXPECT_THAT(refusal(module), HasSubstr("does not name 1073741824 devices for each of 1 computations"));
  assignment->set_replica_count(2);
  auto* devices = assignment->add_computation_devices();
  devices->add_replica_device_ids(0);
  EXPECT_THAT(refusal(module), HasSubstr("does not name 2 devices"));
  devices->add_replica_device_ids(1);
  EXPECT_EQ(refusal(module), "read");
}

TEST(HostileProto, StatisticsOfAnyText) {
  const auto read = [](std::string_view text) {
    wire::StatisticsViz out;
    const Status status = proto::statistics_to_wire(text, &out);
    if (!status.ok()) return std::string("refused");
    std::string said = std::to_string(out.stat_index_to_visualize());
    for (const auto& one : out.statistics()) said += " " + one.stat_name();
    return said;
  };
  EXPECT_EQ(read("{visualizing_index=9007199254740993,a=1}"), "9007199254740993 a");
  EXPECT_EQ(read("{a=1, visualizing_index=2}"), "0 a visualizing_index");
  EXPECT_EQ(read("{visualizing_index=1, visualizing_index=2}"), "1 visualizing_index");
  for (std::string_view bad : {"{visualizing_index=18446744073709551615}", "{visualizing_index=1e300}",
                               "{visualizing_index=0,a=3.5abc}", "{a=}", "{visualizing_index=0.5}"})
    EXPECT_EQ(read(bad), "refused") << bad;
}

TEST(HostileProto, TablesOfSourcesAreWholeOrNotThere) {
  const auto rows = [](const std::string& frame) {
    wire::StackFrameIndexProto out;
    const bool good = proto::source_tables_to_wire(
        "FileNames\n1 \"f.py\"\n\nFileLocations\n1 {file_name_id=1, line=2, column=3}\n\nStackFrames\n1 {" + frame +
            "}\n",
        &out);
    return good ? out.stack_frames(0).parent_frame_id() : INT64_MAX;
  };
  EXPECT_EQ(rows("file_location_id=1 parent_frame_id=3"), 2);
  EXPECT_EQ(rows("file_location_id=1, parent_frame_id=-2147483647"), INT32_MIN);
  EXPECT_EQ(rows("file_location_id=1 parent_frame_id=2147483648"), INT32_MAX);
  EXPECT_EQ(rows("file_location_id=1 parent_frame_id=-2147483648"), INT64_MAX);
  EXPECT_EQ(rows("file_location_id=1 parent_frame_id=-9223372036854775808"), INT64_MAX);
  EXPECT_EQ(rows("file_location_id=4294967297 parent_frame_id=1"), INT64_MAX);
  const auto module = parse_module(
      "HloModule m\n\nFileNames\n1 \"f.py\"\n\nFunctionNames\n1 \"g\"\n\nFileLocations\n"
      "1 {file_name_id=1 line=99999999999}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n\n"
      "ENTRY e {\n  ROOT b = f32[2]{0} parameter(0)\n}\n",
      "tables");
  ASSERT_TRUE(module.ok()) << module.status().message();
  wire::HloModuleProto wire;
  ASSERT_TRUE(wire.ParseFromString(*write_module_proto(**module)));
  EXPECT_FALSE(wire.has_stack_frame_index());
}

TEST(HostileProto, WhatOnlyDescribesIsLeftOutWhereItDoesNotFit) {
  for (std::string_view extra :
       {"origin={{\"a\"}{\"b\"}}", "statistics={visualizing_index=18446744073709551615,a=1.5}"}) {
    const auto module = parse_module(
        "HloModule m\nENTRY e {\n  ROOT a = f32[2]{0} parameter(0), " + std::string(extra) + "\n}\n", "text");
    ASSERT_TRUE(module.ok()) << module.status().message();
    const auto written = write_module_proto(**module);
    ASSERT_TRUE(written.ok()) << written.status().message();
    wire::HloModuleProto wire;
    ASSERT_TRUE(wire.ParseFromString(*written));
    const auto& root = wire.computations(0).instructions(0);
    EXPECT_FALSE(root.has_original_value());
    EXPECT_FALSE(root.has_statistics_viz());
  }
}

TEST(HostileProto, SingleQuotesHaveNoEscapes) {
  const auto module = parse_module(
      "HloModule m\nENTRY e {\n  a = f32[4]{0} parameter(0)\n  ROOT d = f32[4]{0} domain(a), "
      "domain={kind=\"sharding\", entry={mesh['a\\'=2], [{'a\\'}]}, exit={replicated}}\n}\n",
      "text");
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto written = write_module_proto(**module);
  ASSERT_TRUE(written.ok()) << written.status().message();
  const auto again = read_proto(*written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_THAT(print_module(**again), HasSubstr("mesh['a\\'=2], [{'a\\'}]"));
}

TEST(HostileProto, AnOutfeedWithoutAShapeHasThatOfWhatItTakes) {
  const auto parsed = parse_module(R"(
HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  ROOT out = token[] outfeed(x, t)
}
)",
                                   "m.hlo");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  wire::HloModuleProto message;
  ASSERT_TRUE(message.ParseFromString(*write_module_proto(**parsed)));
  auto* out = message.mutable_computations(0)->mutable_instructions(2);
  ASSERT_EQ(out->opcode(), "outfeed");
  out->clear_outfeed_shape();
  const auto read = read_proto(message.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(print_module(**read), HasSubstr("outfeed_shape=f32[8]"));
}

TEST(HostileProto, MetadataThatSaysNothingIsNone) {
  auto module = diamond();
  // An unknown field.
  auto* metadata = module.mutable_computations(0)->mutable_instructions(0)->mutable_metadata();
  ASSERT_TRUE(metadata->ParseFromString("\x98\x06\x01"));
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(print_module(**read), ::testing::Not(HasSubstr("metadata")));
}

TEST(HostileProto, ReplicationOfLeavesThatAreNotThereIsLeftOut) {
  auto module = diamond();
  auto* replicated = module.mutable_computations(0)->mutable_instructions(0)->mutable_parameter_replication();
  replicated->add_replicated_at_leaf_buffers(true);
  const auto fits = read_proto(module.SerializeAsString());
  ASSERT_TRUE(fits.ok()) << fits.status().message();
  EXPECT_THAT(print_module(**fits), HasSubstr("parameter_replication={true}"));
  replicated->add_replicated_at_leaf_buffers(false);
  const auto read = read_proto(module.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(print_module(**read), ::testing::Not(HasSubstr("parameter_replication")));
}

}  // namespace
}  // namespace collet::hlo
