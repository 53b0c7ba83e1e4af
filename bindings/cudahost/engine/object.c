/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the program that live as long as graphs: cudaUserObjectCreate() and the like.
 *
 * Owner: references are the program's or of a graph or executable graph (an owner). The last one
 * calls the program's function, with no lock held.
 * Threads: one lock for all objects. */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/runtime.h"

struct tti_cudart_object {
	struct tti_cudart_object *next;
	void (*destroy)(void *arg);
	void *arg;
	unsigned long count;
};

/* References that an owner has to an object. */
struct hold {
	struct hold *next;
	const void *owner;
	struct tti_cudart_object *object;
	unsigned long count;
};

/* Where an executable graph was launched last. */
struct launch {
	struct launch *next;
	const void *exec;
	struct tti_cuda_point point;
};

static struct {
	pthread_mutex_t lock;
	struct tti_cudart_object *objects;
	struct hold *holds;
	struct launch *launches;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- References --------------------------------------------------------------------------- */

static bool is_known(const struct tti_cudart_object *object)
{
	const struct tti_cudart_object *at = all.objects;

	while (at && at != object)
		at = at->next;
	return at;
}

/* Under the lock. Returns the object if that was its last reference: the caller frees it. */
static struct tti_cudart_object *release(struct tti_cudart_object *object, unsigned long count)
{
	struct tti_cudart_object **at = &all.objects;

	object->count -= count;
	if (object->count)
		return NULL;
	while (*at != object)
		at = &(*at)->next;
	*at = object->next;
	return object;
}

static void finish(struct tti_cudart_object *object)
{
	if (!object)
		return;
	object->destroy(object->arg);
	free(object);
}

static int unknown(const char *function, const void *object)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): %p is no object: pass one of cudaUserObjectCreate() that has "
			     "references",
			     function, object);
}

static int too_few(const char *function, unsigned count)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): there are not %u references to take", function,
			     count);
}

int tti_cudaUserObjectCreate(tti_cu_object *out, void *arg, tti_cu_host_fn destroy, unsigned count,
			     unsigned flags)
{
	struct tti_cudart_object *object;

	if (!out || !destroy)
		return tti_cudart_null("cudaUserObjectCreate",
				       out ? "function" : "place for the object");
	if (count == 0 || flags != 1)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cudaUserObjectCreate(): %u references, flags %#x: pass one or "
			"more, and cudaUserObjectNoDestructorSync",
			count, flags);
	object = malloc(sizeof(*object));
	if (!object)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "cudaUserObjectCreate(): no memory");
	(void)pthread_mutex_lock(&all.lock);
	*object = (struct tti_cudart_object){ all.objects, destroy, arg, count };
	all.objects = object;
	(void)pthread_mutex_unlock(&all.lock);
	*out = object;
	return 0;
}

int tti_cudaUserObjectRetain(tti_cu_object object, unsigned count)
{
	int error = 0;

	if (!count)
		return too_few("cudaUserObjectRetain", count);
	(void)pthread_mutex_lock(&all.lock);
	if (is_known(object))
		object->count += count;
	else
		error = unknown("cudaUserObjectRetain", object);
	(void)pthread_mutex_unlock(&all.lock);
	return error;
}

int tti_cudaUserObjectRelease(tti_cu_object object, unsigned count)
{
	struct tti_cudart_object *last = NULL;
	int error = 0;

	(void)pthread_mutex_lock(&all.lock);
	if (!is_known(object))
		error = unknown("cudaUserObjectRelease", object);
	else if (!count || object->count < count)
		error = too_few("cudaUserObjectRelease", count);
	else
		last = release(object, count);
	(void)pthread_mutex_unlock(&all.lock);
	finish(last);
	return error;
}

/* -- Owners ------------------------------------------------------------------------------- */

static struct hold *find_hold(const void *owner, const struct tti_cudart_object *object)
{
	struct hold *at = all.holds;

	while (at && (at->owner != owner || at->object != object))
		at = at->next;
	return at;
}

/* Under the lock. The references are counted by the caller. */
static int hold(const void *owner, struct tti_cudart_object *object, unsigned long count)
{
	struct hold *had = find_hold(owner, object);

	if (had) {
		had->count += count;
		return 0;
	}
	had = malloc(sizeof(*had));
	if (!had)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for a reference to an object");
	*had = (struct hold){ all.holds, owner, object, count };
	all.holds = had;
	return 0;
}

