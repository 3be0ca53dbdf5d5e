// SPDX-License-Identifier: Apache-2.0
#include <collet/command_list.hpp>
#include <collet/command_loops.hpp>
#include <collet/tiling.hpp>

#include <gtest/gtest.h>

#include <iostream>

#include "hlo/program/write.h"
#include "hlo/text/parser.h"

namespace collet::commands {
namespace {

enum Engine : uint32_t { kDma, kMatrix };

/// A device with a DMA engine and an engine that multiplies matrices of s8 into s32.
class Npu final : public Machine {
 public:
  uint64_t cycles(const Command& command) const override {
    if (command.engine == kDma) return 20 + command.reads[0].bytes * command.reads[0].rows / 16;
    const std::vector<int64_t>& v = command.values;
    return static_cast<uint64_t>((v[0] + 15) / 16 * ((v[1] + 15) / 16) * v[2]);
  }
  void run(const Command& command, const std::function<char*(const Operand&)>& at) override {
    const Operand &from = command.reads[0], &to = command.writes[0];
    if (command.engine == kDma) {
      for (uint64_t row = 0; row < from.rows; ++row) {
        std::copy_n(at(from) + row * from.pitch, from.bytes, at(to) + row * to.pitch);
      }
      return;
    }
    const auto *x = reinterpret_cast<const int8_t*>(at(from)),
               *w = reinterpret_cast<const int8_t*>(at(command.reads[1]));
    auto* y = reinterpret_cast<int32_t*>(at(to));
    const int64_t rows = command.values[0], columns = command.values[1], depth = command.values[2];
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        int32_t sum = command.values[3] != 0 ? 0 : y[m * columns + n];
        for (int64_t k = 0; k < depth; ++k) sum += x[m * depth + k] * w[k * columns + n];
        y[m * columns + n] = sum;
      }
    }
  }
};

/// Returns the operand that a place of a matrix is in its array.
Operand in_memory(uint32_t array, const tiling::Place& place, uint64_t width) {
  return in_array(array, place.offset * width, static_cast<uint64_t>(place.sizes[1]) * width,
                  static_cast<uint64_t>(place.sizes[0]), static_cast<uint64_t>(place.strides[0]) * width);
}
Operand dense(uint64_t offset, const tiling::Place& place, uint64_t width) {
  const uint64_t row = static_cast<uint64_t>(place.sizes[1]) * width;
  return in_scratchpad(offset, row, static_cast<uint64_t>(place.sizes[0]), row);
}

/// An operand of the pieces in the scratchpad: one place if it never changes, else two that alternate.
struct Room {
  uint64_t offset = 0, bytes = 0;
  bool changes = false;
  uint32_t slot = 0;
  std::vector<int64_t> begins = {};

  void measure(const tiling::Place& place) {
    bytes = std::max(bytes, (place.bytes + 3) / 4 * 4);
    changes |= !begins.empty() && begins != place.begins;
    begins = place.begins;
  }
  uint64_t end() const { return offset + bytes * (changes ? 2 : 1); }
  /// Returns true if the place is not there yet.
  bool next(const tiling::Place& place) {
    if (begins == place.begins) return false;
    begins = place.begins;
    slot = changes ? 1 - slot : 0;
    return true;
  }
  uint64_t at() const { return offset + slot * bytes; }
};

/// Writes the list of a product.
List list_of(const tiling::Tiling& tiles) {
  Room x, w, y;
  for (const tiling::Piece& piece : tiles.pieces()) {
    x.measure(piece.operands[0]);
    w.measure(piece.operands[1]);
    if (!piece.results.empty()) y.measure(piece.results[0]);
  }
  w.offset = x.end();
  y.offset = w.end();
  for (Room* room : {&x, &w, &y}) room->begins.clear();
  List list({"dma", "matrix"});
  std::vector<Command> stores;  // a store comes behind the loads of the next piece, which it would otherwise hold up
  const auto store = [&] {
    for (Command& one : stores) list.add(std::move(one));
    stores.clear();
  };
  for (const tiling::Piece& piece : tiles.pieces()) {
    const tiling::Place &from_x = piece.operands[0], &from_w = piece.operands[1];
    const bool first = piece.stage == tiling::Stage::kWhole || piece.first;
    if (x.next(from_x)) list.add({"load x", kDma, {in_memory(0, from_x, 1)}, {dense(x.at(), from_x, 1)}});
    if (w.next(from_w)) list.add({"load w", kDma, {in_memory(1, from_w, 1)}, {dense(w.at(), from_w, 1)}});
    store();
    const Operand sum = in_scratchpad(y.at(), static_cast<uint64_t>(from_x.sizes[0] * from_w.sizes[1] * 4));
    Command multiply{"multiply",
                     kMatrix,
                     {dense(x.at(), from_x, 1), dense(w.at(), from_w, 1)},
                     {sum},
                     {from_x.sizes[0], from_w.sizes[1], from_x.sizes[1], first ? 1 : 0}};
    if (!first) multiply.reads.push_back(sum);
    list.add(multiply);
    if (piece.results.empty()) continue;
    stores.push_back({"store y", kDma, {dense(y.at(), piece.results[0], 4)}, {in_memory(2, piece.results[0], 4)}});
    y.slot = y.changes ? 1 - y.slot : 0;
  }
  store();
  return list;
}

