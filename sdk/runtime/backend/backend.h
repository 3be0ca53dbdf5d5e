// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/tables.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/backend/loader.h"
#include "sdk/runtime/memory/array_type.h"
#include "sdk/runtime/memory/layout.h"

namespace collet::hlo {
class PatternMatcher;
}

namespace collet::runtime {

/// The result of device_info, checked and copied.
struct DeviceFacts {
  uint32_t traits = 0;
  std::string kind, fingerprint;
  int32_t coordinates[4] = {};
  std::vector<collet_memory_space> spaces;
  uint32_t default_space = 0;
  uint32_t type_flags[COLLET_TYPE_LIMIT] = {};  ///< COLLET_MAY_* of each element type
  std::vector<uint32_t> peers;
  uint32_t compute_units = 0;
  double link_latency_ns = 0, link_bytes_per_ns = 0, launch_ns = 0, memory_bytes_per_ns = 0, flops_per_ns = 0;
  std::vector<collet_peak> peaks;
  uint32_t smallest_cluster = 0;
  bool has(uint32_t trait) const { return traits & trait; }
};

/// Returns the error for operations that a device without hardware cannot do.
Status virtual_device_error(const DeviceFacts& device);
/// Returns FAILED_PRECONDITION for a device without hardware, which can only compile.
inline Status check_runs(const DeviceFacts& device) {
  return device.has(COLLET_TRAIT_VIRTUAL) ? virtual_device_error(device) : ok_status();
}

/// Options for opening a backend.
struct BackendOptions {
  uint32_t device_count = 0;
  const char* target = nullptr;
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  uint32_t pairs = 0;
};

/// The results of compile, checked.
struct CompiledFacts {
  uint64_t workspace_bytes = 0;
  uint64_t workspace_alignment = 0;
  uint64_t resident_bytes = 0;
  uint64_t code_bytes = 0;
  uint64_t traffic_bytes = 0;
  double estimated_ns = 0, energy_nj = 0;  ///< as the backend's compiler estimates them; 0: unknown
  uint64_t cycles = 0;
  uint32_t kernels = 0;
  std::vector<uint32_t> absorbed;  ///< indices of absorbed constants
  /// Layouts of entry arguments and results; empty if all are dense, else null for one that is dense.
  std::vector<const Layout*> argument_layouts, result_layouts;
  /// Per entry argument: whether the executable benefits from a prepared form of it. Empty: none.
  std::vector<uint8_t> wants_prepared;

  const Layout* argument_layout(size_t i) const { return i < argument_layouts.size() ? argument_layouts[i] : nullptr; }
  const Layout* result_layout(size_t i) const { return i < result_layouts.size() ? result_layouts[i] : nullptr; }
};

/// An opened backend. Calls the plugin's table: takes the locks that its traits require, checks every result, and names
/// the backend and the function in every error. Thread-safe.
class Backend {
 public:
  static Expected<std::shared_ptr<Backend>> open(std::string_view name_or_path, const BackendOptions& options);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  uint32_t opset() const { return opset_; }
  const Library& library() const { return *library_; }
  const std::vector<DeviceFacts>& devices() const { return devices_; }
  /// True if the backend can run ops; otherwise it only holds data.
  bool computes() const { return library_->table.supports != nullptr; }

