// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A backend for a device that runs kernels as grids of blocks of threads, such as a GPU. The vendor writes a Target with grids and a
/// GridDevice: memory, copies, and what the device's driver does with modules and kernels. This header walks the launch plan on the host:
/// it starts one kernel after the other, and reads from the device only what decides about a loop or a branch.
///
///     collet::kernel::Backend describe() {
///       collet::kernel::Backend backend;
///       backend.name = "acme";
///       backend.queues = true;
///       backend.open_device = [](uint32_t) { return std::make_unique<AcmeDevice>(); };
///       collet::codegen::set_grid_code(&backend, collet::codegen::cross("nvptx64:sm_90"));
///       return backend;
///     }
///     COLLET_KERNEL_BACKEND(describe)
///
/// Link with Collet::codegen. C++17.

#include <collet/codegen/code_backend.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
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
};

namespace detail {

/// A module with its constants on a device, and the walk through its launch plan.
class LoadedGrid final : public kernel::DeviceProgram {
 public:
  /// `program` must outlive this.
  LoadedGrid(GridDevice& device, const CompiledProgram& program, const std::string& name)
      : device_(device), plan_(program.plan) {
    try {
      if (!plan_.functions.empty()) module_ = device.load_module(program.object, name);
      for (const std::string& function : plan_.functions) kernels_.push_back(device.find_kernel(module_, function));
      if (!plan_.constants.empty()) {
        constants_ = device.allocate(plan_.constants.size(), 256);
        device.write(constants_, 0, plan_.constants.data(), plan_.constants.size());
        device.finish();
      }
      find_segments(plan_.steps);
    } catch (...) {
      give_back();
      throw;
    }
  }
  LoadedGrid(const LoadedGrid&) = delete;
  LoadedGrid& operator=(const LoadedGrid&) = delete;
  ~LoadedGrid() override { give_back(); }

  void launch(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    std::vector<kernel::Piece> slots = pieces;
    slots.resize(constant_slot(plan_) + size_t{1});
    slots[constant_slot(plan_)] = {constants_, 0};
    Walk{*this, slots, run_id, {}}.steps(plan_.steps);
  }

 private:
  struct Walk {
    LoadedGrid& program;
    const std::vector<kernel::Piece>& slots;
    uint64_t run_id;
    std::vector<uint64_t> arguments;

    std::vector<uint64_t>& list_arguments(const Step& step) {
      arguments.clear();
      append_arguments(step, &arguments);
      return arguments;
    }
    void append_arguments(const Step& step, std::vector<uint64_t>* to) const {
      if (step.kind == StepKind::kCopy) {
        for (const uint32_t i : {1, 0}) to->push_back(address(piece(place(step, i))));
        return to->push_back(step.bytes);
      }
      for (uint32_t i = 0; i < step.places; ++i) to->push_back(address(piece(place(step, i))));
      for (const int64_t number : step.kernel.numbers) to->push_back(static_cast<uint64_t>(number));
    }
    static uint64_t address(const kernel::Piece& piece) { return piece.memory + piece.offset; }

    const Place& place(const Step& step, uint32_t i) const { return program.plan_.places[step.first_place + i]; }
    kernel::Piece piece(const Place& place) const {
      return {slots[place.slot].memory, slots[place.slot].offset + place.offset};
    }
    template <class T>
    T read(const Step& step) const {
      T out{};
      const kernel::Piece from = piece(place(step, 0));
      program.device_.read(from.memory, from.offset, &out, sizeof out);
      return out;
    }

    void steps(const StepList& list) {
      for (size_t i = 0; i < list.size();) {
        Segment* const segment = program.segment_at(list[i]);
        if (segment && program.start(*segment, *this)) {
          i += segment->count;
        } else {
          one(list[i++]);
        }
      }
    }
    void one(const Step& step) {
      switch (step.kind) {
        case StepKind::kKernel:
          return kernel(step);
        case StepKind::kCopy: {
          const kernel::Piece from = piece(place(step, 0)), to = piece(place(step, 1));
          return program.device_.copy(to.memory, to.offset, from.memory, from.offset, step.bytes);
        }
        case StepKind::kWhile:
          for (int64_t i = 0; i < step.trips; ++i) steps(step.children[1]);
          if (step.trips >= 0) return;
          for (;;) {
            steps(step.children[0]);
            if (read<uint8_t>(step) == 0) return;
            steps(step.children[1]);
          }
        case StepKind::kConditional: {
          const auto last = static_cast<int64_t>(step.children.size()) - 1;
          int64_t branch = 0;
          if (step.index_bytes == 0) {
            branch = read<uint8_t>(step) != 0 ? 0 : 1;
          } else {
            branch = read<int32_t>(step);
            if (branch < 0 || branch > last) branch = last;
          }
          return steps(step.children[static_cast<size_t>(branch)]);
        }
        case StepKind::kMatmul:
        case StepKind::kRoutine:
          break;
      }
      throw kernel::Error(COLLET_INTERNAL, "a launch plan for grids has a step that only a host runs");
    }
    void kernel(const Step& step) {
      list_arguments(step);
      GridDevice::Launch what;
      what.kernel = program.kernels_[step.kernel.function];
      what.blocks = step.kernel.blocks;
      what.block_threads = step.kernel.block_threads;
      what.shared_bytes = step.kernel.shared_bytes;
      what.arguments = arguments.data();
      what.argument_count = static_cast<uint32_t>(arguments.size());
      what.name = &program.plan_.functions[step.kernel.function];
      what.run_id = run_id;
      program.device_.launch(what);
    }
  };