class Layer : public ::testing::Test {
 protected:
  // A layer of 8 MiB of weights on a scratchpad of 1 MiB.
  static constexpr int64_t kRows = 16, kDepth = 2048, kColumns = 4096;

  void SetUp() override {
    const auto module = hlo::parse_module(
        "HloModule m\nENTRY e {\n x = s8[16,2048] parameter(0)\n w = s8[2048,4096] parameter(1)\n"
        " ROOT y = s32[16,4096] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
    ASSERT_TRUE(module.ok());
    auto program = hlo::write_program(**module);
    ASSERT_TRUE(program.ok());
    program_ = std::move(*program);
    tiling::Limits limits;
    limits.scratchpad_bytes = 1 << 20;
    limits.rows = limits.columns = limits.depth = 16;
    limits.operand_copies = limits.result_copies = 2;
    limits.alignment = 4;
    tiles_ = std::make_unique<tiling::Tiling>(tiling::group_of_op(program_.get(), 0), limits);
    ASSERT_EQ(tiles_->complaint(), "");
  }

  hlo::Program program_;
  std::unique_ptr<tiling::Tiling> tiles_;
};

TEST_F(Layer, RunsPieceByPieceAndOverlapsLoadsWithProducts) {
  const List list = list_of(*tiles_);
  std::vector<int8_t> x(kRows * kDepth), w(kDepth * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i * 7 % 251);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i * 13 % 241 + i / 4096);
  std::vector<int32_t> y(kRows * kColumns, -1);
  std::vector<char> scratch(1 << 20);
  Npu npu;
  const Simulated done = simulate(
      npu, list, scratch,
      {reinterpret_cast<char*>(x.data()), reinterpret_cast<char*>(w.data()), reinterpret_cast<char*>(y.data())},
      {x.size(), w.size(), y.size() * 4});
  ASSERT_EQ(done.complaint, "");
  for (int64_t n = 0; n < kColumns; n += 37) {
    for (int64_t m = 0; m < kRows; ++m) {
      int32_t sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += x[static_cast<size_t>(m * kDepth + k)] * w[static_cast<size_t>(k * kColumns + n)];
      }
      ASSERT_EQ(y[static_cast<size_t>(m * kColumns + n)], sum) << m << ", " << n;
    }
  }
  EXPECT_EQ(std::count(y.begin(), y.end(), -1), 0);
  const uint64_t most = std::max(done.busy[kDma], done.busy[kMatrix]);
  std::cout << list.commands().size() << " commands, " << done.cycles << " cycles; dma " << done.busy[kDma]
            << ", matrix " << done.busy[kMatrix] << "\n";
  EXPECT_LT(done.cycles, most + most / 4);
  const std::vector<kernel::Record> records = records_of(list, done, 1000, 2, 5);
  ASSERT_EQ(records.size(), list.commands().size());
  EXPECT_EQ(records[0].name, "load x");
  EXPECT_EQ(records[0].engine, "dma");
  EXPECT_EQ(records[0].start_ns, 1000u);
  EXPECT_EQ(records[0].run_id, 5u);
  EXPECT_EQ(records[0].bytes, tiles_->pieces()[0].operands[0].bytes);
}

