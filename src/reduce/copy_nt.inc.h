/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy with stores that pass the caches by, as NT_COPY, over NT_VEC and
 * NT_STREAM(aligned address, vector). The fence makes what was written visible
 * before any later store, as an ordinary copy would be. */

NT_COPY(void *dst, const void *src, size_t nbytes)
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
		NT_VEC part[256 / sizeof(NT_VEC)];

		memcpy(part, from, sizeof(part));
		for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
			NT_STREAM((void *)(to + i * sizeof(part[0])), part[i]);
	}
	memcpy(to, from, nbytes);
	_mm_sfence();
}
