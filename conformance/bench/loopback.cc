// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace collet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kBlock = uint64_t{1} << 18;  // of a stream: it stays in the caches

Status failed(const char* what) {
  const Code code = errno == EAGAIN || errno == EWOULDBLOCK ? Code::DeadlineExceeded : Code::Unavailable;
  return Status(code, std::string("the loopback's connection, ") + what + ": " + std::strerror(errno));
}

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status prepare(int fd, uint32_t timeout_ms) {
  const int yes = 1;
  const timeval limit{timeout_ms / 1000, static_cast<suseconds_t>(timeout_ms % 1000) * 1000};
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
    return failed("setsockopt");
  return ok_status();
}

}  // namespace

Loopback::Loopback(Loopback&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), first_(other.first_), block_(std::move(other.block_)) {}
Loopback& Loopback::operator=(Loopback&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(first_, other.first_);
  std::swap(block_, other.block_);
  return *this;
}
Loopback::~Loopback() {
  if (fd_ >= 0) close(fd_);
}

Expected<Loopback> Loopback::connect(uint32_t process, const collet_store& store, const std::string& key,
                                     uint32_t timeout_ms) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  collet_error error{};
  if (process == 0) {
    socklen_t size = sizeof address;
    COLLET_TRY(prepare(socket.get(), timeout_ms));  // the limit holds for accept, too
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(socket.get(), 1) != 0 ||
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return failed("listen");
    const collet_status put = store.put(store.user, key.c_str(), &address.sin_port, sizeof address.sin_port, &error);
    if (put != COLLET_OK) return from_c(put, error, "the store, put");
    Socket accepted(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.get() < 0) return failed("accept");
    COLLET_TRY(prepare(accepted.get(), timeout_ms));
    return Loopback(accepted.release(), true);
  }
  std::string port;
  const auto take = [](void* out, const void* value, uint64_t bytes) {
    static_cast<std::string*>(out)->assign(static_cast<const char*>(value), bytes);
  };
  const collet_status got = store.get(store.user, key.c_str(), timeout_ms, take, &port, &error);
  if (got != COLLET_OK) return from_c(got, error, "the store, get");
  if (port.size() != sizeof address.sin_port) return internal_error("the store has no port of the loopback");
  std::memcpy(&address.sin_port, port.data(), sizeof address.sin_port);
  COLLET_TRY(prepare(socket.get(), timeout_ms));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("connect");
  return Loopback(socket.release(), false);
}

Status Loopback::send(const void* data, uint64_t bytes) const {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd_, from, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("send");
    from += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return ok_status();
}

Status Loopback::receive(void* data, uint64_t bytes) const {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = recv(fd_, to, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("receive");
    if (n == 0) return Status(Code::Unavailable, "the loopback's connection has been closed by the other process");
    to += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return ok_status();
}

Expected<double> Loopback::ping(unsigned times) {
  uint32_t word = 0;
  const auto start = Clock::now();
  for (unsigned i = 0; i < times; ++i) {
    if (first_) COLLET_TRY(send(&word, sizeof word));
    COLLET_TRY(receive(&word, sizeof word));
    if (!first_) COLLET_TRY(send(&word, sizeof word));
  }
  return ns_since(start) / (2.0 * times);
}

Expected<double> Loopback::stream(uint64_t bytes) {
  block_.resize(kBlock);
  char done = 0;
  const auto start = Clock::now();
  for (uint64_t left = bytes; left > 0;) {
    const uint64_t part = std::min(left, kBlock);
    COLLET_TRY(first_ ? send(block_.data(), part) : receive(block_.data(), part));
    left -= part;
  }
  COLLET_TRY(first_ ? receive(&done, 1) : send(&done, 1));
  return ns_since(start);
}

}  // namespace collet::bench
