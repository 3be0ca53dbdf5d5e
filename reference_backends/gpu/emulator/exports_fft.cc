// SPDX-License-Identifier: Apache-2.0
// Implements the functions of cuFFT that the gpu backend calls. They compute on the host, in the order of the stream.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu {

#define COLLET_CUFFT_FUNCTION(name, parameters) COLLET_EXPORT cufftResult name parameters;
#include "reference_backends/gpu/library/cufft_functions.def"

namespace {

using emulator::bytes_of;
using emulator::Complex;
using emulator::Elements;
using emulator::Entry;
using emulator::format_of;
using emulator::in_context;
using emulator::is_complex;
using emulator::mark_written;
using emulator::problem_of;

/// Computes the discrete Fourier transform of `n` points, recursively by the prime factors of n.
void transform(Complex* x, uint64_t n, double sign) {
  if (n < 2) return;
  uint64_t p = 2;
  while (n % p != 0) p = p * p > n ? n : p + 1;
  const uint64_t m = n / p;
  std::vector<Complex> parts(n);
  for (uint64_t r = 0; r < p; ++r) {
    for (uint64_t i = 0; i < m; ++i) parts[r * m + i] = x[i * p + r];
    transform(&parts[r * m], m, sign);
  }
  std::vector<Complex> roots(n);
  for (uint64_t k = 0; k < n; ++k)
    roots[k] = std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  for (uint64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (uint64_t r = 0; r < p; ++r) sum += parts[r * m + k % m] * roots[r * k % n];
    x[k] = sum;
  }
}

struct FftPlan {
  int device = 0;
  std::vector<uint64_t> lengths;  ///< lengths of the transformed dimensions; empty until the plan has been made
  cudaDataType_t in{};
  cudaDataType_t out{};
  uint64_t batches = 1;
  CUstream stream = nullptr;
  bool allocates = true;  ///< true if the library allocates the work area, false if the caller does
  uint64_t area = 0;

  uint64_t points() const {
    uint64_t n = 1;
    for (const uint64_t length : lengths) n *= length;
    return n;
  }
  /// Returns the size of the work area that a plan asks for: a row of complex numbers. The emulator does not use it.
  uint64_t work_bytes() const { return lengths.back() * sizeof(Complex); }
  bool is_real() const { return !is_complex(in) || !is_complex(out); }
  uint64_t last_half() const { return lengths.back() / 2 + 1; }
  uint64_t elements(cudaDataType_t type) const {
    return is_complex(type) && is_real() ? points() / lengths.back() * last_half() : points();
  }

  void run(emulator::State& s, uint64_t from, uint64_t to, int direction) const {
    const uint64_t in_bytes = batches * elements(in) * bytes_of(in),
                   out_bytes = batches * elements(out) * bytes_of(out);
    for (const std::string& problem : {problem_of(s, "cufftXtExec reads", from, in_bytes, false),
                                       problem_of(s, "cufftXtExec writes", to, out_bytes, true)}) {
      if (!problem.empty()) return s.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
    }
    const emulator::DeviceMemory& memory = *s.machine.memory;
    const Elements of_in(in), of_out(out);
    const double sign = !is_complex(in) ? -1 : !is_complex(out) ? 1 : direction;
    for (uint64_t batch = 0; batch < batches; ++batch) {
      uint8_t* const source = memory.host(from + batch * elements(in) * bytes_of(in));
      uint8_t* const target = memory.host(to + batch * elements(out) * bytes_of(out));
      std::vector<Complex> x = load(of_in, source);
      along_all(x, sign);
      store(of_out, target, x);
      // The library may overwrite the operand of such a transform, so the emulator does.
      if (!is_complex(out)) std::memset(source, 0xFF, elements(in) * bytes_of(in));
    }
    mark_written(s, to, out_bytes);
  }

 private:
  std::vector<Complex> load(const Elements& type, const uint8_t* source) const {
    const uint64_t last = lengths.back(), rows = points() / last;
    const uint64_t stored = is_complex(in) && is_real() ? last_half() : last;
    std::vector<Complex> x(points());
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = 0; k < stored; ++k) x[row * last + k] = type.load(source + (row * stored + k) * type.bytes());
    }
    if (stored == last) return x;
    poison_contradictions(x);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = stored; k < last; ++k) x[row * last + k] = std::conj(x[mirrored(row) * last + last - k]);
    }
    return x;
  }
  /// Sets elements of the operand to NaN, and thereby results, if it lacks the Hermitian symmetry of a transform of real
  /// numbers, because the library's result is then undefined. Only the columns that are their own mirror images are
  /// checked. Differences by rounding are allowed.
  void poison_contradictions(std::vector<Complex>& x) const {
    constexpr double kRounding = 1e-4;
    const uint64_t last = lengths.back(), rows = points() / last;
    double largest = 0;
    for (const Complex& one : x) largest = std::max(largest, std::abs(one));
    for (const uint64_t column : {uint64_t{0}, last / 2}) {
      if (column != 0 && last % 2 != 0) continue;
      for (uint64_t row = 0; row < rows; ++row) {
        Complex& here = x[row * last + column];
        if (std::abs(here - std::conj(x[mirrored(row) * last + column])) > kRounding * largest) here = std::nan("");
      }
    }
  }
  /// Returns the row whose indices are the negative ones (modulo the lengths) of a row.
  uint64_t mirrored(uint64_t row) const {
    uint64_t out_row = 0, scale = 1;
    for (size_t d = lengths.size() - 1; d-- > 0;) {
      out_row += (lengths[d] - row % lengths[d]) % lengths[d] * scale;
      scale *= lengths[d];
      row /= lengths[d];
    }
    return out_row;
  }
  void along_all(std::vector<Complex>& x, double sign) const {
    uint64_t step = 1;
    for (size_t d = lengths.size(); d-- > 0;) {
      const uint64_t n = lengths[d];
      std::vector<Complex> line(n);
      for (uint64_t begin = 0; begin < x.size(); ++begin) {
        if (begin / step % n != 0) continue;
        for (uint64_t k = 0; k < n; ++k) line[k] = x[begin + k * step];
        transform(line.data(), n, sign);
        for (uint64_t k = 0; k < n; ++k) x[begin + k * step] = line[k];
      }
      step *= n;
    }
  }
  void store(const Elements& type, uint8_t* target, const std::vector<Complex>& x) const {
    const uint64_t last = lengths.back(), rows = points() / last;
    const uint64_t stored = is_complex(out) && is_real() ? last_half() : last;
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = 0; k < stored; ++k) type.store(target + (row * stored + k) * type.bytes(), x[row * last + k]);
    }
  }
};

