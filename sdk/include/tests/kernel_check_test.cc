// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_match.hpp>

#include <type_traits>

#include "sdk/include/tests/kernel_fixture.h"

namespace collet::kernel {
namespace {

// Code that was written with former names compiles.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static_assert(std::is_same_v<Taken, Verdict> && std::is_same_v<Walker, RegionGraph>);
#pragma GCC diagnostic pop

const Backend* wrong = nullptr;

Backend describe_wrong() {
  Backend backend = describe();
  backend.configure = [](const Options&, Backend* mine) { *mine = *wrong; };
  return backend;
}

/// Returns the message with which open refuses a description.
std::string opened(const Backend& backend) {
  collet_host host{};
  host.struct_size = sizeof host;
  host.abi_major = COLLET_ABI_MAJOR;
  const collet_backend* table = nullptr;
  collet_backend_instance* instance = nullptr;
  collet_error error{};
  EXPECT_EQ(detail::enter<describe_wrong>(&host, &table, &error), COLLET_OK);
  collet_open_options options{};
  options.struct_size = sizeof options;
  collet_instance_info info{};
  info.struct_size = sizeof info;
  wrong = &backend;
  const collet_status status = table->open(&options, &instance, &info, &error);
  if (status == COLLET_OK) {
    table->close(instance);
    return "opened";
  }
  EXPECT_EQ(status, COLLET_FAILED_PRECONDITION);
  EXPECT_EQ(instance, nullptr);
  return error.message;
}

const auto nothing = [](Device&, const Op&) {};

TEST(KernelDescription, MistakesAreNamedAtOpen) {
  EXPECT_EQ(opened(describe()), "opened");
  const auto with = [](auto change) {
    Backend backend = describe();
    backend.kernels.resize(1);
    change(backend);
    return opened(backend);
  };
  EXPECT_EQ(with([](Backend& b) { b.open_device = nullptr; }), "Backend::open_device is empty");
  EXPECT_EQ(with([](Backend& b) {
              b.device_count = 2;
              b.open_device = [](uint32_t i) { return i == 0 ? std::make_unique<TestDevice>() : nullptr; };
            }),
            "Backend::open_device returned no device for 1");
  EXPECT_EQ(with([](Backend& b) { b.name = ""; }), "Backend::name is empty");
  EXPECT_EQ(with([](Backend& b) { b.name = "My Chip"; }),
            "Backend::name is 'My Chip': lower case letters, digits, '_', '-' and '.' are allowed");
  EXPECT_EQ(with([](Backend& b) { b.alignment = 96; }), "Backend::alignment is 96, no power of two");
  EXPECT_EQ(with([](Backend& b) { b.alignment = 0; }), "Backend::alignment is 0, no power of two");
  EXPECT_EQ(with([](Backend& b) { b.types.push_back({99, COLLET_MAY_STORE}); }),
            "Backend::types[3] is 99, no element type");
  EXPECT_EQ(with([](Backend& b) { b.more_spaces = {{"pinned_host"}, {"fast", 0, 3}}; }),
            "Backend::more_spaces[1]: alignment is 3, no power of two");
  EXPECT_EQ(with([](Backend& b) { b.more_spaces = {{std::string(32, 'x')}}; }),
            "Backend::more_spaces[0]: kind '" + std::string(32, 'x') + "' has more than 31 characters");
  EXPECT_EQ(with([](Backend& b) { b.more_spaces = {{""}}; }), "Backend::more_spaces[0]: kind is empty");
  EXPECT_EQ(with([](Backend& b) { b.kernels.push_back({COLLET_OP_DOT, f32, f32, nullptr}); }),
            "Backend::kernels[1] (dot): run is empty");
  EXPECT_EQ(with([](Backend& b) {
              b.kernels.push_back({COLLET_OP_ALL_REDUCE, f32, f32, nullptr});
              b.kernels.back().run_together = [](const std::vector<Member>&) {};
            }),
            "opened");
  EXPECT_EQ(with([](Backend& b) { b.kernels.push_back({250, f32, f32, nothing}); }),
            "Backend::kernels[1] (?): there is no op 250");
  EXPECT_EQ(with([](Backend& b) { b.kernels.push_back({COLLET_OP_CALL, f32, f32, nothing}); }),
            "Backend::kernels[1] (call): pattern is empty");
  EXPECT_EQ(with([](Backend& b) {
              b.kernels.push_back({COLLET_OP_DOT, f32, f32, nothing});
              b.kernels.back().pattern = "softmax";
            }),
            "Backend::kernels[1] (dot, pattern 'softmax'): a pattern is a row for COLLET_OP_CALL");
  EXPECT_EQ(with([](Backend& b) { b.kernels[0].features = COLLET_FEATURE_CHANNELS; }),
            "Backend::kernels[0] (add): features without a pattern");
  EXPECT_EQ(with([](Backend& b) { b.kernels[0].packing.bytes = [](const Op&) { return uint64_t{8}; }; }),
            "Backend::kernels[0] (add): packing.make is empty");
}

/// A table of rows, and the programs that it is asked about.
class KernelAnswers : public ::testing::Test {
 protected:
  detail::Answer ask(uint32_t op = 0) {
    const std::vector<uint64_t> block = w.finish(1, {});
    return detail::KernelSelector(backend, TypeSet{COLLET_TYPE_F32, COLLET_TYPE_S32}).ask(program_of(block), op);
  }
  std::string reason() {
    const detail::Answer answer = ask();
    return answer.taken ? "taken" : answer.reason;
  }
  void add_row(TypeSet types, std::function<Verdict(const Op&)> takes) {
    backend.kernels.push_back({COLLET_OP_ADD, types, types, nothing, std::move(takes)});
  }
  void add_op(uint32_t opcode) {
    const uint32_t t = w.type(COLLET_TYPE_F32, {2});
    const uint32_t x = w.argument(t);
    w.op(opcode, t, {x, x});
  }

