// SPDX-License-Identifier: Apache-2.0
// Tests the choice between kernels and libraries on a fake device, whose kernels and libraries take as long as a test
// sets.
#include <collet/codegen/grid_code.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>
#include <tuple>

namespace collet::codegen {
namespace {

using std::chrono::microseconds;

class FakeDevice final : public GridDevice {
 public:
  kernel::Memory allocate(uint64_t bytes, uint64_t) override {
    if (is_full) throw kernel::Error(COLLET_RESOURCE_EXHAUSTED, "full");
    const uint64_t address = next_;
    next_ += bytes + 4096;
    memory[address] = bytes;
    return address;
  }
  void free(kernel::Memory at) noexcept override { memory.erase(at); }
  void write(kernel::Memory to, uint64_t offset, const void*, uint64_t bytes) override {
    EXPECT_TRUE(holds(to + offset, bytes)) << "a write outside";
  }
  void read(kernel::Memory, uint64_t, void*, uint64_t) override {}
  void copy(kernel::Memory, uint64_t, kernel::Memory, uint64_t, uint64_t) override {}
  Handle load_module(const std::string&, const std::string&) override { return 1; }
  void unload_module(Handle) noexcept override {}
  Handle find_kernel(Handle, const std::string&) override { return 7; }
  void launch(const Launch& what) override {
    ++kernels;
    for (uint32_t i = 0; i < what.argument_count; ++i) EXPECT_TRUE(holds(what.arguments[i], kBytes));
    std::this_thread::sleep_for(kernel_time);
  }
  std::vector<Handle> prepare(const LibraryCall&) override {
    std::vector<Handle> out;
    for (size_t i = 0; i < way_times.size(); ++i) out.push_back(100 + i);
    prepared += static_cast<int>(out.size());
    return out;
  }
  void drop_prepared(Handle) noexcept override { --prepared; }
  void launch_library(const LibraryLaunch& what) override {
    ++library_calls;
    for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(holds(what.addresses[i], kBytes));
    if (what.way == refused) throw kernel::Error(COLLET_INTERNAL, "not after all");
    std::this_thread::sleep_for(way_times.at(what.way - 100));
  }
  bool prefers_libraries() const override { return prefers; }

  bool holds(uint64_t address, uint64_t bytes) const {
    auto next = memory.upper_bound(address);
    if (next == memory.begin()) return false;
    const auto& [begin, length] = *std::prev(next);
    return address + bytes <= begin + length;
  }

  static constexpr uint64_t kBytes = 1000;  ///< bytes of each place
  std::map<uint64_t, uint64_t> memory;
  microseconds kernel_time{200};
  std::vector<microseconds> way_times;
  bool prefers = false;
  bool is_full = false;
  Handle refused = 0;  ///< a way that fails when it is started
  int kernels = 0;
  int library_calls = 0;
  int prepared = 0;

 private:
  uint64_t next_ = 4096;
};

/// Returns a plan with `count` choices between the same kernel and the same product. Each choice has its own places.
CompiledProgram program_of(uint32_t count) {
  CompiledProgram out;
  LaunchPlan& plan = out.plan;
  plan.functions = {"own"};
  plan.choices = count;
  LibraryProduct product;
  product.rows = product.columns = product.depth = 64;
  for (uint32_t i = 0; i < count; ++i) {
    Step kernel, library, choice;
    kernel.kernel.function = 0;
    kernel.kernel.blocks = 1;
    library.kind = StepKind::kLibrary;
    library.call = i;
    kernel.first_place = library.first_place = static_cast<uint32_t>(plan.places.size());
    kernel.places = library.places = 3;
    for (uint64_t p = 0; p < 3; ++p) plan.places.push_back({0, (3 * i + p) * 1024, FakeDevice::kBytes});
    plan.libraries.emplace_back(product);
    choice.kind = StepKind::kChoice;
    choice.call = i;
    choice.children = {{kernel}, {library}};
    plan.steps.push_back(choice);
  }
  return out;
}

std::vector<uint32_t> measured(FakeDevice& device, const CompiledProgram& program) {
  const detail::GridCode code(device, program, "test");
  detail::GridTuner tuner(device, code);
  tuner.measure();
  EXPECT_TRUE(device.memory.empty()) << "the tuner's memory is given back";
  EXPECT_EQ(device.prepared, 0) << "and so is what it prepared";
  return tuner.choices();
}

TEST(GridTuner, FasterLibraryIsTaken) {
  FakeDevice device;
  device.way_times = {microseconds(1000), microseconds(1)};
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{2}));
}

TEST(GridTuner, SlowerLibraryIsNotTaken) {
  FakeDevice device;
  device.way_times = {microseconds(2000)};
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{0}));
}

TEST(GridTuner, EqualChoicesAreMeasuredOnce) {
  FakeDevice device;
  device.way_times = {microseconds(1)};
  measured(device, program_of(1));
  const int once = device.kernels;
  EXPECT_EQ(measured(device, program_of(5)), (std::vector<uint32_t>{1, 1, 1, 1, 1}));
  EXPECT_LE(device.kernels - once, 2 * once);
}

TEST(GridTuner, LibraryWithoutTheProductIsNotTaken) {
  FakeDevice device;
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{0}));
  EXPECT_EQ(device.kernels, 0) << "there is nothing to compare";
}

TEST(GridTuner, PreferredLibraryIsTakenUnmeasured) {
  FakeDevice device;
  device.prefers = true;
  device.way_times = {microseconds(2000)};
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(device.library_calls, 0);
}

