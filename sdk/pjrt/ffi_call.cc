// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/ffi_call.h"

#include <collet/error.h>
#include <collet/dictionary.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

struct XLA_FFI_Error {
  int code;
  std::string message;
};

struct XLA_FFI_Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::unique_ptr<XLA_FFI_Error> error;
};

struct XLA_FFI_ExecutionContext {
  const collet_host_call* call;
  std::shared_ptr<const collet::pjrt::UserData> data;
};

namespace collet::pjrt {
namespace {

XLA_FFI_Error* fail(collet_status code, std::string message) {
  return new XLA_FFI_Error{code, std::move(message)};
}

struct Types {
  std::mutex mutex;
  std::map<std::string, int64_t> ids;
  int64_t last = 0;
};

Types& types() {
  static auto* const all = new Types;
  return *all;
}

struct Contexts {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<const UserData>> by_run;
};

Contexts& contexts() {
  static auto* const all = new Contexts;
  return *all;
}

std::shared_ptr<const UserData> user_data_of(uint64_t run_id) {
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_run.find(run_id);
  return found == all.by_run.end() ? nullptr : found->second;
}

// The functions that handlers call.

XLA_FFI_Error* error_create(XLA_FFI_Error_Create_Args* args) {
  return new XLA_FFI_Error{args->errc, args->message ? args->message : ""};
}
void error_message(XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error->message.c_str();
}
void error_destroy(XLA_FFI_Error_Destroy_Args* args) {
  delete args->error;
}

XLA_FFI_Error* no_registration(void*) {
  return fail(COLLET_UNIMPLEMENTED, "handlers are registered by the frontend: jax.ffi.register_ffi_target");
}
XLA_FFI_Error* no_stream(void*) {
  return fail(COLLET_UNIMPLEMENTED, "a handler runs on the host here: there is no stream");
}
XLA_FFI_Error* no_state(void*) {
  return fail(COLLET_UNIMPLEMENTED, "handlers have no state here: only their stage 'execute' is called");
}

XLA_FFI_Error* type_register(XLA_FFI_Type_Register_Args* args) {
  const std::string name(args->name.ptr, args->name.len);
  const int64_t id = ffi_type_id(name, args->type_id->type_id);
  if (!id) return fail(COLLET_ALREADY_EXISTS, "the type '" + name + "' has another id");
  args->type_id->type_id = id;
  return nullptr;
}

XLA_FFI_Error* context_get(XLA_FFI_ExecutionContext_Get_Args* args) {
  args->data = nullptr;
  if (const UserData* data = args->ctx->data.get()) {
    const auto found = data->find(args->type_id->type_id);
    if (found != data->end()) args->data = found->second;
  }
  if (args->data) return nullptr;
  return fail(COLLET_NOT_FOUND, "the execute context has no data of this type");
}

XLA_FFI_Error* allocate(XLA_FFI_DeviceMemory_Allocate_Args* args) {
  const size_t alignment = std::max<size_t>(args->alignment, 64);
  if (posix_memalign(&args->data, alignment, std::max<size_t>(args->size, 1)) == 0) return nullptr;
  args->data = nullptr;
  return fail(COLLET_RESOURCE_EXHAUSTED, "no memory of " + std::to_string(args->size) + " bytes");
}
XLA_FFI_Error* deallocate(XLA_FFI_DeviceMemory_Free_Args* args) {
  std::free(args->data);
  return nullptr;
}

// A task runs at once: a handler may wait for its tasks, and other runs may occupy all threads.
XLA_FFI_Error* schedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  args->task(args->data);
  return nullptr;
}
XLA_FFI_Error* thread_count(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = 1;
  return nullptr;
}

void complete(XLA_FFI_Future* future, XLA_FFI_Error* error) {
  const std::lock_guard lock(future->mutex);
  future->done = true;
  future->error.reset(error);
  future->changed.notify_all();  // under the lock, because the waiting thread destroys the future
}
XLA_FFI_Error* future_create(XLA_FFI_Future_Create_Args* args) {
  args->future = new XLA_FFI_Future;
  return nullptr;
}
XLA_FFI_Error* future_available(XLA_FFI_Future_SetAvailable_Args* args) {
  complete(args->future, nullptr);
  return nullptr;
}
XLA_FFI_Error* future_error(XLA_FFI_Future_SetError_Args* args) {
  complete(args->future, args->error);
  return nullptr;
}

XLA_FFI_Error* run_id(XLA_FFI_RunId_Get_Args* args) {
  args->run_id = static_cast<int64_t>(args->ctx->call->run_id);
  return nullptr;
}
XLA_FFI_Error* device_ordinal(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = static_cast<int32_t>(args->ctx->call->participant);
  return nullptr;
}

constexpr XLA_FFI_Api kApi = {sizeof(XLA_FFI_Api),
                              nullptr,
                              {sizeof(XLA_FFI_Api_Version), nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR},
                              nullptr,
                              error_create,
                              error_message,
                              error_destroy,
                              no_registration,
                              no_stream,
                              type_register,
                              context_get,
                              no_state,
                              no_state,
                              allocate,
                              deallocate,
                              schedule,
                              thread_count,
                              future_create,
                              future_available,
                              future_error,
                              run_id,
                              device_ordinal};

XLA_FFI_CallFrame frame_of_stage_execute() {
  XLA_FFI_CallFrame frame{};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;  // handlers compare it with the size that they know
  frame.api = &kApi;
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args.struct_size = frame.rets.struct_size = sizeof frame.args;
  frame.attrs.struct_size = sizeof frame.attrs;
  return frame;
}

/// Arguments or results of a call.
class Arrays {
 public:
  template <typename Pointer>
  Arrays(const collet_array_type* types, Pointer const* data, uint32_t count) : buffers_(count) {
    for (uint32_t i = 0; i < count; ++i) {
      XLA_FFI_Buffer& buffer = buffers_[i];
      buffer.struct_size = sizeof buffer;
      buffer.dtype = static_cast<int>(types[i].element);
      buffer.data = const_cast<void*>(static_cast<const void*>(data[i]));
      buffer.rank = types[i].rank;
      buffer.dims = const_cast<int64_t*>(types[i].dims);
      pointers_.push_back(&buffer);
      types_.push_back(XLA_FFI_ArgType_BUFFER);
    }
  }
  void fill(XLA_FFI_Args& out) {
    out.size = static_cast<int64_t>(buffers_.size());
    out.types = types_.data();
    out.args = pointers_.data();
  }

