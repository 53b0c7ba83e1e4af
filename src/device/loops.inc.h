/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes of one type (pass.h), where reduce/operators.inc.h includes this.
 *
 * The loop over 16 bytes of each operand at a time is there once for each operator: there `op`,
 * `scales` and all of `turn` but at, left and stride are constants. What is not at multiples of 16
 * bytes, and words, have one loop each, in which `op` is not a constant. */

/* Vectors that 16 bytes of memory hold, and how many times 16 bytes of each source a thread reads
 * before it waits for any: as many as there are registers for. */
#define K_VECS  (16 / K_BYTES)
#define K_AHEAD (sizeof(K_ELEM) == 1 ? 2 : sizeof(K_ELEM) == 2 ? 3 : 4)
#ifdef K_BITS
#define K_PRODUCT TUTTI_LAND
#else
#define K_PRODUCT TUTTI_PROD
#endif

/* What a thread takes of each operand in one turn: `ahead` times `width` bytes, every `stride`, of
 * which each makes `vecs` vectors. Of less than a vector, an element, the rest is 0. */
struct K(turn) {
	uint64_t at, end, stride;
	uint32_t width, ahead, vecs;
	bool natural; /* all addresses are multiples of `width` */
};

/* -- Vectors ----------------------------------------------------------------------------------- */

K_INLINE void K(open)(const struct K(turn) * turn, struct tti_dev_unit *unit, K_VEC *acc)
{
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_AHEAD * K_VECS; v++)
		if (v < turn->ahead * turn->vecs)
			acc[v] = K_LOAD(tti_dev_bytes(&unit[v / turn->vecs]) +
					v % turn->vecs * K_BYTES);
}

K_INLINE void K(join_by)(tutti_op op, const struct K(turn) * turn, struct tti_dev_unit *unit,
			 K_VEC *acc)
{
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_AHEAD * K_VECS; v++)
		if (v < turn->ahead * turn->vecs)
			acc[v] = K(combine)(op, acc[v],
					    K_LOAD(tti_dev_bytes(&unit[v / turn->vecs]) +
						   v % turn->vecs * K_BYTES));
}

K_INLINE void K(join)(int32_t op, const struct K(turn) * turn, struct tti_dev_unit *unit,
		      K_VEC *acc)
{
#ifdef K_BITS
	if (op == TUTTI_BAND)
		K(join_by)(TUTTI_BAND, turn, unit, acc);
	else if (op == TUTTI_LAND)
		K(join_by)(TUTTI_LAND, turn, unit, acc);
	else if (op == TUTTI_BXOR)
		K(join_by)(TUTTI_BXOR, turn, unit, acc);
	else if (op == TUTTI_LXOR)
		K(join_by)(TUTTI_LXOR, turn, unit, acc);
	else
		K(join_by)(TUTTI_LOR, turn, unit, acc);
#else
#ifdef K_MIN
	if (op == TUTTI_MAX)
		K(join_by)(TUTTI_MAX, turn, unit, acc);
	else if (op == TUTTI_MIN)
		K(join_by)(TUTTI_MIN, turn, unit, acc);
	else
#endif
		if (op == TUTTI_PROD)
		K(join_by)(TUTTI_PROD, turn, unit, acc);
	else
		K(join_by)(TUTTI_AVG, turn, unit, acc);
#endif
}

/* Of all arithmetic AVG has a divisor at most. */
K_INLINE void K(close)(int32_t op, int32_t divisor, const struct K(turn) * turn, K_VEC *acc,
		       struct tti_dev_unit *unit)
{
	const uint32_t n = turn->ahead * turn->vecs;

	(void)divisor;
#ifndef K_BITS
	if (divisor > 0) {
		TTI_DEV_UNROLL
		for (uint32_t v = 0; v < K_AHEAD * K_VECS; v++)
			if (v < n)
				acc[v] = K(finish)(TUTTI_AVG, acc[v], divisor);
	}
#endif
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_AHEAD * K_VECS; v++)
		if (v < n)
			K_STORE(tti_dev_bytes(&unit[v / turn->vecs]) + v % turn->vecs * K_BYTES,
				K(finish)((tutti_op)op, acc[v], 0), (tutti_op)op);
}

/* Products are rounded to the type before they are added. */
K_INLINE void K(scale)(const struct tti_dev_pass *pass, const struct K(turn) * turn,
		       struct tti_dev_unit *unit)
{
	const uint64_t scalar[2] = { pass->scalar[0], pass->scalar[1] };
	struct tti_dev_unit factor;
	K_VEC product[K_AHEAD * K_VECS];

