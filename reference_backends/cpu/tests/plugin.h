// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Loads the plugin as a host does, and runs programs through it.

#include <collet/backend.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/testing/program_builder.h"

namespace collet::cpu::testing {

using codegen::testing::Handle;
using codegen::testing::ProgramBuilder;
using codegen::testing::RegionBuilder;

inline constexpr uint32_t kF32 = COLLET_TYPE_F32;
inline constexpr uint32_t kS32 = COLLET_TYPE_S32;
inline constexpr uint32_t kPred = COLLET_TYPE_PRED;

using Bytes = std::vector<char>;
using Numbers = std::vector<int32_t>;
using Handles = std::vector<Handle>;

template <typename T>
Bytes bytes_of(const std::vector<T>& v) {
  Bytes b(v.size() * sizeof(T));
  if (!v.empty()) std::memcpy(b.data(), v.data(), b.size());
  return b;
}

template <typename T>
std::vector<T> elements_of(const Bytes& b) {
  std::vector<T> v(b.size() / sizeof(T));
  if (!v.empty()) std::memcpy(v.data(), b.data(), v.size() * sizeof(T));
  return v;
}

/// Adds a comparison of integers, element by element.
inline Handle compare(RegionBuilder& r, const Handle& x, const Handle& y, uint32_t direction) {
  return r.op(COLLET_OP_COMPARE, kPred, x.dims, {x, y}, collet_compare_attrs{direction, COLLET_COMPARE_SIGNED});
}

using Iteration = std::function<Handles(RegionBuilder&, const Handle&, const Handles&)>;

/// Adds the loop for (i = first; i < end; ++i) state = iteration(i, state), and returns the final state.
inline Handles loop(ProgramBuilder& b, RegionBuilder& e, const Handle& first, const Handle& end, const Handles& state,
                    const Iteration& iteration) {
  Handles all{first, end};
  all.insert(all.end(), state.begin(), state.end());
  RegionBuilder& condition = b.region();
  RegionBuilder& body = b.region();
  Handles c;
  Handles s;
  for (const Handle& h : all) {
    c.push_back(condition.argument(h.element, h.dims));
    s.push_back(body.argument(h.element, h.dims));
  }
  condition.results({compare(condition, c[0], c[1], COLLET_DIRECTION_LT)});
  Handles next = iteration(body, s[0], {s.begin() + 2, s.end()});
  next.insert(next.begin(), {body.binary(COLLET_OP_ADD, s[0], body.scalar(kS32, 1)), s[1]});
  body.results(next);
  Handles out = e.ops(COLLET_OP_WHILE, all, all, collet_while_attrs{}, {&condition, &body});
  return {out.begin() + 2, out.end()};
}

/// Values of the option `features`: the machine's own, and those of lesser processors of its architecture. A program for kLesser,
/// where there is one, is none for the machine.
#if defined(__x86_64__)
inline constexpr const char* kLevels[] = {"", "-avx512f", "-sse3"};
inline constexpr const char* kLesser = "-avx2,-avx512f";
#else
inline constexpr const char* kLevels[] = {"", "-sve"};
inline constexpr const char* kLesser = nullptr;  // an emulator may report no feature that can be switched off
#endif

/// An open instance of the backend.
class Plugin {
 public:
  /// `features` is the option of that name, such as "-avx512f". `threads` is empty to use the backend's default.
  explicit Plugin(const std::string& features = "", const std::string& threads = "2", const std::string& fuse = "1") {
    const char* folder = std::getenv("COLLET_BACKEND_PATH");
    std::string path = std::string(folder ? folder : ".") + "/libcollet_backend_cpu.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) ADD_FAILURE() << dlerror();
    auto entry = reinterpret_cast<collet_backend_entry_fn>(dlsym(library, "collet_backend_entry"));
    static const collet_host host = {sizeof(collet_host), COLLET_ABI_MAJOR, COLLET_ABI_MINOR,
                                     COLLET_OPSET,        nullptr,          nullptr};
    EXPECT_EQ(entry(&host, &table, &error), COLLET_OK);
    const char* keys[] = {"features", "fuse", "threads"};
    const char* values[] = {features.c_str(), fuse.c_str(), threads.c_str()};
    collet_open_options options{};
    options.struct_size = sizeof options;
    options.keys = keys;
    options.values = values;
    options.pairs = threads.empty() ? 2 : 3;
    collet_instance_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(table->open(&options, &instance, &info, &error), COLLET_OK) << error.message;
  }
  ~Plugin() { table->close(instance); }
  Plugin(const Plugin&) = delete;

