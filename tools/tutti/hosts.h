/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HOSTS_H
#define TOOL_HOSTS_H

/* Names of hosts and how many ranks each gets. Owner: the caller, by hosts_free(). */

#include <stdbool.h>
#include <stddef.h>

struct host {
	char *name;        /* as a remote shell takes it: "user@node3" */
	char *switch_name; /* that its NICs are at; NULL: not said */
	int nslots;        /* as many ranks were asked for; 0: not said */
	int nranks, first_rank;
};

struct hosts {
	struct host *list;
	int n;
};

/* Add those of "a,b:4,[fd77::1]:2", and those of a file: a line each, "a", "a:4" or "a slots=4 switch=leaf1".
 * The rest of a line after # is a comment. False: wrong, and the message says what. */
bool hosts_parse(const char *text, struct hosts *hosts);
bool hosts_read(const char *path, struct hosts *hosts);

/* Deal `nranks` out, neighbours to one host: to each as many as its slots, or, where no slots are
 * said, evenly. 0: one for each slot, or one for each host. Hosts that get none are dropped. The sum, or
 * 0: said what is wrong. */
int hosts_deal(struct hosts *hosts, int nranks);

/* The name without its user, as a host of an address: "[fd77::1]" for a number with colons. */
void hosts_address(const struct host *host, char *out, size_t size);

void hosts_free(struct hosts *hosts);

#endif
