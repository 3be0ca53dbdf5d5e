// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace collet::implementations {

/// A process that computes ops element by element. It answers lines on its standard input; arrays follow and precede lines as
/// bytes, in the host's order, without gaps:
///
///     collet implementation 1 NAME [flushes]   the process, when it is ready. `flushes`: denormals become zero
///     has OP FROM TO                           -> yes | no
///     compute OP FROM TO COUNT N, N arrays     -> done, an array | error TEXT
///
/// OP is the op's name in HLO text, FROM the element type of its operands, TO that of its result, COUNT the number of elements of each
/// array, N the number of operands. The end of the input ends the process. May be used from any thread.
class Child {
 public:
  /// Starts a shell with `command`, and waits until the process is ready. Throws kernel::Error if it does not say so.
  explicit Child(const std::string& command);
  /// Ends the process.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& name() const { return name_; }
  bool flushes() const { return flushes_; }
  /// True if the process computes an op for these types, which are COLLET_TYPE_*. Asks once for each op.
  bool has(uint32_t op, uint32_t from, uint32_t to);
  /// Computes an op of `count` elements; throws kernel::Error if the process cannot, or has ended.
  void compute(uint32_t op, uint32_t from, uint32_t to, uint64_t count, const std::vector<const void*>& operands,
               void* result);

 private:
  void write(const void* data, uint64_t bytes);
  void read(void* data, uint64_t bytes);
  std::string read_line();
  [[noreturn]] void fail();
  void end();

  std::string command_, name_;
  std::mutex mutex_;
  int socket_ = -1;
  pid_t pid_ = -1;
  bool flushes_ = false;
  std::map<std::string, bool> known_;
};

}  // namespace collet::implementations
