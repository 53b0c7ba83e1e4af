/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/program.h"

#include <string.h>

#include "support/sanitizer.h"

const char *const step_names[STEPS] = { "calls",      "capture",    "replay", "drop", "window_make",
					"window_use", "window_end", "make",   "end" };

uint64_t program_draw(uint64_t *random, uint64_t below)
{
	return numbers_mix((*random)++) % below;
}

/* -- Settings -------------------------------------------------------------------------- */

static void draw_processes(struct setting *setting, uint64_t *random)
{
	const uint64_t how = program_draw(random, 3); /* threads, processes, both */
	int process = 0;

	for (int rank = 0; rank < setting->n; rank++) {
		if (rank > 0 && (how == 1 || (how == 2 && program_draw(random, 2))))
			process++;
		setting->process[rank] = process;
	}
	setting->nprocesses = process + 1;
	for (int i = 0; i < setting->nprocesses; i++) {
		setting->is_crowd[i] = program_draw(random, 5) == 0;
		setting->has_crowd |= setting->is_crowd[i];
	}
	setting->has_hosts = setting->nprocesses > 1 && program_draw(random, 4) == 0;
}

static void draw_variables(struct setting *setting, uint64_t *random)
{
	static const char *const no_peers[] = { "TUTTI_CUDAHOST_NO_PEER=0-1",
						"TUTTI_CUDAHOST_NO_PEER=0-1,0-2,0-3,1-2,1-3,2-3" };
	const uint64_t transport = program_draw(random, 6);
	const char *least = NULL;
	int n = 0;

	setting->has_windows = true;
	if (transport == 0)
		setting->variables[n++] = "TUTTI_TRANSPORT=self,tcp";
	if (transport == 1 && !setting->has_hosts) {
		setting->variables[n++] = "TUTTI_TRANSPORT=self,shm";
		setting->has_windows = false;
	}
	if (program_draw(random, 3) == 0) {
		setting->variables[n++] = "TUTTI_SHM_SLOT=4K";
		setting->variables[n++] = "TUTTI_TCP_SLOT=4K";
	}
	if (program_draw(random, 2))
		least = "TUTTI_REGISTERED_LEAST=1";
	if (setting->has_devices && program_draw(random, 3) == 0)
		setting->variables[n++] = no_peers[program_draw(random, 2)];
	if (setting->has_devices && program_draw(random, 3) == 0) {
		setting->variables[n++] = "TUTTI_CUDA_SHARE=ipc";
		/* No memory is lent to processes while kernels run: see tutti_register(). */
		if (setting->nprocesses > 1)
			least = "TUTTI_REGISTERED_LEAST=64G";
	}
	if (setting->has_devices && program_draw(random, 3) == 0)
		setting->variables[n++] = "TUTTI_CUDA_SLOT=16K";
	if (least)
		setting->variables[n++] = least;
}

static void draw_setting(struct setting *setting, uint64_t *random, bool has_devices)
{
	const int ngpus = 1 + (int)program_draw(random, 4);
	const bool all_have = program_draw(random, 2);

	setting->n = 2 + (int)program_draw(random, PROGRAM_RANKS - 1);
	setting->has_devices = has_devices;
	for (int rank = 0; rank < setting->n; rank++) {
		setting->device[rank] = (int)program_draw(random, (uint64_t)ngpus);
		if (!has_devices || (!all_have && program_draw(random, 3) == 0))
			setting->device[rank] = -1;
	}
	draw_processes(setting, random);
	draw_variables(setting, random);
}

/* -- Items ----------------------------------------------------------------------------- */

static size_t draw_count(uint64_t *random)
{
	switch (program_draw(random, 6)) {
	case 0:
		return program_draw(random, 2);
	case 1:
	case 2:
		return 2 + program_draw(random, 63);
	case 3:
	case 4:
		return program_draw(random, 3000);
	default:
		return program_draw(random, 300000);
	}
}

static void draw_call(struct call *out, uint64_t *random, bool is_captured)
{
	const tutti_collective coll =
		(tutti_collective)program_draw(random, TUTTI_COLLECTIVE_COUNT);
	const tutti_type type = (tutti_type)program_draw(random, TUTTI_TYPE_COUNT);
	const int nops = is_captured ? NUMBERS_REPRODUCIBLE + 1 : NUMBERS_OPS;

	*out = (struct call){
		.coll = is_captured && coll == TUTTI_HANDOFF ? TUTTI_ALL_REDUCE : coll,
		.type = type,
		.op = numbers_op_for(type, (int)program_draw(random, (uint64_t)nops)),
		.count = draw_count(random),
		.root = (int)program_draw(random, PROGRAM_RANKS),
		.in_place = program_draw(random, 2),
		.manner = CALL_QUEUED,
		.seed = program_draw(random, UINT64_MAX),
	};
	if (operation_of(out->coll)->uneven)
		out->spread = (enum call_spread)program_draw(random, CALL_SPREADS);
	while (call_bytes(out, PROGRAM_RANKS) > PROGRAM_BYTES)
		out->count /= 2;
}

