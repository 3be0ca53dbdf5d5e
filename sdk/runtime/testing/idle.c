/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that takes every op and does nothing: what an execution costs on it is the library's own. */
#include <collet/backend.h>
#include <collet/error.h>
#include <stdlib.h>
#include <string.h>

static collet_status fail(struct collet_error* error, collet_status code, const char* message) {
  return collet_set_error(error, code, message);
}

static int word; /* instances and executables are all the same */

static collet_status open_backend(const struct collet_open_options* options, collet_backend_instance** out,
                                  struct collet_instance_info* info, struct collet_error* error) {
  if (options->pairs) return fail(error, COLLET_INVALID_ARGUMENT, "idle has no options");
  info->opset = COLLET_OPSET;
  info->device_count = 1;
  info->name = "idle";
  info->version = "1";
  *out = (collet_backend_instance*)&word;
  return COLLET_OK;
}

static void close_backend(collet_backend_instance* instance) {
  (void)instance;
}

static collet_status device_info(collet_backend_instance* instance, uint32_t device, struct collet_device_info* info,
                                 struct collet_error* error) {
  static const struct collet_memory_space space = {
      0, 64, COLLET_SPACE_DEFAULT | COLLET_SPACE_HOST_VISIBLE, "device", {0, 0}};
  static const struct collet_type_support types[] = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_COMPUTE}};
  (void)instance;
  if (device != 0) return fail(error, COLLET_NOT_FOUND, "there is one device");
  info->kind = "Idle";
  info->fingerprint = "idle";
  info->spaces = &space;
  info->space_count = 1;
  info->types = types;
  info->type_count = 1;
  return COLLET_OK;
}

static collet_status alloc(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                           uint64_t alignment, collet_backend_buffer** out, void** host, struct collet_error* error) {
  (void)instance, (void)device, (void)space;
  *host = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  *out = *host;
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

static collet_status supports(collet_backend_instance* instance, uint32_t device, const struct collet_program* program,
                              const uint32_t* ops, uint32_t count, struct collet_verdict* verdicts,
                              struct collet_error* error) {
  (void)instance, (void)device, (void)program, (void)ops, (void)error;
  for (uint32_t i = 0; i < count; ++i) verdicts[i].answer = COLLET_ACCEPT;
  return COLLET_OK;
}

static collet_status compile(collet_backend_instance* instance, const struct collet_program* program,
                             const struct collet_compile_options* options, collet_backend_executable** out,
                             struct collet_executable_info* info, struct collet_rejection* rejection,
                             struct collet_error* error) {
  (void)instance, (void)program, (void)options, (void)rejection, (void)error;
  info->absorbed_count = 0;
  *out = (collet_backend_executable*)&word;
  return COLLET_OK;
}

static collet_status execute(collet_backend_executable* executable, const struct collet_launch* launches,
                             uint32_t count, uint64_t run_id, struct collet_error* error) {
  (void)executable, (void)launches, (void)count, (void)run_id, (void)error;
  return COLLET_OK;
}

static void release(collet_backend_executable* executable) {
  (void)executable;
}

static const struct collet_backend backend = {
    .struct_size = sizeof(struct collet_backend),
    .abi_major = COLLET_ABI_MAJOR,
    .abi_minor = COLLET_ABI_MINOR,
    .open = open_backend,
    .close = close_backend,
    .device_info = device_info,
    .alloc = alloc,
    .free = free_buffer,
    .copy = copy,
    .supports = supports,
    .compile = compile,
    .execute = execute,
    .release = release,
};

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out,
                                   struct collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR) return fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  *out = &backend;
  return COLLET_OK;
}
