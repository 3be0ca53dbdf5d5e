// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "conformance/contract/program.h"
#include "hlo/patterns/declared_pattern.h"

namespace collet::conformance {
namespace {

template <typename Table>
const Table* table_of(Contract& c, const Instance& instance, const char* name, uint32_t bytes = sizeof(Table)) {
  const auto* table = instance.query<Table>(name, bytes);
  if (!table) c.skip(fmt::format("the backend has no table \"{}\"", name));
  return table;
}

// The text that defines a pattern of the backend's own can be read, is that of the pattern, and stays.
void check_text(Contract& c, const collet_patterns_table& table, collet_backend_instance* handle, uint32_t device,
                uint32_t index, const std::string& name) {
  const char* text = table.text(handle, device, index);
  if (!text) return;
  const std::string before = text;
  const auto read = hlo::patterns::DeclaredPattern::read(before);
  c.check(read.ok(), Promise::PATTERNS_TEXT, "the text of pattern '{}': {}", name, read.status().message());
  c.check(!read.ok() || (*read)->name() == name, Promise::PATTERNS_TEXT, "the text of pattern '{}' has another name",
          name);
  const char* again = table.text(handle, device, index);
  c.check(again && again == before, Promise::PATTERNS_TEXT, "the text of pattern '{}' did not stay the same", name);
}

void patterns(Contract& c) {
  constexpr uint32_t kMost = 1000;
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto* table = table_of<collet_patterns_table>(c, *instance, "patterns", offsetof(collet_patterns_table, text));
  if (!table) return;
  const bool has_texts = table->struct_size >= offsetof(collet_patterns_table, features) && table->text;
  const bool has_features = table->struct_size >= sizeof(collet_patterns_table) && table->features;
  for (uint32_t d = 0; d < instance->devices().size(); ++d) {
    std::vector<const char*> names;
    std::vector<std::string> texts;
    while (names.size() < kMost) {
      const char* name = table->name(instance->handle(), d, static_cast<uint32_t>(names.size()));
      if (!name) break;
      names.push_back(name);
      texts.emplace_back(name);
      c.check(!texts.back().empty(), Promise::PATTERNS_NAME, "pattern {} of device {} has no name", names.size() - 1,
              d);
    }
    if (!c.check(names.size() < kMost, Promise::PATTERNS_NAME, "the patterns of device {} have no end", d)) return;
    for (const uint32_t beyond : {static_cast<uint32_t>(names.size()) + 1, UINT32_MAX})
      c.check(table->name(instance->handle(), d, beyond) == nullptr, Promise::PATTERNS_NAME,
              "pattern {} of {} has a name", beyond, names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const char* again = table->name(instance->handle(), d, static_cast<uint32_t>(i));
      c.check(again && again == texts[i] && names[i] == texts[i], Promise::PATTERNS_NAME,
              "the name of pattern {} of device {} did not stay '{}'", i, d, texts[i]);
    }
    for (uint32_t i = 0; has_texts && i < names.size(); ++i) check_text(c, *table, instance->handle(), d, i, texts[i]);
    for (uint32_t i = 0; has_features && i < names.size(); ++i) {
      const uint32_t features = table->features(instance->handle(), d, i);
      c.check(table->features(instance->handle(), d, i) == features, Promise::PATTERNS_FEATURES,
              "the features of pattern '{}' did not stay {}", texts[i], features);
    }
  }
}

void host_memory(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto* table = table_of<collet_host_memory_table>(c, *instance, "host_memory");
  if (!table) return;
  constexpr size_t kBytes = 4 * 4096;
  std::vector<uint8_t> storage(kBytes + 4096);
  uint8_t* host = storage.data() + (4096 - reinterpret_cast<uintptr_t>(storage.data()) % 4096) % 4096;
  const auto add = [&](void* at, uint64_t bytes) {
    return checked_call(c, "add of host memory",
                        [&](collet_error* error) { return table->add(instance->handle(), at, bytes, error); });
  };
  const auto remove = [&](void* at) {
    return checked_call(c, "remove of host memory",
                        [&](collet_error* error) { return table->remove(instance->handle(), at, error); });
  };
  c.check(remove(host) == COLLET_NOT_FOUND, Promise::HOST_MEMORY_NOT_THERE,
          "remove of memory that nobody added did not fail");
  collet_status status = add(host, kBytes);
  if (status == COLLET_RESOURCE_EXHAUSTED || status == COLLET_PERMISSION_DENIED)
    return c.skip("the system lets no host memory be prepared");
  if (!c.check(status == COLLET_OK, Promise::HOST_MEMORY_ADD, "add gave status {}", status)) return;
  status = add(host + 4096, 4096);
  c.check(status == COLLET_ALREADY_EXISTS, Promise::HOST_MEMORY_TWICE,
          "add of a part that is registered gave status {}", status);
  c.check(remove(host + 4096) == COLLET_NOT_FOUND, Promise::HOST_MEMORY_NOT_THERE,
          "remove by an address within registered memory did not fail");
  Buffer buffer = instance->alloc(kBytes);
  const Bytes data = pattern(kBytes, 1);
  std::copy(data.begin(), data.end(), host);
  if (buffer && instance->write(buffer, 5, host + 5, kBytes - 9)) {
    std::fill_n(host, kBytes, uint8_t{0});
    if (instance->read(buffer, 5, host + 5, kBytes - 9))
      c.check(std::equal(host + 5, host + kBytes - 4, data.begin() + 5) && host[4] == 0 && host[kBytes - 4] == 0,
              Promise::HOST_MEMORY_ADD, "copies of registered memory went wrong");
  }
  status = remove(host);
  c.check(status == COLLET_OK, Promise::HOST_MEMORY_REMOVE, "remove gave status {}", status);
  c.check(remove(host) == COLLET_NOT_FOUND, Promise::HOST_MEMORY_NOT_THERE, "a second remove did not fail");
  // Now the registered part lies within what is added.
  if (!c.check(add(host + 4096, 4096) == COLLET_OK, Promise::HOST_MEMORY_REMOVE,
               "after remove the memory cannot be added"))
    return;
  status = add(host, kBytes);
  c.check(status == COLLET_ALREADY_EXISTS, Promise::HOST_MEMORY_TWICE,
          "add of memory of which a part is registered gave status {}", status);
  remove(host + 4096);
}

void host_buffers(Contract& c) {
  const auto instance = Instance::open(c, 2, true);
  if (!instance) return;
  const auto* table = table_of<collet_host_buffers_table>(c, *instance, "host_buffers");
  if (!table) return;
  constexpr uint64_t kBytes = 65536 + 3;
  const auto wrap = [&](uint32_t device, uint32_t space, const uint8_t* host, collet_backend_buffer** out) {
    return checked_call(c, "wrap", [&](collet_error* error) {
      return table->wrap(instance->handle(), device, space, host, kBytes, out, error);
    });
  };
  bool any = false;
  for (uint32_t d = 0; d < instance->devices().size(); ++d) {
    const Device& device = instance->devices()[d];
    if ((device.spaces[device.default_space].flags & COLLET_SPACE_HOST_VISIBLE) == 0) continue;
    const uint64_t alignment = std::max<uint64_t>(device.alignment(), 1);
    std::vector<uint8_t> storage(kBytes + 2 * alignment);
    // The address has the alignment that is asked for, and no other.
    const auto over = (reinterpret_cast<uintptr_t>(storage.data()) + alignment - 1) / alignment;
    auto* const host = reinterpret_cast<uint8_t*>((over + (over % 2 == 0 ? 1 : 0)) * alignment);
    for (uint32_t turn = 1; turn <= 2; ++turn) {
      const Bytes data = pattern(kBytes, turn);
      std::copy(data.begin(), data.end(), host);
      collet_backend_buffer* handle = nullptr;
      const collet_status status = wrap(d, device.default_space, host, &handle);
      if (status == COLLET_UNIMPLEMENTED) break;
      if (!c.check(status == COLLET_OK && handle, Promise::HOST_BUFFERS_WRAP, "wrap gave status {}", status)) return;
      any = true;
      {
        const Buffer buffer(instance.get(), handle, host, kBytes, d);
        Bytes back(kBytes - 8);
        if (instance->read(buffer, 5, back.data(), back.size()))
          c.check(std::equal(back.begin(), back.end(), data.begin() + 5), Promise::HOST_BUFFERS_WRAP,
                  "the buffer has other bytes than the host memory");
      }
      c.check(std::equal(data.begin(), data.end(), host), Promise::HOST_BUFFERS_FREE, "the host memory has changed");
    }
  }
  if (!any) return c.skip("the devices do not reach the host memory");
  collet_backend_buffer* handle = nullptr;
  const std::vector<uint8_t> some(kBytes + 4096);
  const auto* const host = some.data() + (4096 - reinterpret_cast<uintptr_t>(some.data()) % 4096) % 4096;
  c.check(wrap(static_cast<uint32_t>(instance->devices().size()), 0, host, &handle) != COLLET_OK,
          Promise::HOST_BUFFERS_WRAP, "a device that is not there made a buffer");
}

void links(Contract& c) {
  const auto instance = Instance::open(c, 2);
  if (!instance) return;
  const auto* table = table_of<collet_links_table>(c, *instance, "links");
  if (!table) return;
  const auto count = static_cast<uint32_t>(instance->devices().size());
  if (count < 2) return c.skip("there is one device");
  const auto ask = [&](uint32_t from, uint32_t to, collet_link& link) {
    alignas(8) uint8_t bytes[sizeof(collet_link) + 32];
    std::memset(bytes, 0xa5, sizeof bytes);
    std::memset(bytes, 0, sizeof(collet_link));
    auto* asked = reinterpret_cast<collet_link*>(bytes);
    asked->struct_size = sizeof *asked;
    const collet_status status = checked_call(
        c, "between", [&](collet_error* error) { return table->between(instance->handle(), from, to, asked, error); });
    link = *asked;
    return c.check(status == COLLET_OK, Promise::LINKS_BETWEEN, "between {} and {} gave status {}", from, to, status) &&
           c.check(std::all_of(bytes + sizeof link, std::end(bytes), [](uint8_t b) { return b == 0xa5; }),
                   Promise::GROWING, "between wrote beyond struct_size");
  };
  for (uint32_t from = 0; from < std::min(count, 4u); ++from) {
    for (uint32_t to = 0; to < std::min(count, 4u); ++to) {
      collet_link link, again;
      if (from == to) continue;
      if (!ask(from, to, link) || !ask(from, to, again)) return;
      c.check(std::memcmp(&link, &again, sizeof link) == 0, Promise::LINKS_BETWEEN,
              "the link from {} to {} is another one the second time", from, to);
      c.check(std::isfinite(link.latency_ns) && link.latency_ns >= 0 && std::isfinite(link.bytes_per_ns) &&
                  link.bytes_per_ns >= 0,
              Promise::LINKS_BETWEEN, "the link from {} to {} has a latency of {} and a bandwidth of {}", from, to,
              link.latency_ns, link.bytes_per_ns);
    }
  }
}

void profile(Contract& c) {
  constexpr uint32_t kRoom = 3;
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto* table = table_of<collet_profile_table>(c, *instance, "profile");
  if (!table) return;
  const auto enable = [&](uint32_t on) {
    const collet_status status = checked_call(
        c, "enable of profiling", [&](collet_error* error) { return table->enable(instance->handle(), 0, on, error); });
    return c.check(status == COLLET_OK, Promise::PROFILE_ENABLE, "enable {} gave status {}", on, status);
  };
  // Reads all records, a few at a time.
  const auto read = [&](std::vector<collet_profile_record>& all) {
    for (uint32_t got = 1; got > 0 && all.size() < 10000;) {
      std::vector<collet_profile_record> records(kRoom + 1);
      std::memset(static_cast<void*>(&records[kRoom]), 0x3c, sizeof records[0]);
      const collet_profile_record guard = records[kRoom];
      got = 77;
      const collet_status status = checked_call(c, "read of a profile", [&](collet_error* error) {
        return table->read(instance->handle(), 0, records.data(), kRoom, &got, error);
      });
      if (!c.check(status == COLLET_OK, Promise::PROFILE_READ, "read gave status {}", status) ||
          !c.check(got <= kRoom, Promise::PROFILE_READ, "read handed out {} records where there was room for {}", got,
                   kRoom) ||
          !c.check(std::memcmp(&records[kRoom], &guard, sizeof guard) == 0, Promise::PROFILE_READ,
                   "read wrote beyond its capacity"))
        return false;
      all.insert(all.end(), records.begin(), records.begin() + got);
    }
    return c.check(all.size() < 10000, Promise::PROFILE_COUNT, "the records have no end");
  };
  constexpr uint64_t kCopies = 20, kBytes = 4096;
  Buffer a = instance->alloc(kBytes), b = instance->alloc(kBytes);
  const auto copies = [&] {
    for (uint64_t i = 0; i < kCopies / 2; ++i) {
      const collet_copy_region one = region(at(a), at(b), kBytes);
      if (!instance->write(a, pattern(kBytes, i)) || !instance->copy({&one, 1})) return false;
    }
    return true;
  };
  const auto now = [] { return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); };
  std::vector<collet_profile_record> recorded, after;
  const auto begin = now();
  if (!a || !b || !enable(1) || !copies() || !enable(0) || !read(recorded) || !read(after)) return;
  const auto end = now();
  c.check(after.empty(), Promise::PROFILE_READ, "{} records were handed out twice", after.size());
  if (!copies() || !read(after)) return;
  c.check(after.empty(), Promise::PROFILE_ENABLE, "{} records are of work after recording had ended", after.size());
  // The clocks of host and device may differ a little.
  constexpr int64_t kTolerated = 1'000'000'000;
  uint64_t moved = 0;
  bool states_bytes = recorded.size() >= kCopies;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const auto start = static_cast<int64_t>(recorded[i].start_ns);
    c.check(start > begin - kTolerated && start < end + kTolerated, Promise::PROFILE_START,
            "record {} begins {} ns after recording began, which took {}", i, start - begin, end - begin);
    if (i > 0)
      c.check(recorded[i].start_ns + recorded[i].duration_ns >= recorded[i - 1].start_ns, Promise::PROFILE_READ,
              "record {} had ended before record {} began", i, i - 1);
    c.check(recorded[i].name[0] != '\0', Promise::PROFILE_TEXT, "record {} does not say what ran", i);
    moved += recorded[i].bytes;
    states_bytes &= recorded[i].bytes > 0;
  }
  c.check(!states_bytes || moved >= kCopies * kBytes, Promise::PROFILE_BYTES,
          "{} bytes were copied, and the records have {}", kCopies * kBytes, moved);
  for (size_t i = 0; i < recorded.size(); ++i) {
    const collet_profile_record& one = recorded[i];
    c.check(strnlen(one.name, sizeof one.name) < sizeof one.name &&
                strnlen(one.engine, sizeof one.engine) < sizeof one.engine,
            Promise::PROFILE_TEXT, "the name or engine of a record has no end");
    c.check(one.reserved[0] == 0 && one.reserved[1] == 0, Promise::SPACE_RESERVED,
            "a reserved field of a record is not zero");
  }
}

