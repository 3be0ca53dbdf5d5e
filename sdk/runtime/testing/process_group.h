// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <collet/folder_store.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

/// \file
/// For tests of several processes. A test starts them itself, by fork before any thread exists; a process reports its failures
/// through its exit code and what it writes to stderr.

namespace collet::testing {

/// Returns a program of `x = s32[8]`, with these instructions and the computation `sum`.
inline std::string program(const std::string& entry, const std::string& header = "HloModule m, replica_count=4\n") {
  return header + combiner("sum", "add", "s32") + "ENTRY e {\n  x = s32[8] parameter(0)\n  " + entry + "\n}";
}

/// One process of a group, with a client that has joined the others.
class Member : public Session {
 public:
  Member(const std::string& folder, uint32_t number, uint32_t count)
      : rank(number), size(count), store_(folder, number) {}

  /// Opens a client and joins the group; null if that fails, and `failure` says why.
  /// `store`: another one than the folder's. `control`: of the backend, see Session::open.
  ClientPtr join(const std::string& backend = "interpreter", uint32_t devices = 1, uint32_t timeout_ms = 20000,
                 const collet_store* store = nullptr, const void* control = nullptr) {
    const bool named = backend == "cpu" || backend == "interpreter";
    ClientPtr client = open(named ? backend : test_backend(backend), named ? "none" : "interpreter", control, devices);
    if (!client) return client;
    collet_processes group{};
    group.struct_size = sizeof group;
    group.rank = rank;
    group.size = size;
    group.timeout_ms = timeout_ms;
    group.store = store ? store : store_.store();
    collet_error error{};
    failure.code = collet_client_join(client.get(), &group, &error);
    failure.message = failure.code == COLLET_OK ? "" : error.message;
    if (failure.code != COLLET_OK) client.reset();
    return client;
  }

  /// Uploads argument x of each of this process's `devices`: element i of participant p's is 100 p + i.
  std::vector<BufferPtr> arguments(collet_client* client, uint32_t devices, uint32_t first, int64_t elements = 8) {
    std::vector<BufferPtr> out;
    for (uint32_t d = 0; d < devices; ++d) {
      std::vector<int32_t> x(static_cast<size_t>(elements));
      std::iota(x.begin(), x.end(), static_cast<int32_t>(100 * (first + d)));
      out.push_back(upload(client, {COLLET_TYPE_S32, 1, &elements}, x.data(), d));
    }
    return out;
  }

  /// Runs a program with one result and returns the results of the participants of this process.
  std::vector<std::vector<int32_t>> results(collet_executable* e, const std::vector<BufferPtr>& in) {
    std::vector<std::vector<int32_t>> out;
    for (const BufferPtr& buffer : run(e, in)) {
      out.push_back(download<int32_t>(buffer));
      if (failure.code != COLLET_OK) return {};
    }
    return out;
  }

  const uint32_t rank, size;
  const collet_store* store() const { return store_.store(); }

 private:
  FolderStore store_;
};

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "collet_processes_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    for (const pid_t process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  /// Starts the processes; `body` runs in each.
  void start(uint32_t size, const std::function<void(Member&)>& body) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      const pid_t process = fork();
      ASSERT_GE(process, 0);
      if (process > 0) {
        processes_.push_back(process);
        continue;
      }
      {
        Member member(folder_, rank, size);
        body(member);
      }
      std::fflush(nullptr);
      _exit(HasFailure() ? 1 : 0);
    }
  }

  /// Waits for a process; it must have ended without a failure of the test within so many seconds.
  void expect_good(uint32_t rank, int seconds = 30) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    int status = 0;
    pid_t done = 0;
    while ((done = waitpid(processes_[rank], &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(done, processes_[rank]) << "process " << rank << " hangs";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << rank << " failed, status " << status;
  }
  /// Runs `body` in so many processes, which must succeed.
  void run_in(uint32_t size, const std::function<void(Member&)>& body) {
    start(size, body);
    for (uint32_t rank = 0; rank < size; ++rank) expect_good(rank);
  }

  std::string folder_;
  std::vector<pid_t> processes_;
};

}  // namespace collet::testing
