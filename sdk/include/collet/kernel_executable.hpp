/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_EXECUTABLE_HPP
#define COLLET_KERNEL_EXECUTABLE_HPP

/** \file
 * Executes a planned program on the devices of a backend that is a table of kernels. Included by kernel_backend.hpp.
 */

#include "kernel_planner.hpp"
#include "kernel_run.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** A copy of a launch that outlives the call that passed it. */
struct OwnedLaunch {
  explicit OwnedLaunch(const collet_launch& from)
      : launch(from),
        arguments(from.arguments, from.arguments + from.argument_count),
        results(from.results, from.results + from.result_count) {
    launch.arguments = arguments.data();
    launch.results = results.data();
    launch.sync = nullptr;
  }
  OwnedLaunch(const OwnedLaunch&) = delete;
  OwnedLaunch& operator=(const OwnedLaunch&) = delete;

  collet_launch launch;
  std::vector<collet_argument> arguments, results;
};

/** A participant of an execution whose program was compiled as a whole. */
class WholeParticipant final : public Participants {
 public:
  /** `rendezvous` is null if there are no others, `stop` if the run is never ended early. */
  WholeParticipant(uint32_t number, Rendezvous* rendezvous, const std::atomic<bool>* stop,
                   std::unique_lock<std::mutex>* serial_lock)
      : number_(number), rendezvous_(rendezvous), stop_(stop), serial_lock_(serial_lock) {}
  uint32_t number() const override { return number_; }
  void meet(uint64_t place, const std::string& name, const std::vector<uint32_t>& group, const void* mine,
            const std::function<void(const std::vector<const void*>&)>& act) override {
    if (group.size() == 1) return act({mine});
    if (!rendezvous_) throw Error(COLLET_FAILED_PRECONDITION, name + ": the other participants are not there");
    rendezvous_->meet(place, name, group, number_, mine, stop_, serial_lock_,
                      [&](const std::vector<const void* const*>& all) {
                        std::vector<const void*> data;
                        for (const void* const* one : all) data.push_back(*one);
                        act(data);
                      });
  }

 private:
  uint32_t number_;
  Rendezvous* rendezvous_;
  const std::atomic<bool>* stop_;
  std::unique_lock<std::mutex>* serial_lock_;
};

/** A planned program with its constants on each device on which it may run. */
class Executable {
 public:
  /** `tuning` and `code` are what WholeProgram::tune and serialize returned when this program was compiled before; empty for a
   * new program. */
  Executable(Instance* instance, const collet_program* program, const collet_compile_options& options,
             std::vector<uint32_t>* rejected, const std::string& tuning = {}, const std::string& code = {})
      : instance_(instance), block_((program->total_bytes + 7) / 8) {
    std::memcpy(block_.data(), program, program->total_bytes);
    name_.assign(collet_string(program, program->name), program->name.count);
    const bool keep_artifacts = options.intermediate_check != 0;
    if (backend().compiler) {
      if (!code.empty() && !keep_artifacts) whole_ = backend().compiler->restore(this->program(), code);
      if (!whole_) whole_ = backend().compiler->compile(this->program(), keep_artifacts, rejected);
      if (!rejected->empty()) return;
      if (!whole_) throw Error(COLLET_INTERNAL, "the compiler made no program");
      plan_.workspace_bytes = whole_->workspace_bytes;
      plan_.resident_bytes = whole_->resident_bytes;
      plan_.kernels = whole_->kernels;
      plan_.traffic_bytes = whole_->traffic_bytes;
      plan_.estimated_ns = whole_->estimated_ns;
      plan_.energy_nj = whole_->energy_nj;
      plan_.cycles = whole_->cycles;
      plan_.argument_layouts = whole_->argument_layouts;
      plan_.result_layouts = whole_->result_layouts;
      for (const PackedArgument& one : whole_->packed_arguments) plan_.packed.push_back({0, one.argument, one.bytes});
    } else {
      const KernelSelector selector(instance->backend, instance->known);
      plan_ = Planner(this->program(), selector, instance->backend.alignment).make(rejected);
      if (!rejected->empty()) return;
      make_arrays();
      scalars_ = HostScalars(this->program(), plan_);
      if (keep_artifacts) write_text();
    }
    // A program with shared code may run on any device.
    const bool everywhere = (backend().traits & COLLET_TRAIT_SHARED_CODE) != 0 || !options.assignment;
    if (!everywhere) {
      for (uint32_t i = 0; i < options.participants; ++i) instance->device(options.assignment[i]);
    }
    on_devices_.resize(instance->devices.size());
    const auto is_used = [&](uint32_t number) {
      return everywhere || std::count(options.assignment, options.assignment + options.participants, number) != 0;
    };
    const bool can_measure = whole_ && (backend().traits & COLLET_TRAIT_VIRTUAL) == 0;
    for (uint32_t number = 0; can_measure && number < on_devices_.size(); ++number) {
      if (!is_used(number)) continue;
      tuning_ = whole_->tune(*instance->devices[number], tuning);
      break;
    }
    for (uint32_t number = 0; number < on_devices_.size(); ++number) {
      if (is_used(number)) on_devices_[number] = std::make_unique<OnDevice>(prepared_for(number));
    }
  }

