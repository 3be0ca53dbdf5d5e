// SPDX-License-Identifier: Apache-2.0
// A transport (collet/processes.h) over MPI, and a store for processes that mpirun has started.
#include <collet/error.h>
#include <collet/processes.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "sdk/runtime/processes/mpi/library.h"
#include "sdk/runtime/processes/mpi/link.h"

namespace {

using collet::mpi::Error;
using collet::mpi::Library;
using collet::mpi::Link;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A message is sent in pieces of these sizes. A piece stays in a cache between the copies at both ends. A piece of the store arrives without
// the help of the sender, whose process may not be in a function of MPI, because it is below the limit of eager messages, 4 KiB in Open MPI.
constexpr uint64_t kPiece = uint64_t{512} << 10, kPieceOfStore = 2048;
// Tags of the transport's own: a process closes its connections, and an entry of the store.
constexpr uint64_t kClosedTag = 0x636c6f736564, kEntryTag = 0x656e747279;
constexpr auto kLookInterval = milliseconds(5);  // between two looks at which processes have ended
// While it waits, a thread first gives way to others, then sleeps.
constexpr int kSpins = 2000;
constexpr auto kSleep = microseconds(50);

template <typename Body>
collet_status guarded(collet_error* error, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    return collet_set_error(error, e.code, e.what());
  } catch (const std::bad_alloc&) {
    return collet_set_error(error, COLLET_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& e) {
    return collet_set_error(error, COLLET_UNAVAILABLE, e.what());
  }
}

// What a process tells the others when it opens the transport.
struct Place {
  int32_t rank;  // MPI's number
  int32_t pid;
  char boot[40];  // a number that only processes on the same host share
};

Place own_place(const Library& library) {
  Place out{};
  out.rank = library.rank();
  out.pid = getpid();
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  collet_copy_text(out.boot, sizeof out.boot, boot.c_str());
  return out;
}

// Tells whether processes of this host have ended.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    for (const pollfd& one : fds_) close(one.fd);
  }
  void add(uint32_t process, pid_t pid) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return;  // an old kernel, or processes that do not see each other
    fds_.push_back({fd, POLLIN, 0});
    processes_.push_back(process);
  }
  // Calls `ended` for each process that has.
  template <typename Function>
  void look(const Function& ended) {
    const auto now = steady_clock::now();
    if (now < next_ || fds_.empty()) return;
    next_ = now + kLookInterval;
    if (poll(fds_.data(), fds_.size(), 0) <= 0) return;
    for (size_t i = 0; i < fds_.size(); ++i)
      if (fds_[i].revents & POLLIN) ended(processes_[i]);
  }

 private:
  std::vector<pollfd> fds_;
  std::vector<uint32_t> processes_;
  steady_clock::time_point next_{};
};

struct Transport {
  Transport(Library& library, uint32_t count, uint32_t timeout_ms)
      : link(library, kPiece, timeout_ms), ranks(count), lost(count) {}

  Link link;
  std::vector<int> ranks;         // MPI's, by number of the group
  std::vector<std::string> lost;  // why a process is lost; under the library's lock
  Watch watch;
  // Looks once more for what has come from a process before it is lost.
  void look() {
    watch.look([this](uint32_t process) {
      if (!lost[process].empty()) return;
      link.progress();
      if (lost[process].empty()) lost[process] = "it has ended";
    });
  }
};

collet_status open(const collet_transport_options* options, void** out, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    Library& library = Library::get();
    if (static_cast<uint32_t>(library.size()) != options->size)
      throw Error(COLLET_FAILED_PRECONDITION,
                  "the group has " + std::to_string(options->size) + " processes and MPI " +
                      std::to_string(library.size()) +
                      ": all processes are started by one mpirun or srun, and all are in the group (" +
                      library.version() + ")");
    // Who is who. The store has a limit; MPI's functions are called when all are there.
    std::vector<Place> places(options->size);
    const collet_store& store = *options->store;
    places[options->rank] = own_place(library);
    const std::string prefix(options->prefix);
    collet_status status = store.put(store.user, (prefix + std::to_string(options->rank)).c_str(),
                                     &places[options->rank], sizeof(Place), error);
    if (status != COLLET_OK) return status;
    auto transport = [&] {
      for (uint32_t p = 0; p < options->size; ++p) {
        if (p == options->rank) continue;
        const auto take = [](void* to, const void* value, uint64_t bytes) {
          if (bytes == sizeof(Place)) std::memcpy(to, value, bytes);
        };
        status =
            store.get(store.user, (prefix + std::to_string(p)).c_str(), options->timeout_ms, take, &places[p], error);
        if (status != COLLET_OK) return std::unique_ptr<Transport>();
      }
      return std::make_unique<Transport>(library, options->size, options->timeout_ms);
    }();
    if (!transport) return status;
    std::vector<uint32_t> numbers(options->size, options->size);  // of the group, by MPI's
    for (uint32_t p = 0; p < options->size; ++p) {
      const int rank = places[p].rank;
      if (rank < 0 || rank >= library.size() || numbers[static_cast<size_t>(rank)] < options->size)
        throw Error(COLLET_FAILED_PRECONDITION, "process " + std::to_string(p) + " has MPI's number " +
                                                    std::to_string(rank) + ", which another one has, too");
      transport->ranks[p] = rank;
      numbers[static_cast<size_t>(rank)] = p;
      if (p != options->rank && std::strcmp(places[p].boot, places[options->rank].boot) == 0)
        transport->watch.add(p, places[p].pid);
    }
    transport->link.listen(kClosedTag, [t = transport.get(), numbers](int from, const std::vector<char>&) {
      t->lost[numbers[static_cast<size_t>(from)]] = "it has closed its connections";
    });
    *out = transport.release();
    return COLLET_OK;
  });
}

