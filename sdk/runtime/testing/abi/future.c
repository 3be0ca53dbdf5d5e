/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that was written for the headers of future.py, with the memory and the kernels of 1.0/c. It fills and reads newer
 * members where the other side has room for them, states a newer opset, and knows a type, a trait and a table that the SDK
 * does not know. With TEST_NEXT_MAJOR its table has the next major version, and its entry function does not look at the
 * host's. */
#include <collet/tables.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"

/* Returns 1 if the struct at `s`, which begins with struct_size, has `member`. */
#define HAS(s, member) ((s)->struct_size >= (const char*)(&(s)->member + 1) - (const char*)(s))

static const struct collet_memory_space spaces[] = {{0, 64, COLLET_SPACE_DEFAULT, "device", {0, 0}}};
static const struct collet_type_support types[] = {
    {COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE | COLLET_MAY_FUTURE},
    {COLLET_TYPE_FUTURE8, COLLET_MAY_STORE | COLLET_MAY_COMPUTE},
    {COLLET_TYPE_S32, COLLET_MAY_STORE},
    {COLLET_TYPE_PRED, COLLET_MAY_STORE},
};

static char instance;

/* For the table "memory_stats": the bytes of each buffer, by the number in the low half of its handle. */
static atomic_ullong sizes[1 << 16];
static atomic_ullong bytes_in_use, peak_bytes_in_use, allocations;

static void count(collet_backend_buffer* buffer, uint64_t bytes) {
  const unsigned long long before = atomic_exchange(&sizes[((uint32_t)(uintptr_t)buffer - 1) & 0xffff], bytes);
  const unsigned long long now = atomic_fetch_add(&bytes_in_use, bytes - before) + bytes - before;
  unsigned long long peak = atomic_load(&peak_bytes_in_use);
  while (peak < now && !atomic_compare_exchange_weak(&peak_bytes_in_use, &peak, now)) {
  }
  atomic_fetch_add(&allocations, bytes ? 1 : -1);
}

static collet_status future_open(const struct collet_open_options* options, collet_backend_instance** out,
                                 struct collet_instance_info* info, struct collet_error* error) {
  if (options->target) return acme_fail(error, COLLET_NOT_FOUND, "future has no targets");
  if (options->pairs) return acme_fail(error, COLLET_INVALID_ARGUMENT, "future has no options");
  if (HAS(options, future_field) && options->future_field)
    return acme_fail(error, COLLET_UNIMPLEMENTED, "an option that future does not have");
  info->opset = COLLET_OPSET;
  info->device_count = 1;
  info->name = "future";
  info->version = "0.9.0";
  if (HAS(info, future_field)) info->future_field = 1;
  *out = (collet_backend_instance*)&instance;
  return COLLET_OK;
}

static void future_close(collet_backend_instance* opened) {
  (void)opened;
}

static collet_status future_device_info(collet_backend_instance* opened, uint32_t device,
                                        struct collet_device_info* info, struct collet_error* error) {
  (void)opened;
  if (device != 0) return acme_fail(error, COLLET_OUT_OF_RANGE, "future has one device");
  info->traits = COLLET_TRAIT_FUTURE;
  info->kind = "Future stand-in";
  info->fingerprint = "future-0";
  info->spaces = spaces;
  info->space_count = sizeof spaces / sizeof spaces[0];
  info->types = types;
  info->type_count = sizeof types / sizeof types[0];
  if (HAS(info, future_field)) info->future_field = 1;
  return COLLET_OK;
}

static collet_status future_alloc(collet_backend_instance* opened, uint32_t device, uint32_t space, uint64_t bytes,
                                  uint64_t alignment, collet_backend_buffer** out, void** out_host,
                                  struct collet_error* error) {
  (void)opened;
  if (device != 0 || space != 0) return acme_fail(error, COLLET_OUT_OF_RANGE, "no such device or memory space");
  if (alignment & (alignment - 1))
    return acme_fail(error, COLLET_INVALID_ARGUMENT, "an alignment that is no power of two");
  collet_backend_buffer* buffer = acme_memory_new(bytes, alignment < 64 ? 64 : alignment);
  if (!buffer) return acme_fail(error, COLLET_RESOURCE_EXHAUSTED, "out of device memory");
  count(buffer, bytes);
  *out = buffer;
  *out_host = NULL;
  return COLLET_OK;
}

