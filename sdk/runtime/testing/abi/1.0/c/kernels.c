/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* The device computes add, multiply and maximum of f32. A compiled program is a copy of its block, and a list of places:
 * each result of an op has its own piece of the workspace, and what the program returns is copied out at the end. */

struct executable {
  uint64_t* offsets; /* of each value in the workspace */
  uint64_t workspace_bytes;
  struct collet_program* program;
};

static int is_ours(const struct collet_program* p, const struct collet_op* op) {
  if (op->flags || op->reserved || op->since > ACME_OPSET) return 0;
  if (op->opcode != COLLET_OP_ADD && op->opcode != COLLET_OP_MULTIPLY && op->opcode != COLLET_OP_MAXIMUM) return 0;
  const struct collet_type* type = collet_value_type(p, op->results.first);
  return type->element == COLLET_TYPE_F32 && type->layout == 0;
}

collet_status acme_supports(collet_backend_instance* instance, uint32_t device, const struct collet_program* program,
                            const uint32_t* ops, uint32_t count, struct collet_verdict* verdicts,
                            struct collet_error* error) {
  (void)instance, (void)device, (void)error;
  for (uint32_t i = 0; i < count; ++i) {
    verdicts[i].answer = is_ours(program, collet_op_at(program, ops[i])) ? COLLET_ACCEPT : COLLET_DECLINE;
    if (verdicts[i].answer == COLLET_DECLINE) strcpy(verdicts[i].reason, "no kernel");
  }
  return COLLET_OK;
}

collet_status acme_compile(collet_backend_instance* instance, const struct collet_program* program,
                           const struct collet_compile_options* options, collet_backend_executable** out_executable,
                           struct collet_executable_info* info, struct collet_rejection* rejection,
                           struct collet_error* error) {
  (void)instance, (void)options;
  if (program->magic != COLLET_PROGRAM_MAGIC || program->flags || program->regions.count == 0) {
    return acme_fail(error, COLLET_INVALID_ARGUMENT, "this is no program that acme can read");
  }
  const struct collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    if (is_ours(program, collet_op_at(program, entry->ops.first + i))) continue;
    if (rejection->count > 0) rejection->ops[0] = entry->ops.first + i;
    rejection->count = rejection->count > 0;
    return acme_fail(error, COLLET_UNIMPLEMENTED, "an op without a kernel");
  }
  struct executable* made = calloc(1, sizeof *made);
  if (made) made->program = malloc(program->total_bytes);
  if (made) made->offsets = calloc(program->values.count + 1, sizeof *made->offsets);
  if (!made || !made->program || !made->offsets) {
    acme_release((collet_backend_executable*)made);
    return acme_fail(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  }
  memcpy(made->program, program, program->total_bytes); /* the caller's goes away */
  for (uint32_t i = 0; i < program->values.count; ++i) {
    made->offsets[i] = made->workspace_bytes;
    made->workspace_bytes += (collet_value_type(program, i)->bytes + 63) / 64 * 64;
  }
  info->workspace_bytes = made->workspace_bytes;
  info->kernels = entry->ops.count;
  *out_executable = (collet_backend_executable*)made;
  return COLLET_OK;
}

static void run_kernel(uint32_t opcode, uint64_t elements, const float* x, const float* y, float* out) {
  for (uint64_t i = 0; i < elements; ++i) {
    if (opcode == COLLET_OP_ADD) {
      out[i] = x[i] + y[i];
    } else if (opcode == COLLET_OP_MULTIPLY) {
      out[i] = x[i] * y[i];
    } else if (isnan(x[i]) || isnan(y[i])) {
      out[i] = x[i] + y[i]; /* NaN wins */
    } else {
      out[i] = x[i] > y[i] || (x[i] == y[i] && !signbit(x[i])) ? x[i] : y[i]; /* +0 is greater than -0 */
    }
  }
}

/* The workspace's address, once every argument and result is known to be there; null otherwise. */
static char* check_launch(const struct executable* made, const struct collet_launch* launch) {
  const struct collet_program* p = made->program;
  const struct collet_region* entry = collet_region_at(p, 0);
  if (launch->argument_count != entry->arguments.count || launch->result_count != entry->results.count) return NULL;
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const struct collet_argument* argument = &launch->arguments[i];
    uint64_t bytes = collet_value_type(p, entry->arguments.first + i)->bytes;
    if (bytes && !(argument->flags & COLLET_ARG_IMMEDIATE) &&
        !acme_memory_at(argument->buffer, argument->offset, bytes)) {
      return NULL;
    }
  }
  for (uint32_t i = 0; i < launch->result_count; ++i) {
    uint64_t bytes = collet_value_type(p, collet_ref_at(p, entry->results.first + i))->bytes;
    if (bytes && !acme_memory_at(launch->results[i].buffer, launch->results[i].offset, bytes)) return NULL;
  }
  static char nothing;
  if (made->workspace_bytes == 0) return &nothing;
  return acme_memory_at(launch->workspace.buffer, launch->workspace.offset, made->workspace_bytes);
}

static void run(const struct executable* made, const struct collet_launch* launch, char* workspace) {
  const struct collet_program* p = made->program;
  const struct collet_region* entry = collet_region_at(p, 0);
  for (uint32_t i = 0; i < entry->arguments.count; ++i) { /* brought into the workspace, which nobody else sees */
    const struct collet_argument* argument = &launch->arguments[i];
    uint64_t bytes = collet_value_type(p, entry->arguments.first + i)->bytes;
    const void* from = (argument->flags & COLLET_ARG_IMMEDIATE)
                           ? argument->immediate
                           : acme_memory_at(argument->buffer, argument->offset, bytes);
    if (bytes) memcpy(workspace + made->offsets[entry->arguments.first + i], from, bytes);
  }
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    const struct collet_op* op = collet_op_at(p, entry->ops.first + i);
    const char* x = workspace + made->offsets[collet_operand(p, op, 0)];
    const char* y = workspace + made->offsets[collet_operand(p, op, 1)];
    run_kernel(op->opcode, collet_value_type(p, op->results.first)->elements, (const float*)x, (const float*)y,
               (float*)(workspace + made->offsets[op->results.first]));
  }
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    uint32_t value = collet_ref_at(p, entry->results.first + i);
    uint64_t bytes = collet_value_type(p, value)->bytes;
    void* to = acme_memory_at(launch->results[i].buffer, launch->results[i].offset, bytes);
    if (bytes) memcpy(to, workspace + made->offsets[value], bytes);
  }
}

collet_status acme_execute(collet_backend_executable* executable, const struct collet_launch* launches, uint32_t count,
                           uint64_t run_id, struct collet_error* error) {
  (void)run_id;
  const struct executable* made = (const struct executable*)executable;
  for (uint32_t i = 0; i < count; ++i) {
    if (launches[i].sync) return acme_fail(error, COLLET_UNIMPLEMENTED, "acme has no queues");
    if (launches[i].device != 0) return acme_fail(error, COLLET_INVALID_ARGUMENT, "acme has one device");
    if (!check_launch(made, &launches[i])) {
      return acme_fail(error, COLLET_INVALID_ARGUMENT, "an argument that does not lie inside its buffer");
    }
  }
  for (uint32_t i = 0; i < count; ++i) run(made, &launches[i], check_launch(made, &launches[i]));
  return COLLET_OK;
}

void acme_release(collet_backend_executable* executable) {
  struct executable* made = (struct executable*)executable;
  if (!made) return;
  free(made->program);
  free(made->offsets);
  free(made);
}
