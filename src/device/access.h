/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_ACCESS_H
#define TTI_DEVICE_ACCESS_H

/* How a thread gets at data: by accesses of 16 bytes, of elements, or at any address.
 *
 * Owner: none. Threads: any. */

#include <stdbool.h>
#include <string.h>

#include "device/env.h"

#ifdef __CUDACC__
#define TTI_DEV_UNROLL _Pragma("unroll")
/* Loops whose body is long already. */
#define TTI_DEV_ROLLED _Pragma("unroll 1")
#else
#define TTI_DEV_UNROLL
#define TTI_DEV_ROLLED
#endif

TTI_DEV_FN unsigned char *tti_dev_bytes(struct tti_dev_unit *unit)
{
	return (unsigned char *)unit->part;
}

/* What is not read into it is 0; unless that is `needed`, anything. */
TTI_DEV_FN void tti_dev_blank(struct tti_dev_unit *unit, bool needed)
{
#ifdef __CUDACC__
	if (!needed)
		return;
#endif
	(void)needed;
	unit->part[0] = unit->part[1] = 0;
}

/* `width`, a constant, bytes from and to a multiple of it: 1, 2, 4, 8 or 16. More of a unit than that
 * is 0 then, unless it is 16. */
#ifdef __CUDACC__

TTI_DEV_FN void tti_dev_load(struct tti_dev_unit *unit, uint64_t at, uint32_t width)
{
	uint32_t narrow = 0;

	if (width == 16) {
		asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
			     : "=l"(unit->part[0]), "=l"(unit->part[1])
			     : "l"(at)
			     : "memory");
		return;
	}
	unit->part[1] = 0;
	if (width == 8) {
		asm volatile("ld.global.u64 %0, [%1];" : "=l"(unit->part[0]) : "l"(at) : "memory");
		return;
	}
	if (width == 4)
		asm volatile("ld.global.u32 %0, [%1];" : "=r"(narrow) : "l"(at) : "memory");
	else if (width == 2)
		asm volatile("ld.global.u16 %0, [%1];" : "=r"(narrow) : "l"(at) : "memory");
	else
		asm volatile("ld.global.u8 %0, [%1];" : "=r"(narrow) : "l"(at) : "memory");
	unit->part[0] = narrow;
}

TTI_DEV_FN void tti_dev_store(uint64_t at, const struct tti_dev_unit *unit, uint32_t width)
{
	const uint64_t x = unit->part[0];

	if (width == 16)
		asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(x),
			     "l"(unit->part[1])
			     : "memory");
	else if (width == 8)
		asm volatile("st.global.u64 [%0], %1;" ::"l"(at), "l"(x) : "memory");
	else if (width == 4)
		asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"((uint32_t)x) : "memory");
	else if (width == 2)
		asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "r"((uint32_t)x) : "memory");
	else
		asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"((uint32_t)x) : "memory");
}

#else

TTI_DEV_FN void tti_dev_load(struct tti_dev_unit *unit, uint64_t at, uint32_t width)
{
	unit->part[0] = unit->part[1] = 0;
	memcpy(unit->part, (const void *)(uintptr_t)at, width);
}

TTI_DEV_FN void tti_dev_store(uint64_t at, const struct tti_dev_unit *unit, uint32_t width)
{
	memcpy((void *)(uintptr_t)at, unit->part, width);
}

#endif

/* Up to 8 bytes at any address. */
TTI_DEV_FN uint64_t tti_dev_data(uint64_t address, uint32_t nbytes)
{
	struct tti_dev_unit unit;
	uint64_t data = 0;
	uint32_t at = 0;

	if (address % 8 == 0 && nbytes == 8) {
		tti_dev_load(&unit, address, 8);
		return unit.part[0];
	}
	if (address % 4 == 0 && nbytes >= 4) {
		tti_dev_load(&unit, address, 4);
		data = unit.part[0];
		at = 4;
	}
	TTI_DEV_ROLLED
	for (; at < nbytes; at++) {
		tti_dev_load(&unit, address + at, 1);
		data |= unit.part[0] << 8 * at;
	}
	return data;
}

TTI_DEV_FN void tti_dev_data_put(uint64_t address, uint64_t data, uint32_t nbytes)
{
	struct tti_dev_unit unit = { { data, 0 } };
	uint32_t at = 0;

	if (address % 8 == 0 && nbytes == 8) {
		tti_dev_store(address, &unit, 8);
		return;
	}
	if (address % 4 == 0 && nbytes >= 4) {
		tti_dev_store(address, &unit, 4);
		at = 4;
	}
	TTI_DEV_ROLLED
	for (; at < nbytes; at++) {
		unit.part[0] = data >> 8 * at;
		tti_dev_store(address + at, &unit, 1);
	}
}

