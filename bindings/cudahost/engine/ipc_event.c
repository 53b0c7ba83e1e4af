/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ipc_event.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/ipc_handle.h"
#include "engine/process.h"

/* Records that are told apart: of one that is so many behind nobody asks any more whether it has come to pass. */
#define NSLOTS  64
/* How often a wait looks whether the process that it waits for lives. */
#define LOOK_NS 100000000

/* The state of one record. */
struct slot {
	_Atomic uint32_t done;  /* the number of the last record here that has come to pass */
	_Atomic int32_t pid;    /* of the process that makes the one behind that, */
	_Atomic uint64_t start; /* and when it started                           */
};

/* What is shared. Records are numbered from 1, round and round. */
struct page {
	_Atomic uint32_t given;    /* numbers that were given           */
	_Atomic uint32_t recorded; /* the last number that is a record  */
	struct slot slots[NSLOTS];
};

_Static_assert(sizeof(struct page) <= 4096, "a page at most");

struct tti_cuda_ipc_event {
	_Atomic uint32_t holds;
	struct page *page;
	struct tti_cuda_file file; /* fd -1: another process created it */
	uint64_t start;            /* of this process, which marks its records by it */
};

/* -- Life ----------------------------------------------------------------------------------- */

/* Takes the file over. */
static int map(struct tti_cuda_file *file, struct tti_cuda_ipc_event **out)
{
	const size_t nbytes = tti_cuda_file_page();
	struct tti_cuda_ipc_event *const event = calloc(1, sizeof(*event));
	void *const at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	int error = 0;

	if (!event || at == MAP_FAILED)
		error = tti_cuda_fail(TTI_CUDA_ENOMEM, "an event: %zu bytes cannot be mapped: %s",
				      nbytes, strerror(errno));
	/* A child of fork() has none of it. */
	else if (madvise(at, nbytes, MADV_DONTFORK) < 0)
		error = tti_cuda_fail(TTI_CUDA_ESYS, "an event: madvise: %s", strerror(errno));
	if (error) {
		if (at != MAP_FAILED)
			munmap(at, nbytes);
		free(event);
		tti_cuda_file_close(file);
		return error;
	}
	atomic_init(&event->holds, 1);
	event->page = at;
	event->file = *file;
	event->start = tti_cuda_process_start(getpid());
	*out = event;
	return 0;
}

int tti_cuda_ipc_event_create(int device, struct tti_cuda_ipc_event **out)
{
	struct tti_cuda_file file;
	const int error =
		tti_cuda_file_create(TTI_CUDA_FILE_EVENT, device, tti_cuda_file_page(), 0, &file);

	return error ? error : map(&file, out);
}

int tti_cuda_ipc_event_open(const uint8_t bytes[64], struct tti_cuda_ipc_event **out,
			    int *out_device)
{
	struct tti_cuda_ipc_handle handle;
	struct tti_cuda_file file;
	int error = tti_cuda_ipc_handle_read(TTI_CUDA_FILE_EVENT, bytes, &handle);

	if (!error)
		error = tti_cuda_ipc_handle_open(TTI_CUDA_FILE_EVENT, &handle, &file);
	if (!error)
		error = map(&file, out);
	if (error)
		return error;
	tti_cuda_file_close(&(*out)->file);
	*out_device = handle.device;
	return 0;
}

static struct tti_cuda_ipc_event *hold(struct tti_cuda_ipc_event *event)
{
	atomic_fetch_add(&event->holds, 1);
	return event;
}

void tti_cuda_ipc_event_release(struct tti_cuda_ipc_event *event)
{
	if (!event || atomic_fetch_sub(&event->holds, 1) != 1)
		return;
	munmap(event->page, tti_cuda_file_page());
	tti_cuda_file_close(&event->file);
	free(event);
}

int tti_cuda_ipc_event_get_handle(const struct tti_cuda_ipc_event *event, uint8_t out[64])
{
	struct tti_cuda_ipc_handle handle;
	int error;

	if (event->file.fd < 0)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "handle: the event was opened by a handle: the process that "
				     "created it gives handles of it");
	error = tti_cuda_ipc_handle_make(TTI_CUDA_FILE_EVENT, &event->file, &handle);
	if (!error)
		tti_cuda_ipc_handle_write(&handle, out);
	return error;
}

/* -- Records -------------------------------------------------------------------------------- */

static struct slot *slot_of(const struct tti_cuda_ipc_event *event, uint32_t number)
{
	return &event->page->slots[number % NSLOTS];
}

/* Whether `number` is not before `other`, of numbers that go round and round. */
static bool is_reached(uint32_t number, uint32_t other)
{
	return (int32_t)(number - other) >= 0;
}

static void raise_to(_Atomic uint32_t *at, uint32_t number)
{
	uint32_t is = atomic_load(at);

	while (!is_reached(is, number) && !atomic_compare_exchange_weak(at, &is, number))
		;
}