int tti_cudaGraphRetainUserObject(tti_cu_graph graph, tti_cu_object object, unsigned count,
				  unsigned flags)
{
	const bool moves = flags & 1; /* cudaGraphUserObjectMove */
	int error;

	if (!graph || count == 0 || flags > 1)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaGraphRetainUserObject(): graph %p, %u references, flags "
				     "%#x: pass a graph, one or more, and 0 or "
				     "cudaGraphUserObjectMove",
				     (void *)graph, count, flags);
	(void)pthread_mutex_lock(&all.lock);
	if (!is_known(object))
		error = unknown("cudaGraphRetainUserObject", object);
	else
		error = hold(graph, object, count);
	if (!error && !moves)
		object->count += count;
	(void)pthread_mutex_unlock(&all.lock);
	return error;
}

/* As in CUDA, it is no error that the graph has fewer references: it loses those that it has. */
int tti_cudaGraphReleaseUserObject(tti_cu_graph graph, tti_cu_object object, unsigned count)
{
	struct tti_cudart_object *last = NULL;
	struct hold *had;

	if (!count)
		return too_few("cudaGraphReleaseUserObject", count);
	(void)pthread_mutex_lock(&all.lock);
	had = find_hold(graph, object);
	if (had && had->count < count)
		count = (unsigned)had->count;
	if (had && count) {
		had->count -= count; /* one with none goes with its graph */
		last = release(object, count);
		if (last)
			had->object = NULL;
	}
	(void)pthread_mutex_unlock(&all.lock);
	finish(last);
	return 0;
}

int tti_cudart_objects_share(const void *from, const void *to)
{
	int error = 0;

	(void)pthread_mutex_lock(&all.lock);
	for (struct hold *at = all.holds; at && !error; at = at->next) {
		if (at->owner != from || !at->object || at->count == 0)
			continue;
		error = hold(to, at->object, 1);
		if (!error)
			at->object->count++;
	}
	(void)pthread_mutex_unlock(&all.lock);
	return error;
}

/* -- Executable graphs -------------------------------------------------------------------- */

static struct launch **find_launch(const void *exec)
{
	struct launch **at = &all.launches;

	while (*at && (*at)->exec != exec)
		at = &(*at)->next;
	return at;
}

static bool has_holds(const void *owner)
{
	const struct hold *at = all.holds;

	while (at && at->owner != owner)
		at = at->next;
	return at;
}

void tti_cudart_objects_launched(const void *exec, struct tti_cuda_stream *stream)
{
	struct tti_cuda_point old = { 0 };
	struct launch *launch;

	(void)pthread_mutex_lock(&all.lock);
	launch = *find_launch(exec);
	if (!launch && has_holds(exec)) {
		launch = calloc(1, sizeof(*launch));
		if (launch) {
			launch->next = all.launches;
			launch->exec = exec;
			all.launches = launch;
		}
	}
	if (launch) {
		old = launch->point;
		launch->point = tti_cuda_stream_point(stream);
	}
	(void)pthread_mutex_unlock(&all.lock);
	if (old.stream)
		tti_cuda_point_release(&old);
}

/* Executable graphs run one launch after the other, so the last one is behind all. */
static void wait_for(const void *exec)
{
	struct launch **at, *launch;

	(void)pthread_mutex_lock(&all.lock);
	at = find_launch(exec);
	launch = *at;
	if (launch)
		*at = launch->next;
	(void)pthread_mutex_unlock(&all.lock);
	if (!launch)
		return;
	tti_cuda_point_wait(&launch->point);
	tti_cuda_point_release(&launch->point);
	free(launch);
}

/* Take one hold of the owner away; false: there is none. */
static bool drop_one(const void *owner)
{
	struct tti_cudart_object *last = NULL;
	struct hold **at = &all.holds, *gone;

	(void)pthread_mutex_lock(&all.lock);
	while (*at && (*at)->owner != owner)
		at = &(*at)->next;
	gone = *at;
	if (gone) {
		*at = gone->next;
		if (gone->object && gone->count)
			last = release(gone->object, gone->count);
	}
	(void)pthread_mutex_unlock(&all.lock);
	finish(last);
	free(gone);
	return gone;
}

void tti_cudart_objects_drop(const void *owner)
{
	wait_for(owner);
	while (drop_one(owner))
		;
}