void residency(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto* table = table_of<collet_residency_table>(c, *instance, "residency");
  if (!table || !instance->executes()) return;
  bool any = false;
  const std::string sum = accepted_sum(*instance);
  const std::string product =
      "ENTRY main {\n  x = f32[24,24] parameter(0)\n  w = f32[24,24] parameter(1)\n  ROOT r = f32[24,24] dot(x, w), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";
  for (const std::string& body : {sum, product}) {
    if (body.empty()) continue;
    const PreparedProgram ready = prepare(*instance, body, {}, {}, false);
    if (!ready) continue;
    for (uint32_t i = 0; i < ready.program->inputs().size(); ++i) {
      const uint32_t wants = table->wants(ready.executable.handle(), i);
      c.check(wants <= 1 && wants == table->wants(ready.executable.handle(), i), Promise::RESIDENCY_WANTS,
              "wants of argument {} answered {}, then something else", i, wants);
      if (!wants) continue;
      // Two values of the argument are prepared one after the other.
      for (const uint64_t seed : {i + 1, i + 11}) {
        GuardedLaunch guarded(*instance, *ready.program, ready.executable, {});
        const std::vector<hlo::Literal> inputs = ready.program->draw(seed);
        if (!guarded.fill(inputs, 1)) return;
        collet_backend_buffer* handle = nullptr;
        const collet_status status = checked_call(c, "prepare", [&](collet_error* error) {
          return table->prepare(ready.executable.handle(), 0, i, &guarded.arguments()[i], &handle, error);
        });
        if (status == COLLET_RESOURCE_EXHAUSTED) continue;
        if (!c.check(status == COLLET_OK && handle, Promise::RESIDENCY_PREPARED, "prepare gave status {}", status))
          return;
        any = true;
        const Buffer owner(instance.get(), handle, nullptr, 0, 0);
        guarded.arguments()[i].buffer = handle;
        guarded.arguments()[i].offset = 0;
        guarded.arguments()[i].flags |= COLLET_ARG_PREPARED;
        for (int run = 0; run < 2; ++run) {
          const collet_status ran = guarded.execute();
          if (!c.check(ran == COLLET_OK, Promise::RESIDENCY_PREPARED, "execute with a prepared argument gave status {}",
                       ran) ||
              !guarded.judge(inputs, "with a prepared argument"))
            return;
        }
      }
    }
  }
  if (!any) c.skip("no executable wants an argument prepared");
}

