// SPDX-License-Identifier: Apache-2.0
#include <collet/program.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <map>
#include <vector>

#include "sdk/runtime/testing/remote_protocol.h"

/// \file
/// The process that owns the remote backend's memory and runs its two kernels.

namespace collet::remote {
namespace {

struct Device {
  std::map<uint64_t, std::vector<char>> buffers;
  std::map<uint64_t, std::vector<uint64_t>> programs;  // program blocks, aligned to 8 bytes
  uint64_t next = 1;
};

template <typename T>
void add(const void* a, const void* b, void* out, uint64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (uint64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = x[i] + y[i];
}
// Adds s32 arrays; sums wrap around.
void add_s32(const void* a, const void* b, void* out, uint64_t n) {
  add<uint32_t>(a, b, out, n);
}

struct Loop {
  int64_t extent, lhs_stride, rhs_stride;
};

int64_t stride_of(const collet_program* p, const collet_type* t, uint32_t dim) {
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < t->dims.count; ++d) stride *= collet_integers(p, t->dims)[d];
  return stride;
}

double contract(const std::vector<Loop>& loops, size_t at, const float* a, const float* b) {
  if (at == loops.size()) return static_cast<double>(*a) * static_cast<double>(*b);
  double sum = 0;
  for (int64_t i = 0; i < loops[at].extent; ++i)
    sum += contract(loops, at + 1, a + i * loops[at].lhs_stride, b + i * loops[at].rhs_stride);
  return sum;
}

void spread(const std::vector<Loop>& outer, size_t at, const std::vector<Loop>& inner, const float* a, const float* b,
            float*& out) {
  if (at == outer.size()) {
    *out++ = static_cast<float>(contract(inner, 0, a, b));
    return;
  }
  for (int64_t i = 0; i < outer[at].extent; ++i)
    spread(outer, at + 1, inner, a + i * outer[at].lhs_stride, b + i * outer[at].rhs_stride, out);
}

void dot(const collet_program* p, const collet_op* op, const float* a, const float* b, float* out) {
  collet_dot_attrs attrs;
  collet_read_attributes(p, op, &attrs, sizeof attrs);
  const collet_type* lhs = collet_value_type(p, collet_operand(p, op, 0));
  const collet_type* rhs = collet_value_type(p, collet_operand(p, op, 1));
  std::vector<bool> lhs_used(lhs->dims.count), rhs_used(rhs->dims.count);
  const auto pairs = [&](collet_range l, collet_range r) {
    std::vector<Loop> loops;
    for (uint32_t i = 0; i < l.count; ++i) {
      const auto x = static_cast<uint32_t>(collet_integers(p, l)[i]),
                 y = static_cast<uint32_t>(collet_integers(p, r)[i]);
      lhs_used[x] = rhs_used[y] = true;
      loops.push_back({collet_integers(p, lhs->dims)[x], stride_of(p, lhs, x), stride_of(p, rhs, y)});
    }
    return loops;
  };
  std::vector<Loop> outer = pairs(attrs.lhs_batch, attrs.rhs_batch);
  const std::vector<Loop> inner = pairs(attrs.lhs_contracting, attrs.rhs_contracting);
  for (uint32_t d = 0; d < lhs->dims.count; ++d)
    if (!lhs_used[d]) outer.push_back({collet_integers(p, lhs->dims)[d], stride_of(p, lhs, d), 0});
  for (uint32_t d = 0; d < rhs->dims.count; ++d)
    if (!rhs_used[d]) outer.push_back({collet_integers(p, rhs->dims)[d], 0, stride_of(p, rhs, d)});
  spread(outer, 0, inner, a, b, out);
}

// Interprets the program with three nested loops, as program.h describes.
void run(const collet_program* p, const std::vector<char*>& arguments, const std::vector<char*>& results) {
  const collet_region* entry = collet_region_at(p, 0);
  std::vector<char*> values(p->values.count);
  std::vector<std::vector<char>> made;
  for (uint32_t i = 0; i < entry->arguments.count; ++i) values[entry->arguments.first + i] = arguments[i];
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    const collet_op* op = collet_op_at(p, entry->ops.first + i);
    const collet_type* type = collet_value_type(p, op->results.first);
    made.emplace_back(type->bytes);
    char* out = values[op->results.first] = made.back().data();
    const char *a = values[collet_operand(p, op, 0)], *b = values[collet_operand(p, op, 1)];
    if (op->opcode == COLLET_OP_DOT)
      dot(p, op, reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), reinterpret_cast<float*>(out));
    else
      (type->element == COLLET_TYPE_F32 ? add<float> : add_s32)(a, b, out, type->elements);
  }
  // A result that is an argument must not be overwritten by another result that takes over the argument's memory.
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    const uint32_t v = collet_ref_at(p, entry->results.first + i);
    if (v - entry->arguments.first >= entry->arguments.count) continue;
    made.emplace_back(values[v], values[v] + collet_value_type(p, v)->bytes);
    values[v] = made.back().data();
  }
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    const uint32_t v = collet_ref_at(p, entry->results.first + i);
    if (const uint64_t bytes = collet_value_type(p, v)->bytes) std::memcpy(results[i], values[v], bytes);
  }
}

