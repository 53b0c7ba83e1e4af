/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_ACCESS_H
#define TTI_DEVICE_ACCESS_H

/* How a thread gets at data: by accesses of 16 bytes, of elements, or at any address.
 *
 * Owner: none. Threads: any. */

#include <stdbool.h>
#include <string.h>

#include "device/env.h"

TTI_DEV_FN unsigned char *tti_dev_bytes(struct tti_dev_unit *unit)
{
	return (unsigned char *)unit->part;
}

/* The same number. A compiler does not work out before a loop over operations what follows from it, and
 * keep that in registers all the time. */
TTI_DEV_FN uint32_t tti_dev_anew(uint32_t number)
{
#ifdef __CUDACC__
	asm volatile("" : "+r"(number));
#endif
	return number;
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

TTI_DEV_COLD struct tti_dev_unit tti_dev_gather_apart(uint64_t address, uint32_t nbytes)
{
	struct tti_dev_unit unit;

	unit.part[0] = tti_dev_data(address, nbytes < 8 ? nbytes : 8);
	unit.part[1] = nbytes > 8 ? tti_dev_data(address + 8, nbytes - 8) : 0;
	return unit;
}

TTI_DEV_COLD void tti_dev_scatter_apart(uint64_t address, struct tti_dev_unit unit, uint32_t nbytes)
{
	tti_dev_data_put(address, unit.part[0], nbytes < 8 ? nbytes : 8);
	if (nbytes > 8)
		tti_dev_data_put(address + 8, unit.part[1], nbytes - 8);
}

/* A unit of up to 16 bytes at any address; the rest is 0. */
TTI_DEV_FN void tti_dev_gather(struct tti_dev_unit *unit, uint64_t address, uint32_t nbytes)
{
	if (nbytes == 16 && address % 16 == 0)
		tti_dev_load(unit, address, 16);
	else
		*unit = tti_dev_gather_apart(address, nbytes);
}

TTI_DEV_FN void tti_dev_scatter(uint64_t address, const struct tti_dev_unit *unit, uint32_t nbytes)
{
	if (nbytes == 16 && address % 16 == 0)
		tti_dev_store(address, unit, 16);
	else
		tti_dev_scatter_apart(address, *unit, nbytes);
}

/* Whether a thread reads the `width` bytes at `at`, and which ones, where operands end at `end`: a GPU
 * reads the last ones where there are no more, as it would have to wait for what it reads on a condition
 * before it reads on. */
#ifdef __CUDACC__
TTI_DEV_FN bool tti_dev_reads(uint64_t at, uint64_t end)
{
	(void)at;
	(void)end;
	return true;
}

TTI_DEV_FN uint64_t tti_dev_within(uint64_t at, uint64_t end, uint32_t width)
{
	return at < end ? at : end - width;
}
#else
TTI_DEV_FN bool tti_dev_reads(uint64_t at, uint64_t end)
{
	return at < end;
}

TTI_DEV_FN uint64_t tti_dev_within(uint64_t at, uint64_t end, uint32_t width)
{
	(void)end;
	(void)width;
	return at;
}
#endif

/* -- Operands -------------------------------------------------------------------------------- */

TTI_DEV_FN uint64_t tti_dev_place_of(const struct tti_dev_end *end)
{
	return (uint64_t)(uintptr_t)end->at;
}

TTI_DEV_FN uint64_t tti_dev_pass_bytes(const struct tti_dev_pass *pass)
{
	return pass->count * (uint64_t)pass->type_size;
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

/* So many sources are looked at before one is waited for. */
#define TTI_DEV_LOOKED 4

/* What is there now of a source, if there is such a source: of memory a unit, else its words. */
TTI_DEV_FN void tti_dev_look_at(const struct tti_dev_pass *pass, int32_t s, uint64_t index,
				uint32_t nbytes, uint64_t word[4])
{
	const struct tti_dev_end *src;
	const uint64_t *at;
	struct tti_dev_unit unit;

	word[0] = word[1] = word[2] = word[3] = 0;
	if (s >= pass->nsrc)
		return;
	src = &pass->src[s];
	at = (const uint64_t *)src->at + 4 * (1 + index);
	if (src->peer >= 0) {
		tti_dev_load_words(at, &word[0], &word[1]);
		tti_dev_load_words(at + 2, &word[2], &word[3]);
		return;
	}
	tti_dev_gather(&unit, tti_dev_place_of(src) + TTI_DEV_UNIT * index, nbytes);
	word[0] = unit.part[0];
	word[1] = unit.part[1];
}

/* The unit that it is; false: words are missing. */
TTI_DEV_FN bool tti_dev_is_there(const struct tti_dev_pass *pass, int32_t s, const uint64_t word[4],
				 struct tti_dev_unit *out)
{
	uint32_t flag;

	out->part[0] = word[0];
	out->part[1] = word[1];
	if (s >= pass->nsrc || pass->src[s].peer < 0)
		return true;
	flag = pass->src[s].flag;
	out->part[0] = (word[0] & UINT32_MAX) | word[1] << 32;
	out->part[1] = (word[2] & UINT32_MAX) | word[3] << 32;
	return word[0] >> 32 == flag && word[1] >> 32 == flag && word[2] >> 32 == flag &&
	       word[3] >> 32 == flag;
}

/* The units `index`, of `nbytes`, of sources from s on, as many as there are. False: the call ends. */
TTI_DEV_FN bool tti_dev_take_some(struct tti_dev_env *env, const struct tti_dev_pass *pass,
				  int32_t s, uint64_t index, uint32_t nbytes,
				  struct tti_dev_unit out[TTI_DEV_LOOKED])
{
	struct tti_dev_wait wait = { 0, 0 };

	for (;;) {
		uint64_t word[TTI_DEV_LOOKED][4];
		int32_t missing = -1;

		TTI_DEV_UNROLL
		for (int32_t j = 0; j < TTI_DEV_LOOKED; j++)
			tti_dev_look_at(pass, s + j, index, nbytes, word[j]);
		TTI_DEV_UNROLL
		for (int32_t j = TTI_DEV_LOOKED - 1; j >= 0; j--)
			if (!tti_dev_is_there(pass, s + j, word[j], &out[j]))
				missing = pass->src[s + j].peer;
		if (missing < 0)
			break;
		if (!tti_dev_wait_on(env, &wait, missing, 0))
			return false;
	}
	tti_dev_wait_over(env, &wait);
	return true;
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