// An executable with its arguments, one of which is prepared.
struct Resident {
  std::string name;
  std::unique_ptr<TestProgram> program;
  Executable executable;
  std::unique_ptr<GuardedLaunch> launch;
  std::vector<hlo::Literal> inputs;
  Buffer prepared;

  bool run(Contract& c, const std::string& what) {
    const collet_status status = launch->execute();
    return c.check(status == COLLET_OK, Promise::RESIDENCY_PREPARED,
                   "{}, {}: execute with a prepared argument gave status {}", name, what, status) &&
           launch->judge_results(inputs, name + ", " + what);
  }
};

// Compiles a program and prepares its argument number `argument`. Null if the backend does not take the program, does not want the
// argument prepared, or cannot do it now.
std::unique_ptr<Resident> make_resident(Instance& instance, const collet_residency_table& table,
                                        const std::string& body, uint32_t argument, uint64_t seed) {
  Contract& c = instance.contract();
  auto program = TestProgram::make(body);
  if (!program.ok()) return c.fault(program.status()), nullptr;
  if (!accepts(instance, (*program)->get())) return nullptr;
  CompileResult compiled = compile(instance, (*program)->get());
  if (compiled.status != COLLET_OK || table.wants(compiled.executable.handle(), argument) == 0) return nullptr;
  auto out = std::make_unique<Resident>();
  out->name = fmt::format("executable {}, whose argument {} is prepared", seed, argument);
  out->program = *std::move(program);
  out->executable = std::move(compiled.executable);
  out->launch = std::make_unique<GuardedLaunch>(instance, *out->program, out->executable, Placement{});
  out->inputs = out->program->draw(seed);
  if (!out->launch->fill(out->inputs, seed)) return nullptr;
  collet_argument& value = out->launch->arguments()[argument];
  collet_backend_buffer* handle = nullptr;
  const collet_status status = checked_call(c, "prepare", [&](collet_error* error) {
    return table.prepare(out->executable.handle(), 0, argument, &value, &handle, error);
  });
  if (status == COLLET_RESOURCE_EXHAUSTED) return nullptr;
  if (!c.check(status == COLLET_OK && handle, Promise::RESIDENCY_PREPARED, "prepare gave status {}", status))
    return nullptr;
  out->prepared = Buffer(&instance, handle, nullptr, 0, 0);
  value.buffer = handle;
  value.offset = 0;
  value.flags |= COLLET_ARG_PREPARED;
  return out;
}

