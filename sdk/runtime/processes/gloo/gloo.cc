// SPDX-License-Identifier: Apache-2.0
// A transport (collet/processes.h) over Gloo: TCP connections between all processes of a group.
#include <collet/error.h>
#include <collet/processes.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using gloo::transport::tcp::Address;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// How long a process that closes its connections waits until what it has sent has arrived, and how often it looks.
constexpr auto kLongestDelivery = std::chrono::seconds(10);
constexpr auto kDeliveryTick = milliseconds(1);
constexpr milliseconds kFarewellDelivery(1000);  // where a process is lost
// How long it waits for the others to ask for what it has posted. Some of it may be for nobody any more.
constexpr milliseconds kPostedDelivery(300);
// The most bytes of a short message, of which copies are made.
constexpr uint64_t kShort = 1024;
// How often a process that cannot wait any longer for connections tries to end the wait.
constexpr milliseconds kEndingTick(100);
// The slot of the message in which a process says why it gives up.
constexpr uint64_t kFarewellSlot = 0x6661726577656c6c;

// Gloo's errors are exceptions; this one carries the code of the store's.
struct StoreError : std::runtime_error {
  StoreError(collet_status status, const std::string& message) : std::runtime_error(message), code(status) {}
  collet_status code;
};

// Returns the time that is left, at least a millisecond: zero would mean no limit.
milliseconds left(steady_clock::time_point end) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(end - steady_clock::now()));
}

// While it lives, no pair waits past `end` for the other process to connect: this process connects in its place. Gloo's own limit is of no
// use. Its thread calls a pair that has waited when the connection comes after all, though the pair has failed or is gone.
class ConnectLimit {
 public:
  // `pairs` are the addresses of this process's pairs.
  ConnectLimit(steady_clock::time_point end, std::vector<Address> pairs)
      : end_(end), pairs_(std::move(pairs)), thread_([this] { run(); }) {}
  ~ConnectLimit() {
    finish();
    for (const int fd : sockets_) ::close(fd);
  }
  ConnectLimit(const ConnectLimit&) = delete;
  ConnectLimit& operator=(const ConnectLimit&) = delete;

  // Returns whether a pair may have a connection of this process only.
  bool is_over() const { return is_over_; }
  // Ends the limit.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, end_, [&] { return is_done_; })) return;
    is_over_ = true;
    do {
      std::erase_if(pairs_, [&](const Address& pair) { return connect_to(pair); });
    } while (!pairs_.empty() && !changed_.wait_for(lock, kEndingTick, [&] { return is_done_; }));
  }

  // Connects to a pair of this process, as the other process would: a connection begins with the pair's number.
  bool connect_to(const Address& pair) {
    const sockaddr_storage& to = pair.getSockaddr();
    const gloo::transport::tcp::sequence_number_t number = pair.getSeq();
    const socklen_t size = to.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) != 0 ||
        ::write(fd, &number, sizeof number) != sizeof number) {
      ::close(fd);
      return false;
    }
    sockets_.push_back(fd);
    return true;
  }

  const steady_clock::time_point end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Address> pairs_;
  std::vector<int> sockets_;
  bool is_done_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

// The connections of this process to all others.
class Mesh : public gloo::Context {
 public:
  using Context::Context;

