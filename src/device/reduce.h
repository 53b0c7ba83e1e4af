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
#include "tutti/tutti.h"

/* X(type, suffix of functions and kernels): those of TUTTI_TYPE_MAP. */
#define TTI_DEV_TYPE_MAP(X)         \
	X(INT8, int8)               \
	X(UINT8, uint8)             \
	X(INT32, int32)             \
	X(UINT32, uint32)           \
	X(INT64, int64)             \
	X(UINT64, uint64)           \
	X(FLOAT16, float16)         \
	X(FLOAT32, float32)         \
	X(FLOAT64, float64)         \
	X(BFLOAT16, bfloat16)       \
	X(FLOAT8_E4M3, float8_e4m3) \
	X(FLOAT8_E5M2, float8_e5m2) \
	X(INT16, int16)             \
	X(UINT16, uint16)           \
	X(BOOL, bool)               \
	X(COMPLEX64, complex64)     \
	X(COMPLEX128, complex128)

/* tti_dev_pass_int8() and so on make a pass of one type, tti_dev_pass_copy() one of any type that
 * changes nothing. */
typedef void (*tti_dev_pass_fn)(struct tti_dev_env *env, const struct tti_dev_pass *pass);

/* -- Copies ---------------------------------------------------------------------------------- */

/* From byte `begin` to `end`: `width`, a constant, bytes at a time, several accesses under way. */
TTI_DEV_FN void tti_dev_copy_by(const struct tti_dev_env *env, const struct tti_dev_pass *pass,
				uint64_t begin, uint64_t end, uint32_t width)
{
	enum { AHEAD = 8 };
	const uint32_t ahead = width == 16 ? AHEAD : AHEAD / 2;
	const uint64_t stride = (uint64_t)tti_dev_nthreads(&env->world) * width;
	const uint64_t from = tti_dev_place_of(&pass->src[0]);

	TTI_DEV_ROLLED
	for (uint64_t at = begin + (uint64_t)tti_dev_tid(&env->world) * width; at < end;
	     at += ahead * stride) {
		const uint64_t left = end - at;
		struct tti_dev_unit unit[AHEAD];

		TTI_DEV_UNROLL
		for (uint32_t j = 0; j < AHEAD; j++)
			if (j < ahead && j * stride < left)
				tti_dev_load(&unit[j], from + at + j * stride, width);
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++) {
			const uint64_t to = tti_dev_place_of(&pass->dst[d]);

			if (to == from)
				continue;
			TTI_DEV_UNROLL
			for (uint32_t j = 0; j < AHEAD; j++)
				if (j < ahead && j * stride < left)
					tti_dev_store(to + at + j * stride, &unit[j], width);
		}
	}
}

TTI_DEV_FN void tti_dev_copy_words(struct tti_dev_env *env, const struct tti_dev_pass *pass,
				   uint64_t nbytes)
{
	const uint64_t nunits = (nbytes + TTI_DEV_UNIT - 1) / TTI_DEV_UNIT;

	TTI_DEV_ROLLED
	for (uint64_t i = tti_dev_tid(&env->world); i < nunits;
	     i += tti_dev_nthreads(&env->world)) {
		const uint64_t left = nbytes - i * TTI_DEV_UNIT;
		const uint32_t n = left < TTI_DEV_UNIT ? (uint32_t)left : TTI_DEV_UNIT;
		struct tti_dev_words words;
		struct tti_dev_unit unit;

		tti_dev_peek(&pass->src[0], i, n, &words);
		if (!tti_dev_await(env, &pass->src[0], i, &words, &unit))
			return;
		TTI_DEV_ROLLED
		for (int32_t d = 0; d < pass->ndst; d++)
			tti_dev_put(&pass->dst[d], i, n, unit);
	}
}

