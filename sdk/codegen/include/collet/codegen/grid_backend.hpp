// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A backend for a device that runs kernels as grids of blocks of threads, such as a GPU. The vendor writes a Target
/// with grids and a GridDevice: memory, copies, and what the device's driver does with modules and kernels. This header
/// interprets the launch plan on the host: it starts one kernel after the other, and reads from the device only
/// conditions of loops and indices of branches.
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
#include <collet/codegen/grid_code.hpp>
#include <collet/codegen/grid_device.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

namespace detail {

/// The code of a program with its constants on a device; runs its launch plan.
class LoadedGrid final : public kernel::DeviceProgram {
 public:
  /// The program and target from which `code` was made must outlive this object.
  LoadedGrid(GridDevice& device, std::unique_ptr<GridCode> code)
      : device_(device),
        code_(std::move(code)),
        // Wide accesses need 16 bytes, and boxes 128; memory that is no address has the alignment of its kind.
        constants_(device, code_->plan().constants, device.is_opaque() ? 64 : 256),
        parts_(parts_of(code_->steps())) {}
  LoadedGrid(const LoadedGrid&) = delete;
  LoadedGrid& operator=(const LoadedGrid&) = delete;
  ~LoadedGrid() override { drop_sequences(parts_); }

  void launch(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    run(pieces, run_id, nullptr);
  }
  void launch_participant(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id,
                          kernel::Participants& participants) override {
    run(pieces, run_id, &participants);
  }

 private:
  void run(const std::vector<kernel::Piece>& pieces, uint64_t run_id, kernel::Participants* participants) {
    std::vector<kernel::Piece> slots = pieces;
    const uint32_t constants = constant_slot(code_->plan());
    slots.resize(constants + size_t{1});
    slots[constants] = {constants_.memory(), 0};
    Launcher{*this, slots, run_id, participants, {}}.run(parts_);
  }

  /// Consecutive steps that the device can run without the host, and what has been recorded about them. From their
  /// second run on they start as one sequence.
  struct Segment {
    std::mutex mutex;  ///< guards the fields below
    bool has_run = false;
    bool is_refused = false;
    GridDevice::Handle handle = 0;
    GridDevice::Sequence sequence;
  };

  /// A step, or several consecutive steps that may start as one sequence.
  struct Part {
    const Step* first = nullptr;
    size_t count = 1;
    std::unique_ptr<Segment> segment;  ///< null for one step
    /// For a segment with library calls: the same steps as shorter parts, none of which has such calls and others. They are
    /// started if the device refuses the sequence.
    std::vector<Part> pieces;
    std::vector<std::vector<Part>> children;  ///< of a loop or a conditional
  };
  using Parts = std::vector<Part>;

  /// Starts the steps of a launch.
  struct Launcher {
    LoadedGrid& program;
    const std::vector<kernel::Piece>& slots;
    uint64_t run_id;
    kernel::Participants* participants;  ///< null for a program whose only participant is this one
    std::vector<uint64_t> arguments;

    std::vector<uint64_t>& list_arguments(const Step& step) {
      arguments.clear();
      append_arguments(step, &arguments);
      return arguments;
    }
    void append_arguments(const Step& step, std::vector<uint64_t>* to) const {
      if (step.kind == StepKind::kCopy) {
        for (const uint32_t i : {1, 0}) append_place(piece(place(step, i)), to);
        return to->push_back(step.bytes);
      }
      for (uint32_t i = 0; i < step.places; ++i) append_place(piece(place(step, i)), to);
      GridCode::append_numbers(step, to);
    }
    void append_place(const kernel::Piece& piece, std::vector<uint64_t>* to) const {
      if (!program.device_.is_opaque()) return to->push_back(piece.memory + piece.offset);
      to->push_back(piece.memory);
      to->push_back(piece.offset);
    }

    const Place& place(const Step& step, uint32_t i) const {
      return program.code_->plan().places[step.first_place + i];
    }
    kernel::Piece piece(const Place& place) const {
      return {slots[place.slot].memory, slots[place.slot].offset + place.offset};
    }