	TTI_DEV_UNROLL
	for (size_t i = 0; i < K_LANES; i++)
		memcpy(tti_dev_bytes(&factor) + i * sizeof(K_ELEM), scalar, sizeof(K_ELEM));
	K(open)(turn, unit, product);
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_AHEAD * K_VECS; v++)
		if (v < turn->ahead * turn->vecs)
			product[v] =
				K(combine)(K_PRODUCT, product[v], K_LOAD(tti_dev_bytes(&factor)));
	K(close)(K_PRODUCT, 0, turn, product, unit);
}

/* -- Memory ------------------------------------------------------------------------------------ */

/* Whether the j-th part is there. */
K_INLINE bool K(has)(const struct K(turn) * turn, uint32_t j)
{
	return j < turn->ahead && turn->at + j * turn->stride < turn->end;
}

/* A GPU reads the last bytes again where there are no more: it would have to wait for what it reads on
 * a condition before it can read on. */
K_INLINE void K(take)(const struct tti_dev_pass *pass, int32_t s, const struct K(turn) * turn,
		      struct tti_dev_unit *unit)
{
	const uint64_t from = tti_dev_place_of(&pass->src[s]);

	TTI_DEV_UNROLL
	for (uint32_t j = 0; j < K_AHEAD; j++) {
		uint64_t at = turn->at + j * turn->stride;

		tti_dev_blank(&unit[j], turn->width < K_BYTES);
#ifdef __CUDACC__
		at = at < turn->end ? at : turn->end - turn->width;
		if (j >= turn->ahead)
			continue;
#else
		if (!K(has)(turn, j))
			continue;
#endif
		if (turn->natural)
			tti_dev_load(&unit[j], from + at, turn->width);
		else
			tti_dev_gather(&unit[j], from + at, turn->width);
	}
}

K_INLINE void K(give)(const struct tti_dev_pass *pass, int32_t d, const struct K(turn) * turn,
		      const struct tti_dev_unit *unit)
{
	const uint64_t to = tti_dev_place_of(&pass->dst[d]) + turn->at;

	TTI_DEV_UNROLL
	for (uint32_t j = 0; j < K_AHEAD; j++) {
		if (!K(has)(turn, j))
			continue;
		if (turn->natural)
			tti_dev_store(to + j * turn->stride, &unit[j], turn->width);
		else
			tti_dev_scatter(to + j * turn->stride, &unit[j], turn->width);
	}
}

/* The next source is read while the one before is combined. */
K_INLINE void K(sources)(int32_t op, bool scales, const struct tti_dev_pass *pass,
			 const struct K(turn) * turn, struct tti_dev_unit *result)
{
	struct tti_dev_unit next[K_AHEAD];
	K_VEC acc[K_AHEAD * K_VECS];

	K(take)(pass, 0, turn, result);
	if (pass->nsrc > 1)
		K(take)(pass, 1, turn, next);
	if (scales && pass->input_at == 0)
		K(scale)(pass, turn, result);
	K(open)(turn, result, acc);
	TTI_DEV_ROLLED
	for (int32_t s = 1; s < pass->nsrc; s++) {
		TTI_DEV_UNROLL
		for (uint32_t j = 0; j < K_AHEAD; j++)
			result[j] = next[j];
		if (s + 1 < pass->nsrc)
			K(take)(pass, s + 1, turn, next);
		if (scales && pass->input_at == s)
			K(scale)(pass, turn, result);
		K(join)(op, turn, result, acc);
	}
	K(close)(op, pass->divisor, turn, acc, result);
}

K_INLINE void K(loop)(int32_t op, bool scales, const struct tti_dev_env *env,
		      const struct tti_dev_pass *pass, uint64_t begin, uint64_t end,
		      struct K(turn) turn)
{
	turn.end = end;
	turn.stride = (uint64_t)tti_dev_nthreads(&env->world) * turn.width;
	TTI_DEV_ROLLED
	for (turn.at = begin + (uint64_t)tti_dev_tid(&env->world) * turn.width; turn.at < end;
	     turn.at += turn.ahead * turn.stride) {
		struct tti_dev_unit result[K_AHEAD];

		K(sources)(op, scales, pass, &turn, result);
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++)
			K(give)(pass, d, &turn, result);
	}
}

/* All places are multiples of 16. */
K_INLINE void K(wide)(tutti_op op, bool scales, const struct tti_dev_env *env,
		      const struct tti_dev_pass *pass)
{
	const struct K(turn)
		turn = { .width = 16, .ahead = K_AHEAD, .vecs = K_VECS, .natural = true };

	K(loop)((int32_t)op, scales, env, pass, 0, tti_dev_wide_bytes(pass), turn);
}

