// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

/// \file
/// The functions of MPI that the transport needs, found when it is opened. An implementation of MPI has its own binary interface: Open MPI's
/// handles are pointers, those of MPICH and its relatives are numbers.

namespace collet::mpi {

/// An error with its code; the functions of the transport return it.
struct Error : std::runtime_error {
  Error(collet_status status, const std::string& message) : std::runtime_error(message), code(status) {}
  collet_status code;
};

/// A communicator or a request of whichever implementation.
using Handle = uint64_t;

/// An initialised MPI. All calls are made under lock(), because the implementation may allow one at a time. They throw Error.
class Library {
 public:
  /// Loads MPI and initialises it once. COLLET_MPI_LIBRARY names the library; unless set, those of Open MPI and MPICH are tried.
  /// Returns the same object each time.
  static Library& get();
  virtual ~Library() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& version() const { return version_; }
  std::mutex& lock() { return mutex_; }
  /// From now on the process ends without MPI_Finalize, which would wait for processes that do not answer.
  void abandon() { is_abandoned_ = true; }

  /// Starts a copy of the communicator of all processes, and says by done() when it is made.
  virtual Handle start_copy(Handle& communicator) = 0;
  /// Starts to send; `data` stays until done().
  virtual Handle send(const void* data, uint64_t bytes, int to, Handle communicator) = 0;
  virtual Handle receive(void* data, uint64_t bytes, int from, Handle communicator) = 0;
  /// True if what a request has started is done; the request is gone then.
  virtual bool done(Handle& request) = 0;
  /// True if a message has come, from whom, and how many bytes it has.
  virtual bool probe(Handle communicator, int& from, uint64_t& bytes) = 0;

 protected:
  int rank_ = 0, size_ = 1;
  std::string version_;
  std::mutex mutex_;
  bool is_abandoned_ = false;
};

}  // namespace collet::mpi