/* At most one message for each pair, so that each rank may post them in any order. */
static void draw_exchange(struct item *item, uint64_t *random)
{
	bool has[PROGRAM_RANKS][PROGRAM_RANKS] = { 0 };

	item->seed = program_draw(random, UINT64_MAX);
	for (int i = 0; i < PROGRAM_MESSAGES; i++) {
		const int from = (int)program_draw(random, PROGRAM_RANKS);
		const int to = (int)program_draw(random, PROGRAM_RANKS);
		const size_t nbytes = draw_count(random) % (PROGRAM_BYTES / 20);

		if (has[from][to])
			continue;
		has[from][to] = true;
		item->message[item->nmessages++] = (struct message_of){ from, to, nbytes };
	}
}

static int draw_comm(const struct program *program, uint64_t *random, bool is_captured)
{
	int found[PROGRAM_COMMS], n = 0;

	for (int c = 0; c < PROGRAM_COMMS; c++) {
		bool fits = program->comm[c].exists;

		for (int rank = 0; rank < program->setting.n && is_captured; rank++)
			fits = fits && (program->comm[c].group[rank] < 0 ||
					program->setting.device[rank] >= 0);
		if (fits)
			found[n++] = c;
	}
	return n > 0 ? found[program_draw(random, (uint64_t)n)] : -1;
}

static bool is_own(const struct item *item)
{
	return !item->is_exchange && item->call.op >= NUMBERS_PREMUL &&
	       operation_of(item->call.coll)->reduces;
}

/* False: no communicator can have them. */
static bool draw_items(struct program *program, struct step *step, bool is_captured)
{
	uint64_t *random = &program->random;

	step->is_group = program_draw(random, 2);
	step->nitems =
		step->is_group || is_captured ? 1 + (int)program_draw(random, PROGRAM_ITEMS) : 1;
	if (is_captured && step->nitems > 3)
		step->nitems = 3;
	for (int i = 0; i < step->nitems; i++) {
		struct item *item = &step->item[i];

		item->comm = draw_comm(program, random, is_captured);
		if (item->comm < 0)
			return false;
		item->is_exchange = program_draw(random, 4) == 0;
		if (item->is_exchange)
			draw_exchange(item, random);
		else
			draw_call(&item->call, random, is_captured);
		step->is_awaited |= is_own(item);
	}
	if (!step->is_group && !is_captured && !program->setting.has_crowd &&
	    !step->item[0].is_exchange && program_draw(random, 8) == 0)
		step->item[0].call.manner = CALL_AS_PLAN;
	return true;
}

/* -- Communicators ------------------------------------------------------------------------ */

static int index_in(const int *list, int n, int value)
{
	for (int i = 0; i < n; i++)
		if (list[i] == value)
			return i;
	return -1;
}

/* Where a rank comes to, and by what the ranks there are ordered. */
static int group_of(const struct step *step, const struct model_comm *parent, int rank, int *order)
{
	const int group = parent->group[rank], place = parent->place[rank];
	const int at = index_in(step->ranks, step->nranks, place);

	*order = place;
	if (group < 0)
		return -1;
	if (step->how == BY_SHRINK)
		return at >= 0 ? -1 : group;
	if (step->how == BY_GROUP) {
		*order = at;
		return at >= 0 ? group : -1;
	}
	if (step->how == BY_DUP)
		return group;
	*order = step->key[rank] * PROGRAM_RANKS + place;
	return step->color[rank] < 0 ? -1 : group * 2 + step->color[rank];
}

static void make_model(struct program *program, const struct step *step)
{
	struct model_comm *child = &program->comm[step->child];
	int order[PROGRAM_RANKS];

	*child = (struct model_comm){ .exists = true };
	for (int rank = 0; rank < program->setting.n; rank++)
		child->group[rank] = group_of(step, &program->comm[step->comm], rank, &order[rank]);
	for (int rank = 0; rank < program->setting.n; rank++)
		for (int other = 0; other < program->setting.n; other++)
			if (child->group[other] == child->group[rank]) {
				child->n[rank]++;
				child->place[rank] += order[other] < order[rank];
			}
}

