/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "tool.h"

#define SLOTS_MOST (1 << 16)

static bool no_memory(void)
{
	tool_fail("out of memory");
	return false;
}

static bool add(const char *name, size_t len, int nslots, struct hosts *hosts)
{
	struct host *list = realloc(hosts->list, ((size_t)hosts->n + 1) * sizeof(*list));
	char *copy = strndup(name, len);

	if (list)
		hosts->list = list;
	if (!list || !copy) {
		free(copy);
		return no_memory();
	}
	list[hosts->n++] = (struct host){ .name = copy, .nslots = nslots };
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

/* "slots=4", "switch=leaf1", or a word of Open MPI's that says nothing here. */
static bool read_word(const char *path, int number, const char *word, struct host *host)
{
	if (!strncmp(word, "slots=", 6))
		return cli_int("slots", word + 6, 1, SLOTS_MOST, &host->nslots);
	if (!strncmp(word, "switch=", 7) && word[7]) {
		free(host->switch_name);
		host->switch_name = strdup(word + 7);
		return host->switch_name || no_memory();
	}
	if (!strncmp(word, "max_slots=", 10) || !strncmp(word, "max-slots=", 10))
		return true;
	tool_fail("%s:%d: '%s' is neither slots=N nor switch=NAME", path, number, word);
	return false;
}

static bool read_line(const char *path, int number, char *line, struct hosts *hosts)
{
	static const char blank[] = " \t\r\n";
	const char *word;
	char *rest;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, blank, &rest);
	if (!word)
		return true;
	if (!add_word(word, strlen(word), 0, hosts))
		return false;
	while ((word = strtok_r(NULL, blank, &rest)) != NULL)
		if (!read_word(path, number, word, &hosts->list[hosts->n - 1]))
			return false;
	return true;
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
	if (ferror(file)) {
		tool_fail("cannot read %s: %s", path, strerror(errno));
		good = false;
	}
	fclose(file);
	if (good && hosts->n == 0) {
		tool_fail("%s names no host", path);
		return false;
	}
	return good;
}

static void free_one(struct host *host)
{
	free(host->name);
	free(host->switch_name);
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
			free_one(host);
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
		free_one(&hosts->list[i]);
	free(hosts->list);
	*hosts = (struct hosts){ 0 };
}