// The prepared forms of several executables, two of each program among them, are there at the same time.
void residency_of_several(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto* table = table_of<collet_residency_table>(c, *instance, "residency");
  if (!table || !instance->executes()) return;
  std::vector<std::unique_ptr<Resident>> all;
  for (const int size : {24, 70}) {
    const std::string array = fmt::format("f32[{0},{0}]", size);
    const std::string product = array + " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for (const std::string& root :
         {"ROOT r = " + array + " add(x, w)", "ROOT r = " + product,
          "d = " + product + fmt::format("\n  s = {0} add(x, w)\n  ROOT r = {0} subtract(d, s)", array)}) {
      const std::string body =
          fmt::format("ENTRY main {{\n  x = {0} parameter(0)\n  w = {0} parameter(1)\n  {1}\n}}\n", array, root);
      for (const uint32_t argument : {0u, 1u, 1u}) {
        auto made = make_resident(*instance, *table, body, argument, all.size() + 1);
        if (c.broken()) return;
        if (made) all.push_back(std::move(made));
      }
    }
  }
  if (all.size() < 2) return c.skip("fewer than two executables want an argument prepared");
  for (int round = 0; round < 2; ++round)
    for (size_t i = all.size(); i-- > 0;)
      if (!all[i]->run(c, "beside others")) return;
  for (size_t i = 0; i < all.size(); i += 2) all[i].reset();
  for (size_t i = 1; i < all.size(); i += 2)
    if (!all[i]->run(c, "after others were released")) return;
}

