/* SPDX-License-Identifier: Apache-2.0 */
#include <collet/backend.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"

/* The first half of the table: six functions, and every program runs. The fields filled in here have been there since
 * ABI 1.0; a newer one is only written where the struct's struct_size has room for it. */

static const struct collet_memory_space spaces[] = {
    {.bytes = 0, .alignment = 64, .flags = COLLET_SPACE_DEFAULT, .kind = "device"}};

/* The types that the device holds, and those that it computes with. */
static const struct collet_type_support types[] = {
    {COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
    {COLLET_TYPE_S32, COLLET_MAY_STORE},
    {COLLET_TYPE_PRED, COLLET_MAY_STORE},
};

/* There is no state: every instance is this one. */
static char instance;

static collet_status acme_open(const struct collet_open_options* options, collet_backend_instance** out_instance,
                               struct collet_instance_info* info, struct collet_error* error) {
  if (options->target) return acme_fail(error, COLLET_NOT_FOUND, "acme has no targets");
  if (options->pairs) return acme_fail(error, COLLET_INVALID_ARGUMENT, "acme has no options");
  info->opset = ACME_OPSET;
  info->device_count = 1;
  info->name = "acme";
  info->version = "0.1.0";
  *out_instance = (collet_backend_instance*)&instance;
  return COLLET_OK;
}

static void acme_close(collet_backend_instance* opened) {
  (void)opened;
}

static collet_status acme_device_info(collet_backend_instance* opened, uint32_t device, struct collet_device_info* info,
                                      struct collet_error* error) {
  (void)opened;
  if (device != 0) return acme_fail(error, COLLET_OUT_OF_RANGE, "acme has one device");
  info->kind = "Acme stand-in";
  info->fingerprint = "acme-0";
  info->spaces = spaces;
  info->space_count = sizeof spaces / sizeof spaces[0];
  info->types = types;
  info->type_count = sizeof types / sizeof types[0];
  return COLLET_OK;
}

static collet_status acme_alloc(collet_backend_instance* opened, uint32_t device, uint32_t space, uint64_t bytes,
                                uint64_t alignment, collet_backend_buffer** out_buffer, void** out_host_pointer,
                                struct collet_error* error) {
  (void)opened;
  if (device != 0 || space != 0) return acme_fail(error, COLLET_OUT_OF_RANGE, "no such device or memory space");
  if (alignment & (alignment - 1))
    return acme_fail(error, COLLET_INVALID_ARGUMENT, "an alignment that is no power of two");
  if (alignment < 64) alignment = 64;
  collet_backend_buffer* buffer = acme_memory_new(bytes, alignment);
  if (!buffer) return acme_fail(error, COLLET_RESOURCE_EXHAUSTED, "out of device memory");
  *out_buffer = buffer;
  *out_host_pointer = NULL; /* the host cannot see this memory */
  return COLLET_OK;
}

static void acme_free(collet_backend_instance* opened, collet_backend_buffer* buffer) {
  (void)opened;
  acme_memory_free(buffer);
}

/* One end of a copy as an address; null where it does not lie inside its buffer. */
static char* end_of(const struct collet_place* place, uint64_t bytes) {
  if (place->buffer) return acme_memory_at(place->buffer, place->offset, bytes);
  return (char*)place->host + place->offset;
}

static collet_status acme_copy(collet_backend_instance* opened, const struct collet_copy_region* regions,
                               uint32_t count, const struct collet_sync* sync, struct collet_error* error) {
  (void)opened;
  if (sync) return acme_fail(error, COLLET_UNIMPLEMENTED, "acme has no queues");
  for (uint32_t i = 0; i < count; ++i) {
    if (regions[i].bytes == 0) continue;
    if (!end_of(&regions[i].from, regions[i].bytes) || !end_of(&regions[i].to, regions[i].bytes)) {
      return acme_fail(error, COLLET_OUT_OF_RANGE, "a copy that does not lie inside its buffer");
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (regions[i].bytes == 0) continue;
    memcpy(end_of(&regions[i].to, regions[i].bytes), end_of(&regions[i].from, regions[i].bytes), regions[i].bytes);
  }
  return COLLET_OK;
}

static const struct collet_backend table = {
    .struct_size = sizeof(struct collet_backend),
    .abi_major = COLLET_ABI_MAJOR,
    .abi_minor = COLLET_ABI_MINOR,
    .open = acme_open,
    .close = acme_close,
    .device_info = acme_device_info,
    .alloc = acme_alloc,
    .free = acme_free,
    .copy = acme_copy,
    .supports = acme_supports,
    .compile = acme_compile,
    .execute = acme_execute,
    .release = acme_release,
};

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out_backend,
                                   struct collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR) return acme_fail(error, COLLET_FAILED_PRECONDITION, "built for another ABI");
  *out_backend = &table;
  return COLLET_OK;
}
