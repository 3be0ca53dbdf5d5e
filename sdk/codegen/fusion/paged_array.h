// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace collet::codegen {

/// An array of `size` elements whose memory is allocated when elements are first accessed, page by page. A block of a large graph uses few of
/// the graph's values, so tables by value must not cost time for all of them.
template <typename T>
class PagedArray {
 public:
  explicit PagedArray(size_t size, T initial = {})
      : page_(std::min(size, kPage)), pages_(size / kPage + 1), initial_(std::move(initial)) {}

  T& operator[](size_t i) {
    std::unique_ptr<T[]>& page = pages_[i / kPage];
    if (!page) {
      page = std::make_unique<T[]>(page_);
      std::fill_n(page.get(), page_, initial_);
    }
    return page[i % kPage];
  }
  const T& operator[](size_t i) const {
    const std::unique_ptr<T[]>& page = pages_[i / kPage];
    return page ? page[i % kPage] : initial_;
  }

 private:
  static constexpr size_t kPage = 1024;
  size_t page_;  ///< elements of a page
  std::vector<std::unique_ptr<T[]>> pages_;
  T initial_;
};

}  // namespace collet::codegen
