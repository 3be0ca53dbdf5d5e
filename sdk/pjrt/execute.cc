// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/pjrt/buffer.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/event.h"
#include "sdk/pjrt/executable.h"
#include "sdk/pjrt/ffi.h"
#include "sdk/pjrt/real_sizes.h"

namespace collet::pjrt {
namespace {

// A list that uses the heap only if it is long.
template <typename T>
class List {
 public:
  explicit List(size_t size) : size_(size) {
    if (size > few_.size()) many_ = std::make_unique<T[]>(size);
  }
  T* data() { return many_ ? many_.get() : few_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::array<T, 32> few_{};
  std::unique_ptr<T[]> many_;
};

PJRT_Error* check(const PJRT_LoadedExecutable_Execute_Args& args, const PJRT_ExecuteOptions& options,
                  const Compiled& c) {
  if (args.executable->deleted) return failed_precondition("the executable was deleted");
  if (args.num_devices != c.devices.size())
    return invalid_argument("the program runs on " + std::to_string(c.devices.size()) + " devices, not on " +
                            std::to_string(args.num_devices));
  if (args.num_devices > 0 && args.num_args != c.arguments)
    return invalid_argument("the program takes " + std::to_string(c.arguments) + " arguments; " +
                            std::to_string(args.num_args) + " were given");
  if (args.execute_device && (c.devices.empty() || args.execute_device != c.devices[0]))
    return unimplemented("the program was compiled for another device than it is to run on");
  if (options.num_send_ops || options.num_recv_ops) return unimplemented("host send and receive");
  if (options.num_hlo_output_callbacks) return unimplemented("callbacks that get the values of single instructions");
  return nullptr;
}

// Buffers that are donated to a run: until the run has started, no views of them may be created.
class Donated {
 public:
  Donated() = default;
  Donated(const Donated&) = delete;
  Donated& operator=(const Donated&) = delete;
  ~Donated() { let_go(0); }  // by now the run has taken their data, or did not start

  /// Adds an argument on all devices; false if one of its buffers has a view.
  bool take(PJRT_Buffer* const* const* lists, size_t devices, uint32_t argument) {
    const size_t before = buffers_.size();
    for (size_t d = 0; d < devices; ++d) {
      PJRT_Buffer* buffer = lists[d][argument];
      const std::lock_guard lock(buffer->mutex);
      if (buffer->views) break;
      ++buffer->donations;
      buffers_.push_back(buffer);
    }
    if (buffers_.size() == before + devices) return true;
    let_go(before);
    return false;
  }

 private:
  void let_go(size_t first) {
    for (; buffers_.size() > first; buffers_.pop_back()) {
      const std::lock_guard lock(buffers_.back()->mutex);
      --buffers_.back()->donations;
    }
  }

