// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hlo/base/status.h"

namespace collet::bench {

struct ReleaseClient {
  void operator()(collet_client* client) const { collet_client_close(client); }
};
using Client = std::unique_ptr<collet_client, ReleaseClient>;

/// Options of a backend's own: names and values.
using BackendOptions = std::vector<std::pair<std::string, std::string>>;
Expected<Client> open_client(const std::string& backend, bool no_fallback, const BackendOptions& options);
/// What the client calls its backend.
std::string backend_name(collet_client* client);

/// A program, compiled, with arguments on the device. Donated arguments are replaced by the results that took their memory.
class Contestant {
 public:
  static Expected<std::unique_ptr<Contestant>> make(collet_client* client, const std::string& program, bool fusion);
  ~Contestant();
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  /// Runs `times` times and waits for the last results; nanoseconds for one.
  Expected<double> run(uint64_t times);
  /// The last results, those of floating-point type alone, as f32.
  Expected<std::vector<float>> results() const;
  collet_executable_facts facts() const;
  uint64_t argument_bytes() const { return argument_bytes_; }
  uint64_t result_bytes() const { return result_bytes_; }

 private:
  Contestant() = default;
  Status prepare(collet_client* client);

  collet_executable* executable_ = nullptr;
  std::vector<collet_buffer*> arguments_, results_;
  std::vector<uint32_t> successor_;  // of each argument: the result that takes its place, or COLLET_NONE
  uint64_t argument_bytes_ = 0, result_bytes_ = 0;
};

}  // namespace collet::bench
