// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace tile {

namespace {

constexpr uint64_t kFirstAddress = 64;  // address 0 is reserved for "no memory"

float maximum(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

uint64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

// The memory is not initialised here: the system provides pages when they are first used.
Machine::Machine(uint64_t fail_at)
    : fail_at_(fail_at), memory_(new float[kMemoryWords]), scratch_(kScratchWords), thread_([this] { work(); }) {}

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

char* Machine::bytes_at(uint64_t byte_address, uint64_t bytes) {
  constexpr uint64_t kBytes = kMemoryWords * 4;
  if (byte_address > kBytes || bytes > kBytes - byte_address) throw std::runtime_error("a copy outside of memory");
  return reinterpret_cast<char*>(memory_.get()) + byte_address;
}

void Machine::write(uint64_t byte_address, const void* from, uint64_t bytes) {
  const uint64_t start = now_ns();
  std::memcpy(bytes_at(byte_address, bytes), from, bytes);
  observe("copy to device", "dma", start, 0, bytes);
}

void Machine::read(uint64_t byte_address, void* to, uint64_t bytes) {
  const uint64_t start = now_ns();
  std::memcpy(to, bytes_at(byte_address, bytes), bytes);
  observe("copy from device", "dma", start, 0, bytes);
}

void Machine::send(Machine& other, uint64_t to_byte_address, uint64_t from_byte_address, uint64_t bytes) {
  const uint64_t start = now_ns();
  std::memcpy(other.bytes_at(to_byte_address, bytes), bytes_at(from_byte_address, bytes), bytes);
  observe("copy to another device", "link", start, 0, bytes);
}

void Machine::observe(std::string name, const char* engine, uint64_t start_ns, uint64_t run_id, uint64_t bytes) const {
  if (observer) observer({std::move(name), engine, start_ns, now_ns() - start_ns, run_id, bytes});
}

uint64_t Machine::submit(Commands commands, std::string name, uint64_t run_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back({std::move(commands), std::move(name), run_id, std::this_thread::get_id()});
  changed_.notify_all();
  return ++queued_;
}

uint64_t Machine::mark() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failures_.empty()) {
    const auto open =
        std::find_if(marks_.begin(), marks_.end(), [&](const auto& one) { return one.second.list > done_; });
    marks_.erase(marks_.begin(), open);
  }
  marks_[++last_mark_] = {std::this_thread::get_id(), queued_};
  return last_mark_;
}

void Machine::wait(uint64_t mark) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto own = marks_.find(mark);
  if (own == marks_.end()) return;  // all before it ended without an error
  const uint64_t list = own->second.list;
  changed_.wait(lock, [&] { return done_ >= list; });
  // An error is told by the first mark behind the list that the thread which sent the list has asked for.
  for (const auto& failure : failures_) {
    const auto tells = std::find_if(marks_.begin(), marks_.end(), [&](const auto& one) {
      return one.second.sender == failure.second.sender && one.second.list >= failure.first;
    });
    if (tells != marks_.end() && tells->first == mark) throw std::runtime_error(failure.second.message);
  }
}

void Machine::drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t all = queued_;
  changed_.wait(lock, [&] { return done_ >= all; });
}

void Machine::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    List list = std::move(queue_.front());
    queue_.pop_front();
    const bool fails = done_ + 1 == fail_at_;
    lock.unlock();
    const uint64_t start = now_ns();
    std::string failure;
    try {
      if (fails) throw std::runtime_error("the machine stopped at '" + list.name + "', as it was told to");
      for (const Instruction& one : list.commands) run(one);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    observe(std::move(list.name), "compute", start, list.run_id, 0);
    lock.lock();
    ++done_;
    if (!failure.empty()) failures_[done_] = {list.sender, failure};
    changed_.notify_all();
  }
}

void Machine::move(const Instruction& in, bool load) {
  const uint64_t words = static_cast<uint64_t>(in.rows) * in.columns;
  if (words == 0) return;
  const int64_t per_word = 32 / in.bits, base = static_cast<int64_t>(in.memory) * per_word + in.first;
  const int64_t last_row = (in.rows - 1) * in.row_step, last_column = (in.columns - 1) * in.column_step;
  const int64_t lowest = base + std::min<int64_t>(last_row, 0) + std::min<int64_t>(last_column, 0);
  const int64_t highest = base + std::max<int64_t>(last_row, 0) + std::max<int64_t>(last_column, 0);
  const bool inside = lowest >= 0 && highest < static_cast<int64_t>(kMemoryWords) * per_word;
  const uint32_t at = load ? in.c : in.a;
  if (at > kScratchWords || words > kScratchWords - at || !inside || (in.bits != 32 && !load)) {
    throw std::runtime_error("a transfer outside of memory");
  }
  float* scratch = &scratch_[at];
  for (int64_t r = 0; r < in.rows; ++r) {
    for (int64_t c = 0; c < in.columns; ++c, ++scratch) {
      const int64_t element = base + r * in.row_step + c * in.column_step;
      if (in.bits == 32) {
        float* word = memory_.get() + element;
        // Copied as bits, because not all words are floats.
        std::memcpy(load ? scratch : word, load ? word : scratch, sizeof(float));
        continue;
      }
      const auto* bytes = reinterpret_cast<const unsigned char*>(memory_.get());
      const int64_t first_bit = element * in.bits;
      const auto shifted = static_cast<unsigned>(bytes[first_bit / 8]) >> (first_bit % 8) << (32 - in.bits);
      *scratch = static_cast<float>(static_cast<int32_t>(shifted) >> (32 - in.bits));
    }
  }
}

