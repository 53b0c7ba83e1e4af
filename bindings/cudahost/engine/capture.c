/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture has streams, each with the nodes that its next job comes behind (the tail), and a graph
 * that grows. Its first stream is where it began. Other streams join by waiting for an event of it,
 * and are joined if all their nodes are before the tail of the first stream at the end.
 *
 *	first stream   a---b-------e---f      f: tail of the first stream at the end
 *	                \         /
 *	joined by event  c-------d            d is before f, so this stream is joined
 *
 * Owner: the list of captures holds a capture until it ends. Events hold its memory for longer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/capture_impl.h"

struct tti_cuda_capture *tti_cuda_captures;
_Atomic int tti_cuda_ncaptures;

static void lock(void)
{
	pthread_mutex_lock(&tti_cuda_graph_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&tti_cuda_graph_lock);
}

static int no_memory(size_t nbytes)
{
	return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a capture", nbytes);
}

uint64_t tti_cuda_capture_thread(void)
{
	static _Atomic uint64_t count;
	static _Thread_local uint64_t id;

	if (!id)
		id = 1 + atomic_fetch_add(&count, 1);
	return id;
}

/* -- Parts ---------------------------------------------------------------------------------- */

void tti_cuda_capture_let_go(struct tti_cuda_capture *capture)
{
	if (atomic_fetch_sub(&capture->holds, 1) == 1)
		free(capture);
}

static void member_free(struct tti_cuda_capture_member *member)
{
	tti_cuda_nodes_release(&member->tail);
	free(member);
}

struct tti_cuda_capture_member *tti_cuda_capture_find_member(const struct tti_cuda_capture *capture,
							     const struct tti_cuda_stream *stream)
{
	for (size_t i = 0; i < capture->nmembers; i++)
		if (capture->members[i]->stream == stream)
			return capture->members[i];
	return NULL; /* not of a stream whose capture this is */
}

int tti_cuda_capture_add_tail(struct tti_cuda_nodes *tail, struct tti_cuda_node *const *nodes,
			      size_t n)
{
	const size_t before = tail->n;

	for (size_t i = 0; i < n; i++) {
		if (tti_cuda_nodes_has(tail, nodes[i]))
			continue;
		if (!tti_cuda_nodes_add(tail, nodes[i])) {
			tail->n = before;
			return TTI_CUDA_ENOMEM;
		}
	}
	return 0;
}

static void set_tail(struct tti_cuda_nodes *tail, struct tti_cuda_node *node)
{
	tail->n = 0;
	tti_cuda_nodes_add(tail, node);
}

int tti_cuda_capture_add_member(struct tti_cuda_capture *capture, struct tti_cuda_stream *stream,
				struct tti_cuda_node *const *tail, size_t ntail)
{
	struct tti_cuda_capture_member *member;

	if (capture->nmembers == capture->room) {
		const size_t room = capture->room ? 2 * capture->room : 4;
		struct tti_cuda_capture_member **members =
			realloc(capture->members, room * sizeof(struct tti_cuda_capture_member *));

		if (!members)
			return no_memory(room * sizeof(struct tti_cuda_capture_member *));
		capture->members = members;
		capture->room = room;
	}
	member = calloc(1, sizeof(*member));
	if (!member)
		return no_memory(sizeof(*member));
	if (!tti_cuda_nodes_add(&member->tail, NULL))
		goto fail;
	member->tail.n = 0;
	if (tti_cuda_capture_add_tail(&member->tail, tail, ntail))
		goto fail;
	member->stream = stream;
	capture->members[capture->nmembers++] = member;
	tti_cuda_stream_set_capture(stream, capture);
	return 0;

fail:
	member_free(member);
	return TTI_CUDA_ENOMEM;
}

void tti_cuda_capture_invalidate(struct tti_cuda_capture *capture, const char *fmt, ...)
{
	va_list args;

	if (capture->state != TTI_CUDA_CAPTURE_ACTIVE)
		return;
	capture->state = TTI_CUDA_CAPTURE_INVALID;
	va_start(args, fmt);
	vsnprintf(capture->why, sizeof(capture->why), fmt, args);
	va_end(args);
}

int tti_cuda_capture_fail_invalid(const struct tti_cuda_capture *capture)
{
	return tti_cuda_fail(TTI_CUDA_ECAPTURED,
			     "capture %llu is not valid any more: %s; end it and begin anew",
			     (unsigned long long)capture->id, capture->why);
}

