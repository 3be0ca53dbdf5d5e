// SPDX-License-Identifier: Apache-2.0
#include "conformance/implementations/child.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace collet::implementations {
namespace {

constexpr std::string_view kGreeting = "collet implementation 1 ";
constexpr size_t kLongestLine = 1 << 12;
/// How long a process may take to end when its input has ended.
constexpr std::chrono::milliseconds kPatience{2000};

std::string header(uint32_t op, uint32_t from, uint32_t to) {
  return std::string(collet_op_name(op)) + " " + collet_type_name(from) + " " + collet_type_name(to);
}

uint64_t bytes_of(uint32_t type, uint64_t count) {
  return count * collet_type_bytes(type);
}

}  // namespace

Child::Child(const std::string& command) : command_(command) {
  // A socket rather than pipes: a write to a process that has ended is an error there, and no signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw kernel::Error(COLLET_RESOURCE_EXHAUSTED, std::string("socketpair: ") + std::strerror(errno));
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string shell = "sh", option = "-c", text = "exec " + command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int started = posix_spawn(&pid_, "/bin/sh", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (started != 0) {
    ::close(socket_);
    throw kernel::Error(COLLET_NOT_FOUND, "'" + command + "' cannot be started: " + std::strerror(started));
  }
  try {
    const std::string line = read_line();
    if (line.rfind(kGreeting, 0) != 0)
      throw kernel::Error(COLLET_INVALID_ARGUMENT, "'" + command + "' is no implementation: it said '" + line + "'");
    name_ = line.substr(kGreeting.size());
    constexpr std::string_view kFlushes = " flushes";
    flushes_ =
        name_.size() > kFlushes.size() && name_.compare(name_.size() - kFlushes.size(), name_.npos, kFlushes) == 0;
    if (flushes_) name_.resize(name_.size() - kFlushes.size());
  } catch (...) {
    end();
    throw;
  }
}

Child::~Child() {
  end();
}

void Child::end() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
}

void Child::fail() {
  throw kernel::Error(COLLET_INTERNAL, "the process of '" + command_ + "' has ended");
}

void Child::write(const void* data, uint64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = send(socket_, from, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail();
    from += n;
    bytes -= static_cast<uint64_t>(n);
  }
}

void Child::read(void* data, uint64_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = recv(socket_, to, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail();
    to += n;
    bytes -= static_cast<uint64_t>(n);
  }
}

std::string Child::read_line() {
  std::string line;
  for (char c = 0; line.size() < kLongestLine; line += c) {
    read(&c, 1);
    if (c == '\n') return line;
  }
  throw kernel::Error(COLLET_INTERNAL,
                      "'" + command_ + "' answered with a line that does not end: " + line.substr(0, 80));
}

bool Child::has(uint32_t op, uint32_t from, uint32_t to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string asked = header(op, from, to);
  const auto found = known_.find(asked);
  if (found != known_.end()) return found->second;
  const std::string line = "has " + asked + "\n";
  write(line.data(), line.size());
  const std::string answer = read_line();
  if (answer != "yes" && answer != "no")
    throw kernel::Error(COLLET_INTERNAL, "'" + command_ + "' answered '" + answer + "' to 'has " + asked + "'");
  return known_[asked] = answer == "yes";
}

void Child::compute(uint32_t op, uint32_t from, uint32_t to, uint64_t count, const std::vector<const void*>& operands,
                    void* result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string asked = header(op, from, to);
  const std::string line =
      "compute " + asked + " " + std::to_string(count) + " " + std::to_string(operands.size()) + "\n";
  write(line.data(), line.size());
  for (const void* operand : operands) write(operand, bytes_of(from, count));
  const std::string answer = read_line();
  if (answer != "done") throw kernel::Error(COLLET_INTERNAL, name_ + ", " + asked + ": " + answer);
  read(result, bytes_of(to, count));
}

}  // namespace collet::implementations
