/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of one type, included by types.inc.h with
 *   K_NAME        prefix of the functions
 *   K_ELEM        an element in memory
 *   K_VEC, K_LANE the accumulator's vector and lane
 *   K_LOAD(p)     elements at p to K_VEC
 *   K_STORE(p, x, op)
 *   K_ADD         function of two K_VEC; if not defined, +
 *   K_MUL         the same; *
 *   K_MIN, K_MAX  functions of two K_VEC; not defined: there is no order
 *   K_CANON       function: every NaN to the one that is stored (floats)
 *   K_DIVIDE(x, divisor)  one lane of integers; of floats all, / if not defined
 * or, for the bitwise and logical operators in place of the arithmetic ones,
 *   K_BITS        defined
 *   K_MIN         the smaller one of two unsigned numbers
 * all of which it undefines. */

#define K_JOIN_(a, b) a##_##b
#define K_JOIN(a, b)  K_JOIN_(a, b)
#define K(name)       K_JOIN(K_NAME, name)
#define K_LANES       (sizeof(K_VEC) / sizeof(K_LANE))
/* What a K_VEC holds in memory. */
#define K_BYTES       (K_LANES * sizeof(K_ELEM))
#ifndef K_ADD
#define K_ADD(a, b) ((K_VEC)((a) + (b)))
#endif
#ifndef K_MUL
#define K_MUL(a, b) ((K_VEC)((a) * (b)))
#endif
#ifndef K_DIVIDE
#define K_DIVIDE(x, divisor) ((x) / (K_LANE)(divisor))
#endif

#ifdef K_BITS
/* What is not zero to 1. */
K_INLINE K_VEC K(truth)(K_VEC x)
{
	return K_MIN(x, ((K_VEC)((K_VEC){ 0 } + (K_LANE)1)));
}

/* The conjunction and the disjunction of two numbers become truths when all are combined. */
K_INLINE K_VEC K(combine)(tutti_op op, K_VEC a, K_VEC b)
{
	if (op == TUTTI_BAND)
		return (K_VEC)(a & b);
	if (op == TUTTI_BXOR)
		return (K_VEC)(a ^ b);
	if (op == TUTTI_LAND)
		return K_MIN(a, b);
	if (op == TUTTI_LXOR)
		return (K_VEC)(K(truth)(a) ^ K(truth)(b));
	return (K_VEC)(a | b);
}
#else
K_INLINE K_VEC K(combine)(tutti_op op, K_VEC a, K_VEC b)
{
	if (op == TUTTI_PROD)
		return K_MUL(a, b);
#ifdef K_MIN
	if (op == TUTTI_MAX)
		return K_MAX(a, b);
	if (op == TUTTI_MIN)
		return K_MIN(a, b);
#endif
	return K_ADD(a, b);
}
#endif

#ifdef K_BITS
K_INLINE K_VEC K(finish)(tutti_op op, K_VEC x, int divisor)
{
	(void)divisor;
	return op == TUTTI_LAND || op == TUTTI_LOR ? K(truth)(x) : x;
}
#elif defined(K_CANON)
K_INLINE K_VEC K(finish)(tutti_op op, K_VEC x, int divisor)
{
	if (op == TUTTI_AVG && divisor > 0)
		x = K_DIVIDE(x, divisor);
	return K_CANON(x);
}
#else
K_INLINE K_VEC K(finish)(tutti_op op, K_VEC x, int divisor)
{
	K_LANE lane[K_LANES];

	if (op != TUTTI_AVG || divisor <= 0)
		return x;
	memcpy(lane, &x, sizeof(x));
	for (size_t i = 0; i < K_LANES; i++)
		lane[i] = K_DIVIDE(lane[i], divisor);
	memcpy(&x, lane, sizeof(x));
	return x;
}
#endif

/* Four vectors, `at` bytes into every array; by name, as compilers keep an array
 * of vectors in memory. All is read before a byte is written: dst and dst2 may be
 * sources. */
