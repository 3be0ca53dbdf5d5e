/* SPDX-License-Identifier: Apache-2.0 */
#include <collet/collet.h>
#include <stdio.h>
#include <string.h>

static const char program[] =
    "HloModule affine\n"
    "ENTRY main {\n"
    "  x = f32[2,3] parameter(0)\n"
    "  w = f32[3] parameter(1)\n"
    "  rows = f32[2,3] broadcast(w), dimensions={1}\n"
    "  scaled = f32[2,3] multiply(x, rows)\n"
    "  ROOT y = f32[2,3] add(scaled, x)\n"
    "}\n";

/* All objects that are open; null for those that have not been created. */
struct state {
  collet_client* client;
  collet_module* module;
  collet_executable* executable;
  collet_buffer* arguments[2];
  collet_buffer* result;
};

static collet_status upload(struct state* s, uint32_t index, uint32_t rank, const int64_t* dims, const float* data,
                            struct collet_error* error) {
  struct collet_host_array array = {.struct_size = sizeof array, .element = COLLET_TYPE_F32};
  array.dims = dims;
  array.rank = rank;
  array.data = data; /* copied before the call returns: COLLET_HOST_COPIED is 0 */
  return collet_buffer_from_host(s->client, 0, COLLET_NONE, &array, &s->arguments[index], error);
}

static collet_status run(struct state* s, const char* backend, struct collet_error* error) {
  struct collet_client_options options = {.struct_size = sizeof options, .backend = backend};
  struct collet_read_options read = {.struct_size = sizeof read, .file = "affine.hlo"};
  struct collet_compile_request request = {.struct_size = sizeof request};
  struct collet_execute_options execute = {.struct_size = sizeof execute};
  struct collet_client_info info = {.struct_size = sizeof info};
  struct collet_executable_facts facts = {.struct_size = sizeof facts};
  const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {10, 20, 30};
  const int64_t x_dims[] = {2, 3}, w_dims[] = {3};
  float y[6];
  collet_status code = collet_client_open(&options, &s->client, error);
  if (!code) code = collet_module_read(program, strlen(program), &read, &s->module, NULL, error);
  if (!code) code = collet_compile(s->client, s->module, &request, &s->executable, error);
  if (!code) code = upload(s, 0, 2, x_dims, x, error);
  if (!code) code = upload(s, 1, 1, w_dims, w, error);
  if (!code) code = collet_execute(s->executable, &execute, s->arguments, &s->result, error);
  if (!code) code = collet_buffer_to_host(s->result, y, sizeof y, NULL, error); /* waits */
  if (!code) code = collet_client_info_get(s->client, &info, error);
  if (!code) code = collet_executable_facts_get(s->executable, &facts, error);
  if (code) return code;
  for (int i = 0; i < 6; ++i) printf("%g ", y[i]);
  printf("\n%s: %u ops on the device, %u on the fallback\n", info.backend, facts.device_ops, facts.fallback_ops);
  return COLLET_OK;
}

int main(int argc, char** argv) {
  struct state s = {0};
  struct collet_error error;
  collet_status code = run(&s, argc > 1 ? argv[1] : NULL, &error);
  if (code) fprintf(stderr, "embed: %s\n", error.message);
  collet_buffer_release(s.result);
  collet_buffer_release(s.arguments[0]);
  collet_buffer_release(s.arguments[1]);
  collet_executable_release(s.executable);
  collet_module_release(s.module);
  if (s.client) collet_client_close(s.client);
  return code ? 1 : 0;
}
