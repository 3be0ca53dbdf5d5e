// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "conformance/contract/differences.h"
#include "conformance/contract/instance.h"

namespace collet::conformance {
namespace {

void alignments(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  for (uint32_t d = 0; d < instance->devices().size() && d < 2; ++d) {
    const Device& device = instance->device(d);
    for (uint32_t s = 0; s < device.spaces.size(); ++s) {
      for (uint64_t alignment = device.spaces[s].alignment; alignment <= 65536; alignment *= 2) {
        std::vector<Buffer> held;  // keeps the buffers allocated, so that each has another address
        for (const uint64_t bytes : {1u, 100u, 4096u, 5000u, 33u, 64u, 40000u}) {
          Buffer buffer = instance->alloc_in(d, s, bytes, alignment);
          if (!buffer) return;
          const auto address = reinterpret_cast<uintptr_t>(buffer.host());
          c.check(address % alignment == 0, Promise::ALLOC_ALIGNED,
                  "alloc of {} bytes, aligned to {}, gave the host pointer {:#x}", bytes, alignment, address);
          held.push_back(std::move(buffer));
        }
      }
    }
  }
}

void small_alignments(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Device& device = instance->device();
  Buffer buffer = instance->alloc(100);
  if (!buffer || !buffer.host()) return;
  c.check(reinterpret_cast<uintptr_t>(buffer.host()) % device.alignment() == 0, Promise::ALIGNMENT_POWER,
          "alloc gave a host pointer without the alignment of its space, {}", device.alignment());
}

// Checks that buffers of many sizes hold what was written to every byte, and do not overlap.
void sizes(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  std::vector<Buffer> buffers;
  std::vector<Bytes> contents;
  const uint64_t all[] = {1, 2, 3, 63, 64, 65, 1000, 4095, 4096, 4097, 65536, 1, 1, 1, (1 << 20) + 1, 3 << 20};
  for (const uint64_t bytes : all) {
    buffers.push_back(instance->alloc(bytes));
    if (!buffers.back()) return;
    contents.push_back(pattern(bytes, buffers.size()));
    if (!instance->write(buffers.back(), contents.back())) return;
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::string wrong = difference_text(instance->read(buffers[i]), contents[i]);
    c.check(wrong.empty(), Promise::ALLOC_ALIGNED, "a buffer of {} bytes does not hold what was written: {}", all[i],
            wrong);
  }
  std::vector<std::pair<uint8_t*, uint64_t>> places;
  for (const Buffer& buffer : buffers)
    if (buffer.host()) places.emplace_back(buffer.host(), buffer.bytes());
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    c.check(places[i - 1].first + places[i - 1].second <= places[i].first, Promise::ALLOC_HOST,
            "two buffers overlap: {} bytes are {} bytes apart", places[i - 1].second,
            places[i].first - places[i - 1].first);
}

// Checks that, while buffers are freed and allocated in turn, the contents of all other buffers stay unchanged.
void reuse(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  constexpr size_t kBuffers = 24;
  std::vector<Buffer> buffers(kBuffers);
  std::vector<Bytes> contents(kBuffers);
  for (size_t step = 0; step < 400; ++step) {
    const size_t i = (step * 7 + step / 5) % kBuffers;
    if (buffers[i]) {
      const std::string wrong = difference_text(instance->read(buffers[i]), contents[i]);
      if (!c.check(wrong.empty(), Promise::FREE, "after other buffers were freed, {}", wrong)) return;
      buffers[i].reset();
    }
    const uint64_t bytes = 1 + step * 977 % 50000;
    buffers[i] = instance->alloc(bytes);
    if (!buffers[i]) return;
    contents[i] = pattern(bytes, step);
    if (!instance->write(buffers[i], contents[i])) return;
  }
}

void host_pointer(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  bool any = false;
  for (uint32_t s = 0; s < instance->device().spaces.size(); ++s) {
    const collet_memory_space& space = instance->device().spaces[s];
    Buffer buffer = instance->alloc_in(0, s, 3000, space.alignment);
    if (!buffer) return;
    if (!buffer.host()) continue;
    any = true;
    const Bytes first = pattern(3000, 1), second = pattern(3000, 2);
    std::memcpy(buffer.host(), first.data(), first.size());
    c.check(instance->read(buffer) == first, Promise::ALLOC_HOST, "copy does not see what the host wrote");
    if (!instance->write(buffer, second)) return;
    c.check(std::memcmp(buffer.host(), second.data(), second.size()) == 0, Promise::ALLOC_HOST,
            "the host does not see what copy wrote");
  }
  if (!any) c.skip("the host sees no memory space");
}

void exhaustion(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Device& device = instance->device();
  Buffer kept = instance->alloc(1000);
  const Bytes data = pattern(1000, 9);
  if (!kept || !instance->write(kept, data)) return;
  for (const uint64_t bytes : {uint64_t{1} << 62, uint64_t{1} << 60}) {
    Buffer buffer;
    const collet_status status = instance->try_alloc(0, device.default_space, bytes, device.alignment(), buffer);
    c.check(status == COLLET_RESOURCE_EXHAUSTED, Promise::ALLOC_EXHAUSTED, "alloc of 2^{} bytes gave status {}",
            bytes >> 61 ? 62 : 60, status);
  }
  c.check(instance->read(kept) == data, Promise::ERROR_CHANGES_NOTHING, "a failed alloc changed another buffer");
  Buffer later = instance->alloc(5000);
  const Bytes more = pattern(5000, 8);
  if (later && instance->write(later, more))
    c.check(instance->read(later) == more, Promise::ALLOC_EXHAUSTED, "after a failed alloc memory does not hold data");
}

// If the capacity of the memory is known and small, it is filled and freed twice. The second time must succeed as far as the first.
void exhaustion_recovers(Contract& c) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  constexpr uint64_t kPieces = 8;
  const auto instance = Instance::open(c);
  if (!instance) return;
  const Device& device = instance->device();
  const collet_memory_space& space = device.spaces[device.default_space];
  if (space.bytes == 0 || space.bytes > kMost) return c.skip("the capacity of the memory is unknown, or large");
  for (int round = 0; round < 2; ++round) {
    std::vector<Buffer> buffers;
    collet_status status = COLLET_OK;
    while (status == COLLET_OK && buffers.size() < 4 * kPieces) {
      Buffer buffer;
      status = instance->try_alloc(0, device.default_space, space.bytes / kPieces, space.alignment, buffer);
      if (buffer) buffers.push_back(std::move(buffer));
    }
    c.check(status == COLLET_RESOURCE_EXHAUSTED || status == COLLET_OK, Promise::ALLOC_EXHAUSTED,
            "alloc in a full space gave status {}", status);
    if (!c.check(buffers.size() >= kPieces / 2, Promise::FREE, "round {}: there was room for {} eighths alone", round,
                 buffers.size()))
      return;
  }
}

void no_such_place(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  const auto devices = static_cast<uint32_t>(instance->devices().size());
  const auto spaces = static_cast<uint32_t>(instance->device().spaces.size());
  struct Place {
    uint32_t device, space;
    collet_status status = COLLET_OK;
    bool is_refused() const {
      return status == COLLET_INVALID_ARGUMENT || status == COLLET_NOT_FOUND || status == COLLET_OUT_OF_RANGE;
    }
  };
  Place places[] = {{devices, 0}, {UINT32_MAX, 0}, {0, spaces}, {0, UINT32_MAX}};
  for (Place& place : places) {
    collet_backend_buffer* handle = nullptr;
    void* host = nullptr;
    place.status = checked_call(c, "alloc", [&](collet_error* error) {
      return instance->table().alloc(instance->handle(), place.device, place.space, 100, 64, &handle, &host, error);
    });
    c.check(place.status == COLLET_OK || handle == nullptr, c.out_arguments(), "alloc failed and handed out a buffer");
    if (place.status == COLLET_OK && handle) instance->table().free(instance->handle(), handle);
  }
  const bool looks = std::any_of(std::begin(places), std::end(places), [](const Place& p) { return p.is_refused(); });
  const auto promise = c.judged_by(Promise::ALLOC_PLACE, looks);
  if (!promise) return c.skip("the backend's version of the ABI does not say");
  for (const Place& place : places)
    c.check(place.is_refused(), *promise, "alloc on device {} in space {} gave status {}", place.device, place.space,
            place.status);
}

void from_threads(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  on_threads(4, [&](int thread) {
    std::vector<std::pair<Buffer, Bytes>> held;
    for (int i = 0; i < 60; ++i) {
      const uint64_t bytes = 1 + static_cast<uint64_t>(i * 331 + thread * 57) % 9000;
      Buffer buffer = instance->alloc(bytes);
      Bytes data = pattern(bytes, static_cast<uint64_t>(thread * 1000 + i));
      if (!buffer || !instance->write(buffer, data)) return;
      held.emplace_back(std::move(buffer), std::move(data));
      if (held.size() < 5) continue;
      const auto& [old, expected] = held.front();
      const std::string wrong = difference_text(instance->read(old), expected);
      if (!c.check(wrong.empty(), Promise::THREADS, "with four threads at work, in a buffer, {}", wrong)) return;
      held.erase(held.begin());
    }
  });
}

}  // namespace

void add_memory_contracts(std::vector<ContractCase>& list) {
  list.push_back({"alloc/alignments", alignments});
  list.push_back({"alloc/alignment_of_the_space", small_alignments});
  list.push_back({"alloc/sizes", sizes});
  list.push_back({"alloc/reuse", reuse});
  list.push_back({"alloc/host_pointer", host_pointer});
  list.push_back({"alloc/exhaustion", exhaustion});
  list.push_back({"alloc/exhaustion_recovers", exhaustion_recovers});
  list.push_back({"alloc/no_such_place", no_such_place});
  list.push_back({"alloc/threads", from_threads});
}

}  // namespace collet::conformance