  const Plan& plan() const { return plan_; }
  const Backend& backend() const { return instance_->backend; }
  Instance* instance() const { return instance_; }
  const std::vector<uint64_t>& block() const { return block_; }
  const collet_program* program() const { return reinterpret_cast<const collet_program*>(block_.data()); }

  /** Returns file names and contents of the artifacts; empty if they were not requested. */
  const std::vector<std::pair<std::string, std::string>>& artifacts() const {
    return whole_ ? whole_->artifacts : artifacts_;
  }
  /** Returns the result of measurements, see WholeProgram::tune. */
  const std::string& tuning() const { return tuning_; }
  /** Returns the compiled program as bytes, see WholeProgram::serialize. */
  std::string code() const { return whole_ ? whole_->serialize() : std::string(); }
  /** Numbers of the constants that the program holds itself. */
  std::vector<uint32_t> absorbed() const { return whole_ ? whole_->absorbed : std::vector<uint32_t>(); }
  /** Bytes of machine code; 0: unknown. */
  uint64_t code_bytes() const { return whole_ ? whole_->code_bytes : 0; }

  /** Runs the launches, or puts them on their queues. */
  void execute(const collet_launch* launches, uint32_t count, uint64_t run_id,
               std::unique_lock<std::mutex>* serial_lock) const {
    for (uint32_t i = 0; i < count; ++i) check(launches[i]);
    for (uint32_t i = 0; i < count; ++i) {
      if ((launches[i].sync != nullptr) != (launches[0].sync != nullptr)) {
        throw Error(COLLET_INVALID_ARGUMENT, "an execution of which only some launches are on queues");
      }
    }
    if (count == 0) return;
    if (launches[0].sync) return enqueue(launches, count, run_id);
    bool spoilt = false;
    try {
      if (count > 1 && meets()) {
        run_together(launches, count, run_id, serial_lock, &spoilt);
      } else {
        for (uint32_t i = 0; i < count; ++i) run(launches[i], run_id, nullptr, &spoilt, nullptr, serial_lock);
      }
      for (uint32_t i = 0; i < count; ++i) complete(instance_->devices[launches[i].device].get());
    } catch (...) {
      collet_error error{};
      describe_exception(&error);
      for (uint32_t i = 0; i < count; ++i) settle(instance_->devices[launches[i].device].get());
      if (!spoilt) throw;
      throw Error(COLLET_DATA_LOSS, std::string(error.message) + "; donated arguments were overwritten before that");
    }
  }

  /** True if a kernel has its own form of entry argument `index`. */
  bool wants_packed(uint32_t index) const { return find_packed(index) != nullptr; }

  /** Returns the packed form of an argument that a kernel needs; null if none does. */
  const Packed* find_packed(uint32_t index) const {
    for (const Packed& one : plan_.packed) {
      if (one.argument == index && index != COLLET_NONE) return &one;
    }
    return nullptr;
  }

  /** Makes the packed form of an argument. */
  OwnedMemory pack(uint32_t number, uint32_t index, const collet_argument& value) const {
    const Packed* one = find_packed(index);
    if (!one) throw Error(COLLET_INVALID_ARGUMENT, "this argument is not to be prepared");
    Device* device = instance_->device(number);
    check_array(value, collet_region_at(program(), 0)->arguments.first + index, layout_of(false, index), number);
    const Buffer* buffer = unwrap(value.buffer);
    if (whole_) {
      OwnedMemory out(device, one->bytes, backend().alignment);
      whole_->pack(*device, index, {buffer->memory, value.offset, false, value.layout != 0}, {out.memory(), 0});
      complete(device);
      return out;
    }
    return pack(device, *one, buffer->memory, value.offset, value.layout ? layout_of(false, index) : nullptr);
  }

