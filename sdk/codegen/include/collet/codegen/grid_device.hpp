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

/// A device that runs grids. A kernel::Memory that it returns is the address at which its kernels find that memory, unless the memory
/// is_opaque. Its functions throw kernel::Error or std::bad_alloc, and may be called from any thread.
class GridDevice : public kernel::Device {
 public:
  /// An identifier that the device chooses for a loaded module, a kernel, a sequence or a way of a library. Never 0.
  using Handle = uint64_t;

  /// True if a kernel::Memory is no address, but a handle such as a cl_mem. Then each place of a step is two arguments of its kernel, the
  /// Memory and the offset of the place in bytes, and a copy in a sequence has the arguments destination, its offset, source, its offset, number
  /// of bytes. Only for targets whose grid is neutral.
  virtual bool is_opaque() const { return false; }

  /// Loads the text of a module, such as PTX, or what a SourceCompiler made of text. `name` is used in error messages.
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
    /// One value for each parameter: an address, or a 64-bit integer; see is_opaque for other values.
    const uint64_t* arguments = nullptr;
    uint32_t argument_count = 0;
    /// Arrays whose descriptors are further parameters behind these; null if there are none. An array lies
    /// TensorMap::offset bytes behind argument number TensorMap::place. Only for a target with GridLimits::warpgroups.
    const std::vector<TensorMap>* maps = nullptr;
    const std::string* name = nullptr;  ///< name for Device::record
    uint64_t run_id = 0;
  };
  /// Starts a kernel, which runs after all work that was started before. The call may return before the kernel has
  /// ended, see kernel::Device::mark.
  virtual void launch(const Launch& what) = 0;

  /// Kernels, copies and calls of libraries that are started repeatedly as one unit; each item runs after the one before
  /// it.
  struct Sequence {
    /// If neither `kernel` nor `way` is set, a copy within the device, whose arguments are the destination, the source and
    /// the number of bytes.
    struct Item {
      Handle kernel = 0;
      uint32_t blocks = 1;
      uint32_t block_threads = 1;
      uint32_t first_argument = 0;  ///< index in `arguments`
      uint32_t argument_count = 0;
      uint32_t shared_bytes = 0;      ///< see Launch
      Handle way = 0;                 ///< a library call; its arguments are the addresses of the step's places
      std::vector<TensorMap> maps{};  ///< see Launch; places count from first_argument
    };
    std::vector<Item> items;
    std::vector<uint64_t> arguments;
  };
  /// Prepares a sequence so that one call starts it. Returns 0, as this default does, if the device does not support
  /// that; then its items are started one by one, or, if library calls were among them, in shorter sequences without these.
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
  /// True if a way may be an item of a sequence. Each item has been started once before its sequence is prepared.
  virtual bool may_be_in_sequence(Handle way) {
    static_cast<void>(way);
    return false;
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

  /// Lets work that is started on this device from now on run after all work that was started on `other`, a device of
  /// the same backend, so far. This default waits for that work.
  virtual void follow(GridDevice& other) {
    const uint64_t mark = other.mark();
    if (mark != 0) other.wait(mark);
  }
  /// Like copy_to, but may return before the copy has ended; the copy is then work of this device as kernels are.
  virtual bool start_copy_to(GridDevice& other, kernel::Memory to, kernel::Memory from, uint64_t bytes) {
    return copy_to(other, to, 0, from, 0, bytes);
  }
  /// A member of a group in a collective.
  struct CollectiveMember {
    GridDevice* device = nullptr;
    const uint64_t* addresses = nullptr;  ///< addresses of the step's places
  };
  /// A collective of one group to start.
  struct CollectiveLaunch {
    const CollectiveCall* call = nullptr;
    const std::vector<uint32_t>* group = nullptr;  ///< numbers of the participants
    std::vector<CollectiveMember> members;         ///< in the order of the group
    uint64_t run_id = 0;
  };
  /// Starts a collective on the devices of all members: on each of them it runs after the work that was started there
  /// before, under the rules of `launch`. Called for the device of one member, by a thread that may call the devices of
  /// all of them. This default exchanges by start_copy_to, or through the host where that returns false. It does not
  /// have the kinds that combine arrays, for which the target must have GridLibraries::collectives.
  virtual void launch_collective(const CollectiveLaunch& what) { exchange(what); }

  /// A copy that is part of a collective.
  struct Transfer {
    size_t from = 0, to = 0;                      ///< positions of members in the group
    size_t source_place = 0, target_place = 0;    ///< numbers of the step's places, of `from` and of `to`
    uint64_t source_bytes = 0, target_bytes = 0;  ///< offsets in these places
    uint64_t bytes = 0;
  };
  /// Calls f(Transfer) for all copies of a part of a collective that does not combine arrays.
  template <class Function>
  static void for_each_transfer(const CollectiveLaunch& what, size_t part, const Function& f) {
    for (size_t to = 0; to < what.members.size(); ++to) {
      for (size_t from = 0; from < what.members.size(); ++from) {
        Transfer one;
        one.from = from;
        one.to = to;
        if (is_transfer(what, part, &one) && one.bytes != 0) f(one);
      }
    }
  }
  /// True if a member receives nothing in a permute or broadcast: its targets become zeros.
  static bool is_left_out(const CollectiveLaunch& what, size_t to) {
    const bool is_chosen =
        what.call->kind == CollectiveCall::Kind::kPermute || what.call->kind == CollectiveCall::Kind::kBroadcast;
    return is_chosen && giver_of(what, to) < 0;
  }

 protected:
  /// The default of launch_collective.
  static void exchange(const CollectiveLaunch& what) {
    using Kind = CollectiveCall::Kind;
    if (what.call->kind == Kind::kAllReduce || what.call->kind == Kind::kReduceScatter)
      throw kernel::Error(COLLET_INTERNAL, "a device without a library combines no arrays");
    order(what.members);  // the targets are no longer used
    exchange_own(what);
    for (size_t part = 0; part < what.call->parts.size(); ++part) {
      for_each_transfer(what, part, [&](const Transfer& one) {
        if (one.from != one.to) start_transfer(what, one);
      });
    }
    order(what.members);  // the targets are complete
  }
  /// Starts what concerns one member alone: copies from a member to itself, and zeros for members that receive nothing.
  static void exchange_own(const CollectiveLaunch& what) {
    for (size_t part = 0; part < what.call->parts.size(); ++part) {
      for_each_transfer(what, part, [&](const Transfer& one) {
        if (one.from == one.to) start_transfer(what, one);
      });
      for (size_t to = 0; to < what.members.size(); ++to) {
        if (is_left_out(what, to)) clear(what.members[to], part, what.call->parts[part]);
      }
    }
  }

 private:
  /// Orders work that is started on any member after all work that was started on the others before.
  static void order(const std::vector<CollectiveMember>& members) {
    GridDevice& first = *members[0].device;
    for (size_t i = 1; i < members.size(); ++i) first.follow(*members[i].device);
    for (size_t i = 1; i < members.size(); ++i) members[i].device->follow(first);
  }
  /// Fills in the transfer between two members. Returns false if there is none.
  static bool is_transfer(const CollectiveLaunch& what, size_t p, Transfer* out) {
    const CollectiveCall::Part& part = what.call->parts[p];
    int64_t source = 0, target = 0;
    out->source_place = 2 * p;
    out->target_place = 2 * p + 1;
    switch (what.call->kind) {
      case CollectiveCall::Kind::kAllGather:
        target = part.first(out->from, part.target_elements);
        break;
      case CollectiveCall::Kind::kAllToAll:
        source = part.first(out->to, part.source_elements);
        target = part.first(out->from, part.target_elements);
        break;
      case CollectiveCall::Kind::kAllToAllArrays:
        if (p != out->to) return false;
        out->target_place = 2 * out->from + 1;
        break;
      case CollectiveCall::Kind::kPermute:
      case CollectiveCall::Kind::kBroadcast:
        if (giver_of(what, out->to) != static_cast<int64_t>(out->from)) return false;
        break;
      case CollectiveCall::Kind::kAllReduce:
      case CollectiveCall::Kind::kReduceScatter:
        return false;
    }
    const auto size = static_cast<int64_t>(collet_type_bytes(part.type));
    out->source_bytes = static_cast<uint64_t>(source * size);
    out->target_bytes = static_cast<uint64_t>(target * size);
    out->bytes = static_cast<uint64_t>(part.block * size);
    return true;
  }
  /// Returns the position of the member whose array a member receives in a permute or broadcast; -1 if there is none.
  static int64_t giver_of(const CollectiveLaunch& what, size_t to) {
    const CollectiveCall& call = *what.call;
    if (call.kind == CollectiveCall::Kind::kBroadcast) return call.listed[(*what.group)[to]] ? 0 : -1;
    for (size_t i = 0; i + 1 < call.pairs.size(); i += 2) {
      if (call.pairs[i + 1] == static_cast<int64_t>(to)) return call.pairs[i];
    }
    return -1;
  }
  static void clear(const CollectiveMember& member, size_t p, const CollectiveCall::Part& part) {
    const std::vector<char> zeros(static_cast<size_t>(part.target_elements) * collet_type_bytes(part.type), 0);
    if (!zeros.empty()) member.device->write(member.addresses[2 * p + 1], 0, zeros.data(), zeros.size());
  }
  static void start_transfer(const CollectiveLaunch& what, const Transfer& one) {
    const CollectiveMember &from = what.members[one.from], &to = what.members[one.to];
    transfer(*from.device, from.addresses[one.source_place] + one.source_bytes, *to.device,
             to.addresses[one.target_place] + one.target_bytes, one.bytes);
  }
  static void transfer(GridDevice& from, uint64_t source, GridDevice& to, uint64_t target, uint64_t bytes) {
    if (bytes == 0) return;
    if (&from == &to) {
      if (source != target) from.copy(target, 0, source, 0, bytes);
      return;
    }
    if (from.start_copy_to(to, target, source, bytes)) return;
    std::vector<char> between(bytes);
    from.read(source, 0, between.data(), bytes);
    to.write(target, 0, between.data(), bytes);
  }
};

}  // namespace collet::codegen