/* Its streams are not captured any more. Returns the graph if that is the capture's. */
static struct tti_cuda_graph *finish(struct tti_cuda_capture *capture)
{
	struct tti_cuda_graph *graph = capture->owns_graph ? capture->graph : NULL;
	struct tti_cuda_capture **link = &tti_cuda_captures;

	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	atomic_fetch_sub(&tti_cuda_ncaptures, 1);
	for (size_t i = 0; i < capture->nmembers; i++) {
		if (capture->members[i]->stream)
			tti_cuda_stream_set_capture(capture->members[i]->stream, NULL);
		member_free(capture->members[i]);
	}
	free(capture->members);
	capture->members = NULL;
	capture->nmembers = 0;
	capture->graph->ncaptures--;
	capture->state = TTI_CUDA_CAPTURE_NONE;
	tti_cuda_capture_let_go(capture);
	return graph;
}

/* -- Beginning ------------------------------------------------------------------------------ */

static int begin_locked(struct tti_cuda_stream *stream, enum tti_cuda_capture_mode mode,
			struct tti_cuda_graph *graph, bool owns_graph,
			struct tti_cuda_node *const *after, size_t nafter)
{
	static uint64_t ids;
	struct tti_cuda_capture *capture = tti_cuda_stream_capture(stream);
	int error;

	if (capture)
		return tti_cuda_fail(
			TTI_CUDA_ESTATE,
			"stream %llu is captured already (capture %llu): end that first",
			(unsigned long long)tti_cuda_stream_id(stream),
			(unsigned long long)capture->id);
	if (graph->ncaptures)
		return tti_cuda_fail(TTI_CUDA_ESTATE,
				     "graph %p is captured into already: end that first",
				     (void *)graph);
	error = tti_cuda_graph_check_nodes_locked(graph, after, nafter);
	if (error)
		return error;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return no_memory(sizeof(*capture));
	atomic_init(&capture->holds, 1);
	capture->id = ++ids;
	capture->state = TTI_CUDA_CAPTURE_ACTIVE;
	capture->mode = mode;
	capture->thread = tti_cuda_capture_thread();
	capture->graph = graph;
	capture->owns_graph = owns_graph;
	error = tti_cuda_capture_add_member(capture, stream, after, nafter);
	if (error) {
		free(capture->members);
		free(capture);
		return error;
	}
	graph->ncaptures++;
	capture->next = tti_cuda_captures;
	tti_cuda_captures = capture;
	atomic_fetch_add(&tti_cuda_ncaptures, 1);
	return 0;
}

int tti_cuda_capture_begin(struct tti_cuda_stream *stream, enum tti_cuda_capture_mode mode,
			   struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			   size_t nafter)
{
	const bool owns_graph = !graph;
	int error = tti_cuda_begin();

	if (!error && (unsigned)mode > TTI_CUDA_CAPTURE_RELAXED)
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"a capture of mode %d: there are 0 (global), 1 (thread-local) "
			"and 2 (relaxed)",
			(int)mode);
	if (!error && tti_cuda_stream_role(stream) == TTI_CUDA_STREAM_LEGACY)
		error = tti_cuda_fail(
			TTI_CUDA_ECAPTURE,
			"the legacy default stream cannot be captured: capture a stream "
			"of cudaStreamCreate()");
	if (!error)
		error = owns_graph ? tti_cuda_graph_create(&graph)
				   : tti_cuda_handle_check(TTI_CUDA_HANDLE_GRAPH, graph,
							   "a stream is captured into a graph");
	if (error)
		return error;
	lock();
	error = begin_locked(stream, mode, graph, owns_graph, after, nafter);
	unlock();
	if (error && owns_graph)
		tti_cuda_graph_free(graph);
	return error;
}

/* -- Ending --------------------------------------------------------------------------------- */

/* Mark all that is before the tail, and the tail. */
static int mark_joined(const struct tti_cuda_capture *capture)
{
	const struct tti_cuda_nodes *all = &capture->graph->nodes;
	struct tti_cuda_nodes stack = { 0 };
	int error;

	for (size_t i = 0; i < all->n; i++)
		all->at[i]->nwaiting = 0;
	error = tti_cuda_capture_add_tail(&stack, capture->members[0]->tail.at,
					  capture->members[0]->tail.n);
	while (!error && stack.n) {
		struct tti_cuda_node *node = stack.at[--stack.n];

		if (node->nwaiting)
			continue;
		node->nwaiting = 1;
		for (size_t i = 0; !error && i < node->before.n; i++)
			if (!node->before.at[i]->nwaiting &&
			    !tti_cuda_nodes_add(&stack, node->before.at[i]))
				error = TTI_CUDA_ENOMEM;
	}
	tti_cuda_nodes_release(&stack);
	return error;
}