/* A unit of up to 16 bytes at any address; the rest is 0. */
TTI_DEV_FN void tti_dev_gather(struct tti_dev_unit *unit, uint64_t address, uint32_t nbytes)
{
	if (nbytes == 16 && address % 16 == 0) {
		tti_dev_load(unit, address, 16);
		return;
	}
	unit->part[0] = tti_dev_data(address, nbytes < 8 ? nbytes : 8);
	unit->part[1] = nbytes > 8 ? tti_dev_data(address + 8, nbytes - 8) : 0;
}

TTI_DEV_FN void tti_dev_scatter(uint64_t address, const struct tti_dev_unit *unit, uint32_t nbytes)
{
	if (nbytes == 16 && address % 16 == 0) {
		tti_dev_store(address, unit, 16);
		return;
	}
	tti_dev_data_put(address, unit->part[0], nbytes < 8 ? nbytes : 8);
	if (nbytes > 8)
		tti_dev_data_put(address + 8, unit->part[1], nbytes - 8);
}

/* -- Operands -------------------------------------------------------------------------------- */

TTI_DEV_FN uint64_t tti_dev_place_of(const struct tti_dev_end *end)
{
	return (uint64_t)(uintptr_t)end->at;
}

/* All places of a pass in one: it is a multiple of what all of them are multiples of. */
TTI_DEV_FN uint64_t tti_dev_places(const struct tti_dev_pass *pass)
{
	uint64_t all = 0;

	TTI_DEV_ROLLED
	for (int32_t s = 0; s < pass->nsrc; s++)
		all |= tti_dev_place_of(&pass->src[s]);
	TTI_DEV_ROLLED
	for (int32_t d = 0; d < pass->ndst; d++)
		all |= tti_dev_place_of(&pass->dst[d]);
	return all;
}

/* A unit in words. */
struct tti_dev_words {
	uint64_t word[4];
};

/* What is there now, as words: the unit `index` of a source, of `nbytes`. */
TTI_DEV_FN void tti_dev_peek(const struct tti_dev_end *src, uint64_t index, uint32_t nbytes,
			     struct tti_dev_words *words)
{
	const uint64_t *at = (const uint64_t *)src->at + 4 * (1 + index);
	struct tti_dev_unit unit;

	if (src->peer >= 0) {
		tti_dev_load_words(at, &words->word[0], &words->word[1]);
		tti_dev_load_words(at + 2, &words->word[2], &words->word[3]);
		return;
	}
	tti_dev_gather(&unit, tti_dev_place_of(src) + TTI_DEV_UNIT * index, nbytes);
	for (uint32_t i = 0; i < 4; i++)
		words->word[i] = tti_dev_word(unit.part[i / 2] >> 32 * (i % 2), src->flag);
}

/* Until all words are of the message that src->flag numbers. 0: the call ends. */
TTI_DEV_FN int tti_dev_await(struct tti_dev_env *env, const struct tti_dev_end *src, uint64_t index,
			     const struct tti_dev_words *words, struct tti_dev_unit *out)
{
	const uint64_t *word = words->word;
	const uint32_t flag = src->flag;

	if (word[0] >> 32 == flag && word[1] >> 32 == flag && word[2] >> 32 == flag &&
	    word[3] >> 32 == flag) {
		out->part[0] = (word[0] & UINT32_MAX) | word[1] << 32;
		out->part[1] = (word[2] & UINT32_MAX) | word[3] << 32;
		return 1;
	}
	*out = tti_dev_await_words(env, (const uint64_t *)src->at, 1 + index, flag, src->peer);
	return !env->gave_up;
}

/* The 16 bytes of a source from 16 * index on; the last unit of a message may be shorter (nbytes), and
 * then ends with any bytes. */
TTI_DEV_FN struct tti_dev_unit tti_dev_take(struct tti_dev_env *env, const struct tti_dev_end *src,
					    uint64_t index, uint32_t nbytes)
{
	struct tti_dev_unit unit;

	if (src->peer >= 0)
		return tti_dev_await_words(env, (const uint64_t *)src->at, 1 + index, src->flag,
					   src->peer);
	tti_dev_gather(&unit, tti_dev_place_of(src) + TTI_DEV_UNIT * index, nbytes);
	return unit;
}

TTI_DEV_FN void tti_dev_put(const struct tti_dev_end *dst, uint64_t index, uint32_t nbytes,
			    struct tti_dev_unit unit)
{
	if (dst->peer >= 0)
		tti_dev_send_words((uint64_t *)dst->at, 1 + index, dst->flag, unit);
	else
		tti_dev_scatter(tti_dev_place_of(dst) + TTI_DEV_UNIT * index, &unit, nbytes);
}

#endif