static void future_free(collet_backend_instance* opened, collet_backend_buffer* buffer) {
  (void)opened;
  count(buffer, 0);
  acme_memory_free(buffer);
}

static char* end_of(const struct collet_place* place, uint64_t bytes) {
  if (place->buffer) return acme_memory_at(place->buffer, place->offset, bytes);
  return (char*)place->host + place->offset;
}

static collet_status future_copy(collet_backend_instance* opened, const struct collet_copy_region* regions,
                                 uint32_t count, const struct collet_sync* sync, struct collet_error* error) {
  (void)opened;
  if (sync) return acme_fail(error, COLLET_UNIMPLEMENTED, "future has no queues");
  for (uint32_t i = 0; i < count; ++i)
    if (regions[i].bytes && (!end_of(&regions[i].from, regions[i].bytes) || !end_of(&regions[i].to, regions[i].bytes)))
      return acme_fail(error, COLLET_OUT_OF_RANGE, "a copy that does not lie inside its buffer");
  for (uint32_t i = 0; i < count; ++i)
    if (regions[i].bytes)
      memcpy(end_of(&regions[i].to, regions[i].bytes), end_of(&regions[i].from, regions[i].bytes), regions[i].bytes);
  return COLLET_OK;
}

static collet_status future_compile(collet_backend_instance* opened, const struct collet_program* program,
                                    const struct collet_compile_options* options,
                                    collet_backend_executable** out_executable, struct collet_executable_info* info,
                                    struct collet_rejection* rejection, struct collet_error* error) {
  if (HAS(options, future_function) && options->future_function) options->future_function();
  const collet_status code = acme_compile(opened, program, options, out_executable, info, rejection, error);
  if (code == COLLET_OK && HAS(info, future_field)) info->future_field = 1;
  return code;
}

static collet_status memory_stats(collet_backend_instance* opened, uint32_t device, uint32_t space,
                                  struct collet_memory_stats* stats, struct collet_error* error) {
  (void)opened;
  if (device != 0 || space != 0) return acme_fail(error, COLLET_OUT_OF_RANGE, "no such device or memory space");
  stats->bytes_in_use = atomic_load(&bytes_in_use);
  stats->peak_bytes_in_use = atomic_load(&peak_bytes_in_use);
  stats->bytes_limit = 0;
  stats->allocations = atomic_load(&allocations);
  if (HAS(stats, future_field)) stats->future_field = 1;
  return COLLET_OK;
}

static void future_function(void) {}

static const struct collet_memory_stats_table memory_stats_table = {
    .struct_size = sizeof memory_stats_table, .get = memory_stats, .future_function = future_function};

static const void* future_query(collet_backend_instance* opened, const char* name, uint32_t version) {
  (void)opened;
  return strcmp(name, "memory_stats") == 0 && version == 1 ? &memory_stats_table : NULL;
}

static const struct collet_backend table = {
    .struct_size = sizeof(struct collet_backend),
#ifdef TEST_NEXT_MAJOR
    .abi_major = COLLET_ABI_MAJOR + 1,
#else
    .abi_major = COLLET_ABI_MAJOR,
#endif
    .abi_minor = COLLET_ABI_MINOR,
    .open = future_open,
    .close = future_close,
    .device_info = future_device_info,
    .alloc = future_alloc,
    .free = future_free,
    .copy = future_copy,
    .supports = acme_supports,
    .compile = future_compile,
    .execute = acme_execute,
    .release = acme_release,
    .query = future_query,
    .future_function = future_function,
};

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out,
                                   struct collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR) return acme_fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  *out = &table;
  return COLLET_OK;
}
