/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HOSTS_H
#define TOOL_HOSTS_H

/* Names of hosts and how many ranks each gets. Owner: the caller, by hosts_free(). */

#include <stdbool.h>
#include <stddef.h>

struct host {
	char *name;        /* as a remote shell takes it: "user@node3" */
	char *switch_name; /* the leaf switch of its NICs; NULL: not given */
	int nslots;        /* ranks that were asked for; 0: not given */
	int nranks, first_rank;
};

struct hosts {
	struct host *list;
	int n;
};

/* Add the hosts of a list, "a,b:4,[fd77::1]:2", or of a file with lines "a", "a:4" or "a slots=4 switch=leaf1",
 * in which # begins a comment. False: it is wrong, and the error was printed. */
bool hosts_parse(const char *text, struct hosts *hosts);
bool hosts_read(const char *path, struct hosts *hosts);

/* Deal `nranks` ranks out to the hosts in their order: as many to each as it has slots, or evenly if no host
 * names slots. nranks 0 means one for each slot, or one for each host. Hosts that get none are dropped. Returns
 * the number of ranks, or 0 after an error was printed. */
int hosts_deal(struct hosts *hosts, int nranks);

/* The name without its user, as a host of an address: "[fd77::1]" for a number with colons. */
void hosts_address(const struct host *host, char *out, size_t size);

void hosts_free(struct hosts *hosts);

#endif