TTI_DEV_FN void tti_dev_pass_copy(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const uint64_t nbytes = pass->count * (uint64_t)pass->type_size;
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

/* How much of a pass goes by 16 bytes. */
TTI_DEV_FN uint64_t tti_dev_wide_bytes(const struct tti_dev_pass *pass)
{
	const uint64_t nbytes = pass->count * (uint64_t)pass->type_size;

	return tti_dev_places(pass) % 16 == 0 ? nbytes / 16 * 16 : 0;
}

#include "reduce/scalar.inc.h"

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

/* X(suffix of functions, arithmetic, logic on as many bytes) */
#define TTI_DEV_INTEGER_MAP(X) \
	X(int8, i8, b8)        \
	X(uint8, u8, b8)       \
	X(int16, i16, b16)     \
	X(uint16, u16, b16)    \
	X(int32, i32, b32)     \
	X(uint32, u32, b32)    \
	X(int64, i64, b64)     \
	X(uint64, u64, b64)

/* By 16 bytes bits are combined 64 at a time, whatever the type. */
#define X(type, arithmetic, logic)                                                              \
	TTI_DEV_FN void tti_dev_wide_##type(const struct tti_dev_env *env,                      \
					    const struct tti_dev_pass *pass)                    \
	{                                                                                       \
		if (tti_dev_is_bitwise(pass->op))                                               \
			b64_bitwise(env, pass);                                                 \
		else if (tti_dev_is_logical(pass->op))                                          \
			logic##_logical(pass->op, env, pass);                                   \
		else                                                                            \
			arithmetic##_arithmetic(env, pass);                                     \
	}                                                                                       \
	TTI_DEV_FN void tti_dev_pass_##type(struct tti_dev_env *env,                            \
					    const struct tti_dev_pass *pass)                    \
	{                                                                                       \
		const bool bits = tti_dev_is_bitwise(pass->op) || tti_dev_is_logical(pass->op); \
                                                                                                \
		if (tti_dev_is_copy(pass)) {                                                    \
			tti_dev_pass_copy(env, pass);                                           \
		} else if (pass->words) {                                                       \
			if (bits)                                                               \
				logic##_words(pass->op, env, pass);                             \
			else                                                                    \
				arithmetic##_words(pass->op, env, pass);                        \
		} else {                                                                        \
			if (tti_dev_wide_bytes(pass))                                           \
				tti_dev_wide_##type(env, pass);                                 \
			if (bits)                                                               \
				logic##_rest(pass->op, env, pass);                              \
			else                                                                    \
				arithmetic##_rest(pass->op, env, pass);                         \
		}                                                                               \
	}
TTI_DEV_INTEGER_MAP(X)
#undef X

TTI_DEV_FN void tti_dev_pass_bool(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const int32_t op = tti_dev_logical(pass->op);

	if (tti_dev_is_copy(pass)) {
		tti_dev_pass_copy(env, pass);
	} else if (pass->words) {
		b8_words(op, env, pass);
	} else {
		if (tti_dev_wide_bytes(pass))
			b8_logical(op, env, pass);
		b8_rest(op, env, pass);
	}
}

/* X(suffix of functions, arithmetic) */
#define TTI_DEV_FLOAT_MAP(X) \
	X(float16, f16)      \
	X(float32, f32)      \
	X(float64, f64)      \
	X(bfloat16, bf16)    \
	X(float8_e4m3, e4m3) \
	X(float8_e5m2, e5m2) \
	X(complex64, c64)    \
	X(complex128, c128)

#define X(type, arithmetic)                                                  \
	TTI_DEV_FN void tti_dev_pass_##type(struct tti_dev_env *env,         \
					    const struct tti_dev_pass *pass) \
	{                                                                    \
		if (tti_dev_is_copy(pass)) {                                 \
			tti_dev_pass_copy(env, pass);                        \
		} else if (pass->words) {                                    \
			arithmetic##_words(pass->op, env, pass);             \
		} else {                                                     \
			if (tti_dev_wide_bytes(pass))                        \
				arithmetic##_arithmetic(env, pass);          \
			arithmetic##_rest(pass->op, env, pass);              \
		}                                                            \
	}
TTI_DEV_FLOAT_MAP(X)
#undef X

/* Of the type that the pass has. A kernel of a GPU knows one type alone, and has its own
 * (kernel.inc.h). */
#ifndef __CUDACC__
#define X(type, suffix)                                                        \
	static __attribute__((noinline, unused)) void tti_dev_reduce_##suffix( \
		struct tti_dev_env *env, const struct tti_dev_pass *pass)      \
	{                                                                      \
		tti_dev_pass_##suffix(env, pass);                              \
	}
TTI_DEV_TYPE_MAP(X)
#undef X

TTI_DEV_FN void tti_dev_reduce(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	static const tti_dev_pass_fn fns[TUTTI_TYPE_COUNT] = {
#define X(type, suffix) [TUTTI_##type] = tti_dev_reduce_##suffix,
		TTI_DEV_TYPE_MAP(X)
#undef X
	};

	if (tti_dev_is_copy(pass))
		tti_dev_pass_copy(env, pass);
	else
		fns[pass->type](env, pass);
}
#endif

#endif