static bool draw_making(struct program *program, struct step *step)
{
	uint64_t *random = &program->random;
	const int first = (int)program_draw(random, PROGRAM_RANKS);

	step->child = -1;
	for (int c = 0; c < PROGRAM_COMMS; c++)
		if (!program->comm[c].exists)
			step->child = c;
	if (step->child < 0)
		return false;
	step->how = (enum making)program_draw(random, MAKINGS);
	step->is_blocking = program_draw(random, 2);
	for (int rank = 0; rank < PROGRAM_RANKS; rank++) {
		step->color[rank] = (int)program_draw(random, 5) % 3 - 1;
		step->key[rank] = (int)program_draw(random, 4);
	}
	step->nranks = 1 + (int)program_draw(random, step->how == BY_SHRINK ? 2 : PROGRAM_RANKS);
	for (int i = 0; i < step->nranks; i++)
		step->ranks[i] = (first + 5 * i) % PROGRAM_RANKS;
	make_model(program, step);
	return true;
}

/* -- Steps --------------------------------------------------------------------------------- */

static bool draw_capture(struct program *program, struct step *step)
{
	struct model_graph *graph = NULL;

	for (step->graph = 0; step->graph < PROGRAM_GRAPHS && !graph; step->graph++)
		if (!program->graph[step->graph].exists)
			graph = &program->graph[step->graph];
	step->graph--;
	if (!graph || !draw_items(program, step, true))
		return false;
	*graph = (struct model_graph){ .exists = true };
	for (int i = 0; i < step->nitems; i++) {
		graph->has_comm[step->item[i].comm] = true;
		graph->is_once |= !step->item[i].is_exchange && step->item[i].call.in_place;
	}
	return true;
}

static bool draw_graph(struct program *program, struct step *step)
{
	struct model_graph *graph;

	step->graph = (int)program_draw(&program->random, PROGRAM_GRAPHS);
	graph = &program->graph[step->graph];
	step->times = graph->is_once ? 1 : 1 + (int)program_draw(&program->random, 3);
	if (!graph->exists)
		return false;
	graph->exists = step->kind == STEP_REPLAY;
	return true;
}

static bool draw_window(struct program *program, struct step *step)
{
	struct model_comm *comm;

	step->comm = draw_comm(program, &program->random, false);
	comm = &program->comm[step->comm];
	step->by = (int)program_draw(&program->random, PROGRAM_RANKS);
	step->nbytes = program_draw(&program->random, 3) == 0
			       ? program_draw(&program->random, WINDOW_BYTES)
			       : program_draw(&program->random, 100);
	step->seed = program_draw(&program->random, UINT64_MAX);
	if (program->setting.has_crowd || !program->setting.has_windows ||
	    comm->has_window != (step->kind != STEP_WINDOW_MAKE))
		return false;
	comm->has_window = step->kind != STEP_WINDOW_END;
	return true;
}

/* All but the first communicator may end; graphs on it do. */
static bool draw_end(struct program *program, struct step *step)
{
	step->comm = draw_comm(program, &program->random, false);
	step->is_finalized = !program->setting.has_crowd && program_draw(&program->random, 2);
	if (step->comm == 0)
		return false;
	program->comm[step->comm].exists = false;
	for (int g = 0; g < PROGRAM_GRAPHS; g++)
		program->graph[g].exists &= !program->graph[g].has_comm[step->comm];
	return true;
}

static bool draw_step(struct program *program, struct step *step)
{
	static const int shares[STEPS] = { 60, 6, 12, 2, 3, 9, 1, 4, 3 };
	int at = (int)program_draw(&program->random, 100);

	memset(step, 0, sizeof(*step));
	while (at >= shares[step->kind])
		at -= shares[step->kind++];
	if (step->kind == STEP_CALLS)
		return draw_items(program, step, false);
	if (step->kind == STEP_CAPTURE)
		return program->setting.has_devices && !program->setting.has_crowd &&
		       draw_capture(program, step);
	if (step->kind == STEP_REPLAY || step->kind == STEP_DROP)
		return draw_graph(program, step);
	if (step->kind == STEP_MAKE)
		return draw_making(program, step);
	if (step->kind == STEP_END)
		return draw_end(program, step);
	return draw_window(program, step);
}

void program_init(struct program *program, uint64_t seed, bool has_devices)
{
	memset(program, 0, sizeof(*program));
	program->random = numbers_mix(seed);
	draw_setting(&program->setting, &program->random, has_devices);
	program->comm[0].exists = true;
	for (int rank = 0; rank < program->setting.n; rank++) {
		program->comm[0].n[rank] = program->setting.n;
		program->comm[0].place[rank] = rank;
	}
}

void program_next(struct program *program, struct step *out)
{
	while (!draw_step(program, out))
		continue;
}