  // Connects to all others. No process begins before it has the addresses of all, so that all notice at about the same time that one does not
  // answer. `out_process` is the process for which it waits.
  void connect(const collet_transport_options& options, const std::shared_ptr<gloo::transport::Device>& device,
               uint32_t& out_process) {
    const auto end = steady_clock::now() + milliseconds(options.timeout_ms);
    device_ = device;
    transportContext_ = device->createContext(rank, size);
    transportContext_->setTimeout(milliseconds::zero());  // none: see ConnectLimit
    const std::string prefix = options.prefix;
    const collet_store& store = *options.store;
    collet_error error{};
    std::string own;
    std::vector<std::string> addresses(options.size);
    std::vector<Address> pairs;
    for (uint32_t p = 0; p < options.size; ++p) {
      if (p == options.rank) continue;
      const std::vector<char> bytes = transportContext_->createPair(static_cast<int>(p))->address().bytes();
      addresses[p].assign(bytes.begin(), bytes.end());
      pairs.emplace_back(bytes);
    }
    for (const std::string& one : addresses) {
      const uint64_t bytes = one.size();
      own.append(reinterpret_cast<const char*>(&bytes), sizeof bytes) += one;
    }
    collet_status status =
        store.put(store.user, (prefix + std::to_string(options.rank)).c_str(), own.data(), own.size(), &error);
    if (status != COLLET_OK) throw StoreError(status, error.message);
    for (uint32_t p = 0; p < options.size; ++p) {
      if (p == options.rank) continue;
      out_process = p;
      std::string value;
      const auto take = [](void* to, const void* data, uint64_t bytes) {
        static_cast<std::string*>(to)->assign(static_cast<const char*>(data), bytes);
      };
      status = store.get(store.user, (prefix + std::to_string(p)).c_str(), static_cast<uint32_t>(left(end).count()),
                         take, &value, &error);
      if (status != COLLET_OK) throw StoreError(status, error.message);
      addresses[p] = address_for(value, options.rank);
    }
    ConnectLimit limit(end, std::move(pairs));
    for (uint32_t p = 0; p < options.size && !limit.is_over(); ++p) {
      if (p == options.rank) continue;
      out_process = p;
      getPair(static_cast<int>(p))->connect({addresses[p].begin(), addresses[p].end()});
    }
    limit.finish();
    if (limit.is_over())
      throw StoreError(COLLET_DEADLINE_EXCEEDED, "no connection within " + std::to_string(options.timeout_ms) + " ms");
  }

 private:
  // Returns the address that a process has for another one, from the list that it has stored.
  static std::string address_for(const std::string& list, uint32_t process) {
    size_t at = 0;
    for (uint32_t p = 0;; ++p) {
      uint64_t bytes = 0;
      if (list.size() - at < sizeof bytes) break;
      std::memcpy(&bytes, list.data() + at, sizeof bytes);
      at += sizeof bytes;
      if (list.size() - at < bytes) break;
      if (p == process) return list.substr(at, bytes);
      at += bytes;
    }
    throw StoreError(COLLET_FAILED_PRECONDITION, "its addresses in the store cannot be read");
  }
};

// Returns the connected TCP sockets of this process.
std::vector<int> connections() {
  std::vector<int> out;
  std::error_code failure;
  for (std::filesystem::directory_iterator it("/proc/self/fd", failure), end; !failure && it != end;
       it.increment(failure)) {
    const int fd = std::atoi(it->path().filename().c_str());
    int protocol = 0;
    socklen_t size = sizeof protocol;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      out.push_back(fd);
  }
  return out;
}

/// Why a process gives up. `is_there` comes last, so that it is only set in a message that is complete.
struct Farewell {
  char text[248];
  uint64_t is_there;
};

struct Transport {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<Mesh> context;
  // Those of the other processes, which are waited for from the start: they are read at once, and are there when the connection ends.
  std::vector<Farewell> farewells;
  std::vector<Buffer> farewell_buffers;
  // Copies of posted messages, and of short ones of calls that gave up. A buffer that is destroyed before its message was taken takes the
  // message with it.
  std::mutex mutex;
  std::vector<std::pair<std::vector<char>, Buffer>> posted, given_up;
  std::vector<int> sockets;        // Gloo's, and perhaps those of other threads that were opened at the same time
  std::atomic<bool> lost = false;  // a process, or this one gives up
  milliseconds limit{0};
  /// Gloo's reduce-scatter of the last number of elements, which works in place.
  uint64_t scattered = 0;
  std::vector<float> array;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter;
};

bool is_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one; one = one->ifa_next) found |= name == one->ifa_name;
  freeifaddrs(all);
  return found;
}

// While it lives, writing to a connection that the other process has closed is an error and no signal, which would end this
// process. Threads that are started meanwhile keep that: Gloo's does.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec now{};
    if (!was_waiting_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_waiting_ = false;
};