/// Returns the existing plans by their handles. The caller must hold the scheduler's lock.
std::map<cufftHandle, FftPlan>& fft_plans() {
  static auto* const plans = new std::map<cufftHandle, FftPlan>;
  return *plans;
}

cufftResult cufft_result(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUFFT_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
      return CUFFT_INVALID_VALUE;
    case CUDA_ERROR_INVALID_HANDLE:
      return CUFFT_INVALID_PLAN;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUFFT_ALLOC_FAILED;
    default:
      return CUFFT_EXEC_FAILED;
  }
}

}  // namespace

cufftResult cufftGetVersion(int* version) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = 1;
  return CUFFT_SUCCESS;
}

cufftResult cufftCreate(cufftHandle* plan) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    if (!plan) return CUDA_ERROR_INVALID_VALUE;
    auto& plans = fft_plans();
    *plan = plans.empty() ? 1 : plans.rbegin()->first + 1;
    plans[*plan].device = e.index;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftDestroy(cufftHandle plan) {
  return cufft_result(in_context(
      [&](Entry&) -> CUresult { return fft_plans().erase(plan) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }));
}

cufftResult cufftSetStream(cufftHandle plan, CUstream stream) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end() || !e.stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    found->second.stream = stream;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftSetAutoAllocation(cufftHandle plan, int allocates) {
  return cufft_result(in_context([&](Entry&) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end()) return CUDA_ERROR_INVALID_HANDLE;
    found->second.allocates = allocates != 0;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftSetWorkArea(cufftHandle plan, void* area) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end() || found->second.lengths.empty()) return CUDA_ERROR_INVALID_HANDLE;
    const auto address = reinterpret_cast<uint64_t>(area);
    if (!e.memory().problem_of(address, found->second.work_bytes(), true, false).empty())
      return CUDA_ERROR_INVALID_VALUE;
    found->second.area = address;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* lengths, long long* in_lengths,
                                long long in_stride, long long in_distance, cudaDataType_t in_type,
                                long long* out_lengths, long long out_stride, long long out_distance,
                                cudaDataType_t out_type, long long batches, size_t* work_bytes,
                                cudaDataType_t compute_type) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end()) return CUDA_ERROR_INVALID_HANDLE;
    if (rank < 1 || rank > 3 || !lengths || !in_lengths || !out_lengths || batches < 1 || !work_bytes)
      return CUDA_ERROR_INVALID_VALUE;
    FftPlan made;
    made.device = e.index;
    made.stream = found->second.stream;
    made.allocates = found->second.allocates;
    for (int i = 0; i < rank; ++i) {
      if (lengths[i] < 1) return CUDA_ERROR_INVALID_VALUE;
      made.lengths.push_back(static_cast<uint64_t>(lengths[i]));
    }
    made.in = in_type;
    made.out = out_type;
    made.batches = static_cast<uint64_t>(batches);
    const auto is_dense = [&](cudaDataType_t type, const long long* dims, long long stride, long long distance) {
      for (int i = 0; i < rank; ++i) {
        const bool is_half = i + 1 == rank && is_complex(type) && made.is_real();
        const uint64_t length = is_half ? made.last_half() : made.lengths[static_cast<size_t>(i)];
        if (dims[i] != static_cast<long long>(length)) return false;
      }
      return stride == 1 && distance == static_cast<long long>(made.elements(type));
    };
    const cudaDataType_t complex_type = is_complex(in_type) ? in_type : out_type;
    const bool has_types =
        is_complex(complex_type) && compute_type == complex_type && format_of(in_type) == format_of(out_type);
    if (!has_types || !is_dense(in_type, in_lengths, in_stride, in_distance) ||
        !is_dense(out_type, out_lengths, out_stride, out_distance))
      return CUDA_ERROR_INVALID_VALUE;
    *work_bytes = made.work_bytes();
    found->second = std::move(made);
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftXtExec(cufftHandle handle, void* in, void* out, int direction) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(handle);
    if (found == fft_plans().end() || found->second.lengths.empty()) return CUDA_ERROR_INVALID_HANDLE;
    if (direction != kFftForward && direction != kFftInverse) return CUDA_ERROR_INVALID_VALUE;
    const FftPlan& plan = found->second;
    if (!plan.allocates && plan.area == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto on = e.stream(plan.stream);
    if (!on || plan.device != e.index) return CUDA_ERROR_INVALID_VALUE;
    emulator::State* const s = e.state;
    const auto from = reinterpret_cast<uint64_t>(in), to = reinterpret_cast<uint64_t>(out);
    e.scheduler().enqueue(on, [s, plan, from, to, direction] { plan.run(*s, from, to, direction); });
    return CUDA_SUCCESS;
  }));
}

}  // namespace collet::gpu
