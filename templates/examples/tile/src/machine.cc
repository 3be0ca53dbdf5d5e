// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace tile {

namespace {

constexpr uint64_t kFirstAddress = 64;  // 0 is no address

float maximum(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

}  // namespace

// The memory is not touched here: the system maps its pages when they are first used.
Machine::Machine() : memory_(new float[kMemoryWords]), scratch_(kScratchWords), thread_([this] { work(); }) {}

Machine::~Machine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t Machine::allocate(uint64_t words, uint64_t alignment) {
  const std::lock_guard<std::mutex> lock(allocation_);
  uint64_t begin = kFirstAddress;
  const auto round_up = [&](uint64_t address) { return (address + alignment - 1) / alignment * alignment; };
  begin = round_up(begin);
  for (const auto& piece : pieces_) {  // first fit
    if (begin <= piece.first && words <= piece.first - begin) break;
    begin = std::max(begin, round_up(piece.second));
  }
  if (begin > kMemoryWords || words > kMemoryWords - begin) return 0;
  pieces_[begin] = begin + words;
  return begin;
}

void Machine::free(uint64_t address) {
  const std::lock_guard<std::mutex> lock(allocation_);
  pieces_.erase(address);
}

void Machine::write(uint64_t byte_address, const void* from, uint64_t bytes) {
  finish();
  std::memcpy(reinterpret_cast<char*>(memory_.get()) + byte_address, from, bytes);
}

void Machine::read(uint64_t byte_address, void* to, uint64_t bytes) {
  finish();
  std::memcpy(to, reinterpret_cast<const char*>(memory_.get()) + byte_address, bytes);
}

void Machine::copy(uint64_t to_byte_address, uint64_t from_byte_address, uint64_t bytes) {
  finish();
  char* memory = reinterpret_cast<char*>(memory_.get());
  std::memcpy(memory + to_byte_address, memory + from_byte_address, bytes);
}

void Machine::submit(Commands commands) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(commands));
  }
  changed_.notify_all();
}

void Machine::finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void Machine::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Commands commands = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    const bool dead = !failure_.empty();
    lock.unlock();
    std::string failure;
    try {
      for (size_t i = 0; i < commands.size() && !dead; ++i) run(commands[i]);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    busy_ = false;
    if (!failure.empty()) failure_ = failure;
    changed_.notify_all();
  }
}

void Machine::move(const Instruction& in, bool load) {
  const uint64_t words = static_cast<uint64_t>(in.rows) * in.columns;
  const int64_t last = static_cast<int64_t>(in.memory) + (in.rows - 1) * std::min<int64_t>(in.row_step, 0) +
                       (in.columns - 1) * std::min<int64_t>(in.column_step, 0);
  const int64_t end = static_cast<int64_t>(in.memory) + (in.rows - 1) * std::max<int64_t>(in.row_step, 0) +
                      (in.columns - 1) * std::max<int64_t>(in.column_step, 0);
  if (words == 0) return;
  if (in.a > kScratchWords || words > kScratchWords - in.a || last < 0 || end >= static_cast<int64_t>(kMemoryWords)) {
    throw std::runtime_error("a transfer outside of memory");
  }
  float* scratch = &scratch_[in.a];
  for (int64_t r = 0; r < in.rows; ++r) {
    float* memory = memory_.get() + static_cast<int64_t>(in.memory) + r * in.row_step;
    for (int64_t c = 0; c < in.columns; ++c, ++scratch) {
      float* word = memory + c * in.column_step;
      std::memcpy(load ? scratch : word, load ? word : scratch, sizeof(float));  // bits: not all words are floats
    }
  }
}

void Machine::run(const Instruction& in) {
  if (in.code == Code::kLoad || in.code == Code::kStore) return move(in, in.code == Code::kLoad);
  const uint32_t extent = in.code == Code::kMultiplyAdd ? in.rows * in.columns : in.n;
  if (std::max({in.a, in.b, in.c}) > kScratchWords || extent > kScratchWords - std::max({in.a, in.b, in.c})) {
    throw std::runtime_error("arithmetic outside of the scratchpad");
  }
  const float *a = &scratch_[in.a], *b = &scratch_[in.b];
  float* c = &scratch_[in.c];
  switch (in.code) {
    case Code::kFill:
      std::fill_n(&scratch_[in.a], in.n, in.value);
      break;
    case Code::kAdd:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = a[i] + b[i];
      break;
    case Code::kSubtract:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = a[i] - b[i];
      break;
    case Code::kMultiply:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = a[i] * b[i];
      break;
    case Code::kDivide:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = a[i] / b[i];
      break;
    case Code::kMaximum:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = maximum(a[i], b[i]);
      break;
    case Code::kExponential:
      for (uint32_t i = 0; i < in.n; ++i) c[i] = std::exp(a[i]);
      break;
    case Code::kMultiplyAdd:
      for (uint32_t m = 0; m < in.rows; ++m) {
        for (uint32_t k = 0; k < in.n; ++k) {
          const float left = a[m * in.n + k];
          for (uint32_t n = 0; n < in.columns; ++n) c[m * in.columns + n] += left * b[k * in.columns + n];
        }
      }
      break;
    default:
      throw std::runtime_error("an instruction that does not exist");
  }
}

}  // namespace tile