  /** The layout of an argument or result; null: dense. */
  const collet_layout* layout_of(bool is_result, uint32_t index) const { return plan_.layout_of(is_result, index); }

 private:
  /** True if the participants of an execution wait for each other. */
  bool meets() const { return whole_ ? whole_->meets : !plan_.collectives.empty(); }

  void make_arrays() {
    for (const Step& step : plan_.steps) {
      first_array_.push_back(arrays_.size());
      if (!step.is_launch()) continue;
      for (const Array& array : arrays_of(program(), op_of(step))) arrays_.push_back(array);
      for (size_t i = 0; i < step.operands.size(); ++i) {
        const Place& place = plan_.places[step.operands[i]];
        if (place.kind != Place::kConstant) continue;
        for (const Resident& one : plan_.residents) {
          if (one.offset == place.offset) arrays_[first_array_.back() + i].host = one.data;
        }
      }
    }
  }

  std::string where(uint32_t value) const {
    const Place& at = plan_.places[value];
    const char* const kinds[] = {"nowhere", "argument ", "result ", "workspace + ", "constants + ", "slot "};
    std::string out = " " + std::string(collet_type_name(collet_value_type(program(), value)->element)) + "[" +
                      std::to_string(collet_value_type(program(), value)->elements) + "] " + kinds[at.kind];
    const bool numbered = at.kind == Place::kArgument || at.kind == Place::kResult || at.kind == Place::kSlot;
    return at.kind == Place::kNowhere ? out : out + std::to_string(numbered ? at.index : at.offset);
  }

  /** Writes the plan as text, one line for each step: what runs, and where its arrays are. */
  void write_text() {
    std::string indent, lines;
    const auto line = [&](const std::string& what) { lines += indent + what + "\n"; };
    const auto copies = [&](const std::vector<Transfer>& all) {
      for (const Transfer& one : all) {
        if (!(plan_.places[one.from] == plan_.places[one.to])) line("copy:" + where(one.from) + " ->" + where(one.to));
      }
    };
    for (const Step& step : plan_.steps) {
      if (step.kind == Step::kRepeat || step.kind == Step::kJoin) {
        copies(step.copies);
        for (const std::vector<uint32_t>& cycle : step.cycles) {
          std::string slots = "exchange: slot";
          for (uint32_t slot : cycle) slots += " " + std::to_string(slot);
          line(slots);
        }
        if (step.kind == Step::kRepeat) indent.resize(indent.size() - 2);
        continue;
      }
      std::string text = record_name(program(), op_of(step));
      if (step.kind == Step::kCopy) text += " (copy)";
      if (step.kind == Step::kScalar) text += " (host)";
      if (step.kind == Step::kTest) text = "test";
      text += ":";
      for (uint32_t value : step.operands) text += where(value) + ",";
      if (text.back() == ',') text.back() = ' ';
      if (step.is_launch()) text += "->";
      for (uint32_t value : step.results) text += where(value) + ",";
      if (text.back() == ',') text.pop_back();
      if (step.kind == Step::kLoop) copies(step.transfers);
      line(text);
      if (step.kind == Step::kLoop) indent += "  ";
    }
    for (const FinalCopy& one : plan_.final_copies) {
      line("copy:" + where(one.value) + " -> result " + std::to_string(one.result));
    }
    line("workspace: " + std::to_string(plan_.workspace_bytes) + " bytes");
    artifacts_.emplace_back("plan.txt", lines);
  }
  const collet_op* op_of(const Step& step) const { return collet_op_at(program(), step.op); }

  OnDevice prepared_for(uint32_t number) const {
    OnDevice out;
    Device* device = instance_->devices[number].get();
    if (whole_) {
      out.program = whole_->load(*device);
      return out;
    }
    if (plan_.resident_bytes != 0) {
      out.constants.emplace_back(device, plan_.resident_bytes, backend().alignment);
      for (const Resident& one : plan_.residents) {
        device->write(out.constants[0].memory(), one.offset, one.data, one.bytes);
      }
    }
    for (const Packed& one : plan_.packed) {
      if (one.argument != COLLET_NONE) continue;
      const Step& step = plan_.steps[one.step];
      const Place& place = plan_.places[step.operands[step.kernel->packing.operand]];
      out.packed.emplace_back(one.step, pack(device, one, out.constants[0].memory(), place.offset, nullptr));
    }
    prepare(device, &out);
    return out;
  }