// Each dependency that the list found is needed.
TEST_F(Layer, DependencyThatIsLeftOut_IsReported) {
  const List list = list_of(*tiles_);
  ASSERT_EQ(complaint_of(list, 1 << 20), "");
  size_t left_out = 0;
  for (size_t i = 0; i < std::min<size_t>(list.commands().size(), 24); ++i) {
    for (size_t k = 0; k < list.commands()[i].after.size(); ++k) {
      std::vector<Command> commands = list.commands();
      commands[i].after.erase(commands[i].after.begin() + static_cast<std::ptrdiff_t>(k));
      const std::string complaint = complaint_of(List(list.engines(), commands), 1 << 20);
      EXPECT_NE(complaint.find("does not wait for command"), std::string::npos) << i << ": " << complaint;
      ++left_out;
    }
  }
  EXPECT_GT(left_out, 8u);
}

std::string complaint(std::vector<Command> commands) {
  return complaint_of(List({"dma", "matrix"}, std::move(commands)), 1024, {256});
}

TEST(CommandList, WhatIsWrong_IsNamed) {
  const Operand there = in_array(0, 0, 64), here = in_scratchpad(0, 64);
  EXPECT_EQ(complaint({{"load", 0, {there}, {here}}, {"use", 0, {here}, {}}}), "");
  EXPECT_EQ(complaint({{"load", 2, {}, {}}}), "command 0 (load) is for engine 2, which does not exist");
  EXPECT_EQ(complaint({{"load", 0, {}, {}, {}, {0}}}), "command 0 (load) waits for command 0, which is not before it");
  EXPECT_EQ(complaint({{"load", 0, {there}, {in_scratchpad(1000, 64)}}}),
            "command 0 (load) writes scratchpad[1000 + 64], beyond the 1024 bytes of the scratchpad");
  EXPECT_EQ(complaint({{"load", 0, {in_array(0, 0, 64, 4, 65)}, {here}}}),
            "command 0 (load) reads array0[0 + 64, 4 times at 65], beyond the 256 bytes of the array");
  EXPECT_EQ(complaint({{"load", 0, {there}, {here}}, {"use", 0, {in_scratchpad(32, 64)}, {}}}),
            "command 1 (use) reads scratchpad[32 + 64], of which byte 64 was not written");
  EXPECT_EQ(
      complaint({{"load", 0, {there}, {here}}, {"use", 1, {here}, {}}}),
      "command 1 (use) reads scratchpad[0 + 64] and does not wait for command 0 (load), which uses bytes 0 to 64");
  EXPECT_EQ(
      complaint({{"load", 0, {there}, {here}}, {"use", 1, {here}, {}, {}, {0}}, {"load", 0, {there}, {here}}}),
      "command 2 (load) writes scratchpad[0 + 64] and does not wait for command 1 (use), which uses bytes 0 to 64");
  // Rows of a pitch that lie between the rows of another are no conflict.
  EXPECT_EQ(complaint({{"left", 0, {}, {in_scratchpad(0, 8, 4, 16)}}, {"right", 1, {}, {in_scratchpad(8, 8, 4, 16)}}}),
            "");
  Npu npu;
  std::vector<char> scratch(64);
  EXPECT_EQ(simulate(npu, List({"dma", "matrix"}, {{"load", 0, {there}, {here}}}), scratch, {}).complaint,
            "command 0 (load) uses array 0, of which no address was given");
}

std::string all_of(const List& list) {
  return list.text() + list.json();
}

// The list of a layer does not grow with its number of tiles.
// Rows at no distance are one row, and no row may begin beyond 2^64.
TEST(CommandList, OperandsOfManyRows_AreCheckedAsAWhole) {
  constexpr uint64_t kMany = uint64_t{1} << 62;
  const Operand here = in_scratchpad(0, 64);
  EXPECT_EQ(complaint({{"load", 0, {in_array(0, 0, 64, kMany, 0)}, {here}},
                       {"use", 0, {in_scratchpad(0, 64, kMany, 0)}, {}}}),
            "");
  EXPECT_EQ(complaint({{"load", 0, {in_array(0, 0, 0, kMany, 1)}, {here}}}), "");
  EXPECT_EQ(
      complaint({{"use", 0, {in_scratchpad(0, 64, kMany, 0)}, {}}}),
      "command 0 (use) reads scratchpad[0 + 64, 4611686018427387904 times at 0], of which byte 0 was not written");
  EXPECT_EQ(complaint({{"load", 0, {}, {in_scratchpad(0, 1, kMany, 1)}}}),
            "command 0 (load) writes scratchpad[0 + 1, 4611686018427387904 times at 1], beyond the 1024 bytes of the "
            "scratchpad");
  // The third row begins at 2^64.
  EXPECT_EQ(complaint({{"load", 0, {}, {in_scratchpad(0, 64, 3, uint64_t{1} << 63)}}}),
            "command 0 (load) writes scratchpad[0 + 64, 3 times at 9223372036854775808], beyond the 1024 bytes of the "
            "scratchpad");
  EXPECT_EQ(
      complaint({{"load", 0, {in_array(0, 64, 64, 2, UINT64_MAX - 63)}, {here}}}),
      "command 0 (load) reads array0[64 + 64, 2 times at 18446744073709551552], beyond the 256 bytes of the array");
  // `add` ends as well.
  List list({"dma", "matrix"});
  list.add({"load", 0, {in_array(0, 0, 64, kMany, 0)}, {here}});
  list.add({"use", 1, {in_scratchpad(0, 64, kMany, 0)}, {}});
  EXPECT_EQ(list.commands()[1].after, std::vector<uint32_t>{0});
}

