/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/distance.h"

#include <limits.h>
#include <stdbool.h>

/* Longer words are not compared: nobody mistypes those. */
#define LONGEST 64

/* toupper() depends on the program's locale. */
static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

int tti_distance(const char *a, size_t na, const char *b, size_t nb)
{
	/* Rows i-2, i-1 and i of the table of distances between prefixes. */
	int rows[3][LONGEST + 1];

	if (na > LONGEST || nb > LONGEST)
		return INT_MAX;
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int *row = rows[i % 3];
		const int *above = rows[(i + 2) % 3];
		const int *above2 = rows[(i + 1) % 3];

		row[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			const bool same = upper(a[i - 1]) == upper(b[j - 1]);

			row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same);
			if (i > 1 && j > 1 && upper(a[i - 1]) == upper(b[j - 2]) &&
			    upper(a[i - 2]) == upper(b[j - 1]))
				row[j] = least(row[j], above2[j - 2] + 1);
		}
	}
	return rows[na % 3][nb];
}