  /** Calls the rows' functions `prepare`, or the backend's, for all ops. */
  void prepare(Device* device, OnDevice* out) const {
    std::vector<Preparation> all;
    std::vector<std::vector<Array>> arrays;  // of combiners
    out->states.resize(plan_.steps.size());
    for (const auto& together : plan_.collectives) {
      const std::vector<Combiner>& combiners = together.second.combiners;
      std::vector<std::any>& states = out->combiners[together.first];
      states.resize(combiners.size());
      for (size_t i = 0; i < combiners.size(); ++i) {
        const collet_op* op = collet_op_at(combiners[i].program(), 0);
        arrays.push_back(arrays_of(combiners[i].program(), op));
        all.push_back({combiners[i].kernel, Op(combiners[i].program(), op, arrays.back().data()), &states[i]});
      }
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (!step.kernel) continue;
      all.push_back({step.kernel, Op(program(), op_of(step), &arrays_[first_array_[s]]), &out->states[s]});
    }
    try {
      if (backend().prepare) return backend().prepare(*device, all);
      for (const Preparation& one : all) {
        if (one.row->prepare) *one.state = one.row->prepare(*device, one.op);
      }
    } catch (...) {
      settle(device);  // waits, because work that was started uses memory that is freed now
      throw;
    }
  }

  OwnedMemory pack(Device* device, const Packed& one, Memory memory, uint64_t offset,
                   const collet_layout* layout) const {
    const Step& step = plan_.steps[one.step];
    const auto begin = arrays_.begin() + static_cast<std::ptrdiff_t>(first_array_[one.step]);
    std::vector<Array> arrays(begin, begin + static_cast<std::ptrdiff_t>(step.operands.size() + step.results.size()));
    Array& from = arrays[step.kernel->packing.operand];
    from.memory = memory;
    from.offset = offset;
    from.layout = layout;
    OwnedMemory out(device, one.bytes, backend().alignment);
    Array to = from;
    to.memory = out.memory();
    to.offset = 0;
    to.bytes = one.bytes;
    to.packed = true;
    const std::string name = device->wants_records() ? "pack " + record_name(program(), op_of(step)) : std::string();
    recorded(*device, name.c_str(), "compute", 0, from.bytes + to.bytes,
             [&] { step.kernel->packing.make(*device, Op(program(), op_of(step), arrays.data()), to); });
    complete(device);
    return out;
  }

  void check(const collet_launch& launch) const {
    const collet_region* entry = collet_region_at(program(), 0);
    instance_->device(launch.device);
    if (!on_devices_[launch.device]) {
      throw Error(COLLET_INVALID_ARGUMENT, "the program was not compiled for this device");
    }
    if (launch.argument_count != entry->arguments.count || launch.result_count != entry->results.count) {
      throw Error(COLLET_INVALID_ARGUMENT, "a launch with another number of arguments or results than the program has");
    }
    for (uint32_t i = 0; i < launch.argument_count; ++i) check_argument(launch, i);
    for (uint32_t i = 0; i < launch.result_count; ++i) {
      check_array(launch.results[i], collet_ref_at(program(), entry->results.first + i), layout_of(true, i),
                  launch.device);
    }
    if (launch.workspace.bytes < plan_.workspace_bytes) {
      throw Error(COLLET_INVALID_ARGUMENT, "a workspace of " + std::to_string(launch.workspace.bytes) +
                                               " bytes, where " + std::to_string(plan_.workspace_bytes) +
                                               " are needed");
    }
    check_range(launch.workspace, plan_.workspace_bytes, launch.device);
    if (!launch.sync) return;
    const Queue* queue = Queue::from(launch.sync->queue);
    if (!backend().queues || !queue) throw Error(COLLET_UNIMPLEMENTED, "this backend has no queues");
    if (queue->instance() != instance_ || queue->device() != launch.device) {
      throw Error(COLLET_INVALID_ARGUMENT, "a launch on a queue of another device");
    }
    queue->check(*launch.sync);
  }

