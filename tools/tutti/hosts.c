/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "tool.h"

#define SLOTS_MOST (1 << 16)

static bool add(const char *name, size_t len, int nslots, struct hosts *hosts)
{
	struct host *list = realloc(hosts->list, ((size_t)hosts->n + 1) * sizeof(*list));

	if (list)
		hosts->list = list;
	if (!list || !(list[hosts->n].name = strndup(name, len))) {
		tool_fail("out of memory");
		return false;
	}
	list[hosts->n].nslots = nslots;
	list[hosts->n].nranks = 0;
	list[hosts->n].first_rank = 0;
	hosts->n++;
	return true;
}

/* `text` is a name, with :SLOTS behind it or not. An address of IPv6 with slots stands in brackets;
 * one without needs none. */
static bool add_word(const char *text, size_t len, int nslots, struct hosts *hosts)
{
	char word[256], *name = word, *colon, *end;

	if (len >= sizeof(word)) {
		tool_bad_usage("'%.60s...' is no name of a host", text);
		return false;
	}
	memcpy(word, text, len);
	word[len] = '\0';
	colon = strrchr(word, ':');
	end = strrchr(word, ']');
	if (colon && (end ? colon == end + 1 : strchr(word, ':') == colon)) {
		*colon = '\0';
		if (!cli_int("ranks of a host", colon + 1, 1, SLOTS_MOST, &nslots))
			return false;
	}
	if (word[0] == '[' && end && !end[1]) {
		*end = '\0';
		name = word + 1;
	}
	/* A remote shell would take it for an option. */
	if (!*name || *name == '-') {
		tool_bad_usage("'%.*s' is no name of a host", len < 60 ? (int)len : 60, text);
		return false;
	}
	return add(name, strlen(name), nslots, hosts);
}

bool hosts_parse(const char *text, struct hosts *hosts)
{
	for (;;) {
		const size_t len = strcspn(text, ",");

		if (!add_word(text, len, 0, hosts))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

static bool read_line(const char *path, int number, char *line, struct hosts *hosts)
{
	static const char blank[] = " \t\r\n", slots[] = "slots=";
	char *name, *more, *rest;
	int nslots = 0;

	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, blank, &rest);
	if (!name)
		return true;
	more = strtok_r(NULL, blank, &rest);
	if (more && (strncmp(more, slots, strlen(slots)) != 0 || strtok_r(NULL, blank, &rest))) {
		tool_fail("%s:%d: after the host may come only slots=RANKS, not '%s'", path, number,
			  more);
		return false;
	}
	if (more && !cli_int("slots", more + strlen(slots), 1, SLOTS_MOST, &nslots))
		return false;
	return add_word(name, strlen(name), nslots, hosts);
}

bool hosts_read(const char *path, struct hosts *hosts)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	bool good = true;
	int number = 0;

	if (!file) {
		tool_fail("cannot open %s: %s", path, strerror(errno));
		return false;
	}
	while (good && fgets(line, sizeof(line), file))
		good = read_line(path, ++number, line, hosts);
	fclose(file);
	if (good && hosts->n == 0) {
		tool_fail("%s names no host", path);
		return false;
	}
	return good;
}

static int sum_of_slots(const struct hosts *hosts)
{
	long sum = 0;

	for (int i = 0; i < hosts->n; i++)
		sum += hosts->list[i].nslots;
	return sum > SLOTS_MOST ? SLOTS_MOST + 1 : (int)sum;
}

int hosts_deal(struct hosts *hosts, int nranks)
{
	const int nslots = sum_of_slots(hosts);
	int dealt = 0, n = 0;

	for (int i = 0; nslots && i < hosts->n; i++)
		if (!hosts->list[i].nslots)
			return tool_bad_usage("ranks are said for some hosts, but not for %s",
					      hosts->list[i].name),
			       0;
	if (nranks == 0)
		nranks = nslots ? nslots : hosts->n;
	if (nslots > SLOTS_MOST || (nslots && nranks > nslots))
		return tool_bad_usage("%d ranks for hosts with room for %d", nranks, nslots), 0;
	for (int i = 0; i < hosts->n; i++) {
		struct host *host = &hosts->list[i];
		const int most =
			nslots ? host->nslots : nranks / hosts->n + (i < nranks % hosts->n);

		host->first_rank = dealt;
		host->nranks = most < nranks - dealt ? most : nranks - dealt;
		dealt += host->nranks;
		if (host->nranks)
			hosts->list[n++] = *host;
		else
			free(host->name);
	}
	hosts->n = n;
	return nranks;
}

void hosts_address(const struct host *host, char *out, size_t size)
{
	const char *at = strchr(host->name, '@');
	const char *name = at ? at + 1 : host->name;

	(void)snprintf(out, size, strchr(name, ':') ? "[%s]" : "%s", name);
}

void hosts_free(struct hosts *hosts)
{
	for (int i = 0; i < hosts->n; i++)
		free(hosts->list[i].name);
	free(hosts->list);
	*hosts = (struct hosts){ 0 };
}
