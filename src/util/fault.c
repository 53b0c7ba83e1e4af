/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/params.h"
#include "util/params_read.h"

#define MOST_POINTS 16
#define MOST_PASSES 1000000000L

enum {
	UNREAD, /* the environment was not looked at yet */
	OFF,
	ON,
};

struct point {
	char name[32];
	long left; /* passes until it fails; 0: it did */
};

static atomic_int state = UNREAD;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct point points[MOST_POINTS]; /* under `lock`, as the next */
static int npoints;

/* One "point:count" of len characters. */
static bool parse_point(const char *item, size_t len, struct point *out)
{
	const char *colon = memchr(item, ':', len);
	const size_t name_len = colon ? (size_t)(colon - item) : 0;
	long count = 0;

	if (name_len == 0 || name_len >= sizeof(out->name) || name_len + 1 == len)
		return false;
	for (const char *digit = colon + 1; digit < item + len; digit++) {
		if (*digit < '0' || *digit > '9' || count > MOST_PASSES / 10 - 1)
			return false;
		count = count * 10 + (*digit - '0');
	}
	memcpy(out->name, item, name_len);
	out->name[name_len] = '\0';
	out->left = count;
	return count > 0;
}

bool tti_fault_set(const char *list)
{
	struct point parsed[MOST_POINTS];
	bool failed = false;
	int n = 0;

	for (const char *item = list ? list : ""; *item;) {
		const size_t len = strcspn(item, ",");

		if (n < MOST_POINTS && parse_point(item, len, &parsed[n]))
			n++;
		else if (len)
			tti_log(TTI_LOG_WARN, TTI_ENV,
				"TUTTI_FAULT: \"%.*s\" ignored, wanted is point:count with a count "
				"from 1, at most %d of them",
				(int)(len < 64 ? len : 64), item, MOST_POINTS);
		item += len + (item[len] == ',');
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < npoints; i++)
		failed |= points[i].left == 0;
	memcpy(points, parsed, (size_t)n * sizeof(parsed[0]));
	npoints = n;
	atomic_store_explicit(&state, n ? ON : OFF, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return failed;
}

static bool pass(const char *point)
{
	bool fails = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < npoints; i++)
		if (points[i].left > 0 && !strcmp(points[i].name, point))
			fails |= --points[i].left == 0;
	pthread_mutex_unlock(&lock);
	if (fails)
		tti_log(TTI_LOG_INFO, TTI_ENV, "fault injected at %s", point);
	return fails;
}

bool tti_fault(const char *point)
{
	int now = atomic_load_explicit(&state, memory_order_relaxed);

	if (now == UNREAD) {
		/* OFF first: reading the list must not come back here. */
		if (atomic_compare_exchange_strong(&state, &now, OFF))
			(void)tti_fault_set(tti_params_quiet()->fault);
		now = atomic_load_explicit(&state, memory_order_relaxed);
	}
	return now == ON && pass(point);
}