void immediates(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance || !instance->executes()) return;
  if (!instance->device().has(COLLET_TRAIT_SCALARS)) return c.skip("the device does not have COLLET_TRAIT_SCALARS");
  bool any = false;
  for (const char* type : {"f32", "s32", "bf16", "f64", "pred", "s8", "c64", "u16"}) {
    const auto program = TestProgram::make(
        fmt::format(
            "ENTRY main {{\n  x = {0}[] parameter(0)\n  w = {0}[] parameter(1)\n  ROOT r = {0}[] {1}(x, w)\n}}\n", type,
            std::string_view(type) == "pred" ? "and" : "add"),
        {}, {.scalars_by_value = true});
    if (!program.ok()) return c.fault(program.status());
    if (!accepts(*instance, (*program)->get())) continue;
    const CompileResult made = compile(*instance, (*program)->get());
    if (!c.check(made.status == COLLET_OK, Promise::SCALARS,
                 "a program with scalars by value gave status {} from compile", made.status))
      return;
    any = true;
    // All combinations of passing each scalar by value or in a buffer.
    for (uint64_t by_value = 0; by_value < 4; ++by_value) {
      GuardedLaunch guarded(*instance, **program, made.executable, {});
      const std::vector<hlo::Literal> inputs = (*program)->draw(by_value + 1);
      if (!guarded.fill(inputs, by_value)) return;
      for (size_t i = 0; i < 2; ++i) {
        if (!(by_value >> i & 1)) continue;
        collet_argument& argument = guarded.arguments()[i];
        const uint64_t bytes = argument.bytes;
        argument = {};
        argument.flags = COLLET_ARG_IMMEDIATE;
        argument.bytes = bytes;
        std::copy_n(inputs[i].bytes(), bytes, argument.immediate);
      }
      const collet_status status = guarded.execute();
      if (!c.check(status == COLLET_OK, Promise::IMMEDIATE, "execute with {} by value gave status {}", type, status) ||
          !guarded.judge(inputs, fmt::format("scalars of {} by value, choice {}", type, by_value)))
        return;
    }
  }
  if (!any) c.skip("the backend takes none of the programs");
}

