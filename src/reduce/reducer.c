/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/reducer.h"

#include <string.h>

struct tti_reducer tti_reducer_of(tutti_type type, tutti_op op, int n)
{
	return (struct tti_reducer){ .fn = tti_reduce_get(type, op),
				     .divisor = op == TUTTI_AVG ? n : 0,
				     .type = type };
}

void tti_scalars_fill(struct tti_scalars *out, const void *scalar, tutti_type type)
{
	const size_t size = tutti_type_size(type);

	memcpy(out->bytes, scalar, size);
	for (size_t filled = size; filled < sizeof(out->bytes); filled *= 2)
		memcpy(out->bytes + filled, out->bytes, filled);
}

/* The input times the scalar, rounded to the type as every product is. */
static void multiply(const struct tti_reducer *reducer, void *dst, void *dst2, const void *input,
		     size_t count)
{
	const void *const factors[] = { input, reducer->scalars->bytes };

	tti_reduce_get(reducer->type, TUTTI_PROD)(dst, dst2, factors, 2, count, 0);
}

static void premul_block(const struct tti_reducer *reducer, void *dst, void *dst2, const void **src,
			 int nsrc, int input_at, size_t count)
{
	_Alignas(64) unsigned char product[TTI_REDUCER_BLOCK];
	const void *const input = src[input_at];

	if (nsrc == 1) {
		multiply(reducer, dst, dst2, input, count);
		return;
	}
	multiply(reducer, product, NULL, input, count);
	src[input_at] = product;
	reducer->fn(dst, dst2, src, nsrc, count, 0);
	src[input_at] = input;
}

/* Two buffers in turn: what is combined so far, and the next source, which becomes it. */
static void user_block(const struct tti_reducer *reducer, void *dst, void *dst2,
		       const void *const *src, int nsrc, size_t count)
{
	_Alignas(64) unsigned char buf[2][TTI_REDUCER_BLOCK];
	const size_t nbytes = count * tutti_type_size(reducer->type);

	memcpy(buf[0], src[0], nbytes);
	for (int s = 1; s < nsrc; s++) {
		memcpy(buf[s & 1], src[s], nbytes);
		reducer->user(buf[s & 1], buf[(s - 1) & 1], count, reducer->type, reducer->arg);
	}
	memcpy(dst, buf[(nsrc - 1) & 1], nbytes);
	if (dst2)
		memcpy(dst2, buf[(nsrc - 1) & 1], nbytes);
}

void tti_reducer_run(const struct tti_reducer *reducer, void *dst, void *dst2, const void **src,
		     int nsrc, int input_at, size_t count, bool final)
{
	const bool multiplies = reducer->scalars && input_at >= 0;
	char *to = dst, *to2 = dst2;
	size_t size, most;

	if (reducer->fn && !multiplies) {
		reducer->fn(dst, dst2, src, nsrc, count, final ? reducer->divisor : 0);
		return;
	}
	size = tutti_type_size(reducer->type);
	most = TTI_REDUCER_BLOCK / size;
	for (size_t left = count, n; left > 0; left -= n) {
		n = left < most ? left : most;
		if (multiplies)
			premul_block(reducer, to, to2, src, nsrc, input_at, n);
		else
			user_block(reducer, to, to2, src, nsrc, n);
		for (int s = 0; s < nsrc; s++)
			src[s] = (const char *)src[s] + n * size;
		to += n * size;
		to2 = to2 ? to2 + n * size : NULL;
	}
}