void Machine::run(const Instruction& in) {
  if (in.code == Code::kLoad || in.code == Code::kStore) return move(in, in.code == Code::kLoad);
  // Numbers of words that the instruction accesses at a, b and c.
  const uint64_t matrix = uint64_t{in.rows} * in.columns;
  uint64_t at_a = in.n, at_b = in.n, at_c = in.n;
  if (in.code == Code::kFill) at_a = at_b = 0;
  if (in.code == Code::kExponential || in.code == Code::kScale) at_b = 0;
  if (in.code == Code::kMultiplyAdd) at_a = uint64_t{in.rows} * in.n, at_b = uint64_t{in.columns} * in.n, at_c = matrix;
  if (in.code == Code::kRowMaximum || in.code == Code::kRowSum) at_a = matrix, at_b = 0, at_c = in.rows;
  if (in.code == Code::kRowSubtract || in.code == Code::kRowDivide) at_a = at_c = matrix, at_b = in.rows;
  if (in.a + at_a > kScratchWords || in.b + at_b > kScratchWords || in.c + at_c > kScratchWords) {
    throw std::runtime_error("arithmetic outside of the scratchpad");
  }
  const float *a = scratch_.data() + in.a, *b = scratch_.data() + in.b;
  float* c = scratch_.data() + in.c;
  const auto each = [&](const auto& f) {
    for (uint32_t i = 0; i < in.n; ++i) c[i] = f(a[i], b[i]);
  };
  const auto by_row = [&](float first, const auto& f) {
    for (uint32_t r = 0; r < in.rows; ++r) {
      float all = first;
      for (uint32_t i = 0; i < in.columns; ++i) all = f(all, a[r * in.columns + i]);
      c[r] = all;
    }
  };
  const auto with_row = [&](const auto& f) {
    for (uint32_t r = 0; r < in.rows; ++r) {
      const float one = b[r];
      for (uint32_t i = 0; i < in.columns; ++i) c[r * in.columns + i] = f(a[r * in.columns + i], one);
    }
  };
  switch (in.code) {
    case Code::kFill:
      return void(std::fill_n(c, in.n, in.value));
    case Code::kAdd:
      return each([](float x, float y) { return x + y; });
    case Code::kSubtract:
      return each([](float x, float y) { return x - y; });
    case Code::kMultiply:
      return each([](float x, float y) { return x * y; });
    case Code::kDivide:
      return each([](float x, float y) { return x / y; });
    case Code::kMaximum:
      return each(maximum);
    case Code::kExponential:
      return each([](float x, float) { return std::exp(x); });
    case Code::kScale:
      return each([&](float x, float) { return x * in.value; });
    case Code::kRowMaximum:
      return by_row(-std::numeric_limits<float>::infinity(), maximum);
    case Code::kRowSum:
      for (uint32_t r = 0; r < in.rows; ++r) {
        c[r] = static_cast<float>(std::accumulate(a + r * in.columns, a + (r + 1) * in.columns, 0.0));
      }
      return;
    case Code::kRowSubtract:
      return with_row([](float x, float y) { return x - y; });
    case Code::kRowDivide:
      return with_row([](float x, float y) { return x / y; });
    case Code::kMultiplyAdd:
      for (uint32_t m = 0; m < in.rows; ++m) {
        sums_.assign(c + m * in.columns, c + (m + 1) * in.columns);
        for (uint32_t k = 0; k < in.n; ++k) {
          const double left = a[m * in.n + k];
          for (uint32_t n = 0; n < in.columns; ++n) sums_[n] += left * b[k * in.columns + n];
        }
        for (uint32_t n = 0; n < in.columns; ++n) c[m * in.columns + n] = static_cast<float>(sums_[n]);
      }
      return;
    default:
      throw std::runtime_error("an instruction that does not exist");
  }
}

}  // namespace tile
