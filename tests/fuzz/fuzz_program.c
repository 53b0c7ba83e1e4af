/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of programs: whatever is read is checked if it is small, and what is found
 * right prints as something that is right again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"
#include "util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
			if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) == TUTTI_OK)
				programs_read_again(prog, n, 2);
			else
				expect(tti_error_text()[0] != '\0');
		}
		programs_release(prog, n);
	}
	free(text);
	return 0;
}
