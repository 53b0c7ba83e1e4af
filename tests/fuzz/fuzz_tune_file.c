/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "insight/tune/tune_any.h"
#include "insight/tune/tune_write.h"
#include "util/error.h"
#include "util/strbuf.h"

/* The input is a tune file. What is read is written and read as the same, and gives
 * times that are numbers. */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("TUTTI_DEBUG", "NONE", 1);
}

static void write_and_read(const struct tti_tune_table *table)
{
	struct tti_strbuf text = { 0 }, again = { 0 };
	struct tti_tune_table *copy = NULL;

	tti_tune_write(table, &text);
	tti_assert(!text.failed);
	tti_assert(tti_tune_read(text.text, text.len, "copy", &copy) == TUTTI_OK);
	tti_tune_write(copy, &again);
	tti_assert(strcmp(text.text, again.text) == 0);
	tti_tune_table_free(copy);
	tti_strbuf_release(&text);
	tti_strbuf_release(&again);
}

static void predict(const struct tti_tune_table *table)
{
	struct tti_tune_any machine = { .host = tti_tune_machine_of_groups(11, 3, 5, 2) };
	struct tti_tune_time time;
	enum tti_tune_algo algo;

	machine.host.cores = 2;
	for (size_t nbytes = 1; nbytes; nbytes <<= 9)
		for (int coll = 0; coll < TUTTI_SEND_RECV; coll++) {
			tti_assert(tti_tune_choose(table, &machine, (tutti_collective)coll, nbytes,
						   &algo));
			tti_assert(tti_tune_any_predict(&table->constants, &machine,
							(tutti_collective)coll, algo, nbytes,
							&time));
			tti_assert(isfinite(time.us) && time.us >= time.latency_us &&
				   time.latency_us >= 0 && isfinite(time.bw_gbps));
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct tti_tune_table *table = NULL;

	if (tti_tune_read((const char *)data, nbytes, "t.tune", &table) != TUTTI_OK)
		return 0;
	write_and_read(table);
	predict(table);
	tti_tune_table_free(table);
	return 0;
}