// Runs `body`, and turns its exceptions into errors.
template <typename Body>
collet_status guarded(collet_error* error, const Body& body) {
  const NoPipeSignal no_pipe_signal;
  try {
    return body();
  } catch (const StoreError& e) {
    return collet_set_error(error, e.code, e.what());
  } catch (const std::bad_alloc&) {
    return collet_set_error(error, COLLET_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& e) {
    return collet_set_error(error, COLLET_UNAVAILABLE, e.what());
  }
}

collet_status open(const collet_transport_options* options, void** out, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    auto transport = std::make_unique<Transport>();
    gloo::transport::tcp::attr attr;
    (is_interface(options->address) ? attr.iface : attr.hostname) = options->address;
    transport->device = gloo::transport::tcp::CreateDevice(attr);
    transport->context = std::make_shared<Mesh>(static_cast<int>(options->rank), static_cast<int>(options->size));
    transport->context->setTimeout(milliseconds(options->timeout_ms));
    const std::vector<int> before = connections();
    const auto end = steady_clock::now() + milliseconds(options->timeout_ms);
    uint32_t process = options->rank;
    const auto who = [&] { return "process " + std::to_string(process) + " does not connect: "; };
    try {
      transport->context->connect(*options, transport->device, process);
    } catch (const StoreError& e) {
      throw StoreError(e.code, process == options->rank ? e.what() : who() + e.what());
    } catch (const gloo::Exception& e) {
      throw StoreError(steady_clock::now() < end ? COLLET_UNAVAILABLE : COLLET_DEADLINE_EXCEEDED, who() + e.what());
    }
    transport->farewells.resize(options->size);
    for (uint32_t p = 0; p < options->size; ++p) {
      if (p == options->rank) continue;
      Buffer buffer = transport->context->createUnboundBuffer(&transport->farewells[p], sizeof(Farewell));
      buffer->recv(static_cast<int>(p), kFarewellSlot);
      transport->farewell_buffers.push_back(std::move(buffer));
    }
    transport->sockets = connections();
    std::erase_if(transport->sockets,
                  [&](int fd) { return std::find(before.begin(), before.end(), fd) != before.end(); });
    transport->limit = std::min<milliseconds>(milliseconds(options->timeout_ms), kLongestDelivery);
    *out = transport.release();
    return COLLET_OK;
  });
}

