/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes of one type (pass.h), where reduce/operators.inc.h includes this. A signed integer stands
 * for the unsigned one as well (K_INTEGER).
 *
 * The loop over 16 bytes of each operand at a time is there once for each operator, with `op` and
 * `scales` as constants, but for types of which so many elements are in a register or so much is to be
 * converted that it makes no difference (K_ONE_LOOP). What is not at multiples of 16 bytes, and words,
 * have one loop each. How `turn` is cut is a constant in all of them. */

/* Vectors that 16 bytes of memory hold, and how many times 16 bytes of each source a thread reads
 * before it waits for any: as many as there are registers for. */
#define K_TURN     struct K(turn)
#define K_VECS     (16 / K_BYTES)
#define K_AHEAD    (sizeof(K_ELEM) == 1 ? 1 : sizeof(K_ELEM) == 2 ? 3 : 4)
#define K_MOST     (K_AHEAD * K_VECS)
#define K_ONE_LOOP (sizeof(K_ELEM) == 1 || (sizeof(K_ELEM) == 2 && sizeof(K_LANE) == 2))
#if defined(K_BITS) || defined(K_CANON)
#define K_INTEGER 0
#else
#define K_INTEGER 1
#endif
#ifdef K_BITS
#define K_PRODUCT TUTTI_LAND
#else
#define K_PRODUCT TUTTI_PROD
#endif

/* What a thread takes of each operand in one turn: `ahead` times `width` bytes, every `stride`, of
 * which each makes `vecs` vectors. Of less than a vector, an element, the rest is 0. */
struct K(turn) {
	uint64_t at, end, stride;
	uint64_t bias; /* turns the order of unsigned integers into that of signed ones */
	uint32_t width, ahead, vecs;
	bool natural; /* all places are multiples of `width` */
	bool bitwise; /* the operator may be one on bits that is no logical one */
	bool is_unsigned;
};

K_INLINE K_TURN K(turn_of)(const struct tti_dev_pass *pass, uint32_t width, uint32_t ahead,
			   bool bitwise)
{
	const uint64_t ones = UINT64_MAX >> (64 - 8 * (sizeof(K_ELEM) < 8 ? sizeof(K_ELEM) : 8));
	K_TURN turn;

	turn.at = turn.end = turn.stride = 0;
	turn.width = width;
	turn.ahead = ahead;
	turn.vecs = width < K_BYTES ? 1 : width / (uint32_t)K_BYTES;
	turn.natural = true;
	turn.bitwise = bitwise;
	turn.is_unsigned = K_INTEGER && tti_dev_is_unsigned(pass->type);
	turn.bias = turn.is_unsigned ? UINT64_MAX / ones * (ones / 2 + 1) : 0;
	return turn;
}

/* -- Vectors ----------------------------------------------------------------------------------- */

K_INLINE void K(open)(const K_TURN *turn, struct tti_dev_unit *unit, K_VEC *x)
{
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_MOST; v++)
		if (v < turn->ahead * turn->vecs)
			x[v] = K_LOAD(tti_dev_bytes(&unit[v / turn->vecs]) +
				      v % turn->vecs * K_BYTES);
}

K_INLINE void K(join_by)(tutti_op op, const K_TURN *turn, const K_VEC *x, K_VEC *acc)
{
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_MOST; v++)
		if (v < turn->ahead * turn->vecs)
			acc[v] = K(combine)(op, acc[v], x[v]);
}

K_INLINE void K(join)(int32_t op, const K_TURN *turn, struct tti_dev_unit *unit, K_VEC *acc)
{
	K_VEC x[K_MOST];

	K(open)(turn, unit, x);
#ifdef K_BITS
	if (turn->bitwise && op == TUTTI_BAND)
		K(join_by)(TUTTI_BAND, turn, x, acc);
	else if (turn->bitwise && op == TUTTI_BXOR)
		K(join_by)(TUTTI_BXOR, turn, x, acc);
	else if (op == TUTTI_LAND)
		K(join_by)(TUTTI_LAND, turn, x, acc);
	else if (op == TUTTI_LXOR)
		K(join_by)(TUTTI_LXOR, turn, x, acc);
	else
		K(join_by)(TUTTI_LOR, turn, x, acc);
#else
	if (op == TUTTI_PROD)
		K(join_by)(TUTTI_PROD, turn, x, acc);
#ifdef K_MIN
	else if (op == TUTTI_MAX)
		K(join_by)(TUTTI_MAX, turn, x, acc);
	else if (op == TUTTI_MIN)
		K(join_by)(TUTTI_MIN, turn, x, acc);
#endif
	else
		K(join_by)(TUTTI_AVG, turn, x, acc);
#endif
}