void close(void* handle) {
  std::unique_ptr<Transport> transport(static_cast<Transport*>(handle));
  collet_error ignored{};
  guarded(&ignored, [&]() -> collet_status {
    Library& library = transport->link.library();
    const std::lock_guard lock(library.lock());
    const char byte = 0;
    for (const int rank : transport->ranks)
      if (rank != library.rank()) transport->link.post(rank, kClosedTag, &byte, 1);
    transport->link.progress();
    if (!transport->link.is_idle()) transport.release();  // MPI still has its buffers
    return COLLET_OK;
  });
}

// One call of exchange().
class Exchange {
 public:
  Exchange(Transport& transport, const collet_message* sends, uint32_t send_count, const collet_message* receives,
           uint32_t receive_count)
      : transport_(transport), sends_(sends, sends + send_count), receives_(receives, receives + receive_count) {
    out_.reserve(send_count);
    in_.reserve(receive_count);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    const std::lock_guard lock(transport_.link.library().lock());
    for (Link::Sending& one : out_) transport_.link.give_up(one);
    for (Link::Receiving& one : in_) transport_.link.give_up(one);
  }

  collet_status run(uint32_t timeout_ms, int32_t (*received)(void* user, uint32_t index), void* user,
                    uint32_t* out_process, collet_error* error) {
    const auto end = steady_clock::now() + milliseconds(timeout_ms);
    start();
    size_t got = 0, sent = 0;
    for (int round = 0;; ++round) {
      std::string why;
      const size_t before = got;
      {
        const std::lock_guard lock(transport_.link.library().lock());
        transport_.link.progress();
        while (got < in_.size() && in_[got].is_done) ++got;
        while (got == in_.size() && sent < out_.size() && out_[sent].is_done()) ++sent;
        if (got == before && (got < in_.size() || sent < out_.size())) {
          transport_.look();
          // Another thread may ask meanwhile for whom the call waits.
          std::atomic_ref(*out_process)
              .store(got < in_.size() ? receives_[got].process : sends_[sent].process, std::memory_order_relaxed);
          // What has come last is taken in the next round.
          const bool is_done = got < in_.size() ? in_[got].is_done : out_[sent].is_done();
          if (!is_done) why = transport_.lost[*out_process];
        }
      }
      for (size_t i = before; i < got; ++i)
        if (received(user, static_cast<uint32_t>(i)) != 0) return collet_set_error(error, COLLET_CANCELLED, "given up");
      if (got == in_.size() && sent == out_.size()) return COLLET_OK;
      if (!why.empty()) return collet_set_error(error, COLLET_UNAVAILABLE, why.c_str());
      if (steady_clock::now() >= end) {
        transport_.link.library().abandon();
        return collet_set_error(error, COLLET_DEADLINE_EXCEEDED, "no answer in time");
      }
      if (got > before) round = 0;
      if (round < kSpins)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kSleep);
    }
  }

 private:
  void start() {
    const std::lock_guard lock(transport_.link.library().lock());
    for (const collet_message& one : receives_) {
      in_.push_back({transport_.ranks[one.process], one.tag, static_cast<char*>(one.data), one.bytes});
      transport_.link.receive(in_.back());
    }
    for (const collet_message& one : sends_) {
      out_.push_back({.to = transport_.ranks[one.process],
                      .tag = one.tag,
                      .data = static_cast<const char*>(one.data),
                      .bytes = one.bytes});
      transport_.link.send(out_.back());
    }
  }

  Transport& transport_;
  std::vector<collet_message> sends_, receives_;
  std::vector<Link::Sending> out_;
  std::vector<Link::Receiving> in_;
};

