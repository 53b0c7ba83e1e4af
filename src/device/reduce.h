/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_REDUCE_H
#define TTI_DEVICE_REDUCE_H

/* Combine the sources of a pass (pass.h) into its results: by all threads of a block, each of which
 * has elements of its own, by accesses of 16 bytes where all places allow that.
 *
 * Operators, formats and roundings are those of the kernels for hosts, from their source
 * (reduce/types.inc.h), so a pass gives the bits that tti_reducer_run() gives. No compiler may fuse
 * a product and a sum here (-ffp-contract=off, nvcc's -fmad=false).
 *
 * Owner: none. Threads: all of a block alike. */

#include <math.h>

#include "device/access.h"
#include "device/families.h"
#include "tutti/tutti.h"

/* tti_dev_pass_int8() and so on make a pass of a type of the family, tti_dev_pass_copy() one of any
 * type that changes nothing. */

/* -- Copies ---------------------------------------------------------------------------------- */

/* From byte `begin` to `end`: `width`, a constant, bytes at a time, several accesses under way. */
TTI_DEV_FN void tti_dev_copy_by(const struct tti_dev_env *env, const struct tti_dev_pass *pass,
				uint64_t begin, uint64_t end, uint32_t width)
{
	enum { AHEAD = 8 };
	const uint32_t ahead = width == 16 ? AHEAD : AHEAD / 2;
	const uint64_t stride = (uint64_t)tti_dev_anew(tti_dev_nthreads(&env->world)) * width;
	const uint64_t from = tti_dev_place_of(&pass->src[0]);
	uint64_t at = begin + (uint64_t)tti_dev_anew(tti_dev_tid(&env->world)) * width;

	TTI_DEV_ROLLED
	for (; at < end; at += ahead * stride) {
		struct tti_dev_unit unit[AHEAD];

		TTI_DEV_UNROLL
		for (uint32_t j = 0; j < AHEAD; j++)
			if (j < ahead && tti_dev_reads(at + j * stride, end))
				tti_dev_load(&unit[j],
					     from + tti_dev_within(at + j * stride, end, width),
					     width);
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++) {
			const uint64_t to = tti_dev_place_of(&pass->dst[d]);

			if (to == from)
				continue;
			TTI_DEV_UNROLL
			for (uint32_t j = 0; j < AHEAD; j++)
				if (j < ahead && at + j * stride < end)
					tti_dev_store(to + at + j * stride, &unit[j], width);
		}
	}
}

TTI_DEV_FN void tti_dev_copy_words(struct tti_dev_env *env, const struct tti_dev_pass *pass,
				   uint64_t nbytes)
{
	const uint64_t nunits = (nbytes + TTI_DEV_UNIT - 1) / TTI_DEV_UNIT;

	TTI_DEV_ROLLED
	for (uint64_t i = tti_dev_anew(tti_dev_tid(&env->world)); i < nunits;
	     i += tti_dev_anew(tti_dev_nthreads(&env->world))) {
		const uint64_t left = nbytes - i * TTI_DEV_UNIT;
		const uint32_t n = left < TTI_DEV_UNIT ? (uint32_t)left : TTI_DEV_UNIT;
		const struct tti_dev_unit unit = tti_dev_take(env, &pass->src[0], i, n);

		if (env->gave_up)
			return;
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++)
			tti_dev_put(&pass->dst[d], i, n, unit);
	}
}

TTI_DEV_FN void tti_dev_pass_copy(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const uint64_t nbytes = tti_dev_pass_bytes(pass);
	const uint64_t places = pass->words ? 0 : tti_dev_places(pass);
	uint64_t begin = 0;

	if (pass->words) {
		tti_dev_copy_words(env, pass, nbytes);
		return;
	}
	if (places % 16 == 0) {
		begin = nbytes / 16 * 16;
		tti_dev_copy_by(env, pass, 0, begin, 16);
	}
	if ((places | nbytes) % 4 == 0)
		tti_dev_copy_by(env, pass, begin, nbytes, 4);
	else if ((places | nbytes) % 2 == 0)
		tti_dev_copy_by(env, pass, begin, nbytes, 2);
	else
		tti_dev_copy_by(env, pass, begin, nbytes, 1);
}

/* -- Reductions ------------------------------------------------------------------------------ */

/* One source that is neither multiplied nor divided is the result, bit for bit. */
TTI_DEV_FN bool tti_dev_is_copy(const struct tti_dev_pass *pass)
{
	return pass->nsrc == 1 && pass->input_at < 0 && pass->divisor <= 1;
}

/* How many bytes go by 16. */
TTI_DEV_FN uint64_t tti_dev_wide_bytes(const struct tti_dev_pass *pass, uint64_t places)
{
	return places % 16 == 0 ? tti_dev_pass_bytes(pass) / 16 * 16 : 0;
}

TTI_DEV_FN bool tti_dev_is_complex(int32_t type)
{
	return type == TUTTI_COMPLEX64 || type == TUTTI_COMPLEX128;
}

TTI_DEV_FN bool tti_dev_is_unsigned(int32_t type)
{
	return type == TUTTI_UINT8 || type == TUTTI_UINT16 || type == TUTTI_UINT32 ||
	       type == TUTTI_UINT64;
}

#include "reduce/scalar.inc.h"

