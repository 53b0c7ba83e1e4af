/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy, as COPY, over COPY_VEC and COPY_STORE(aligned address, vector). Where stores pass
 * the caches by, COPY_FENCE makes what was written visible before any later store, as an
 * ordinary copy would be. */

COPY(void *dst, const void *src, size_t nbytes)
{
	unsigned char *to = dst;
	const unsigned char *from = src;
	const size_t odd = (64 - (uintptr_t)to % 64) % 64;
	const size_t head = odd < nbytes ? odd : nbytes;

	memcpy(to, from, head);
	to += head;
	from += head;
	nbytes -= head;
	for (; nbytes >= 256; nbytes -= 256, to += 256, from += 256) {
		COPY_VEC part[256 / sizeof(COPY_VEC)];

		memcpy(part, from, sizeof(part));
		for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
			COPY_STORE((void *)(to + i * sizeof(part[0])), part[i]);
	}
	memcpy(to, from, nbytes);
	COPY_FENCE();
}

#undef COPY
#undef COPY_VEC
#undef COPY_STORE
#undef COPY_FENCE
