/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peers.h"

#include <stdio.h>
#include <string.h>

#include "engine/internal.h"

/* Cuts one pair off the list. false: it is none. */
static bool take_pair(const char **list, int count, int *a, int *b)
{
	const size_t nbytes = strcspn(*list, ",");
	int end = 0;

	if (sscanf(*list, "%2d-%2d%n", a, b, &end) != 2 || (size_t)end != nbytes || *a < 0 ||
	    *b < 0 || *a >= count || *b >= count || *a == *b)
		return false;
	*list = (*list)[nbytes] ? *list + nbytes + 1 : NULL;
	return true;
}

int tti_cuda_pairs_read(const char *list, int count, struct tti_cuda_pairs *out, char *wrong,
			size_t size)
{
	*out = (struct tti_cuda_pairs){ { 0 } };
	while (list) {
		const char *const text = list;
		int a, b;

		if (!take_pair(&list, count, &a, &b)) {
			snprintf(wrong, size,
				 "\"%.40s\" does not begin with a pair of two devices of %d, such "
				 "as 0-1",
				 text, count);
			return -1;
		}
		out->of[a] |= (uint64_t)1 << b;
		out->of[b] |= (uint64_t)1 << a;
	}
	return 0;
}

/* `owner` may be what another process says. */
static bool has(const struct tti_cuda_pairs *pairs, int device, int owner)
{
	return owner >= 0 && owner < TTI_CUDA_DEVICES_MOST && pairs->of[device] >> owner & 1;
}

bool tti_cuda_peer_is_possible(int device, int owner)
{
	return !has(tti_cuda_device_refused(), device, owner);
}

int tti_cuda_peer_check(const char *what, int device, int owner)
{
	if (tti_cuda_peer_is_possible(device, owner))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EPEERNONE,
			     "%s: device %d has no access to memory of device %d: "
			     "TUTTI_CUDAHOST_NO_PEER refuses it",
			     what, device, owner);
}

bool tti_cuda_peer_lies(int device, int owner)
{
	return has(tti_cuda_device_lying(), device, owner);
}