// Passes the scalar arguments whose bits are set in `which` by value.
void pass_by_value(GuardedLaunch& guarded, const std::vector<hlo::Literal>& inputs, uint64_t which) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(which >> i & 1)) continue;
    collet_argument& argument = guarded.arguments()[i];
    argument = {};
    argument.flags = COLLET_ARG_IMMEDIATE;
    argument.bytes = static_cast<uint64_t>(inputs[i].byte_size());
    std::copy_n(inputs[i].bytes(), inputs[i].byte_size(), argument.immediate);
  }
}

// A program of two arrays and two scalars; empty if the case has ended.
struct Scaled {
  std::unique_ptr<Instance> instance;
  std::unique_ptr<TestProgram> program;
  Executable executable;
  explicit operator bool() const { return static_cast<bool>(executable); }
};

constexpr uint64_t kScalars = 0b1010;  // arguments 1 and 3

Scaled start_scaled(Contract& c) {
  Scaled out;
  if (!c.plugin().computes()) return c.skip("the backend runs no ops"), std::move(out);
  out.instance = Instance::open(c);
  if (!out.instance || !out.instance->executes()) return out;
  if (!out.instance->device().has(COLLET_TRAIT_SCALARS))
    return c.skip("the device does not have COLLET_TRAIT_SCALARS"), std::move(out);
  for (const char* type : {"f32", "s32", "bf16"}) {
    auto program =
        TestProgram::make(fmt::format("ENTRY main {{\n  x = {0}[300] parameter(0)\n  s = {0}[] parameter(1)\n"
                                      "  w = {0}[300] parameter(2)\n  t = {0}[] parameter(3)\n"
                                      "  a = {0}[300] broadcast(s), dimensions={{}}\n"
                                      "  b = {0}[300] broadcast(t), dimensions={{}}\n"
                                      "  m = {0}[300] multiply(x, a)\n  n = {0}[300] subtract(w, b)\n"
                                      "  ROOT r = {0}[300] add(m, n)\n}}\n",
                                      type),
                          {}, {.scalars_by_value = true});
    if (!program.ok()) return c.fault(program.status()), std::move(out);
    if (!accepts(*out.instance, (*program)->get())) continue;
    CompileResult made = compile(*out.instance, (*program)->get());
    if (declines_whole((*program)->get(), made)) continue;
    if (!c.check(made.status == COLLET_OK, Promise::SCALARS,
                 "a program of arrays and scalars by value gave status {} from compile: {}", made.status, made.message))
      return out;
    if (has_layouts(*out.instance, **program, made.executable)) continue;
    out.program = *std::move(program);
    out.executable = std::move(made.executable);
    return out;
  }
  c.skip("the backend takes none of the programs");
  return out;
}

