// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/crash.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace collet::tool {
namespace {

constexpr struct {
  int number;
  const char* name;
} kSignals[] = {{SIGSEGV, "segmentation fault"},
                {SIGBUS, "bus error"},
                {SIGILL, "illegal instruction"},
                {SIGFPE, "arithmetic exception"},
                {SIGABRT, "abort"}};

// The message is written in advance, because a signal handler may call few functions.
char blamed[512];

void put(const char* text) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
}

void handle(int number) {
  if (blamed[0] != '\0') {
    put("\ncollet: ");
    for (const auto& one : kSignals) {
      if (one.number == number) put(one.name);
    }
    put(" while ");
    put(blamed);
    put("\n");
  }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void blame_crashes_on(std::string_view what) {
  const size_t length = std::min(what.size(), sizeof blamed - 1);
  std::memcpy(blamed, what.data(), length);
  blamed[length] = '\0';
  for (const auto& one : kSignals) {
    struct sigaction old{};
    // An existing handler, such as a sanitizer's, prints more than this one, so it is kept.
    if (sigaction(one.number, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) continue;
    struct sigaction now{};
    now.sa_handler = handle;
    sigaction(one.number, &now, nullptr);
  }
}

}  // namespace collet::tool