  std::vector<PJRT_Buffer*> buffers_;
};

// Finds the arguments that must not be donated: those that the caller names, and those of which the host has a view.
void keep_alive(const PJRT_LoadedExecutable_Execute_Args& args, const PJRT_ExecuteOptions& options, const Compiled& c,
                std::vector<uint32_t>& out, Donated& donated) {
  for (size_t i = 0; i < options.num_non_donatable_input_indices; ++i)
    out.push_back(static_cast<uint32_t>(options.non_donatable_input_indices[i]));
  for (uint32_t i = 0; i < c.arguments; ++i)
    if (collet_executable_donates(c.handle, i) && std::find(out.begin(), out.end(), i) == out.end() &&
        !donated.take(args.argument_lists, args.num_devices, i))
      out.push_back(i);
}

// Replaces an argument without data by a token.
PJRT_Error* to_token(PJRT_Device& device, collet_buffer*& argument) {
  if (collet_buffer_type(argument).element == COLLET_TYPE_TOKEN || collet_buffer_bytes(argument)) return nullptr;
  std::call_once(device.asked_token, [&] {
    collet_host_array array{};
    array.struct_size = sizeof array;
    array.element = COLLET_TYPE_TOKEN;
    (void)collet_buffer_from_host(device.client->handle, device.number, COLLET_NONE, &array, &device.token, nullptr);
  });
  if (!device.token) return make_error(PJRT_Error_Code_INTERNAL, "no token could be made");
  argument = device.token;
  return nullptr;
}

// Checks that a donated buffer is not a second argument, because that argument would read overwritten data.
PJRT_Error* check_donations(PJRT_Buffer* const* arguments, const Compiled& c, const std::vector<uint32_t>& kept) {
  std::vector<std::pair<const PJRT_Buffer*, uint32_t>> order;
  const auto donated = [&](uint32_t i) {
    return collet_executable_donates(c.handle, i) && std::find(kept.begin(), kept.end(), i) == kept.end();
  };
  bool any = false;
  for (uint32_t i = 0; i < c.arguments && !any; ++i) any = donated(i);
  if (!any) return nullptr;
  order.reserve(c.arguments);
  for (uint32_t i = 0; i < c.arguments; ++i) order.emplace_back(arguments[i], i);
  std::sort(order.begin(), order.end());
  for (size_t i = 1; i < order.size(); ++i) {
    const auto [buffer, first] = order[i - 1];
    const uint32_t second = order[i].second;
    if (buffer == order[i].first && (donated(first) || donated(second)))
      return invalid_argument("arguments " + std::to_string(first) + " and " + std::to_string(second) +
                              " are the same buffer, which is donated: it can be given only once");
  }
  return nullptr;
}

// What a run needs until it is done: the host functions that it calls, because it may outlive the program, and the data
// of its context.
struct Running {
  std::vector<HostFunctionUse> uses;
  uint64_t run_id;  // 0: without a context
};

void keep_called(const Compiled& c, uint64_t run_id, collet_event* done) {
  const auto end = [](void* user, collet_status, const char*) {
    const std::unique_ptr<Running> running(static_cast<Running*>(user));
    if (running->run_id) end_user_data(running->run_id);
  };
  collet_event_on_ready(done, end, new Running{c.host_functions, run_id});
}

bool is_ready(collet_buffer* buffer) {
  collet_event* ready = collet_buffer_ready(buffer);
  const bool is = collet_event_is_ready(ready) != 0;
  collet_event_release(ready);
  return is;
}

// True if the call must wait for the run, so that output of host functions comes before later output of the caller, and
// errors of host functions are those of the call.
bool is_awaited(const Compiled& c, List<collet_buffer*>& arguments) {
  if (c.host_functions.empty() || c.client->settings.host_calls == HostCalls::Queue) return false;
  if (c.client->settings.host_calls == HostCalls::Wait) return true;
  return c.devices.size() == 1 && std::all_of(arguments.data(), arguments.data() + arguments.size(), is_ready);
}

// Gives the results the sizes that the run returned, and releases these; releases everything, `done` too, if that fails.
PJRT_Error* cut_or_release(const Compiled& c, List<collet_buffer*>& made, size_t devices, collet_event* done) {
  const size_t results = c.output_types.size(), all = results + c.sizes.size();
  PJRT_Error* error = nullptr;
  for (size_t d = 0; d < devices && !error; ++d) error = cut_to_sizes(c, d, &made[d * all], results);
  for (size_t i = 0; i < devices * all; ++i)
    if (error || i % all >= results) collet_buffer_release(made[i]);
  if (error) collet_event_release(done);
  return error;
}

}  // namespace

PJRT_Error* call(PJRT_LoadedExecutable_Execute_Args& args) {
  const Compiled& c = *args.executable->program;
  PJRT_ExecuteOptions options{};
  if (args.options) options = copy_of(*args.options);
  COLLET_PJRT_CHECK(check(args, options, c));
  const size_t devices = args.num_devices, results = c.output_types.size(), all = results + c.sizes.size();
  if (devices == 0) return nullptr;  // all participants are in other processes

  List<collet_buffer*> arguments(devices * c.arguments), made(devices * all);
  for (size_t d = 0; d < devices; ++d)
    for (uint32_t i = 0; i < c.arguments; ++i) {
      const PJRT_Buffer& buffer = *args.argument_lists[d][i];
      if (buffer.deleted) return failed_precondition("argument " + std::to_string(i) + " was deleted or donated");
      if (buffer.memory->device != c.devices[d])
        return invalid_argument("argument " + std::to_string(i) + " is on " + buffer.memory->device->description.text +
                                "; the program runs on " + c.devices[d]->description.text);
      arguments[d * c.arguments + i] = buffer.handle;
    }
  for (const uint32_t i : c.token_arguments)
    for (size_t d = 0; d < devices; ++d) COLLET_PJRT_CHECK(to_token(*c.devices[d], arguments[d * c.arguments + i]));
  std::vector<uint32_t> kept;
  Donated donated;
  keep_alive(args, options, c, kept, donated);
  for (size_t d = 0; d < devices; ++d) COLLET_PJRT_CHECK(check_donations(args.argument_lists[d], c, kept));
  collet_execute_options run{};
  run.struct_size = sizeof run;
  run.non_donatable = kept.data();
  run.non_donatable_count = static_cast<uint32_t>(kept.size());
  run.reshape_arguments = 1;  // TensorFlow changes dimensions without a program
  run.synchronous = is_awaited(c, arguments);
  if (options.context && !c.host_functions.empty()) {
    run.run_id = run_id_with_context();
    begin_user_data(run.run_id, std::make_shared<const UserData>(options.context->data));
  }
  collet_event* done = nullptr;
  if (args.device_complete_events || !c.host_functions.empty()) run.out_done = &done;
  const auto start = [&](collet_error& failure) {
    const collet_status status = collet_execute(c.handle, &run, arguments.data(), made.data(), &failure);
    if (status != COLLET_OK && run.run_id) end_user_data(run.run_id);
    return status;
  };
  COLLET_PJRT_TRY(start(failure));
  if (!c.host_functions.empty()) keep_called(c, run.run_id, done);
  if (!args.device_complete_events) collet_event_release(done);
  if (!c.sizes.empty())
    COLLET_PJRT_CHECK(cut_or_release(c, made, devices, args.device_complete_events ? done : nullptr));

  for (size_t d = 0; d < devices; ++d) {
    for (size_t i = 0; i < results; ++i)
      args.output_lists[d][i] =
          new PJRT_Buffer(made[d * all + i], c.output_memories[i * devices + d], c.output_layouts[i]);
    if (!args.device_complete_events) continue;
    if (d) collet_event_retain(done);
    args.device_complete_events[d] = event_of(done);
  }
  return nullptr;
}

}  // namespace collet::pjrt
