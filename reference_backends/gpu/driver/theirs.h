// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For tests: compares our declarations of the driver and of libraries with those of the CUDA toolkit.

#include <type_traits>

/// Maps a type that we declare to the toolkit's type.
template <typename T>
struct Theirs {
  using Type = T;
};
template <typename T>
struct Theirs<T*> {
  using Type = typename Theirs<T>::Type*;
};
template <typename T>
struct Theirs<const T> {
  using Type = const typename Theirs<T>::Type;
};
template <typename R, typename... A>
struct Theirs<R (*)(A...)> {
  using Type = typename Theirs<R>::Type (*)(typename Theirs<A>::Type...);
};

/// States that the type collet::gpu::`ours` stands for the toolkit's type `theirs`.
#define COLLET_SAME_TYPE(ours, theirs)                          \
  template <>                                                   \
  struct Theirs<collet::gpu::ours> {                            \
    using Type = ::theirs;                                      \
    static_assert(sizeof(Type) == sizeof(collet::gpu::ours));   \
    static_assert(alignof(Type) == alignof(collet::gpu::ours)); \
  };