TEST(GridTuner, WayThatIsRefusedWhenItIsStartedIsNotTaken) {
  FakeDevice device;
  device.refused = 100;
  device.way_times = {microseconds(1), microseconds(10)};
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{2}));
}

TEST(GridTuner, WithoutMemoryToMeasureTheKernelsAreTaken) {
  FakeDevice device;
  device.is_full = true;
  device.way_times = {microseconds(1)};
  EXPECT_EQ(measured(device, program_of(1)), (std::vector<uint32_t>{0}));
}

TEST(GridTuner, ChoicesAreReadAgain) {
  FakeDevice device;
  device.way_times = {microseconds(1)};
  const CompiledProgram program = program_of(3);
  const detail::GridCode code(device, program, "test");
  detail::GridTuner first(device, code);
  first.measure();
  detail::GridTuner second(device, code);
  EXPECT_TRUE(second.read(first.text()));
  EXPECT_EQ(second.choices(), first.choices());
  for (const char* wrong : {"", "1", "1 1 1 1", "1 x 1", "1 1 -"}) {
    detail::GridTuner third(device, code);
    EXPECT_FALSE(third.read(wrong)) << "'" << wrong << "'";
    EXPECT_EQ(third.choices(), (std::vector<uint32_t>{0, 0, 0}));
  }
}

/// Returns a plan with `count` equal factorizations.
CompiledProgram factorizations(uint32_t count) {
  CompiledProgram out;
  LaunchPlan& plan = out.plan;
  LibraryFactorization eigh;
  eigh.kind = LibraryFactorization::Kind::kEigh;
  eigh.type = COLLET_TYPE_F32;
  eigh.rows = eigh.columns = 15;
  for (uint32_t i = 0; i < count; ++i) {
    Step step;
    step.kind = StepKind::kLibrary;
    step.call = i;
    step.first_place = static_cast<uint32_t>(plan.places.size());
    step.places = 3;
    for (uint64_t p = 0; p < 3; ++p) plan.places.push_back({0, (3 * i + p) * 1024, FakeDevice::kBytes});
    plan.libraries.emplace_back(eigh);
    plan.steps.push_back(step);
  }
  return out;
}

TEST(GridTuner, FastestWayOfAFactorizationIsTaken) {
  FakeDevice device;
  device.way_times = {microseconds(2000), microseconds(1), microseconds(1000)};
  EXPECT_EQ(measured(device, factorizations(1)), (std::vector<uint32_t>{2}));
  const int once = device.library_calls;
  // How often a way is called depends on the time that it takes on this machine.
  EXPECT_EQ(measured(device, factorizations(20)), std::vector<uint32_t>(20, 2));
  EXPECT_LE(device.library_calls - once, 10 * once) << "equal ones are measured once";
  device.refused = 101;
  EXPECT_EQ(measured(device, factorizations(1)), (std::vector<uint32_t>{3}));
}

TEST(GridTuner, OnlyWayOfAFactorizationIsNotMeasured) {
  FakeDevice device;
  device.way_times = {microseconds(1)};
  EXPECT_EQ(measured(device, factorizations(1)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(device.library_calls, 0);
  device.way_times = {microseconds(2000), microseconds(1)};
  device.is_full = true;
  EXPECT_EQ(measured(device, factorizations(1)), (std::vector<uint32_t>{1})) << "without memory, the first one";
  device.is_full = false;
  device.prefers = true;
  EXPECT_EQ(measured(device, factorizations(1)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(device.library_calls, 0);
}

TEST(GridCode, FactorizationsUseTheWayOfTheirNumber) {
  FakeDevice device;
  device.way_times = {microseconds(1), microseconds(1)};
  const CompiledProgram program = factorizations(2);
  for (const auto& [choices, first, second] :
       {std::tuple<std::vector<uint32_t>, uint64_t, uint64_t>{{2, 1}, 101, 100}, {{}, 100, 100}, {{9, 0}, 100, 100}}) {
    detail::GridCode code(device, program, "test");
    code.choose(choices);
    EXPECT_EQ(code.way(0), first);
    EXPECT_EQ(code.way(1), second);
  }
}

TEST(GridCode, MakesTheChoices) {
  FakeDevice device;
  device.way_times = {microseconds(1)};
  const CompiledProgram program = program_of(3);
  detail::GridCode code(device, program, "test");
  code.choose({1, 0, 9});  // there is no way number 9
  ASSERT_EQ(code.steps().size(), 3U);
  EXPECT_EQ(code.steps()[0].kind, StepKind::kLibrary);
  EXPECT_EQ(code.steps()[1].kind, StepKind::kKernel);
  EXPECT_EQ(code.steps()[2].kind, StepKind::kKernel);
  EXPECT_EQ(device.prepared, 1) << "ways that are not used are given back";
}

TEST(GridCode, WhatOnlyALibraryComputesIsRefusedWithoutIt) {
  FakeDevice device;
  CompiledProgram program;
  program.plan.libraries.emplace_back(LibraryFft{});
  Step step;
  step.kind = StepKind::kLibrary;
  program.plan.steps.push_back(step);
  detail::GridCode code(device, program, "test");
  try {
    code.choose({});
    FAIL() << "no error";
  } catch (const kernel::Error& error) {
    EXPECT_EQ(error.code(), COLLET_UNIMPLEMENTED);
  }
}

}  // namespace
}  // namespace collet::codegen
