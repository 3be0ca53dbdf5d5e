// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/pjrt/api/client.h"
#include "sdk/pjrt/api/device.h"

/// \file
/// A client and the objects that it owns as long as it lives: devices, their descriptions and memories.

namespace collet::pjrt {

/// When runs of programs that call host functions have ended.
enum class HostCalls {
  /// Before the call that starts them returns, if there is one participant and its arguments are complete; JAX's own
  /// cpu backend does the same.
  Ready,
  Wait,  ///< before the call that starts them returns
  Queue  ///< asynchronously, like other runs
};

/// Settings of a client: from its options, else from the environment.
struct Settings {
  std::string platform = "collet";          ///< option platform_name, COLLET_PLATFORM_NAME
  std::string backend;                      ///< option backend, COLLET_BACKEND; empty: libcollet's choice
  std::string fallback;                     ///< option fallback, COLLET_FALLBACK; empty: libcollet's choice
  std::string target;                       ///< option target
  uint32_t device_count = 0;                ///< option device_count, COLLET_DEVICES; 0: the backend's choice
  HostCalls host_calls = HostCalls::Ready;  ///< option host_calls, COLLET_HOST_CALLS: ready, wait or queue
  /// Option data_dependent_sizes, about results whose sizes the data decide: "real" gives them these sizes, for which each run
  /// is waited for; "pad", which is the default, gives them their bounds as sizes, and zeros after the data.
  bool real_sizes = false;
  uint32_t process = 0;                       ///< option node_id: number of this process
  uint32_t processes = 1;                     ///< option num_nodes: number of processes
  std::map<std::string, std::string> others;  ///< options for the backend
};

/// Opens the backend that `client.settings` name and describes its devices. `caller`: null, or the arguments that name the
/// store through which it joins other processes.
PJRT_Error* open_client(PJRT_Client& client, const PJRT_Client_Create_Args* caller = nullptr);

/// Returns the error for a use of memory of another process's device.
PJRT_Error* of_another_process(const PJRT_Device& device);

/// Reads options and environment.
PJRT_Error* read_settings(const PJRT_NamedValue* options, size_t count, Settings& out);

/// A memory space of a device.
struct Memory : PJRT_Memory {
  PJRT_Device* device;
  uint32_t space;
  int id;
  int kind_id;
  std::string kind;
  std::string text;

  /// Data that the caller attaches to a memory under a key of its own.
  struct UserData {
    void* data;
    void (*destroy)(void*);
  };
  std::mutex mutex;
  std::map<const void*, UserData> user_data;
  std::once_flag asked_host;
  bool host_sees = false;  ///< valid after asked_host has been called

  Memory(PJRT_Device* device, uint32_t space, int id, const char* kind);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
};

}  // namespace collet::pjrt

/// A memory of a described device.
struct PJRT_MemoryDescription {
  std::string kind;
  int kind_id = 0;
};

struct PJRT_DeviceDescription {
  int id = 0;  ///< number among the devices of all processes
  int process = 0;
  std::string kind;
  std::string text;
  std::string debug_text;
  std::vector<int64_t> coordinates;
  std::vector<PJRT_NamedValue> attributes;
  std::deque<PJRT_MemoryDescription> memories;
  std::vector<const PJRT_MemoryDescription*> memory_pointers;  ///< of `memories`
  size_t default_memory = 0;                                   ///< index
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  uint32_t number = 0;  ///< number among the devices of its process
  bool is_own = true;   ///< false: it belongs to another process, and has no memories here
  PJRT_DeviceDescription description;
  std::vector<std::unique_ptr<collet::pjrt::Memory>> owned;
  std::vector<PJRT_Memory*> memories;
  collet::pjrt::Memory* default_memory = nullptr;
  collet_buffer* token = nullptr;  ///< created when it is first needed
  std::once_flag asked_token;

  PJRT_Device() = default;
  PJRT_Device(const PJRT_Device&) = delete;
  PJRT_Device& operator=(const PJRT_Device&) = delete;
  ~PJRT_Device() { collet_buffer_release(token); }
};

struct PJRT_TopologyDescription {
  /// The client that compiles for a topology that was created by its name. Null for a client's own topology.
  std::shared_ptr<PJRT_Client> compiler;
  PJRT_Client* client = nullptr;  ///< the client whose devices it describes
  std::string platform;
  std::string version;
  std::vector<PJRT_DeviceDescription*> descriptions;
};

struct PJRT_Client {
  collet_client* handle = nullptr;
  collet::pjrt::Settings settings;
  std::string version;  ///< equal where serialized executables load
  std::vector<std::unique_ptr<PJRT_Device>> owned;
  std::vector<PJRT_Device*> devices;      ///< of all processes
  std::vector<PJRT_Device*> own_devices;  ///< of this process
  std::vector<PJRT_Memory*> memories;     ///< of this process
  PJRT_TopologyDescription topology;

  PJRT_Client() = default;
  PJRT_Client(const PJRT_Client&) = delete;
  PJRT_Client& operator=(const PJRT_Client&) = delete;
  ~PJRT_Client() {
    owned.clear();
    collet_client_close(handle);
  }
};