// Returns how many bytes the other end's host has not acknowledged; 0 if it will not any more.
int on_the_way(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  int bytes = 0;
  const bool is_open = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state != TCP_CLOSE;
  return is_open && ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// Waits until the hosts of the other processes have what this one has sent. The kernel drops what is still on its way when a socket is
// closed of which not everything has been read, and Gloo's have notices of messages that nobody waits for. The host of a process that is
// lost may never have it.
void deliver(const Transport& transport) {
  const auto end =
      steady_clock::now() + (transport.lost ? std::min(transport.limit, kFarewellDelivery) : transport.limit);
  for (const int fd : transport.sockets)
    while (on_the_way(fd) > 0 && steady_clock::now() < end) std::this_thread::sleep_for(kDeliveryTick);
}

// Waits until the other processes have asked for what was posted: Gloo sends a message when its receiver waits for it. A process that
// fails and closes at once would not tell the others why.
void deliver_posted(const Transport& transport) {
  const auto end = steady_clock::now() + std::min(transport.limit, kPostedDelivery);
  collet_error ignored{};
  guarded(&ignored, [&]() -> collet_status {
    for (const auto& [copy, buffer] : transport.posted) buffer->waitSend(left(end));
    return COLLET_OK;
  });
}

void close(void* handle) {
  const std::unique_ptr<Transport> transport(static_cast<Transport*>(handle));
  if (!transport->lost) deliver_posted(*transport);
  deliver(*transport);
  collet_error ignored{};
  guarded(&ignored, [&]() -> collet_status {
    transport->context->closeConnections();
    return COLLET_OK;
  });
}

// Waits for a message. A thread that wakes up after the message has come and the connection has ended is told of the end alone; the next
// call returns the message.
void wait_received(const Buffer& buffer, milliseconds limit) {
  try {
    buffer->waitRecv(limit);
  } catch (const gloo::Exception&) {
    const std::exception_ptr end = std::current_exception();
    try {
      buffer->waitRecv(milliseconds(1));
    } catch (const gloo::Exception&) {
      std::rethrow_exception(end);
    }
  }
}

// Another thread may ask meanwhile for whom the call waits.
void wait_for(uint32_t* out_process, uint32_t process) {
  std::atomic_ref(*out_process).store(process, std::memory_order_relaxed);
}

collet_status exchange(void* handle, const collet_message* sends, uint32_t send_count, const collet_message* receives,
                       uint32_t receive_count, uint32_t timeout_ms, int32_t (*received)(void* user, uint32_t index),
                       void* user, uint32_t* out_process, collet_error* error) {
  auto& transport = *static_cast<Transport*>(handle);
  const auto end = steady_clock::now() + milliseconds(timeout_ms);
  std::vector<Buffer> in, out;
  // Copies of short messages. They outlive a call that gives up: Gloo takes back what is sent from a buffer that is destroyed, and reads
  // nothing more from a connection on which data come for such a buffer.
  std::vector<std::vector<char>> out_copies(send_count), in_copies(receive_count);
  // Short messages that come first say what the others run. What follows is only waited for when they have been accepted, if a third process
  // could be hurt otherwise.
  uint32_t first = 0;
  while (first < receive_count && receives[first].bytes <= kShort) ++first;
  const auto from_another = [&](const collet_message& one) { return one.process != receives[0].process; };
  if (std::none_of(receives, receives + receive_count, from_another)) first = 0;
  const collet_status status = guarded(error, [&]() -> collet_status {
    const auto start_receiving = [&](uint32_t i) {
      wait_for(out_process, receives[i].process);
      void* data = receives[i].data;
      if (i < first) {
        in_copies[i].resize(receives[i].bytes);
        data = in_copies[i].data();
      }
      in.push_back(transport.context->createUnboundBuffer(data, receives[i].bytes));
      in.back()->recv(static_cast<int>(receives[i].process), receives[i].tag);
    };
    const auto finish_receiving = [&](uint32_t i) {
      wait_for(out_process, receives[i].process);
      wait_received(in[i], left(end));
      if (i < first) std::memcpy(receives[i].data, in_copies[i].data(), receives[i].bytes);
      return received(user, i) == 0;
    };
    for (uint32_t i = 0; i < (first ? first : receive_count); ++i) start_receiving(i);
    for (uint32_t i = 0; i < send_count; ++i) {
      wait_for(out_process, sends[i].process);
      void* data = sends[i].data;
      if (sends[i].bytes <= kShort) {
        const char* from = static_cast<const char*>(data);
        out_copies[i].assign(from, from + sends[i].bytes);
        data = out_copies[i].data();
      }
      out.push_back(transport.context->createUnboundBuffer(data, sends[i].bytes));
      out.back()->send(static_cast<int>(sends[i].process), sends[i].tag);
    }
    for (uint32_t i = 0; i < first; ++i)
      if (!finish_receiving(i)) return collet_set_error(error, COLLET_CANCELLED, "given up");
    for (uint32_t i = first; first && i < receive_count; ++i) start_receiving(i);
    for (uint32_t i = first; i < receive_count; ++i)
      if (!finish_receiving(i)) return collet_set_error(error, COLLET_CANCELLED, "given up");
    for (uint32_t i = 0; i < send_count; ++i) {
      wait_for(out_process, sends[i].process);
      out[i]->waitSend(left(end));
    }
    return COLLET_OK;
  });
  const bool is_late = status == COLLET_UNAVAILABLE && steady_clock::now() >= end;
  // Gloo has closed the connections then, so nothing more comes into the copies.
  for (uint32_t i = 0; is_late && i < first && i < in.size(); ++i)
    if (!in_copies[i].empty()) std::memcpy(receives[i].data, in_copies[i].data(), receives[i].bytes);
  if (status != COLLET_OK) {
    const std::lock_guard lock(transport.mutex);
    for (size_t i = 0; i < out.size(); ++i)
      if (!out_copies[i].empty()) transport.given_up.emplace_back(std::move(out_copies[i]), std::move(out[i]));
    for (size_t i = 0; i < in.size(); ++i)
      if (!in_copies[i].empty()) transport.given_up.emplace_back(std::move(in_copies[i]), std::move(in[i]));
  }
  if (status == COLLET_UNAVAILABLE) {
    transport.lost = true;
    const Farewell& farewell = transport.farewells[*out_process];
    if (farewell.is_there == 1) {
      const std::string text(farewell.text, strnlen(farewell.text, sizeof farewell.text));
      collet_set_error(error, status, ("it has given up: " + text).c_str());
    }
  }
  if (!is_late) return status;
  error->code = COLLET_DEADLINE_EXCEEDED;
  return COLLET_DEADLINE_EXCEEDED;
}

collet_status post(void* handle, const collet_message* message, collet_error* error) {
  auto& transport = *static_cast<Transport*>(handle);
  return guarded(error, [&]() -> collet_status {
    const char* from = static_cast<const char*>(message->data);
    std::vector<char> copy(from, from + message->bytes);
    Buffer buffer = transport.context->createUnboundBuffer(copy.data(), copy.size());
    buffer->send(static_cast<int>(message->process), message->tag);
    const std::lock_guard lock(transport.mutex);
    transport.posted.emplace_back(std::move(copy), std::move(buffer));
    return COLLET_OK;
  });
}

void leave(void* handle, const char* why) {
  auto& transport = *static_cast<Transport*>(handle);
  transport.lost = true;
  Farewell farewell{};
  collet_copy_text(farewell.text, sizeof farewell.text, why);
  farewell.is_there = 1;
  const auto size = static_cast<uint32_t>(transport.context->size);
  for (uint32_t p = 0; p < size; ++p) {
    if (static_cast<int>(p) == transport.context->rank) continue;
    const collet_message message = {p, 0, kFarewellSlot, &farewell, sizeof farewell};
    collet_error ignored{};
    post(handle, &message, &ignored);
  }
}

// Gloo has no permute of its own. The calls do not change the inputs.
collet_status collective(void* handle, const collet_own_collective* call, collet_error* error) {
  auto& transport = *static_cast<Transport*>(handle);
  return guarded(error, [&]() -> collet_status {
    const auto& context = transport.context;
    const milliseconds limit(call->timeout_ms);
    auto* const in = const_cast<float*>(call->in);
    const size_t count = call->elements, part = count / static_cast<size_t>(context->size);
    switch (call->kind) {
      case COLLET_OWN_ALL_REDUCE: {
        gloo::AllreduceOptions options(context);
        options.setInput(in, count);
        options.setOutput(call->out, count);
        options.setReduceFunction(
            [](void* to, const void* a, const void* b, size_t n) { gloo::sum<float>(to, a, b, n); });
        options.setTimeout(limit);
        gloo::allreduce(options);
        return COLLET_OK;
      }
      case COLLET_OWN_ALL_GATHER: {
        gloo::AllgatherOptions options(context);
        options.setInput(in, part);
        options.setOutput(call->out, count);
        options.setTimeout(limit);
        gloo::allgather(options);
        return COLLET_OK;
      }
      case COLLET_OWN_REDUCE_SCATTER: {
        if (transport.scattered != count) {
          transport.scatter.reset();
          transport.array.assign(count, 0);
          transport.scatter = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
              context, std::vector<float*>{transport.array.data()}, static_cast<int>(count),
              std::vector<int>(static_cast<size_t>(context->size), static_cast<int>(part)));
          transport.scattered = count;
        }
        std::copy_n(in, count, transport.array.data());
        transport.scatter->run();
        std::copy_n(transport.array.data(), part, call->out);
        return COLLET_OK;
      }
      case COLLET_OWN_ALL_TO_ALL: {
        gloo::AlltoallOptions options(context);
        options.setInput(in, count);
        options.setOutput(call->out, count);
        options.setTimeout(limit);
        gloo::alltoall(options);
        return COLLET_OK;
      }
      case COLLET_OWN_BROADCAST: {
        gloo::BroadcastOptions options(context);
        if (context->rank == 0) options.setInput(in, count);
        options.setOutput(call->out, count);
        options.setRoot(0);
        options.setTimeout(limit);
        gloo::broadcast(options);
        return COLLET_OK;
      }
      default:
        return collet_set_error(error, COLLET_UNIMPLEMENTED, "Gloo has no such collective");
    }
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) collet_status
collet_transport_collective(void* transport, const collet_own_collective* call, collet_error* error);
collet_status collet_transport_collective(void* transport, const collet_own_collective* call, collet_error* error) {
  return collective(transport, call, error);
}

extern "C" __attribute__((visibility("default"))) const collet_transport* collet_transport_entry(void);
const collet_transport* collet_transport_entry(void) {
  static const collet_transport table = {sizeof(collet_transport), 1, open, close, exchange, post, leave};
  return &table;
}
