// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// \file
/// Notes which function of a backend each thread is in, for messages about crashes.

namespace collet::runtime {

/// A call of a backend's function, from construction to destruction. Calls nest: a backend may call another one.
class Calling {
 public:
  /// `function` is a literal; `library`, the path of the backend's library, must outlive the call.
  Calling(const char* function, const std::string& library) : before_(current) {
    current = {function, library.c_str()};
  }
  ~Calling() { current = before_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

  struct Place {
    const char* function = nullptr;
    const char* library = nullptr;
  };
  /// Returns the present call of this thread; nulls if there is none. May be called in a signal handler.
  static Place present() { return current; }

 private:
  static thread_local constinit Place current;
  Place before_;
};

}  // namespace collet::runtime