static bool is_past(const struct tti_cuda_ipc_event *event, uint32_t number)
{
	return number == 0 || is_reached(atomic_load(&slot_of(event, number)->done), number);
}

/* A record that is queued, or a wait for one. */
struct queued {
	struct tti_cuda_ipc_event *event;
	uint32_t number;
};

static void drop(void *arg)
{
	struct queued *const queued = arg;

	tti_cuda_ipc_event_release(queued->event);
	free(queued);
}

static struct queued *queue(struct tti_cuda_ipc_event *event, uint32_t number)
{
	struct queued *const queued = malloc(sizeof(*queued));

	if (queued)
		*queued = (struct queued){ hold(event), number };
	else
		(void)tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for an event",
				    sizeof(*queued));
	return queued;
}

static int pass(void *arg)
{
	const struct queued *const queued = arg;
	_Atomic uint32_t *const done = &slot_of(queued->event, queued->number)->done;

	raise_to(done, queued->number);
	(void)syscall(SYS_futex, done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	return 0;
}

/* 0 is the number of no record. */
static uint32_t next_number(struct page *page)
{
	uint32_t number;

	do
		number = atomic_fetch_add(&page->given, 1) + 1;
	while (number == 0);
	return number;
}

int tti_cuda_ipc_event_record(struct tti_cuda_ipc_event *event, struct tti_cuda_stream *stream)
{
	struct tti_cuda_job stamp = { .run = pass, .drop = drop, .kind = TTI_CUDA_NODE_RECORD };
	struct tti_cuda_point point;
	struct queued *queued;
	struct slot *slot;
	uint32_t number;
	bool is_idle = false;
	int error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE,
					    "an event that processes share is recorded");

	if (error)
		return error;
	number = next_number(event->page);
	queued = queue(event, number);
	if (!queued)
		return TTI_CUDA_ENOMEM;
	slot = slot_of(event, number);
	atomic_store(&slot->pid, (int32_t)getpid());
	atomic_store(&slot->start, event->start);
	stamp.arg = queued;
	error = tti_cuda_stream_mark(stream, &stamp, &point, &is_idle);
	if (!error) {
		raise_to(&event->page->recorded, number);
		if (is_idle)
			(void)pass(queued);
		tti_cuda_point_release(&point);
	}
	if (error || is_idle)
		drop(queued);
	return error;
}

/* -- Waits ---------------------------------------------------------------------------------- */

/* 0, or ELAUNCH if the process that made the record has ended before it came to pass. */
static int check_maker(const struct tti_cuda_ipc_event *event, uint32_t number)
{
	const struct slot *const slot = slot_of(event, number);
	const int pid = atomic_load(&slot->pid);

	if (tti_cuda_process_start(pid) == atomic_load(&slot->start) || is_past(event, number))
		return 0;
	return tti_cuda_fail(TTI_CUDA_ELAUNCH,
			     "an event that processes share is awaited, and process %d, which "
			     "recorded it, ended before that came to pass",
			     pid);
}

static int wait_for(const struct tti_cuda_ipc_event *event, uint32_t number)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	_Atomic uint32_t *const done = &slot_of(event, number)->done;
	int error = 0;

	while (!error && !is_past(event, number)) {
		const uint32_t seen = atomic_load(done);

		if (is_reached(seen, number))
			break;
		if (syscall(SYS_futex, done, FUTEX_WAIT, seen, &look, NULL, 0) < 0 &&
		    errno == ETIMEDOUT)
			error = check_maker(event, number);
	}
	return error;
}

static int wait_queued(void *arg)
{
	const struct queued *const queued = arg;

	return wait_for(queued->event, queued->number);
}

int tti_cuda_ipc_event_await(struct tti_cuda_ipc_event *event, struct tti_cuda_stream *stream)
{
	const uint32_t number = atomic_load(&event->page->recorded);
	struct tti_cuda_job job = { .run = wait_queued, .drop = drop, .kind = TTI_CUDA_NODE_AWAIT };
	const int error = tti_cuda_capture_refuse(stream, TTI_CUDA_EISOLATION,
						  "waits for an event that processes share");

	if (error || is_past(event, number))
		return error;
	job.arg = queue(event, number);
	return job.arg ? tti_cuda_stream_push(stream, &job) : TTI_CUDA_ENOMEM;
}

int tti_cuda_ipc_event_query(struct tti_cuda_ipc_event *event)
{
	const uint32_t number = atomic_load(&event->page->recorded);

	if (is_past(event, number))
		return 0;
	return check_maker(event, number) ? TTI_CUDA_ELAUNCH : TTI_CUDA_ENOTREADY;
}

int tti_cuda_ipc_event_synchronize(struct tti_cuda_ipc_event *event)
{
	return wait_for(event, atomic_load(&event->page->recorded));
}
