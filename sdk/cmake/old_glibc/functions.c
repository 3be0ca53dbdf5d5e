// SPDX-License-Identifier: Apache-2.0
// Functions that glibc 2.28 does not have, by those that it has. They are hidden: each library that needs one has its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// glibc 2.28 has these as inline functions over __xstat, whose versions differ between machines. The kernel's struct is glibc's on
// machines of 64 bits.
int fstatat(int folder, const char* restrict path, struct stat* restrict out, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}
int stat(const char* restrict path, struct stat* restrict out) {
  return fstatat(AT_FDCWD, path, out, 0);
}
int lstat(const char* restrict path, struct stat* restrict out) {
  return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* out) {
  return (int)syscall(SYS_fstat, file, out);
}
int stat64(const char* restrict path, struct stat64* restrict out) {
  return stat(path, (struct stat*)out);
}
int lstat64(const char* restrict path, struct stat64* restrict out) {
  return lstat(path, (struct stat*)out);
}
int fstat64(int file, struct stat64* out) {
  return fstat(file, (struct stat*)out);
}
int fstatat64(int folder, const char* restrict path, struct stat64* restrict out, int flags) {
  return fstatat(folder, path, (struct stat*)out, flags);
}
int mknodat(int folder, const char* path, mode_t mode, dev_t device) {
  return (int)syscall(SYS_mknodat, folder, path, mode, (unsigned)device);
}
int mknod(const char* path, mode_t mode, dev_t device) {
  return mknodat(AT_FDCWD, path, mode, device);
}

pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}

// Ends the process where the kernel gives no random numbers, as glibc does: callers cannot be told.
uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
    if (errno != EINTR) abort();
  }
  return number;
}

// The headers of glibc 2.38 and later rename functions that read numbers, because they take binary ones (0b1), too.
#define READS_INTEGER(type, name)                                         \
  type old_##name(const char* text, char** end, int base) __asm__(#name); \
  type __isoc23_##name(const char* text, char** end, int base);           \
  type __isoc23_##name(const char* text, char** end, int base) {          \
    return old_##name(text, end, base);                                   \
  }
READS_INTEGER(long, strtol)
READS_INTEGER(long long, strtoll)
READS_INTEGER(unsigned long, strtoul)
READS_INTEGER(unsigned long long, strtoull)
READS_INTEGER(intmax_t, strtoimax)
READS_INTEGER(uintmax_t, strtoumax)

int old_vsscanf(const char* text, const char* format, va_list values) __asm__("vsscanf");
int __isoc23_vsscanf(const char* text, const char* format, va_list values);
int __isoc23_vsscanf(const char* text, const char* format, va_list values) {
  return old_vsscanf(text, format, values);
}
int __isoc23_sscanf(const char* text, const char* format, ...);
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = old_vsscanf(text, format, values);
  va_end(values);
  return count;
}

// libstdc++ leaves out atomic operations where this says that there is one thread. It is never said.
char __libc_single_threaded = 0;

// Counts of 64 bits where this machine's glibc has them, else those of mallinfo, which are cut to 32 bits.
struct mallinfo2 mallinfo2(void) {
  struct mallinfo2 (*newer)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
  if (newer) return newer();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
  const struct mallinfo2 info = {
      .arena = (unsigned)old.arena,
      .ordblks = (unsigned)old.ordblks,
      .smblks = (unsigned)old.smblks,
      .hblks = (unsigned)old.hblks,
      .hblkhd = (unsigned)old.hblkhd,
      .usmblks = (unsigned)old.usmblks,
      .fsmblks = (unsigned)old.fsmblks,
      .uordblks = (unsigned)old.uordblks,
      .fordblks = (unsigned)old.fordblks,
      .keepcost = (unsigned)old.keepcost,
  };
  return info;
}

enum { kNanoseconds = 1000000000 };

// Returns the time of CLOCK_REALTIME at which `clock` shows `time`, if nobody sets it until then.
static struct timespec real_time(clockid_t clock, const struct timespec* time) {
  if (clock == CLOCK_REALTIME) return *time;
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  real.tv_sec += time->tv_sec - now.tv_sec;
  real.tv_nsec += time->tv_nsec - now.tv_nsec;
  if (real.tv_nsec < 0) real.tv_sec -= 1, real.tv_nsec += kNanoseconds;
  if (real.tv_nsec >= kNanoseconds) real.tv_sec += 1, real.tv_nsec -= kNanoseconds;
  return real;
}

// A clock that is set while these wait makes the wait longer or shorter; who calls them looks at its own clock afterwards.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  const struct timespec real = real_time(clock, until);
  return pthread_cond_timedwait(condition, mutex, &real);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec real = real_time(clock, until);
  return pthread_mutex_timedlock(mutex, &real);
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const struct timespec* until) {
  const struct timespec real = real_time(clock, until);
  return pthread_rwlock_timedrdlock(lock, &real);
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const struct timespec* until) {
  const struct timespec real = real_time(clock, until);
  return pthread_rwlock_timedwrlock(lock, &real);
}
