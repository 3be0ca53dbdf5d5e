// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/nccl_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

namespace collet::gpu::emulator {
namespace {

using Bytes = std::vector<uint8_t>;

/// The kinds of messages, and what Message::value and Message::number are.
enum MessageKind : uint32_t {
  kHello,      ///< to the coordinator: rank; the payload is a Hello
  kCalls,      ///< to the coordinator: 0; number of the group
  kBye,        ///< to the coordinator: no more calls come
  kReady,      ///< all members have come
  kResults,    ///< 0; number of the group
  kFailure,    ///< the ncclResult_t; the payload is text
  kFinalized,  ///< the answer to kBye
};

struct Message {
  uint32_t kind = 0;
  uint32_t value = 0;
  uint64_t number = 0;
  uint64_t bytes = 0;  ///< of the payload, which follows
};

struct Hello {
  int32_t members = 0;
  int32_t device = 0;
  uint64_t process = 0;
};

/// A call as it is sent.
struct WireCall {
  uint32_t kind, type, combine;
  int32_t peer;
  uint64_t count;
};

constexpr uint64_t kMostBytes = uint64_t{1} << 36;  ///< of a payload: more is no message
constexpr int32_t kMostMembers = 1 << 16;

/// Throws if a message is not as a member or a coordinator writes it.
void require(bool holds) {
  if (!holds) throw std::runtime_error("a message that NCCL's emulator does not know");
}

template <class T>
T read_struct(const Bytes& bytes, size_t at) {
  require(at <= bytes.size() && sizeof(T) <= bytes.size() - at);
  T out;
  std::memcpy(&out, &bytes[at], sizeof out);
  return out;
}

/// A file descriptor that the thread of the connections waits for. Used by that thread alone.
class Watched {
 public:
  explicit Watched(int fd) : fd_(fd) {}
  virtual ~Watched() { close_now(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  virtual bool wants_to_write() const { return false; }
  /// Called when the descriptor can be read, or written if it wants to.
  virtual void act() = 0;
  void close_now() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

/// The thread of the connections.
class Connections {
 public:
  static Connections& the() {
    static auto* const all = new Connections;  // never destroyed, because its thread runs until the process ends
    return *all;
  }

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const uint64_t one = 1;
    static_cast<void>(!write(wake_, &one, sizeof one));  // it fails only if the thread is to wake up already
  }
  /// Adds what is to be waited for until it is closed. Called by the thread of the connections.
  void add(std::shared_ptr<Watched> one) { watched_.push_back(std::move(one)); }

 private:
  Connections() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_ < 0) throw std::runtime_error("eventfd fails");
    std::thread([this] { run(); }).detach();
  }

