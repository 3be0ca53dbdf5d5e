// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/runtime/testing/wrapper.h"

/// \file
/// For tests: short helper functions for calls of collet.h.

namespace collet::testing {

/// The type f32[4].
inline constexpr int64_t kFour[] = {4};
inline constexpr collet_array_type kVector = {COLLET_TYPE_F32, 1, kFour};

struct Failure {
  collet_status code = COLLET_OK;
  std::string message;
};

/// Returns the path of a test backend of this build.
inline std::string test_backend(std::string_view name) {
  const char* build = std::getenv("COLLET_BUILD_DIR");
  return std::string(build ? build : "build") + "/lib/collet/test_backends/libcollet_backend_" + std::string(name) +
         ".so";
}

struct Release {
  void operator()(collet_client* p) const { collet_client_close(p); }
  void operator()(collet_module* p) const { collet_module_release(p); }
  void operator()(collet_executable* p) const { collet_executable_release(p); }
  void operator()(collet_buffer* p) const { collet_buffer_release(p); }
  void operator()(collet_event* p) const { collet_event_release(p); }
  void operator()(collet_blob* p) const { collet_blob_release(p); }
};
using ClientPtr = std::unique_ptr<collet_client, Release>;
using ModulePtr = std::unique_ptr<collet_module, Release>;
using ExecutablePtr = std::unique_ptr<collet_executable, Release>;
using BufferPtr = std::unique_ptr<collet_buffer, Release>;
using EventPtr = std::unique_ptr<collet_event, Release>;
using BlobPtr = std::unique_ptr<collet_blob, Release>;

/// Helper functions, and the last failure of one of them.
class Session {
 public:
  Failure failure;

  /// `control`: a Control of the wrapper or a QueueControl of the backend "queued"; null for none.
  ClientPtr open(const std::string& backend, const char* fallback = "interpreter", const void* control = nullptr,
                 uint32_t devices = 0, uint32_t runs_in_flight = 0) {
    collet_client_options o{};
    o.struct_size = sizeof o;
    o.backend = backend.c_str();
    o.fallback = fallback;
    o.device_count = devices;
    o.runs_in_flight = runs_in_flight;
    o.log = [](void*, int32_t, const char*) {};
    const std::string address = std::to_string(reinterpret_cast<uintptr_t>(control));
    const char *keys[] = {"control"}, *values[] = {address.c_str()};
    if (control) {
      o.keys = keys;
      o.values = values;
      o.pairs = 1;
    }
    collet_client* out = nullptr;
    note(collet_client_open(&o, &out, &error_));
    return ClientPtr(out);
  }

  ModulePtr read(std::string_view text, uint32_t elided = COLLET_ELIDED_REFUSE) {
    collet_read_options options{};
    options.struct_size = sizeof options;
    options.elided = elided;
    collet_module* out = nullptr;
    note(collet_module_read(text.data(), text.size(), &options, &out, nullptr, &error_));
    return ModulePtr(out);
  }

  ExecutablePtr compile(collet_client* client, collet_module* module, collet_compile_request request = {}) {
    request.struct_size = sizeof request;
    collet_executable* out = nullptr;
    note(collet_compile(client, module, &request, &out, &error_));
    return ExecutablePtr(out);
  }
  ExecutablePtr compile(collet_client* client, std::string_view text) {
    const ModulePtr module = read(text);
    return module ? compile(client, module.get()) : nullptr;
  }

  BufferPtr upload(collet_client* client, collet_array_type type, const void* data, uint32_t device = 0) {
    collet_host_array a{};
    a.struct_size = sizeof a;
    a.element = type.element;
    a.rank = type.rank;
    a.dims = type.dims;
    a.data = data;
    collet_buffer* out = nullptr;
    note(collet_buffer_from_host(client, device, COLLET_NONE, &a, &out, &error_));
    return BufferPtr(out);
  }
  template <typename T>
  BufferPtr upload(collet_client* client, uint32_t element, std::vector<int64_t> dims, const std::vector<T>& data) {
    return upload(client, {element, static_cast<uint32_t>(dims.size()), dims.data()}, data.data());
  }

  /// Uploads the arguments of programs of two f32[4].
  std::vector<BufferPtr> two_vectors(collet_client* client) {
    std::vector<BufferPtr> out;
    out.push_back(upload<float>(client, COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    out.push_back(upload<float>(client, COLLET_TYPE_F32, {4}, {10, 20, 30, 40}));
    return out;
  }

  std::vector<BufferPtr> run(collet_executable* e, const std::vector<BufferPtr>& arguments,
                             collet_execute_options options = {}) {
    std::vector<collet_buffer*> in, out;
    for (const BufferPtr& b : arguments) in.push_back(b.get());
    collet_executable_facts facts{};
    facts.struct_size = sizeof facts;
    collet_executable_facts_get(e, &facts, nullptr);
    out.resize(facts.result_count * facts.local_participants);
    options.struct_size = sizeof options;
    note(collet_execute(e, &options, in.data(), out.data(), &error_));
    std::vector<BufferPtr> results;
    if (failure.code == COLLET_OK)
      for (collet_buffer* b : out) results.emplace_back(b);
    return results;
  }

  template <typename T>
  std::vector<T> download(const BufferPtr& buffer) {
    std::vector<T> out(collet_buffer_bytes(buffer.get()) / sizeof(T));
    note(collet_buffer_to_host(buffer.get(), out.data(), out.size() * sizeof(T), nullptr, &error_));
    return out;
  }

  static collet_executable_facts facts(collet_executable* e) {
    collet_executable_facts out{};
    out.struct_size = sizeof out;
    collet_executable_facts_get(e, &out, nullptr);
    return out;
  }
  static std::string explain(collet_executable* e, bool json = false) {
    collet_blob* blob = nullptr;
    collet_executable_explain(e, json, &blob, nullptr);
    const BlobPtr owner(blob);
    return std::string(collet_blob_data(blob), collet_blob_size(blob));
  }

 private:
  void note(collet_status code) {
    failure.code = code;
    failure.message = code == COLLET_OK ? "" : error_.message;
  }
  collet_error error_{};
};

}  // namespace collet::testing
