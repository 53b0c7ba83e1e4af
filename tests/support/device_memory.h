/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_MEMORY_H
#define TESTS_SUPPORT_DEVICE_MEMORY_H

/* Memory of GPUs that are not there: of the heap, or at addresses that nobody can read, with an
 * alias elsewhere. Or of one that is there (device_memory_lend()).
 *
 * Owner: device_memory_free(). Threads: one at a time; device_memory_view() any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device_memory;

/* Of guarded memory there is one at a time. */
struct device_memory *device_memory_create(bool is_guarded);
void device_memory_free(struct device_memory *memory);

/* Guarded memory that is made from now on is not of this process: kernels reach it at `at`, and this
 * process has it at `alias`, perhaps as a copy. It is the caller's. 0 bytes: as before. */
void device_memory_lend(uint64_t at, void *alias, size_t nbytes);
/* So many bytes of guarded memory, from its beginning on, are all that is used. */
size_t device_memory_used(const struct device_memory *memory);

/* Zeroed, aligned to 16 bytes. */
uint64_t device_memory_alloc(struct device_memory *memory, size_t nbytes);
/* Whether what lies around and between all that was allocated is as it was; always of the heap. */
bool device_memory_is_clean(const struct device_memory *memory);

/* Where the guarded memory that there is can be read and written. An address that is not of it
 * ends the process. */
void *device_memory_view(uint64_t address);

#endif
