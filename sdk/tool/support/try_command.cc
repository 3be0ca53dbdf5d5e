// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/try_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

extern char** environ;

namespace collet::tool {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr int kGlance = 20;  // milliseconds between looks at the clock

/// The two ends of a pipe.
struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
};

Expected<pid_t> start(const std::vector<std::string>& arguments, const Pipe& pipe,
                      const std::vector<std::string>& environment) {
  std::vector<char*> envp;
  for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  // If a name occurs twice, the first value counts.
  for (char** variable = environ; *variable; ++variable) envp.push_back(*variable);
  envp.push_back(nullptr);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe.write, 1);
  posix_spawn_file_actions_adddup2(&actions, pipe.write, 2);
  posix_spawn_file_actions_addclose(&actions, pipe.read);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return not_found(arguments[0] + " cannot be run: " + std::strerror(error));
  return pid;
}

// Reads what is available. Returns false at the end of the file.
bool drain(int fd, std::string& out) {
  char buffer[1 << 14];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  out.append(buffer, std::min(static_cast<size_t>(n), kMostOutput - std::min(out.size(), kMostOutput)));
  return true;
}

}  // namespace

Expected<CommandOutcome> try_command(const std::vector<std::string>& arguments, double seconds,
                                     const std::function<bool()>& stop, const std::vector<std::string>& environment) {
  Pipe pipe;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return resource_exhausted(std::string("pipe: ") + std::strerror(errno));
  pipe.read = ends[0];
  pipe.write = ends[1];
  COLLET_ASSIGN(const pid_t pid, start(arguments, pipe, environment));
  close(pipe.write);
  pipe.write = -1;
  CommandOutcome out;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool open = true, ended = false;
  while (!ended) {
    pollfd wait{pipe.read, POLLIN, 0};
    if (open && poll(&wait, 1, kGlance) > 0) open = drain(pipe.read, out.output);
    if (!open) poll(nullptr, 0, 1);
    ended = waitpid(pid, &status, WNOHANG) == pid;
    out.timed_out = !ended && std::chrono::steady_clock::now() > deadline;
    out.stopped = !ended && stop && stop();
    if (out.timed_out || out.stopped) break;
  }
  kill(-pid, SIGKILL);  // also kills processes that the command has started
  if (!ended)
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  for (pollfd wait{pipe.read, POLLIN, 0}; open && poll(&wait, 1, 0) > 0;) open = drain(pipe.read, out.output);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // Where a process is started by fork, as under emulators, the child says so.
  constexpr int kNotStarted = 127;
  if (ended && out.code == kNotStarted && out.output.empty()) return not_found(arguments[0] + " cannot be run");
  return out;
}

}  // namespace collet::tool
