// SPDX-License-Identifier: Apache-2.0
// Compares compiled random kernels, from fixed seeds, with the evaluator: both must leave the same bytes in memory.

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_transform.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/actions.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/neighbours.h"
#include "sdk/codegen/testing/kernel_harness.h"
#include "sdk/codegen/testing/random_kernels.h"

namespace collet::codegen {
namespace {

class RandomKernelsTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, RandomKernelsTest, ::testing::Values(128, 256, 512));

void compare_random_kernels(const Target& target, int count) {
  std::unique_ptr<Jit> jit;
  const Status made = Jit::create(target, jit);
  ASSERT_TRUE(made.ok()) << made.message();
  RandomKernels generator(static_cast<uint64_t>(target.vector_bits));
  std::vector<KernelCase> cases;
  for (int i = 0; i < count; ++i) {
    Kernel kernel = generator.next();
    const Status verified = verify_kernel(kernel);
    ASSERT_TRUE(verified.ok()) << verified.message() << "\n" << print_kernel(kernel);
    Kernel again;
    ASSERT_TRUE(parse_kernel(print_kernel(kernel), again).ok()) << print_kernel(kernel);
    ASSERT_TRUE(again == kernel) << print_kernel(kernel);
    if (i % 2 == 0) collapse_loops(kernel);
    choose_lanes(kernel, target);
    const Status scheduled = verify_kernel(kernel);
    ASSERT_TRUE(scheduled.ok()) << scheduled.message() << "\n" << print_kernel(kernel);
    cases.push_back({"random " + std::to_string(i), std::move(kernel), Fill::kSmall, {}});
  }
  compare_with_evaluator(*jit, cases);
}

/// Schedules a kernel, whose lanes are chosen, at random: the results must not depend on what a rule would find worth it.
class RandomSchedules {
 public:
  explicit RandomSchedules(uint64_t seed) : random_(seed) {}

  void change(Kernel& k) {
    constexpr int64_t kMostUnrolled = 40;
    if (chance() && inner_points(k) <= kMostUnrolled) {
      for (size_t l = k.outer; l < k.loops.size(); ++l) k.loops[l].kind = LoopKind::kUnroll;
    }
    for (size_t l = 0; l < k.outer; ++l) {
      if (!chance() || (l == k.lane_loop && k.lanes > 1)) continue;
      k.loops[l].kind = LoopKind::kInterleave;
      k.loops[l].factor = 2 + static_cast<int>(random_() % 3);
    }
    const KernelPasses passes(k);
    if (chance()) {
      for (int i = 0; i <= passes.last(); ++i) {
        // Only passes that reduce have more lanes than the kernel, and only the others have vectors together.
        bool reduces = false;
        for (size_t r = 0; r < k.reductions.size(); ++r) reduces = reduces || passes.reduction_pass(r) == i;
        const int times = 1 << random_() % 3;
        const bool widens = reduces && passes.lanes_inside();
        k.passes.push_back({k.lanes * (widens ? times : 1), widens ? 1 : times});
      }
    }
    for (size_t e = 0; e < k.exprs.size() && passes.last() > 0; ++e) {
      if (k.exprs[e].op == ExprOp::kOp && passes.level_of(static_cast<ExprId>(e)) == k.loops.size() && chance())
        k.kept.push_back(static_cast<ExprId>(e));
    }
  }

 private:
  bool chance() { return random_() % 2 == 0; }

  std::mt19937_64 random_;
};

/// COLLET_RANDOM_KERNELS sets how many kernels are compared, from other seeds than by default.
TEST_P(RandomKernelsTest, ScheduledAtRandom_LeaveWhatTheEvaluatorDoes) {
  constexpr int64_t kAtATime = 300;
  const char* const more = std::getenv("COLLET_RANDOM_KERNELS");
  const int64_t count = more ? std::atoll(more) : kAtATime;
  const uint64_t seed = more ? std::random_device()() : 7;
  const Target target = machine_of(GetParam());
  RandomKernels generator(static_cast<uint64_t>(target.vector_bits) + seed);
  RandomSchedules schedules(seed);
  int64_t refused = 0;
  for (int64_t done = 0; done < count && !HasFailure(); done += kAtATime) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::unique_ptr<Jit> jit;
    ASSERT_TRUE(Jit::create(target, jit).ok());
    std::vector<KernelCase> cases;
    for (int64_t i = 0; i < kAtATime; ++i) {
      Kernel kernel = generator.next();
      if (i % 2 == 0) collapse_loops(kernel);
      kernel.in_parts = i % 5 == 0;
      if (i % 3 != 0) choose_lanes(kernel, target);
      schedules.change(kernel);
      if (verify_kernel(kernel).ok()) {
        cases.push_back({"random schedule " + std::to_string(i), std::move(kernel), Fill::kSmall, {}});
      } else {
        ++refused;
      }
    }
    compare_scheduled(*jit, cases);
  }
  EXPECT_LT(refused, std::max(count, kAtATime) * 3 / 4);
}

