// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "conformance/contract/program.h"

namespace collet::conformance {
namespace {

constexpr uint8_t kGuard = 0xa5;

// A compiled elementwise program, and the optional table that the case tests.
template <typename Table>
struct Start {
  std::unique_ptr<Instance> instance;
  const Table* table = nullptr;
  PreparedProgram ready;
  explicit operator bool() const { return table && ready; }
};

template <typename Table>
Start<Table> start(Contract& c, const char* name) {
  Start<Table> out;
  if (!c.plugin().computes()) {
    c.skip("the backend runs no ops");
    return out;
  }
  out.instance = Instance::open(c);
  if (!out.instance) return out;
  out.table = out.instance->template query<Table>(name);
  if (!out.table) {
    c.skip(fmt::format("the backend has no table \"{}\"", name));
    return out;
  }
  const std::string body = accepted_sum(*out.instance);
  if (!body.empty()) out.ready = prepare(*out.instance, body);
  return out;
}

using Aot = Start<collet_aot_table>;

collet_status serialize(Contract& c, const Aot& s, void* out, uint64_t capacity, uint64_t& bytes) {
  return checked_call(c, "serialize", [&](collet_error* error) {
    return s.table->serialize(s.ready.executable.handle(), out, capacity, &bytes, error);
  });
}

Bytes serialized(Contract& c, const Aot& s) {
  uint64_t size = 0;
  if (!c.check(serialize(c, s, nullptr, 0, size) == COLLET_OK, Promise::AOT_CAPACITY,
               "serialize with a capacity of 0 failed"))
    return {};
  if (!c.check(size > 0 && size < uint64_t{1} << 32, Promise::AOT_BYTES, "serialize says that it takes {} bytes", size))
    return {};
  Bytes out(size + 64, kGuard);
  uint64_t written = 0;
  if (!c.check(serialize(c, s, out.data(), size, written) == COLLET_OK, Promise::AOT_BYTES, "serialize failed") ||
      !c.check(written == size, Promise::AOT_BYTES, "serialize says {} bytes, then {}", size, written) ||
      !c.check(
          std::all_of(out.begin() + static_cast<ptrdiff_t>(size), out.end(), [](uint8_t b) { return b == kGuard; }),
          Promise::AOT_BYTES, "serialize wrote beyond the capacity"))
    return {};
  out.resize(size);
  return out;
}

collet_status load(Contract& c, const Aot& s, Instance& instance, const Bytes& bytes, Executable& out) {
  const uint32_t device = 0;
  collet_compile_options options{};
  options.struct_size = sizeof options;
  options.optimization = 2;
  options.assignment = &device;
  options.participants = 1;
  std::vector<uint32_t> absorbed(s.ready.program->get()->constants.count + 1);
  collet_executable_info info{};
  info.struct_size = sizeof info;
  info.absorbed_count = s.ready.program->get()->constants.count;
  info.absorbed = absorbed.data();
  collet_backend_executable* handle = nullptr;
  const collet_status status = checked_call(c, "load", [&](collet_error* error) {
    return s.table->load(instance.handle(), bytes.data(), bytes.size(), &options, &handle, &info, error);
  });
  if (status != COLLET_OK) return status;
  if (!c.check(handle != nullptr, Promise::AOT_LOAD, "load succeeded without an executable")) return COLLET_INTERNAL;
  out = Executable(&instance.table(), handle);
  out.workspace_bytes = info.workspace_bytes;
  out.workspace_alignment = info.workspace_alignment;
  return status;
}

void aot_round_trip(Contract& c) {
  const Aot s = start<collet_aot_table>(c, "aot");
  if (!s) return;
  Bytes bytes = serialized(c, s);
  if (bytes.empty()) return;
  const auto other = Instance::open(c);
  if (!other) return;
  for (Instance* instance : {s.instance.get(), other.get()}) {
    Executable loaded;
    Bytes copy = bytes;
    const collet_status status = load(c, s, *instance, copy, loaded);
    if (!c.check(status == COLLET_OK, Promise::AOT_LOAD, "load of what serialize wrote gave status {}", status)) return;
    std::fill(copy.begin(), copy.end(), 0xee);
    if (!instance->executes()) continue;
    GuardedLaunch guarded(*instance, *s.ready.program, loaded, {});
    for (const uint64_t seed : {1u, 2u})
      if (!guarded.run(seed, "an executable that was loaded")) return;
  }
}

// Executables of programs that differ by their op are written, and read in another order: each is its own.
void aot_of_several(Contract& c) {
  Aot s = start<collet_aot_table>(c, "aot");
  if (!s) return;
  std::vector<PreparedProgram> all;
  std::vector<Bytes> written;
  for (const char* type : {"f32", "s32", "bf16", "f64"}) {
    for (const char* op : {"add", "multiply", "maximum", "subtract"}) {
      PreparedProgram ready =
          prepare(*s.instance,
                  fmt::format("ENTRY main {{\n  a = {0}[300] parameter(0)\n  b = {0}[300] parameter(1)\n"
                              "  ROOT r = {0}[300] {1}(a, b)\n}}\n",
                              type, op),
                  {}, {}, false);
      if (!ready) continue;
      s.ready = std::move(ready);
      written.push_back(serialized(c, s));
      if (written.back().empty()) return;
      all.push_back(std::move(s.ready));
    }
    if (all.size() > 1) break;
  }
  if (all.size() < 2) return c.skip("the backend takes fewer than two of the programs");
  for (size_t i = all.size(); i-- > 0;) {
    s.ready = std::move(all[i]);
    Executable loaded;
    const collet_status status = load(c, s, *s.instance, written[i], loaded);
    if (!c.check(status == COLLET_OK, Promise::AOT_LOAD, "load of what serialize wrote gave status {}", status)) return;
    if (!s.instance->executes()) continue;
    GuardedLaunch guarded(*s.instance, *s.ready.program, loaded, {});
    if (!guarded.run(i + 1, fmt::format("executable {} of {} that were written and loaded", i, all.size()))) return;
  }
}

void aot_small_capacity(Contract& c) {
  const Aot s = start<collet_aot_table>(c, "aot");
  if (!s) return;
  const uint64_t size = serialized(c, s).size();
  for (const uint64_t capacity : {uint64_t{1}, size / 2, size - 1}) {
    if (size == 0) return;
    Bytes out(size, kGuard);
    uint64_t bytes = 0;
    const collet_status status = serialize(c, s, out.data(), capacity, bytes);
    c.check(status == COLLET_OK && bytes == size, Promise::AOT_CAPACITY,
            "serialize with room for {} of {} bytes gave status {} and {} bytes", capacity, size, status, bytes);
    c.check(std::all_of(out.begin(), out.end(), [](uint8_t b) { return b == kGuard; }), Promise::AOT_CAPACITY,
            "serialize with room for {} of {} bytes wrote something", capacity, size);
  }
}

// Loads damaged bytes: this must return an error, or an executable that can be released; it must not crash.
void aot_damage(Contract& c) {
  const Aot s = start<collet_aot_table>(c, "aot");
  if (!s) return;
  const Bytes good = serialized(c, s);
  if (good.empty()) return;
  const auto refused = [&](const Bytes& bytes, const std::string& what) {
    Executable loaded;
    const collet_status status = load(c, s, *s.instance, bytes, loaded);
    return c.check(status == COLLET_DATA_LOSS || status == COLLET_FAILED_PRECONDITION, Promise::AOT_LOAD,
                   "load of {} gave status {}", what, status);
  };
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, good.size() / 2, good.size() - 1}) {
    const Bytes part(good.begin(), good.begin() + static_cast<ptrdiff_t>(std::min(size, good.size() - 1)));
    if (!refused(part, fmt::format("{} of {} bytes", part.size(), good.size()))) return;
  }
  if (!refused(Bytes(good.size(), 0), "zeros") || !refused(pattern(good.size(), 3), "noise")) return;
  Bytes head = good;
  for (size_t i = 0; i < std::min<size_t>(8, head.size()); ++i) head[i] = static_cast<uint8_t>(~head[i]);
  if (!refused(head, "bytes of which the first eight are others")) return;
  for (size_t i = 0; i < 64; ++i) {
    Bytes damaged = good;
    damaged[i * good.size() / 64] ^= static_cast<uint8_t>(1u << (i % 8));
    Executable loaded;
    const collet_status status = load(c, s, *s.instance, damaged, loaded);
    c.check(status == COLLET_OK || status == COLLET_DATA_LOSS || status == COLLET_FAILED_PRECONDITION,
            Promise::AOT_LOAD, "load of bytes of which one bit was turned gave status {}", status);
  }
}

