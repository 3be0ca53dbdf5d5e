/* SPDX-License-Identifier: Apache-2.0 */
/* For abidiff: a backend whose exported functions name every type that crosses the ABI boundary, those of the optional tables and
 * of attribute records included, which no exported function of a real backend does. */
#include <collet/processes.h>
#include <collet/tables.h>

collet_status collet_backend_entry(const struct collet_host* host, const struct collet_backend** out_backend,
                                   struct collet_error* error) {
  (void)host, (void)out_backend, (void)error;
  return COLLET_UNIMPLEMENTED;
}

#define TYPE(name) COLLET_EXPORT const struct collet_##name* collet_abi_##name(void)
#define NAMED(name)                                     \
  TYPE(name);                                           \
  const struct collet_##name* collet_abi_##name(void) { \
    return NULL;                                        \
  }

NAMED(queue_table)
NAMED(aot_table)
NAMED(memory_stats_table)
NAMED(artifacts_table)
NAMED(layout_table)
NAMED(residency_table)
NAMED(patterns_table)
NAMED(profile_table)
NAMED(host_memory_table)
NAMED(host_buffers_table)
NAMED(links_table)
NAMED(transport)
NAMED(type)
NAMED(value)
NAMED(op)
NAMED(region)
NAMED(constant)
NAMED(alias)
#define COLLET_RECORD(Record, record) NAMED(record##_attrs)
#include <collet/attributes.def>
