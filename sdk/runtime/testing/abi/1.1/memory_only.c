/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest backend: a device that holds data. Six functions, and every program runs, all its ops on the fallback. */
#include <collet/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collet_backend_instance {
  uint32_t devices;
};

struct collet_backend_buffer {
  char* data;
  uint64_t bytes;
};

static collet_status fail(struct collet_error* error, collet_status code, const char* message) {
  error->code = code;
  snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

static collet_status open_backend(const struct collet_open_options* options, collet_backend_instance** out,
                                  struct collet_instance_info* info, struct collet_error* error) {
  if (options->target) return fail(error, COLLET_NOT_FOUND, "memory_only has no targets");
  if (options->pairs) return fail(error, COLLET_INVALID_ARGUMENT, "memory_only has no options");
  collet_backend_instance* instance = malloc(sizeof *instance);
  if (!instance) return fail(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  instance->devices = options->device_count ? options->device_count : 1;
  info->opset = COLLET_OPSET;
  info->device_count = instance->devices;
  info->name = "memory_only";
  info->version = "1";
  *out = instance;
  return COLLET_OK;
}

static void close_backend(collet_backend_instance* instance) {
  free(instance);
}

static collet_status device_info(collet_backend_instance* instance, uint32_t device, struct collet_device_info* info,
                                 struct collet_error* error) {
  static const struct collet_memory_space space = {0, 64, COLLET_SPACE_DEFAULT, "device", {0, 0}};
  if (device >= instance->devices) return fail(error, COLLET_NOT_FOUND, "there is no such device");
  info->kind = "Memory";
  info->fingerprint = "memory_only";
  info->spaces = &space;
  info->space_count = 1;
  return COLLET_OK;
}

static collet_status alloc(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                           uint64_t alignment, collet_backend_buffer** out, void** host, struct collet_error* error) {
  if (device >= instance->devices || space != 0) return fail(error, COLLET_NOT_FOUND, "no such device or memory space");
  if (alignment & (alignment - 1)) return fail(error, COLLET_INVALID_ARGUMENT, "an alignment that is no power of two");
  if (alignment < 64) alignment = 64;
  collet_backend_buffer* buffer = malloc(sizeof *buffer);
  char* data = bytes < UINT64_MAX - alignment ? aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment) : NULL;
  if (!buffer || !data) {
    free(buffer);
    free(data);
    return fail(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  }
  buffer->data = data;
  buffer->bytes = bytes;
  *host = NULL;
  *out = buffer;
  return COLLET_OK;
}

static void free_buffer(collet_backend_instance* instance, collet_backend_buffer* buffer) {
  (void)instance;
  if (buffer) free(buffer->data);
  free(buffer);
}

static char* address(struct collet_place place) {
  return (place.buffer ? place.buffer->data : (char*)place.host) + place.offset;
}

static int is_inside(struct collet_place place, uint64_t bytes) {
  return !place.buffer || (place.offset <= place.buffer->bytes && bytes <= place.buffer->bytes - place.offset);
}

static collet_status copy(collet_backend_instance* instance, const struct collet_copy_region* regions, uint32_t count,
                          const struct collet_sync* sync, struct collet_error* error) {
  (void)instance, (void)sync;
  for (uint32_t i = 0; i < count; ++i)
    if (!is_inside(regions[i].from, regions[i].bytes) || !is_inside(regions[i].to, regions[i].bytes))
      return fail(error, COLLET_OUT_OF_RANGE, "a copy that is not inside its buffer");
  for (uint32_t i = 0; i < count; ++i) memcpy(address(regions[i].to), address(regions[i].from), regions[i].bytes);
  return COLLET_OK;
}

static const struct collet_backend backend = {.struct_size = sizeof(struct collet_backend),
                                              .abi_major = COLLET_ABI_MAJOR,
                                              .abi_minor = COLLET_ABI_MINOR,
                                              .open = open_backend,
                                              .close = close_backend,
                                              .device_info = device_info,
                                              .alloc = alloc,
                                              .free = free_buffer,
                                              .copy = copy};

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out,
                                   struct collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR) return fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  *out = &backend;
  return COLLET_OK;
}