void memory_stats(Contract& c) {
  const auto instance = Instance::open(c, 2, true);
  if (!instance) return;
  const auto* table = instance->query<collet_memory_stats_table>("memory_stats");
  if (!table) return c.skip("the backend has no table \"memory_stats\"");
  const auto ask = [&](collet_memory_stats& stats, uint32_t device = 0) {
    alignas(8) uint8_t bytes[sizeof(collet_memory_stats) + 64];
    std::memset(bytes, kGuard, sizeof bytes);
    std::memset(bytes, 0, sizeof(collet_memory_stats));
    auto* asked = reinterpret_cast<collet_memory_stats*>(bytes);
    asked->struct_size = sizeof *asked;
    const collet_status status = checked_call(c, "get of memory_stats", [&](collet_error* error) {
      return table->get(instance->handle(), device, instance->device(device).default_space, asked, error);
    });
    stats = *asked;
    return c.check(status == COLLET_OK, Promise::MEMORY_STATS, "get gave status {}", status) &&
           c.check(std::all_of(bytes + sizeof stats, std::end(bytes), [](uint8_t b) { return b == kGuard; }),
                   Promise::GROWING, "get wrote beyond struct_size") &&
           c.check(stats.peak_bytes_in_use >= stats.bytes_in_use, Promise::MEMORY_STATS,
                   "{} bytes are in use, and the peak is {}", stats.bytes_in_use, stats.peak_bytes_in_use) &&
           c.check(stats.bytes_limit == 0 || stats.bytes_limit >= stats.bytes_in_use, Promise::MEMORY_STATS,
                   "{} bytes are in use, and the limit is {}", stats.bytes_in_use, stats.bytes_limit);
  };
  constexpr uint64_t kBytes = 1 << 20;
  const auto last = static_cast<uint32_t>(instance->devices().size()) - 1;
  collet_memory_stats before, held, after, other_before, other_held;
  if (!ask(before) || !ask(other_before, last)) return;
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 3; ++i) buffers.push_back(instance->alloc(kBytes));
    if (!ask(held) || !ask(other_held, last)) return;
  }
  if (last > 0)
    c.check(other_held.bytes_in_use == other_before.bytes_in_use && other_held.allocations == other_before.allocations,
            Promise::MEMORY_STATS, "three MiB were allocated on device 0, and {} bytes of device {} became {}",
            other_before.bytes_in_use, last, other_held.bytes_in_use);
  if (!ask(after)) return;
  c.check(held.bytes_in_use >= before.bytes_in_use + 3 * kBytes, Promise::MEMORY_STATS,
          "three MiB more are allocated, and {} bytes in use became {}", before.bytes_in_use, held.bytes_in_use);
  c.check(held.allocations == before.allocations + 3, Promise::MEMORY_STATS_ALIVE,
          "three buffers more are alive, and {} allocations became {}", before.allocations, held.allocations);
  c.check(after.bytes_in_use == before.bytes_in_use && after.allocations == before.allocations,
          Promise::MEMORY_STATS_ALIVE, "all is freed, and {} bytes of {} allocations became {} of {}",
          before.bytes_in_use, before.allocations, after.bytes_in_use, after.allocations);
  c.check(after.peak_bytes_in_use >= held.bytes_in_use, Promise::MEMORY_STATS, "the peak fell to {} bytes",
          after.peak_bytes_in_use);
}