TEST_F(Layer, LoopsHoldTheTiles) {
  const List list = list_of(*tiles_);
  const LoopedList looped(list);
  EXPECT_EQ(all_of(looped.unrolled()), all_of(list));
  EXPECT_LT(looped.commands().size(), list.commands().size() / 2);
  std::cout << looped.commands().size() << " commands in place of " << list.commands().size() << "\n";
}

TEST(CommandLoops, AreFoundWithTheirSteps) {
  const auto list_with = [](int tiles) {
    List list({"dma", "matrix"});
    list.add({"load x", 0, {in_array(0, 0, 64)}, {in_scratchpad(0, 64)}});
    for (int i = 0; i < tiles; ++i) {
      const auto half = static_cast<uint64_t>(64 + i % 2 * 64), at = static_cast<uint64_t>(i);
      list.add({"load w", 0, {in_array(1, 4096 - 64 * at, 64)}, {in_scratchpad(half, 64)}});
      list.add({"multiply", 1, {in_scratchpad(0, 64), in_scratchpad(half, 64)}, {in_scratchpad(256 + 8 * at, 8)}, {3}});
    }
    return list;
  };
  for (const int tiles : {0, 1, 5, 20, 21, 60}) {
    const List list = list_with(tiles);
    EXPECT_EQ(all_of(LoopedList(list).unrolled()), all_of(list)) << tiles;
  }
  const LoopedList small(list_with(20)), large(list_with(60));
  EXPECT_EQ(small.commands().size(), large.commands().size());
  ASSERT_EQ(large.loops().size(), 1u);
  EXPECT_EQ(large.loops()[0].length, 4u);
  EXPECT_EQ(large.loops()[0].steps, (std::vector<int64_t>{0, 0, 16, -128, 0, 0, 0, 16, -128, 0}));
  EXPECT_NE(large.text().find(" times:\n  "), std::string::npos) << large.text();
  EXPECT_NE(large.json().find("\"steps\": [0, 0, 16, -128, 0, 0, 0, 16, -128, 0]"), std::string::npos) << large.json();
}

// A product whose rows are loops of the same length: the list does not grow with either number.
TEST(CommandLoops, AreNested) {
  const auto list_with = [](int rows, int columns) {
    List list({"dma", "matrix"});
    for (int m = 0; m < rows; ++m) {
      const auto row = static_cast<uint64_t>(m);
      list.add({"load x", 0, {in_array(0, 4096 * row, 64)}, {in_scratchpad(0, 64)}});
      for (int n = 0; n < columns; ++n) {
        const auto column = static_cast<uint64_t>(n);
        list.add({"load w", 0, {in_array(1, 64 * column, 64)}, {in_scratchpad(64, 64)}});
        list.add({"multiply", 1, {in_scratchpad(0, 128)}, {in_scratchpad(128, 8)}, {3}});
        list.add({"store", 0, {in_scratchpad(128, 8)}, {in_array(2, 1024 * row + 8 * column, 8)}});
      }
    }
    return list;
  };
  const LoopedList looped(list_with(20, 30));
  EXPECT_EQ(all_of(looped.unrolled()), all_of(list_with(20, 30)));
  EXPECT_EQ(looped.commands().size(), LoopedList(list_with(60, 90)).commands().size());
  EXPECT_LE(looped.commands().size(), 20u);
  bool nested = false;
  for (size_t i = 1; i < looped.loops().size(); ++i) {
    const Loop &outer = looped.loops()[i - 1], &inner = looped.loops()[i];
    if (inner.first >= outer.first + outer.length) continue;
    nested = true;
    EXPECT_LE(inner.first + inner.length, outer.first + outer.length);
    EXPECT_GE(outer.count, 18u);
    EXPECT_GE(inner.count, 28u);
  }
  EXPECT_TRUE(nested) << looped.text();
  EXPECT_NE(looped.text().find(" times:\n    dma load w"), std::string::npos) << looped.text();
  EXPECT_NE(looped.text().find("; "), std::string::npos) << looped.text();
  for (const int rows : {0, 1, 2, 3, 7}) {
    const List list = list_with(rows, 4);
    EXPECT_EQ(all_of(LoopedList(list).unrolled()), all_of(list)) << rows;
  }
}

