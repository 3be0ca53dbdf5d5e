# Options of the build, and the packages that are searched for on the machine.

find_package(LLVM 19.1 CONFIG QUIET)  # 19.1 is the only minor version that LLVM 19 has
option(COLLET_WITH_LLVM "Build sdk/codegen and the backends that need LLVM 19" ${LLVM_FOUND})
option(COLLET_PORTABLE "Build what packages hold: files that need the C and C++ libraries alone, with licences and an SBOM" OFF)
option(COLLET_STATIC_LLVM "Link LLVM into what needs it, for plugins that run without libLLVM.so" ${COLLET_PORTABLE})
# The OpenBLAS that several threads may call at the same time (the build with threads), and the archive of Fortran's
# library that it needs.
find_library(COLLET_OPENBLAS NAMES libopenblas.a NO_DEFAULT_PATH
  PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread" "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial")
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libgfortran.a OUTPUT_VARIABLE fortran OUTPUT_STRIP_TRAILING_WHITESPACE)
set(COLLET_HAS_OPENBLAS OFF)
if(COLLET_OPENBLAS AND EXISTS "${fortran}")
  set(COLLET_HAS_OPENBLAS ON)
endif()
option(COLLET_WITH_LAPACK "Build libcollet_lapack.so, which the cpu backend opens for factorizations" ${COLLET_HAS_OPENBLAS})
if(COLLET_WITH_LAPACK AND NOT COLLET_HAS_OPENBLAS)
  message(FATAL_ERROR "COLLET_WITH_LAPACK is on, but OpenBLAS was not found (Debian: libopenblas-pthread-dev libgfortran-12-dev)")
endif()
option(COLLET_WITH_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(COLLET_WERROR "Treat warnings as errors" OFF)
option(COLLET_LIBFUZZER "Build fuzz targets with libFuzzer (needs clang)" OFF)
option(COLLET_COVERAGE "Count which lines run, by LLVM's source-based coverage (needs clang)" OFF)
set(COLLET_SANITIZE "" CACHE STRING "Sanitizers for all of our code, such as address,undefined or thread")

if(COLLET_WITH_LLVM AND NOT LLVM_FOUND)
  message(FATAL_ERROR "COLLET_WITH_LLVM is on, but LLVM 19 was not found (Debian: llvm-19-dev)")
endif()

if(COLLET_PORTABLE AND COLLET_WITH_LLVM AND NOT COLLET_STATIC_LLVM)
  message(FATAL_ERROR "COLLET_PORTABLE is on and COLLET_STATIC_LLVM off: the backends would need libLLVM.so")
endif()
find_package(Boost 1.81 REQUIRED)
# collet::fmt: the library, or its headers alone, for which there is no library to ship.
find_package(fmt REQUIRED)
add_library(collet_fmt INTERFACE)
add_library(collet::fmt ALIAS collet_fmt)
target_link_libraries(collet_fmt INTERFACE $<IF:$<BOOL:${COLLET_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>)
find_package(CLI11 REQUIRED)
find_package(Protobuf REQUIRED)  # protobuf-lite and protoc, used only by hlo/proto
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(COLLET_WITH_TESTS)
  find_package(GTest REQUIRED)
endif()

# collet::mpfr: for conformance/oracle. It brings no CMake package.
find_library(COLLET_MPFR_LIBRARY mpfr REQUIRED)
find_path(COLLET_MPFR_INCLUDE_DIR mpfr.h REQUIRED)
mark_as_advanced(COLLET_MPFR_LIBRARY COLLET_MPFR_INCLUDE_DIR)
add_library(collet_mpfr INTERFACE)
add_library(collet::mpfr ALIAS collet_mpfr)
target_include_directories(collet_mpfr SYSTEM INTERFACE "${COLLET_MPFR_INCLUDE_DIR}")
target_link_libraries(collet_mpfr INTERFACE "${COLLET_MPFR_LIBRARY}")
# MPFR and GMP are under the LGPL: whoever gets a package must be able to replace them, so they stay libraries of their own.
# libmpfr has no RUNPATH by which it would find the shipped libgmp, so the program names that too.
if(COLLET_PORTABLE)
  find_library(COLLET_GMP_LIBRARY gmp REQUIRED)
  mark_as_advanced(COLLET_GMP_LIBRARY)
  target_link_options(collet_mpfr INTERFACE "-Wl,--push-state,--no-as-needed,${COLLET_GMP_LIBRARY},--pop-state")
endif()

# collet::llvm: LLVM's headers (as system headers, to suppress their warnings) and its shared library, or those of its
# archives that the host needs; unused sections and symbols are removed.
if(COLLET_WITH_LLVM)
  add_library(collet_llvm INTERFACE)
  add_library(collet::llvm ALIAS collet_llvm)
  target_include_directories(collet_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  list(REMOVE_ITEM llvm_definitions -D_GNU_SOURCE)  # g++ sets it already
  target_compile_definitions(collet_llvm INTERFACE ${llvm_definitions})
  if(COLLET_STATIC_LLVM)
    set(llvm_components nativecodegen orcjit passes)
    if("NVPTX" IN_LIST LLVM_TARGETS_TO_BUILD)  # used by the gpu backend
      list(APPEND llvm_components NVPTX)
      target_compile_definitions(collet_llvm INTERFACE COLLET_NVPTX_TARGET)
    endif()
    # Used by `collet compile` and by backends of other machines. Wheels of frontends have no use for them, but the same build.
    set(COLLET_LLVM_TARGETS)
    if(COLLET_PORTABLE)
      foreach(target IN ITEMS AArch64 RISCV)
        if("${target}" IN_LIST LLVM_TARGETS_TO_BUILD)
          list(APPEND llvm_components ${target})
          list(APPEND COLLET_LLVM_TARGETS ${target})
        endif()
      endforeach()
    endif()
    llvm_map_components_to_libnames(llvm_libraries ${llvm_components})
    # Libraries that LLVM itself depends on are linked statically, too, if there are archives of them.
    foreach(library ZLIB::ZLIB=libz.a zstd::libzstd_shared=libzstd.a)
      string(REPLACE "=" ";" pair "${library}")
      list(GET pair 0 target)
      list(GET pair 1 file)
      find_library(COLLET_ARCHIVE_${file} ${file})
      if(TARGET ${target} AND COLLET_ARCHIVE_${file})
        foreach(suffix "" _NONE _RELEASE _RELWITHDEBINFO _NOCONFIG)
          set_target_properties(${target} PROPERTIES IMPORTED_LOCATION${suffix} "${COLLET_ARCHIVE_${file}}")
        endforeach()
      endif()
    endforeach()
    target_link_libraries(collet_llvm INTERFACE ${llvm_libraries})
    target_link_options(collet_llvm INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,--strip-all)
  else()
    target_link_libraries(collet_llvm INTERFACE LLVM)
    target_compile_definitions(collet_llvm INTERFACE COLLET_ALL_TARGETS)  # the shared library contains all targets
  endif()
endif()
