/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of MSCCL's format: what is refused says where, what is read is run by the checker,
 * and prints as programs that are right if it is. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "coll/files/msccl.h"
#include "programs.h"
#include "util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char source[] = "a.xml:";
	struct tti_msccl_head head;
	struct tti_program *prog;
	size_t nsteps = 0;

	if (size > 8192)
		return 0;
	if (tti_msccl_read((const char *)data, size, "a.xml", &head, &prog) != TUTTI_OK) {
		expect(strncmp(tti_error_text(), source, sizeof(source) - 1) == 0);
		return 0;
	}
	for (int rank = 0; rank < head.n; rank++)
		nsteps += prog[rank].steps.n;
	if (head.n <= 16 && nsteps <= 2000 && prog->nchunks <= 256 &&
	    tti_program_check(prog, head.n, 1, TTI_ORDER_ANY) == TUTTI_OK)
		programs_read_again(prog, head.n, 1);
	programs_release(prog, head.n);
	return 0;
}
