/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/device/device.h"
#include "core/device/open.h"
#include "device/flatten.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/mem.h"

/* What calls leave in memory of the GPU: programs, scratch, and rooms for what a call brings along. */

/* -- Programs ----------------------------------------------------------------------------- */

static void free_program(struct tti_device *device, struct tti_device_program *program)
{
	if (program->room)
		tti_device_room_put(device, program->room);
	tti_free(program->flat);
	tti_free(program->peers);
	tti_free(program);
}

static struct tti_device_program *find_program(const struct tti_device *device,
					       const struct tti_executable *of)
{
	for (size_t i = 0; i < device->programs.n; i++)
		if (device->programs.at[i]->of == of)
			return device->programs.at[i];
	return NULL;
}

/* Each peer once, in the order of the program's queues. */
static tutti_status find_peers(struct tti_device *device, const struct tti_compiled *compiled,
			       struct tti_device_program *program)
{
	bool *seen = tti_calloc((size_t)device->n, sizeof(*seen));

	program->peers = tti_calloc((size_t)compiled->nqueues + 1, sizeof(*program->peers));
	for (int i = 0; seen && program->peers && i < compiled->nqueues; i++) {
		const int32_t peer = compiled->queue[i].peer;

		if (peer != device->rank && !seen[peer])
			program->peers[program->npeers++] = peer;
		seen[peer] = true;
	}
	tti_free(seen);
	if (!seen || !program->peers)
		return tti_fail(TUTTI_ENOMEM, "a program of rank %d: out of memory", device->rank);
	return TUTTI_OK;
}

static tutti_status fill_program(struct tti_device *device, const struct tti_compiled *compiled,
				 struct tti_device_program *program)
{
	TTI_TRY(find_peers(device, compiled, program));
	TTI_TRY(tti_dev_flatten(compiled, &program->flat));
	TTI_TRY(tti_device_room_take(device, program->flat->nbytes, false, &program->room));
	return tti_device_write(device, program->room->at, program->flat, program->flat->nbytes);
}

static tutti_status add_program(struct tti_device *device, const struct tti_executable *of,
				const struct tti_compiled *compiled,
				struct tti_device_program **out)
{
	struct tti_device_program *program = tti_zalloc(sizeof(*program));
	tutti_status st;

	if (!program)
		return tti_fail(TUTTI_ENOMEM, "a program of rank %d: out of memory", device->rank);
	program->of = of;
	st = fill_program(device, compiled, program);
	if (st == TUTTI_OK && !tti_vec_push(&device->programs, program))
		st = tti_fail(TUTTI_ENOMEM, "a program of rank %d: out of memory", device->rank);
	if (st != TUTTI_OK) {
		free_program(device, program);
		return st;
	}
	*out = program;
	return TUTTI_OK;
}

tutti_status tti_device_program(struct tti_device *device, const struct tti_executable *of,
				const struct tti_compiled *compiled,
				struct tti_device_program **out)
{
	struct tti_device_program *program = find_program(device, of);

	if (!program)
		TTI_TRY(add_program(device, of, compiled, &program));
	program->users++;
	*out = program;
	return TUTTI_OK;
}

static void free_unused(struct tti_device *device, struct tti_device_program *program)
{
	if (program->of || program->users > 0)
		return;
	for (size_t i = 0; i < device->programs.n; i++)
		if (device->programs.at[i] == program)
			device->programs.at[i] = device->programs.at[--device->programs.n];
	free_program(device, program);
}

void tti_device_program_drop(struct tti_device *device, struct tti_device_program *program)
{
	program->users--;
	free_unused(device, program);
}

void tti_device_forget(struct tti_device *device, const struct tti_executable *of)
{
	struct tti_device_program *program = device ? find_program(device, of) : NULL;

	if (!program)
		return;
	program->of = NULL;
	free_unused(device, program);
}

/* Sizes that are powers of two, so that others have a use for what is given back. */
#define LEAST 4096

static size_t round_up(size_t nbytes)
{
	size_t whole = LEAST;

	while (whole < nbytes)
		whole *= 2;
	return whole;
}

/* -- Scratch ---------------------------------------------------------------------------------- */

tutti_status tti_device_scratch(struct tti_device *device, size_t nbytes, uint64_t *out)
{
	uint64_t at;

	if (nbytes > device->scratch_bytes) {
		nbytes = round_up(nbytes);
		TTI_TRY(tti_device_alloc(device, nbytes, &at));
		device->scratch_at = at;
		device->scratch_bytes = nbytes;
	}
	*out = device->scratch_at;
	return TUTTI_OK;
}

/* -- Rooms ------------------------------------------------------------------------------------- */

static struct tti_device_room *take_free(struct tti_device *device, size_t nbytes, bool with_host)
{
	struct tti_device_room **at = &device->free_rooms;

	while (*at && ((*at)->nbytes != nbytes || !(*at)->host == with_host))
		at = &(*at)->next;

	struct tti_device_room *room = *at;

	if (room)
		*at = room->next;
	return room;
}

static tutti_status make_room(struct tti_device *device, size_t nbytes, bool with_host,
			      struct tti_device_room *room)
{
	room->nbytes = nbytes;
	TTI_TRY(tti_device_alloc(device, nbytes, &room->at));
	if (with_host)
		TTI_TRY(tti_device_alloc_pinned(device, nbytes, &room->host, &room->host_at));
	return TUTTI_OK;
}

tutti_status tti_device_room_take(struct tti_device *device, size_t nbytes, bool with_host,
				  struct tti_device_room **out)
{
	const size_t whole = round_up(nbytes);
	tutti_status st;

	*out = take_free(device, whole, with_host);
	if (*out)
		return TUTTI_OK;

	struct tti_device_room *room = tti_zalloc(sizeof(*room));

	if (!room || !tti_vec_grow(&device->rooms)) {
		tti_free(room);
		return tti_fail(TUTTI_ENOMEM, "a call of rank %d: out of memory", device->rank);
	}
	/* What a failed try has made is freed at the end, too: a kernel of a peer that shares the GPU may
	 * wait for this rank, which has told nobody yet. */
	device->rooms.at[device->rooms.n++] = room;
	st = make_room(device, whole, with_host, room);
	if (st == TUTTI_OK)
		*out = room;
	return st;
}

void tti_device_room_put(struct tti_device *device, struct tti_device_room *room)
{
	room->next = device->free_rooms;
	device->free_rooms = room;
}

/* -- The end ------------------------------------------------------------------------------------ */

void tti_device_free_memory(struct tti_device *device)
{
	for (size_t i = 0; i < device->programs.n; i++)
		free_program(device, device->programs.at[i]);
	for (size_t i = 0; i < device->rooms.n; i++)
		tti_free(device->rooms.at[i]);
	for (size_t i = 0; i < device->pieces.n; i++) {
		const struct tti_device_piece *piece = &device->pieces.at[i];

		tti_gpu_free(device->gpu, piece->at);
		tti_gpu_pinned_set_aside(device->gpu, piece->host, piece->nbytes);
	}
	tti_vec_release(&device->programs);
	tti_vec_release(&device->rooms);
	tti_vec_release(&device->pieces);
	tti_vec_release(&device->tables);
}
