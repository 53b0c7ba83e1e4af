/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs that are ready to run. What runs is a program: the jobs in their order, that never change.
 * An update makes another one, so that runs that are queued keep theirs.
 *
 * Owner: a program is held by the executable graph and by each run, and so is the owner of what the
 * graph has of the program's objects. The graph that was instantiated is cloned, for updates and for
 * launches into a capture. */
#include <stdlib.h>

#include "engine/graph_impl.h"
#include "engine/object.h"

#define DONE SIZE_MAX

struct program {
	_Atomic uint32_t holds;
	size_t n, room;
	struct tti_cuda_shared_job **steps;
};

/* Has references to objects (object.h). */
struct owner {
	_Atomic uint32_t holds;
};

struct tti_cuda_exec {
	pthread_mutex_t lock;
	struct owner *owner;
	struct program *program;
	struct tti_cuda_graph *graph;
	struct tti_cuda_point last; /* behind the last run */
};

static int no_memory(size_t nbytes)
{
	return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for an executable graph",
			     nbytes);
}

/* -- Programs ------------------------------------------------------------------------------- */

static void program_let_go(struct program *program)
{
	if (!program || atomic_fetch_sub(&program->holds, 1) != 1)
		return;
	for (size_t i = 0; i < program->n; i++)
		tti_cuda_shared_job_let_go(program->steps[i]);
	free(program->steps);
	free(program);
}

static void owner_let_go(struct owner *owner)
{
	if (!owner || atomic_fetch_sub(&owner->holds, 1) != 1)
		return;
	tti_cuda_objects_drop(owner);
	free(owner);
}

/* What a launch queues as one job: the steps from `first` up to `end`. */
struct part {
	struct program *program;
	struct owner *owner;
	size_t first, end;
};

/* One that fails is the device's failure; others run all the same, as in a stream. */
static int part_run(void *arg)
{
	const struct part *part = arg;
	const int device = tti_cuda_device_current();

	for (size_t i = part->first; i < part->end; i++)
		tti_cuda_job_run(device, &part->program->steps[i]->job);
	return 0;
}

static void part_drop(void *arg)
{
	struct part *part = arg;

	program_let_go(part->program);
	owner_let_go(part->owner);
	free(part);
}

static int add_step(struct program *program, struct tti_cuda_shared_job *job)
{
	if (program->n == program->room) {
		const size_t room = program->room ? 2 * program->room : 16;
		const size_t nbytes = room * sizeof(struct tti_cuda_shared_job *);
		struct tti_cuda_shared_job **steps = realloc(program->steps, nbytes);

		if (!steps)
			return no_memory(nbytes);
		program->steps = steps;
		program->room = room;
	}
	program->steps[program->n++] = tti_cuda_shared_job_hold(job);
	return 0;
}

static int add_graph(struct program *program, const struct tti_cuda_graph *graph);

static int add_node(struct program *program, const struct tti_cuda_node *node)
{
	if (node->child)
		return add_graph(program, node->child);
	return node->job ? add_step(program, node->job) : 0;
}

/* The next node is the one that was added first among those that wait for none any more. All
 * before `next` are done or wait. */
static int add_graph(struct program *program, const struct tti_cuda_graph *graph)
{
	const size_t n = graph->nodes.n;
	size_t next = 0, ndone = 0;

	for (size_t i = 0; i < n; i++)
		graph->nodes.at[i]->nwaiting = graph->nodes.at[i]->before.n;
	while (next < n) {
		struct tti_cuda_node *node = graph->nodes.at[next++];
		int error;

		if (node->nwaiting)
			continue;
		error = add_node(program, node);
		if (error)
			return error;
		node->nwaiting = DONE;
		ndone++;
		for (size_t i = 0; i < node->after.n; i++) {
			struct tti_cuda_node *after = node->after.at[i];

			if (--after->nwaiting == 0 && after->index < next)
				next = after->index;
		}
	}
	if (ndone == n)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%zu of the %zu nodes of graph %p wait for each other in a circle: "
			     "remove a dependency",
			     n - ndone, n, (const void *)graph);
}

