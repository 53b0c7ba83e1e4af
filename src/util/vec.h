/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_VEC_H
#define TTI_UTIL_VEC_H

/* A growing array of any type: struct { T *at; size_t n, room; }.
 * A zeroed one is empty. Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>

#define TTI_VEC(T)              \
	struct {                \
		T *at;          \
		size_t n, room; \
	}

/* Room for one more; false: out of memory, the vector is as before. */
#define tti_vec_grow(vec)          \
	((vec)->n < (vec)->room || \
	 tti_vec_reserve((void **)&(vec)->at, &(vec)->room, (vec)->n + 1, sizeof(*(vec)->at)))

/* Append; false: out of memory. */
#define tti_vec_push(vec, value) \
	(tti_vec_grow(vec) ? ((vec)->at[(vec)->n++] = (value), true) : false)

#define tti_vec_release(vec) tti_vec_drop((void **)&(vec)->at, &(vec)->n, &(vec)->room)

bool tti_vec_reserve(void **at, size_t *room, size_t want, size_t nbytes);
void tti_vec_drop(void **at, size_t *n, size_t *room);

#endif