/* What the loops of signed integers take of the unsigned ones, which come later. */
#define K_UNSIGNED_i8  u8
#define K_UNSIGNED_u8  u8
#define K_UNSIGNED_i16 u16
#define K_UNSIGNED_u16 u16
#define K_UNSIGNED_i32 u32
#define K_UNSIGNED_u32 u32
#define K_UNSIGNED_i64 u64
#define K_UNSIGNED_u64 u64
K_INLINE v_u8 u8_finish(tutti_op op, v_u8 x, int divisor);
K_INLINE v_w16 u16_finish(tutti_op op, v_w16 x, int divisor);
K_INLINE v_u32 u32_finish(tutti_op op, v_u32 x, int divisor);
K_INLINE v_u64 u64_finish(tutti_op op, v_u64 x, int divisor);

/* After the vectors. */
#define K_RUN "device/loops.inc.h"
#include "reduce/types.inc.h"

TTI_DEV_FN bool tti_dev_is_bitwise(int32_t op)
{
	return op == TUTTI_BAND || op == TUTTI_BOR || op == TUTTI_BXOR;
}

TTI_DEV_FN bool tti_dev_is_logical(int32_t op)
{
	return op == TUTTI_LAND || op == TUTTI_LOR || op == TUTTI_LXOR;
}

/* What an operator on bools is on bytes. */
TTI_DEV_FN int32_t tti_dev_logical(int32_t op)
{
	if (op == TUTTI_PROD || op == TUTTI_MIN || op == TUTTI_BAND)
		return TUTTI_LAND;
	if (op == TUTTI_SUM || op == TUTTI_AVG || op == TUTTI_MAX || op == TUTTI_BOR)
		return TUTTI_LOR;
	return op == TUTTI_BXOR ? TUTTI_LXOR : op;
}

/* X(family, arithmetic, logic on as many bytes) */
#define TTI_DEV_INTEGER_MAP(X) \
	X(int8, i8, b8)        \
	X(int16, i16, b16)     \
	X(int32, i32, b32)     \
	X(int64, i64, b64)

/* Unsigned integers, and bools among bytes, are of the family as well. By 16 bytes bits are combined 64
 * at a time, whatever the type. */
#define X(family, arithmetic, logic)                                                       \
	TTI_DEV_FN void tti_dev_bits_##family(struct tti_dev_env *env,                     \
					      const struct tti_dev_pass *pass, int32_t op) \
	{                                                                                  \
		const uint64_t places = pass->words ? 0 : tti_dev_places(pass);            \
		const uint64_t wide = tti_dev_wide_bytes(pass, places);                    \
                                                                                           \
		if (pass->words) {                                                         \
			logic##_words(op, env, pass);                                      \
			return;                                                            \
		}                                                                          \
		if (tti_dev_is_bitwise(op))                                                \
			b64_bitwise(env, pass, wide);                                      \
		else                                                                       \
			logic##_logical(op, env, pass, wide);                              \
		logic##_rest(op, env, pass, wide, places);                                 \
	}                                                                                  \
	TTI_DEV_FN void tti_dev_pass_##family(struct tti_dev_env *env,                     \
					      const struct tti_dev_pass *pass)             \
	{                                                                                  \
		const bool is_bool = pass->type == TUTTI_BOOL;                             \
		const int32_t op = is_bool ? tti_dev_logical(pass->op) : pass->op;         \
                                                                                           \
		if (tti_dev_is_copy(pass))                                                 \
			tti_dev_pass_copy(env, pass);                                      \
		else if (tti_dev_is_bitwise(op) || tti_dev_is_logical(op))                 \
			tti_dev_bits_##family(env, pass, op);                              \
		else                                                                       \
			arithmetic##_all(env, pass);                                       \
	}
TTI_DEV_INTEGER_MAP(X)
#undef X

/* X(family, arithmetic) */
#define TTI_DEV_SMALL_FLOAT_MAP(X) \
	X(float16, f16)            \
	X(bfloat16, bf16)          \
	X(float8_e4m3, e4m3)       \
	X(float8_e5m2, e5m2)

#define X(family, arithmetic)                                                  \
	TTI_DEV_FN void tti_dev_pass_##family(struct tti_dev_env *env,         \
					      const struct tti_dev_pass *pass) \
	{                                                                      \
		if (tti_dev_is_copy(pass))                                     \
			tti_dev_pass_copy(env, pass);                          \
		else                                                           \
			arithmetic##_all(env, pass);                           \
	}
TTI_DEV_SMALL_FLOAT_MAP(X)
#undef X

/* Sums of complex numbers are those of their parts. */
#define X(family, arithmetic, complex)                                         \
	TTI_DEV_FN void tti_dev_pass_##family(struct tti_dev_env *env,         \
					      const struct tti_dev_pass *pass) \
	{                                                                      \
		if (tti_dev_is_copy(pass))                                     \
			tti_dev_pass_copy(env, pass);                          \
		else if (tti_dev_is_complex(pass->type) &&                     \
			 (pass->op == TUTTI_PROD || pass->input_at >= 0))      \
			complex##_all(env, pass);                              \
		else                                                           \
			arithmetic##_all(env, pass);                           \
	}
X(float32, f32, c64)
X(float64, f64, c128)
#undef X

#endif
