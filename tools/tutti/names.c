/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* Longer words are compared up to here. */
#define LENGTH 32

int names_find(const struct names *names, const char *word)
{
	const char *name;

	for (int i = 0; (name = names->get(names->self, i)) != NULL; i++)
		if (!strcmp(name, word))
			return i;
	return -1;
}

/* Lower case, without - and _. */
static int fold(const char *word, char *out)
{
	int n = 0;

	for (; *word && n < LENGTH; word++)
		if (*word != '-' && *word != '_')
			out[n++] = (char)tolower((unsigned char)*word);
	return n;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* How many characters are changed, missing, too many, or swapped with the next one (Damerau, CACM
 * 1964, in the variant that changes each place once). */
static int distance(const char *a, int na, const char *b, int nb)
{
	int d[LENGTH + 1][LENGTH + 1];

	for (int i = 0; i <= na; i++)
		for (int k = 0; k <= nb; k++) {
			if (!i || !k) {
				d[i][k] = i + k;
				continue;
			}
			d[i][k] = least(d[i - 1][k - 1] + (a[i - 1] != b[k - 1]),
					least(d[i - 1][k], d[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d[i][k] = least(d[i][k], d[i - 2][k - 2] + 1);
		}
	return d[na][nb];
}

const char *names_nearest(const struct names *names, const char *word)
{
	char wanted[LENGTH], candidate[LENGTH];
	const int length = fold(word, wanted);
	int best = length < 4 ? 1 : length < 9 ? 2 : 3;
	const char *name, *nearest = NULL;

	for (int i = 0; (name = names->get(names->self, i)) != NULL; i++) {
		const int d = distance(wanted, length, candidate, fold(name, candidate));

		if (d < best) {
			best = d;
			nearest = name;
		}
	}
	return nearest;
}

void names_join(const struct names *names, const char *last, char *out, size_t size)
{
	const char *name;
	size_t len = 0;

	out[0] = '\0';
	for (int i = 0; (name = names->get(names->self, i)) != NULL && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s",
					!i                               ? ""
					: names->get(names->self, i + 1) ? ", "
									 : last,
					name);
}

int names_choose(const struct names *names, const char *what, const char *word)
{
	const int found = names_find(names, word);
	const char *nearest;
	char list[512];
	int n = 0;

	if (found >= 0)
		return found;
	while (names->get(names->self, n))
		n++;
	nearest = names_nearest(names, word);
	names_join(names, " or ", list, sizeof(list));
	if (nearest)
		tool_bad_usage("%s '%s'; is %s meant?", what, word, nearest);
	else
		tool_bad_usage("%s '%s': choose %s%s", what, word, n > 4 ? "one of " : "", list);
	return -1;
}
