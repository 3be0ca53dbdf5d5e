/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ACME_KERNELS_H
#define ACME_KERNELS_H

#include <collet/backend.h>

/* The opset that is_ours in kernels.c was written for. Raise it once each op there has been checked against the attributes
 * and types that newer opsets added; until then the SDK never offers those. */
#define ACME_OPSET 1u

/* The second half of the table: see backend.h for what each must do. Without these four the backend is complete too: it
 * holds data, and every op runs on the fallback. */
collet_status acme_supports(collet_backend_instance* instance, uint32_t device, const struct collet_program* program,
                            const uint32_t* ops, uint32_t count, struct collet_verdict* verdicts,
                            struct collet_error* error);
collet_status acme_compile(collet_backend_instance* instance, const struct collet_program* program,
                           const struct collet_compile_options* options, collet_backend_executable** out_executable,
                           struct collet_executable_info* info, struct collet_rejection* rejection,
                           struct collet_error* error);
collet_status acme_execute(collet_backend_executable* executable, const struct collet_launch* launches, uint32_t count,
                           uint64_t run_id, struct collet_error* error);
void acme_release(collet_backend_executable* executable);

#endif
