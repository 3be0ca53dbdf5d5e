// SPDX-License-Identifier: Apache-2.0
// Tests programs whose processes mpirun starts. Skipped where MPI is not installed.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <utility>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

// Tests may run as root and on fewer cores; the processes exchange through memory.
constexpr char kMpirun[] = "timeout 240 mpirun --allow-run-as-root --oversubscribe --mca btl self,vader";
constexpr char kProgram[] = "sdk/tool/tests/processes.hlo";  // of four participants

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") != 0)
      GTEST_SKIP() << "Open MPI's mpirun is not installed (Debian: openmpi-bin)";
    // In a sandbox mpirun may not be allowed to start processes or to let them talk.
    if (std::system((std::string(kMpirun) + " -n 2 true >/dev/null 2>&1").c_str()) != 0)
      GTEST_SKIP() << "mpirun starts no processes here";
  }

  // Runs the tool in processes that mpirun starts; `variables` are theirs.
  static Ran mpirun(int processes, const std::string& arguments, const std::string& variables = "",
                    const std::string& options = "") {
    const std::string line = variables + " " + kMpirun + " -n " + std::to_string(processes) + " " + options;
    return collet(arguments, line);
  }
};

TEST_F(Mpi, ProcessesOfMpirunFindEachOther) {
  for (const char* transport : {"COLLET_TRANSPORT=mpi", ""}) {
    const Ran four =
        mpirun(4, std::string("run ") + kProgram + " --backend interpreter --compare interpreter", transport);
    EXPECT_EQ(four.code, 0) << transport << four.err;
    for (const char* participant : {"0", "1", "2", "3"})
      EXPECT_TRUE(contains(four.out, std::string("of participant ") + participant)) << four.out;
    const Ran two = mpirun(
        2, std::string("run ") + kProgram + " --backend interpreter --devices 2 --compare interpreter", transport);
    EXPECT_EQ(two.code, 0) << transport << two.err;
    EXPECT_TRUE(contains(two.out, "agrees with")) << two.out;
  }
}

TEST_F(Mpi, ProcessesOfMpichFindEachOther) {
  if (std::system("timeout 60 mpirun.mpich -n 2 true >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "MPICH's mpirun.mpich is not installed (Debian: mpich), or starts no processes here";
  const Ran ran = collet(std::string("run ") + kProgram + " --backend interpreter --compare interpreter",
                         "COLLET_TRANSPORT=mpi timeout 240 mpirun.mpich -n 4");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "of participant 3")) << ran.out;
}

TEST_F(Mpi, CollectivesOfAllSizesAreRight) {
  const Folder folder;
  const std::string file = folder / "out.json";
  const Ran ran = mpirun(3, "bench --backend interpreter --collectives --bytes 4 4194304 --repeat 1 --json " + file,
                         "COLLET_TRANSPORT=mpi");
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  const json::value report = json::parse(contents(file));
  EXPECT_EQ(report.at("transport").as_string(), "mpi");
  EXPECT_EQ(report.at("processes").as_int64(), 3);
  for (const json::value& one : report.at("collectives").as_array()) EXPECT_TRUE(one.at("right").as_bool()) << one;
}

// Arrays of several MiB travel in pieces.
TEST_F(Mpi, LargeArraysArriveInTheirOrder) {
  for (const auto& [processes, devices] : {std::pair(4, "1"), std::pair(2, "2")}) {
    const Ran ran = mpirun(processes,
                           std::string("run sdk/tool/tests/large_collectives.hlo --backend interpreter --compare "
                                       "interpreter --repeat 2 --devices ") +
                               devices,
                           "COLLET_TRANSPORT=mpi");
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
  }
}

TEST_F(Mpi, OneProcessIsAlone) {
  const Ran ran = mpirun(2, "run sdk/tool/tests/golden/add_read.hlo --backend interpreter --processes 1");
  EXPECT_EQ(ran.code, 0) << ran.err;
}

// Process 1 gets a signal after four seconds, while it runs a program again and again.
std::string with_signal(const char* signal) {
  const std::string run = "\"$0\" run sdk/tool/tests/processes.hlo --backend interpreter --devices 2 --repeat 1000000";
  return std::string("sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec timeout -s ") + signal + " 4 " + run +
         "; else exec " + run + "; fi'";
}

// mpirun ends all processes when one is killed; the others may have seen it before.
TEST_F(Mpi, KilledProcessIsNamed) {
  const Ran ran = mpirun(2, "", "COLLET_TRANSPORT=mpi", with_signal("KILL"));
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(contains(ran.err, "lost process 1 (") || contains(ran.err, "on signal 9")) << ran.err << ran.out;
}

TEST_F(Mpi, StoppedProcessIsNamedAfterTheLimit) {
  const Ran ran = mpirun(2, "", "COLLET_TRANSPORT=mpi COLLET_EXCHANGE_TIMEOUT=2", with_signal("STOP"));
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(contains(ran.err, "no answer within 2 s from process 1 (")) << ran.err << ran.out;
}

TEST_F(Mpi, WhatDoesNotFitIsTold) {
  const std::string run = std::string("run ") + kProgram + " --backend interpreter";
  for (const auto& [library, text] : {std::pair("/no/such.so", "MPI cannot be loaded; tried /no/such.so"),
                                      std::pair("libm.so.6", "is no library of MPI 3")}) {
    const Ran ran = mpirun(4, run, std::string("COLLET_TRANSPORT=mpi COLLET_MPI_LIBRARY=") + library);
    EXPECT_NE(ran.code, 0);
    EXPECT_TRUE(contains(ran.err, text)) << ran.err;
    EXPECT_TRUE(contains(ran.err, "--processes 1 runs each alone")) << ran.err;
  }
}

// The environments of launchers; there is no MPI that could be loaded.
TEST(Launcher, IsFoundInTheEnvironment) {
  for (const auto& [variables, text] :
       {std::pair("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
                  "Open MPI's mpirun has started 2 processes, of which this is 1"),
        std::pair("PMI_RANK=2 PMI_SIZE=3", "a launcher with PMI has started 3 processes, of which this is 2"),
        std::pair("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4",
                  "Slurm's srun has started 4 processes, of which this is 0")}) {
    const Ran ran = collet(std::string("run ") + kProgram + " --backend interpreter",
                           std::string("COLLET_MPI_LIBRARY=/no/such.so ") + variables);
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_TRUE(contains(ran.err, text)) << ran.err;
  }
  // A script of sbatch, a job of one process, and what is no number.
  for (const char* variables : {"SLURM_PROCID=0 SLURM_NTASKS=4", "PMI_RANK=0 PMI_SIZE=1", "PMI_RANK=x PMI_SIZE=4"}) {
    const Ran ran = collet(std::string("run ") + kProgram + " --backend interpreter --devices 4", variables);
    EXPECT_EQ(ran.code, 0) << variables << ran.err;
  }
}

// Without mpirun MPI has one process.
TEST_F(Mpi, ProcessesThatMpiHasNotStartedAreRefused) {
  const Ran ran = collet(std::string("run ") + kProgram + " --backend interpreter --processes 4",
                         "COLLET_TRANSPORT=mpi OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 "
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_TRUE(contains(ran.err, "the group has 4 processes and MPI 1")) << ran.err;
}

}  // namespace
}  // namespace collet::tool::testing
