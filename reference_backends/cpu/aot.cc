// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/aot.h"

#include <collet/hash.h>
#include <collet/program.h>

#include <cstring>

namespace collet::cpu {
namespace {

using codegen::Status;

constexpr char kMagic[8] = {'C', 'L', 'T', 'C', 'P', 'U', '2', '\n'};

struct Head {
  char magic[8];
  uint64_t size;      // size of the bytes after the head
  uint64_t checksum;  // checksum of the bytes after the head
};

uint64_t checksum(std::string_view bytes) {
  return collet_hash_bytes(0, bytes.data(), bytes.size());
}

void put(std::string& out, std::string_view bytes) {
  const uint64_t size = bytes.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += bytes;
}

bool take(std::string_view& rest, std::string_view& out) {
  uint64_t size = 0;
  if (rest.size() < sizeof size) return false;
  std::memcpy(&size, rest.data(), sizeof size);
  rest.remove_prefix(sizeof size);
  if (size > rest.size()) return false;
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

Status damaged() {
  return {COLLET_DATA_LOSS, "cpu: the bytes of an executable are damaged"};
}

}  // namespace

std::string write_executable(std::string_view target, const ProgramBlock& program,
                             const std::vector<std::string>& objects) {
  std::string body;
  put(body, target);
  put(body, {reinterpret_cast<const char*>(program.data()), program.size() * sizeof program[0]});
  for (const std::string& object : objects) put(body, object);
  Head head;
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.size = body.size();
  head.checksum = checksum(body);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}

Status read_executable(std::string_view bytes, std::string_view target, StoredExecutable& out) {
  Head head;
  if (bytes.size() < sizeof head) return damaged();
  std::memcpy(&head, bytes.data(), sizeof head);
  std::string_view rest = bytes.substr(sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.size != rest.size() ||
      head.checksum != checksum(rest)) {
    return damaged();
  }
  std::string_view part;
  if (!take(rest, part)) return damaged();
  if (part != target) return {COLLET_FAILED_PRECONDITION, "cpu: the executable was made for " + std::string(part)};
  out.target = part;
  if (!take(rest, part) || part.size() % sizeof(uint64_t) != 0 || part.size() < sizeof(collet_program)) {
    return damaged();
  }
  out.program.resize(part.size() / sizeof(uint64_t));
  std::memcpy(out.program.data(), part.data(), part.size());
  while (!rest.empty()) {
    if (!take(rest, part)) return damaged();
    out.objects.emplace_back(part);
  }
  return {};
}

}  // namespace collet::cpu