static int check_joined(const struct tti_cuda_capture *capture)
{
	const int error = mark_joined(capture);

	if (error)
		return error;
	for (size_t i = 1; i < capture->nmembers; i++) {
		const struct tti_cuda_capture_member *member = capture->members[i];

		for (size_t j = 0; j < member->tail.n; j++)
			if (!member->tail.at[j]->nwaiting)
				return tti_cuda_fail(
					TTI_CUDA_EUNJOINED,
					"stream %llu (0: it is destroyed) joined capture %llu, and "
					"stream %llu, where the capture began, does not wait for "
					"it: record an event in the one and let the other wait for "
					"it",
					(unsigned long long)(member->stream
								     ? tti_cuda_stream_id(
									       member->stream)
								     : 0),
					(unsigned long long)capture->id,
					(unsigned long long)tti_cuda_stream_id(
						capture->members[0]->stream));
	}
	return 0;
}

/* Whether the capture ends here and now; *ends: it does, whatever comes out. */
static int end_locked(struct tti_cuda_stream *stream, bool *ends)
{
	struct tti_cuda_capture *capture = tti_cuda_stream_capture(stream);

	if (!capture)
		return tti_cuda_fail(TTI_CUDA_ESTATE,
				     "stream %llu is not captured: begin a capture first",
				     (unsigned long long)tti_cuda_stream_id(stream));
	if (capture->members[0]->stream != stream) {
		const unsigned long long first = tti_cuda_stream_id(capture->members[0]->stream);

		tti_cuda_capture_invalidate(capture,
					    "it was to end in a stream that had joined it");
		return tti_cuda_fail(
			TTI_CUDA_EUNMATCHED,
			"capture %llu began in stream %llu and ends there, not in stream "
			"%llu",
			(unsigned long long)capture->id, first,
			(unsigned long long)tti_cuda_stream_id(stream));
	}
	*ends = true;
	if (capture->mode != TTI_CUDA_CAPTURE_RELAXED &&
	    capture->thread != tti_cuda_capture_thread())
		return tti_cuda_fail(
			TTI_CUDA_ETHREAD,
			"capture %llu was begun by another thread, which was to end it: only "
			"one of cudaStreamCaptureModeRelaxed may end elsewhere",
			(unsigned long long)capture->id);
	return capture->state == TTI_CUDA_CAPTURE_INVALID ? tti_cuda_capture_fail_invalid(capture)
							  : check_joined(capture);
}

int tti_cuda_capture_end(struct tti_cuda_stream *stream, struct tti_cuda_graph **out)
{
	struct tti_cuda_graph *graph = NULL, *owned = NULL;
	bool ends = false;
	int error = tti_cuda_begin();

	if (out)
		*out = NULL;
	if (error)
		return error;
	lock();
	error = end_locked(stream, &ends);
	if (ends) {
		graph = tti_cuda_stream_capture(stream)->graph;
		owned = finish(tti_cuda_stream_capture(stream));
	}
	unlock();
	if (error || !out)
		tti_cuda_graph_free(owned);
	else
		*out = graph;
	return error;
}

/* What a stream that had joined has pushed is to be joined still. */
void tti_cuda_capture_leave(struct tti_cuda_stream *stream)
{
	struct tti_cuda_graph *graph = NULL;
	struct tti_cuda_capture *capture;

	if (!tti_cuda_stream_capture(stream))
		return;
	lock();
	capture = tti_cuda_stream_capture(stream);
	if (capture && capture->members[0]->stream == stream) {
		graph = finish(capture);
	} else if (capture) {
		tti_cuda_capture_find_member(capture, stream)->stream = NULL;
		tti_cuda_stream_set_capture(stream, NULL);
	}
	unlock();
	tti_cuda_graph_free(graph);
}

/* -- Adding --------------------------------------------------------------------------------- */

struct tti_cuda_capture *tti_cuda_capture_active(struct tti_cuda_stream *stream, int *error)
{
	struct tti_cuda_capture *capture = tti_cuda_stream_capture(stream);

	*error = 0;
	if (!capture || capture->state == TTI_CUDA_CAPTURE_ACTIVE)
		return capture;
	*error = tti_cuda_capture_fail_invalid(capture);
	return NULL;
}

static int push_locked(struct tti_cuda_stream *stream, struct tti_cuda_shared_job *job, bool *taken)
{
	struct tti_cuda_node *node;
	struct tti_cuda_capture_member *member;
	int error;
	struct tti_cuda_capture *capture = tti_cuda_capture_active(stream, &error);

	*taken = capture || error;
	if (!capture)
		return error;
	member = tti_cuda_capture_find_member(capture, stream);
	error = tti_cuda_graph_add_locked(capture->graph, member->tail.at, member->tail.n, job,
					  NULL, &node);
	if (!error)
		set_tail(&member->tail, node);
	return error;
}

