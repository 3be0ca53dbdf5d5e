// SPDX-License-Identifier: Apache-2.0
// Partitions programs of JAX for several devices, and checks what their partitions compute and how many bytes their
// collectives move.
//
// testdata/programs/NAME.hlo is a program as JAX produces it. If it has manual computations, which one device cannot
// run, NAME.reference.hlo computes the same without them. testdata/bytes.tsv has a line per program: the name, and the
// bytes that one participant sends in the first version of this partitioner, in the present version, and in XLA's
// (jaxlib 0.10.2 on 8 CPU devices; the same function counts the bytes of its compiled module). COLLET_UPDATE_GOLDENS=1
// rewrites the column of the present version.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "hlo/passes/pipeline.h"
#include "hlo/passes/spmd/traffic.h"
#include "hlo/testing/equivalence.h"
#include "hlo/testing/golden.h"
#include "hlo/testing/partitioned_run.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

const std::string kFolder = "hlo/passes/spmd/testdata/";

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

/// One line of bytes.tsv.
struct Row {
  double first = 0, present = 0, xla = 0;
};

std::map<std::string, Row> read_rows(const std::string& path) {
  std::map<std::string, Row> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name;
    Row row;
    fields >> name >> row.first >> row.present >> row.xla;  // missing columns stay 0
    rows[name] = row;
  }
  return rows;
}

// Returns the number of partitions from the devices that the shardings of a module name, for modules whose header does
// not state it.
int64_t partitions_of(const Module& module) {
  int64_t most = std::max<int64_t>(module.header().num_partitions, 1);
  if (most > 1) return most;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      const Extras* extras = module[id].extras;
      if (!extras || !extras->sharding) continue;
      std::vector<Sharding> all = extras->sharding->elements;
      all.push_back(*extras->sharding);
      for (const Sharding& s : all) {
        int64_t tiles = 1;
        for (int64_t n : s.tile_dims) tiles *= n;
        most = std::max(most, tiles);
      }
    }
  return most;
}

PassContext context_of(const Module& module) {
  PassContext context;
  context.replica_count = std::max<int64_t>(module.header().replica_count, 1);
  context.partition_count = module.header().num_partitions;
  return context;
}

Status partition(Module& module) {
  PassContext context = context_of(module);
  COLLET_TRY(spmd_partition(module, context).status());
  return verify_module(module);
}

// Checks that propagation alone returns a valid module that a second run leaves unchanged; returns the error, or an
// empty text.
std::string propagated_twice(const Module& whole) {
  const auto module = whole.clone();
  PassContext context = context_of(*module);
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  const auto first = spmd_propagate(*module, context, observer);
  if (!first.ok()) return first.status().to_string();
  const std::string text = print_module(*module, {});
  auto again = parse_module(text);
  if (!again.ok()) return again.status().to_string();
  const auto second = spmd_propagate(**again, context, observer);
  if (!second.ok()) return second.status().to_string();
  return print_module(**again, {}) == text ? "" : "a second run changes the shardings of\n" + text;
}

// Returns the bytes that the collectives of the partitioned module move after simplification, as it would run.
Expected<double> bytes_of(const Module& partitioned) {
  const auto module = partitioned.clone();
  PassContext context = context_of(*module);
  COLLET_TRY(prepare(*module, context).status());
  return spmd::collective_traffic(*module).total();
}