bool run_request(Device& device, int socket, const Request& r, Answer& answer) {
  std::vector<Slot> slots(r.count);
  if (!receive_all(socket, slots.data(), slots.size() * sizeof(Slot))) return false;
  const auto* p = reinterpret_cast<const collet_program*>(device.programs.at(r.buffer).data());
  const uint32_t n = collet_region_at(p, 0)->arguments.count;
  std::vector<char*> places;
  for (const Slot& s : slots) places.push_back(s.buffer ? device.buffers.at(s.buffer).data() + s.offset : nullptr);
  run(p, {places.begin(), places.begin() + n}, {places.begin() + n, places.end()});
  answer.number = 0;
  return true;
}

bool serve_one(Device& device, int socket) {
  Request r;
  if (!receive_all(socket, &r, sizeof r)) return false;
  Answer answer;
  const void* payload = nullptr;
  switch (r.verb) {
    case Verb::Alloc:
      answer.number = device.next++;
      try {
        device.buffers[answer.number].resize(r.bytes);
      } catch (const std::exception&) {  // more memory than available, or than a vector can hold
        device.buffers.erase(answer.number);
        answer.status = COLLET_RESOURCE_EXHAUSTED;
      }
      break;
    case Verb::Free:
      device.buffers.erase(r.buffer);
      break;
    case Verb::Write:
      if (!receive_all(socket, device.buffers.at(r.buffer).data() + r.offset, r.bytes)) return false;
      break;
    case Verb::Read:
      payload = device.buffers.at(r.buffer).data() + r.offset;
      break;
    case Verb::Copy:
      std::memcpy(device.buffers.at(r.other).data() + r.other_offset, device.buffers.at(r.buffer).data() + r.offset,
                  r.bytes);
      break;
    case Verb::Compile: {
      answer.number = device.next++;
      auto& block = device.programs[answer.number];
      block.resize(r.bytes / 8 + 1);
      if (!receive_all(socket, block.data(), r.bytes)) return false;
      break;
    }
    case Verb::Run:
      if (!run_request(device, socket, r, answer)) return false;
      break;
    case Verb::Release:
      device.programs.erase(r.buffer);
      break;
    case Verb::Nothing:
      break;
  }
  return send_all(socket, &answer, sizeof answer) && (!payload || send_all(socket, payload, r.bytes));
}

}  // namespace

bool send_all(int socket, const void* data, uint64_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(socket, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* data, uint64_t bytes) {
  char* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = read(socket, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

void serve(int socket) {
  Device device;
  while (serve_one(device, socket)) {
  }
}

}  // namespace collet::remote
