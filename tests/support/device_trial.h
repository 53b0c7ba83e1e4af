/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_TRIAL_H
#define TESTS_SUPPORT_DEVICE_TRIAL_H

/* The calls of a trial (trial.h) on a device bed (device_bed.h): the engine runs them first, and GPUs
 * have to leave the same bytes in and around every buffer.
 *
 * Owner: none is kept. Threads: as device_bed.h. */

#include "support/device_bed.h"
#include "support/trial.h"

/* Any lanes and launches for so many ranks: blocks, threads, slots, words, memory. */
void device_draw(struct device_config *out, int n, uint64_t seed);

/* A bed for the engine that takes no time. */
struct bed_config device_plain_bed(int n, size_t slot_bytes);

struct device_outcome {
	uint64_t read, written; /* bytes of user data, of all ranks */
};

/* Run all calls of a trial, whose engine has run them, on the bed that `config` says (slot_bytes is
 * what the calls need). False: something is wrong, and said on stderr. `out` may be NULL. */
bool device_trial_run(const struct trial *trial, const struct device_config *config,
		      struct device_outcome *out);

/* The parts of that, for tests that do something else in between: the calls of all ranks. */
struct device_trial {
	const struct trial *trial;
	struct device_bed bed;
	uint64_t memory[TRIAL_CALLS][DEVICE_RANKS]; /* as of struct trial_call */
	struct tti_dev_call call[TRIAL_CALLS * DEVICE_RANKS];
	struct device_outcome outcome;
	char wrong[256]; /* the first byte that is not what it must be, "": none */
};

void device_trial_init(struct device_trial *out, const struct trial *trial,
		       const struct device_config *config);
/* Compare what the calls have left. */
bool device_trial_is_right(struct device_trial *trial);
void device_trial_release(struct device_trial *trial);

#endif