  /// Steps in a row that the host has nothing to do with. From the second time on they are one sequence.
  struct Segment {
    const Step* first = nullptr;
    size_t count = 0;
    std::mutex mutex;  ///< of what follows
    bool has_run = false;
    bool is_refused = false;
    GridDevice::Handle handle = 0;
    GridDevice::Sequence sequence;
  };

  void find_segments(const StepList& list) {
    for (size_t i = 0; i < list.size();) {
      size_t end = i;
      while (end < list.size() && is_straight(list[end])) ++end;
      if (end - i >= 2) {
        auto segment = std::make_unique<Segment>();
        segment->first = &list[i];
        segment->count = end - i;
        segments_.emplace(&list[i], std::move(segment));
      }
      i = end;
      if (i == list.size()) return;
      for (const StepList& children : list[i].children) find_segments(children);
      ++i;
    }
  }
  static bool is_straight(const Step& step) {
    return step.kind == StepKind::kKernel || (step.kind == StepKind::kCopy && step.bytes != 0);
  }
  Segment* segment_at(const Step& step) const {
    const auto found = segments_.find(&step);
    return found == segments_.end() ? nullptr : found->second.get();
  }
  /// Starts a segment as one. False: its steps are to be started one by one, as they are when each is to be recorded.
  bool start(Segment& segment, const Walk& walk) {
    if (device_.wants_records()) return false;
    const std::lock_guard<std::mutex> lock(segment.mutex);
    if (!segment.has_run || segment.is_refused) {
      segment.has_run = true;
      return false;
    }
    GridDevice::Sequence& sequence = segment.sequence;
    sequence.items.clear();
    sequence.arguments.clear();
    for (size_t i = 0; i < segment.count; ++i) {
      const Step& step = segment.first[i];
      const auto before = static_cast<uint32_t>(sequence.arguments.size());
      walk.append_arguments(step, &sequence.arguments);
      if (segment.handle != 0) continue;
      GridDevice::Sequence::Item item;
      if (step.kind == StepKind::kKernel) {
        item.kernel = kernels_[step.kernel.function];
        item.blocks = step.kernel.blocks;
        item.block_threads = step.kernel.block_threads;
        item.shared_bytes = step.kernel.shared_bytes;
      }
      item.first_argument = before;
      item.argument_count = static_cast<uint32_t>(sequence.arguments.size()) - before;
      sequence.items.push_back(item);
    }
    if (segment.handle == 0) segment.handle = device_.keep_sequence(sequence);
    segment.is_refused = segment.handle == 0;
    if (!segment.is_refused) device_.start_sequence(segment.handle, sequence.arguments);
    return !segment.is_refused;
  }

  void give_back() noexcept {
    for (const auto& one : segments_) {
      if (one.second->handle != 0) device_.drop_sequence(one.second->handle);
    }
    segments_.clear();
    if (constants_ != kernel::no_memory) device_.free(constants_);
    if (module_ != 0) device_.unload_module(module_);
    constants_ = kernel::no_memory;
    module_ = 0;
  }

  GridDevice& device_;
  const LaunchPlan& plan_;
  GridDevice::Handle module_ = 0;
  std::vector<GridDevice::Handle> kernels_;
  kernel::Memory constants_ = kernel::no_memory;
  std::map<const Step*, std::unique_ptr<Segment>> segments_;
};

/// A program of grids.
class GridProgram final : public kernel::WholeProgram {
 public:
  GridProgram(CompiledProgram program, const std::string&, std::string name)
      : program_(std::move(program)), name_(std::move(name)) {
    workspace_bytes = program_.plan.workspace_bytes;
    code_bytes = program_.object.size();
    resident_bytes = program_.object.size() + program_.plan.constants.size();
    traffic_bytes = program_.plan.traffic_bytes;
    kernels = program_.plan.kernels;
    artifacts = std::move(program_.artifacts);
  }
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
    return std::make_unique<LoadedGrid>(static_cast<GridDevice&>(device), program_, name_);
  }

 private:
  CompiledProgram program_;
  std::string name_;
};

}  // namespace detail

/// Lets the code generator compile for the devices of `backend`, all of which must be GridDevices: set_code for a target with grids.
inline void set_grid_code(kernel::Backend* backend, const Target& target) {
  detail::describe_generator(backend, target);
  backend->compiler = std::make_shared<detail::CodeCompiler<detail::GridProgram, CodeForm::kFunctions>>(target);
}

}  // namespace collet::codegen
