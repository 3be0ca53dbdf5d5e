// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "conformance/contract/instance.h"

namespace collet::conformance {
namespace {

// The sizes of the structs in the first version of the ABI. No SDK passes smaller ones.
constexpr uint32_t kFirstInstanceInfo = offsetof(collet_instance_info, version) + sizeof(const char*);
constexpr uint32_t kFirstDeviceInfo = offsetof(collet_device_info, reserved) + sizeof(uint32_t);
constexpr uint32_t kNewerBytes = 64;  // bytes by which the structs of a simulated newer SDK are larger
constexpr uint8_t kGuard = 0xa5;

bool is_guard(const uint8_t* bytes, size_t count) {
  return std::all_of(bytes, bytes + count, [](uint8_t byte) { return byte == kGuard; });
}

// A struct of `known` bytes, followed by guard bytes. With `grown` it also has kNewerBytes of fields from a newer SDK, filled with
// `unknown`.
template <typename T>
class Sized {
 public:
  Sized(uint32_t known, bool grown, uint8_t unknown) : size_(known + (grown ? kNewerBytes : 0)) {
    std::memset(bytes_, kGuard, sizeof bytes_);
    std::memset(bytes_, 0, size_);
    if (grown) std::memset(bytes_ + known, unknown, kNewerBytes);
    get()->struct_size = size_;
  }
  T* get() { return reinterpret_cast<T*>(bytes_); }
  bool guards_stand() const { return is_guard(bytes_ + size_, sizeof bytes_ - size_); }
  bool size_stands() { return get()->struct_size == size_; }

