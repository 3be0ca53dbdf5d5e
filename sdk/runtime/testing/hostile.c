/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that misbehaves as the environment variable COLLET_HOSTILE says. */
#include <collet/backend.h>
#include <collet/error.h>
#include <collet/tables.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int mode(const char* name) {
  const char* wanted = getenv("COLLET_HOSTILE");
  return wanted && strcmp(wanted, name) == 0;
}

static collet_status fail(struct collet_error* error, const char* message) {
  return collet_set_error(error, COLLET_INTERNAL, message);
}

/* Ends the process in the way that the second word of COLLET_HOSTILE_END says, if the first word is `function`. */
static volatile int deep;
static int overflow(int n) {
  volatile char frame[4096];
  frame[0] = (char)n;
  deep = n;
  if (deep < 0) return 0;
  return overflow(n + 1) + frame[0];
}
static void end_in(const char* function) {
  const char* wanted = getenv("COLLET_HOSTILE_END");
  const size_t n = strlen(function);
  if (!wanted || strncmp(wanted, function, n) != 0 || wanted[n] != ' ') return;
  const char* how = wanted + n + 1;
  if (strcmp(how, "crash") == 0) {
    static volatile int* volatile nowhere;
    *nowhere = 1;
  }
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "overflow") == 0) deep = overflow(0); /* a full stack */
  while (strcmp(how, "hang") == 0) sleep(1);
}

__attribute__((destructor)) static void at_unload(void) {
  end_in("unload");
}

static char endless[8192];
static int instance_word;

static collet_status open_backend(const struct collet_open_options* options, collet_backend_instance** out,
                                  struct collet_instance_info* info, struct collet_error* error) {
  end_in("open");
  (void)options;
  if (mode("open_fails")) return fail(error, "hostile open");
  if (mode("open_fails_silently")) return COLLET_UNAVAILABLE;
  if (mode("open_unknown_code")) return 4711;
  if (mode("open_negative_code")) return -7;
  if (mode("struct_sizes")) info->struct_size = UINT32_MAX;
  memset(endless, 'x', sizeof endless);
  info->opset = mode("opset_0") ? 0 : mode("opset_huge") ? UINT32_MAX : COLLET_OPSET;
  info->device_count = mode("no_device") ? 0 : mode("many_devices") ? UINT32_MAX : 1;
  info->name = mode("no_name")        ? NULL
               : mode("endless_name") ? endless
               : mode("capital_name") ? "Hostile"
               : mode("escape_name")  ? "a\x1b[31m"
                                      : "hostile";
  info->version = mode("no_version") ? NULL : "1";
  *out = mode("no_instance") ? NULL : (collet_backend_instance*)&instance_word;
  return COLLET_OK;
}

static void close_backend(collet_backend_instance* instance) {
  end_in("close");
  (void)instance;
}

static collet_status device_info(collet_backend_instance* instance, uint32_t device, struct collet_device_info* info,
                                 struct collet_error* error) {
  end_in("device_info");
  static struct collet_memory_space spaces[2];
  static struct collet_type_support types[COLLET_TYPE_LIMIT];
  static const uint32_t peers[] = {99};
  (void)instance, (void)device;
  if (mode("device_info_fails")) return fail(error, "hostile device_info");
  memset(spaces, 0, sizeof spaces);
  spaces[0].alignment = mode("alignment") ? 48 : mode("no_alignment") ? 0 : 64;
  spaces[0].flags = mode("no_default") ? 0 : COLLET_SPACE_DEFAULT;
  if (mode("host_pointer")) spaces[0].flags |= COLLET_SPACE_HOST_VISIBLE;
  strcpy(spaces[0].kind, "device");
  if (mode("endless_kind")) memset(spaces[0].kind, 'k', sizeof spaces[0].kind);
  spaces[1] = spaces[0];
  for (uint32_t i = 0; i < COLLET_TYPE_LIMIT; ++i) {
    types[i].type = i;
    types[i].flags = COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE;
  }
  info->traits = mode("traits") ? ~(uint32_t)COLLET_TRAIT_VIRTUAL : 0;
  info->kind = mode("no_kind") ? NULL : "Hostile";
  info->fingerprint = "hostile";
  info->spaces = mode("no_spaces") ? NULL : spaces;
  info->space_count = mode("many_spaces") ? UINT32_MAX : mode("two_defaults") ? 2 : 1;
  if (mode("unknown_types"))
    for (uint32_t i = 0; i < COLLET_TYPE_LIMIT; ++i) types[i].type = UINT32_MAX - i, types[i].flags = UINT32_MAX;
  if (mode("struct_sizes")) info->struct_size = 0;
  info->types = mode("types_nowhere") ? NULL : types;
  info->type_count = mode("many_types") ? UINT32_MAX : COLLET_TYPE_LIMIT;
  if (mode("peers")) {
    info->peers = peers;
    info->peer_count = 1;
  }
  if (mode("many_peers")) {
    info->peers = peers;
    info->peer_count = UINT32_MAX;
  }
  if (mode("peers_nowhere")) info->peer_count = 1;
  if (mode("smallest_cluster")) info->smallest_cluster = UINT32_MAX;
  if (mode("misaligned")) spaces[0].flags |= COLLET_SPACE_HOST_VISIBLE;
  if (mode("bandwidth")) info->link_bytes_per_ns = -1;
  if (mode("latency")) info->link_latency_ns = 0.0 / 1e-320 * 0.0 - 1e308 * 10;
  return COLLET_OK;
}

