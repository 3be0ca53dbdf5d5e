// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <thread>
#include <vector>

/// \file
/// For tests of several processes. A test starts them by fork, so it must have no threads: each process opens the emulator
/// itself. A process reports failures by its exit code and what it writes.
namespace collet::gpu::testing_only {

/// Where processes hand each other data, in memory that they share.
class Meeting {
 public:
  static constexpr uint32_t kMost = 4;       ///< processes
  static constexpr size_t kMostBytes = 256;  ///< that a process hands to the others at a time
  std::atomic<bool> someone_is_lost{false};  ///< set by the test
  std::atomic<uint32_t> counts[kMost] = {};  ///< for the test's own use

  /// Hands data of process `rank` to all of `size`, and gets those of all, by rank. Returns false if one does not come within 20 s,
  /// or is lost.
  bool exchange(uint32_t rank, uint32_t size, const void* mine, size_t bytes, void* out) {
    const uint64_t round = arrived_[rank].load() + 1;
    if (bytes != 0) std::memcpy(data_[round % 2][rank], mine, bytes);
    arrived_[rank].store(round);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (uint32_t r = 0; r < size; ++r) {
      while (arrived_[r].load() < round) {
        if (someone_is_lost.load() || std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      if (bytes != 0) std::memcpy(static_cast<char*>(out) + r * bytes, data_[round % 2][r], bytes);
    }
    return true;
  }
  /// Returns when all processes have called it.
  bool wait(uint32_t rank, uint32_t size) { return exchange(rank, size, nullptr, 0, nullptr); }

 private:
  std::atomic<uint64_t> arrived_[kMost] = {};
  char data_[2][kMost][kMostBytes] = {};
};

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const memory =
        mmap(nullptr, kMeetings * sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    meetings = static_cast<Meeting*>(memory);
    for (size_t i = 0; i < kMeetings; ++i) new (meetings + i) Meeting;
  }
  void TearDown() override {
    for (const pid_t process : processes_) {
      if (process == 0) continue;
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    munmap(meetings, kMeetings * sizeof(Meeting));
  }

  /// Starts processes; `body` runs in each with its rank.
  void start(uint32_t size, const std::function<void(uint32_t rank)>& body) {
    std::fflush(nullptr);
    for (uint32_t rank = 0; rank < size; ++rank) {
      const pid_t process = fork();
      ASSERT_GE(process, 0);
      if (process > 0) {
        processes_.push_back(process);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // GoogleTest would go on with the next test in this process.
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      std::fflush(nullptr);
      _exit(HasFailure() ? 1 : 0);
    }
  }
  // Processes are numbered in the order in which the test has started them.

  /// Waits for the end of a process, and returns its status. The test fails if that takes longer than `seconds`.
  int wait_for(uint32_t number, int seconds = 40) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    int status = -1;
    while (waitpid(processes_[number], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "process " << number << " hangs";
        return -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    processes_[number] = 0;
    return status;
  }
  void expect_good(uint32_t number) {
    const int status = wait_for(number);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << number << " failed, status " << status;
  }
  void signal_process(uint32_t number, int signal) { kill(processes_[number], signal); }
  bool is_running(uint32_t number) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(processes_[number]), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }
  void expect_killed(uint32_t number) {
    const int status = wait_for(number);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "process " << number << ", status " << status;
  }
  /// Runs `body` in so many processes, which must succeed.
  void run_in(uint32_t size, const std::function<void(uint32_t rank)>& body) {
    const auto first = static_cast<uint32_t>(processes_.size());
    start(size, body);
    for (uint32_t rank = 0; rank < size; ++rank) expect_good(first + rank);
  }

  static constexpr size_t kMeetings = 4;
  Meeting* meetings = nullptr;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace collet::gpu::testing_only
