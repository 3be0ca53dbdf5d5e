// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu {

/// Runs collectives between devices of several processes by NCCL. A communicator is made when a list of members is first
/// used, and kept until one of its devices is closed. It has a stream on each device, on which nothing else runs: an exchange
/// waits neither for launches nor for exchanges of other members.
class Exchanger final : public kernel::Exchanger {
 public:
  /// A device as exchanges use it.
  struct Place {
    int device = 0;  ///< number of the device for NCCL
    CUcontext context = nullptr;
    /// Throws kernel::Error unless the result of the driver's function `what` is success.
    std::function<void(CUresult result, const char* what)> check;
  };
  /// `libraries` must have communicators over several processes. `place_of` returns what exchanges need of a device of the
  /// backend, and throws kernel::Error if it is lost.
  Exchanger(std::shared_ptr<const Driver> driver, std::shared_ptr<const Libraries> libraries,
            std::function<Place(kernel::Device&)> place_of);
  ~Exchanger() override;
  Exchanger(const Exchanger&) = delete;
  Exchanger& operator=(const Exchanger&) = delete;

  bool takes(const collet_exchange& exchange) override;
  void run(const collet_exchange& exchange, const std::vector<kernel::ExchangeMember>& members) override;
  /// Ends the communicators in which a device of this process is. No exchange is under way. Called before the device is closed.
  void close(int device) noexcept;

 private:
  using Members = std::vector<kernel::ExchangeMember>;
  /// The members of a communicator: the number of each one's process in the client, and its device there.
  using Key = std::vector<std::pair<uint32_t, uint32_t>>;
  class Watch;
  struct Communicator;

  std::vector<Place> places_of(const collet_exchange& exchange, const Members& members) const;
  static Key key_of(const collet_exchange& exchange, const Members& members);
  std::shared_ptr<Communicator> find(const Key& key);
  void make(const collet_exchange& exchange, const Members& members, Communicator* out, Watch& watch) const;
  void launch(const collet_exchange& exchange, const Members& members, const Communicator& communicator) const;
  void launch_copies(const collet_exchange& exchange, const Members& members, const Communicator& communicator) const;
  void await_functions(const Communicator& communicator, Watch& watch) const;
  void await_streams(const Communicator& communicator, Watch& watch) const;
  void check(ncclResult_t result, const char* what) const;
  /// Ends a communicator and waits for its streams. If it is `whole`, what it has sent still arrives.
  void end(const Communicator& communicator, bool whole) const noexcept;

  const std::shared_ptr<const Driver> library_;
  const Driver& driver_;
  const std::shared_ptr<const Libraries> libraries_;
  const Libraries& nccl_;
  const std::function<Place(kernel::Device&)> place_of_;
  std::mutex mutex_;  ///< guards communicators_
  std::map<Key, std::shared_ptr<Communicator>> communicators_;
};

}  // namespace collet::gpu
