/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/vec.h"

#include <stdint.h>
#include <string.h>

#include "util/mem.h"

/* `at` points to a pointer of another type: it is read and written as bytes, or
 * the compiler may assume that the caller's did not change. */
bool tti_vec_reserve(void **at, size_t *room, size_t want, size_t nbytes)
{
	size_t more = *room < 8 ? 8 : *room;
	void *array;

	if (want <= *room)
		return true;
	while (more < want) {
		if (more > SIZE_MAX / 2)
			return false;
		more *= 2;
	}
	if (nbytes && more > PTRDIFF_MAX / nbytes)
		return false;
	memcpy(&array, at, sizeof(array));
	array = tti_realloc(array, more * nbytes);
	if (!array)
		return false;
	memcpy(at, &array, sizeof(array));
	*room = more;
	return true;
}

void tti_vec_drop(void **at, size_t *n, size_t *room)
{
	void *array;

	memcpy(&array, at, sizeof(array));
	tti_free(array);
	array = NULL;
	memcpy(at, &array, sizeof(array));
	*n = 0;
	*room = 0;
}