K_INLINE K_VEC K(divide)(const K_TURN *turn, K_VEC x, int32_t divisor)
{
#if K_INTEGER
	if (turn->is_unsigned)
		return K_JOIN(K_JOIN(K_UNSIGNED, K_NAME), finish)(TUTTI_AVG, x, divisor);
#endif
	(void)turn;
	return K(finish)(TUTTI_AVG, x, divisor);
}

/* SUM is AVG without a divisor. */
K_INLINE void K(close)(int32_t op, int32_t divisor, const K_TURN *turn, K_VEC *acc,
		       struct tti_dev_unit *unit)
{
	const uint32_t n = turn->ahead * turn->vecs;

	if (divisor > 0) {
		TTI_DEV_UNROLL
		for (uint32_t v = 0; v < K_MOST; v++)
			if (v < n)
				acc[v] = K(divide)(turn, acc[v], divisor);
	}
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_MOST; v++)
		if (v < n)
			K_STORE(tti_dev_bytes(&unit[v / turn->vecs]) + v % turn->vecs * K_BYTES,
				K(finish)((tutti_op)op, acc[v], 0), (tutti_op)op);
}

/* Before elements are put into an order, and after that. */
K_INLINE void K(shift)(int32_t op, const K_TURN *turn, struct tti_dev_unit *unit)
{
	if (!K_INTEGER || (op != TUTTI_MAX && op != TUTTI_MIN))
		return;
	TTI_DEV_UNROLL
	for (uint32_t j = 0; j < K_AHEAD; j++)
		if (j < turn->ahead) {
			unit[j].part[0] ^= turn->bias;
			unit[j].part[1] ^= turn->bias;
		}
}

/* Products are rounded to the type before they are added. */
K_INLINE void K(scale)(const struct tti_dev_pass *pass, const K_TURN *turn,
		       struct tti_dev_unit *unit)
{
	const uint64_t scalar[2] = { pass->scalar[0], pass->scalar[1] };
	struct tti_dev_unit factor;
	K_VEC product[K_MOST];

	TTI_DEV_UNROLL
	for (size_t i = 0; i < K_LANES; i++)
		memcpy(tti_dev_bytes(&factor) + i * sizeof(K_ELEM), scalar, sizeof(K_ELEM));
	K(open)(turn, unit, product);
	TTI_DEV_UNROLL
	for (uint32_t v = 0; v < K_MOST; v++)
		if (v < turn->ahead * turn->vecs)
			product[v] =
				K(combine)(K_PRODUCT, product[v], K_LOAD(tti_dev_bytes(&factor)));
	K(close)(K_PRODUCT, 0, turn, product, unit);
}

/* -- Memory ------------------------------------------------------------------------------------ */

K_INLINE void K(take)(const struct tti_dev_pass *pass, int32_t s, const K_TURN *turn,
		      struct tti_dev_unit *unit)
{
	const uint64_t from = tti_dev_place_of(&pass->src[s]);

	TTI_DEV_UNROLL
	for (uint32_t j = 0; j < K_AHEAD; j++) {
		const uint64_t at = turn->at + j * turn->stride;
		const uint64_t place = from + tti_dev_within(at, turn->end, turn->width);

		tti_dev_blank(&unit[j], turn->width < K_BYTES);
		if (j >= turn->ahead || !tti_dev_reads(at, turn->end))
			continue;
		if (turn->natural)
			tti_dev_load(&unit[j], place, turn->width);
		else
			tti_dev_gather(&unit[j], place, turn->width);
	}
}