/// What a search measures: all schedules near those of the rules, of kernels with few, and some of the others'.
TEST_P(RandomKernelsTest, NearTheRules_LeaveWhatTheEvaluatorDoes) {
  constexpr int kKernels = 40;
  constexpr size_t kOfEach = 4;
  const Target target = machine_of(GetParam());
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(target, jit).ok());
  RandomKernels generator(static_cast<uint64_t>(target.vector_bits) + 11);
  std::mt19937_64 random(11);
  std::vector<KernelCase> cases;
  for (int i = 0; i < kKernels; ++i) {
    Kernel kernel = generator.next();
    collapse_loops(kernel);
    kernel.in_parts = i % 5 == 0;
    choose_lanes(kernel, target);
    schedule_for(kernel, target);
    std::vector<std::string> near = neighbour_schedules(kernel, target);
    EXPECT_EQ(std::count(near.begin(), near.end(), print_actions(kernel)), 0);
    std::shuffle(near.begin(), near.end(), random);
    if (near.size() > kOfEach) near.resize(kOfEach);
    for (const std::string& actions : near) {
      Kernel changed = kernel;
      const Status applied = apply_actions(actions, changed);
      ASSERT_TRUE(applied.ok()) << actions << ": " << applied.message();
      cases.push_back({"kernel " + std::to_string(i) + ": " + actions, std::move(changed), Fill::kSmall, {}});
    }
  }
  EXPECT_GT(cases.size(), size_t{kKernels} * 3);
  compare_scheduled(*jit, cases);
}

TEST_P(RandomKernelsTest, Compiled_LeaveWhatTheEvaluatorDoes) {
  compare_random_kernels(machine_of(GetParam()), 150);
}

/// On a machine with tiny caches, results go past them, whether the buffers are aligned or not.
TEST_P(RandomKernelsTest, StoresPastTheCaches_LeaveWhatTheEvaluatorDoes) {
  Target target = machine_of(GetParam());
  target.second_cache = 1;
  compare_random_kernels(target, 100);
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(target, jit).ok());
  std::vector<KernelCase> cases;
  const char* const bodies[] = {
      "outer i0: 1000\n%0 = load f32 b0[i0]\nstore b1[i0], %0\n",
      "outer i0: 7\nouter i1: 64\n%0 = load f32 b0[64*i0 + i1]\nstore b1[128*i0 + i1 + 64], %0\n",
      "outer i0: 7\nouter i1: 64\n%0 = load f32 b0[64*i0 + i1]\nstore b1[66*i0 + i1], %0\n",
      "outer i0: 500\n%0 = load f64 b0[i0]\nstore b1[i0], %0\n",
      "outer i0: 4099\n%0 = load u8 b0[i0]\nstore b1[i0], %0\n",
      "outer i0: 333\n%0 = load bf16 b0[i0]\n%1 = convert f32 %0\nstore b1[i0], %1\n"};
  int bypassing = 0;
  for (const char* body : bodies) {
    Kernel kernel;
    const Status read = parse_kernel(std::string("kernel (2 buffers) {\n") + body + "}", kernel);
    ASSERT_TRUE(read.ok()) << read.message() << body;
    choose_lanes(kernel, machine_of(GetParam()));
    bypassing += bypasses_caches(kernel, kernel.stores[0], target) ? 1 : 0;
    for (int i = 0; i < 2; ++i) cases.push_back({body, kernel, Fill::kSmall, {}});  // aligned, and not
  }
  EXPECT_EQ(bypassing, 4) << "not rows that are not aligned, nor bytes, whose vectors are short";
  compare_with_evaluator(*jit, cases);
}

TEST_P(RandomKernelsTest, ScanOfOneElement_KeepsItsLoop) {
  Kernel kernel;
  const Status read = parse_kernel(R"(kernel (2 buffers) {
    outer i0: 37
    inner i1: 1
    %0 = load f32 b0[i0 + i1]
    scan add f32 %0 init identity
    %1 = scanned f32 result 0
    store b1[i0 + i1], %1
  })",
                                   kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  collapse_loops(kernel);
  choose_lanes(kernel, machine_of(GetParam()));
  const Status verified = verify_kernel(kernel);
  ASSERT_TRUE(verified.ok()) << verified.message();
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  compare_with_evaluator(*jit, {{"scan of one element", kernel, Fill::kSmall, {}}});
}

TEST_P(RandomKernelsTest, FoldsOfNothing_GiveTheIdentityOfTheType) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  std::vector<KernelCase> cases;
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    for (const char* combine : {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}) {
      const std::string name = collet_type_name(type);
      const std::string text = "kernel (2 buffers) {\nouter i0: 5\ninner i1: 9\n%0 = load " + name +
                               " b0[9*i0 + i1]\n%1 = in_range (i1) below 0\nr0 = reduce " + combine + " " + name +
                               " %0 init identity if %1\n%2 = reduced " + name + " r0 result 0\nstore b1[i0], %2\n}";
      Kernel kernel;
      // The type does not exist, or the combination does not have it.
      if (!parse_kernel(text, kernel).ok() || !verify_kernel(kernel).ok()) continue;
      choose_lanes(kernel, machine_of(GetParam()));
      cases.push_back({std::string(combine) + " of " + name, kernel, Fill::kSmall, {}});
    }
  }
  EXPECT_GT(cases.size(), 80U);
  compare_with_evaluator(*jit, cases);
}

}  // namespace
}  // namespace collet::codegen
