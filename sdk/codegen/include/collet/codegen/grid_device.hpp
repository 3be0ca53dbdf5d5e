// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The interface that a vendor implements for a device that runs kernels as grids of blocks of threads. Included by
/// grid_backend.hpp. C++17.

#include <collet/codegen/launch_plan.h>
#include <collet/kernel_backend.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace collet::codegen {

/// A device that runs grids. A kernel::Memory that it returns is the address at which its kernels find that memory. Its
/// functions throw kernel::Error or std::bad_alloc, and may be called from any thread.
class GridDevice : public kernel::Device {
 public:
  /// An identifier that the device chooses for a loaded module, a kernel, a sequence or a way of a library. Never 0.
  using Handle = uint64_t;

  /// Loads the text of a module, such as PTX. `name` is used in error messages.
  virtual Handle load_module(const std::string& text, const std::string& name) = 0;
  /// Unloads a module. The device no longer runs any kernel of it.
  virtual void unload_module(Handle module) noexcept = 0;
  /// Returns a kernel of a module.
  virtual Handle find_kernel(Handle module, const std::string& name) = 0;
  /// A kernel to start, with its arguments.
  struct Launch {
    Handle kernel = 0;
    uint32_t blocks = 1;
    uint32_t block_threads = 1;  ///< threads of each block
    /// Bytes of shared memory for each block, in addition to what the kernel declares.
    uint32_t shared_bytes = 0;
    const uint64_t* arguments = nullptr;  ///< one value for each parameter: an address, or a 64-bit integer
    uint32_t argument_count = 0;
    const std::string* name = nullptr;  ///< name for Device::record
    uint64_t run_id = 0;
  };
  /// Starts a kernel, which runs after all work that was started before. The call may return before the kernel has
  /// ended, see kernel::Device::mark.
  virtual void launch(const Launch& what) = 0;

  /// Kernels and copies that are started repeatedly as one unit; each item runs after the one before it.
  struct Sequence {
    struct Item {
      Handle kernel =
          /// 0 marks a copy within the device, whose arguments are the destination, the source and the number of bytes
          0;
      uint32_t blocks = 1;
      uint32_t block_threads = 1;
      uint32_t first_argument = 0;  ///< index in `arguments`
      uint32_t argument_count = 0;
      uint32_t shared_bytes = 0;  ///< see Launch
    };
    std::vector<Item> items;
    std::vector<uint64_t> arguments;
  };
  /// Prepares a sequence so that one call starts it. Returns 0, as this default does, if the device does not support
  /// that; then its items are started one by one.
  virtual Handle keep_sequence(const Sequence& what) {
    static_cast<void>(what);
    return 0;
  }
  /// Starts a prepared sequence with new arguments, as many as it was prepared with. Two threads never start the same
  /// sequence at the same time, but a sequence may be started while its previous run has not ended.
  virtual void start_sequence(Handle sequence, const std::vector<uint64_t>& arguments) {
    static_cast<void>(sequence), static_cast<void>(arguments);
  }
  /// Frees a prepared sequence. The device no longer runs it.
  virtual void drop_sequence(Handle sequence) noexcept { static_cast<void>(sequence); }

  /// Prepares a library call, for a target with GridLimits::libraries. Returns the ways in which libraries compute it,
  /// such as their algorithms, with the one expected to be fastest first. Returns none if no library computes it.
  virtual std::vector<Handle> prepare(const LibraryCall& what) {
    static_cast<void>(what);
    return {};
  }
  /// Frees a way that `prepare` returned. The device no longer runs it.
  virtual void drop_prepared(Handle way) noexcept { static_cast<void>(way); }
  /// A library call to start.
  struct LibraryLaunch {
    Handle way = 0;
    const uint64_t* addresses = nullptr;  ///< addresses of the step's places
    const std::string* name = nullptr;    ///< name for Device::record
    uint64_t run_id = 0;
  };
  /// Starts a library call, under the rules of `launch`.
  virtual void launch_library(const LibraryLaunch& what) { static_cast<void>(what); }
  /// True if the first way of a library is always used, without comparing it with kernels. Meant for tests of the
  /// library.
  virtual bool prefers_libraries() const { return false; }
};

}  // namespace collet::codegen