/* If it fails, no job is dropped: the graph has all of them. */
static int program_create_locked(const struct tti_cuda_graph *graph, struct program **out)
{
	struct program *program = calloc(1, sizeof(*program));
	int error;

	if (!program)
		return no_memory(sizeof(*program));
	atomic_init(&program->holds, 1);
	error = add_graph(program, graph);
	if (error)
		program_let_go(program);
	else
		*out = program;
	return error;
}

/* A copy of the graph, and what it runs. */
static int prepare_locked(const struct tti_cuda_graph *graph, struct tti_cuda_graph **out_clone,
			  struct program **out)
{
	struct tti_cuda_graph *clone;
	int error = tti_cuda_graph_clone_locked(graph, &clone);

	if (error)
		return error;
	error = program_create_locked(clone, out);
	if (error)
		tti_cuda_graph_free(clone);
	else
		*out_clone = clone;
	return error;
}

/* -- Life ----------------------------------------------------------------------------------- */

static int check(const struct tti_cuda_exec *exec, const char *what)
{
	return tti_cuda_handle_check(TTI_CUDA_HANDLE_EXEC, exec, what);
}

static void exec_free(struct tti_cuda_exec *exec)
{
	tti_cuda_point_release(&exec->last);
	program_let_go(exec->program);
	owner_let_go(exec->owner);
	tti_cuda_graph_free(exec->graph);
	pthread_mutex_destroy(&exec->lock);
	free(exec);
}

/* NULL: no memory. */
static struct tti_cuda_exec *exec_create(void)
{
	struct tti_cuda_exec *exec = calloc(1, sizeof(*exec));
	struct owner *owner = calloc(1, sizeof(*owner));

	if (!exec || !owner) {
		free(exec);
		free(owner);
		return NULL;
	}
	atomic_init(&owner->holds, 1);
	exec->owner = owner;
	pthread_mutex_init(&exec->lock, NULL);
	return exec;
}

int tti_cuda_graph_instantiate(const struct tti_cuda_graph *graph, struct tti_cuda_exec **out)
{
	struct tti_cuda_exec *exec;
	int error = tti_cuda_handle_check(TTI_CUDA_HANDLE_GRAPH, graph, "a graph is instantiated");

	if (error)
		return error;
	exec = exec_create();
	if (!exec)
		return no_memory(sizeof(*exec));
	pthread_mutex_lock(&tti_cuda_graph_lock);
	error = prepare_locked(graph, &exec->graph, &exec->program);
	pthread_mutex_unlock(&tti_cuda_graph_lock);
	if (!error)
		error = tti_cuda_objects_share(graph, exec->owner);
	if (!error)
		error = tti_cuda_handle_add(TTI_CUDA_HANDLE_EXEC, exec);
	if (error)
		exec_free(exec);
	else
		*out = exec;
	return error;
}

int tti_cuda_exec_destroy(struct tti_cuda_exec *exec)
{
	const int error = check(exec, "an executable graph is destroyed");

	if (error)
		return error;
	if (!tti_cuda_handle_remove(TTI_CUDA_HANDLE_EXEC, exec))
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "executable graph %p is destroyed by two threads at once",
				     (void *)exec);
	exec_free(exec);
	return 0;
}

/* -- Runs ----------------------------------------------------------------------------------- */

static int push_part(struct tti_cuda_stream *stream, struct tti_cuda_exec *exec, size_t first,
		     size_t end)
{
	struct part *part = malloc(sizeof(*part));

	if (!part)
		return no_memory(sizeof(*part));
	atomic_fetch_add(&exec->program->holds, 1);
	atomic_fetch_add(&exec->owner->holds, 1);
	*part = (struct part){ exec->program, exec->owner, first, end };
	return tti_cuda_stream_push(stream, &(struct tti_cuda_job){ .run = part_run,
								    .drop = part_drop,
								    .arg = part,
								    .kind = TTI_CUDA_NODE_GRAPH });
}

