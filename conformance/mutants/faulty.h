// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/tables.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "conformance/mutants/faults.h"

/// \file
/// A test backend that breaks one sentence of the headers and is otherwise correct. It forwards calls to another
/// backend, the inner one. The option `backend` of open names the inner library; `fault` is one of faults.def, or
/// "none" for a backend that keeps every promise, including those that are only proposed. Its table "aot" supports the
/// interpreter's format only.

namespace collet::mutants {

using Bytes = std::vector<uint8_t>;

/// The state of the process: one fault and one inner library.
extern const collet_backend* behind;
extern Fault fault;
extern std::atomic<int> released;  ///< number of executables that were released
inline bool is(Fault one) {
  return fault == one;
}

/// Fills the error; some faults change what is filled in.
collet_status fail(collet_error* error, collet_status code, const std::string& message);

/// Leaks a small block of memory.
void leave();

/// The objects to which handles point.
struct Buffer {
  collet_backend_buffer* inner = nullptr;
  uint64_t bytes = 0, shift = 0;
  uint32_t device = 0;
  bool shares = false;      // it uses the memory of another buffer
  char* spoiled = nullptr;  // host memory that `free` changes
  std::unique_ptr<char[]> mirror;
};

struct Instance {
  collet_backend_instance* inner = nullptr;
  std::string name;
  bool is_second = false;  // another instance was open when it was opened
  uint32_t devices = 0, spaces = 1, alignment = 1, answers = 0;
  std::string kind;
  const collet_open_options* options = nullptr;
  std::mutex mutex;
  std::set<Buffer*> buffers;
  std::atomic<int> runs{0};
  std::vector<collet_type_support> types;
  std::map<uint32_t, uint64_t> peak_bytes;  // by device
  std::unique_ptr<char[]> state = std::make_unique<char[]>(1 << 16);
};

struct Executable {
  Instance* owner = nullptr;
  collet_backend_executable* inner = nullptr;
  std::vector<uint64_t> block;  // a copy of the program
  const collet_program* kept = nullptr;
  std::vector<uint64_t> argument_bytes, result_bytes;
  uint64_t inner_workspace = 0;
  uint32_t assigned_device = 0;
  std::atomic<int> runs{0}, layout_runs{0};
  std::atomic<bool> is_idle{false};  // its next run writes nothing
  bool is_after_loss = false;        // the device was lost when it was compiled
  bool is_late = false;              // many others were open when it was compiled
  std::thread::id thread;            // thread that compiled it
  std::map<collet_backend_buffer*, std::vector<Bytes>> seen;
  std::vector<collet_argument> first_arguments;
  std::string key;
  bool rounds = false;  // its results of f32 have the precision of bf16
  std::map<uint32_t, Bytes> immediates, prepared;
  std::vector<std::pair<collet_backend_buffer*, uint64_t>> places;  // those of the last launch
  std::map<uint32_t, std::vector<Bytes>> first_results;             // by participant
};

/// Bytes that are added to the workspace, so that faults can misuse them.
constexpr uint64_t kExtraWorkspace = 64;

inline Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
inline Buffer* of(collet_backend_buffer* p) {
  return reinterpret_cast<Buffer*>(p);
}
inline Executable* of(collet_backend_executable* p) {
  return reinterpret_cast<Executable*>(p);
}

bool is_inside(const collet_place& place, uint64_t bytes);
/// Copies between the host and a buffer; the inner backend does this correctly.
void put(Instance* self, collet_backend_buffer* buffer, uint64_t offset, const void* from, uint64_t bytes);
void get(Instance* self, collet_backend_buffer* buffer, uint64_t offset, void* to, uint64_t bytes);
/// Returns element `index` of an array of a program, as a writable pointer.
template <typename T>
T* at(collet_program* program, const collet_array& array, uint32_t index) {
  return const_cast<T*>(static_cast<const T*>(collet_array_at(program, array, index)));
}
/// Returns the name of the pattern that an op calls; empty for any other op.
std::string pattern_of(const collet_program* program, const collet_op* op);
/// Stores the sizes of arguments and results of the program in `block`.
void describe(Executable& made);

/// Returns the table "queue" if the inner backend has one. copy_on_queue makes a copy with a sync.
const void* queue_table(Instance* self);
collet_status copy_on_queue(Instance* self, const collet_copy_region* regions, uint32_t count, const collet_sync* sync,
                            collet_error* error);

/// Makes a launch with a sync; its buffers are those of the inner backend.
collet_status launch_on_queue(Executable& self, const collet_launch& launch, uint64_t run_id, collet_error* error);

/// Counts a piece of work on `queue`, or on none. Returns whether the device is lost; the option `lose_after`
/// determines after how many pieces this happens. `device` is the one that the work is for.
bool lose_one(collet_backend_queue* queue, uint32_t device);
bool is_lost();
/// True if this device is lost.
bool is_lost(uint32_t device);
/// Makes the device work again, for faults.
void heal();
/// Makes all queues fail; `queue` is the queue on whose work the device was lost.
void lose_queues(collet_backend_queue* queue);
/// Fills the error that all calls then return.
collet_status lost(collet_error* error);

/// Returns one of the tables "patterns", "host_memory", "host_buffers", "links", "profile" and "residency"; null for another name.
const void* further_table(std::string_view name);
/// Returns the inner buffer with what was prepared last; null if nothing was.
collet_backend_buffer* what_was_prepared_last();
/// Returns the table "exchange".
const void* exchange_table();
/// Records a copy of so many bytes in the profile.
void note_copy(uint64_t bytes);

/// True if the fault is one of the table "layout", so that f32 matrices are not dense.
bool has_layouts();
/// The bytes of an argument or result of an executable in its layout, and whether it is not dense.
uint64_t layout_bytes(const Executable& self, bool is_result, uint32_t index);
bool has_layout(const Executable& self, bool is_result, uint32_t index);
/// Calls `run` with a launch whose arguments are dense, and writes its results in their layouts.
collet_status run_dense(Executable& self, const collet_launch& launch,
                        const std::function<collet_status(const collet_launch&)>& run, collet_error* error);
/// Reads an argument, and returns its elements in row-major order.
Bytes read_dense(Executable& self, uint32_t index, const collet_argument& value);
/// Called for each executable that is compiled.
void note_rows(const Executable& self);
/// Returns the table "layout"; null where all arrays are dense.
const void* layout_table();

/// Functions of the backend's table.
collet_status supports(collet_backend_instance* p, uint32_t device, const collet_program* program, const uint32_t* ops,
                       uint32_t count, collet_verdict* verdicts, collet_error* error);
collet_status compile(collet_backend_instance* p, const collet_program* program, const collet_compile_options* options,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error);
collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error);
void release(collet_backend_executable* p);
const void* query(collet_backend_instance* p, const char* name, uint32_t version);

}  // namespace collet::mutants
