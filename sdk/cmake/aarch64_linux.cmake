# CMake toolchain: builds for AArch64 Linux on another machine, with Debian's cross compiler. COLLET_SYSROOT, a variable of CMake or of the
# environment, names a folder with Debian's packages for arm64, which `sdk/cmake/debian.py sysroot arm64` makes. Programs that the build
# runs, and tests, run in qemu-user. Packages are looked for there and in CMAKE_PREFIX_PATH.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(COLLET_SYSROOT "$ENV{COLLET_SYSROOT}" CACHE PATH "Debian's packages for arm64, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COLLET_SYSROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)  # no notes that gcc 10.1 passes some structs in another way than older ones
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${COLLET_SYSROOT}")
list(APPEND CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(COLLET_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
mark_as_advanced(COLLET_QEMU_AARCH64)
if(COLLET_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${COLLET_QEMU_AARCH64};-L;${COLLET_SYSROOT}")
endif()
