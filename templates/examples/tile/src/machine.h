// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tile {

// A machine that is not like a host: words of 32 bits, a large memory that only the DMA engine reaches, a scratchpad of
// 16,384 words that the arithmetic works on, and instructions that arrive in command lists and are run in order, some time
// later, by a thread of its own. It knows nothing of Collet.
constexpr uint32_t kScratchWords = 16384;
constexpr uint64_t kMemoryWords = uint64_t{64} << 20;

enum class Code : uint32_t {
  kLoad,   // memory -> scratchpad: rows x columns words from `memory`, steps row_step and column_step, stored densely
  kStore,  // the other way
  kFill,   // scratch[a .. a + n) = value
  kAdd,    // scratch[c .. c + n) = scratch[a ..] + scratch[b ..], as floats; likewise:
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kExponential,  // scratch[c ..] = exp(scratch[a ..])
  kMultiplyAdd   // matrices: c[rows x columns] += a[rows x n] * b[n x columns]
};

struct Instruction {
  Code code{};
  uint32_t a = 0, b = 0, c = 0, n = 0;  // scratchpad
  uint32_t rows = 1, columns = 1;
  uint64_t memory = 0;  // word address
  int64_t row_step = 0, column_step = 1;
  float value = 0;
};

using Commands = std::vector<Instruction>;

class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Memory, in words; 0 where there is no room. Never 0 otherwise.
  uint64_t allocate(uint64_t words, uint64_t alignment);
  void free(uint64_t address);

  // What the driver does by itself. They wait for the commands before them.
  void write(uint64_t byte_address, const void* from, uint64_t bytes);
  void read(uint64_t byte_address, void* to, uint64_t bytes);
  void copy(uint64_t to_byte_address, uint64_t from_byte_address, uint64_t bytes);

  // Queues a list and returns.
  void submit(Commands commands);
  // Waits for all lists. Throws if the machine stopped at an instruction that it cannot run.
  void finish();

 private:
  void work();
  void run(const Instruction& instruction);
  void move(const Instruction& instruction, bool load);

  std::unique_ptr<float[]> memory_;
  std::vector<float> scratch_;
  std::mutex allocation_;
  std::map<uint64_t, uint64_t> pieces_;  // address -> end

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Commands> queue_;
  bool busy_ = false, stop_ = false;
  std::string failure_;
  std::thread thread_;
};

}  // namespace tile