    void run(const Parts& parts) {
      for (const Part& part : parts) {
        const Way way = part.segment ? program.start(part, *this) : Way::kOneByOne;
        if (way == Way::kPieces) run(part.pieces);
        if (way != Way::kOneByOne) continue;
        for (size_t i = 0; i < part.count; ++i) run(part, part.first[i]);
      }
    }
    void run(const Part& part, const Step& step) {
      switch (step.kind) {
        case StepKind::kKernel:
        case StepKind::kLibrary:
          return program.code_->start(step, list_arguments(step), run_id);
        case StepKind::kCopy:
          return copy_piece(program.device_, piece(place(step, 0)), piece(place(step, 1)), step.bytes);
        case StepKind::kWhile:
          for (int64_t i = 0; i < step.trips; ++i) run(part.children[1]);
          if (step.trips >= 0) return;
          for (;;) {
            run(part.children[0]);
            if (!read_condition(program.device_, piece(place(step, 0)))) return;
            run(part.children[1]);
          }
        case StepKind::kConditional:
          return run(part.children[read_branch(program.device_, step, piece(place(step, 0)))]);
        case StepKind::kHostValue: {
          const std::array<uint64_t, 2> value = program.host_values_.next(program.code_->plan(), step.call, number());
          const kernel::Piece to = piece(place(step, 0));
          return program.device_.write(to.memory, to.offset, value.data(), step.bytes);
        }
        case StepKind::kCollective:
          return collective(step);
        case StepKind::kRoutine:
        case StepKind::kChoice:
        case StepKind::kBlocks:
          break;
      }
      throw kernel::Error(COLLET_INTERNAL, "a launch plan for grids has a step that only a host runs");
    }

    uint32_t number() const { return participants ? participants->number() : 0; }
    /// Meets the other members of the group; one of them starts the collective for all. None waits for a device.
    void collective(const Step& step) {
      const CollectiveCall& call = program.code_->plan().collectives[step.call];
      const uint32_t me = number();
      if (me >= call.group_of.size()) throw kernel::Error(COLLET_INVALID_ARGUMENT, "there is no such participant");
      const std::vector<uint32_t>& group = call.groups[call.group_of[me]];
      const GridDevice::CollectiveMember mine{&program.device_, list_arguments(step).data()};
      const auto begin = [&](const std::vector<const void*>& all) {
        GridDevice::CollectiveLaunch what;
        what.call = &call;
        what.group = &group;
        what.run_id = run_id;
        for (const void* one : all) what.members.push_back(*static_cast<const GridDevice::CollectiveMember*>(one));
        program.device_.launch_collective(what);
      };
      if (group.size() == 1) return begin({&mine});
      if (!participants) throw kernel::Error(COLLET_FAILED_PRECONDITION, "the other participants are not there");
      participants->meet(step.call, name_of(call.kind), group, &mine, begin);
    }
  };

  Parts parts_of(const StepList& list) const { return parts_of(list.data(), list.data() + list.size(), true); }
  Parts parts_of(const Step* first, const Step* last, bool with_libraries) const {
    Parts out;
    while (first != last) {
      Part part;
      part.first = first;
      const Step* end = first;
      bool has_libraries = false;
      for (; end != last && is_straight(*end, with_libraries); ++end)
        has_libraries = has_libraries || end->kind == StepKind::kLibrary;
      if (end - first >= 2) {
        part.count = static_cast<size_t>(end - first);
        part.segment = std::make_unique<Segment>();
        if (has_libraries) part.pieces = parts_of(first, end, false);
      }
      for (const StepList& children : first->children) part.children.push_back(parts_of(children));
      first += part.count;
      out.push_back(std::move(part));
    }
    return out;
  }
  bool is_straight(const Step& step, bool with_libraries) const {
    if (step.kind == StepKind::kLibrary) return with_libraries && device_.may_be_in_sequence(code_->way(step.call));
    return step.kind == StepKind::kKernel || (step.kind == StepKind::kCopy && step.bytes != 0);
  }
  /// How the steps of a part have been started, or must be.
  enum class Way { kStarted, kOneByOne, kPieces };
  /// Starts a part as one sequence, unless its steps must be started one by one, as they are when each of them is to be
  /// recorded.
  Way start(const Part& part, const Launcher& launcher) {
    if (device_.wants_records()) return Way::kOneByOne;
    Segment& segment = *part.segment;
    const std::lock_guard<std::mutex> lock(segment.mutex);
    if (!std::exchange(segment.has_run, true)) return Way::kOneByOne;
    if (segment.is_refused) return part.pieces.empty() ? Way::kOneByOne : Way::kPieces;
    GridDevice::Sequence& sequence = segment.sequence;
    sequence.items.clear();
    sequence.arguments.clear();
    for (size_t i = 0; i < part.count; ++i) {
      const Step& step = part.first[i];
      const auto before = static_cast<uint32_t>(sequence.arguments.size());
      launcher.append_arguments(step, &sequence.arguments);
      if (segment.handle != 0) continue;
      GridDevice::Sequence::Item item;
      if (step.kind == StepKind::kKernel) {
        item.kernel = code_->kernels()[step.kernel.function];
        item.blocks = step.kernel.blocks;
        item.block_threads = step.kernel.block_threads;
        item.shared_bytes = step.kernel.shared_bytes;
        item.maps = step.kernel.maps;
      }
      if (step.kind == StepKind::kLibrary) item.way = code_->way(step.call);
      item.first_argument = before;
      item.argument_count = static_cast<uint32_t>(sequence.arguments.size()) - before;
      sequence.items.push_back(item);
    }
    if (segment.handle == 0) segment.handle = device_.keep_sequence(sequence);
    segment.is_refused = segment.handle == 0;
    if (segment.is_refused) return part.pieces.empty() ? Way::kOneByOne : Way::kPieces;
    device_.start_sequence(segment.handle, sequence.arguments);
    return Way::kStarted;
  }

