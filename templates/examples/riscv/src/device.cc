// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

extern char** environ;

namespace riscv {

using collet::kernel::Error;

namespace {

// Address range for code; constants of programs are part of their code.
constexpr uint64_t kCodeBytes = uint64_t{1} << 30;
constexpr uint64_t kMostInline = 32 << 10;  // most bytes that are written by a command in the ring
constexpr std::chrono::seconds kLongestStart{30};

std::string system_error(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

// Returns the path of the device program, which is in the folder of this library.
std::string default_program() {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0) return DEVICE_PROGRAM;
  const std::string library = info.dli_fname;
  return library.substr(0, library.rfind('/') + 1) + DEVICE_PROGRAM;
}

// Starts a program that inherits two descriptors. Returns 0 or an error code.
int spawn(const char* name, std::vector<std::string> arguments, const int (&descriptors)[2], pid_t* process) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(&argument[0]);
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  // The descriptor stays open in the new process.
  for (const int one : descriptors) posix_spawn_file_actions_adddup2(&actions, one, one);
  // The device must not receive the terminal's interrupts, because the host decides when it ends.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  const int problem = posix_spawnp(process, name, &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

}  // namespace

uint64_t Arena::allocate(uint64_t bytes, uint64_t alignment) {
  constexpr uint64_t kLeast = 64;
  alignment = std::max(alignment, kLeast);
  if (bytes > UINT64_MAX - kLeast) return 0;
  bytes = std::max(kLeast, (bytes + kLeast - 1) / kLeast * kLeast);
  for (const auto& [first, size] : free_) {
    const uint64_t begin = first, end = begin + size, at = (begin + alignment - 1) & ~(alignment - 1);
    if (at < begin || at > end || end - at < bytes) continue;
    free_.erase(begin);
    if (at > begin) free_[begin] = at - begin;
    if (end > at + bytes) free_[at + bytes] = end - at - bytes;
    used_[at] = bytes;
    return at;
  }
  return 0;
}

void Arena::free(uint64_t begin) {
  const auto used = used_.find(begin);
  if (used == used_.end()) return;
  uint64_t bytes = used->second;
  used_.erase(used);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
    std::prev(next)->second += bytes;
  } else {
    free_[begin] = bytes;
  }
}

Device::Device(const Settings& settings) : settings_(settings) {
  try {
    start(settings);
  } catch (...) {
    stop();
    throw;
  }
}

Device::~Device() {
  stop();
}

void Device::start(const Settings& settings) {
  const std::string program = settings.program.empty() ? default_program() : settings.program;
  if (access(program.c_str(), R_OK) != 0) throw Error(COLLET_NOT_FOUND, system_error("the device program " + program));
  const uint64_t bytes = RISCV_CONTROL_BYTES + settings.memory_bytes;
  file_ = memfd_create("riscv", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    throw Error(COLLET_RESOURCE_EXHAUSTED, system_error("no shared memory"));
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) throw Error(COLLET_RESOURCE_EXHAUSTED, system_error("no shared memory"));
  shared_ = static_cast<char*>(mapped);
  control_ = static_cast<RiscvControl*>(mapped);
  memory_ = shared_ + RISCV_CONTROL_BYTES;
  control_->memory_bytes = settings.memory_bytes;
  control_->code_bytes = kCodeBytes;
  control_->host_sleeps = 1;

  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw Error(COLLET_RESOURCE_EXHAUSTED, system_error("no socket"));
  }
  socket_ = sockets[0];
  std::vector<std::string> names = {settings.emulator};
  if (settings.emulator.empty()) names = {"qemu-riscv64-static", "qemu-riscv64"};
  int problem = 0;
  for (const std::string& name : names) {
    const std::string processor = "rv64,v=true,vext_spec=v1.0,vlen=" + std::to_string(settings.vlen);
    problem = spawn(name.c_str(), {name, "-cpu", processor, program, std::to_string(file_), std::to_string(sockets[1])},
                    {file_, sockets[1]}, &process_);
    if (problem != ENOENT) break;
  }
  ::close(sockets[1]);
  if (problem != 0) {
    process_ = 0;
    throw Error(COLLET_FAILED_PRECONDITION,
                names[0] + ": " + std::strerror(problem) +
                    " (Debian's package qemu-user-static has it; the option qemu names another)");
  }
  listener_ = std::thread([this] { listen(); });
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_there = [this] {
    return !lost_.empty() || __atomic_load_n(&control_->is_ready, __ATOMIC_SEQ_CST) != 0;
  };
  if (!changed_.wait_for(lock, kLongestStart, is_there)) {
    throw Error(COLLET_FAILED_PRECONDITION, "the device process does not start");
  }
  if (!lost_.empty() || control_->is_ready != sizeof *control_) {
    throw Error(COLLET_FAILED_PRECONDITION,
                program + " does not start" + (lost_.empty() ? ": it has another protocol" : ": " + lost_));
  }
  memory_arena_.add(control_->memory, settings.memory_bytes);
  code_arena_.add(control_->code, kCodeBytes);
}

// Sleeps until the device sends a byte, and then wakes threads that wait for it. The socket is closed when the process
// ends.
void Device::listen() {
  char bytes[64];
  for (;;) {
    const ssize_t got = ::read(socket_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }
  kill(process_, SIGKILL);
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = waitpid(process_, &status, 0)) < 0 && errno == EINTR) continue;
  const std::lock_guard<std::mutex> lock(mutex_);
  lost_ = "the device process is gone";
  if (reaped == process_ && WIFSIGNALED(status)) lost_ += std::string(": ") + strsignal(WTERMSIG(status));
  if (reaped == process_ && WIFEXITED(status)) lost_ += ": exit code " + std::to_string(WEXITSTATUS(status));
  changed_.notify_all();
}