/* Jobs that are to know of the launch queue something themselves, in their place. */
static int push_all(struct tti_cuda_stream *stream, struct tti_cuda_exec *exec)
{
	const struct program *const program = exec->program;
	bool has_launches = false; /* of which the run that holds the owner does not know */
	int error = 0;

	for (size_t at = 0, end; at < program->n && !error; at = end + 1) {
		const struct tti_cuda_job *job = NULL;

		for (end = at; end < program->n && !job; end += !job)
			if (program->steps[end]->job.launch)
				job = &program->steps[end]->job;
		if (end > at)
			error = push_part(stream, exec, at, end);
		if (job && !error)
			error = job->launch(job->arg, tti_cuda_stream_handle(stream));
		has_launches |= job != NULL;
	}
	return error || !has_launches ? error : push_part(stream, exec, program->n, program->n);
}

/* Under the lock of the executable graph, so that runs have one order. */
static int launch_locked(struct tti_cuda_exec *exec, struct tti_cuda_stream *stream)
{
	struct program *program = exec->program;
	int error = tti_cuda_stream_await(stream, &exec->last);

	for (size_t i = 0; !error && i < program->n; i++)
		error = tti_cuda_event_before_launch(&program->steps[i]->job, stream);
	if (!error)
		error = push_all(stream, exec);
	if (error)
		return error;
	tti_cuda_point_release(&exec->last);
	exec->last = tti_cuda_stream_point(stream);
	for (size_t i = 0; !error && i < program->n; i++)
		error = tti_cuda_event_behind_launch(&program->steps[i]->job, stream);
	return error;
}

int tti_cuda_exec_launch(struct tti_cuda_exec *exec, struct tti_cuda_stream *stream)
{
	int error = check(exec, "an executable graph is launched");

	if (!error)
		error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "a graph is launched");
	if (error)
		return error;
	pthread_mutex_lock(&exec->lock);
	error = launch_locked(exec, stream);
	pthread_mutex_unlock(&exec->lock);
	return error;
}

/* -- Changes -------------------------------------------------------------------------------- */

static bool same_before(const struct tti_cuda_node *a, const struct tti_cuda_node *b)
{
	const struct tti_cuda_graph *of = b->graph;

	if (a->before.n != b->before.n)
		return false;
	for (size_t i = 0; i < a->before.n; i++)
		if (!tti_cuda_nodes_has(&b->before, of->nodes.at[a->before.at[i]->index]))
			return false;
	return true;
}

static int compare(const struct tti_cuda_graph *old, const struct tti_cuda_graph *new,
		   struct tti_cuda_node **at);

/* Compare two nodes at the same place of graphs with the same number of nodes, as compare() does. */
static int compare_nodes(const struct tti_cuda_node *old, const struct tti_cuda_node *new)
{
	struct tti_cuda_node *inner;

	if (old->kind != new->kind)
		return TTI_CUDA_UPDATE_TYPE;
	if (!same_before(old, new) || !old->child != !new->child)
		return TTI_CUDA_UPDATE_TOPOLOGY;
	if (old->child)
		return compare(old->child, new->child, &inner);
	return !old->job || tti_cuda_job_is_like(&old->job->job, &new->job->job)
		       ? 0
		       : TTI_CUDA_UPDATE_PARAMETERS;
}

/* 0: `new` runs what `old` does, but for the jobs. Else enum tti_cuda_update, and *at is the first
 * node that differs, of `new`; NULL: there are more or fewer nodes. */
static int compare(const struct tti_cuda_graph *old, const struct tti_cuda_graph *new,
		   struct tti_cuda_node **at)
{
	*at = NULL;
	if (old->nodes.n != new->nodes.n)
		return TTI_CUDA_UPDATE_TOPOLOGY;
	for (size_t i = 0; i < new->nodes.n; i++) {
		const int differs = compare_nodes(old->nodes.at[i], new->nodes.at[i]);

		if (differs) {
			*at = new->nodes.at[i];
			return differs;
		}
	}
	return 0;
}

/* Nodes of the instantiated graph name the nodes of the executable one after an update, too. */
static void keep_origins(const struct tti_cuda_graph *old, struct tti_cuda_graph *new)
{
	for (size_t i = 0; i < new->nodes.n; i++) {
		new->nodes.at[i]->origin = old->nodes.at[i]->origin;
		if (new->nodes.at[i]->child)
			keep_origins(old->nodes.at[i]->child, new->nodes.at[i]->child);
	}
}

