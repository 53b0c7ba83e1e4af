/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/object.h"

#include <pthread.h>
#include <stdlib.h>

#include "engine/held.h"
#include "engine/internal.h"

struct tti_cuda_object {
	struct tti_cuda_object *next;
	void (*destroy)(void *arg);
	void *arg;
	unsigned long count;
};

/* References that an owner has to an object. */
struct hold {
	struct hold *next;
	const void *owner;
	struct tti_cuda_object *object;
	unsigned long count;
};

static struct {
	pthread_mutex_t lock;
	struct tti_cuda_object *objects;
	struct hold *holds;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- References --------------------------------------------------------------------------- */

static bool is_known(const struct tti_cuda_object *object)
{
	const struct tti_cuda_object *at = all.objects;

	while (at && at != object)
		at = at->next;
	return at;
}

/* Under the lock. Returns the object if that was its last reference: the caller frees it. */
static struct tti_cuda_object *release(struct tti_cuda_object *object, unsigned long count)
{
	struct tti_cuda_object **at = &all.objects;

	object->count -= count;
	if (object->count)
		return NULL;
	while (*at != object)
		at = &(*at)->next;
	*at = object->next;
	tti_cuda_held_add(TTI_CUDA_HELD_objects, -1);
	return object;
}

static void finish(struct tti_cuda_object *object)
{
	if (!object)
		return;
	object->destroy(object->arg);
	free(object);
}

static int unknown(const char *what, const void *object)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): %p is no object: pass one that was created and has references",
			     what, object);
}

static int too_few(const char *what, unsigned count)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): there are not %u references to take", what,
			     count);
}

int tti_cuda_object_create(const char *what, void *arg, void (*destroy)(void *arg), unsigned count,
			   unsigned flags, struct tti_cuda_object **out)
{
	struct tti_cuda_object *object;

	if (!out || !destroy)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): the %s is NULL: pass an address", what,
				     out ? "function" : "place for the object");
	if (count == 0 || flags != 1)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): %u references, flags %#x: pass one or more, and 1 (no "
				     "synchronisation by the function)",
				     what, count, flags);
	object = malloc(sizeof(*object));
	if (!object)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "%s(): no memory", what);
	(void)pthread_mutex_lock(&all.lock);
	*object = (struct tti_cuda_object){ all.objects, destroy, arg, count };
	all.objects = object;
	tti_cuda_held_add(TTI_CUDA_HELD_objects, 1);
	(void)pthread_mutex_unlock(&all.lock);
	*out = object;
	return 0;
}

int tti_cuda_object_retain(const char *what, struct tti_cuda_object *object, unsigned count)
{
	int error = 0;

	if (!count)
		return too_few(what, count);
	(void)pthread_mutex_lock(&all.lock);
	if (is_known(object))
		object->count += count;
	else
		error = unknown(what, object);
	(void)pthread_mutex_unlock(&all.lock);
	return error;
}

int tti_cuda_object_release(const char *what, struct tti_cuda_object *object, unsigned count)
{
	struct tti_cuda_object *last = NULL;
	int error = 0;

	(void)pthread_mutex_lock(&all.lock);
	if (!is_known(object))
		error = unknown(what, object);
	else if (!count || object->count < count)
		error = too_few(what, count);
	else
		last = release(object, count);
	(void)pthread_mutex_unlock(&all.lock);
	finish(last);
	return error;
}

/* -- Owners ------------------------------------------------------------------------------- */

static struct hold *find_hold(const void *owner, const struct tti_cuda_object *object)
{
	struct hold *at = all.holds;

	while (at && (at->owner != owner || at->object != object))
		at = at->next;
	return at;
}

/* Under the lock. The references are counted by the caller. */
static int hold(const void *owner, struct tti_cuda_object *object, unsigned long count)
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

int tti_cuda_object_retain_by(const char *what, const struct tti_cuda_graph *graph,
			      struct tti_cuda_object *object, unsigned count, unsigned flags)
{
	const bool moves = flags & 1;
	int error;

	if (!graph || count == 0 || flags > 1)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"%s(): graph %p, %u references, flags %#x: pass a graph, one or "
			"more, and 0 or 1 (the program's references)",
			what, (const void *)graph, count, flags);
	error = tti_cuda_handle_check(TTI_CUDA_HANDLE_GRAPH, graph, what);
	if (error)
		return error;
	(void)pthread_mutex_lock(&all.lock);
	if (!is_known(object))
		error = unknown(what, object);
	else
		error = hold(graph, object, count);
	if (!error && !moves)
		object->count += count;
	(void)pthread_mutex_unlock(&all.lock);
	return error;
}

/* As in CUDA, it is no error that the graph has fewer references: it loses those that it has. */
int tti_cuda_object_release_by(const char *what, const struct tti_cuda_graph *graph,
			       struct tti_cuda_object *object, unsigned count)
{
	struct tti_cuda_object *last = NULL;
	struct hold *had;

	if (!count)
		return too_few(what, count);
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

int tti_cuda_objects_share(const void *from, const void *to)
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

/* Take one hold of the owner away; false: there is none. */
static bool drop_one(const void *owner)
{
	struct tti_cuda_object *last = NULL;
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

void tti_cuda_objects_drop(const void *owner)
{
	while (drop_one(owner))
		;
}
