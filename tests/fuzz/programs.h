/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_PROGRAMS_H
#define TESTS_FUZZ_PROGRAMS_H

/* What is done with programs that were read, whatever they were read from. */

#include "coll/check/check.h"
#include "coll/files/text.h"
#include "expect.h"
#include "insight/plan/program_print.h"
#include "util/mem.h"
#include "util/strbuf.h"

static inline void programs_release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

/* Right programs print as what is read, and right again with 1 to `most` slots. */
static inline void programs_read_again(const struct tti_program *prog, int n, int most)
{
	struct tti_program *again = NULL;
	struct tti_strbuf buf = { 0 };
	int found;

	tti_program_print_head(prog, &buf);
	for (int rank = 0; rank < n; rank++)
		tti_program_print_rank(&prog[rank], &buf);
	expect(!buf.failed && tti_program_read(buf.text, &again, &found) == TUTTI_OK && found == n);
	for (int slots = 1; slots <= most; slots++)
		expect(tti_program_check(again, n, slots, TTI_ORDER_ANY) == TUTTI_OK);
	programs_release(again, n);
	tti_strbuf_release(&buf);
}

#endif
