// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

namespace collet::bench {

struct ReleaseClient {
  void operator()(collet_client* client) const { collet_client_close(client); }
};
using Client = std::unique_ptr<collet_client, ReleaseClient>;

/// Options that are specific to a backend, as pairs of name and value.
using BackendOptions = std::vector<std::pair<std::string, std::string>>;
Expected<Client> open_client(const std::string& backend, bool no_fallback, const BackendOptions& options);
/// Returns the name of the client's backend.
std::string backend_name(collet_client* client);

/// Makes the arguments of a program from its parameters' shapes.
using MakeInputs = std::function<Expected<std::vector<hlo::Literal>>(const std::vector<hlo::Shape>& parameters)>;
/// Makes small numbers, so that programs of many steps do not overflow: floats in [-0.25, 0.25), integers from 0 to 9.
Expected<std::vector<hlo::Literal>> small_numbers(const std::vector<hlo::Shape>& parameters);

/// A program to measure, and how its arguments are made.
struct Entry {
  std::string program;                     ///< the program as text or bytes
  std::string file = {};                   ///< file name for messages; may be empty
  uint32_t elided = COLLET_ELIDED_REFUSE;  ///< how constants that the text omits are filled
  uint64_t seed = 0;                       ///< seed for COLLET_ELIDED_RANDOM
  MakeInputs inputs = small_numbers;
};

/// A compiled program with its arguments on the device. A donated argument is replaced by the result that uses its
/// memory.
class BenchProgram {
 public:
  static Expected<std::unique_ptr<BenchProgram>> make(collet_client* client, const Entry& entry, bool fusion);
  ~BenchProgram();
  BenchProgram(const BenchProgram&) = delete;
  BenchProgram& operator=(const BenchProgram&) = delete;

  /// Runs the program `times` times and waits for the last results. Returns the nanoseconds per run.
  Expected<double> run(uint64_t times);
  /// Returns the results of the last run.
  Expected<std::vector<hlo::Literal>> results() const;
  collet_executable_facts facts() const;
  uint64_t argument_bytes() const { return argument_bytes_; }
  uint64_t result_bytes() const { return result_bytes_; }

 private:
  BenchProgram() = default;
  Status prepare(collet_client* client, const MakeInputs& inputs);

  collet_executable* executable_ = nullptr;
  std::vector<collet_buffer*> arguments_, results_;
  std::vector<uint32_t> successor_;  // by argument: the result that replaces it in the next run, or COLLET_NONE
  uint64_t argument_bytes_ = 0, result_bytes_ = 0;
};

}  // namespace collet::bench