  void check_argument(const collet_launch& launch, uint32_t i) const {
    const uint32_t value = collet_region_at(program(), 0)->arguments.first + i;
    const collet_argument& argument = launch.arguments[i];
    if ((argument.flags & COLLET_ARG_IMMEDIATE) != 0) {
      if ((collet_value_at(program(), value)->flags & COLLET_VALUE_SCALAR) == 0) {
        throw Error(COLLET_INVALID_ARGUMENT, "an argument by value that is no scalar");
      }
    } else if ((argument.flags & COLLET_ARG_PREPARED) != 0) {
      const Packed* one = find_packed(i);
      if (!one) throw Error(COLLET_INVALID_ARGUMENT, "a prepared argument that was not asked for");
      check_range(argument, one->bytes, launch.device);
    } else if ((argument.flags & COLLET_ARG_ABSENT) == 0 || absorbed().empty()) {
      check_array(argument, value, layout_of(false, i), launch.device);
    }
  }

  void check_array(const collet_argument& argument, uint32_t value, const collet_layout* layout,
                   uint32_t device) const {
    if (argument.layout > 1 || (argument.layout == 1 && !layout)) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result with a layout that was not asked for");
    }
    const uint64_t bytes = argument.layout == 1 ? layout->bytes : collet_value_type(program(), value)->bytes;
    if (argument.bytes < bytes) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result of " + std::to_string(argument.bytes) +
                                               " bytes, where " + std::to_string(bytes) + " are needed");
    }
    check_range(argument, bytes, device);
  }

  void check_range(const collet_argument& argument, uint64_t bytes, uint32_t device) const {
    if (bytes == 0) return;
    const Buffer* buffer = unwrap(argument.buffer);
    if (!buffer || buffer->device != instance_->devices[device].get()) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie on the launch's device");
    }
    if (buffer->space != 0) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie in the default memory space");
    }
    if (argument.offset % backend().alignment != 0 || !collet_has_range(buffer->bytes, argument.offset, bytes)) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie inside its buffer");
    }
  }

  /** Returns the highest number of a participant plus one. */
  static uint32_t participants(const collet_launch* launches, uint32_t count) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i) most = std::max(most, launches[i].participant + 1);
    return most;
  }

  /** Returns a rendezvous for the participants of the launches. Participants that have no launch have left it. */
  static std::shared_ptr<Rendezvous> rendezvous_of(const collet_launch* launches, uint32_t count) {
    auto out = std::make_shared<Rendezvous>(participants(launches, count));
    for (uint32_t p = 0; p < participants(launches, count); ++p) {
      const bool there =
          std::any_of(launches, launches + count, [&](const collet_launch& one) { return one.participant == p; });
      if (!there) out->leave(p, nullptr);
    }
    return out;
  }

  /** Runs participants that wait for each other, each on its own thread. */
  void run_together(const collet_launch* launches, uint32_t count, uint64_t run_id,
                    std::unique_lock<std::mutex>* serial_lock, bool* spoilt) const {
    const std::shared_ptr<Rendezvous> rendezvous = rendezvous_of(launches, count);
    std::vector<char> overwritten(count, 0);
    const auto one = [&](uint32_t i) {
      collet_error error{};
      guarded(&error, [&] {
        auto mine = instance_->lock_serial();
        bool here = false;
        try {
          run(launches[i], run_id, nullptr, &here, rendezvous.get(), &mine);
        } catch (...) {
          overwritten[i] = here;
          throw;
        }
        overwritten[i] = here;
        // Every device has a thread that waits for it, so that a failure is noticed while others wait for that device.
        if (whole_) complete(instance_->devices[launches[i].device].get());
      });
      rendezvous->leave(launches[i].participant, &error);
    };
    const bool held = serial_lock->owns_lock();
    if (held) serial_lock->unlock();
    std::vector<std::thread> threads;
    collet_error error{};
    guarded(&error, [&] {
      for (uint32_t i = 1; i < count; ++i) threads.emplace_back(one, i);
    });
    for (auto i = static_cast<uint32_t>(threads.size()) + 1; i < count; ++i) {
      rendezvous->leave(launches[i].participant, &error);  // no thread could be started for it
    }
    one(0);
    for (std::thread& thread : threads) thread.join();
    if (held) serial_lock->lock();
    for (const char was : overwritten) *spoilt |= was != 0;
    error = rendezvous->first_error();
    if (error.code != COLLET_OK) throw Error(error.code, error.message);
  }

  /** Puts each launch on its queue. */
  void enqueue(const collet_launch* launches, uint32_t count, uint64_t run_id) const {
    std::vector<std::shared_ptr<const OwnedLaunch>> owned;
    for (uint32_t i = 0; i < count; ++i) owned.push_back(std::make_shared<const OwnedLaunch>(launches[i]));
    const bool together = count > 1 && meets();
    const std::shared_ptr<Rendezvous> rendezvous = together ? rendezvous_of(launches, count) : nullptr;
    // All participants must be put on their queues in the same order if two executions are submitted at once.
    const auto order = together ? std::unique_lock<std::mutex>(instance_->together) : std::unique_lock<std::mutex>();
    for (uint32_t i = 0; i < count; ++i) {
      const std::shared_ptr<const OwnedLaunch> one = owned[i];
      const auto ticket = together ? std::make_shared<Ticket>(rendezvous, launches[i].participant) : nullptr;
      const auto begin = [this, one, run_id, ticket](const std::atomic<bool>& stop,
                                                     std::unique_lock<std::mutex>* serial_lock) {
        bool spoilt = false;
        collet_error error{};
        uint64_t mark = 0;
        guarded(&error, [&] {
          run(one->launch, run_id, &stop, &spoilt, ticket ? ticket->rendezvous() : nullptr, serial_lock);
          mark = instance_->devices[one->launch.device]->mark();
        });
        if (ticket) {
          if (error.code == COLLET_OK && stop)
            collet_set_error(&error, COLLET_CANCELLED, "the queue of a participant has failed");
          ticket->leave(&error);
        }
        if (error.code != COLLET_OK) throw Error(error.code, error.message);
        return mark == 0 ? std::vector<uint64_t>() : std::vector<uint64_t>{mark};
      };
      Queue::from(launches[i].sync->queue)->put(*launches[i].sync, begin);
    }
  }

  /** Starts a program that was compiled as a whole. */
  void start_whole(const collet_launch& launch, uint64_t run_id, bool* spoilt, Participants& participants) const {
    std::vector<Piece> pieces;
    pieces.reserve(launch.argument_count + launch.result_count + 1);
    const auto add = [&](const collet_argument& one) {
      const Buffer* buffer = unwrap(one.buffer);
      const bool is_packed = (one.flags & COLLET_ARG_PREPARED) != 0;
      pieces.push_back(buffer ? Piece{buffer->memory, one.offset, is_packed, one.layout != 0} : Piece{});
    };
    for (uint32_t i = 0; i < launch.argument_count; ++i) {
      add(launch.arguments[i]);
      *spoilt |= (launch.arguments[i].flags & COLLET_ARG_DONATED) != 0;
    }
    for (uint32_t i = 0; i < launch.result_count; ++i) add(launch.results[i]);
    add(launch.workspace);
    Device& device = *instance_->devices[launch.device];
    recorded(device, name_.c_str(), "compute", run_id, plan_.traffic_bytes,
             [&] { on_devices_[launch.device]->program->launch_participant(device, pieces, run_id, participants); });
  }

  /** Starts all steps of a launch. */
  void run(const collet_launch& launch, uint64_t run_id, const std::atomic<bool>* stop, bool* spoilt,
           Rendezvous* rendezvous, std::unique_lock<std::mutex>* serial_lock) const {
    if (whole_) {
      WholeParticipant participant(launch.participant, rendezvous, stop, serial_lock);
      return start_whole(launch, run_id, spoilt, participant);
    }
    Run({this->program(), plan_, arrays_, first_array_, scalars_, *on_devices_[launch.device],
         *instance_->devices[launch.device], launch, run_id, stop, spoilt, backend(), rendezvous, serial_lock})
        .all();
  }

  Instance* instance_;
  std::vector<uint64_t> block_;  // copy of the program, which is valid only during compile
  std::string name_;             // name of the program, for records
  Plan plan_;
  std::vector<Array> arrays_;  // arrays of all steps, operands then results, without memory
  std::vector<size_t> first_array_;
  HostScalars scalars_;
  std::vector<std::pair<std::string, std::string>> artifacts_;  // artifacts of a plan
  // The compiled program, if there is a compiler; else null.
  std::unique_ptr<WholeProgram> whole_;
  std::string tuning_;                                 // result of measurements for whole_
  std::vector<std::unique_ptr<OnDevice>> on_devices_;  // null if it was not compiled for the device
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
