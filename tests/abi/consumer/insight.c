/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that asks: of this machine there is a topology, with a HOST at least. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/insight.h>

int main(void)
{
	tutti_topo_t topo = NULL;
	char *text = NULL;
	int good;

	if (tutti_topo_load(NULL, &topo) != TUTTI_OK) {
		fprintf(stderr, "%s\n", tutti_last_error(NULL));
		return 1;
	}
	good = tutti_topo_print(topo, TUTTI_TOPO_JSON, 0, &text) == TUTTI_OK &&
	       strstr(text, "HOST") != NULL;
	free(text);
	tutti_topo_free(topo);
	puts(good ? "42" : "no HOST");
	return 0;
}
