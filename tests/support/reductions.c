/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/reductions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduce/reduce.h"

static void *get(size_t nbytes)
{
	void *memory = aligned_alloc(64, (nbytes + 64) / 64 * 64);

	if (!memory)
		abort();
	return memory;
}

/* -- Inputs ------------------------------------------------------------------------ */

#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t draw(uint64_t *state)
{
	*state += STEP;
	uint64_t z = *state;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Any sign and mantissa, and an exponent up to `spread` from that of 1. */
static uint64_t draw_float(uint64_t *state, int mantissa_bits, int exponent_bits, int spread)
{
	const uint64_t bias = (UINT64_C(1) << (exponent_bits - 1)) - 1, random = draw(state);
	const uint64_t exponent = bias - (uint64_t)spread + (random >> 54) % (2 * (uint64_t)spread);

	return (random & 1) << (mantissa_bits + exponent_bits) | exponent << mantissa_bits |
	       (random >> 1 & ((UINT64_C(1) << mantissa_bits) - 1));
}

static uint64_t draw_element(uint64_t *state, tutti_type type)
{
	if (type == TUTTI_FLOAT64)
		return draw_float(state, 52, 11, 40);
	if (type == TUTTI_FLOAT32)
		return draw_float(state, 23, 8, 20);
	if (type == TUTTI_FLOAT16)
		return draw_float(state, 10, 5, 9);
	if (type == TUTTI_BFLOAT16)
		return draw_float(state, 7, 8, 12);
	if (type == TUTTI_FLOAT8_E4M3)
		return draw_float(state, 3, 4, 5);
	if (type == TUTTI_FLOAT8_E5M2)
		return draw_float(state, 2, 5, 7);
	return draw(state);
}

/* Of a rank's input `count` elements, from `first` on: each is one draw, a complex number two. */
static void fill(void *out, const struct reduction *r, int rank, size_t first, size_t count)
{
	const bool is_complex = r->type == TUTTI_COMPLEX64 || r->type == TUTTI_COMPLEX128;
	const tutti_type part = r->type == TUTTI_COMPLEX64    ? TUTTI_FLOAT32
				: r->type == TUTTI_COMPLEX128 ? TUTTI_FLOAT64
							      : r->type;
	const size_t size = tutti_type_size(part), nparts = is_complex ? 2 : 1;
	uint64_t state = r->seed * 1000003 + (uint64_t)rank + first * nparts * STEP;

	for (size_t i = 0; i < count * nparts; i++) {
		const uint64_t element = draw_element(&state, part);

		memcpy((char *)out + i * size, &element, size); /* little end first */
	}
}

/* -- Results ----------------------------------------------------------------------- */

void expect_kernel(const struct reduction *r, void *out, const void *const *inputs, int n,
		   size_t count)
{
	const tutti_op op = (tutti_op)(r->op % TUTTI_OP_REPRODUCIBLE);

	tti_reduce_get_isa(r->type, op, TTI_ISA_SCALAR)(out, NULL, inputs, n, count, n);
}

void expect_premul(const struct reduction *r, void *out, const void *const *inputs, int n,
		   size_t count)
{
	const size_t size = tutti_type_size(r->type);
	char *factors = get(count * size);
	void **products = get((size_t)n * sizeof(void *));

	for (int rank = 0; rank < n; rank++) {
		const void *const pair[] = { inputs[rank], factors };

		for (size_t i = 0; i < count; i++)
			memcpy(factors + i * size, (const char *)r->scalars + (size_t)rank * size,
			       size);
		products[rank] = get(count * size);
		tti_reduce_get_isa(r->type, TUTTI_PROD, TTI_ISA_SCALAR)(products[rank], NULL, pair,
									2, count, 0);
	}
	tti_reduce_get_isa(r->type, TUTTI_SUM,
			   TTI_ISA_SCALAR)(out, NULL, (const void *const *)products, n, count, 0);
	for (int rank = 0; rank < n; rank++)
		free(products[rank]);
	free(products);
	free(factors);
}

/* -- The call ---------------------------------------------------------------------- */

static tutti_status make(const struct reduction *r, const void *send, void *recv, tutti_comm_t comm,
			 tutti_stream_t stream)
{
	tutti_status st = TUTTI_EINVAL;

	if (r->coll == TUTTI_ALL_REDUCE)
		st = tutti_all_reduce(send, recv, r->count, r->type, r->op, comm, stream);
	else if (r->coll == TUTTI_REDUCE)
		st = tutti_reduce(send, recv, r->count, r->type, r->op, r->root, comm, stream);
	else if (r->coll == TUTTI_REDUCE_SCATTER)
		st = tutti_reduce_scatter(send, recv, r->count, r->type, r->op, comm, stream);
	return st == TUTTI_OK && stream ? tutti_stream_synchronize(stream) : st;
}

static bool compare(const struct reduction *r, const char *want, const char *got, int rank, int n)
{
	const size_t size = tutti_type_size(r->type);

	for (size_t i = 0; i < r->count; i++) {
		uint64_t a[2] = { 0 }, b[2] = { 0 };

		memcpy(a, want + i * size, size);
		memcpy(b, got + i * size, size);
		if (memcmp(a, b, sizeof(a)) == 0)
			continue;
		if (r->quiet)
			return false;
		fprintf(stderr,
			"%s(%zu x %s, %s %d, root %d, in place %d) of rank %d of %d: element %zu "
			"is %#llx %#llx, not %#llx %#llx\n",
			tutti_collective_name(r->coll), r->count, tutti_type_name(r->type),
			tutti_op_name(r->op), (int)r->op, r->root, r->in_place, rank, n, i,
			(unsigned long long)b[0], (unsigned long long)b[1],
			(unsigned long long)a[0], (unsigned long long)a[1]);
		return false;
	}
	return true;
}

bool reduction_run(const struct reduction *r, tutti_comm_t comm, int rank, int n,
		   tutti_stream_t stream)
{
	const bool scatters = r->coll == TUTTI_REDUCE_SCATTER;
	const size_t size = tutti_type_size(r->type);
	const size_t all = r->count * (scatters ? (size_t)n : 1);
	const size_t first = scatters ? (size_t)rank * r->count : 0, own = first * size;
	char *send = get(all * size), *recv = get(r->count * size), *want = get(r->count * size);
	const void **inputs = get((size_t)n * sizeof(void *));
	bool good;

	for (int i = 0; i < n; i++) {
		char *input = get(r->count * size);

		fill(input, r, i, first, r->count);
		inputs[i] = input;
	}
	fill(send, r, rank, 0, all);
	r->expect(r, want, inputs, n, r->count);
	good = make(r, send, r->in_place ? send + own : recv, comm, stream) == TUTTI_OK;
	if (!good)
		fprintf(stderr, "rank %d of %d: %s\n", rank, n, tutti_last_error(comm));
	else if (r->coll != TUTTI_REDUCE || rank == r->root)
		good = compare(r, want, r->in_place ? send + own : recv, rank, n);
	for (int i = 0; i < n; i++)
		free((void *)(uintptr_t)inputs[i]);
	free(inputs);
	free(want);
	free(recv);
	free(send);
	return good;
}
