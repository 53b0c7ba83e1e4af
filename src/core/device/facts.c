/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/facts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/init/peer_info.h"
#include "gpu/cuda.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* -- Which one -------------------------------------------------------------------------- */

tutti_status tti_device_wish(int configured, int *out)
{
	const char *text = tti_params()->cuda_device;
	char *end;
	long ordinal;

	*out = configured;
	if (configured >= 0 || !text)
		return TUTTI_OK;
	if (strcmp(text, "auto") == 0) {
		*out = TTI_AUTO_DEVICE;
		return TUTTI_OK;
	}
	ordinal = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || ordinal > INT_MAX)
		return tti_fail(TUTTI_EINVAL,
				"TUTTI_CUDA_DEVICE is \"%s\": the CUDA ordinal of a GPU, auto, or "
				"nothing",
				text);
	*out = (int)ordinal;
	return TUTTI_OK;
}

int tti_device_choose(const struct tti_peer_info *info, int rank, int ngpus)
{
	int place = 0;

	if (info[rank].device != TTI_AUTO_DEVICE || ngpus < 1)
		return info[rank].device == TTI_AUTO_DEVICE ? 0 : info[rank].device;
	for (int other = 0; other < rank; other++)
		place += info[other].host == info[rank].host;
	return place % ngpus;
}

/* -- What they make together -------------------------------------------------------------- */

/* Where a rank of each host with a device stands among those. */
static tutti_status find_places(struct tti_devices *devices, int n)
{
	const struct tti_device_fact *fact = devices->fact;
	uint64_t *host = tti_calloc((size_t)n, sizeof(*host));
	int *count = tti_calloc((size_t)n, sizeof(*count));
	tutti_status st = host && count ? TUTTI_OK : TUTTI_ENOMEM;

	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		host[rank] = fact[rank].ordinal >= 0 ? fact[rank].host : 0;
	if (st == TUTTI_OK)
		st = tti_peers_group(host, n, devices->first);
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++) {
		devices->place[rank] = -1;
		if (fact[rank].ordinal < 0)
			continue;
		devices->ndevices++;
		devices->place[rank] = count[devices->first[rank]]++;
		if (devices->place[rank] >= devices->nhere)
			devices->nhere = devices->place[rank] + 1;
	}
	tti_free(host);
	tti_free(count);
	return st;
}

