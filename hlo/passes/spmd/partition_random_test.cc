// SPDX-License-Identifier: Apache-2.0
// Partitions random modules with random shardings: the tiles that the partitions compute must be those of the result of
// the whole module. A failure names its seed; COLLET_RANDOM_SEED=N runs that seed only and prints both modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/testing/equivalence.h"
#include "hlo/testing/inputs.h"
#include "hlo/testing/partitioned_run.h"
#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 7919 + 13) {}
  int64_t below(int64_t n) {
    return static_cast<int64_t>(mix(state_ += 0x9e3779b97f4a7c15ull) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

// Assigns mesh axes in any order to dimensions, or to none.
Sharding random_sharding(Random& random, const Shape& shape, int64_t partitions, bool exact, bool sums) {
  Sharding out;
  const auto rank = static_cast<size_t>(shape.rank());
  std::vector<std::vector<size_t>> axes(rank + 1);
  size_t count = 0;
  for (int64_t n = partitions; n > 1; n /= 2) ++count;
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  for (size_t axis : order) {
    auto d = static_cast<size_t>(random.below(static_cast<int64_t>(rank) + 1));
    if (d < rank && exact && shape.dim(static_cast<int>(d)) % (int64_t{2} << axes[d].size())) d = rank;
    axes[d].push_back(axis);
  }
  out.kind = Sharding::Kind::Tiled;
  out.iota = true;
  for (size_t i = 0; i < count; ++i) out.reshape.push_back(2);
  for (const auto& list : axes) {
    out.tile_dims.push_back(int64_t{1} << list.size());
    for (size_t axis : list) out.permutation.push_back(static_cast<int64_t>(axis));
  }
  if (!sums || axes[rank].empty() || shape.type() == Type::PRED) {
    out.last_tile_dim_replicate = true;
    return out;
  }
  // The value is unreduced along some of the axes that split nothing.
  const auto along = 1 + random.below(static_cast<int64_t>(axes[rank].size()));
  out.tile_dims.back() = int64_t{1} << along;
  out.tile_dims.push_back(int64_t{1} << (axes[rank].size() - static_cast<size_t>(along)));
  out.last_tile_dims = {Sharding::Kind::Unreduced, Sharding::Kind::Replicated};
  return out;
}

void shard(Module& module, InstrId id, Sharding sharding) {
  Extras extras = module[id].extras ? *module[id].extras : Extras();
  extras.sharding = module.keep(std::move(sharding));
  module[id].extras = module.arena().make<Extras>(extras);
}

// Checks one seed; returns an empty text if the results agree.
std::string check(uint64_t seed, bool show, bool sums) {
  testing::RandomModule options;
  options.steps = 6 + static_cast<int>(seed % 20);
  options.sizes = {1, 2, 4, 6, 8};
  std::string text = testing::random_module(seed, options);
  // Adding zeros to -0 gives +0, so partial sums cannot preserve -0. Constants and ops that distinguish the two are
  // replaced.
  const auto respell = [&](std::string_view from, std::string_view to) {
    while (sums && text.find(from) != std::string::npos) text.replace(text.find(from), from.size(), to);
  };
  respell("constant(-0)", "constant(0)");
  respell(" atan2(", " subtract(");
  auto module = parse_module(text, "random");
  if (!module.ok()) return "the generator: " + module.status().to_string();
  Random random(seed);
  const int64_t partitions = int64_t{2} << random.below(sums ? 2 : 3), replicas = random.below(8) == 0 ? 2 : 1;
  for (CompId c : std::vector<CompId>{(*module)->entry()})
    for (InstrId id : (**module)[c].order) {
      const Instruction& instr = (**module)[id];
      const bool parameter = instr.op == Op::PARAMETER;
      if (instr.shape.is_array() && (parameter || random.below(4) < (sums ? 3 : 1)))
        shard(**module, id, random_sharding(random, instr.shape, partitions, parameter, sums && random.below(2)));
    }
  if (show) std::cout << print_module(**module, {});
  const std::vector<Literal> inputs = testing::entry_inputs(**module);
  EvalOptions alone;
  alone.limits.seconds = 20;
  auto expected = Evaluator(**module, alone).run(inputs);
  if (!expected.ok()) return {};  // a module that the evaluator refuses is the subject of other tests

  PassContext context;
  context.replica_count = replicas;
  context.partition_count = partitions;
  (*module)->header().replica_count = replicas;
  (*module)->header().num_partitions = partitions;
  static constexpr std::string_view kPasses[] = {"dissolve_fusions", "flatten_tuples", "partition_spmd"};
  if (const auto changed = run_passes(**module, context, kPasses); !changed.ok())
    return "the passes: " + changed.status().to_string();
  if (show) std::cout << print_module(**module, {});
  if (Status status = verify_module(**module); !status.ok()) return "the verifier: " + status.to_string();

  return testing::compare_partitions(**module, inputs, *expected);
}

void run(uint64_t first, uint64_t count, bool sums) {
  if (const char* one = std::getenv("COLLET_RANDOM_SEED")) {
    const uint64_t seed = std::strtoull(one, nullptr, 10);
    EXPECT_EQ(check(seed, true, sums), "");
    return;
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string wrong = check(seed, false, sums);
    ASSERT_EQ(wrong, "") << "COLLET_RANDOM_SEED=" << seed;
  }
}

TEST(PartitionRandom, Partitions_ComputeTilesOfTheWhole) {
  run(1, 300, false);
}
TEST(PartitionRandom, UnreducedPartitions_ComputeTermsOfTheWhole) {
  run(1, 300, true);
}
TEST(PartitionRandomLong, Partitions_ComputeTilesOfTheWhole) {
  run(1000, 5000, false);
}
TEST(PartitionRandomLong, UnreducedPartitions_ComputeTermsOfTheWhole) {
  run(1000, 5000, true);
}

}  // namespace
}  // namespace collet::hlo
