# Compiler flags for all targets. None of them depends on the build machine: no -march=native.

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# The build tree has the shape of the install tree, so that the tool finds its plugins and templates
# the same way in both.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Libraries lie here; the tool looks for its plugins in ../lib")
include(GNUInstallDirs)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_BINDIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")
set(COLLET_BACKENDS_OUTPUT_DIR "${PROJECT_BINARY_DIR}/lib/collet/backends")
set(COLLET_TEST_BACKENDS_OUTPUT_DIR "${PROJECT_BINARY_DIR}/lib/collet/test_backends")
set(COLLET_TRANSPORTS_OUTPUT_DIR "${PROJECT_BINARY_DIR}/lib/collet/transports")
set(COLLET_INSTALL_TRANSPORTS_DIR "${CMAKE_INSTALL_LIBDIR}/collet/transports")
set(COLLET_INSTALL_BACKENDS_DIR "${CMAKE_INSTALL_LIBDIR}/collet/backends")
set(COLLET_INSTALL_SHARE_DIR "${CMAKE_INSTALL_DATADIR}/collet")
set(COLLET_INSTALL_DOC_DIR "${CMAKE_INSTALL_DATADIR}/doc/collet")
set(COLLET_INSTALL_LIBRARIES_DIR "${CMAKE_INSTALL_LIBDIR}/collet/libraries")  # of others, in packages

set(COLLET_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wcast-qual -Wundef)
set(COLLET_CXX_WARNINGS -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND COLLET_CXX_WARNINGS -Wno-restrict)  # gcc 12 is wrong about std::string + std::string
endif()
set(COLLET_C_WARNINGS -Wstrict-prototypes)
if(COLLET_WERROR)
  list(APPEND COLLET_WARNINGS -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With optimisation, gcc 12 reports these warnings inside libstdc++ for correct code, so they are not errors.
    list(APPEND COLLET_WARNINGS -Wno-error=array-bounds -Wno-error=free-nonheap-object -Wno-error=maybe-uninitialized
         -Wno-error=restrict -Wno-error=stringop-overflow -Wno-error=stringop-overread)
  endif()
endif()
add_compile_options(${COLLET_WARNINGS} "$<$<COMPILE_LANGUAGE:CXX>:${COLLET_CXX_WARNINGS}>"
                    "$<$<COMPILE_LANGUAGE:C>:${COLLET_C_WARNINGS}>")

# Object files do not contain the path of the source tree, so that they are the same everywhere and ccache can share
# them.
add_compile_options("-ffile-prefix-map=${PROJECT_BINARY_DIR}/=build/"
                    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-fcolor-diagnostics)
else()
  add_compile_options(-fdiagnostics-color=auto)
endif()

find_program(COLLET_CCACHE ccache)
mark_as_advanced(COLLET_CCACHE)
if(COLLET_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
          "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${COLLET_CCACHE}")
    endif()
  endforeach()
endif()

# Debian installs lld as ld.lld-19, a name that gcc does not accept, so a link with the name that gcc searches for is
# made.
find_program(COLLET_LLD NAMES ld.lld-19 ld.lld)
mark_as_advanced(COLLET_LLD)
if(COLLET_LLD)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/linker")
  file(CREATE_LINK "${COLLET_LLD}" "${PROJECT_BINARY_DIR}/linker/ld.lld" SYMBOLIC)
  add_link_options(-fuse-ld=lld "-B${PROJECT_BINARY_DIR}/linker")
endif()
add_link_options(-Wl,--as-needed)

# What is linked needs no newer glibc than this, and no libstdc++ of the system.
if(COLLET_GLIBC)
  set(flags)
  if(CMAKE_SYSROOT)
    set(flags "--flag=--sysroot=${CMAKE_SYSROOT}")
  endif()
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/old_glibc/stubs.py" --version "${COLLET_GLIBC}"
                          --compiler "${CMAKE_C_COMPILER}" ${flags} --output "${PROJECT_BINARY_DIR}/glibc" COMMAND_ERROR_IS_FATAL ANY)
  add_link_options("-B${PROJECT_BINARY_DIR}/glibc" "-L${PROJECT_BINARY_DIR}/glibc" "$<$<LINK_LANGUAGE:CXX>:-static-libstdc++>" -Wl,--gc-sections
                   # The system's libraries, libgcc_s.so.1 among them, may use functions that are not there.
                   -Wl,--allow-shlib-undefined)
endif()

if(COLLET_SANITIZE)
  add_compile_options(-fsanitize=${COLLET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${COLLET_SANITIZE})
  if(COLLET_SANITIZE MATCHES "undefined")
    # Both sides of a plugin's interface have their own type information of a class, which this sanitizer takes for an
    # error.
    add_compile_options(-fno-sanitize=vptr)
    add_link_options(-fno-sanitize=vptr)
  endif()
endif()
if(COLLET_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "COLLET_LIBFUZZER needs clang; without it the fuzz targets use a small driver of our own")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(COLLET_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "COLLET_COVERAGE needs clang")
  endif()
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()
