/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user of the installed library writes; compiled as C and as C++. */
#include <stdio.h>

#include <tutti/inspect.h>
#include <tutti/tutti.h>

int main(void)
{
	tutti_comm_t comm = NULL;
	float value = 21, sum = 0;

	if (tutti_version() != TUTTI_VERSION || tutti_comm_init_all(&comm, 1, NULL) != TUTTI_OK ||
	    tutti_all_reduce(&value, &sum, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL) != TUTTI_OK) {
		fprintf(stderr, "%s\n", tutti_last_error(comm));
		return 1;
	}
	printf("%g\n", (double)(value + sum));
	return tutti_comm_destroy(comm) == TUTTI_OK ? 0 : 1;
}
