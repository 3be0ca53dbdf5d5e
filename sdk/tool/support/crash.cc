// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/crash.h"

#include <collet/calling.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sdk/tool/support/task.h"
#include "sdk/tool/verb.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COLLET_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COLLET_SANITIZED 1
#endif
#endif

namespace collet::tool {
namespace {

constexpr struct {
  int number;
  const char* name;
} kSignals[] = {{SIGSEGV, "segmentation fault"},
                {SIGBUS, "bus error"},
                {SIGILL, "illegal instruction"},
                {SIGFPE, "arithmetic exception"},
                {SIGSYS, "forbidden system call"},
                {SIGTRAP, "trap"},
                {SIGABRT, "abort"}};

// The process that watches itself; 0: none. A child that a backend forks does not watch.
std::atomic<pid_t> watched{0};
// The tool has ended its work, and destructors of libraries run.
std::atomic<bool> is_ending{false};

bool is_watched() {
  return watched.load(std::memory_order_relaxed) == getpid();
}

// A message that is made without allocation, since a signal handler may call few functions.
class Message {
 public:
  Message& add(const char* text) {
    const size_t n = std::min(std::strlen(text), sizeof text_ - size_);
    std::memcpy(text_ + size_, text, n);
    size_ += n;
    return *this;
  }
  // Bytes that are no plain text could control the terminal.
  Message& add_path(const char* text) {
    for (; *text != '\0'; ++text) {
      const char one[2] = {*text >= ' ' && *text < 127 ? *text : '?', '\0'};
      add(one);
    }
    return *this;
  }
  void write_out() const { [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text_, size_); }

 private:
  char text_[2048];
  size_t size_ = 0;
};

void say(const char* what) {
  Message message;
  message.add("\ncollet: ").add(what);
  const char *function = nullptr, *library = nullptr;
  if (collet_calling(&function, &library) != 0)
    message.add(" in '").add(function).add("' of the backend library '").add_path(library).add("'");
  if (const char* task = task_of_signal(); *task != '\0') message.add(" while ").add(task);
  message.add("\n").write_out();
}

void handle(int number) {
  if (is_watched())
    for (const auto& one : kSignals) {
      if (one.number == number) say(one.name);
    }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Ends the process if a backend called one of the functions that do so.
void end_with_message() {
  if (!is_watched()) return;
  watched.store(0, std::memory_order_relaxed);
  std::fflush(stdout);
  say("a call of exit ended the process");
  syscall(SYS_exit_group, static_cast<int>(kRuntime));
}

// Runs at exit: a backend may call that, and it comes after main too.
void ended_early() {
  if (!is_ending.load(std::memory_order_relaxed)) end_with_message();
}

// The size of a stack for signal handlers: some processors save more than SIGSTKSZ has.
constexpr size_t kSignalStack = size_t{1} << 15;
// Threads with smaller stacks than this get none.
constexpr size_t kFewestBytes = size_t{1} << 18;

// Lets signal handlers of this thread run on `memory`. Otherwise a full stack ends the process silently.
void use_signal_stack(void* memory) {
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
}

struct Start {
  void* (*start)(void*);
  void* argument;
};

// The first function of a thread with a stack for signal handlers, which is a part of the thread's own: nothing has to be allocated.
void* start_with_signal_stack(void* data) {
  alignas(64) char memory[kSignalStack];
  const Start begin = *static_cast<Start*>(data);
  delete static_cast<Start*>(data);
  use_signal_stack(memory);
  void* const result = begin.start(begin.argument);
  stack_t off{};
  off.ss_flags = SS_DISABLE;
  sigaltstack(&off, nullptr);
  return result;
}

}  // namespace

void begin_watch() {
  static char memory[kSignalStack];
  use_signal_stack(memory);
  for (const auto& one : kSignals) {
    struct sigaction old{};
    // An existing handler, such as a sanitizer's, prints more than this one, so it is kept.
    if (sigaction(one.number, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) continue;
    struct sigaction now{};
    now.sa_handler = handle;
    now.sa_flags = SA_ONSTACK;
    sigaction(one.number, &now, nullptr);
  }
  std::atexit(ended_early);
  at_quick_exit(ended_early);
  watched.store(getpid(), std::memory_order_relaxed);
}

void expect_end() {
  begin_task("ending the process");
  is_ending.store(true, std::memory_order_relaxed);
}

void end_watch() {
  watched.store(0, std::memory_order_relaxed);
}

}  // namespace collet::tool

// These definitions take the place of the C library's for all libraries of the process: see CMakeLists.txt. A sanitizer has its own.
#ifndef COLLET_SANITIZED

extern "C" {

void _exit(int code) {
  collet::tool::end_with_message();  // exit itself does not come here
  for (;;) syscall(SYS_exit_group, code);
}

void _Exit(int code) noexcept {
  _exit(code);
}

// Gives a stack for signal handlers to every thread, also to those of the runtime and of backends.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  size_t bytes = 0;
  if (attributes && pthread_attr_getstacksize(attributes, &bytes) == 0 && bytes < collet::tool::kFewestBytes)
    return create(thread, attributes, start, argument);
  auto* const begin = new (std::nothrow) collet::tool::Start{start, argument};
  if (!begin) return EAGAIN;
  const int error = create(thread, attributes, collet::tool::start_with_signal_stack, begin);
  if (error != 0) delete begin;
  return error;
}
}

#endif