  void run() {
    std::vector<pollfd> polled;
    for (;;) {
      const std::vector<std::shared_ptr<Watched>> all = watched_;
      polled.assign(1, {wake_, POLLIN, 0});
      for (const auto& one : all)
        polled.push_back({one->fd(), static_cast<short>(one->wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      for (size_t i = 0; i < all.size(); ++i)
        if (polled[i + 1].revents != 0 && all[i]->is_open()) all[i]->act();
      uint64_t count = 0;
      std::deque<std::function<void()>> tasks;
      if (polled[0].revents != 0 && read(wake_, &count, sizeof count) > 0) {
        const std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
      }
      for (const std::function<void()>& task : tasks) task();
      watched_.erase(std::remove_if(watched_.begin(), watched_.end(), [](const auto& one) { return !one->is_open(); }),
                     watched_.end());
    }
  }

  const int wake_;
  std::mutex mutex_;  ///< guards tasks_
  std::deque<std::function<void()>> tasks_;
  std::vector<std::shared_ptr<Watched>> watched_;
};

/// A connected socket, by which messages come and go. Used by the thread of the connections.
class Socket final : public Watched {
 public:
  explicit Socket(int fd) : Watched(fd) {}

  std::function<void(const Message&, Bytes)> on_message;
  std::function<void()> on_flushed;  ///< what had to wait has been written
  std::function<void()> on_loss;     ///< the other end is gone, or has sent what is no message

  void send(MessageKind kind, uint32_t value, uint64_t number, Bytes payload = {}) {
    if (!is_open()) return;
    const Message head{kind, value, number, payload.size()};
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&head);
    out_.emplace_back(bytes, bytes + sizeof head);
    if (!payload.empty()) out_.push_back(std::move(payload));
    write_some();
  }
  bool is_flushed() const { return out_.empty(); }
  /// Closes the socket. Nothing is called afterwards.
  void end() {
    close_now();
    out_.clear();
    // What is being called has been copied before.
    on_message = nullptr;
    on_flushed = on_loss = nullptr;
  }

  bool wants_to_write() const override { return !out_.empty(); }
  void act() override {
    try {
      const bool was_waiting = !is_flushed();
      write_some();
      if (was_waiting && is_flushed()) call(on_flushed);
      while (is_open() && read_some()) {
      }
    } catch (const std::exception&) {
      lose();
    }
  }

 private:
  static void call(std::function<void()> function) {
    if (function) function();
  }

  void lose() {
    if (!is_open()) return;
    const std::function<void()> told = on_loss;
    end();
    call(told);
  }

  void write_some() {
    while (is_open() && !out_.empty()) {
      const Bytes& first = out_.front();
      const ssize_t done = ::send(fd(), &first[sent_], first.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      // What has arrived before the other end was closed is still read, so the loss is noticed there.
      if (done < 0) return out_.clear();
      sent_ += static_cast<size_t>(done);
      if (sent_ < first.size()) continue;
      sent_ = 0;
      out_.pop_front();
    }
  }

  /// Reads a part of a message. Returns false if there is nothing to read now.
  bool read_some() {
    const bool is_head = got_ < sizeof head_;
    uint8_t* const to = is_head ? reinterpret_cast<uint8_t*>(&head_) + got_ : &payload_[got_ - sizeof head_];
    const size_t missing = (is_head ? sizeof head_ : sizeof head_ + payload_.size()) - got_;
    const ssize_t done = recv(fd(), to, missing, MSG_DONTWAIT);
    if (done < 0 && errno == EINTR) return true;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (done <= 0) {
      lose();
      return false;
    }
    got_ += static_cast<size_t>(done);
    if (got_ == sizeof head_ && is_head) {
      require(head_.bytes <= kMostBytes);
      payload_.resize(head_.bytes);
    }
    if (got_ < sizeof head_ || got_ < sizeof head_ + payload_.size()) return true;
    got_ = 0;
    const std::function<void(const Message&, Bytes)> told = on_message;
    if (told) told(head_, std::exchange(payload_, {}));
    return true;
  }

  std::deque<Bytes> out_;
  size_t sent_ = 0;  ///< bytes of the first of out_
  Message head_;
  Bytes payload_;
  size_t got_ = 0;  ///< bytes of the message that is read
};

/// The calls of a member in one group. Their `from` and `to` are addresses in this process.
struct Group {
  uint64_t number = 0;
  std::vector<Call> calls;
  Bytes operands, results;
};

/// Reads the calls of a group, and points them to the operands and to memory for the results.
std::unique_ptr<Group> decode(uint64_t number, Bytes bytes, size_t rank, size_t members) {
  auto out = std::make_unique<Group>();
  out->number = number;
  out->operands = std::move(bytes);
  size_t at = 0, result_bytes = 0;
  while (at < out->operands.size()) {
    const auto wire = read_struct<WireCall>(out->operands, at);
    at += sizeof wire;
    require(wire.kind <= static_cast<uint32_t>(CallKind::kReceive) && wire.combine <= ncclMin && wire.peer >= 0 &&
            static_cast<size_t>(wire.peer) < members && wire.count <= kMostBytes);
    Call call{};
    call.kind = static_cast<CallKind>(wire.kind);
    call.type = static_cast<ncclDataType_t>(wire.type);
    call.combine = static_cast<ncclRedOp_t>(wire.combine);
    call.count = wire.count;
    call.peer = wire.peer;
    require(bytes_of(call.type) != 0);
    const uint64_t operand = call.operand_bytes(rank, members) * (call.kind == CallKind::kSend ? 2 : 1);
    require(operand <= out->operands.size() - at);
    call.from = reinterpret_cast<uint64_t>(out->operands.data() + at);
    call.to = result_bytes;  // becomes an address below
    at += operand;
    result_bytes += call.result_bytes(members) * (call.kind == CallKind::kReceive ? 2 : 1);
    require(result_bytes <= kMostBytes);
    out->calls.push_back(call);
  }
  out->results.resize(result_bytes);
  for (Call& call : out->calls) call.to += reinterpret_cast<uint64_t>(out->results.data());
  return out;
}

/// Where the members of a communicator meet. Used by the thread of the connections.
class Coordinator : public std::enable_shared_from_this<Coordinator> {
 public:
  /// Takes a connection whose first message says which member it is.
  void greet(int fd) {
    const auto socket = std::make_shared<Socket>(fd);
    socket->on_message = [self = shared_from_this(), at = std::weak_ptr<Socket>(socket)](
                             const Message& head, const Bytes& payload) { self->seat(at.lock(), head, payload); };
    Connections::the().add(socket);
  }
  /// Called once, when all members have come.
  std::function<void()> on_complete;

 private:
  struct Seat {
    std::shared_ptr<Socket> socket;
    uint64_t process = 0;
    int device = 0;
    std::deque<std::unique_ptr<Group>> groups{};  ///< that have come and not run
    bool has_left = false;                        ///< no more calls come
    bool wants_to_know = false;                   ///< that all results have been sent
  };

  void seat(const std::shared_ptr<Socket>& socket, const Message& head, const Bytes& payload) {
    require(head.kind == kHello && payload.size() == sizeof(Hello));
    const auto hello = read_struct<Hello>(payload, 0);
    const auto members = static_cast<size_t>(hello.members);
    require(hello.members > 0 && hello.members <= kMostMembers && head.value < members);
    if (seats_.empty()) seats_ = std::vector<Seat>(members);
    if (failed_ == ncclSuccess && seats_.size() != members)
      fail(ncclInvalidArgument, "members of " + std::to_string(seats_.size()) + " and of " + std::to_string(members));
    else if (failed_ == ncclSuccess && seats_[head.value].socket)
      fail(ncclInvalidArgument, "two members are number " + std::to_string(head.value));
    for (const Seat& other : seats_) {
      if (failed_ == ncclSuccess && other.socket && other.process == hello.process && other.device == hello.device)
        fail(ncclInvalidUsage, "two members have device " + std::to_string(hello.device) + " of a process");
    }
    if (failed_ != ncclSuccess) {
      socket->send(kFailure, failed_, 0, Bytes(why_.begin(), why_.end()));
      socket->on_message = nullptr;
      return;
    }
    const size_t rank = head.value;
    seats_[rank] = {socket, hello.process, hello.device};
    socket->on_message = [self = shared_from_this(), rank](const Message& message, Bytes bytes) {
      self->hear(rank, message, std::move(bytes));
    };
    socket->on_flushed = [self = shared_from_this()] { self->tell_those_who_leave(); };
    socket->on_loss = [self = shared_from_this(), rank] {
      if (!self->seats_[rank].has_left) self->fail(ncclRemoteError, "member " + std::to_string(rank) + " is gone");
      self->seats_[rank].has_left = true;
      self->tell_those_who_leave();
    };
    if (++present_ < seats_.size()) return;
    std::exchange(on_complete, nullptr)();
    for (const Seat& one : seats_) one.socket->send(kReady, 0, 0);
  }

  void hear(size_t rank, const Message& message, Bytes bytes) {
    Seat& from = seats_[rank];
    if (failed_ != ncclSuccess) return;
    if (message.kind == kBye) {
      from.has_left = from.wants_to_know = true;
    } else {
      require(message.kind == kCalls && !from.has_left);
      from.groups.push_back(decode(message.number, std::move(bytes), rank, seats_.size()));
    }
    for (size_t i = 0; i < seats_.size();) i = run_first_group(i) ? 0 : i + 1;
    tell_those_who_leave();
  }

  /// Runs the first group of a member with those of all members that they concern, if they have come. Returns false if not.
  bool run_first_group(size_t rank) {
    if (failed_ != ncclSuccess || seats_[rank].groups.empty()) return false;
    std::set<size_t> concerned;
    std::vector<size_t> added{rank};
    while (!added.empty()) {
      const size_t one = added.back();
      added.pop_back();
      if (!concerned.insert(one).second) continue;
      if (seats_[one].groups.empty()) {
        if (seats_[one].has_left) fail(ncclRemoteError, "member " + std::to_string(one) + " has left");
        return false;
      }
      for (const Call& call : seats_[one].groups.front()->calls) {
        if (call.is_between_two()) {
          added.push_back(static_cast<size_t>(call.peer));
        } else {
          for (size_t i = 0; i < seats_.size(); ++i) added.push_back(i);
        }
      }
    }
    GroupCalls calls(seats_.size());
    for (const size_t one : concerned) calls[one] = seats_[one].groups.front()->calls;
    const std::string why = contradiction(calls);
    if (!why.empty()) {
      fail(ncclInvalidUsage, why);
      return false;
    }
    compute(calls);
    for (const size_t one : concerned) {
      Group& group = *seats_[one].groups.front();
      seats_[one].socket->send(kResults, 0, group.number, std::move(group.results));
      seats_[one].groups.pop_front();
    }
    return true;
  }

  static void compute(const GroupCalls& calls) {
    for (const std::vector<const Call*>& together : collectives_of(calls)) {
      std::vector<const uint8_t*> operands;
      for (const Call* call : together) operands.push_back(reinterpret_cast<const uint8_t*>(call->from));
      const std::vector<Bytes> results = results_of(together, operands);
      for (size_t i = 0; i < together.size(); ++i) {
        if (!results[i].empty())
          std::memcpy(reinterpret_cast<void*>(together[i]->to), results[i].data(), results[i].size());
      }
    }
    for (const Transfer& one : transfers_of(calls)) {
      const uint64_t bytes = 2 * one.send->count * bytes_of(one.send->type);
      if (bytes != 0)
        std::memcpy(reinterpret_cast<void*>(one.receive->to), reinterpret_cast<const void*>(one.send->from), bytes);
    }
  }

  /// Answers members that say bye, when nothing is under way to the others. A result that is in the other's socket arrives, even
  /// if this process ends.
  void tell_those_who_leave() {
    const auto is_on_its_way = [](const Seat& seat) { return seat.socket && !seat.socket->is_flushed(); };
    for (Seat& seat : seats_) {
      if (!seat.wants_to_know) continue;
      if (std::any_of(seats_.begin(), seats_.end(), is_on_its_way)) return;
      seat.wants_to_know = false;
      seat.socket->send(kFinalized, 0, 0);
    }
  }
  void fail(ncclResult_t result, const std::string& why) {
    if (failed_ != ncclSuccess) return;
    failed_ = result;
    why_ = why;
    for (Seat& seat : seats_) {
      seat.groups.clear();
      if (seat.socket && !seat.wants_to_know) seat.socket->send(kFailure, result, 0, Bytes(why.begin(), why.end()));
    }
  }

  std::vector<Seat> seats_;  ///< by rank
  size_t present_ = 0;       ///< seats that are taken
  ncclResult_t failed_ = ncclSuccess;
  std::string why_;
};

/// The socket to which the members of a communicator connect.
class Listener final : public Watched {
 public:
  explicit Listener(int fd) : Watched(fd) {
    coordinator_->on_complete = [this] { close_now(); };
  }
  void act() override {
    const int fd = accept4(this->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    // Anybody can connect to the name; others than this user are not heard.
    ucred other{};
    socklen_t bytes = sizeof other;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0 || other.uid != geteuid()) {
      close(fd);
      return;
    }
    coordinator_->greet(fd);
  }

 private:
  const std::shared_ptr<Coordinator> coordinator_ = std::make_shared<Coordinator>();
};

constexpr char kIdPrefix[] = "collet-emulator-nccl-";
constexpr size_t kIdRandomBytes = 16;
constexpr size_t kIdBytes = sizeof kIdPrefix - 1 + 2 * kIdRandomBytes;

/// Returns the name of the socket that an id stands for: an abstract one, which needs no file.
std::pair<sockaddr_un, socklen_t> address_of(const ncclUniqueId& id) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  static_assert(kIdBytes + 1 <= sizeof out.sun_path && kIdBytes < sizeof id.internal);
  std::memcpy(out.sun_path + 1, id.internal, kIdBytes);
  return {out, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kIdBytes)};
}

class MembershipImpl final : public Membership {
 public:
  MembershipImpl(int fd, Events events) : socket_(std::make_shared<Socket>(fd)), events_(std::move(events)) {}
  ~MembershipImpl() override {
    Connections::the().post([socket = socket_] { socket->end(); });
  }

