// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/strided.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace collet::hlo::eval {
namespace {

struct Element16 {
  uint64_t words[2];
};

template <typename T>
void copy_row(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, int64_t n) {
  auto* in = reinterpret_cast<const T*>(from);
  auto* out = reinterpret_cast<T*>(to);
  if (from_stride == 1 && to_stride == 1)
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  else if (from_stride == 0 && to_stride == 1)
    std::fill_n(out, n, *in);
  else if (to_stride == 1)
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * from_stride];
  else
    for (int64_t i = 0; i < n; ++i) out[i * to_stride] = in[i * from_stride];
}

using CopyRow = void (*)(const uint8_t*, int64_t, uint8_t*, int64_t, int64_t);

CopyRow row_copier(int bytes) {
  switch (bytes) {
    case 1:
      return copy_row<uint8_t>;
    case 2:
      return copy_row<uint16_t>;
    case 4:
      return copy_row<uint32_t>;
    case 8:
      return copy_row<uint64_t>;
    default:
      return copy_row<Element16>;
  }
}

}  // namespace

Ints row_major_strides(std::span<const int64_t> dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

int64_t product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

void merge_dims(Ints& dims, std::vector<Ints>& strides) {
  size_t kept = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool joins = kept > 0;
    for (const Ints& s : strides) joins = joins && s[kept - 1] == s[d] * dims[d];
    if (joins) {
      dims[kept - 1] *= dims[d];
      for (Ints& s : strides) s[kept - 1] = s[d];
    } else {
      dims[kept] = dims[d];
      for (Ints& s : strides) s[kept] = s[d];
      ++kept;
    }
  }
  dims.resize(kept);
  for (Ints& s : strides) s.resize(kept);
}

StridedCopy::StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> from_strides,
                         std::span<const int64_t> to_strides, int bytes)
    : dims_(dims.begin(), dims.end()),
      strides_{Ints(from_strides.begin(), from_strides.end()), Ints(to_strides.begin(), to_strides.end())},
      bytes_(bytes) {
  empty_ = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
  merge_dims(dims_, strides_);
  if (dims_.empty()) return;
  inner_ = dims_.back();
  from_inner_ = strides_[0].back();
  to_inner_ = strides_[1].back();
  dims_.pop_back();
  for (Ints& s : strides_) s.pop_back();
}

void StridedCopy::operator()(const uint8_t* from, uint8_t* to) const {
  if (empty_) return;
  const CopyRow copy = row_copier(bytes_);
  if (dims_.empty()) return copy(from, from_inner_, to, to_inner_, inner_);
  for (IndexIterator it(dims_, strides_); !it.done(); it.next())
    copy(from + it.offset(0) * bytes_, from_inner_, to + it.offset(1) * bytes_, to_inner_, inner_);
}

void copy_strided(std::span<const int64_t> dims, const uint8_t* from, std::span<const int64_t> from_strides,
                  uint8_t* to, std::span<const int64_t> to_strides, int bytes) {
  StridedCopy(dims, from_strides, to_strides, bytes)(from, to);
}

void fill(uint8_t* to, int64_t count, const uint8_t* value, int bytes) {
  if (count > 0) row_copier(bytes)(value, 0, to, 1, count);
}

IndexIterator::IndexIterator(std::span<const int64_t> dims, std::vector<Ints> strides)
    : dims_(dims.begin(), dims.end()), index_(dims.size()), offsets_(strides.size()), strides_(std::move(strides)) {
  done_ = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
}

void IndexIterator::reset() {
  std::fill(index_.begin(), index_.end(), 0);
  std::fill(offsets_.begin(), offsets_.end(), 0);
  done_ = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
}

void IndexIterator::seek(int64_t position) {
  reset();
  for (size_t d = dims_.size(); d-- > 0;) {
    index_[d] = position % dims_[d];
    position /= dims_[d];
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += index_[d] * strides_[k][d];
  }
  if (position) done_ = true;
}

void parallel(const EvalContext& context, int64_t count, int64_t cost,
              const std::function<void(int64_t, int64_t)>& work) {
  if (count <= 0) return;
  constexpr int64_t kWorthWhile = 1 << 19;
  const int64_t threads = std::min<int64_t>({context.threads(), count, cost / kWorthWhile + 1});
  if (threads <= 1) return work(0, count);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] { work(count * t / threads, count * (t + 1) / threads); });
  work(0, count / threads);
  for (std::thread& thread : others) thread.join();
}

Status check_size(const Shape& shape) {
  static const int64_t most = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (shape.byte_size() > most)
    return resource_exhausted("a value of shape " + shape.to_string() + " takes more memory than there is");
  return ok_status();
}

}  // namespace collet::hlo::eval
