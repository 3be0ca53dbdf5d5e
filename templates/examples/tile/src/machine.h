// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tile {

// A machine that is not like a host: words of 32 bits, a large memory that only DMA engines reach, a scratchpad of
// 16,384 words that the arithmetic works on, and instructions that arrive in command lists and are run in order,
// asynchronously, by a thread. It is independent of Collet.
constexpr uint32_t kScratchWords = 16384;
constexpr uint64_t kMemoryWords = uint64_t{64} << 20;

enum class Code : uint32_t {
  kLoad,  // memory -> scratchpad: rows x columns elements from `memory`, steps row_step and column_step, stored densely
  kStore,  // the reverse of kLoad
  kFill,   // scratch[c .. c + n) = value
  kAdd,    // scratch[c .. c + n) = scratch[a ..] + scratch[b ..], as floats; the ops below likewise:
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kExponential,  // scratch[c ..] = exp(scratch[a ..])
  kScale,        // scratch[c ..] = scratch[a ..] * value
  kMultiplyAdd,  // matrices: c[rows x columns] += a[rows x n] * b[n x columns], with wide sums that are rounded at the end
  kRowMaximum,   // c[r] = the maximum of row r of a[rows x columns]
  kRowSum,       // c[r] = the sum of row r, computed in a wider type
  kRowSubtract,  // c[rows x columns] = a[rows x columns] - b[r] in row r
  kRowDivide
};

struct Instruction {
  Code code{};
  uint32_t a = 0, b = 0, c = 0, n = 0;  // offsets in the scratchpad, and a length
  uint32_t rows = 1, columns = 1;
  // Bits of an element in memory: words, or signed integers of 8 or 4 bits that are loaded as floats.
  uint32_t bits = 32;
  uint32_t array = 0;                     // for the driver: the array whose address is added to `memory`
  uint64_t memory = 0;                    // word address
  int64_t first = 0;                      // offset in elements from `memory` to the first element
  int64_t row_step = 0, column_step = 1;  // distances in elements
  float value = 0;
};

using Commands = std::vector<Instruction>;

// Work that an engine of the machine has done.
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

  // Allocates memory, in words; returns 0 if there is none.
  uint64_t allocate(uint64_t words, uint64_t alignment);
  void free(uint64_t address);

  // Copies between the host and memory by the DMA engine, without order relative to command lists.
  void write(uint64_t byte_address, const void* from, uint64_t bytes);
  void read(uint64_t byte_address, void* to, uint64_t bytes);
  // Copies to another machine over the link.
  void send(Machine& other, uint64_t to_byte_address, uint64_t from_byte_address, uint64_t bytes);

  // Queues a list and returns its number, from 1.
  uint64_t submit(Commands commands, std::string name, uint64_t run_id);
  // Returns the number of the list that was queued last.
  uint64_t mark();
  // Waits for all lists up to a mark. Throws the error of a list after the previous mark.
  void wait(uint64_t mark);
  // Waits for all lists.
  void drain();

  // If set, called for all work of the engines.
  std::function<void(const Activity&)> observer;

 private:
  struct List {
    Commands commands;
    std::string name;
    uint64_t run_id = 0;
    std::thread::id sender = {};
  };
  /// A place in the order of lists, and the thread that has asked for it.
  struct Mark {
    std::thread::id sender;
    uint64_t list = 0;
  };
  struct Failure {
    std::thread::id sender;
    std::string message;
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
  std::map<uint64_t, uint64_t> pieces_;  // end of each allocated piece by its address

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<List> queue_;
  uint64_t queued_ = 0, done_ = 0;
  bool stop_ = false;
  std::map<uint64_t, Mark> marks_;        // by number: those that may still have an error to tell
  uint64_t last_mark_ = 0;                // its number
  std::map<uint64_t, Failure> failures_;  // by number of the list
  std::thread thread_;
};

}  // namespace tile