  const collet_backend* table = nullptr;
  collet_backend_instance* instance = nullptr;
  collet_error error{};
};

/// A buffer of the backend.
class Memory {
 public:
  Memory(Plugin& plugin, uint64_t bytes) : plugin_(plugin), bytes_(bytes) {
    if (bytes == 0) return;
    EXPECT_EQ(plugin.table->alloc(plugin.instance, 0, 0, bytes, 64, &buffer_, &host_, &plugin.error), COLLET_OK);
  }
  ~Memory() { plugin_.table->free(plugin_.instance, buffer_); }
  Memory(const Memory&) = delete;

  void put(const Bytes& b) {
    if (!b.empty()) std::memcpy(host_, b.data(), b.size());
  }
  Bytes get() const {
    const char* p = static_cast<const char*>(host_);
    return p ? Bytes(p, p + bytes_) : Bytes();
  }
  collet_argument argument() const {
    collet_argument a{};
    a.buffer = buffer_;
    a.bytes = bytes_;
    return a;
  }

 private:
  Plugin& plugin_;
  uint64_t bytes_;
  collet_backend_buffer* buffer_ = nullptr;
  void* host_ = nullptr;
};

/// A compiled program.
class Compiled {
 public:
  Compiled(Plugin& plugin, const collet_program* program) : plugin_(plugin), program_(program) {
    info.struct_size = sizeof info;
    const uint32_t device = 0;
    collet_compile_options options{};
    options.struct_size = sizeof options;
    options.assignment = &device;
    options.participants = 1;
    options.optimization = 2;
    status = plugin.table->compile(plugin.instance, program, &options, &executable_, &info, nullptr, &error);
  }
  ~Compiled() {
    if (executable_) plugin_.table->release(executable_);
  }
  Compiled(const Compiled&) = delete;

  /// Runs the program with new buffers.
  std::vector<Bytes> run(const std::vector<Bytes>& arguments) {
    std::vector<std::unique_ptr<Memory>> in;
    std::vector<std::unique_ptr<Memory>> out;
    std::vector<collet_argument> a;
    std::vector<collet_argument> r;
    for (const Bytes& b : arguments) {
      in.push_back(std::make_unique<Memory>(plugin_, b.size()));
      in.back()->put(b);
      a.push_back(in.back()->argument());
    }
    const collet_region* entry = collet_region_at(program_, 0);
    for (uint32_t i = 0; i < entry->results.count; ++i) {
      const uint32_t v = collet_ref_at(program_, entry->results.first + i);
      out.push_back(std::make_unique<Memory>(plugin_, collet_value_type(program_, v)->bytes));
      r.push_back(out.back()->argument());
    }
    launch(a, r);
    std::vector<Bytes> results;
    for (auto& m : out) results.push_back(m->get());
    return results;
  }

  void launch(const std::vector<collet_argument>& arguments, const std::vector<collet_argument>& results) {
    Memory workspace(plugin_, info.workspace_bytes);
    collet_launch l{};
    l.arguments = arguments.data();
    l.results = results.data();
    l.argument_count = static_cast<uint32_t>(arguments.size());
    l.result_count = static_cast<uint32_t>(results.size());
    l.workspace = workspace.argument();
    collet_error e{};
    EXPECT_EQ(plugin_.table->execute(executable_, &l, 1, 1, &e), COLLET_OK) << e.message;
  }

  collet_status status = COLLET_OK;
  collet_error error{};
  collet_executable_info info{};

 private:
  Plugin& plugin_;
  const collet_program* program_;
  collet_backend_executable* executable_ = nullptr;
};

}  // namespace collet::cpu::testing
