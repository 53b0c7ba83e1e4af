/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/caches.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS       "sys/devices/system/cpu"
#define INDEXES    8
#define LINE_BYTES 4096
#define UNKNOWN    ((size_t)32 << 20)
/* More than any cache has; and CPUs than a kernel counts. */
#define MOST_BYTES ((unsigned long long)1 << 40)
#define MOST_CPUS  (1ul << 20)

/* The first line of a file, without its end. */
static bool read_line(const char *root, const char *name, char line[LINE_BYTES])
{
	char path[LINE_BYTES];
	FILE *file = NULL;
	bool good;

	if ((size_t)snprintf(path, sizeof(path), "%s/" CPUS "/%s", root, name) < sizeof(path))
		file = fopen(path, "re");
	if (!file)
		return false;
	good = fgets(line, LINE_BYTES, file) != NULL;
	fclose(file);
	if (good)
		line[strcspn(line, "\n")] = '\0';
	return good;
}

/* How many "0-3,8" names; 0: it is no such list. */
static size_t count_of(const char *list)
{
	size_t count = 0;

	for (;;) {
		char *end;
		const unsigned long first = strtoul(list, &end, 10);
		unsigned long last = first;

		if (end == list)
			return 0;
		if (*end == '-') {
			list = end + 1;
			last = strtoul(list, &end, 10);
			if (end == list)
				return 0;
		}
		if (last < first || last >= MOST_CPUS)
			return 0;
		count += last - first + 1;
		if (*end == '\0')
			return count;
		if (*end != ',')
			return 0;
		list = end + 1;
	}
}

/* "32768K" or "32M"; 0: neither. */
static size_t bytes_of(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (end == text || value > MOST_BYTES)
		return 0;
	if (*end == 'K')
		value <<= 10;
	else if (*end == 'M')
		value <<= 20;
	else if (*end != '\0')
		return 0;
	return value <= MOST_BYTES ? (size_t)value : 0;
}

/* Level and bytes of a cache of CPU 0, and how many CPUs share it. */
static bool read_cache(const char *root, int index, long *level, size_t *bytes, size_t *sharers)
{
	char name[64], line[LINE_BYTES];

	snprintf(name, sizeof(name), "cpu0/cache/index%d/level", index);
	if (!read_line(root, name, line))
		return false;
	*level = strtol(line, NULL, 10);
	snprintf(name, sizeof(name), "cpu0/cache/index%d/size", index);
	*bytes = read_line(root, name, line) ? bytes_of(line) : 0;
	snprintf(name, sizeof(name), "cpu0/cache/index%d/shared_cpu_list", index);
	*sharers = read_line(root, name, line) ? count_of(line) : 0;
	return *bytes > 0 && *sharers > 0;
}

void tti_caches_read(const char *root, struct tti_caches *out)
{
	char line[LINE_BYTES];
	const size_t ncpus = read_line(root, "online", line) ? count_of(line) : 0;
	long last = 0;

	*out = (struct tti_caches){ .bytes = UNKNOWN, .n = 1 };
	for (int i = 0; i < INDEXES && ncpus > 0; i++) {
		size_t bytes, sharers;
		long level;

		if (!read_cache(root, i, &level, &bytes, &sharers) || level <= last)
			continue;
		last = level;
		out->bytes = bytes;
		out->n = sharers < ncpus ? (ncpus + sharers - 1) / sharers : 1;
	}
}

static struct tti_caches own;

static void read_own(void)
{
	tti_caches_read("", &own);
}

size_t tti_cache_bytes(int nranks)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const size_t wanted = nranks > 1 ? (size_t)nranks : 1;

	pthread_once(&once, read_own);
	return own.bytes * (wanted < own.n ? wanted : own.n);
}
