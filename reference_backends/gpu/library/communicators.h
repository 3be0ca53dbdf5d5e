// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_device.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu {

/// Calls NCCL for the devices of a backend. One thread starts the parts of all members of a group, and groups start one
/// after the other: so all streams have collectives in the same order, and none waits for one that starts later. May be
/// used from any thread. Throws kernel::Error.
class Communicators {
 public:
  /// `libraries` must have collectives.
  explicit Communicators(std::shared_ptr<const Libraries> libraries) : libraries_(std::move(libraries)) {}
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// The device of a member.
  struct Place {
    int device = 0;  ///< number of the device for NCCL
    CUstream stream = nullptr;
  };
  /// Starts a collective of several members on the streams `places`. Where NCCL has no function of the same kind, what
  /// members send to themselves is left out. So are the zeros of members that receive nothing.
  void start(const codegen::GridDevice::CollectiveLaunch& what, const std::vector<Place>& places);
  /// True if `start` includes what members send to themselves.
  static bool is_whole(const codegen::CollectiveCall& call);
  /// Ends all collectives in which the device takes part: the other members no longer wait for it. Their targets are
  /// undefined then.
  void abort(int device) noexcept;
  /// Destroys the communicators that a device has. It runs no collective. Called before the device is closed.
  void close(int device) noexcept;

 private:
  /// The communicators of a group of devices, one for each.
  using Group = std::vector<ncclComm_t>;
  const Group& group_of(const std::vector<int>& devices);
  void start_part(const codegen::GridDevice::CollectiveLaunch& what, size_t part, const Group& group,
                  const std::vector<Place>& places) const;
  void exchange_part(const codegen::GridDevice::CollectiveLaunch& what, size_t part, const Group& group,
                     const std::vector<Place>& places) const;
  void check(ncclResult_t result, const char* what) const;
  /// Removes the communicators of all groups that have the device, and calls `end_one` for each.
  void end(int device, ncclResult_t (*end_one)(ncclComm_t)) noexcept;

  const std::shared_ptr<const Libraries> libraries_;
  std::recursive_mutex mutex_;  ///< guards groups_; held while a group starts
  std::map<std::vector<int>, Group> groups_;
};

}  // namespace collet::gpu
