/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_PROGRAM_H
#define TTI_ENGINE_PROGRAM_H

/* How programs are run. Internal to the engine. */

#include "engine/engine.h"

/* tti_job_program() but for what only the parallel blocks of program.c need. */
TUTTI_CHECKED tutti_status tti_program_prepare(struct tti_job *job, struct tti_engine *engine,
					       struct tti_executable *exec,
					       const struct tti_layout *layout,
					       const struct tti_reducer *reducer,
					       size_t slice_bytes, uint64_t tag);
/* Reset the progress of all operations. */
void tti_program_begin(struct tti_job *job);
bool tti_program_poll(struct tti_job *job);
/* The peer that the oldest unfinished block waits for, -1: none. */
int tti_program_blame(const struct tti_job *job);

/* The same for operations in the order of the program (in_order.c), and for memory programs
 * (memory.c). */
bool tti_in_order_poll(struct tti_job *job);
bool tti_memory_poll(struct tti_job *job);

#endif
