/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of one type over memory of the host, where operators.inc.h includes this. */

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