collet_status exchange(void* handle, const collet_message* sends, uint32_t send_count, const collet_message* receives,
                       uint32_t receive_count, uint32_t timeout_ms, int32_t (*received)(void* user, uint32_t index),
                       void* user, uint32_t* out_process, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    Exchange one(*static_cast<Transport*>(handle), sends, send_count, receives, receive_count);
    return one.run(timeout_ms, received, user, out_process, error);
  });
}

collet_status post(void* handle, const collet_message* message, collet_error* error) {
  auto& transport = *static_cast<Transport*>(handle);
  return guarded(error, [&]() -> collet_status {
    const std::lock_guard lock(transport.link.library().lock());
    transport.look();
    if (!transport.lost[message->process].empty())
      return collet_set_error(error, COLLET_UNAVAILABLE, transport.lost[message->process].c_str());
    transport.link.post(transport.ranks[message->process], message->tag, message->data, message->bytes);
    transport.link.progress();
    return COLLET_OK;
  });
}

// A store in the memory of the processes: each entry is sent to all.
class Store {
 public:
  Store(Library& library, uint32_t timeout_ms)
      : link_(library, kPieceOfStore, timeout_ms), store_{sizeof(collet_store), 0, this, put, get} {
    link_.listen(kEntryTag, [this](int, const std::vector<char>& data) {
      const size_t key = strnlen(data.data(), data.size());
      if (key < data.size())
        entries_.try_emplace(std::string(data.data(), key), data.begin() + static_cast<int64_t>(key) + 1, data.end());
    });
  }
  const collet_store* store() const { return &store_; }

 private:
  static collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
    auto& self = *static_cast<Store*>(user);
    return guarded(error, [&]() -> collet_status {
      Library& library = self.link_.library();
      const std::lock_guard lock(library.lock());
      self.link_.progress();
      const char* const from = static_cast<const char*>(value);
      if (!self.entries_.try_emplace(key, from, from + bytes).second)
        return collet_set_error(error, COLLET_ALREADY_EXISTS, ("the key has a value: " + std::string(key)).c_str());
      std::vector<char> entry(key, key + std::strlen(key) + 1);
      entry.insert(entry.end(), from, from + bytes);
      for (int rank = 0; rank < library.size(); ++rank)
        if (rank != library.rank()) self.link_.post(rank, kEntryTag, entry.data(), entry.size());
      self.link_.progress();
      return COLLET_OK;
    });
  }

  static collet_status get(void* user, const char* key, uint32_t timeout_ms,
                           void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
    auto& self = *static_cast<Store*>(user);
    return guarded(error, [&]() -> collet_status {
      const auto end = steady_clock::now() + milliseconds(timeout_ms);
      while (true) {
        {
          const std::lock_guard lock(self.link_.library().lock());
          self.link_.progress();
          if (const auto found = self.entries_.find(key); found != self.entries_.end()) {
            take(out, found->second.data(), found->second.size());
            return COLLET_OK;
          }
        }
        if (steady_clock::now() >= end) {
          self.link_.library().abandon();
          return collet_set_error(error, COLLET_DEADLINE_EXCEEDED, ("nobody has stored " + std::string(key)).c_str());
        }
        std::this_thread::sleep_for(kSleep);
      }
    });
  }

  Link link_;
  std::map<std::string, std::vector<char>> entries_;  // under the library's lock
  collet_store store_;
};

collet_status launched(uint32_t timeout_ms, uint32_t* out_rank, uint32_t* out_size, const collet_store** out_store,
                       collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    Library& library = Library::get();
    // Never destroyed: MPI may still have its pieces.
    static Store* const store = new Store(library, timeout_ms);
    *out_rank = static_cast<uint32_t>(library.rank());
    *out_size = static_cast<uint32_t>(library.size());
    *out_store = store->store();
    return COLLET_OK;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) collet_status collet_transport_launched(
    uint32_t timeout_ms, uint32_t* out_rank, uint32_t* out_size, const collet_store** out_store, collet_error* error);
collet_status collet_transport_launched(uint32_t timeout_ms, uint32_t* out_rank, uint32_t* out_size,
                                        const collet_store** out_store, collet_error* error) {
  return launched(timeout_ms, out_rank, out_size, out_store, error);
}

extern "C" __attribute__((visibility("default"))) const collet_transport* collet_transport_entry(void);
const collet_transport* collet_transport_entry(void) {
  static const collet_transport table = {sizeof(collet_transport), 1, open, close, exchange, post, /*leave=*/nullptr};
  return &table;
}