K_INLINE void K(block)(tutti_op op, const struct k_pass *pass, size_t at)
{
	const unsigned char *from = (const unsigned char *)pass->src[0] + at;
	unsigned char *to = pass->dst + at;
	K_VEC acc0 = K_LOAD(from), acc1 = K_LOAD(from + K_BYTES);
	K_VEC acc2 = K_LOAD(from + 2 * K_BYTES), acc3 = K_LOAD(from + 3 * K_BYTES);

	for (int s = 1; s < pass->nsrc; s++) {
		from = (const unsigned char *)pass->src[s] + at;
		acc0 = K(combine)(op, acc0, K_LOAD(from));
		acc1 = K(combine)(op, acc1, K_LOAD(from + K_BYTES));
		acc2 = K(combine)(op, acc2, K_LOAD(from + 2 * K_BYTES));
		acc3 = K(combine)(op, acc3, K_LOAD(from + 3 * K_BYTES));
	}
	acc0 = K(finish)(op, acc0, pass->divisor);
	acc1 = K(finish)(op, acc1, pass->divisor);
	acc2 = K(finish)(op, acc2, pass->divisor);
	acc3 = K(finish)(op, acc3, pass->divisor);
	for (;;) {
		K_STORE(to, acc0, op);
		K_STORE(to + K_BYTES, acc1, op);
		K_STORE(to + 2 * K_BYTES, acc2, op);
		K_STORE(to + 3 * K_BYTES, acc3, op);
		if (!pass->dst2 || to == pass->dst2 + at)
			return;
		to = pass->dst2 + at;
	}
}

K_INLINE void K(one)(tutti_op op, const struct k_pass *pass, size_t at)
{
	K_VEC acc = K_LOAD((const unsigned char *)pass->src[0] + at);

	for (int s = 1; s < pass->nsrc; s++)
		acc = K(combine)(op, acc, K_LOAD((const unsigned char *)pass->src[s] + at));
	acc = K(finish)(op, acc, pass->divisor);
	K_STORE(pass->dst + at, acc, op);
	if (pass->dst2)
		K_STORE(pass->dst2 + at, acc, op);
}

/* The last nbytes, less than a vector: the same through a buffer. */
K_INLINE void K(rest)(tutti_op op, const struct k_pass *pass, size_t at, size_t nbytes)
{
	_Alignas(64) unsigned char buf[64] = { 0 };
	K_VEC acc;

	v_rest_in(buf, (const unsigned char *)pass->src[0] + at, nbytes);
	acc = K_LOAD(buf);
	for (int s = 1; s < pass->nsrc; s++) {
		v_rest_in(buf, (const unsigned char *)pass->src[s] + at, nbytes);
		acc = K(combine)(op, acc, K_LOAD(buf));
	}
	acc = K(finish)(op, acc, pass->divisor);
	K_STORE(buf, acc, op);
	v_rest_out(pass->dst + at, buf, nbytes);
	if (pass->dst2)
		v_rest_out(pass->dst2 + at, buf, nbytes);
}

K_INLINE void K(run)(tutti_op op, const struct k_pass *pass, size_t nbytes)
{
	size_t at = 0;

	if (pass->nsrc == 1 && (op != TUTTI_AVG || pass->divisor <= 1)) {
		k_copy(pass, nbytes);
		return;
	}
	for (; nbytes - at >= 4 * K_BYTES; at += 4 * K_BYTES)
		K(block)(op, pass, at);
	for (; nbytes - at >= K_BYTES; at += K_BYTES)
		K(one)(op, pass, at);
	if (K_LANES > 1 && at < nbytes)
		K(rest)(op, pass, at, nbytes - at);
}

#define K_OP(name, op)                                                                             \
	static void K(name)(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, \
			    int divisor)                                                           \
	{                                                                                          \
		const struct k_pass pass = { dst, dst2, src, nsrc, divisor };                      \
                                                                                                   \
		K(run)(op, &pass, count * sizeof(K_ELEM));                                         \
	}

#ifdef K_BITS
K_OP(band, TUTTI_BAND)
K_OP(bor, TUTTI_BOR)
K_OP(bxor, TUTTI_BXOR)
K_OP(land, TUTTI_LAND)
K_OP(lor, TUTTI_LOR)
K_OP(lxor, TUTTI_LXOR)
#else
K_OP(sum, TUTTI_SUM)
K_OP(prod, TUTTI_PROD)
#ifdef K_MIN
K_OP(max, TUTTI_MAX)
K_OP(min, TUTTI_MIN)
#endif
K_OP(avg, TUTTI_AVG)
#endif

#undef K_OP
#undef K_JOIN_
#undef K_JOIN
#undef K
#undef K_LANES
#undef K_BYTES
#undef K_NAME
#undef K_ELEM
#undef K_VEC
#undef K_LANE
#undef K_LOAD
#undef K_STORE
#undef K_ADD
#undef K_MUL
#undef K_MIN
#undef K_MAX
#undef K_CANON
#undef K_DIVIDE
#undef K_BITS