bool run_scaled(const Scaled& s, GuardedLaunch& guarded, uint64_t seed, uint64_t which, const std::string& what) {
  Contract& c = s.instance->contract();
  const std::vector<hlo::Literal> inputs = s.program->draw(seed);
  if (!guarded.fill(inputs, seed)) return false;
  pass_by_value(guarded, inputs, which);
  std::string message;
  const collet_status status = guarded.execute(&message);
  return c.check(status == COLLET_OK, Promise::IMMEDIATE, "{}: execute gave status {}: {}", what, status, message) &&
         guarded.judge(inputs, what);
}

// Scalars by value between arrays. Launches with the same buffers have other scalars.
void immediates_beside_arrays(Contract& c) {
  const Scaled s = start_scaled(c);
  if (!s) return;
  for (const uint64_t which : {kScalars, uint64_t{0b0010}, uint64_t{0b1000}}) {
    GuardedLaunch guarded(*s.instance, *s.program, s.executable, {});
    for (uint64_t seed = 1; seed <= 4; ++seed)
      if (!run_scaled(s, guarded, seed * 5 + which, which,
                      fmt::format("launch {} with the same buffers and other scalars", seed)))
        return;
  }
}

void immediates_from_threads(Contract& c) {
  const Scaled s = start_scaled(c);
  if (!s) return;
  if (s.instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  on_threads(4, [&](int thread) {
    GuardedLaunch guarded(*s.instance, *s.program, s.executable, {});
    for (uint64_t i = 0; i < 12; ++i)
      if (!run_scaled(s, guarded, i * 4 + static_cast<uint64_t>(thread) + 1, kScalars,
                      "four threads that pass scalars by value"))
        return;
  });
}

}  // namespace

void add_more_tables_contracts(std::vector<ContractCase>& list) {
  list.push_back({"tables/patterns", patterns});
  list.push_back({"tables/host_memory", host_memory});
  list.push_back({"tables/host_buffers", host_buffers});
  list.push_back({"tables/links", links});
  list.push_back({"tables/profile", profile});
  list.push_back({"tables/residency", residency});
  list.push_back({"tables/residency_of_several", residency_of_several});
  list.push_back({"execute/immediates", immediates});
  list.push_back({"execute/immediates_beside_arrays", immediates_beside_arrays});
  list.push_back({"execute/immediates_from_threads", immediates_from_threads});
}

}  // namespace collet::conformance