static collet_status alloc(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                           uint64_t alignment, collet_backend_buffer** out, void** host, struct collet_error* error) {
  end_in("alloc");
  (void)instance, (void)device, (void)space;
  if (mode("alloc_fails")) return fail(error, "hostile alloc");
  *out = mode("no_buffer") ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  *host = mode("host_pointer") ? NULL : *out; /* the latter where the host sees nothing */
  if (mode("misaligned")) *host = (char*)*host + 1;
  return COLLET_OK;
}

static void free_buffer(collet_backend_instance* instance, collet_backend_buffer* buffer) {
  end_in("free");
  (void)instance;
  free(buffer);
}

static collet_status copy(collet_backend_instance* instance, const struct collet_copy_region* regions, uint32_t count,
                          const struct collet_sync* sync, struct collet_error* error) {
  end_in("copy");
  (void)instance, (void)sync;
  if (mode("copy_fails")) return fail(error, "hostile copy");
  for (uint32_t i = 0; i < count; ++i)
    memcpy(
        (regions[i].to.buffer ? (char*)regions[i].to.buffer : (char*)regions[i].to.host) + regions[i].to.offset,
        (regions[i].from.buffer ? (char*)regions[i].from.buffer : (char*)regions[i].from.host) + regions[i].from.offset,
        regions[i].bytes);
  return COLLET_OK;
}

static collet_status supports(collet_backend_instance* instance, uint32_t device, const struct collet_program* program,
                              const uint32_t* ops, uint32_t count, struct collet_verdict* verdicts,
                              struct collet_error* error) {
  end_in("supports");
  (void)instance, (void)device, (void)program, (void)ops;
  if (mode("supports_fails")) return fail(error, "hostile supports");
  for (uint32_t i = 0; i < count; ++i) {
    verdicts[i].answer = mode("unknown_answer") ? 77 : COLLET_ACCEPT;
    if (mode("declines")) verdicts[i].answer = COLLET_DECLINE;
    if (mode("expands")) verdicts[i].answer = COLLET_EXPAND;
    if (mode("cost")) verdicts[i].cost_ns = -5;
    if (mode("cost_is_no_number")) verdicts[i].cost_ns = NAN;
    if (mode("verdict_reserved")) verdicts[i].reserved = UINT64_MAX;
    if (mode("groups")) verdicts[i].group = i + 1;
    if (mode("endless_reason")) memset(verdicts[i].reason, 'r', sizeof verdicts[i].reason);
  }
  return COLLET_OK;
}

static int executable_word;

static collet_status compile(collet_backend_instance* instance, const struct collet_program* program,
                             const struct collet_compile_options* options, collet_backend_executable** out,
                             struct collet_executable_info* info, struct collet_rejection* rejection,
                             struct collet_error* error) {
  end_in("compile");
  (void)instance, (void)program, (void)options;
  if (mode("compile_fails")) return fail(error, "hostile compile");
  if (mode("rejects_without_end")) {
    rejection->count = rejection->count ? rejection->count : 1;
    for (uint32_t i = 0; i < rejection->count; ++i) rejection->ops[i] = i;
    fail(error, "hostile rejection");
    return COLLET_UNIMPLEMENTED;
  }
  if (mode("rejects_nonsense")) {
    rejection->count = UINT32_MAX;
    rejection->ops[0] = 123456;
    fail(error, "hostile rejection");
    return COLLET_RESOURCE_EXHAUSTED;
  }
  *out = mode("no_executable") ? NULL : (collet_backend_executable*)&executable_word;
  if (mode("absorbed")) info->absorbed_count = UINT32_MAX;
  if (mode("absorbed_index") && info->absorbed_count) info->absorbed_count = 1, info->absorbed[0] = 77;
  if (mode("absorbed_twice") && info->absorbed_count) info->absorbed_count = 1, info->absorbed[0] = 0;
  if (mode("rejects_and_succeeds")) rejection->count = UINT32_MAX, rejection->ops[0] = 0;
  if (mode("struct_sizes")) info->struct_size = UINT32_MAX, rejection->struct_size = 0;
  if (mode("facts")) {
    info->resident_bytes = info->code_bytes = info->traffic_bytes = UINT64_MAX;
    info->kernels = UINT32_MAX;
  }
  if (mode("workspace")) info->workspace_bytes = UINT64_MAX;
  if (mode("workspace_alignment")) info->workspace_alignment = 3;
  return COLLET_OK;
}

