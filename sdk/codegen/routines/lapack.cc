// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/lapack.h"

#include <link.h>
#include <collet/dynamic_library.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <semaphore>
#include <string>
#include <system_error>
#include <type_traits>

namespace collet::codegen {
namespace {

constexpr char kFile[] = "libcollet_lapack.so";
// It is linked so that it finds its own functions first, and needs the C library alone. With RTLD_DEEPBIND it would call the C library's
// `free` for memory of an allocator that the process has put before that, such as jemalloc: its Fortran runtime frees what
// functions of the C library have allocated.
constexpr int kOwn = RTLD_NOW | RTLD_LOCAL;

/// Returns the folder of the shared library or executable that contains this function.
std::string own_folder() {
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(reinterpret_cast<void*>(&has_lapack), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map)
    return {};
  // The executable has no name here. dladdr calls it by its first argument, which need not be a path.
  std::error_code ignored;
  return (*map->l_name ? std::filesystem::path(map->l_name) : std::filesystem::read_symlink("/proc/self/exe", ignored))
      .parent_path();
}

void* open_library() {
  if (const char* chosen = std::getenv("COLLET_LAPACK")) return *chosen ? dlopen(chosen, private_library()) : nullptr;
  const std::string folder = own_folder();
  for (const char* place : {"/", "/../", "/../lib/", "/../../"}) {
    if (void* library = folder.empty() ? nullptr : dlopen((folder + place + kFile).c_str(), kOwn)) return library;
  }
  return nullptr;
}

template <typename T>
bool find_all(void* library, char prefix, Lapack<T>& out) {
  const bool complex = !std::is_same_v<T, typename RealOf<T>::type>;
  bool there = true;
  const auto find = [&](auto& function, const std::string& name) {
    void* address = dlsym(library, (prefix + name + "_").c_str());
    there &= address != nullptr;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(out.potrf, "potrf");
  find(out.trsm, "trsm");
  find(out.getrf, "getrf");
  find(out.geqrf, "geqrf");
  find(out.orgqr, complex ? "ungqr" : "orgqr");
  find(out.gehrd, "gehrd");
  find(out.syevd_, complex ? "heevd" : "syevd");
  find(out.gesdd_, "gesdd");
  find(out.geev_, "geev");
  find(out.gees_, "gees");
  return there;
}

struct Library {
  Lapack<float> s;
  Lapack<double> d;
  Lapack<std::complex<float>> c;
  Lapack<std::complex<double>> z;
  bool there = false;
  /// The number of calls of the library that may still begin.
  std::unique_ptr<std::counting_semaphore<>> calls;

  Library() {
    void* library = open_library();  // never closed, because its functions are used until the process ends
    calls = std::make_unique<std::counting_semaphore<>>(library ? calls_at_once(library) : 1);
    if (!library) return;
    there = find_all(library, 's', s) && find_all(library, 'd', d) && find_all(library, 'c', c) &&
            find_all(library, 'z', z);
  }
  static const Library& get() {
    static const Library library;
    return library;
  }

 private:
  /// Returns how many calls may run at the same time. OpenBLAS reports whether it was built with threads; it is told to
  /// use only the calling thread. A library that the user has named may also be used elsewhere in the process and may
  /// have work memory for fewer calls: it gets one call at a time, and its number of threads is not changed.
  static std::ptrdiff_t calls_at_once(void* library) {
    if (std::getenv("COLLET_LAPACK")) return 1;
    constexpr std::ptrdiff_t kMost = 64;  // half of the calls for which Debian's OpenBLAS has work memory
    const auto parallel = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_parallel"));
    const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    if (!parallel || !set_threads || parallel() == 0) return 1;
    set_threads(1);
    return kMost;
  }
};

}  // namespace

bool has_lapack() {
  return Library::get().there;
}

LapackCall::LapackCall() {
  Library::get().calls->acquire();
}

LapackCall::~LapackCall() {
  Library::get().calls->release();
}

template <typename T>
const Lapack<T>* lapack() {
  const Library& all = Library::get();
  if (!all.there) return nullptr;
  if constexpr (std::is_same_v<T, float>) return &all.s;
  if constexpr (std::is_same_v<T, double>) return &all.d;
  if constexpr (std::is_same_v<T, std::complex<float>>) return &all.c;
  if constexpr (std::is_same_v<T, std::complex<double>>) return &all.z;
}

template <typename T>
void Lapack<T>::syevd(char jobz, char uplo, int32_t n, T* a, R* w, T* work, int32_t lwork, R* rwork, int32_t lrwork,
                      int32_t* iwork, int32_t liwork, int32_t& info) const {
  if constexpr (std::is_same_v<T, R>) {
    const auto f =
        reinterpret_cast<void (*)(Flag, Flag, Int, T*, Int, R*, T*, Int, int32_t*, Int, int32_t*, size_t, size_t)>(
            syevd_);
    f(&jobz, &uplo, &n, a, &n, w, work, &lwork, iwork, &liwork, &info, 1, 1);
  } else {
    const auto f = reinterpret_cast<void (*)(Flag, Flag, Int, T*, Int, R*, T*, Int, R*, Int, int32_t*, Int, int32_t*,
                                             size_t, size_t)>(syevd_);
    f(&jobz, &uplo, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  }
}

template <typename T>
void Lapack<T>::gesdd(char jobz, int32_t m, int32_t n, T* a, R* s, T* u, int32_t ldu, T* vt, int32_t ldvt, T* work,
                      int32_t lwork, R* rwork, int32_t* iwork, int32_t& info) const {
  if constexpr (std::is_same_v<T, R>) {
    const auto f =
        reinterpret_cast<void (*)(Flag, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, int32_t*, int32_t*, size_t)>(
            gesdd_);
    f(&jobz, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info, 1);
  } else {
    const auto f = reinterpret_cast<void (*)(Flag, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, R*, int32_t*,
                                             int32_t*, size_t)>(gesdd_);
    f(&jobz, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);
  }
}

template <typename T>
void Lapack<T>::geev(char jobvl, char jobvr, int32_t n, T* a, T* w, T* vl, T* vr, T* work, int32_t lwork, R* rwork,
                     int32_t& info) const {
  if constexpr (std::is_same_v<T, R>) {
    const auto f = reinterpret_cast<void (*)(Flag, Flag, Int, T*, Int, T*, T*, T*, Int, T*, Int, T*, Int, int32_t*,
                                             size_t, size_t)>(geev_);
    f(&jobvl, &jobvr, &n, a, &n, w, w + n, vl, &n, vr, &n, work, &lwork, &info, 1, 1);
  } else {
    const auto f = reinterpret_cast<void (*)(Flag, Flag, Int, T*, Int, T*, T*, Int, T*, Int, T*, Int, R*, int32_t*,
                                             size_t, size_t)>(geev_);
    f(&jobvl, &jobvr, &n, a, &n, w, vl, &n, vr, &n, work, &lwork, rwork, &info, 1, 1);
  }
}

template <typename T>
void Lapack<T>::gees(char jobvs, int32_t n, T* a, T* w, T* vs, T* work, int32_t lwork, R* rwork, int32_t& info) const {
  const char sort = 'N';
  int32_t selected = 0;
  if constexpr (std::is_same_v<T, R>) {
    const auto f = reinterpret_cast<void (*)(Flag, Flag, void*, Int, T*, Int, int32_t*, T*, T*, T*, Int, T*, Int,
                                             int32_t*, int32_t*, size_t, size_t)>(gees_);
    f(&jobvs, &sort, nullptr, &n, a, &n, &selected, w, w + n, vs, &n, work, &lwork, nullptr, &info, 1, 1);
  } else {
    const auto f = reinterpret_cast<void (*)(Flag, Flag, void*, Int, T*, Int, int32_t*, T*, T*, Int, T*, Int, R*,
                                             int32_t*, int32_t*, size_t, size_t)>(gees_);
    f(&jobvs, &sort, nullptr, &n, a, &n, &selected, w, vs, &n, work, &lwork, rwork, nullptr, &info, 1, 1);
  }
}

template const Lapack<float>* lapack();
template const Lapack<double>* lapack();
template const Lapack<std::complex<float>>* lapack();
template const Lapack<std::complex<double>>* lapack();
template struct Lapack<float>;
template struct Lapack<double>;
template struct Lapack<std::complex<float>>;
template struct Lapack<std::complex<double>>;

}  // namespace collet::codegen