void Device::stop() noexcept {
  if (listener_.joinable()) {
    shutdown(socket_, SHUT_RDWR);  // the listener notices the end of the process, and reaps it
    listener_.join();
  } else if (process_ != 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (shared_) munmap(shared_, RISCV_CONTROL_BYTES + settings_.memory_bytes);
  if (socket_ >= 0) ::close(socket_);
  if (file_ >= 0) ::close(file_);
}

void Device::check_alive() const {
  if (!lost_.empty()) throw Error(COLLET_UNAVAILABLE, lost_);
}

template <class Condition>
void Device::wait_until(std::unique_lock<std::mutex>& lock, Condition condition) {
  for (;;) {
    check_alive();
    if (condition()) return;
    __atomic_store_n(&control_->host_sleeps, 1, __ATOMIC_SEQ_CST);
    if (!condition()) changed_.wait(lock);
  }
}

// Appends a command to the ring: `words`, then data.
void Device::submit(uint64_t code, std::initializer_list<uint64_t> words, const void* data, uint64_t bytes) {
  const uint64_t size = 1 + words.size() + (bytes + 7) / 8;
  if (size > RISCV_RING / 2)
    throw Error(COLLET_RESOURCE_EXHAUSTED, "the launch has more arguments than fit into the device's ring");
  std::unique_lock<std::mutex> lock(mutex_);
  uint64_t skipped = 0;
  wait_until(lock, [&] {
    const uint64_t left = RISCV_RING - submitted_ % RISCV_RING;
    skipped = left < size ? left : 0;
    return submitted_ + skipped + size <= __atomic_load_n(&control_->done, __ATOMIC_SEQ_CST) + RISCV_RING;
  });
  if (skipped != 0) control_->ring[submitted_ % RISCV_RING] = RISCV_SKIP | skipped << 8;
  submitted_ += skipped;
  uint64_t* const to = control_->ring + submitted_ % RISCV_RING;
  to[0] = code | size << 8;
  std::copy(words.begin(), words.end(), to + 1);
  if (++commands_ == settings_.fail_at) {  // replaces the command by a jump to an address without code
    to[0] = RISCV_LAUNCH | size << 8;
    to[1] = 0;
  }
  if (bytes != 0) std::memcpy(to + 1 + words.size(), data, bytes);
  submitted_ += size;
  __atomic_store_n(&control_->submitted, submitted_, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&control_->device_sleeps, 0, __ATOMIC_SEQ_CST) == 0) return;
  const ssize_t sent = send(socket_, "", 1, MSG_NOSIGNAL);
  static_cast<void>(sent);  // the listener reports the failure
}

Memory Device::allocate_from(Arena& arena, uint64_t bytes, uint64_t alignment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  const Memory memory = arena.allocate(bytes, alignment);
  if (memory != 0) return memory;
  throw Error(COLLET_RESOURCE_EXHAUSTED, "the device cannot allocate " + std::to_string(bytes) + " bytes");
}

Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  return allocate_from(memory_arena_, bytes, alignment);
}

void Device::free(Memory memory) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_arena_.free(memory);
}

void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  if (bytes <= kMostInline) return submit(RISCV_WRITE, {to + offset, bytes}, from, bytes);
  finish();
  upload(to, offset, from, bytes);
}

void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  finish();
  download(from, offset, to, bytes);
}

void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  submit(RISCV_COPY, {to + to_offset, from + from_offset, bytes}, nullptr, 0);
}

uint64_t Device::mark() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  return submitted_;
}

void Device::wait(uint64_t mark) {
  std::unique_lock<std::mutex> lock(mutex_);
  wait_until(lock, [&] { return __atomic_load_n(&control_->done, __ATOMIC_SEQ_CST) >= mark; });
}

void Device::upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  mark();  // throws if the device is lost
  std::memcpy(memory_ + (to - control_->memory) + offset, from, bytes);
}

void Device::download(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  mark();
  std::memcpy(to, memory_ + (from - control_->memory) + offset, bytes);
}

Memory Device::allocate_code(uint64_t bytes, uint64_t alignment) {
  return allocate_from(code_arena_, bytes, alignment);
}

// Only the device can access the memory of code, so it copies the image itself.
void Device::load_code(Memory code, const void* image, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kMostInline) {
    const uint64_t size = std::min(kMostInline, bytes - at);
    submit(RISCV_WRITE, {code + at, size}, static_cast<const char*>(image) + at, size);
  }
  submit(RISCV_FLUSH, {code, bytes}, nullptr, 0);
}

void Device::free_code(Memory code) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  code_arena_.free(code);
}

uint64_t Device::find_function(const std::string& name) const {
  static const char* const names[] = {
#define NAME(name) #name,
      RISCV_FUNCTIONS(NAME)
#undef NAME
  };
  static_assert(sizeof names / sizeof names[0] <= RISCV_MOST_FUNCTIONS, "the table is too small");
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? 0 : control_->functions[found - std::begin(names)];
}

void Device::launch(uint64_t function, const std::vector<uint64_t>& slots, const std::string&, uint64_t) {
  submit(RISCV_LAUNCH, {function}, slots.data(), slots.size() * sizeof(uint64_t));
}

}  // namespace riscv
