// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/runtime/processes/mpi/library.h"

/// \file
/// Tagged messages between processes over MPI. MPI only sees pieces in buffers of the link: what a caller gives up is never
/// written or read afterwards, which MPI cannot promise of a transfer that has begun.

namespace collet::mpi {

/// The connections of one process with all others, over a communicator of its own. The functions are called under
/// library().lock().
class Link {
 public:
  /// A message that is on its way to another process.
  struct Sending {
    int to;
    uint64_t tag;
    const char* data;
    uint64_t bytes;
    uint64_t sequence = 0;        ///< of the messages from here to there
    uint64_t next = 0;            ///< the first byte that no piece has taken
    unsigned pieces = 0;          ///< that MPI has
    std::vector<char> copy = {};  ///< of `data`, for a message that the caller does not keep
    bool is_done() const { return next == bytes && pieces == 0; }
  };
  /// A message that is waited for.
  struct Receiving {
    int from;
    uint64_t tag;
    char* data;
    uint64_t bytes;
    bool is_done = false;
  };

  /// All processes make one at the same time. Throws Error with DEADLINE_EXCEEDED after `timeout_ms`. `piece`: the most bytes of a message
  /// that MPI gets at once.
  Link(Library& library, uint64_t piece, uint32_t timeout_ms);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Library& library() { return library_; }
  /// Starts to send; the object and its data stay until it is done or given up.
  void send(Sending& message);
  /// Sends a copy of the data.
  void post(int to, uint64_t tag, const void* data, uint64_t bytes);
  /// Starts to wait for a message; the object and its memory stay until it is done or given up.
  void receive(Receiving& message);
  void give_up(Sending& message);
  void give_up(Receiving& message);
  /// Gets what is sent with this tag as it comes, in place of receive().
  void listen(uint64_t tag, std::function<void(int from, std::vector<char> data)> function);
  /// Moves what can be moved, and does not wait.
  void progress();
  /// True if MPI has no buffer of the link.
  bool is_idle() const { return out_.empty() && in_.empty(); }

 private:
  struct Header {
    uint64_t tag, bytes, sequence, offset;
  };
  struct Piece {
    std::vector<char> buffer;
    Handle request = 0;
    Sending* message = nullptr;  // of those that are sent; null if it has been given up
    int from = 0;                // of those that are received
  };
  /// A message that comes, or has come and is not waited for yet.
  struct Coming {
    int from;
    uint64_t tag, bytes;
    uint64_t received = 0;
    Receiving* target = nullptr;
    bool is_unwanted = false;     // given up
    std::vector<char> data = {};  // if there is no target
  };

  std::vector<char> take_buffer(uint64_t bytes);
  void keep_buffer(std::vector<char> buffer);
  bool start_pieces(Sending& message);
  void take(const std::vector<char>& buffer, int from);
  void finish(const std::shared_ptr<Coming>& message);

  Library& library_;
  const uint64_t piece_;
  Handle communicator_ = 0;
  std::vector<uint64_t> sent_;  // messages to each process
  std::deque<Sending*> sends_;  // of which pieces are to be started
  std::list<Sending> posts_;
  std::list<Piece> out_, in_;
  std::map<std::pair<int, uint64_t>, std::deque<Receiving*>> wanted_;                  // by process and tag
  std::map<std::pair<int, uint64_t>, std::deque<std::shared_ptr<Coming>>> unclaimed_;  // by process and tag
  std::map<std::pair<int, uint64_t>, std::shared_ptr<Coming>> coming_;                 // by process and sequence
  std::map<uint64_t, std::function<void(int from, std::vector<char> data)>> listeners_;
  std::vector<std::vector<char>> kept_;
};

}  // namespace collet::mpi