 private:
  uint32_t size_;
  alignas(16) uint8_t bytes_[sizeof(T) + 2 * kNewerBytes];
};

collet_status ask(Contract& c, Instance& instance, uint32_t device, collet_device_info& info) {
  info = {};
  info.struct_size = sizeof info;
  return checked_call(c, "device_info", [&](collet_error* error) {
    return instance.table().device_info(instance.handle(), device, &info, error);
  });
}

// Peaks are positive, and name each kind of work on a type once.
void check_peaks(Contract& c, const collet_device_info& info, uint32_t device) {
  if (!c.check(info.peak_count == 0 || info.peaks, Promise::PEAKS, "device {} has {} peaks and no array of them",
               device, info.peak_count))
    return;
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (uint32_t i = 0; i < info.peak_count; ++i) {
    const collet_peak& one = info.peaks[i];
    c.check(std::isfinite(one.per_ns) && one.per_ns > 0, Promise::PEAKS, "peak {} of device {} is {}", i, device,
            one.per_ns);
    c.check(one.reserved == 0, Promise::PEAKS, "a reserved field of peak {} of device {} is not zero", i, device);
    c.check(seen.emplace(one.work, one.type).second, Promise::PEAKS, "device {} states two peaks of work {} on type {}",
            device, one.work, one.type);
  }
}

// Checks what the runtime checks when it opens a backend: its info, its devices, their memory spaces and peers.
void describes_itself(Contract& c) {
  {
    OpenOptions options(c.plugin());
    collet_instance_info info{};
    info.struct_size = sizeof info;
    collet_backend_instance* opened = nullptr;
    collet_error error{};
    if (c.plugin().table().open(options.get(), &opened, &info, &error) != COLLET_OK) return c.skip("open failed");
    if (opened) c.plugin().table().close(opened);
  }
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (uint32_t d = 0; d < instance->devices().size(); ++d) {
    const Device& device = instance->device(d);
    for (const collet_memory_space& space : device.spaces) {
      c.check(strnlen(space.kind, sizeof space.kind) < sizeof space.kind, Promise::DEVICE_IMMUTABLE,
              "the kind of a memory space of device {} has no end", d);
      c.check(space.kind[0] != '\0', Promise::SPACE_KIND, "a memory space of device {} has no kind", d);
    }
    for (const uint32_t peer : device.peers)
      c.check(peer < instance->devices().size(), Promise::DEVICE_NUMBER,
              "device {} has the peer {}, which is not there", d, peer);
    collet_device_info info;
    if (ask(c, *instance, d, info) == COLLET_OK) check_peaks(c, info, d);
  }
}

void opens_twice(Contract& c) {
  auto first = Instance::open(c);
  auto second = Instance::open(c);
  if (!first || !second) return;
  c.check(first->handle() != nullptr && second->handle() != nullptr, Promise::OPEN, "the second open gave nothing");
  const Bytes data = pattern(1000, 1), other = pattern(1000, 2);
  Buffer a = first->alloc(1000), b = second->alloc(1000);
  if (!a || !b || !first->write(a, data) || !second->write(b, other)) return;
  c.check(first->read(a) == data, Promise::OPEN, "data of one instance changed with data of the other");
  a.reset();
  first.reset();
  c.check(second->read(b) == other, Promise::OPEN, "closing one instance changed data of the other");
  Buffer again = second->alloc(5000);
  if (!again) return;
  const Bytes more = pattern(5000, 3);
  second->write(again, more);
  c.check(second->read(again) == more, Promise::OPEN, "after one instance was closed the other holds no data");
  auto third = Instance::open(c);
  if (!third) return;
  c.check(third->devices().size() == second->devices().size(), Promise::OPEN, "a later open found other devices");
}

void closes_in_any_order(Contract& c) {
  std::vector<std::unique_ptr<Instance>> open;
  for (int i = 0; i < 4; ++i) {
    open.push_back(Instance::open(c));
    if (!open.back()) return;
  }
  for (const size_t close : {2u, 0u, 3u, 1u}) open[close].reset();
  auto again = Instance::open(c);
  if (!again) return;
  const Bytes data = pattern(100, 1);
  Buffer buffer = again->alloc(100);
  if (buffer && again->write(buffer, data))
    c.check(again->read(buffer) == data, Promise::OPEN, "an instance opened after others were closed holds no data");
}

collet_status open_with(Contract& c, collet_open_options* options, collet_backend_instance** out,
                        std::string* message) {
  collet_instance_info info{};
  info.struct_size = sizeof info;
  return checked_call(
      c, "open", [&](collet_error* error) { return c.plugin().table().open(options, out, &info, error); }, message);
}

void refuses_unknown_options(Contract& c) {
  for (const char* key : {"no_such_option_of_any_backend", "", "COLLET"}) {
    OpenOptions options(c.plugin());
    options.add(key, "1");
    collet_backend_instance* instance = nullptr;
    std::string message;
    const collet_status status = open_with(c, options.get(), &instance, &message);
    if (!c.check(status != COLLET_OK, Promise::OPTIONS_REFUSED, "open took the option '{}'", key)) {
      if (instance) c.plugin().table().close(instance);
      continue;
    }
    c.check(instance == nullptr, c.out_arguments(), "open failed and gave an instance");
  }
}

void refuses_unknown_targets(Contract& c) {
  OpenOptions options(c.plugin());
  options.get()->target = "no_such_target_of_any_backend";
  collet_backend_instance* instance = nullptr;
  const collet_status status = open_with(c, options.get(), &instance, nullptr);
  c.check(status == COLLET_NOT_FOUND, Promise::TARGET_REFUSED, "open with a target that is not there gave status {}",
          status);
  if (status == COLLET_OK && instance) c.plugin().table().close(instance);
}

void copies_options(Contract& c) {
  collet_backend_instance* instance = nullptr;
  {
    auto options = std::make_unique<OpenOptions>(c.plugin());
    auto bytes = std::make_unique<collet_open_options>(*options->get());
    collet_instance_info info{};
    info.struct_size = sizeof info;
    const collet_status status = checked_call(
        c, "open", [&](collet_error* error) { return c.plugin().table().open(bytes.get(), &instance, &info, error); });
    if (!c.check(status == COLLET_OK && instance, Promise::OPEN, "open gave status {}", status)) return;
    std::memset(bytes.get(), 0xee, sizeof *bytes);
  }
  collet_device_info info{};
  info.struct_size = sizeof info;
  const collet_status status = checked_call(
      c, "device_info", [&](collet_error* error) { return c.plugin().table().device_info(instance, 0, &info, error); });
  c.check(status == COLLET_OK, Promise::OWNERSHIP, "device_info gave status {} after the options had gone", status);
  c.plugin().table().close(instance);
}

void sizes_of_open(Contract& c) {
  for (const bool grown : {false, true}) {
    if (grown && c.is_newer()) continue;
    OpenOptions plain(c.plugin());
    Sized<collet_open_options> options(sizeof(collet_open_options), grown, 0xff);
    const uint32_t size = options.get()->struct_size;
    *options.get() = *plain.get();
    options.get()->struct_size = size;
    Sized<collet_instance_info> info(kFirstInstanceInfo, grown, 0);
    collet_backend_instance* instance = nullptr;
    const collet_status status = checked_call(c, "open", [&](collet_error* error) {
      return c.plugin().table().open(options.get(), &instance, info.get(), error);
    });
    if (!c.check(status == COLLET_OK && instance, Promise::GROWING, "open with {} structs gave status {}",
                 grown ? "a newer SDK's" : "an older SDK's", status))
      continue;
    c.check(info.guards_stand(), Promise::GROWING, "open wrote beyond the struct_size of its info");
    c.check(info.size_stands(), Promise::SIZED, "open changed the struct_size of its info");
    c.check(info.get()->reserved == 0, Promise::RESERVED, "open wrote to a reserved field");
    c.plugin().table().close(instance);
  }
}

void sizes_of_device_info(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (const bool grown : {false, true}) {
    Sized<collet_device_info> info(kFirstDeviceInfo, grown, 0);
    const collet_status status = checked_call(c, "device_info", [&](collet_error* error) {
      return instance->table().device_info(instance->handle(), 0, info.get(), error);
    });
    if (!c.check(status == COLLET_OK, Promise::GROWING, "device_info with {} struct gave status {}",
                 grown ? "a newer SDK's" : "an older SDK's", status))
      continue;
    c.check(info.guards_stand(), Promise::GROWING, "device_info wrote beyond struct_size");
    c.check(info.size_stands(), Promise::SIZED, "device_info changed struct_size");
    c.check(info.get()->reserved == 0, Promise::RESERVED, "device_info wrote to a reserved field");
  }
}

bool same_bytes(const collet_memory_space& a, const collet_memory_space& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool same_device(const Device& a, const Device& b) {
  return a.traits == b.traits && a.kind == b.kind && a.fingerprint == b.fingerprint && a.peers == b.peers &&
         std::equal(a.spaces.begin(), a.spaces.end(), b.spaces.begin(), b.spaces.end(), same_bytes) &&
         std::equal(a.types.begin(), a.types.end(), b.types.begin(), b.types.end(),
                    [](const auto& x, const auto& y) { return x.type == y.type && x.flags == y.flags; });
}

// The contents of the arrays of a device's description, which the backend may keep in memory that it changes.
std::vector<double> lists_of(const collet_device_info& info) {
  std::vector<double> out;
  for (uint32_t i = 0; info.peaks && i < info.peak_count; ++i)
    out.insert(out.end(), {static_cast<double>(info.peaks[i].work), static_cast<double>(info.peaks[i].type),
                           info.peaks[i].per_ns});
  for (uint32_t i = 0; i < info.type_count; ++i)
    out.insert(out.end(), {static_cast<double>(info.types[i].type), static_cast<double>(info.types[i].flags)});
  for (uint32_t i = 0; i < info.peer_count; ++i) out.push_back(info.peers[i]);
  return out;
}

void device_answers(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (uint32_t d = 0; d < instance->devices().size(); ++d) {
    collet_device_info first, later;
    if (ask(c, *instance, d, first) != COLLET_OK) return;
    const std::vector<double> lists = lists_of(first);
    Buffer buffer = instance->alloc(4096, d);
    for (int i = 0; i < 5; ++i) {
      if (ask(c, *instance, d, later) != COLLET_OK) return;
      c.check(first.traits == later.traits && first.space_count == later.space_count &&
                  first.type_count == later.type_count && first.peer_count == later.peer_count &&
                  first.compute_units == later.compute_units && first.smallest_cluster == later.smallest_cluster &&
                  std::memcmp(first.uuid, later.uuid, sizeof first.uuid) == 0 &&
                  std::memcmp(first.coordinates, later.coordinates, sizeof first.coordinates) == 0 &&
                  std::strcmp(first.kind, later.kind) == 0 && std::strcmp(first.fingerprint, later.fingerprint) == 0,
              Promise::DEVICE_SAME, "device_info of device {} gave another answer the second time", d);
      c.check(first.link_latency_ns == later.link_latency_ns && first.link_bytes_per_ns == later.link_bytes_per_ns &&
                  first.launch_ns == later.launch_ns && first.memory_bytes_per_ns == later.memory_bytes_per_ns &&
                  first.flops_per_ns == later.flops_per_ns && first.peak_count == later.peak_count,
              Promise::DEVICE_SAME, "device_info of device {} gave other speeds the second time", d);
      c.check(lists_of(later) == lists, Promise::DEVICE_SAME,
              "device_info of device {} gave other peaks, types or peers the second time", d);
      for (uint32_t s = 0; s < std::min(first.space_count, later.space_count); ++s)
        c.check(same_bytes(first.spaces[s], later.spaces[s]), Promise::DEVICE_SAME,
                "memory space {} of device {} changed", s, d);
    }
    const Device& noted = instance->device(d);
    c.check(noted.kind == first.kind && noted.fingerprint == first.fingerprint, Promise::DEVICE_IMMUTABLE,
            "the strings of device {} did not stay as they were", d);
    for (const collet_memory_space& space : noted.spaces) {
      c.check(space.reserved[0] == 0 && space.reserved[1] == 0, Promise::SPACE_RESERVED,
              "a reserved field of a memory space of device {} is not zero", d);
    }
  }
  const auto again = Instance::open(c);
  if (!again || !c.check(again->devices().size() == instance->devices().size(), Promise::DEVICE_SAME,
                         "a second instance has another number of devices"))
    return;
  for (uint32_t d = 0; d < again->devices().size(); ++d)
    c.check(same_device(instance->device(d), again->device(d)), Promise::DEVICE_SAME,
            "device {} is another one in a second instance", d);
}

void device_out_of_range(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto count = static_cast<uint32_t>(instance->devices().size());
  for (const uint32_t device : {count, count + 1, UINT32_MAX}) {
    collet_device_info info;
    const collet_status status = ask(c, *instance, device, info);
    c.check(status == COLLET_NOT_FOUND || status == COLLET_OUT_OF_RANGE || status == COLLET_INVALID_ARGUMENT,
            Promise::DEVICE_NUMBER, "device_info of device {} of {} gave status {}", device, count, status);
  }
}

void strings_live(Contract& c) {
  OpenOptions options(c.plugin());
  collet_instance_info info{};
  info.struct_size = sizeof info;
  collet_backend_instance* instance = nullptr;
  const collet_status status = checked_call(
      c, "open", [&](collet_error* error) { return c.plugin().table().open(options.get(), &instance, &info, error); });
  if (!c.check(status == COLLET_OK && instance, Promise::OPEN, "open gave status {}", status)) return;
  if (c.check(info.name != nullptr && info.version != nullptr, Promise::INSTANCE_STRINGS,
              "open gave no name or version")) {
    const std::string name = info.name, version = info.version;
    collet_instance_info other_info{};
    other_info.struct_size = sizeof other_info;
    collet_backend_instance* other = nullptr;
    const collet_status opened = checked_call(c, "open", [&](collet_error* error) {
      return c.plugin().table().open(options.get(), &other, &other_info, error);
    });
    if (c.check(opened == COLLET_OK && other, Promise::OPEN, "a second open gave status {}", opened))
      c.plugin().table().close(other);
    std::vector<std::unique_ptr<char[]>> churn;  // overwrites memory that the backend may have freed wrongly
    for (int i = 0; i < 64; ++i) {
      churn.push_back(std::make_unique<char[]>(16 + 8 * static_cast<size_t>(i % 8)));
      std::memset(churn.back().get(), 'x', 16);
    }
    c.check(info.name == name && info.version == version, Promise::INSTANCE_STRINGS,
            "the name or version of the instance changed from {} {} to {} {}", name, version, info.name, info.version);
    c.check(!name.empty(), Promise::INSTANCE_STRINGS, "the name is empty");
  }
  c.plugin().table().close(instance);
}

void table_is_sane(Contract& c) {
  const collet_backend& table = *c.plugin().original();
  c.check(table.reserved == 0, Promise::RESERVED, "the table's reserved field is {}", table.reserved);
  c.check(table.abi_major == COLLET_ABI_MAJOR, Promise::TABLE, "the table says ABI {}", table.abi_major);
  const Bytes before(reinterpret_cast<const uint8_t*>(&table),
                     reinterpret_cast<const uint8_t*>(&table) + std::min<size_t>(table.struct_size, sizeof table));
  {
    const auto instance = Instance::open(c);
    if (!instance) return;
    Buffer buffer = instance->alloc(100);
  }
  c.check(std::memcmp(before.data(), &table, before.size()) == 0, Promise::TABLE, "the table changed with use");
}

void unknown_tables(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (!instance->table().query) return c.skip("the backend has no query");
  for (const char* name : {"no_such_table", "", "AOT", "queue "})
    c.check(instance->table().query(instance->handle(), name, 1) == nullptr, Promise::QUERY,
            "query gave a table named '{}'", name);
  for (const char* name : {"aot", "queue", "memory_stats", "artifacts", "layout", "residency", "patterns", "profile",
                           "host_memory", "host_buffers", "links", "exchange"}) {
    c.check(instance->table().query(instance->handle(), name, 0x7fffffff) == nullptr, Promise::QUERY,
            "query gave version {} of the table {}", 0x7fffffff, name);
    const void* table = instance->table().query(instance->handle(), name, 1);
    for (int i = 0; i < 4; ++i)
      c.check(table == instance->table().query(instance->handle(), name, 1), Promise::QUERY,
              "query gave the table {} at another place later", name);
  }
}

// In bytes per cycle; every heap allocation takes at least that many, so smaller growth is noise.
constexpr double kSmallest = 8;

// A process may end without closing its instance. The runner runs this case in a process of its own and checks that it ends
// normally.
void left_open(Contract& c) {
  OpenOptions options(c.plugin());
  collet_instance_info info{};
  info.struct_size = sizeof info;
  collet_backend_instance* instance = nullptr;
  const collet_status status = checked_call(
      c, "open", [&](collet_error* error) { return c.plugin().table().open(options.get(), &instance, &info, error); });
  c.check(status == COLLET_OK && instance, Promise::OPEN, "open gave status {}", status);
}

size_t entries_of(const char* folder) {
  std::error_code error;
  size_t count = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) ++count;
  return count;
}

void close_leaves_nothing(Contract& c) {
  const auto cycle = [&] {
    const auto instance = Instance::open(c);
    if (!instance) return false;
    Buffer buffer = instance->alloc(1000);
    return static_cast<bool>(buffer);
  };
  if (!cycle() || !cycle()) return;
  const size_t files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  const Growth growth = measure_growth(12, cycle);
  const size_t files_left = entries_of("/proc/self/fd"), threads_left = entries_of("/proc/self/task");
  c.check(files_left < files + 12, Promise::CLOSE, "opening and closing 36 times left {} files open",
          files_left - files);
  c.check(threads_left < threads + 12, Promise::CLOSE, "opening and closing 36 times left {} threads",
          threads_left - threads);
  constexpr double kTolerated = 4096;  // bytes per cycle; libraries may allocate once for the process
  c.check(growth.heap <= kTolerated, Promise::CLOSE, "each open and close leaves {:.0f} bytes of the heap behind",
          growth.heap);
  c.check(growth.always < kSmallest, Promise::CLOSE, "each open and close leaves {:.0f} bytes of the heap behind",
          growth.always);
}

void buffers_leave_nothing(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Bytes data = pattern(4096, 5);
  const auto cycle = [&] {
    Buffer buffer = instance->alloc(4096);
    return buffer && instance->write(buffer, data);
  };
  const Growth growth = measure_growth(3500, cycle);
  c.check(growth.heap < kSmallest, Promise::FREE, "each alloc and free leaves {:.1f} bytes of the heap behind",
          growth.heap);
  c.check(growth.resident < 2048, Promise::FREE, "each alloc and free of 4 KiB leaves {:.0f} resident bytes behind",
          growth.resident);
}

}  // namespace

void add_lifecycle_contracts(std::vector<ContractCase>& list) {
  list.push_back({"lifecycle/table", table_is_sane});
  list.push_back({"lifecycle/describes_itself", describes_itself});
  list.push_back({"lifecycle/open_twice", opens_twice});
  list.push_back({"lifecycle/close_in_any_order", closes_in_any_order});
  list.push_back({"lifecycle/unknown_option", refuses_unknown_options});
  list.push_back({"lifecycle/unknown_target", refuses_unknown_targets});
  list.push_back({"lifecycle/options_are_copied", copies_options});
  list.push_back({"lifecycle/sizes_of_open", sizes_of_open});
  list.push_back({"lifecycle/sizes_of_device_info", sizes_of_device_info});
  list.push_back({"lifecycle/device_answers", device_answers});
  list.push_back({"lifecycle/device_out_of_range", device_out_of_range});
  list.push_back({"lifecycle/strings_live", strings_live});
  list.push_back({"lifecycle/unknown_tables", unknown_tables});
  list.push_back({std::string(kLeftOpen.substr(kLeftOpen.find('/') + 1)), left_open});
  list.push_back({"lifecycle/close_leaves_nothing", close_leaves_nothing});
  list.push_back({"lifecycle/buffers_leave_nothing", buffers_leave_nothing});
}

}  // namespace collet::conformance
