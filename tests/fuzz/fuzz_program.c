/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of programs: whatever is read is checked if it is small, and what is found
 * right prints as something that is right again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coll/check.h"
#include "coll/text.h"
#include "util/error.h"
#include "util/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
	if (!condition)
		__builtin_trap();
}

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

static void read_again(const struct tti_program *prog, int n)
{
	struct tti_program *again;
	struct tti_strbuf buf = { 0 };
	int found;

	tti_program_print_head(prog, &buf);
	for (int rank = 0; rank < n; rank++)
		tti_program_print_rank(&prog[rank], &buf);
	expect(!buf.failed && tti_program_read(buf.text, &again, &found) == TUTTI_OK && found == n);
	for (int slots = 1; slots <= 2; slots++)
		expect(tti_program_check(again, n, slots) == TUTTI_OK);
	release(again, n);
	tti_strbuf_release(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tti_program *prog;
	size_t nsteps = 0;
	char *text;
	int n;

	if (size > 4096)
		return 0;
	text = malloc(size + 1);
	expect(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (tti_program_read(text, &prog, &n) == TUTTI_OK) {
		for (int rank = 0; rank < n; rank++)
			nsteps += prog[rank].steps.n;
		if (n <= 16 && nsteps <= 500 && prog->nchunks <= 64) {
			if (tti_program_check(prog, n, 1) == TUTTI_OK)
				read_again(prog, n);
			else
				expect(tti_error_text()[0] != '\0');
		}
		release(prog, n);
	}
	free(text);
	return 0;
}
