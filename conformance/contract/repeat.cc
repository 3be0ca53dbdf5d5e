// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "conformance/contract/program.h"
#include "hlo/program/write.h"

/// \file
/// Contract cases that repeat calls very often and check that no memory is leaked: queries, copies, and calls that
/// fail.

namespace collet::conformance {
namespace {

constexpr int kCycles = 160;
constexpr double kSmallest = 8;  // in bytes; no allocation takes less

// A call that fails, and its name.
struct Failing {
  std::string what;
  std::function<collet_status(collet_error*)> call;
};

// Runs the call once and returns early if it does not fail, because another case checks that. Otherwise repeats it and
// measures the growth.
void judge(Contract& c, const Failing& failing) {
  bool fails = true;
  const auto once = [&] {
    collet_error error{};
    return failing.call(&error) != COLLET_OK;
  };
  const Growth growth = measure_growth(kCycles, [&] { return fails = once(); });
  if (fails)
    c.check(growth.always < kSmallest, Promise::ERROR_CHANGES_NOTHING, "each {} leaves {:.0f} bytes of the heap behind",
            failing.what, growth.always);
}

void refused_opens(Contract& c) {
  judge(c, {"refused open", [&](collet_error* error) {
              OpenOptions options(c.plugin());
              options.add("no_such_option_of_any_backend", "1");
              collet_instance_info info{};
              info.struct_size = sizeof info;
              collet_backend_instance* instance = nullptr;
              const collet_status status = c.plugin().table().open(options.get(), &instance, &info, error);
              if (status == COLLET_OK && instance) c.plugin().table().close(instance);
              return status;
            }});
}

void failed_allocs(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Device& device = instance->device();
  judge(c, {"failed alloc", [&](collet_error* error) {
              collet_backend_buffer* handle = nullptr;
              void* host = nullptr;
              const collet_status status =
                  instance->table().alloc(instance->handle(), 0, device.default_space, uint64_t{1} << 62,
                                          device.alignment(), &handle, &host, error);
              if (status == COLLET_OK && handle) instance->table().free(instance->handle(), handle);
              return status;
            }});
}

void refused_copies(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Buffer buffer = instance->alloc(100);
  if (!buffer) return;
  uint8_t byte = 0;
  const collet_copy_region beyond = region(at(buffer, 100), at_host(&byte), 1);
  judge(c, {"refused copy", [&](collet_error* error) {
              return instance->table().copy(instance->handle(), &beyond, 1, nullptr, error);
            }});
}

collet_status compile_once(Instance& instance, const collet_program* program,
                           int32_t (*progress)(void*, double, const char*), collet_error* error) {
  const uint32_t device = 0;
  collet_compile_options options{};
  options.struct_size = sizeof options;
  options.optimization = 2;
  options.assignment = &device;
  options.participants = 1;
  options.progress = progress;
  collet_executable_info info{};
  info.struct_size = sizeof info;
  collet_rejection rejection{sizeof(collet_rejection), 0, nullptr};
  collet_backend_executable* handle = nullptr;
  const collet_status status =
      instance.table().compile(instance.handle(), program, &options, &handle, &info, &rejection, error);
  if (status == COLLET_OK && handle) instance.table().release(handle);
  return status;
}

void failed_compiles(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const auto program = TestProgram::make(body);
  judge(c, {"cancelled compile", [&](collet_error* error) {
              return compile_once(
                  *instance, (*program)->get(), [](void*, double, const char*) { return int32_t{1}; }, error);
            }});
  // A program that every backend must refuse: a reserved field is not zero.
  hlo::Block block((*program)->bytes().data(), (*program)->bytes().size());
  auto* changed = reinterpret_cast<collet_program*>(block.data());
  const_cast<collet_op*>(collet_op_at(changed, 0))->flags = 1;
  judge(c, {"refused compile", [&](collet_error* error) { return compile_once(*instance, changed, nullptr, error); }});
}

void refused_launches(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (!instance->executes()) return c.skip("a device has COLLET_TRAIT_VIRTUAL");
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*instance, body);
  if (!ready) return;
  const auto launch_with = [&](const char* what, auto&& spoil) {
    GuardedLaunch guarded(*instance, *ready.program, ready.executable, {});
    if (!guarded.fill(ready.program->draw(1), 1)) return;
    spoil(guarded);
    judge(c, {what, [&](collet_error* error) {
                return instance->table().execute(ready.executable.handle(), &guarded.launch(), 1, 0, error);
              }});
  };
  launch_with("refused launch, with an argument too few",
              [](GuardedLaunch& guarded) { --guarded.launch().argument_count; });
  launch_with("refused launch, with a layout", [](GuardedLaunch& guarded) { guarded.arguments()[1].layout = 77; });
}

void questions(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const auto program = TestProgram::make(body);
  const uint32_t op = entry_ops((*program)->get())[0];
  const Growth growth = measure_growth(kCycles, [&] {
    collet_error error{};
    collet_verdict verdict{};
    return instance->table().supports(instance->handle(), 0, (*program)->get(), &op, 1, &verdict, &error) == COLLET_OK;
  });
  c.check(growth.always < kSmallest, Promise::SUPPORTS_PURE, "each question leaves {:.0f} bytes of the heap behind",
          growth.always);
}

void copies(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Buffer a = instance->alloc(1000), b = instance->alloc(1000);
  Bytes host = pattern(1000, 1);
  if (!a || !b) return;
  const collet_copy_region regions[] = {region(at_host(host.data()), at(a), 500),
                                        region(at(b), at_host(host.data(), 500), 500),
                                        region(at(a, 500), at(b, 500), 500)};
  const Growth growth = measure_growth(kCycles, [&] {
    collet_error error{};
    return instance->table().copy(instance->handle(), regions, 3, nullptr, &error) == COLLET_OK;
  });
  c.check(growth.always < kSmallest, Promise::COPY_DONE, "each copy leaves {:.0f} bytes of the heap behind",
          growth.always);
}

// Allocates and frees many handles: a backend with a fixed table of handles must reuse those that were freed.
void handles(Contract& c) {
  constexpr int kMost = 70000;
  constexpr auto kLongest = std::chrono::seconds(1);
  const auto repeat = [&](const std::function<bool(int)>& once) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kMost && std::chrono::steady_clock::now() - start < kLongest; ++i)
      if (!once(i)) return false;
    return true;
  };
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Device& device = instance->device();
  const bool allocated = repeat([&](int i) {
    collet_backend_buffer* handle = nullptr;
    void* host = nullptr;
    collet_error error{};
    const collet_status status = instance->table().alloc(instance->handle(), 0, device.default_space, 64,
                                                         device.alignment(), &handle, &host, &error);
    if (status == COLLET_OK) instance->table().free(instance->handle(), handle);
    return c.check(status == COLLET_OK, Promise::FREE, "after {} buffers that were freed, alloc gave status {}", i,
                   status);
  });
  if (!allocated) return;
  const std::string body = c.plugin().computes() ? accepted_sum(*instance) : std::string();
  if (!body.empty()) {
    const auto program = TestProgram::make(body);
    const bool compiled = repeat([&](int i) {
      collet_error error{};
      const collet_status status = compile_once(*instance, (*program)->get(), nullptr, &error);
      return c.check(status == COLLET_OK, Promise::RELEASE,
                     "after {} executables that were released, compile gave status {}", i, status);
    });
    if (!compiled) return;
  }
  repeat([&](int i) {
    OpenOptions options(c.plugin());
    collet_instance_info info{};
    info.struct_size = sizeof info;
    collet_backend_instance* opened = nullptr;
    collet_error error{};
    const collet_status status = c.plugin().table().open(options.get(), &opened, &info, &error);
    if (status == COLLET_OK && opened) c.plugin().table().close(opened);
    return c.check(status == COLLET_OK, Promise::CLOSE, "after {} instances that were closed, open gave status {}", i,
                   status);
  });
}

void unknown_queries(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (!instance->table().query) return c.skip("the backend has no query");
  const Growth growth = measure_growth(
      kCycles, [&] { return instance->table().query(instance->handle(), "no_such_table", 1) == nullptr; });
  c.check(growth.always < kSmallest, Promise::QUERY, "each query leaves {:.0f} bytes of the heap behind",
          growth.always);
}

}  // namespace

void add_repeat_contracts(std::vector<ContractCase>& list) {
  list.push_back({"repeat/refused_opens", refused_opens});
  list.push_back({"repeat/failed_allocs", failed_allocs});
  list.push_back({"repeat/refused_copies", refused_copies});
  list.push_back({"repeat/failed_compiles", failed_compiles});
  list.push_back({"repeat/refused_launches", refused_launches});
  list.push_back({"repeat/questions", questions});
  list.push_back({"repeat/copies", copies});
  list.push_back({"repeat/queries", unknown_queries});
  list.push_back({"repeat/handles", handles});
}

}  // namespace collet::conformance