  Backend backend;
  ProgramWriter w;
};

TEST_F(KernelAnswers, TheFirstReasonThatAFittingRowGivesIsKept) {
  add_op(COLLET_OP_ADD);
  EXPECT_EQ(reason(), "no kernel");
  add_row({COLLET_TYPE_S32}, [](const Op&) -> Verdict { return "not asked: other types"; });
  EXPECT_EQ(reason(), "no kernel for these element types");
  add_row(f32, [](const Op&) -> Verdict { return false; });
  EXPECT_EQ(reason(), "no kernel for these attributes or shapes");
  add_row(f32, [](const Op&) -> Verdict { return "only short ones"; });
  EXPECT_EQ(reason(), "only short ones");
  add_row(f32, [](const Op&) -> Verdict { return "only long ones"; });
  add_row(f32, [](const Op&) -> Verdict { return false; });
  add_row({COLLET_TYPE_S32}, nullptr);
  EXPECT_EQ(reason(), "only short ones");
  add_row(f32, nullptr);
  EXPECT_EQ(reason(), "taken");
}

TEST_F(KernelAnswers, ARowMayAskForAnExpansion) {
  add_op(COLLET_OP_ADD);
  backend.kernels.push_back(expanded(COLLET_OP_ADD, {COLLET_TYPE_S32}, {COLLET_TYPE_S32}));
  EXPECT_FALSE(ask().expand) << "other types";
  backend.kernels.push_back(expanded(COLLET_OP_ADD, f32, f32));
  EXPECT_FALSE(ask().taken);
  EXPECT_TRUE(ask().expand);
  add_row(f32, [](const Op&) -> Verdict { return "only short ones"; });
  EXPECT_TRUE(ask().expand) << "a refusal does not take it back";
  add_row(f32, nullptr);
  EXPECT_TRUE(ask().taken);
  EXPECT_FALSE(ask().expand);
}

Backend describe_expanding() {
  Backend backend = describe();
  backend.kernels.push_back(expanded(COLLET_OP_TANH, f32, f32));
  return backend;
}

TEST(KernelVerdicts, AnExpansionIsAnAnswerOfSupports) {
  const collet_backend* table = detail::Table<describe_expanding>::table();
  collet_open_options options{};
  options.struct_size = sizeof options;
  collet_instance_info info{};
  info.struct_size = sizeof info;
  collet_backend_instance* instance = nullptr;
  collet_error error{};
  ASSERT_EQ(table->open(&options, &instance, &info, &error), COLLET_OK) << error.message;
  ProgramWriter w;
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  w.op(COLLET_OP_TANH, t, {x});
  const std::vector<uint64_t> block = w.finish(1, {});
  const uint32_t id = 0;
  collet_verdict verdict{};
  EXPECT_EQ(table->supports(instance, 0, program_of(block), &id, 1, &verdict, &error), COLLET_OK) << error.message;
  EXPECT_EQ(verdict.answer, uint32_t{COLLET_EXPAND});
  table->close(instance);
}

TEST_F(KernelAnswers, PackingOfAnOperandThatIsNotThereIsNamed) {
  add_op(COLLET_OP_ADD);
  add_row(f32, nullptr);
  uint64_t bytes = 0;
  backend.kernels[0].packing = {2, [&bytes](const Op&) { return bytes; }, [](Device&, const Op&, const Array&) {}};
  const std::vector<uint64_t> block = w.finish(1, {});
  const detail::KernelSelector selector(backend, f32);
  std::vector<uint32_t> rejected;
  EXPECT_NO_THROW(detail::Planner(program_of(block), selector, 64).make(&rejected)) << "not of this op";
  bytes = 8;
  try {
    detail::Planner(program_of(block), selector, 64).make(&rejected);
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), COLLET_FAILED_PRECONDITION);
    EXPECT_STREQ(error.what(), "Backend::kernels[0] (add): packing.operand is 2, and '' has 2 operands");
  }
}

}  // namespace
}  // namespace collet::kernel
