// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstring>
#include <utility>

namespace tile {

using collet::kernel::Error;

Device::Device(uint64_t fail_at) : machine_(fail_at) {
  machine_.observer = [this](const Activity& a) {
    if (wants_records()) record({a.name, a.engine, a.start_ns, a.duration_ns, a.run_id, a.bytes});
  };
}

collet::kernel::Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  const uint64_t address = machine_.allocate((bytes + 3) / 4, alignment / 4);
  if (address == 0) throw Error(COLLET_RESOURCE_EXHAUSTED, "the machine's 256 MiB are full");
  return address;
}

// The copy comes after all command lists. One or two words, such as scalars that are passed by value, become a command
// list of their own, so that the host need not wait.
void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  if (bytes > 8 || bytes % 4 != 0 || offset % 4 != 0) {
    finish();
    return upload(to, offset, from, bytes);
  }
  Commands commands;
  for (uint64_t at = 0; at < bytes; at += 4) {
    Instruction fill, store;
    fill.code = Code::kFill;
    fill.n = 1;
    std::memcpy(&fill.value, static_cast<const char*>(from) + at, 4);
    store.code = Code::kStore;
    store.memory = to + (offset + at) / 4;
    commands.insert(commands.end(), {fill, store});
  }
  submit(std::move(commands), "write", 0);
}

void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  finish();
  download(from, offset, to, bytes);
}

// Copies through the scratchpad by a command list. The host copies bytes that are not whole words.
void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  if (bytes % 4 != 0 || to_offset % 4 != 0 || from_offset % 4 != 0) {
    std::vector<char> between(bytes);
    read(from, from_offset, between.data(), bytes);
    return upload(to, to_offset, between.data(), bytes);
  }
  Commands commands;
  for (uint64_t at = 0; at < bytes / 4; at += kScratchWords) {
    Instruction load;
    load.code = Code::kLoad;
    load.columns = static_cast<uint32_t>(std::min<uint64_t>(kScratchWords, bytes / 4 - at));
    load.memory = from + from_offset / 4 + at;
    Instruction store = load;
    store.code = Code::kStore;
    store.memory = to + to_offset / 4 + at;
    commands.insert(commands.end(), {load, store});
  }
  submit(std::move(commands), "copy", 0);
}

void Device::upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  machine_.write(to * 4 + offset, from, bytes);
}

void Device::download(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  machine_.read(from * 4 + offset, to, bytes);
}

bool Device::copy_to(collet::kernel::Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
                     uint64_t bytes) {
  finish();
  machine_.send(static_cast<Device&>(other).machine_, to * 4 + to_offset, from * 4 + from_offset, bytes);
  return true;
}

void Device::submit(Commands commands, std::string name, uint64_t run_id) {
  machine_.submit(std::move(commands), std::move(name), run_id);
}

}  // namespace tile