 private:
  std::vector<XLA_FFI_Buffer> buffers_;
  std::vector<void*> pointers_;
  std::vector<XLA_FFI_ValueType> types_;
};

/// The attributes of a dictionary.
class Attributes {
 public:
  /// Sorts the entries, which must outlive this object. `bad`: set to the name of an attribute that a handler cannot get.
  Attributes(std::vector<DictionaryEntry>& entries, std::string& bad) {
    std::sort(entries.begin(), entries.end(),
              [](const DictionaryEntry& a, const DictionaryEntry& b) { return a.name < b.name; });
    for (DictionaryEntry& entry : entries) add(entry, bad);
    for (XLA_FFI_ByteSpan& name : names_) name_pointers_.push_back(&name);
    out_ = {sizeof out_,           nullptr,       static_cast<int64_t>(types_.size()), types_.data(),
            name_pointers_.data(), values_.data()};
  }
  XLA_FFI_Attrs& out() { return out_; }

 private:
  void add(DictionaryEntry& entry, std::string& bad) {
    names_.push_back({entry.name.data(), entry.name.size()});
    const auto type = static_cast<int>(entry.type);
    switch (entry.kind) {
      case DictionaryEntry::kScalar:
        scalars_.push_back({type, entry.bytes.data()});
        return put(XLA_FFI_AttrType_SCALAR, &scalars_.back());
      case DictionaryEntry::kArray:
        arrays_.push_back({type, entry.count(), entry.bytes.data()});
        return put(XLA_FFI_AttrType_ARRAY, &arrays_.back());
      case DictionaryEntry::kString:
        texts_.push_back({entry.text.data(), entry.text.size()});
        return put(XLA_FFI_AttrType_STRING, &texts_.back());
      case DictionaryEntry::kDictionary:
        nested_.push_back(std::make_unique<Attributes>(entry.entries, bad));
        return put(XLA_FFI_AttrType_DICTIONARY, &nested_.back()->out());
      case DictionaryEntry::kUnit:
      case DictionaryEntry::kList:
      case DictionaryEntry::kOther:
        bad = entry.name;
    }
  }
  void put(XLA_FFI_AttrType type, void* value) {
    types_.push_back(type);
    values_.push_back(value);
  }

