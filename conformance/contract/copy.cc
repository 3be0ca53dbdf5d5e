// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "conformance/contract/differences.h"
#include "conformance/contract/instance.h"

namespace collet::conformance {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr uint64_t kOffsets[] = {0, 1, 3, 4, 64, 100, 1024, 2049};
constexpr uint64_t kSizes[] = {1, 4, 7, 64, 999, 2000};

bool same(Contract& c, const Bytes& got, const Bytes& expected, Promise promise, const std::string& what) {
  const std::string wrong = difference_text(got, expected);
  return c.check(wrong.empty(), promise, "{}: {}", what, wrong);
}

void put(Bytes& into, uint64_t offset, const Bytes& from, uint64_t from_offset, uint64_t bytes) {
  std::copy_n(from.begin() + static_cast<ptrdiff_t>(from_offset), bytes, into.begin() + static_cast<ptrdiff_t>(offset));
}

// A buffer and its contents.
struct Filled {
  Buffer buffer;
  Bytes bytes;
  explicit operator bool() const { return static_cast<bool>(buffer); }
};

Filled filled(Instance& instance, uint64_t seed, uint32_t device = 0, uint64_t bytes = kBytes) {
  Filled out{instance.alloc(bytes, device), pattern(bytes, seed)};
  if (out.buffer && !instance.write(out.buffer, out.bytes)) out.buffer.reset();
  return out;
}

void to_device(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Bytes source = pattern(kBytes, 77);
  for (const uint64_t offset : kOffsets) {
    for (const uint64_t bytes : kSizes) {
      Filled to = filled(*instance, 1);
      if (!to || !instance->write(to.buffer, offset, source.data(), bytes)) return;
      put(to.bytes, offset, source, 0, bytes);
      if (!same(c, instance->read(to.buffer), to.bytes, Promise::COPY_OFFSET,
                fmt::format("{} bytes to offset {} of a buffer", bytes, offset)))
        return;
    }
  }
}

void to_host(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Filled from = filled(*instance, 2);
  if (!from) return;
  for (const uint64_t offset : kOffsets) {
    for (const uint64_t bytes : kSizes) {
      Bytes host = pattern(kBytes, 3), expected = host;
      if (!instance->read(from.buffer, offset, host.data() + 500, bytes)) return;
      put(expected, 500, from.bytes, offset, bytes);
      if (!same(c, host, expected, Promise::COPY_OFFSET,
                fmt::format("{} bytes from offset {} of a buffer", bytes, offset)))
        return;
    }
  }
}

// Checks the field offset of a place in host memory.
void host_offset(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (const uint64_t offset : kOffsets) {
    Bytes host = pattern(kBytes, 4), expected = host;
    Filled buffer = filled(*instance, 5);
    if (!buffer) return;
    collet_copy_region one = region(at_host(host.data(), offset), at(buffer.buffer, 16), 600);
    if (!instance->copy({&one, 1})) return;
    put(buffer.bytes, 16, host, offset, 600);
    same(c, instance->read(buffer.buffer), buffer.bytes, Promise::COPY_OFFSET,
         fmt::format("600 bytes from offset {} of host memory", offset));
    one = region(at(buffer.buffer, 5), at_host(host.data(), offset), 600);
    if (!instance->copy({&one, 1})) return;
    put(expected, offset, buffer.bytes, 5, 600);
    same(c, host, expected, Promise::COPY_OFFSET, fmt::format("600 bytes to offset {} of host memory", offset));
  }
}

void unaligned_host(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (uint64_t shift = 0; shift < 17; ++shift) {
    Bytes host = pattern(kBytes, 6 + shift);
    Filled buffer = filled(*instance, 30);
    if (!buffer || !instance->write(buffer.buffer, 0, host.data() + shift, 3000)) return;
    put(buffer.bytes, 0, host, shift, 3000);
    same(c, instance->read(buffer.buffer), buffer.bytes, Promise::COPY,
         fmt::format("a copy from host memory {} bytes off a 16-byte boundary", shift));
    Bytes back = pattern(kBytes, 90), expected = back;
    if (!instance->read(buffer.buffer, 0, back.data() + shift, 3000)) return;
    put(expected, shift, buffer.bytes, 0, 3000);
    same(c, back, expected, Promise::COPY, fmt::format("a copy to host memory {} bytes off a 16-byte boundary", shift));
  }
}

void check_between(Contract& c, Instance& instance, uint32_t from_device, uint32_t to_device, Promise promise,
                   const std::string& what) {
  for (const uint64_t from_offset : kOffsets) {
    for (const uint64_t to_offset : {0u, 1u, 64u, 2000u}) {
      Filled from = filled(instance, 11, from_device), to = filled(instance, 12, to_device);
      if (!from || !to) return;
      const collet_copy_region one = region(at(from.buffer, from_offset), at(to.buffer, to_offset), 999);
      if (!instance.copy({&one, 1})) return;
      put(to.bytes, to_offset, from.bytes, from_offset, 999);
      if (!same(c, instance.read(to.buffer), to.bytes, promise,
                fmt::format("{}, from offset {} to offset {}", what, from_offset, to_offset)))
        return;
      same(c, instance.read(from.buffer), from.bytes, promise, what + ": the source");
    }
  }
}

void within_a_device(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  check_between(c, *instance, 0, 0, Promise::COPY_OFFSET, "between two buffers of a device");
}

void within_a_buffer(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled buffer = filled(*instance, 13);
  if (!buffer) return;
  const collet_copy_region regions[] = {region(at(buffer.buffer, 0), at(buffer.buffer, 1000), 1000),
                                        region(at(buffer.buffer, 3001), at(buffer.buffer, 2000), 1000)};
  if (!instance->copy(regions)) return;
  const Bytes before = buffer.bytes;
  put(buffer.bytes, 1000, before, 0, 1000);
  put(buffer.bytes, 2000, before, 3001, 1000);
  same(c, instance->read(buffer.buffer), buffer.bytes, Promise::COPY, "from one part of a buffer to another");
}

void between_devices(Contract& c) {
  const auto instance = Instance::open(c, 2);
  if (!instance) return;
  if (instance->devices().size() < 2) return c.skip("there is one device");
  check_between(c, *instance, 0, 1, Promise::COPY, "from device 0 to device 1");
  check_between(c, *instance, 1, 0, Promise::COPY, "from device 1 to device 0");
}

void all_spaces(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto spaces = static_cast<uint32_t>(instance->device().spaces.size());
  if (spaces < 2) return c.skip("there is one memory space");
  for (uint32_t s = 0; s < spaces; ++s) {
    for (uint32_t t = 0; t < spaces; ++t) {
      Buffer from = instance->alloc_in(0, s, kBytes, instance->device().spaces[s].alignment);
      Buffer to = instance->alloc_in(0, t, kBytes, instance->device().spaces[t].alignment);
      const Bytes data = pattern(kBytes, 14 + s);
      if (!from || !to || !instance->write(from, data)) return;
      const collet_copy_region one = region(at(from), at(to), kBytes);
      if (!instance->copy({&one, 1})) return;
      same(c, instance->read(to), data, Promise::COPY, fmt::format("from space {} to space {}", s, t));
    }
  }
}

// Checks regions of all directions in one call.
void several_regions(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled a = filled(*instance, 15), b = filled(*instance, 16);
  const Bytes up = pattern(kBytes, 17);
  Bytes down = pattern(kBytes, 18), expected = down;
  if (!a || !b) return;
  const collet_copy_region regions[] = {region(at_host(up.data(), 10), at(a.buffer, 20), 100),
                                        region(at_host(up.data(), 500), at(a.buffer, 3000), 33),
                                        region(at(a.buffer, 1000), at(b.buffer, 40), 200),
                                        region(at(b.buffer, 2000), at_host(down.data(), 7), 300),
                                        region(at(a.buffer, 2000), at_host(down.data(), 1007), 300),
                                        region(at(b.buffer, 3000), at(a.buffer, 500), 0),
                                        region(at_host(up.data(), 0), at(b.buffer, kBytes - 1), 1)};
  if (!instance->copy(regions)) return;
  put(expected, 7, b.bytes, 2000, 300);
  put(expected, 1007, a.bytes, 2000, 300);
  put(b.bytes, 40, a.bytes, 1000, 200);
  put(b.bytes, kBytes - 1, up, 0, 1);
  put(a.bytes, 20, up, 10, 100);
  put(a.bytes, 3000, up, 500, 33);
  same(c, instance->read(a.buffer), a.bytes, Promise::COPY, "seven regions in one call, the first buffer");
  same(c, instance->read(b.buffer), b.bytes, Promise::COPY, "seven regions in one call, the second buffer");
  same(c, down, expected, Promise::COPY, "seven regions in one call, host memory");
}

void thousand_regions(Contract& c) {
  constexpr uint64_t kRegions = 1000, kPiece = 24;
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled from = filled(*instance, 19, 0, kRegions * kPiece), to = filled(*instance, 20, 0, kRegions * kPiece);
  if (!from || !to) return;
  const Bytes host = pattern(kRegions * kPiece, 21);
  std::vector<collet_copy_region> regions;
  for (uint64_t i = 0; i < kRegions; ++i) {
    const uint64_t source = i * 617 % kRegions * kPiece, target = i * kPiece;
    const bool upload = i % 3 == 0;
    regions.push_back(region(upload ? at_host(host.data(), source) : at(from.buffer, source), at(to.buffer, target),
                             i % 5 == 4 ? kPiece - 3 : kPiece));
    put(to.bytes, target, upload ? host : from.bytes, source, regions.back().bytes);
  }
  if (!instance->copy(regions)) return;
  same(c, instance->read(to.buffer), to.bytes, Promise::COPY, "a thousand regions in one call");
}

void zero_bytes(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled buffer = filled(*instance, 22);
  if (!buffer) return;
  uint8_t byte = 0x33;
  const collet_copy_region regions[] = {
      region(at(buffer.buffer, 0), at_host(&byte), 0), region(at_host(&byte), at(buffer.buffer, 5), 0),
      region(at(buffer.buffer, kBytes), at_host(&byte), 0), region(at_host(&byte), at(buffer.buffer, kBytes), 0)};
  if (!instance->copy(regions)) return;
  std::string message;
  const collet_status status = checked_call(
      c, "copy",
      [&](collet_error* error) { return instance->table().copy(instance->handle(), regions, 0, nullptr, error); },
      &message);
  c.check(status == COLLET_OK, Promise::COPY, "copy of no regions gave status {}: {}", status, message);
  c.check(byte == 0x33, Promise::COPY_NOTHING, "a copy of 0 bytes wrote to host memory");
  same(c, instance->read(buffer.buffer), buffer.bytes, Promise::COPY_NOTHING, "copies of 0 bytes");
}

// Overwrites the list of regions after the call, because it belongs to the caller again.
void regions_are_forgotten(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled a = filled(*instance, 23);
  if (!a) return;
  Bytes source = pattern(kBytes, 24);
  auto regions = std::make_unique<collet_copy_region[]>(2);
  regions[0] = region(at_host(source.data()), at(a.buffer), 2000);
  regions[1] = region(at_host(source.data(), 2000), at(a.buffer, 2000), kBytes - 2000);
  if (!instance->copy({regions.get(), 2})) return;
  a.bytes = source;
  std::fill(source.begin(), source.end(), 0xee);
  std::memset(static_cast<void*>(regions.get()), 0xee, 2 * sizeof regions[0]);
  same(c, instance->read(a.buffer), a.bytes, Promise::COPY_DONE, "host memory was overwritten after copy had returned");
}

void large(Contract& c) {
  constexpr uint64_t kLarge = (uint64_t{9} << 20) + 13;
  const auto instance = Instance::open(c);
  if (!instance) return;
  Buffer a = instance->alloc(kLarge), b = instance->alloc(kLarge);
  const Bytes data = pattern(kLarge, 25);
  if (!a || !b || !instance->write(a, data)) return;
  const collet_copy_region one = region(at(a, 1), at(b, 1), kLarge - 2);
  const Bytes before = instance->read(b);
  if (!instance->copy({&one, 1})) return;
  Bytes expected = data;
  expected.front() = before.front();
  expected.back() = before.back();
  same(c, instance->read(b), expected, Promise::COPY, "nine MiB within a device");
}

// Host memory at the start of a page is what DMA takes without a detour. The sizes are no multiples of a cache line.
void pages(Contract& c) {
  constexpr uint64_t kPage = 4096, kMost = 16 * kPage + 77;
  const auto instance = Instance::open(c);
  if (!instance) return;
  Bytes storage(kMost + 2 * kPage);
  uint8_t* const page = storage.data() + (kPage - reinterpret_cast<uintptr_t>(storage.data()) % kPage) % kPage;
  Buffer buffer = instance->alloc(kMost + kPage);
  if (!buffer) return;
  uint64_t seed = 70;
  for (const uint64_t bytes : {kPage, kPage + 1, kPage + 63, 2 * kPage - 1, 3 * kPage + 4, kMost}) {
    for (const uint64_t offset : {uint64_t{0}, kPage, uint64_t{3}}) {
      const Bytes before = pattern(buffer.bytes(), ++seed), data = pattern(bytes, ++seed);
      std::copy(data.begin(), data.end(), page);
      if (bytes + offset > buffer.bytes() || !instance->write(buffer, before) ||
          !instance->write(buffer, offset, page, bytes))
        continue;
      Bytes expected = before;
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
      if (!same(c, instance->read(buffer), expected, Promise::COPY,
                fmt::format("{} bytes from a page of the host to offset {}", bytes, offset)))
        return;
      std::fill(storage.begin(), storage.end(), uint8_t{0x77});
      if (!instance->read(buffer, offset, page, bytes) ||
          !same(c, Bytes(page, page + bytes), data, Promise::COPY,
                fmt::format("{} bytes at offset {} to a page of the host", bytes, offset)) ||
          !c.check(page[bytes] == 0x77, Promise::COPY, "a copy of {} bytes to a page of the host wrote more", bytes))
        return;
    }
  }
}

void beyond_the_end(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  Filled a = filled(*instance, 26), b = filled(*instance, 27);
  if (!a || !b) return;
  Bytes host = pattern(2 * kBytes, 28);
  const Bytes host_before = host;
  struct Range {
    uint64_t offset, bytes;
  };
  const Range ranges[] = {{0, kBytes + 1},     {1, kBytes},          {kBytes, 1},     {kBytes + 64, 1},
                          {kBytes - 8, 9},     {UINT64_MAX - 3, 16}, {UINT64_MAX, 1}, {uint64_t{1} << 40, 8},
                          {16, UINT64_MAX - 8}};
  // Reads bytes beyond the end of the buffer and writes them back unchanged, which is harmless if the backend does not
  // check the range.
  const auto is_refused = [&](const collet_copy_region& beyond) {
    const collet_status status = checked_call(c, "copy", [&](collet_error* error) {
      return instance->table().copy(instance->handle(), &beyond, 1, nullptr, error);
    });
    return status == COLLET_OUT_OF_RANGE || status == COLLET_INVALID_ARGUMENT;
  };
  bool looks = false;
  for (const Range& range : {Range{kBytes, 1}, Range{kBytes - 8, 16}, Range{kBytes, 16}}) {
    const collet_place wrong = at(a.buffer, range.offset), place = at_host(host.data());
    looks |= is_refused(region(wrong, place, range.bytes));
    looks = looks || is_refused(region(place, wrong, range.bytes));
  }
  const auto promise = c.judged_by(Promise::COPY_RANGE, looks);
  if (!promise) return c.skip("the backend's version of the ABI does not say");
  host = host_before;
  for (const Range& range : ranges) {
    // The sum of offset and bytes overflows.
    if (*promise != Promise::COPY_RANGE && range.offset + range.bytes < range.offset) continue;
    for (int kind = 0; kind < 4; ++kind) {
      const collet_place inside = at(b.buffer);
      const collet_place wrong = at(a.buffer, range.offset);
      // A valid region comes first; it must not have been copied either.
      const collet_copy_region regions[] = {region(at_host(host.data()), at(b.buffer, 100), 50),
                                            kind == 0   ? region(at_host(host.data()), wrong, range.bytes)
                                            : kind == 1 ? region(wrong, at_host(host.data()), range.bytes)
                                            : kind == 2 ? region(wrong, inside, std::min(range.bytes, kBytes))
                                                        : region(inside, wrong, std::min(range.bytes, kBytes))};
      if (kind >= 2 && range.bytes > kBytes) continue;
      const collet_status status = checked_call(c, "copy", [&](collet_error* error) {
        return instance->table().copy(instance->handle(), regions, 2, nullptr, error);
      });
      if (!c.check(status == COLLET_OUT_OF_RANGE || status == COLLET_INVALID_ARGUMENT, *promise,
                   "copy of {} bytes at offset {} of a buffer of {} gave status {}", range.bytes, range.offset, kBytes,
                   status))
        return;
      if (!same(c, instance->read(a.buffer), a.bytes, Promise::ERROR_CHANGES_NOTHING, "after a refused copy") ||
          !same(c, instance->read(b.buffer), b.bytes, Promise::ERROR_CHANGES_NOTHING,
                "the good region of a refused copy") ||
          !same(c, host, host_before, Promise::ERROR_CHANGES_NOTHING, "host memory after a refused copy"))
        return;
    }
  }
}

void from_threads(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  constexpr int kThreads = 4;
  constexpr uint64_t kShare = 1500;
  Filled shared = filled(*instance, 29, 0, kThreads * kShare);
  if (!shared) return;
  on_threads(kThreads, [&](int thread) {
    const auto offset = static_cast<uint64_t>(thread) * kShare;
    Buffer own = instance->alloc(kShare);
    if (!own) return;
    Bytes data;
    for (uint64_t i = 0; i < 100; ++i) {
      Bytes back(kShare);
      // What the thread wrote last must have stayed while the others wrote beside it. Every second thread leaves them time.
      if (thread % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (i > 0 &&
          (!instance->read(shared.buffer, offset, back.data(), kShare) ||
           !same(c, back, data, Promise::THREADS, "a share of a buffer, in which other threads write beside it")))
        return;
      data = pattern(kShare, i * kThreads + static_cast<uint64_t>(thread));
      const collet_copy_region across = region(at(shared.buffer, offset), at(own), kShare);
      if (!instance->write(shared.buffer, offset, data.data(), kShare) || !instance->copy({&across, 1}) ||
          !instance->read(own, 0, back.data(), kShare) ||
          !same(c, back, data, Promise::THREADS, "four threads that copy at once"))
        return;
    }
  });
}

}  // namespace

void add_copy_contracts(std::vector<ContractCase>& list) {
  list.push_back({"copy/to_device", to_device});
  list.push_back({"copy/to_host", to_host});
  list.push_back({"copy/host_offset", host_offset});
  list.push_back({"copy/unaligned_host", unaligned_host});
  list.push_back({"copy/pages", pages});
  list.push_back({"copy/within_a_device", within_a_device});
  list.push_back({"copy/within_a_buffer", within_a_buffer});
  list.push_back({"copy/between_devices", between_devices});
  list.push_back({"copy/between_spaces", all_spaces});
  list.push_back({"copy/several_regions", several_regions});
  list.push_back({"copy/thousand_regions", thousand_regions});
  list.push_back({"copy/zero_bytes", zero_bytes});
  list.push_back({"copy/regions_are_forgotten", regions_are_forgotten});
  list.push_back({"copy/large", large});
  list.push_back({"copy/beyond_the_end", beyond_the_end});
  list.push_back({"copy/threads", from_threads});
}

}  // namespace collet::conformance