TEST(Programs, PartitionsComputeTheWholeAndSendNoMoreThanRecorded) {
  std::map<std::string, Row> rows = read_rows(kFolder + "bytes.tsv");
  const bool update = std::getenv("COLLET_UPDATE_GOLDENS") != nullptr;
  const char* only = std::getenv("COLLET_PROGRAM");  // runs and prints this program only
  std::set<std::string> seen;
  for (const std::string& path : testing::golden_files(kFolder + "programs")) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (name.ends_with(".reference") || (only && name != only)) continue;
    SCOPED_TRACE(name);
    seen.insert(name);
    auto whole = parse_module(read_file(path), name);
    ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    const auto partitioned = (*whole)->clone();
    const Status status = partition(*partitioned);
    ASSERT_TRUE(status.ok()) << status.to_string();
    if (only) std::cout << print_module(*partitioned, {});
    EXPECT_EQ(propagated_twice(**whole), "");

    const std::string reference = kFolder + "programs/" + name + ".reference.hlo";
    if (std::filesystem::exists(reference)) {
      whole = parse_module(read_file(reference), name);
      ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    }
    const std::vector<Literal> inputs = testing::entry_inputs(**whole);
    const auto expected = Evaluator(**whole).run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();
    EXPECT_EQ(testing::compare_partitions(*partitioned, inputs, *expected), "");

    const auto measured = bytes_of(*partitioned);
    ASSERT_TRUE(measured.ok()) << measured.status().to_string();
    const double bytes = *measured;
    if (update && !rows.contains(name)) rows[name].first = bytes;
    ASSERT_TRUE(rows.contains(name)) << "testdata/bytes.tsv has no line for it";
    Row& row = rows[name];
    EXPECT_LE(bytes, row.first * (1 + 1e-9)) << "more than the first version sent";
    if (update) row.present = bytes;
    EXPECT_NEAR(bytes, row.present, 1e-3 * row.present + 0.5);
  }
  if (only) return;
  for (const auto& [name, row] : rows) EXPECT_TRUE(seen.contains(name)) << name << " has no program";
  if (!update) return;
  std::ofstream out(kFolder + "bytes.tsv");
  out << "# program\tfirst\tpresent\txla\n";
  for (const auto& [name, row] : rows)
    out << name << '\t' << std::llround(row.first) << '\t' << std::llround(row.present) << '\t' << std::llround(row.xla)
        << '\n';
}

// Partitions modules of XLA's tests that have shardings; COLLET_CORPUS_DIR names the folder of the corpus. Modules that
// cannot be partitioned are skipped. COLLET_SPMD_TABLE names a file to which a line per partitioned module is written.
TEST(ProgramsCorpus, PartitionsSendNoMoreThanRecorded) {
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (!corpus) GTEST_SKIP() << "COLLET_CORPUS_DIR is not set";
  const std::map<std::string, Row> rows = read_rows(kFolder + "corpus_bytes.tsv");
  std::map<std::string, double> all;
  for (const std::string& path : testing::golden_files(std::string(corpus) + "/xla-tests")) {
    const std::string text = read_file(path);
    if (text.find("sharding=") == std::string::npos) continue;
    auto module = parse_module(text, "corpus");
    if (!module.ok()) continue;
    if (!verify_module(**module).ok()) continue;
    (*module)->header().num_partitions = partitions_of(**module);
    if ((*module)->header().num_partitions < 2 || (*module)->header().num_partitions > 64) continue;
    const std::string name = std::filesystem::path(path).stem().string();
    SCOPED_TRACE(name);
    const Status status = partition(**module);
    const auto row = rows.find(name);
    if (!status.ok()) {
      EXPECT_TRUE(row == rows.end()) << status.to_string();
      continue;
    }
    const auto measured = bytes_of(**module);
    ASSERT_TRUE(measured.ok()) << measured.status().to_string();
    const double bytes = all[name] = *measured;
    if (row == rows.end()) continue;
    EXPECT_LE(bytes, std::max(row->second.first, row->second.present) * (1 + 1e-9)) << "more than recorded";
  }
  if (const char* table = std::getenv("COLLET_SPMD_TABLE")) {
    std::ofstream out(table);
    for (const auto& [name, bytes] : all) out << name << '\t' << std::llround(bytes) << '\n';
  }
}

}  // namespace
}  // namespace collet::hlo

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // `--traffic FILE...` prints the bytes that compiled modules move, for the column of XLA in bytes.tsv.
  if (argc > 2 && std::string_view(argv[1]) == "--traffic") {
    for (int i = 2; i < argc; ++i) {
      auto module = collet::hlo::parse_module(collet::hlo::read_file(argv[i]), argv[i]);
      if (!module.ok()) {
        std::cout << argv[i] << "\t" << module.status().to_string() << "\n";
        continue;
      }
      const auto t = collet::hlo::spmd::collective_traffic(**module);
      std::cout << argv[i] << "\t" << t.total() << "\t(all-reduce " << t.all_reduce << ", all-gather " << t.all_gather
                << ", reduce-scatter " << t.reduce_scatter << ", all-to-all " << t.all_to_all << ", permute "
                << t.permute << ")\n";
    }
    return 0;
  }
  return RUN_ALL_TESTS();
}