K_INLINE void K(give)(const struct tti_dev_pass *pass, int32_t d, const K_TURN *turn,
		      const struct tti_dev_unit *unit)
{
	const uint64_t to = tti_dev_place_of(&pass->dst[d]) + turn->at;

	TTI_DEV_UNROLL
	for (uint32_t j = 0; j < K_AHEAD; j++) {
		if (j >= turn->ahead || turn->at + j * turn->stride >= turn->end)
			continue;
		if (turn->natural)
			tti_dev_store(to + j * turn->stride, &unit[j], turn->width);
		else
			tti_dev_scatter(to + j * turn->stride, &unit[j], turn->width);
	}
}

/* All but the first source, of which the second is read: the next one is read while the one before
 * is combined. */
K_INLINE void K(others)(int32_t op, bool scales, const struct tti_dev_pass *pass,
			const K_TURN *turn, struct tti_dev_unit *next, K_VEC *acc)
{
	struct tti_dev_unit unit[K_AHEAD];
	int32_t s = 1;

	TTI_DEV_ROLLED
	do {
		TTI_DEV_UNROLL
		for (uint32_t j = 0; j < K_AHEAD; j++)
			unit[j] = next[j];
		if (s + 1 < pass->nsrc)
			K(take)(pass, s + 1, turn, next);
		if (scales && pass->input_at == s)
			K(scale)(pass, turn, unit);
		K(shift)(op, turn, unit);
		K(join)(op, turn, unit, acc);
	} while (++s < pass->nsrc);
}

K_INLINE void K(sources)(int32_t op, bool scales, const struct tti_dev_pass *pass,
			 const K_TURN *turn, struct tti_dev_unit *result)
{
	struct tti_dev_unit next[K_AHEAD];
	K_VEC acc[K_MOST];

	/* A compiler would keep what it may not have read. */
	K(take)(pass, 0, turn, result);
	K(take)(pass, pass->nsrc > 1 ? 1 : 0, turn, next);
	if (scales && pass->input_at == 0)
		K(scale)(pass, turn, result);
	K(shift)(op, turn, result);
	K(open)(turn, result, acc);
	if (pass->nsrc > 1)
		K(others)(op, scales, pass, turn, next, acc);
	K(close)(op, op == TUTTI_AVG ? pass->divisor : 0, turn, acc, result);
	K(shift)(op, turn, result);
}

K_INLINE void K(loop)(int32_t op, bool scales, const struct tti_dev_env *env,
		      const struct tti_dev_pass *pass, uint64_t begin, K_TURN turn)
{
	turn.stride = (uint64_t)tti_dev_anew(tti_dev_nthreads(&env->world)) * turn.width;
	TTI_DEV_ROLLED
	for (turn.at = begin + (uint64_t)tti_dev_anew(tti_dev_tid(&env->world)) * turn.width;
	     turn.at < turn.end; turn.at += turn.ahead * turn.stride) {
		struct tti_dev_unit result[K_AHEAD];

		K(sources)(op, scales, pass, &turn, result);
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++)
			K(give)(pass, d, &turn, result);
	}
}

/* All places are multiples of 16, and `end` is. */
K_INLINE void K(wide)(int32_t op, bool scales, bool bitwise, const struct tti_dev_env *env,
		      const struct tti_dev_pass *pass, uint64_t end)
{
	K_TURN turn = K(turn_of)(pass, 16, K_AHEAD, bitwise);

	turn.end = end;
	K(loop)(op, scales, env, pass, 0, turn);
}

/* By elements, from `begin` on. */
K_INLINE void K(rest)(int32_t op, const struct tti_dev_env *env, const struct tti_dev_pass *pass,
		      uint64_t begin, uint64_t places)
{
	K_TURN turn = K(turn_of)(pass, sizeof(K_ELEM), K_AHEAD, true);

	turn.end = tti_dev_pass_bytes(pass);
	if (places % sizeof(K_ELEM) == 0) {
		K(loop)(op, pass->input_at >= 0, env, pass, begin, turn);
		return;
	}
	turn.ahead = 1;
	turn.natural = false;
	K(loop)(op, pass->input_at >= 0, env, pass, begin, turn);
}

/* -- Words ------------------------------------------------------------------------------------- */

/* How much of a unit there is. */
K_INLINE uint32_t K(there)(const K_TURN *turn)
{
	const uint64_t left = turn->end - turn->at;

	return left < TTI_DEV_UNIT ? (uint32_t)left : TTI_DEV_UNIT;
}

