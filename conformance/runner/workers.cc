// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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
#include <memory>
#include <thread>
#include <utility>

#include "conformance/runner/worker_process.h"
#include "hlo/base/temporary_folder.h"

namespace collet::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
// What interrupt_tasks has set.
volatile std::sig_atomic_t interrupted = 0;

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
      COLLET_TRY(start(worker, options_.arguments, folder_));
      worker.done.clear();
    }
    worker.task = worker.next++;
    worker.busy = true;
    worker.printed.clear();
    set_limit(worker, options_.timeout(worker.task) + (worker.fresh ? options_.start_seconds : 0));
    worker.fresh = false;
    send(worker.tasks.get(), task_(worker.task) + "\n");  // if the worker has died, this shows when its replies end
    return ok_status();
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
    result.before.assign(worker.done.rbegin(), worker.done.rend());
    if (result.kind == TaskResult::Kind::Replied) {
      constexpr size_t kRemembered = 64;
      if (worker.done.size() == kRemembered) worker.done.erase(worker.done.begin());
      worker.done.push_back(worker.task);
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
      set_limit(*worker, options_.timeout(worker->task));
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
