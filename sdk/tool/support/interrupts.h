// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace collet::tool {

/// While it lives, an interrupt (Ctrl-C) or SIGTERM is recorded instead of ending the process; a second one ends it. One may live at a
/// time.
class Interrupts {
 public:
  /// `then`: what a signal handler calls besides; may be null.
  explicit Interrupts(void (*then)() = nullptr) {
    signal_ = 0;
    then_ = then;
    struct sigaction action{};
    action.sa_handler = [](int number) {
      signal_ = number;
      std::signal(number, SIG_DFL);
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
  static inline void (*volatile then_)() = nullptr;
};

}  // namespace collet::tool