  struct Allocation {
    collet_backend_buffer* buffer = nullptr;
    void* host = nullptr;
  };
  Expected<Allocation> alloc(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment);
  void free(collet_backend_buffer* buffer);
  /// True if the backend has the table "host_buffers".
  bool has_host_buffers() const { return host_buffers_.has_value(); }
  /// Makes a buffer of host memory, see "host_buffers" in tables.h; UNIMPLEMENTED if the backend has no such table.
  Expected<collet_backend_buffer*> wrap(uint32_t device, uint32_t space, const void* host, uint64_t bytes);
  /// Copies regions. With a null `sync` it returns when all is copied, else when the copy is queued.
  Status copy(std::span<const collet_copy_region> regions, const collet_sync* sync = nullptr);
  /// Asks about ops; `verdicts` has one entry per op.
  Status supports(uint32_t device, const collet_program* program, std::span<const uint32_t> ops,
                  std::span<collet_verdict> verdicts);
  /// Compiles a program. If the backend rejects it, `rejected` receives the ids of ops at which to split the program.
  Expected<collet_backend_executable*> compile(const collet_program* program, const collet_compile_options& options,
                                               CompiledFacts& facts, std::vector<uint32_t>& rejected);
  Status execute(collet_backend_executable* executable, std::span<const collet_launch> launches, uint64_t run_id);
  void release(collet_backend_executable* executable);
  /// Returns the executable as bytes; empty if the backend cannot serialize.
  std::string serialize(collet_backend_executable* executable);
  /// Loads an executable from such bytes; `program` is the program from which it was compiled. UNIMPLEMENTED if the
  /// backend cannot.
  Expected<collet_backend_executable*> load(std::string_view bytes, const collet_program* program,
                                            const collet_compile_options& options, CompiledFacts& facts);
  /// Returns version 1 of an optional table as this library knows it: members that the backend's version of the table lacks are zero.
  /// nullopt if there is none, or one of less than `least` bytes, the size with which the table was introduced.
  template <typename Table>
  std::optional<Table> query(const char* name, uint32_t least);
  /// Returns the table "queue"; null if the backend has none.
  const collet_queue_table* queue_table() const { return queues_ ? &*queues_ : nullptr; }
  Expected<collet_backend_queue*> create_queue(uint32_t device, uint32_t kind);
  /// Destroys a queue. No work may be pending on it.
  void destroy_queue(collet_backend_queue* queue);
  /// True if arrays in device memory may have other layouts than dense.
  bool has_layouts() const { return layouts_.has_value(); }
  /// True if the device may convert arrays from one layout to another.
  bool converts() const { return layouts_ && layouts_->convert; }
  /// See tables.h. UNIMPLEMENTED if the host must convert.
  Status convert(uint32_t device, const ArrayType& type, const collet_place& from, const Layout* from_layout,
                 const collet_place& to, const Layout* to_layout, const collet_sync* sync);
  /// True if executables may request that arguments are prepared.
  bool has_residency() const { return residency_.has_value(); }
  /// Returns the prepared form of an argument whose contents are complete.
  Expected<collet_backend_buffer*> prepare(collet_backend_executable* executable, uint32_t device, uint32_t index,
                                           const collet_argument& value);
  /// A pattern about which a device wants to be asked.
  struct Pattern {
    std::string name;
    std::string text;                                    ///< empty, or what defines a pattern of the backend's own
    std::shared_ptr<const hlo::PatternMatcher> matcher;  ///< of the text; null if there is none, or it cannot be read
    uint32_t features = 0;                               ///< COLLET_FEATURE_* that groups of it may need
  };
  /// Returns the patterns of a device. The backend is asked once.
  const std::vector<Pattern>& patterns(uint32_t device);
  /// Returns the backend's statistics of a device's memory; nullopt if it has none.
  std::optional<collet_memory_stats> memory_stats(uint32_t device, uint32_t space);
  /// True if devices can record a profile of their work.
  bool profiles() const { return profile_.has_value(); }
  /// Starts or stops recording on all devices.
  void record_profile(bool on);
  /// Passes the records of a device to `each`, oldest first.
  void read_profile(uint32_t device, const std::function<void(const collet_profile_record&)>& each);
  /// See "host_memory" in tables.h; UNIMPLEMENTED if the backend has no such table.
  Status add_host_memory(void* host, uint64_t bytes);
  Status remove_host_memory(void* host);
  /// Returns the link between two devices; all zero if the backend gives no information.
  Expected<collet_link> link(uint32_t from, uint32_t to);
  /// True if the backend has the table "exchange".
  bool has_exchange() const { return exchange_.has_value(); }
  /// See tables.h.
  bool takes_exchange(const collet_exchange& exchange);
  Status run_exchange(const collet_exchange& exchange);
  /// Converts an error that the backend reported; adds the name of the backend and of the function.
  Status failure_of(collet_status code, const collet_error& error, const char* function) const {
    return from_c(code, error, where(function));
  }
  /// An artifact of a compiled program and its contents; the list is empty if the backend has none.
  struct Artifact {
    std::string name, contents;
  };
  std::vector<Artifact> artifacts(collet_backend_executable* executable);

 private:
  Backend() = default;
  Status describe(const collet_instance_info& info);
  Status describe_device(uint32_t index);
  std::string where(const char* function) const { return "backend '" + name_ + "', " + function; }
  std::unique_lock<std::mutex> lock_all();
  std::unique_lock<std::mutex> lock_compile();
  Expected<collet_backend_executable*> accept(const collet_program* program, collet_backend_executable* executable,
                                              collet_executable_info info, std::vector<uint32_t> absorbed,
                                              CompiledFacts& facts, const char* function);
  Status describe_tables();
  Status ask_layouts(const collet_program* program, collet_backend_executable* executable, CompiledFacts& facts);
  Expected<CompiledFacts> check_compiled(const collet_program* program, const collet_executable_info& info,
                                         std::vector<uint32_t> absorbed) const;

  const Library* library_ = nullptr;
  collet_backend_instance* instance_ = nullptr;
  std::string name_, version_;
  uint32_t opset_ = 0;
  std::vector<DeviceFacts> devices_;
  bool serial_ = false, serial_compile_ = false;
  // Optional tables; null if the backend does not have them.
  std::optional<collet_queue_table> queues_;
  std::optional<collet_layout_table> layouts_;
  std::optional<collet_residency_table> residency_;
  std::optional<collet_memory_stats_table> memory_stats_;
  std::optional<collet_patterns_table> patterns_;
  std::optional<collet_profile_table> profile_;
  std::optional<collet_host_memory_table> host_memory_;
  std::optional<collet_host_buffers_table> host_buffers_;
  std::optional<collet_links_table> links_;
  std::optional<collet_exchange_table> exchange_;
  std::mutex all_, compile_;
  std::mutex asked_;                                      // for patterns_of_
  std::map<uint32_t, std::vector<Pattern>> patterns_of_;  // by device
};

}  // namespace collet::runtime