  void drop_sequences(const Parts& parts) noexcept {
    for (const Part& part : parts) {
      if (part.segment && part.segment->handle != 0) device_.drop_sequence(part.segment->handle);
      drop_sequences(part.pieces);
      for (const Parts& children : part.children) drop_sequences(children);
    }
  }
  GridDevice& device_;
  std::unique_ptr<GridCode> code_;
  DeviceConstants constants_;
  HostValues host_values_;
  Parts parts_;  ///< parts of the code's list of steps
};

/// A program that has been compiled to kernels for grids.
class GridProgram : public kernel::WholeProgram {
 public:
  GridProgram(CompiledProgram program, const std::string&, std::string name)
      : program_(std::move(program)), name_(std::move(name)) {
    workspace_bytes = program_.plan.workspace_bytes;
    code_bytes = program_.object.size();
    resident_bytes = program_.object.size() + program_.plan.constants.size();
    traffic_bytes = program_.plan.traffic_bytes;
    kernels = program_.plan.kernels;
    const std::vector<CollectiveCall>& collectives = program_.plan.collectives;
    meets = std::any_of(collectives.begin(), collectives.end(), [](const CollectiveCall& call) {
      return std::any_of(call.groups.begin(), call.groups.end(), [](const auto& group) { return group.size() > 1; });
    });
    artifacts = std::move(program_.artifacts);
  }
  std::string tune(kernel::Device& device, const std::string& known) override {
    if (GridCode::choices(program_.plan) == 0) return {};
    auto& grid = static_cast<GridDevice&>(device);
    auto code = std::make_unique<GridCode>(grid, program_, name_);
    GridTuner tuner(grid, *code);
    if (!tuner.read(known)) tuner.measure();
    choices_ = tuner.choices();
    if (!artifacts.empty()) artifacts.emplace_back("choices.txt", tuner.report());
    tuned_ = std::move(code);
    tuned_on_ = &device;
    return tuner.text();
  }
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
    auto& grid = static_cast<GridDevice&>(device);
    std::unique_ptr<GridCode> code = tuned_on_ == &device ? std::move(tuned_) : nullptr;
    if (!code) code = std::make_unique<GridCode>(grid, program_, name_);
    code->choose(choices_);
    return std::make_unique<LoadedGrid>(grid, std::move(code));
  }

 protected:
  CompiledProgram program_;

 private:
  std::string name_;
  std::vector<uint32_t> choices_;
  std::unique_ptr<GridCode> tuned_;  ///< code that was tuned for device tuned_on_, until it is loaded there
  const kernel::Device* tuned_on_ = nullptr;
};

}  // namespace detail

/// Lets the code generator compile for the devices of `backend`, all of which must be GridDevices: set_code for a target with grids.
inline void set_grid_code(kernel::Backend* backend, const Target& target) {
  detail::describe_generator(backend, target);
  backend->traits |= COLLET_TRAIT_COLLECTIVES;
  backend->compiler = std::make_shared<detail::CodeCompiler<detail::GridProgram, CodeForm::kFunctions>>(target);
}

}  // namespace collet::codegen