/* What is not by 16 bytes, by elements. */
K_INLINE void K(rest)(int32_t op, const struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const uint64_t begin = tti_dev_wide_bytes(pass), end = pass->count * sizeof(K_ELEM);
	struct K(turn)
		turn = { .width = sizeof(K_ELEM), .ahead = K_AHEAD, .vecs = 1, .natural = true };

	if (tti_dev_places(pass) % sizeof(K_ELEM) == 0) {
		K(loop)(op, true, env, pass, begin, end, turn);
		return;
	}
	turn.ahead = 1;
	turn.natural = false;
	K(loop)(op, true, env, pass, begin, end, turn);
}

/* -- Words ------------------------------------------------------------------------------------- */

/* How much of a unit there is. */
K_INLINE uint32_t K(there)(const struct K(turn) * turn)
{
	const uint64_t left = turn->end - turn->at;

	return left < TTI_DEV_UNIT ? (uint32_t)left : TTI_DEV_UNIT;
}

K_INLINE bool K(join_words)(int32_t op, struct tti_dev_env *env, const struct tti_dev_pass *pass,
			    int32_t s, const struct K(turn) * turn, struct tti_dev_words *words,
			    K_VEC *acc)
{
	struct tti_dev_unit unit;

	if (!tti_dev_await(env, &pass->src[s], turn->at / TTI_DEV_UNIT, words, &unit))
		return false;
	if (pass->input_at == s)
		K(scale)(pass, turn, &unit);
	if (s == 0)
		K(open)(turn, &unit, acc);
	else
		K(join)(op, turn, &unit, acc);
	return true;
}

/* Four sources are looked at before the first of them is waited for. */
K_INLINE bool K(words_at)(int32_t op, struct tti_dev_env *env, const struct tti_dev_pass *pass,
			  const struct K(turn) * turn, struct tti_dev_unit *result)
{
	K_VEC acc[K_AHEAD * K_VECS];

	TTI_DEV_ROLLED
	for (int32_t s = 0; s < pass->nsrc; s += 4) {
		const int32_t end = s + 4 < pass->nsrc ? s + 4 : pass->nsrc;
		struct tti_dev_words words[4];

		TTI_DEV_UNROLL
		for (int32_t j = 0; j < 4; j++)
			if (s + j < pass->nsrc)
				tti_dev_peek(&pass->src[s + j], turn->at / TTI_DEV_UNIT,
					     K(there)(turn), &words[j]);
		TTI_DEV_ROLLED
		for (int32_t at = s; at < end; at++) {
			if (!K(join_words)(op, env, pass, at, turn, &words[0], acc))
				return false;
			TTI_DEV_UNROLL
			for (int32_t j = 0; j < 3; j++)
				words[j] = words[j + 1];
		}
	}
	K(close)(op, pass->divisor, turn, acc, result);
	return true;
}

K_INLINE void K(words)(int32_t op, struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	struct K(turn) turn = { .end = pass->count * sizeof(K_ELEM), .ahead = 1, .vecs = K_VECS };

	TTI_DEV_ROLLED
	for (turn.at = (uint64_t)tti_dev_tid(&env->world) * TTI_DEV_UNIT; turn.at < turn.end;
	     turn.at += (uint64_t)tti_dev_nthreads(&env->world) * TTI_DEV_UNIT) {
		struct tti_dev_unit result;

		if (!K(words_at)(op, env, pass, &turn, &result))
			return;
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++)
			tti_dev_put(&pass->dst[d], turn.at / TTI_DEV_UNIT, K(there)(&turn), result);
	}
}

/* -- Operators --------------------------------------------------------------------------------- */

#ifdef K_BITS
K_INLINE void K(bitwise)(const struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	if (pass->op == TUTTI_BAND)
		K(wide)(TUTTI_BAND, false, env, pass);
	else if (pass->op == TUTTI_BOR)
		K(wide)(TUTTI_BOR, false, env, pass);
	else
		K(wide)(TUTTI_BXOR, false, env, pass);
}

K_INLINE void K(logical)(int32_t op, const struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	if (op == TUTTI_LAND)
		K(wide)(TUTTI_LAND, false, env, pass);
	else if (op == TUTTI_LOR)
		K(wide)(TUTTI_LOR, true, env, pass);
	else
		K(wide)(TUTTI_LXOR, false, env, pass);
}
#else
K_INLINE void K(arithmetic)(const struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	if (pass->op == TUTTI_PROD)
		K(wide)(TUTTI_PROD, false, env, pass);
#ifdef K_MIN
	else if (pass->op == TUTTI_MAX)
		K(wide)(TUTTI_MAX, false, env, pass);
	else if (pass->op == TUTTI_MIN)
		K(wide)(TUTTI_MIN, false, env, pass);
#endif
	else if (pass->input_at >= 0)
		K(wide)(TUTTI_AVG, true, env, pass);
	else
		K(wide)(TUTTI_AVG, false, env, pass);
}
#endif

#undef K_VECS
#undef K_AHEAD
#undef K_PRODUCT