  std::deque<XLA_FFI_ByteSpan> names_, texts_;  // deques, because their elements keep their addresses
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Array> arrays_;
  std::vector<std::unique_ptr<Attributes>> nested_;
  std::vector<XLA_FFI_AttrType> types_;
  std::vector<XLA_FFI_ByteSpan*> name_pointers_;
  std::vector<void*> values_;
  XLA_FFI_Attrs out_;
};

/// The attributes of custom calls with one configuration, as handlers get them.
struct Decoded {
  std::vector<DictionaryEntry> entries;
  std::unique_ptr<Attributes> attributes;
  std::string complaint;  ///< why there are none; empty: there are
};

std::shared_ptr<const Decoded> decode(const std::string& config) {
  auto out = std::make_shared<Decoded>();
  if (!read_dictionary(config, &out->entries)) {
    out->complaint = "the configuration is no dictionary of attributes";
    return out;
  }
  std::string bad;
  out->attributes = std::make_unique<Attributes>(out->entries, bad);
  if (!bad.empty()) out->complaint = "attribute '" + bad + "' is neither a number, an array, a text nor a dictionary";
  return out;
}

/// What was decoded, by configuration. Runs hold what they use, so that the table can be emptied at any time.
struct DecodedAttributes {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Decoded>> by_config;
  size_t bytes = 0;  ///< of the configurations
};

/// When the configurations are longer than this together, those of programs that are gone are forgotten with all others.
constexpr size_t kMostConfigurationBytes = size_t{16} << 20;

/// Returns the attributes of a configuration, which are decoded when a program runs for the first time.
std::shared_ptr<const Decoded> attributes_of(const std::string& config) {
  static auto* const all = new DecodedAttributes;
  const std::lock_guard lock(all->mutex);
  const auto found = all->by_config.find(config);
  if (found != all->by_config.end()) return found->second;
  std::shared_ptr<const Decoded> decoded = decode(config);
  if (all->bytes + config.size() > kMostConfigurationBytes) {
    all->by_config.clear();
    all->bytes = 0;
  }
  all->bytes += config.size();
  all->by_config.emplace(config, decoded);
  return decoded;
}

collet_status refuse(collet_error* error, int code, const std::string& message) {
  const bool known = code > COLLET_OK && code <= COLLET_DATA_LOSS;
  collet_copy_text(error->message, sizeof error->message, message.c_str());
  return error->code = known ? static_cast<collet_status>(code) : COLLET_UNKNOWN;
}

collet_status wait_for(XLA_FFI_Future* future, collet_error* error) {
  const std::unique_ptr<XLA_FFI_Future> owned(future);
  std::unique_lock lock(future->mutex);
  future->changed.wait(lock, [&] { return future->done; });
  const std::unique_ptr<XLA_FFI_Error> failed = std::move(future->error);
  lock.unlock();
  return failed ? refuse(error, failed->code, failed->message) : COLLET_OK;
}

collet_status call_checked(XLA_FFI_Handler* handler, const collet_host_call* call, collet_error* error) {
  const std::shared_ptr<const Decoded> decoded =
      attributes_of(std::string(call->config ? call->config : "", call->config_size));
  if (!decoded->complaint.empty()) return refuse(error, COLLET_INVALID_ARGUMENT, decoded->complaint);
  Arrays arguments(call->operand_types, call->operands, call->operand_count);
  Arrays results(call->result_types, call->results, call->result_count);
  XLA_FFI_ExecutionContext context{call, user_data_of(call->run_id)};
  XLA_FFI_CallFrame frame = frame_of_stage_execute();
  frame.ctx = &context;
  arguments.fill(frame.args);
  results.fill(frame.rets);
  frame.attrs = decoded->attributes->out();
  const std::unique_ptr<XLA_FFI_Error> failed(handler(&frame));
  if (failed) return refuse(error, failed->code, failed->message);
  return frame.future ? wait_for(frame.future, error) : COLLET_OK;
}

}  // namespace

int64_t ffi_type_id(const std::string& name, int64_t wanted) {
  Types& all = types();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ids.find(name);
  if (found != all.ids.end()) return wanted == 0 || wanted == found->second ? found->second : 0;
  if (wanted == 0) wanted = all.last + 1;
  all.last = std::max(all.last, wanted);
  return all.ids[name] = wanted;
}

void begin_user_data(uint64_t run_id, std::shared_ptr<const UserData> data) {
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  all.by_run[run_id] = std::move(data);
}

void end_user_data(uint64_t run_id) {
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  all.by_run.erase(run_id);
}

std::string ffi_complaint(XLA_FFI_Handler* handler) {
  XLA_FFI_Metadata metadata{};
  metadata.struct_size = sizeof metadata;
  metadata.api_version.struct_size = sizeof metadata.api_version;
  XLA_FFI_Metadata_Extension extension{{sizeof extension, XLA_FFI_Extension_Metadata, nullptr}, &metadata};
  XLA_FFI_CallFrame frame = frame_of_stage_execute();
  frame.extension_start = &extension.extension_base;
  const std::unique_ptr<XLA_FFI_Error> failed(handler(&frame));
  if (failed) return failed->message;
  if (metadata.api_version.major_version == XLA_FFI_API_MAJOR) return {};
  return "it was built for version " + std::to_string(metadata.api_version.major_version) + "." +
         std::to_string(metadata.api_version.minor_version) + " of XLA's FFI; this is " +
         std::to_string(XLA_FFI_API_MAJOR) + "." + std::to_string(XLA_FFI_API_MINOR);
}

collet_status call_ffi_handler(void* user, const collet_host_call* call, collet_error* error) {
  try {
    return call_checked(reinterpret_cast<XLA_FFI_Handler*>(user), call, error);
  } catch (const std::bad_alloc&) {
    return refuse(error, COLLET_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& e) {
    return refuse(error, COLLET_INTERNAL, std::string("unexpected: ") + e.what());
  }
}

}  // namespace collet::pjrt