  void start(int members, int rank, int device) {
    // The events belong to the socket, which outlives this object where they are being called.
    socket_->on_message = [events = events_, socket = socket_.get()](const Message& head, Bytes payload) {
      switch (head.kind) {
        case kReady:
          return events.ready();
        case kResults:
          return events.results(head.number, std::move(payload));
        case kFinalized:
          return events.finalized();
        case kFailure:
          socket->on_loss = nullptr;
          return events.failed(static_cast<ncclResult_t>(head.value), std::string(payload.begin(), payload.end()));
        default:
          require(false);
      }
    };
    socket_->on_loss = [failed = events_.failed] {
      failed(ncclRemoteError, "the process that has made the unique id is gone");
    };
    Hello hello;
    hello.members = members;
    hello.device = device;
    hello.process = static_cast<uint64_t>(getpid());
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&hello);
    Connections::the().post([socket = socket_, rank, payload = Bytes(bytes, bytes + sizeof hello)] {
      Connections::the().add(socket);
      socket->send(kHello, static_cast<uint32_t>(rank), 0, payload);
    });
  }

  void submit(uint64_t group, EncodedCalls calls) override {
    const auto payload = std::make_shared<Bytes>(std::move(calls.bytes));
    Connections::the().post(
        [socket = socket_, group, payload] { socket->send(kCalls, 0, group, std::move(*payload)); });
  }
  void finalize() override {
    Connections::the().post([socket = socket_] { socket->send(kBye, 0, 0); });
  }
  void leave() override {
    Connections::the().post([socket = socket_] { socket->end(); });
  }