K_INLINE bool K(words_at)(int32_t op, struct tti_dev_env *env, const struct tti_dev_pass *pass,
			  const K_TURN *turn, struct tti_dev_unit *result)
{
	K_VEC acc[K_MOST];

	tti_dev_blank(result, true);
	K(open)(turn, result, acc);
	TTI_DEV_ROLLED
	for (int32_t s = 0; s < pass->nsrc; s += TTI_DEV_LOOKED) {
		struct tti_dev_unit unit[TTI_DEV_LOOKED];

		if (!tti_dev_take_some(env, pass, s, turn->at / TTI_DEV_UNIT, K(there)(turn), unit))
			return false;
		TTI_DEV_ROLLED
		for (int32_t at = s; at < s + TTI_DEV_LOOKED && at < pass->nsrc; at++) {
			if (pass->input_at == at)
				K(scale)(pass, turn, &unit[0]);
			K(shift)(op, turn, &unit[0]);
			if (at == 0)
				K(open)(turn, &unit[0], acc);
			else
				K(join)(op, turn, &unit[0], acc);
			TTI_DEV_UNROLL
			for (int32_t j = 0; j < TTI_DEV_LOOKED - 1; j++)
				unit[j] = unit[j + 1];
		}
	}
	K(close)(op, pass->divisor, turn, acc, result);
	K(shift)(op, turn, result);
	return true;
}

K_INLINE void K(words)(int32_t op, struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	K_TURN turn = K(turn_of)(pass, TTI_DEV_UNIT, 1, true);

	turn.end = tti_dev_pass_bytes(pass);
	TTI_DEV_ROLLED
	for (turn.at = (uint64_t)tti_dev_anew(tti_dev_tid(&env->world)) * TTI_DEV_UNIT;
	     turn.at < turn.end;
	     turn.at += (uint64_t)tti_dev_anew(tti_dev_nthreads(&env->world)) * TTI_DEV_UNIT) {
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
K_INLINE void K(bitwise)(const struct tti_dev_env *env, const struct tti_dev_pass *pass,
			 uint64_t end)
{
	if (pass->op == TUTTI_BAND)
		K(wide)(TUTTI_BAND, false, true, env, pass, end);
	else if (pass->op == TUTTI_BOR)
		K(wide)(TUTTI_BOR, false, true, env, pass, end);
	else
		K(wide)(TUTTI_BXOR, false, true, env, pass, end);
}

/* In one loop, as they are rare. */
K_INLINE void K(logical)(int32_t op, const struct tti_dev_env *env, const struct tti_dev_pass *pass,
			 uint64_t end)
{
	K(wide)(op, pass->input_at >= 0, false, env, pass, end);
}
#else
K_INLINE void K(arithmetic)(const struct tti_dev_env *env, const struct tti_dev_pass *pass,
			    uint64_t end)
{
	if (K_ONE_LOOP)
		K(wide)(pass->op, pass->input_at >= 0, false, env, pass, end);
	else if (pass->op == TUTTI_PROD)
		K(wide)(TUTTI_PROD, false, false, env, pass, end);
#ifdef K_MIN
	else if (pass->op == TUTTI_MAX)
		K(wide)(TUTTI_MAX, false, false, env, pass, end);
	else if (pass->op == TUTTI_MIN)
		K(wide)(TUTTI_MIN, false, false, env, pass, end);
#endif
	else if (pass->input_at >= 0)
		K(wide)(TUTTI_SUM, true, false, env, pass, end);
	else
		K(wide)(TUTTI_AVG, false, false, env, pass, end);
}

K_INLINE void K(all)(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const uint64_t places = pass->words ? 0 : tti_dev_places(pass);
	const uint64_t wide = tti_dev_wide_bytes(pass, places);

	if (pass->words) {
		K(words)(pass->op, env, pass);
		return;
	}
	K(arithmetic)(env, pass, wide);
	K(rest)(pass->op, env, pass, wide, places);
}
#endif

#undef K_TURN
#undef K_VECS
#undef K_AHEAD
#undef K_MOST
#undef K_ONE_LOOP
#undef K_INTEGER
#undef K_PRODUCT
