// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <ctime>

namespace collet::tool {

/// While it lives, an interrupt (Ctrl-C) or SIGTERM is recorded instead of ending the process. One that comes more than a second after
/// the first ends it; earlier ones do not, since `timeout` and others signal a process and then its group. One object may live at a time.
class Interrupts {
 public:
  /// `then`: what a signal handler calls besides; may be null.
  explicit Interrupts(void (*then)() = nullptr) {
    signal_ = 0;
    then_ = then;
    first_ = 0;
    struct sigaction action{};
    action.sa_handler = [](int number) {
      struct timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      if (signal_ == 0) {
        first_ = now.tv_sec;
      } else if (now.tv_sec - first_ > 1) {
        std::signal(number, SIG_DFL);
        std::raise(number);
      }
      signal_ = number;
      if (then_ != nullptr) then_();
    };
    sigaction(SIGINT, &action, &int_);
    sigaction(SIGTERM, &action, &term_);
  }
  ~Interrupts() {
    sigaction(SIGINT, &int_, nullptr);
    sigaction(SIGTERM, &term_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// The signal that came last; 0 if none did.
  static int signal() { return signal_; }

 private:
  struct sigaction int_{}, term_{};
  static inline volatile std::sig_atomic_t signal_ = 0;
  static inline volatile time_t first_ = 0;  // seconds of the monotonic clock
  static inline void (*volatile then_)() = nullptr;
};

}  // namespace collet::tool
