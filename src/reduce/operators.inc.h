/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators of one type, then what runs them (K_RUN), included by types.inc.h with
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

#include K_RUN

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