void artifacts(Contract& c) {
  const auto s = start<collet_artifacts_table>(c, "artifacts");
  if (!s) return;
  constexpr uint32_t kMost = 4096;
  const auto get = [&](uint32_t index, const char** name, const void** bytes, uint64_t* size) {
    return checked_call(c, "get of artifacts", [&](collet_error* error) {
      return s.table->get(s.ready.executable.handle(), index, name, bytes, size, error);
    });
  };
  // What was handed out, and what it was then.
  struct Held {
    const char* name;
    const void* bytes;
    std::string name_then;
    Bytes contents;
  };
  std::vector<Held> held;
  uint32_t count = 0;
  collet_status status = COLLET_OK;
  for (; count < kMost && status == COLLET_OK; ++count) {
    const char *name = nullptr, *again = nullptr;
    const void *bytes = nullptr, *bytes_again = nullptr;
    uint64_t size = 0, size_again = 0;
    status = get(count, &name, &bytes, &size);
    if (status != COLLET_OK) break;
    if (!c.check(name != nullptr && (bytes != nullptr || size == 0), Promise::ARTIFACTS,
                 "artifact {} has no name or bytes", count) ||
        !c.check(*name != '\0', Promise::ARTIFACTS, "the name of artifact {} is empty", count))
      return;
    const std::string first_name = name;
    const auto* const contents = static_cast<const uint8_t*>(bytes);
    const Bytes first(contents, contents + (size ? size : 0));
    get(count, &again, &bytes_again, &size_again);
    c.check(again && std::string(again) == first_name && size == size_again &&
                (size == 0 || std::memcmp(bytes_again, first.data(), size) == 0),
            Promise::ARTIFACTS, "artifact {} is another one the second time", count);
    held.push_back({name, bytes, first_name, first});
  }
  for (const Held& one : held)
    c.check(one.name_then == one.name &&
                (one.contents.empty() || std::memcmp(one.bytes, one.contents.data(), one.contents.size()) == 0),
            Promise::ARTIFACTS, "after others were read, the name or the bytes of {} have changed", one.name_then);
  c.check(status == COLLET_OUT_OF_RANGE, Promise::ARTIFACTS_END, "artifact {} gave status {}", count, status);
  for (const uint32_t index : {count + 1, UINT32_MAX}) {
    const char* name = nullptr;
    const void* bytes = nullptr;
    uint64_t size = 0;
    const collet_status beyond = get(index, &name, &bytes, &size);
    c.check(beyond == COLLET_OUT_OF_RANGE, Promise::ARTIFACTS_END, "artifact {} of {} gave status {}", index, count,
            beyond);
  }
}

}  // namespace

void add_tables_contracts(std::vector<ContractCase>& list) {
  list.push_back({"tables/aot_round_trip", aot_round_trip});
  list.push_back({"tables/aot_of_several", aot_of_several});
  list.push_back({"tables/aot_small_capacity", aot_small_capacity});
  list.push_back({"tables/aot_damage", aot_damage});
  list.push_back({"tables/memory_stats", memory_stats});
  list.push_back({"tables/artifacts", artifacts});
}

}  // namespace collet::conformance
