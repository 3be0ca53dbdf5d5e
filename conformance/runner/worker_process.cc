// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace collet::conformance {
namespace {

using Clock = Worker::Clock;

constexpr size_t kMostOutput = 2000;
// Factor by which a task may exceed its time limit on a busy machine, because the time spent waiting for a processor
// does not count.
constexpr double kMostPatience = 10;

struct Pipe {
  Fd read, write;
};

Expected<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return resource_exhausted(std::string("pipe: ") + std::strerror(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// The environment of a worker, whose temporary files stand in `folder`.
std::vector<std::string> environment_in(const std::string& folder) {
  constexpr std::string_view kName = "TMPDIR=";
  std::vector<std::string> out;
  for (char** one = environ; *one; ++one)
    if (folder.empty() || !std::string_view(*one).starts_with(kName)) out.emplace_back(*one);
  if (!folder.empty()) out.push_back(std::string(kName) + folder);
  return out;
}

// Returns pointers to the texts, and a null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become_worker(const Pipe& tasks, const Pipe& replies, const Pipe& output,
                                const std::vector<char*>& arguments, const std::vector<char*>& environment) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The target descriptors may be among the source descriptors, so the sources are duplicated to other numbers first.
  const int in = fcntl(tasks.read.get(), F_DUPFD, 10), out = fcntl(replies.write.get(), F_DUPFD, 10);
  const int print = fcntl(output.write.get(), F_DUPFD, 10), null = open("/dev/null", O_RDONLY);
  const bool good = in >= 0 && out >= 0 && print >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
                    dup2(print, STDOUT_FILENO) >= 0 && dup2(print, STDERR_FILENO) >= 0 && dup2(in, kTaskFd) >= 0 &&
                    dup2(out, kReplyFd) >= 0;
  if (good) {
    for (const int fd : {in, out, print}) close(fd);
    execve("/proc/self/exe", arguments.data(), environment.data());
  }
  _exit(127);
}

// Returns the seconds for which threads were ready to run but had no processor: the largest value of any thread.
double queued_seconds(pid_t pid) {
  double longest = 0;
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && threads != std::filesystem::directory_iterator(); threads.increment(error)) {
    const std::string path = threads->path().string() + "/schedstat";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
    unsigned long long run = 0, wait = 0;
    if (file && std::fscanf(file.get(), "%llu %llu", &run, &wait) == 2)
      longest = std::max(longest, static_cast<double>(wait) * 1e-9);
  }
  return longest;
}

void set_deadline(Worker& worker, double seconds) {
  worker.deadline = worker.start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

int Worker::stop() {
  if (!alive()) return 0;
  tasks.reset();
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  return reap();
}

int Worker::reap() {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid, SIGKILL);
  pid = -1;
  return status;
}

Status start(Worker& worker, const std::vector<std::string>& arguments, const std::string& folder) {
  COLLET_ASSIGN(Pipe tasks, make_pipe());
  COLLET_ASSIGN(Pipe replies, make_pipe());
  COLLET_ASSIGN(Pipe output, make_pipe());
  std::vector<std::string> words = arguments, variables = environment_in(folder);
  words.insert(words.begin(), "collet");
  const std::vector<char*> pointers = pointers_to(words), environment = pointers_to(variables);
  const pid_t pid = fork();
  if (pid < 0) return resource_exhausted(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) become_worker(tasks, replies, output, pointers, environment);
  setpgid(pid, pid);
  worker.pid = pid;
  worker.tasks = std::move(tasks.write);
  worker.replies = std::move(replies.read);
  worker.output = std::move(output.read);
  fcntl(worker.replies.get(), F_SETFL, O_NONBLOCK);
  fcntl(worker.output.get(), F_SETFL, O_NONBLOCK);
  worker.pending.clear();
  worker.printed.clear();
  worker.busy = false;
  worker.fresh = true;
  return ok_status();
}

bool send(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool drain(int fd, std::string& text) {
  char block[1 << 14];
  for (;;) {
    const ssize_t n = read(fd, block, sizeof block);
    if (n > 0) {
      text.append(block, static_cast<size_t>(n));
    } else if (n == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

void keep_end(std::string& text) {
  if (text.size() > kMostOutput) text.erase(0, text.size() - kMostOutput);
}

uint64_t resident_bytes(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "r"), std::fclose);
  unsigned long long total = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &total, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string death(int status) {
  if (WIFSIGNALED(status)) return std::string("was killed: ") + strsignal(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == kEndedWell) return "ended before its tasks had";
  if (code == kLostDescriptors) return "lost file descriptors: the backend has closed some that are not its own";
  const std::string text = "ended with exit code " + std::to_string(code);
  return code == 0 ? text + ", because the backend or what it uses has called exit or _exit" : text;
}

bool has_ended_well(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kEndedWell;
}

void set_limit(Worker& worker, double seconds) {
  worker.start = Clock::now();
  worker.seconds = seconds;
  worker.queued = queued_seconds(worker.pid);
  set_deadline(worker, seconds);
}

bool out_of_time(Worker& worker) {
  if (Clock::now() <= worker.deadline) return false;
  const double queued = queued_seconds(worker.pid) - worker.queued;
  set_deadline(worker, worker.seconds + std::clamp(queued, 0.0, (kMostPatience - 1) * worker.seconds));
  return Clock::now() > worker.deadline;
}

}  // namespace collet::conformance
