// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "hlo/base/temporary_folder.h"

namespace collet::conformance {
namespace {

using Clock = std::chrono::steady_clock;
// File descriptors of the pipes in the worker.
constexpr int kTaskFd = 3, kReplyFd = 4;

// Exit codes of a worker. That of a good end is none that other code is likely to end a process with: functions that run when a
// process exits may end it by exit(0) or _exit(0) before all have run.
constexpr int kEndedWell = 97, kLostDescriptors = 98;
constexpr size_t kMostOutput = 2000;
constexpr auto kTick = std::chrono::milliseconds(100);
// Factor by which a task may exceed its time limit on a busy machine, because the time spent waiting for a processor
// does not count.
constexpr double kMostPatience = 10;

// What interrupt_tasks has set.
volatile std::sig_atomic_t interrupted = 0;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  void reset() { *this = Fd(); }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
};

Expected<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return resource_exhausted(std::string("pipe: ") + std::strerror(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

struct Worker {
  pid_t pid = -1;
  Fd tasks, replies, output;
  std::string pending;  // incomplete line of a reply
  std::string printed;  // the end of the output that it printed to stdout and stderr during the current task
  bool busy = false, fresh = true;
  size_t task = 0;
  size_t next = 0, end = 0;  // the tasks that only this worker runs, because they follow `task`
  std::vector<size_t> done;  // the last few tasks of this process
  Clock::time_point start, deadline;
  double seconds = 0;  // seconds that the task may take
  double queued = 0;   // seconds that the worker had waited for a processor when the task began

  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  bool alive() const { return pid > 0; }
  // Kills the process and its children; returns its wait status.
  int stop() {
    if (!alive()) return 0;
    tasks.reset();
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    return reap();
  }
  int reap() {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-pid, SIGKILL);
    pid = -1;
    return status;
  }
};

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

Status start(Worker& worker, const PoolOptions& options, const std::string& folder) {
  COLLET_ASSIGN(Pipe tasks, make_pipe());
  COLLET_ASSIGN(Pipe replies, make_pipe());
  COLLET_ASSIGN(Pipe output, make_pipe());
  std::vector<std::string> words = options.arguments, variables = environment_in(folder);
  words.insert(words.begin(), "collet");
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
  const pid_t pid = fork();
  if (pid < 0) return resource_exhausted(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) become_worker(tasks, replies, output, arguments, environment);
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

// Appends available data; returns false at the end of the file.
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

// The open files behind the descriptors that a worker and its parent share.
class Descriptors {
 public:
  Descriptors() {
    for (size_t i = 0; i < files_.size(); ++i) files_[i] = of(static_cast<int>(i));
  }
  bool unchanged() const { return files_ == Descriptors().files_; }

 private:
  using File = std::pair<dev_t, ino_t>;
  static File of(int fd) {
    struct stat facts{};
    return fstat(fd, &facts) == 0 ? File(facts.st_dev, facts.st_ino) : File();
  }
  std::array<File, kReplyFd + 1> files_;
};

class Pool {
 public:
  Pool(size_t count, const PoolOptions& options, const std::function<std::string(size_t)>& task,
       const std::function<void(size_t, const TaskResult&)>& done, const std::string& folder)
      : count_(count), options_(options), task_(task), done_(done), folder_(folder) {}

  Status run() {
    const size_t jobs = std::clamp<size_t>(options_.jobs, 1, std::max<size_t>(count_, 1));
    for (size_t i = 0; i < jobs; ++i) workers_.push_back(std::make_unique<Worker>());
    while (finished_ < count_ && !(options_.stop && options_.stop())) {
      if (interrupted != 0) return Status(Code::Cancelled, "interrupted");
      for (auto& worker : workers_) {
        if (!worker->busy && take_tasks(*worker)) COLLET_TRY(assign(*worker));
      }
      wait_for_news();
      for (auto& worker : workers_) {
        if (worker->alive()) look_at(*worker);
      }
    }
    if (options_.ended) end_workers();
    return ok_status();
  }

 private:
  // Gives a worker that has run all its tasks the next ones; returns false if there are none.
  bool take_tasks(Worker& worker) {
    if (worker.next < worker.end) return true;
    if (next_ == count_) return false;
    worker.next = next_++;
    while (options_.follows && next_ < count_ && options_.follows(next_)) ++next_;
    worker.end = next_;
    return true;
  }

  Status assign(Worker& worker) {
    if (!worker.alive()) {
      COLLET_TRY(start(worker, options_, folder_));
      worker.done.clear();
    }
    worker.task = worker.next++;
    worker.busy = true;
    worker.printed.clear();
    worker.start = Clock::now();
    worker.seconds = options_.timeout(worker.task) + (worker.fresh ? options_.start_seconds : 0);
    worker.queued = queued_seconds(worker.pid);
    set_deadline(worker, worker.seconds);
    worker.fresh = false;
    send(worker.tasks.get(), task_(worker.task) + "\n");  // if the worker has died, this shows when its replies end
    return ok_status();
  }

  static void set_deadline(Worker& worker, double seconds) {
    worker.deadline =
        worker.start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // The result must not depend on other processes: time spent waiting for a processor does not count.
  static bool out_of_time(Worker& worker) {
    if (Clock::now() <= worker.deadline) return false;
    const double queued = queued_seconds(worker.pid) - worker.queued;
    set_deadline(worker, worker.seconds + std::clamp(queued, 0.0, (kMostPatience - 1) * worker.seconds));
    return Clock::now() > worker.deadline;
  }

  void wait_for_news() {
    std::vector<pollfd> fds;
    for (const auto& worker : workers_) {
      if (!worker->alive()) continue;
      fds.push_back({worker->replies.get(), POLLIN, 0});
      fds.push_back({worker->output.get(), POLLIN, 0});
    }
    poll(fds.data(), fds.size(), static_cast<int>(kTick.count()));
  }

  void finish(Worker& worker, TaskResult result) {
    worker.busy = false;
    result.seconds = std::chrono::duration<double>(Clock::now() - worker.start).count();
    if (result.kind == TaskResult::Kind::Replied) {
      constexpr size_t kRemembered = 8;
      if (worker.done.size() == kRemembered) worker.done.erase(worker.done.begin());
      worker.done.push_back(worker.task);
    } else {
      result.before.assign(worker.done.rbegin(), worker.done.rend());
    }
    ++finished_;
    done_(worker.task, result);
  }

  void fail(Worker& worker, TaskResult::Kind kind, std::string detail) {
    drain(worker.output.get(), worker.printed);
    keep_end(worker.printed);
    if (!worker.printed.empty()) detail += "; it printed: " + worker.printed;
    if (worker.busy) finish(worker, {kind, {}, std::move(detail), 0});
  }

  // Lets idle workers close what they have open and exit, all at once, and reports those that do not end well.
  void end_workers() {
    std::vector<Worker*> idle;
    for (auto& worker : workers_) {
      if (!worker->alive() || worker->busy) continue;
      worker->tasks.reset();
      worker->printed.clear();
      worker->start = Clock::now();
      worker->seconds = options_.timeout(worker->task);
      worker->queued = queued_seconds(worker->pid);
      set_deadline(*worker, worker->seconds);
      idle.push_back(worker.get());
    }
    for (Worker* worker : idle) {
      TaskResult end;
      int status = 0;
      while (waitpid(worker->pid, &status, WNOHANG) == 0) {
        drain(worker->output.get(), worker->printed);  // a full pipe would stop it
        keep_end(worker->printed);
        if (out_of_time(*worker)) {
          end.kind = TaskResult::Kind::TimedOut;
          end.detail = "its process did not end in time";
          status = worker->stop();
          break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (worker->alive()) {
        kill(-worker->pid, SIGKILL);  // its children
        worker->pid = -1;
        if (has_ended_well(status)) continue;
        end.kind = TaskResult::Kind::Crashed;
        end.detail = "its process " + death(status);
      }
      drain(worker->output.get(), worker->printed);
      keep_end(worker->printed);
      if (!worker->printed.empty()) end.detail += "; it printed: " + worker->printed;
      end.seconds = std::chrono::duration<double>(Clock::now() - worker->start).count();
      end.before.assign(worker->done.rbegin(), worker->done.rend());
      options_.ended(worker->task, end);
    }
  }

  // Waits for the worker to exit by itself. Returns false, and the task has failed, if it does not exit in time or
  // exits with another code than that of a good end.
  bool ends_well(Worker& worker) {
    worker.tasks.reset();
    int status = 0;
    while (waitpid(worker.pid, &status, WNOHANG) == 0) {
      if (out_of_time(worker)) {
        worker.stop();
        fail(worker, TaskResult::Kind::TimedOut, "it did not end in time");
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    worker.pid = -1;
    if (has_ended_well(status)) return true;
    fail(worker, TaskResult::Kind::Crashed, "it " + death(status));
    return false;
  }

  void look_at(Worker& worker) {
    if (!drain(worker.output.get(), worker.printed)) worker.output.reset();
    keep_end(worker.printed);
    const bool open = drain(worker.replies.get(), worker.pending);
    if (const size_t end = worker.pending.find('\n'); end != std::string::npos && worker.busy) {
      const std::string line = worker.pending.substr(0, end);
      worker.pending.erase(0, end + 1);
      if (options_.judge_end && !ends_well(worker)) return;
      Fields reply = decode_fields(line);
      if (!find_field(reply, kRetires).empty()) worker.stop();
      finish(worker, {TaskResult::Kind::Replied, std::move(reply), {}, 0});
    } else if (!open) {
      const std::string how = death(worker.reap());
      fail(worker, TaskResult::Kind::Crashed, "the worker " + how);
    } else if (worker.busy && out_of_time(worker)) {
      worker.stop();
      fail(worker, TaskResult::Kind::TimedOut, "no answer in time");
    } else if (options_.memory_bytes > 0 && resident_bytes(worker.pid) > options_.memory_bytes) {
      worker.stop();
      fail(worker, TaskResult::Kind::OutOfMemory,
           "more than " + std::to_string(options_.memory_bytes >> 20) + " MiB of memory");
    }
  }

  size_t count_;
  const PoolOptions& options_;
  const std::function<std::string(size_t)>& task_;
  const std::function<void(size_t, const TaskResult&)>& done_;
  const std::string& folder_;  // for temporary files of the workers
  std::vector<std::unique_ptr<Worker>> workers_;
  size_t next_ = 0;  // the first task that no worker has
  size_t finished_ = 0;
};

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '\n' || c == '\t' || c == '=') {
      out += '\\';
      out += c == '\n' ? 'n' : c == '\t' ? 't' : c == '=' ? 'e' : '\\';
    } else {
      out += c;
    }
  }
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'e' ? '=' : c;
  }
  return out;
}

}  // namespace

std::string encode_fields(const Fields& fields) {
  std::string line;
  for (const auto& [key, value] : fields) {
    if (!line.empty()) line += '\t';
    append_escaped(line, key);
    line += '=';
    append_escaped(line, value);
  }
  return line;
}

Fields decode_fields(std::string_view line) {
  Fields fields;
  while (!line.empty()) {
    const size_t end = std::min(line.find('\t'), line.size());
    const std::string_view field = line.substr(0, end);
    const size_t equals = std::min(field.find('='), field.size());
    fields.emplace_back(unescaped(field.substr(0, equals)),
                        equals < field.size() ? unescaped(field.substr(equals + 1)) : std::string());
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

std::string_view find_field(const Fields& fields, std::string_view key) {
  for (const auto& [name, value] : fields) {
    if (name == key) return value;
  }
  return {};
}

void interrupt_tasks() {
  interrupted = 1;
}

Status run_tasks(size_t count, const PoolOptions& options, const std::function<std::string(size_t)>& task,
                 const std::function<void(size_t, const TaskResult&)>& done) {
  // Ignores SIGPIPE, because a worker may die before the next write to its pipe.
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  // A worker that is killed leaves its temporary files, and those of the backend. Where no folder can be made, the system's is used.
  const TemporaryFolder folder;
  const Status status = Pool(count, options, task, done, folder.path()).run();
  sigaction(SIGPIPE, &before, nullptr);
  return status;
}

int serve_tasks(const std::function<Fields(std::string_view)>& answer, const std::function<void()>& close) {
  signal(SIGPIPE, SIG_DFL);
  fcntl(kTaskFd, F_SETFD, FD_CLOEXEC);
  fcntl(kReplyFd, F_SETFD, FD_CLOEXEC);
  const Descriptors before;
  const pid_t self = getpid();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> tasks(fdopen(kTaskFd, "r"), std::fclose);
  if (!tasks) return 1;
  char* line = nullptr;
  size_t room = 0;
  bool good = true;
  for (ssize_t n; good && (n = getline(&line, &room, tasks.get())) > 0;) {
    std::string_view task(line, static_cast<size_t>(n));
    if (task.ends_with('\n')) task.remove_suffix(1);
    const std::string reply = encode_fields(answer(task)) + "\n";
    if (getpid() != self)
      _exit(1);  // a copy of the worker that the backend has made by fork; its reply would be a second one
    good = send(kReplyFd, reply);
  }
  std::free(line);
  if (close) close();
  return before.unchanged() ? kEndedWell : kLostDescriptors;
}

}  // namespace collet::conformance
