/* SPDX-License-Identifier: Apache-2.0 */
/* The device: a process that executes the commands in its ring, one after another. It knows nothing of Collet.
 *
 *     device FILE SOCKET    numbers of open descriptors: the shared file, and a socket for bytes that wake a sleeper */
#define _GNU_SOURCE
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "protocol.h"

static int sock;

/* Ends the process when the host closes its end of the socket, even while a kernel runs. */
static void* watch(void* unused) {
  struct pollfd end = {sock, 0, 0};
  while (poll(&end, 1, -1) <= 0) continue;
  (void)unused;
  _exit(0);
}

static void wake_host(struct RiscvControl* control) {
  if (!__atomic_exchange_n(&control->host_sleeps, 0, __ATOMIC_SEQ_CST)) return;
  if (write(sock, "", 1) != 1) _exit(0);
}

static uint64_t wait_beyond(struct RiscvControl* control, uint64_t position) {
  for (;;) {
    uint64_t submitted = __atomic_load_n(&control->submitted, __ATOMIC_SEQ_CST);
    char byte;
    if (submitted != position) return submitted;
    __atomic_store_n(&control->device_sleeps, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&control->submitted, __ATOMIC_SEQ_CST) != position) continue;
    if (read(sock, &byte, 1) != 1) _exit(0);
  }
}

static void* at(uint64_t address) {
  return (void*)(uintptr_t)address;
}

static void execute(const uint64_t* command) {
  switch (command[0] & 0xff) {
    case RISCV_WRITE:
      memcpy(at(command[1]), command + 3, command[2]);
      break;
    case RISCV_COPY:
      memcpy(at(command[1]), at(command[2]), command[3]);
      break;
    case RISCV_FLUSH:
      __builtin___clear_cache((char*)at(command[1]), (char*)at(command[1] + command[2]));
      break;
    case RISCV_LAUNCH:
      ((void (*)(const uint64_t*))(uintptr_t)command[1])(command + 2);
      break;
    default:
      break;
  }
}

int main(int count, char** arguments) {
  const uint64_t functions[] = {
#define ADDRESS(name) (uint64_t)(uintptr_t)name,
      RISCV_FUNCTIONS(ADDRESS)
#undef ADDRESS
  };
  const struct rlimit no_core = {0, 0};
  pthread_t watcher;
  if (count != 3) return 2;
  const int file = atoi(arguments[1]);
  sock = atoi(arguments[2]);
  setrlimit(RLIMIT_CORE, &no_core);
  struct RiscvControl* control = mmap(NULL, RISCV_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (control == MAP_FAILED || pthread_create(&watcher, NULL, watch, NULL) != 0) return 3;
  void* memory = mmap(NULL, control->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, RISCV_CONTROL_BYTES);
  void* code = mmap(NULL, control->code_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || code == MAP_FAILED) return 4;
  control->memory = (uint64_t)(uintptr_t)memory;
  control->code = (uint64_t)(uintptr_t)code;
  memcpy(control->functions, functions, sizeof functions);
  __atomic_store_n(&control->is_ready, (uint32_t)sizeof *control, __ATOMIC_SEQ_CST);
  wake_host(control);
  for (uint64_t position = 0, submitted = 0;;) {
    if (position == submitted) submitted = wait_beyond(control, position);
    const uint64_t* command = control->ring + position % RISCV_RING;
    execute(command);
    position += command[0] >> 8;
    __atomic_store_n(&control->done, position, __ATOMIC_SEQ_CST);
    wake_host(control);
  }
}