bool tti_device_is_same(const struct tti_device_fact *a, const struct tti_device_fact *b)
{
	return a->host == b->host && memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

/* How many ranks share each GPU, where they are most. */
static tutti_status count_sharing(const struct tti_device_fact *fact, int n, uint32_t *of)
{
	uint64_t *gpu = tti_calloc((size_t)n, sizeof(*gpu));
	int *first = tti_calloc((size_t)n, sizeof(*first));
	tutti_status st = gpu && first ? TUTTI_OK : TUTTI_ENOMEM;

	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		if (fact[rank].ordinal >= 0)
			gpu[rank] = tti_hash_combine(fact[rank].host,
						     tti_hash_bytes(fact[rank].uuid,
								    sizeof(fact[rank].uuid))) |
				    1;
	if (st == TUTTI_OK)
		st = tti_peers_group(gpu, n, first);
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		of[first[rank]]++;
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		of[rank] = of[first[rank]];
	tti_free(gpu);
	tti_free(first);
	return st;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* All blocks of all ranks of a GPU must run at the same time, since they wait for each other. Half of
 * the multiprocessors move almost as much as all (docs/gpu.md), which leaves the others to kernels of
 * the program. */
static uint32_t blocks_of(const struct tti_device_fact *fact, uint32_t sharing)
{
	const uint32_t most = least(fact->nresident / sharing, TTI_DEV_BLOCKS_MAX);
	const uint32_t chosen =
		fact->at_most.nblocks ? fact->at_most.nblocks : fact->nresident / (2 * sharing);

	return chosen < 1 ? 1 : least(chosen, most);
}

/* Each rank needs a block, at least, that runs while it waits for the others. */
static tutti_status check_room(const struct tti_device_fact *fact, const uint32_t *sharing, int n)
{
	for (int rank = 0; rank < n; rank++)
		if (fact[rank].ordinal >= 0 && fact[rank].nresident < sharing[rank])
			return tti_fail(
				TUTTI_EUNSUPPORTED,
				"GPU %d of rank %d has %u ranks, whose kernels wait for each "
				"other, and runs %u blocks of Tutti's at a time: give it fewer "
				"ranks, or lower TUTTI_CUDA_THREADS",
				fact[rank].ordinal, rank, sharing[rank], fact[rank].nresident);
	return TUTTI_OK;
}

static tutti_status agree_on_shape(struct tti_devices *devices, int n)
{
	struct tti_lane_shape shape = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	uint32_t *sharing = tti_calloc((size_t)n, sizeof(*sharing));
	tutti_status st = sharing ? count_sharing(devices->fact, n, sharing) : TUTTI_ENOMEM;

	if (st == TUTTI_OK)
		st = check_room(devices->fact, sharing, n);
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++) {
		const struct tti_device_fact *fact = &devices->fact[rank];

		if (fact->ordinal < 0)
			continue;
		shape.nblocks = least(shape.nblocks, blocks_of(fact, sharing[rank]));
		shape.nslots = least(shape.nslots, fact->at_most.nslots);
		shape.slot_bytes = least(shape.slot_bytes, fact->at_most.slot_bytes);
		shape.word_bytes = least(shape.word_bytes, fact->at_most.word_bytes);
	}
	/* The parts of blocks begin at multiples of 16 bytes. */
	shape.slot_bytes &= ~15U;
	shape.word_bytes &= ~15U;
	devices->shape = shape;
	tti_free(sharing);
	return st;
}

static tutti_status allocate(struct tti_devices *devices, int n)
{
	devices->place = tti_calloc((size_t)n, sizeof(*devices->place));
	devices->first = tti_calloc((size_t)n, sizeof(*devices->first));
	if (!devices->place || !devices->first)
		return TUTTI_ENOMEM;
	return TUTTI_OK;
}

tutti_status tti_devices_create(struct tti_device_fact *fact, int n, struct tti_devices **out)
{
	struct tti_devices *devices = tti_zalloc(sizeof(*devices));
	tutti_status st;

	if (!devices) {
		tti_free(fact);
		return tti_fail(TUTTI_ENOMEM, "devices of %d ranks: out of memory", n);
	}
	devices->fact = fact;
	st = allocate(devices, n);
	if (st == TUTTI_OK)
		st = find_places(devices, n);
	if (st == TUTTI_OK)
		st = agree_on_shape(devices, n);
	if (st == TUTTI_OK) {
		devices->reach = tti_calloc((size_t)n, tti_devices_row_bytes(devices));
		devices->refused = tti_calloc((size_t)n, tti_devices_row_bytes(devices));
		st = devices->reach && devices->refused ? TUTTI_OK : TUTTI_ENOMEM;
	}
	if (st != TUTTI_OK) {
		tti_devices_free(devices);
		return st == TUTTI_ENOMEM ? tti_fail(st, "devices of %d ranks: out of memory", n)
					  : st;
	}
	*out = devices;
	return TUTTI_OK;
}

void tti_devices_free(struct tti_devices *devices)
{
	if (!devices)
		return;
	tti_free(devices->fact);
	tti_free(devices->place);
	tti_free(devices->first);
	tti_free(devices->reach);
	tti_free(devices->refused);
	tti_free(devices);
}

/* -- Who reaches whom ------------------------------------------------------------------------ */

size_t tti_devices_row_bytes(const struct tti_devices *devices)
{
	return TTI_BITSET_WORDS(devices->nhere) * sizeof(uint64_t);
}

uint64_t *tti_devices_row(const struct tti_devices *devices, uint64_t *rows, int rank)
{
	return rows + (size_t)rank * TTI_BITSET_WORDS(devices->nhere);
}

static bool has(const struct tti_devices *devices, uint64_t *rows, int a, int b)
{
	return tti_bit_has(tti_devices_row(devices, rows, a), (size_t)devices->place[b]);
}

static void set(const struct tti_devices *devices, uint64_t *rows, int a, int b)
{
	tti_bit_set(tti_devices_row(devices, rows, a), (size_t)devices->place[b]);
}

static bool is_near(const struct tti_devices *devices, int a, int b)
{
	return a != b && devices->place[a] >= 0 && devices->place[b] >= 0 &&
	       devices->first[a] == devices->first[b];
}

bool tti_devices_near(const struct tti_devices *devices, int a, int b)
{
	return is_near(devices, a, b);
}

void tti_devices_set_reach(struct tti_devices *devices, int a, int b)
{
	set(devices, devices->reach, a, b);
}

void tti_devices_refuse(struct tti_devices *devices, int a, int b)
{
	set(devices, devices->refused, a, b);
}

bool tti_devices_is_refused(const struct tti_devices *devices, int a, int b)
{
	return is_near(devices, a, b) &&
	       (has(devices, devices->refused, a, b) || has(devices, devices->refused, b, a));
}

bool tti_devices_says_reach(const struct tti_devices *devices, int a, int b)
{
	return is_near(devices, a, b) && has(devices, devices->reach, a, b);
}

bool tti_devices_reach(const struct tti_devices *devices, int a, int b)
{
	return tti_devices_says_reach(devices, a, b) && tti_devices_says_reach(devices, b, a) &&
	       !tti_devices_is_refused(devices, a, b);
}

bool tti_devices_find_all_mapped(const struct tti_devices *devices, int n)
{
	if (devices->ndevices < n || devices->nhere < n)
		return false;
	for (int a = 1; a < n; a++)
		for (int b = 0; b < a; b++)
			if (!tti_devices_reach(devices, a, b))
				return false;
	return true;
}

/* -- Texts ------------------------------------------------------------------------------------- */

/* Each pair is told by the lower of its ranks, once a GPU. */
void tti_devices_warn_of_sharing(const struct tti_devices *devices, int rank, int n)
{
	const struct tti_device_fact *own = &devices->fact[rank];

	for (int other = 0; own->ordinal >= 0 && other < n; other++) {
		const struct tti_device_fact *fact = &devices->fact[other];

		if (other == rank || fact->ordinal < 0 || !tti_device_is_same(own, fact))
			continue;
		if (other < rank)
			return;
		if (fact->process == own->process || own->is_shared)
			continue;
		tti_log(TTI_LOG_WARN, TTI_CORE,
			"ranks %d and %d share GPU %d in processes of their own, which take turns "
			"on it, so each message takes milliseconds (docs/gpu.md): start MPS, or "
			"let these ranks be threads of one process",
			rank, other, own->ordinal);
		return;
	}
}

/* Of each rank: of the program, and its own. */
#define STREAMS 2

static void warn_of_blocking(const struct tti_devices *devices, int rank, int other)
{
	const char *value = tti_gpu_launch_blocking();

	if (!value)
		return;
	tti_log(TTI_LOG_WARN, TTI_CORE,
		"CUDA_LAUNCH_BLOCKING=%s: a launch returns once its kernel has ended, and kernels "
		"of ranks %d and %d (GPUs %d and %d), of this process, wait for each other: calls "
		"of one thread, also in a group, hang; unset it, or give each rank a process",
		value, rank, other, devices->fact[rank].ordinal, devices->fact[other].ordinal);
}

static void warn_of_connections(int ordinal, int nranks)
{
	const int most = tti_gpu_connections();

	if (most >= nranks * STREAMS || most >= TTI_GPU_CONNECTIONS_MOST)
		return;
	tti_log(TTI_LOG_WARN, TTI_CORE,
		"%d ranks of this process share GPU %d, and CUDA has %d connections for their "
		"streams: what waits in one stream may hold up another of its connection, also "
		"where "
		"kernels of the two wait for each other; set CUDA_DEVICE_MAX_CONNECTIONS=%d",
		nranks, ordinal, most, TTI_GPU_CONNECTIONS_MOST);
}

void tti_devices_warn_of_variables(const struct tti_devices *devices, int rank, int n)
{
	const struct tti_device_fact *own = &devices->fact[rank];
	int same = 1, first = -1;
	bool is_first_of_gpu = true;

	for (int other = 0; own->ordinal >= 0 && other < n; other++) {
		const struct tti_device_fact *fact = &devices->fact[other];

		if (other == rank || fact->ordinal < 0 || fact->process != own->process)
			continue;
		if (first < 0)
			first = other;
		if (tti_device_is_same(own, fact)) {
			same++;
			is_first_of_gpu &= other > rank;
		}
	}
	if (first > rank)
		warn_of_blocking(devices, rank, first);
	/* Threads of the host have no connections. */
	if (same > 1 && is_first_of_gpu && own->nresident != UINT32_MAX)
		warn_of_connections(own->ordinal, same);
}
