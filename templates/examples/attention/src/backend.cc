// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <collet/kernel_backend.hpp>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

// A backend with one kernel: softmax(q k^T * scale) v, which never stores the scores. Programs reach it by the name of a custom
// call or of a composite; everything else runs on the fallback.
namespace attention {

namespace kernel = collet::kernel;
using kernel::Array;
using kernel::Memory;
using kernel::Op;

namespace {

// Host memory stands for that of the device. A kernel::Memory is an address.
class Device final : public kernel::Device {
 public:
  Memory allocate(uint64_t bytes, uint64_t) override {
    return reinterpret_cast<Memory>(::operator new(bytes, std::align_val_t(kAlignment)));
  }
  void free(Memory memory) noexcept override { ::operator delete(at(memory), std::align_val_t(kAlignment)); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(at(to) + offset, from, bytes);
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, at(from) + offset, bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
  }
  static char* at(Memory memory) { return reinterpret_cast<char*>(memory); }
  static constexpr size_t kAlignment = 4096;  // largest alignment that is requested
};

float* floats(const Array& array) {
  return reinterpret_cast<float*>(Device::at(array.memory) + array.offset);
}

// What a call asks for: of q [..., queries, width], k [..., keys, width] and v [..., keys, out_width].
struct Request {
  int64_t batch = 1, queries = 0, keys = 0, width = 0, out_width = 0;
  float scale = 1;
  bool causal = false;  // query i sees the keys 0 ... i
};

// Returns "" if the kernel can compute the call, else what it cannot do, which the plan and the error message show.
std::string read(const Op& op, Request* out) {
  if (op.operand_count() != 3 || op.result_count() != 1) return "attention takes q, k and v, and has one result";
  const Array &q = op.operand(0), &k = op.operand(1), &v = op.operand(2), &result = op.result();
  const uint32_t rank = q.rank;
  if (rank < 2 || k.rank != rank || v.rank != rank || result.rank != rank)
    return "q, k, v and the result need one rank of at least 2";
  for (uint32_t d = 0; d + 2 < rank; ++d) {
    if (k.dims[d] != q.dims[d] || v.dims[d] != q.dims[d] || result.dims[d] != q.dims[d])
      return "q, k and v need the same batch";
    out->batch *= q.dims[d];
  }
  out->queries = q.dims[rank - 2];
  out->width = q.dims[rank - 1];
  out->keys = k.dims[rank - 2];
  out->out_width = v.dims[rank - 1];
  if (k.dims[rank - 1] != out->width || v.dims[rank - 2] != out->keys) return "the shapes of k and v do not fit";
  if (result.dims[rank - 2] != out->queries || result.dims[rank - 1] != out->out_width)
    return "the result has another shape";
  if (out->keys < 1) return "there are no keys";
  for (const collet::DictionaryEntry& entry : op.dictionary()) {
    if (entry.name == "scale" && entry.kind == collet::DictionaryEntry::kScalar) {
      out->scale = static_cast<float>(entry.number());
    } else if (entry.name == "causal" && entry.kind == collet::DictionaryEntry::kScalar) {
      out->causal = entry.integer() != 0;
    } else {
      return "the attribute " + entry.name + " is neither scale nor causal, a number each";
    }
  }
  return "";
}

kernel::Verdict takes(const Op& op) {
  Request request;
  const std::string complaint = read(op, &request);
  return complaint.empty() ? kernel::Verdict(true) : kernel::Verdict(complaint);
}

// The attributes are read when a program is compiled, not at each run.
std::any prepare(kernel::Device&, const Op& op) {
  Request request;
  read(op, &request);
  return request;
}

// Handles the keys one after another: a larger score scales down what was summed so far.
void attend(const Request& r, const float* q, const float* k, const float* v, int64_t keys, float* out, double* sums) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  std::fill_n(sums, r.out_width, 0.0);
  for (int64_t key = 0; key < keys; ++key) {
    double score = 0;
    for (int64_t i = 0; i < r.width; ++i) score += static_cast<double>(q[i]) * k[key * r.width + i];
    score *= r.scale;
    // A key that is hidden before any other one came has no weight.
    if (score == -std::numeric_limits<double>::infinity() && largest == score) continue;
    const double now = std::max(largest, score), before = std::exp(largest - now), weight = std::exp(score - now);
    total = total * before + weight;
    for (int64_t i = 0; i < r.out_width; ++i) sums[i] = sums[i] * before + weight * v[key * r.out_width + i];
    largest = now;
  }
  for (int64_t i = 0; i < r.out_width; ++i) out[i] = static_cast<float>(sums[i] / total);
}

void run(kernel::Device&, const Op& op) {
  const auto& r = op.state<Request>();
  const float *q = floats(op.operand(0)), *k = floats(op.operand(1)), *v = floats(op.operand(2));
  float* const out = floats(op.result());
  std::vector<double> sums(static_cast<size_t>(r.out_width));
  for (int64_t b = 0; b < r.batch; ++b) {
    for (int64_t i = 0; i < r.queries; ++i) {
      attend(r, q + (b * r.queries + i) * r.width, k + b * r.keys * r.width, v + b * r.keys * r.out_width,
             r.causal ? std::min(i + 1, r.keys) : r.keys, out + (b * r.queries + i) * r.out_width, sums.data());
    }
  }
}

std::vector<kernel::Kernel> table() {
  constexpr kernel::TypeSet f32{COLLET_TYPE_F32};
  kernel::Kernel custom_call{COLLET_OP_CUSTOM_CALL, f32, f32, run};
  custom_call.target = "acme_attention";  // jax.ffi.ffi_call("acme_attention", ...)
  custom_call.takes = takes;
  custom_call.prepare = prepare;
  kernel::Kernel composite = custom_call;
  composite.opcode = COLLET_OP_CALL;
  composite.target.clear();
  composite.pattern = "acme.attention";  // jax.lax.composite(..., name="acme.attention")
  return {custom_call, composite};
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "attention";
  backend.version = "0.1.0";
  backend.device_kind = "Attention unit, emulated";
  backend.fingerprint = "attention-0";
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_COMPUTE}};
  backend.kernels = table();
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  return backend;
}

}  // namespace attention

COLLET_KERNEL_BACKEND(attention::describe)