int tti_cuda_exec_update(struct tti_cuda_exec *exec, const struct tti_cuda_graph *graph,
			 struct tti_cuda_node **at, int *why)
{
	struct program *program = NULL;
	struct tti_cuda_graph *clone = NULL;
	int error = check(exec, "an executable graph is updated");

	*at = NULL;
	*why = 0;
	if (!error)
		error = tti_cuda_handle_check(TTI_CUDA_HANDLE_GRAPH, graph,
					      "an executable graph is updated by a graph");
	if (error)
		return error;
	pthread_mutex_lock(&exec->lock);
	pthread_mutex_lock(&tti_cuda_graph_lock);
	*why = compare(exec->graph, graph, at);
	if (*why)
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"graph %p has %zu nodes and the executable one %zu, and node %p "
			"differs in its kind, in what it waits for, or in the memory that it "
			"uses: instantiate it",
			(const void *)graph, graph->nodes.n, exec->graph->nodes.n, (void *)*at);
	else
		error = prepare_locked(graph, &clone, &program);
	pthread_mutex_unlock(&tti_cuda_graph_lock);
	if (!error) {
		struct program *const old_program = exec->program;
		struct tti_cuda_graph *const old_graph = exec->graph;

		keep_origins(old_graph, clone);
		exec->program = program;
		exec->graph = clone;
		program = old_program;
		clone = old_graph;
	}
	pthread_mutex_unlock(&exec->lock);
	if (error)
		return error;
	program_let_go(program);
	tti_cuda_graph_free(clone);
	return tti_cuda_objects_share(graph, exec->owner);
}

static struct tti_cuda_node *find_clone(const struct tti_cuda_graph *graph,
					const struct tti_cuda_node *origin)
{
	for (size_t i = 0; i < graph->nodes.n; i++) {
		struct tti_cuda_node *node = graph->nodes.at[i];

		if (node->origin == origin)
			return node;
		node = node->child ? find_clone(node->child, origin) : NULL;
		if (node)
			return node;
	}
	return NULL;
}

/* *old is what the caller lets go of: the program and the job that are no longer needed. */
static int set_locked(struct tti_cuda_exec *exec, const struct tti_cuda_node *origin,
		      struct tti_cuda_shared_job **job, struct program **old)
{
	struct tti_cuda_node *node = find_clone(exec->graph, origin);
	struct tti_cuda_shared_job *before;
	struct program *program = NULL;
	int error;

	if (!node)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "executable graph %p was not made of a graph with node %p",
				     (void *)exec, (const void *)origin);
	if (!node->job || node->kind != (*job)->job.kind ||
	    !tti_cuda_job_is_like(&node->job->job, &(*job)->job))
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"a node of kind %d is given a job of kind %d, or memory of another kind: "
			"they must be alike",
			node->kind, (*job)->job.kind);
	before = node->job;
	node->job = *job;
	error = program_create_locked(exec->graph, &program);
	if (error) {
		node->job = before;
		return error;
	}
	*old = exec->program;
	exec->program = program;
	*job = before;
	return 0;
}

int tti_cuda_exec_set(struct tti_cuda_exec *exec, const struct tti_cuda_node *node,
		      const struct tti_cuda_job *job)
{
	struct tti_cuda_shared_job *shared;
	struct program *old = NULL;
	int error = check(exec, "a node of an executable graph is given another job");

	shared = error ? NULL : tti_cuda_shared_job_create(job);
	if (!shared) {
		tti_cuda_job_drop(job);
		return error ? error : TTI_CUDA_ENOMEM;
	}
	pthread_mutex_lock(&exec->lock);
	pthread_mutex_lock(&tti_cuda_graph_lock);
	error = set_locked(exec, node, &shared, &old);
	pthread_mutex_unlock(&tti_cuda_graph_lock);
	pthread_mutex_unlock(&exec->lock);
	program_let_go(old);
	tti_cuda_shared_job_let_go(shared);
	return error;
}
