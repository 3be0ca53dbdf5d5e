// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tile {

// A machine that is not like a host: words of 32 bits, a large memory that only DMA engines reach, a scratchpad of 16,384
// words that the arithmetic works on, and instructions that arrive in command lists and are run in order, some time later,
// by a thread of its own. It knows nothing of Collet.
constexpr uint32_t kScratchWords = 16384;
constexpr uint64_t kMemoryWords = uint64_t{64} << 20;

enum class Code : uint32_t {
  kLoad,  // memory -> scratchpad: rows x columns elements from `memory`, steps row_step and column_step, stored densely
  kStore,  // the other way
  kFill,   // scratch[c .. c + n) = value
  kAdd,    // scratch[c .. c + n) = scratch[a ..] + scratch[b ..], as floats; likewise:
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kExponential,  // scratch[c ..] = exp(scratch[a ..])
  kScale,        // scratch[c ..] = scratch[a ..] * value
  kMultiplyAdd,  // matrices: c[rows x columns] += a[rows x n] * b[n x columns], with wide sums that are rounded at the end
  kRowMaximum,   // c[r] = the maximum of row r of a[rows x columns]
  kRowSum,       // with a wide sum
  kRowSubtract,  // c[rows x columns] = a[rows x columns], less b[r] in row r
  kRowDivide
};

struct Instruction {
  Code code{};
  uint32_t a = 0, b = 0, c = 0, n = 0;  // scratchpad
  uint32_t rows = 1, columns = 1;
  uint32_t bits = 32;   // of an element in memory: words, or signed integers of 8 or 4 bits that are loaded as floats
  uint32_t array = 0;   // for the driver: whose address is to be added to `memory`
  uint64_t memory = 0;  // word address
  int64_t first = 0;    // elements from there to the first one
  int64_t row_step = 0, column_step = 1;  // elements
  float value = 0;
};

using Commands = std::vector<Instruction>;

// Something that an engine of the machine did.
struct Activity {
  std::string name;
  const char* engine;
  uint64_t start_ns, duration_ns, run_id, bytes;
};

class Machine {
 public:
  // `fail_at`: the command list with this number, from 1, fails; 0: none does.
  explicit Machine(uint64_t fail_at = 0);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Memory, in words; 0 where there is no room. Never 0 otherwise.
  uint64_t allocate(uint64_t words, uint64_t alignment);
  void free(uint64_t address);

  // The DMA engine between the host and memory: beside command lists, not ordered with them.
  void write(uint64_t byte_address, const void* from, uint64_t bytes);
  void read(uint64_t byte_address, void* to, uint64_t bytes);
  // The link to another machine.
  void send(Machine& other, uint64_t to_byte_address, uint64_t from_byte_address, uint64_t bytes);

  // Queues a list and returns its number, from 1.
  uint64_t submit(Commands commands, std::string name, uint64_t run_id);
  // The number of the list that was queued last.
  uint64_t mark();
  // Waits for all lists up to a mark. Throws what went wrong with those behind the mark before it.
  void wait(uint64_t mark);
  // Waits for all lists.
  void drain();

  // Called with what engines did while it is set.
  std::function<void(const Activity&)> observer;

 private:
  struct List {
    Commands commands;
    std::string name;
    uint64_t run_id = 0;
  };
  void work();
  void run(const Instruction& instruction);
  void move(const Instruction& instruction, bool load);
  void observe(std::string name, const char* engine, uint64_t start_ns, uint64_t run_id, uint64_t bytes) const;
  char* bytes_at(uint64_t byte_address, uint64_t bytes);

  const uint64_t fail_at_;
  std::unique_ptr<float[]> memory_;
  std::vector<float> scratch_;
  std::vector<double> sums_;
  std::mutex allocation_;
  std::map<uint64_t, uint64_t> pieces_;  // address -> end

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<List> queue_;
  uint64_t queued_ = 0, done_ = 0;
  bool stop_ = false;
  std::set<uint64_t> marks_;                  // that were given out
  std::map<uint64_t, std::string> failures_;  // by number of the list
  std::thread thread_;
};

}  // namespace tile