// One pass that differs in anything but constant steps is outside of the loop.
TEST(CommandLoops, EndWhereSomethingDiffers) {
  const auto list_with = [](const std::function<void(Command*)>& change) {
    List list({"dma", "matrix"});
    for (uint32_t i = 0; i < 16; ++i) {
      Command one{"load", 0, {in_array(0, 64 * i, 64)}, {in_scratchpad(64 * i, 64)}, {1}, {}};
      if (i == 8) change(&one);
      list.add(one);
    }
    return list;
  };
  const std::function<void(Command*)> changes[] = {
      [](Command* one) { one->name = "other"; },      [](Command* one) { one->engine = 1; },
      [](Command* one) { one->values = {2}; },        [](Command* one) { one->reads[0].offset += 8; },
      [](Command* one) { one->reads[0].bytes = 32; }, [](Command* one) { one->reads[0].base = 1; },
      [](Command* one) { one->writes[0].rows = 0; },  [](Command* one) { one->writes[0].pitch = 8; },
      [](Command* one) { one->after = {0}; },
  };
  EXPECT_EQ(LoopedList(list_with([](Command*) {})).commands().size(), 1u);
  for (const auto& change : changes) {
    const List list = list_with(change);
    const LoopedList looped(list);
    EXPECT_EQ(all_of(looped.unrolled()), all_of(list));
    EXPECT_GE(looped.commands().size(), 3u);
    EXPECT_EQ(looped.loops().size(), 2u);
  }
}

TEST(CommandList, Add_WaitsForWhatItNeedsOnly) {
  List list({"dma", "matrix", "vector"});
  list.add({"load a", 0, {in_array(0, 0, 64)}, {in_scratchpad(0, 64)}});
  list.add({"load b", 0, {in_array(0, 64, 64)}, {in_scratchpad(64, 64)}});
  list.add({"add", 1, {in_scratchpad(0, 64), in_scratchpad(64, 64)}, {in_scratchpad(128, 64)}, {7}});
  list.add({"scale", 2, {in_scratchpad(128, 64), in_scratchpad(0, 64)}, {in_scratchpad(0, 64)}});
  EXPECT_EQ(list.text(),
            "0: dma load a reads array0[0 + 64] writes scratchpad[0 + 64]\n"
            "1: dma load b reads array0[64 + 64] writes scratchpad[64 + 64]\n"
            "2: matrix add reads scratchpad[0 + 64], scratchpad[64 + 64] writes scratchpad[128 + 64] with 7 after 1\n"
            "3: vector scale reads scratchpad[128 + 64], scratchpad[0 + 64] writes scratchpad[0 + 64] after 2\n");
  EXPECT_EQ(List({"a"}, {{"x \"1\"\n", 0, {in_array(3, 4, 5, 6, 7)}, {in_scratchpad(8, 9)}, {-1, 2}, {}}}).json(),
            "{\"engines\": [\"a\"],\n \"commands\": [\n  {\"name\": \"x \\\"1\\\"\\u000a\", \"engine\": 0, \"reads\": "
            "[{\"array\": 3, \"offset\": 4, \"bytes\": 5, \"rows\": 6, \"pitch\": 7}], \"writes\": [{\"array\": null, "
            "\"offset\": 8, \"bytes\": 9, \"rows\": 1, \"pitch\": 0}], \"values\": [-1, 2], \"after\": []}]}\n");
  list.add({"bad", 9, {}, {}});
  EXPECT_EQ(complaint_of(list, 1024), "command 4 (bad) is for engine 9, which does not exist");
}

}  // namespace
}  // namespace collet::commands
