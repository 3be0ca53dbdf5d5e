// SPDX-License-Identifier: Apache-2.0
// A transport for tests that is wrong on purpose: another transport, that of COLLET_FAULTY_TRANSPORT_OF (a library's path), with a fault that
// COLLET_FAULTY_TRANSPORT names. The headers of the runtime's own messages stay as they are, so that only data are wrong.
#include <collet/error.h>
#include <collet/processes.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr uint64_t kLeastData = 1024;  // bytes of a message that is no header

const collet_transport* inner() {
  static const collet_transport* const table = [] {
    const char* path = std::getenv("COLLET_FAULTY_TRANSPORT_OF");
    void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    const auto entry =
        library ? reinterpret_cast<collet_transport_entry_fn>(dlsym(library, COLLET_TRANSPORT_ENTRY)) : nullptr;
    return entry ? entry() : nullptr;
  }();
  return table;
}

std::string_view fault() {
  const char* name = std::getenv("COLLET_FAULTY_TRANSPORT");
  return name ? name : "";
}

struct Transport {
  void* inner;
  uint32_t rank, size;
};

collet_status open(const collet_transport_options* options, void** out, collet_error* error) {
  void* opened = nullptr;
  const collet_status status = inner()->open(options, &opened, error);
  if (status == COLLET_OK) *out = new Transport{opened, options->rank, options->size};
  return status;
}

void close(void* handle) {
  auto* transport = static_cast<Transport*>(handle);
  inner()->close(transport->inner);
  delete transport;
}

struct Received {
  const collet_message* messages;
  int32_t (*forward)(void* user, uint32_t index);
  void* user;
};

collet_status exchange(void* handle, const collet_message* sends, uint32_t send_count, const collet_message* receives,
                       uint32_t receive_count, uint32_t timeout_ms, int32_t (*received)(void* user, uint32_t index),
                       void* user, uint32_t* out_process, collet_error* error) {
  const auto& transport = *static_cast<Transport*>(handle);
  std::vector<collet_message> taken(receives, receives + receive_count);
  const auto is_data = [](const collet_message& message) { return message.bytes >= kLeastData; };
  if (transport.rank == 1 && std::any_of(sends, sends + send_count, is_data)) {
    if (fault() == "dies") std::abort();
    while (fault() == "hangs") std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  if (fault() == "swap_parts")
    for (uint32_t i = 0; i < receive_count; ++i)
      for (uint32_t j = i + 1; j < receive_count; ++j)
        if (taken[i].bytes >= kLeastData && taken[i].bytes == taken[j].bytes && taken[i].process != taken[j].process)
          std::swap(taken[i].data, taken[j].data);
  Received state{taken.data(), received, user};
  const auto forward = [](void* to, uint32_t index) -> int32_t {
    const auto& state_of = *static_cast<Received*>(to);
    const collet_message& message = state_of.messages[index];
    if (fault() == "lose_part" && message.bytes >= kLeastData) std::memset(message.data, 0, message.bytes);
    return state_of.forward(state_of.user, index);
  };
  const collet_status status = inner()->exchange(transport.inner, sends, send_count, taken.data(), receive_count,
                                                 timeout_ms, forward, &state, out_process, error);
  if (status == COLLET_UNAVAILABLE && fault() == "wrong_process") *out_process = (*out_process + 1) % transport.size;
  if (status == COLLET_UNAVAILABLE && fault() == "waits_for_the_lost") {
    std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
    return collet_set_error(error, COLLET_DEADLINE_EXCEEDED, "no answer");
  }
  return status;
}

collet_status post(void* handle, const collet_message* message, collet_error* error) {
  const collet_status status = inner()->post(static_cast<Transport*>(handle)->inner, message, error);
  return fault() == "wrong_process" ? static_cast<collet_status>(COLLET_OK) : status;
}

void leave(void* handle, const char* why) {
  const collet_transport* const forwarded = inner();
  const bool has_leave = forwarded->struct_size >= offsetof(collet_transport, leave) + sizeof forwarded->leave;
  if (has_leave && forwarded->leave) forwarded->leave(static_cast<Transport*>(handle)->inner, why);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const collet_transport* collet_transport_entry(void);
const collet_transport* collet_transport_entry(void) {
  static const collet_transport table = {sizeof(collet_transport), 1, open, close, exchange, post, leave};
  return inner() ? &table : nullptr;
}
