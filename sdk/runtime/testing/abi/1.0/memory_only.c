/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest backend: a device that holds data. Six functions, and every program runs, all its ops on the fallback. */
#include <collet/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collet_backend_instance {
  uint32_t devices;
};

static collet_status fail(struct collet_error* error, collet_status code, const char* message) {
  error->code = code;
  snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

static collet_status open_backend(const struct collet_open_options* options, collet_backend_instance** out,
                                  struct collet_instance_info* info, struct collet_error* error) {
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
  (void)instance, (void)device, (void)space;
  *host = NULL;
  *out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *out ? COLLET_OK : fail(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
}

static void free_buffer(collet_backend_instance* instance, collet_backend_buffer* buffer) {
  (void)instance;
  free(buffer);
}

static char* address(struct collet_place place) {
  return (place.buffer ? (char*)place.buffer : (char*)place.host) + place.offset;
}

static collet_status copy(collet_backend_instance* instance, const struct collet_copy_region* regions, uint32_t count,
                          const struct collet_sync* sync, struct collet_error* error) {
  (void)instance, (void)sync, (void)error;
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