 private:
  const std::shared_ptr<Socket> socket_;
  const Events events_;
};

}  // namespace

uint8_t* EncodedCalls::add(const Call& call, uint64_t operand_bytes) {
  const WireCall wire{static_cast<uint32_t>(call.kind), call.type, call.combine, call.peer, call.count};
  const auto* const head = reinterpret_cast<const uint8_t*>(&wire);
  bytes.insert(bytes.end(), head, head + sizeof wire);
  const size_t at = bytes.size();
  bytes.resize(at + operand_bytes * (call.kind == CallKind::kSend ? 2 : 1));
  return bytes.data() + at;
}

void run_on_connections(std::function<void()> function) {
  Connections::the().post(std::move(function));
}

bool is_unique_id(const ncclUniqueId& id) {
  return std::memcmp(id.internal, kIdPrefix, sizeof kIdPrefix - 1) == 0;
}

ncclResult_t make_unique_id(ncclUniqueId* id) {
  uint8_t random[kIdRandomBytes];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) return ncclSystemError;
  std::string name = kIdPrefix;
  for (const uint8_t byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ncclSystemError;
  const auto listener = std::make_shared<Listener>(fd);
  const auto [address, bytes] = address_of(*id);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 || listen(fd, SOMAXCONN) != 0)
    return ncclSystemError;
  Connections::the().post([listener] { Connections::the().add(listener); });
  return ncclSuccess;
}

std::shared_ptr<Membership> Membership::join(const ncclUniqueId& id, int members, int rank, int device, Events events) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  const auto [address, bytes] = address_of(id);
  const auto made = std::make_shared<MembershipImpl>(fd, std::move(events));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return nullptr;
  made->start(members, rank, device);
  return made;
}

}  // namespace collet::gpu::emulator