static collet_status execute(collet_backend_executable* executable, const struct collet_launch* launches,
                             uint32_t count, uint64_t run_id, struct collet_error* error) {
  end_in("execute");
  (void)executable, (void)launches, (void)count, (void)run_id;
  if (mode("execute_fails_endlessly")) {
    memset(error->message, 'm', sizeof error->message);
    return COLLET_INTERNAL;
  }
  if (mode("execute_unknown_code")) return INT32_MIN;
  if (getenv("COLLET_HOSTILE_END")) return COLLET_OK;
  return fail(error, "hostile execute");
}

static collet_status serialize(collet_backend_executable* executable, void* out, uint64_t capacity, uint64_t* size,
                               struct collet_error* error) {
  (void)executable;
  if (mode("serialize_fails")) return fail(error, "hostile serialize");
  *size = mode("serialize_huge") ? UINT64_MAX : mode("serialize_grows") && capacity ? capacity + 1 : 8;
  if (capacity >= 8) memset(out, 's', 8);
  return COLLET_OK;
}

static collet_status load(collet_backend_instance* instance, const void* bytes, uint64_t size,
                          const struct collet_compile_options* options, collet_backend_executable** out,
                          struct collet_executable_info* info, struct collet_error* error) {
  (void)instance, (void)bytes, (void)size, (void)options;
  if (mode("load_fails")) return fail(error, "hostile load");
  *out = mode("load_nothing") ? NULL : (collet_backend_executable*)&executable_word;
  if (mode("load_workspace")) info->workspace_bytes = UINT64_MAX;
  return COLLET_OK;
}

static collet_status artifact(collet_backend_executable* executable, uint32_t index, const char** name,
                              const void** bytes, uint64_t* size, struct collet_error* error) {
  (void)executable, (void)index;
  if (mode("artifacts_fail")) return fail(error, "hostile artifact");
  *name = mode("artifact_path") ? "../../../escaped" : "endless";
  *bytes = "";
  *size = mode("artifact_huge") ? UINT64_MAX : 0;
  return COLLET_OK;
}

static const void* query(collet_backend_instance* instance, const char* name, uint32_t version) {
  end_in("query");
  static const struct collet_aot_table aot = {sizeof aot, 0, serialize, load};
  static const struct collet_artifacts_table artifacts = {sizeof artifacts, 0, artifact};
  static const uint32_t tiny = 4;
  (void)instance, (void)version;
  if (mode("query_nothing")) return NULL;
  if (mode("query_tiny")) return &tiny;
  if (strcmp(name, "aot") == 0) return &aot;
  return strcmp(name, "artifacts") == 0 ? &artifacts : NULL;
}

static void release(collet_backend_executable* executable) {
  end_in("release");
  (void)executable;
}

static struct collet_backend backend;

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out,
                                   struct collet_error* error) {
  end_in("entry");
  (void)host;
  if (mode("entry_fails")) return fail(error, "hostile entry");
  if (mode("no_table")) return COLLET_OK;
  const struct collet_backend whole = {sizeof backend,
                                       mode("major") ? COLLET_ABI_MAJOR + 1 : COLLET_ABI_MAJOR,
                                       mode("minor") ? 999 : COLLET_ABI_MINOR,
                                       mode("reserved") ? 1 : 0,
                                       open_backend,
                                       close_backend,
                                       device_info,
                                       mode("no_alloc") ? NULL : alloc,
                                       free_buffer,
                                       mode("no_copy") ? NULL : copy,
                                       supports,
                                       mode("no_compile") ? NULL : compile,
                                       mode("no_execute") ? NULL : execute,
                                       mode("no_release") ? NULL : release,
                                       query};
  backend = whole;
  if (mode("tiny_table")) backend.struct_size = 4;
  if (mode("huge_table")) backend.struct_size = UINT32_MAX;
  if (mode("cut_table")) backend.struct_size = offsetof(struct collet_backend, copy) + 3;
  if (mode("short_table")) backend.struct_size = offsetof(struct collet_backend, copy);
  *out = &backend;
  return COLLET_OK;
}
