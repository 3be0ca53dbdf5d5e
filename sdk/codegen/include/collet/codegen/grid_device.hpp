// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a vendor implements for a device that runs kernels as grids of blocks of threads. Included by grid_backend.hpp. C++17.

#include <collet/codegen/launch_plan.h>
#include <collet/kernel_backend.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace collet::codegen {

/// A device that runs grids. A kernel::Memory of it is the address at which its kernels find that memory. Its functions throw
/// kernel::Error or std::bad_alloc, and may be called from any thread.
class GridDevice : public kernel::Device {
 public:
  /// The device's name for a loaded module, or for a kernel of it. Not 0.
  using Handle = uint64_t;

  /// Loads the text of a module, such as PTX. `name` is for messages.
  virtual Handle load_module(const std::string& text, const std::string& name) = 0;
  /// Gives it back. Nothing that it runs is left on the device.
  virtual void unload_module(Handle module) noexcept = 0;
  /// A kernel of a module.
  virtual Handle find_kernel(Handle module, const std::string& name) = 0;
  /// A kernel that is to be started.
  struct Launch {
    Handle kernel = 0;
    uint32_t blocks = 1;
    uint32_t block_threads = 1;           ///< of each block
    uint32_t shared_bytes = 0;            ///< that each block gets beside what the kernel declares
    const uint64_t* arguments = nullptr;  ///< one for each parameter: addresses, and whole numbers of 64 bits
    uint32_t argument_count = 0;
    const std::string* name = nullptr;  ///< for records
    uint64_t run_id = 0;
  };
  /// Starts a kernel behind all that was started before. This need not wait, see kernel::Device::mark.
  virtual void launch(const Launch& what) = 0;

  /// Kernels and copies that are started again and again, each behind the one before it.
  struct Sequence {
    struct Item {
      Handle kernel =
          0;  ///< 0: a copy within the device; its arguments are where to, where from, and the number of bytes
      uint32_t blocks = 1;
      uint32_t block_threads = 1;
      uint32_t first_argument = 0;  ///< in `arguments`
      uint32_t argument_count = 0;
      uint32_t shared_bytes = 0;  ///< see Launch
    };
    std::vector<Item> items;
    std::vector<uint64_t> arguments;
  };
  /// Keeps a sequence so that it is started by one call. 0, as here: the device has no use for it, and gets its items one by one.
  virtual Handle keep_sequence(const Sequence& what) {
    static_cast<void>(what);
    return 0;
  }
  /// Starts it with these arguments, as many as it was kept with. Not called by two threads at a time for the same sequence; it may be
  /// called while what it started before still runs.
  virtual void start_sequence(Handle sequence, const std::vector<uint64_t>& arguments) {
    static_cast<void>(sequence), static_cast<void>(arguments);
  }
  /// Gives it back. Nothing that it started is left on the device.
  virtual void drop_sequence(Handle sequence) noexcept { static_cast<void>(sequence); }

  /// Prepares a call of a library for a target with GridLimits::libraries. Returns the ways in which libraries compute it, such as
  /// algorithms, the one that they think best first; none if they do not.
  virtual std::vector<Handle> prepare(const LibraryCall& what) {
    static_cast<void>(what);
    return {};
  }
  /// Gives one of them back. Nothing that it started is left on the device.
  virtual void drop_prepared(Handle way) noexcept { static_cast<void>(way); }
  /// A call that is to be started.
  struct LibraryLaunch {
    Handle way = 0;
    const uint64_t* addresses = nullptr;  ///< of the places of the step
    const std::string* name = nullptr;    ///< for records
    uint64_t run_id = 0;
  };
  /// Starts it behind all that was started before, as `launch` does.
  virtual void launch_library(const LibraryLaunch& what) { static_cast<void>(what); }
  /// Whether the first way of a library is always taken, without a comparison with kernels: for tests of the library.
  virtual bool prefers_libraries() const { return false; }
};

}  // namespace collet::codegen