int tti_cuda_capture_push(struct tti_cuda_stream *stream, const struct tti_cuda_job *job,
			  bool *taken)
{
	struct tti_cuda_shared_job *shared = tti_cuda_shared_job_create(job);
	int error;

	if (!shared) {
		*taken = true;
		tti_cuda_job_drop(job);
		return TTI_CUDA_ENOMEM;
	}
	lock();
	error = push_locked(stream, shared, taken);
	unlock();
	if (!*taken)
		free(shared); /* the job is the caller's still */
	else if (error)
		tti_cuda_shared_job_let_go(shared);
	return error;
}

int tti_cuda_capture_launcher(void *handle, int (*launch)(void *arg, void *stream),
			      void (*drop)(void *arg), void *arg)
{
	const struct tti_cuda_job job = {
		.drop = drop, .arg = arg, .kind = TTI_CUDA_NODE_HOST, .launch = launch
	};
	bool taken = false;
	int error;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, false, &error);

	if (stream && tti_cuda_stream_capture(stream))
		error = tti_cuda_capture_push(stream, &job, &taken);
	if (taken)
		return error;
	tti_cuda_job_drop(&job);
	return error ? error
		     : tti_cuda_fail(TTI_CUDA_ESTATE,
				     "stream %p is not captured: there is no graph for what each "
				     "launch calls",
				     handle);
}

int tti_cuda_capture_set_tail(struct tti_cuda_stream *stream, struct tti_cuda_node *const *after,
			      size_t nafter, bool adds)
{
	struct tti_cuda_capture *capture;
	struct tti_cuda_nodes tail = { 0 };
	struct tti_cuda_capture_member *member;
	int error = tti_cuda_begin();

	if (error)
		return error;
	lock();
	capture = tti_cuda_capture_active(stream, &error);
	if (!capture && !error)
		error = tti_cuda_fail(TTI_CUDA_ESTATE,
				      "stream %llu is not captured: it has no dependencies to set",
				      (unsigned long long)tti_cuda_stream_id(stream));
	if (!error)
		error = tti_cuda_graph_check_nodes_locked(capture->graph, after, nafter);
	if (error)
		goto out;
	member = tti_cuda_capture_find_member(capture, stream);
	if (!tti_cuda_nodes_add(&tail, NULL)) {
		error = TTI_CUDA_ENOMEM;
		goto out;
	}
	tail.n = 0;
	if (adds)
		error = tti_cuda_capture_add_tail(&tail, member->tail.at, member->tail.n);
	if (!error)
		error = tti_cuda_capture_add_tail(&tail, after, nafter);
	if (!error) {
		const struct tti_cuda_nodes before = member->tail;

		member->tail = tail;
		tail = before;
	}
out:
	unlock();
	tti_cuda_nodes_release(&tail);
	return error;
}

/* All edges of captures are plain, which CUDA says by zeros. */
#define EDGES 256
static const uint64_t edges[EDGES];

void tti_cuda_capture_get(struct tti_cuda_stream *stream, struct tti_cuda_capture_info *out)
{
	struct tti_cuda_capture *capture;

	*out = (struct tti_cuda_capture_info){ .state = TTI_CUDA_CAPTURE_NONE };
	if (!tti_cuda_stream_capture(stream) || tti_cuda_begin())
		return;
	lock();
	capture = tti_cuda_stream_capture(stream);
	if (capture && capture->state == TTI_CUDA_CAPTURE_ACTIVE) {
		const struct tti_cuda_capture_member *member =
			tti_cuda_capture_find_member(capture, stream);

		out->state = TTI_CUDA_CAPTURE_ACTIVE;
		out->graph = capture->graph;
		out->tail = member->tail.n ? member->tail.at : NULL;
		out->ntail = member->tail.n;
		out->edges = member->tail.n && member->tail.n <= EDGES ? edges : NULL;
	} else if (capture) {
		out->state = TTI_CUDA_CAPTURE_INVALID;
	}
	if (capture)
		out->id = capture->id;
	unlock();
}

int tti_cuda_capture_ask(struct tti_cuda_stream *stream, struct tti_cuda_capture_info *out)
{
	if (tti_cuda_stream_role(stream) == TTI_CUDA_STREAM_LEGACY &&
	    tti_cuda_stream_ncaptured(tti_cuda_stream_device(stream)))
		return tti_cuda_fail(
			TTI_CUDA_EIMPLICIT,
			"the legacy default stream is asked for its capture while a blocking "
			"stream is captured: ask that stream");
	tti_cuda_capture_get(stream, out);
	return 0;
}
