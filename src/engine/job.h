/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_JOB_H
#define TTI_ENGINE_JOB_H

/* The two kinds of job and what they share. Internal to the engine. */

#include "engine/bound.h"
#include "engine/engine.h"

bool tti_program_poll(struct tti_job *job);
/* The peer that the oldest unfinished block waits for, -1: none. */
int tti_program_blame(const struct tti_job *job);

bool tti_transfers_poll(struct tti_job *job);
int tti_transfers_blame(const struct tti_job *job);

/* A post to several links without fan-out, for messages so short that sharing a
 * slot gains nothing: the first link's room is returned, to be filled; the others
 * get copies of it. */
void *tti_post_each_reserve(const struct tti_post *post, size_t nbytes);
void tti_post_each_commit(const struct tti_post *post, size_t nbytes, uint64_t tag);

#endif
