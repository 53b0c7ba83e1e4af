/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_trial.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "transport/shm/shm.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"
#include "util/thread.h"

/* Copies by the kernel are used where they are faster by a tenth: a smaller difference may be gone
 * in the next run. In percent. */
#define MARGIN UINT64_C(110)

/* -- Trying ---------------------------------------------------------------- */

static uint32_t state_of(const struct tti_shm_port *port, int index)
{
	return atomic_load_explicit(&tti_shm_seg_trial(&port->seg, index)->state,
				    memory_order_acquire);
}

/* The member that is `distance` places behind that one, in a circle. */
static int member_behind(const struct tti_shm_port *port, int index, int distance)
{
	while (distance > 0) {
		index = (index + 1) % port->n;
		distance -= state_of(port, index) != TTI_SHM_STRANGER;
	}
	return index;
}

static int count_members(const struct tti_shm_port *port)
{
	int n = 0;

	for (int index = 0; index < port->n; index++)
		n += state_of(port, index) != TTI_SHM_STRANGER;
	return n;
}

void tti_shm_trial_begin(struct tti_shm_port *port, const bool *is_member)
{
	for (int index = 0; index < port->n; index++)
		if (is_member[index] || index == port->self)
			atomic_store_explicit(&tti_shm_seg_trial(&port->seg, index)->state,
					      TTI_SHM_MEMBER, memory_order_release);
}

/* A copy is refused because of a process (what it may do, which processes may access it), or of a
 * set of processes (a namespace, a tree). With distances that are powers of two each rank is tried
 * from both sides, and of two sets of neighbours each has a rank that tries one of the other. */
void tti_shm_trial_run(struct tti_shm_port *port)
{
	struct tti_shm_trial *trial = tti_shm_seg_trial(&port->seg, port->self);
	const int n = count_members(port);
	int error = 0;

	if (port->one_process || port->config.reach == TTI_WISH_SLOTS)
		return;
	for (int distance = 1; distance < n && !error; distance *= 2) {
		const int index = member_behind(port, port->self, distance);

		error = tti_shm_copy_try(port, index);
		trial->peer = port->candidate[index];
	}
	trial->error = error;
	atomic_store_explicit(&trial->cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&trial->state, error ? TTI_SHM_REFUSED : TTI_SHM_ALLOWED,
			      memory_order_release);
}

/* -- Deciding -------------------------------------------------------------- */

/* Whether that rank is on another core than this one; threads of a core share its caches. */
static bool is_elsewhere(const struct tti_shm_trial *trial)
{
	const int own = sched_getcpu();
	const int cpu = atomic_load_explicit(&trial->cpu, memory_order_relaxed);

	return cpu != own && tti_cpu_core(cpu) != tti_cpu_core(own);
}

bool tti_shm_trial_measures(const struct tti_shm_port *port, int index)
{
	const int last = member_behind(port, port->self, count_members(port) - 1);

	if (port->config.reach != TTI_WISH_AUTO || port->config.measured ||
	    atomic_load(&tti_shm_seg_trial(&port->seg, port->self)->met) ||
	    state_of(port, port->self) != TTI_SHM_ALLOWED ||
	    state_of(port, index) != TTI_SHM_ALLOWED)
		return false;
	return index == last || is_elsewhere(tti_shm_seg_trial(&port->seg, index));
}

/* Find the first rank that was refused; false: there is none. */
static bool find_refusal(const struct tti_shm_port *port, struct tti_shm_agreement *out)
{
	for (int index = 0; index < port->n; index++) {
		const struct tti_shm_trial *trial = tti_shm_seg_trial(&port->seg, index);

		if (state_of(port, index) != TTI_SHM_REFUSED)
			continue;
		out->rank = port->candidate[index];
		out->peer = trial->peer;
		out->error = trial->error;
		return true;
	}
	return false;
}

static enum tti_shm_why decide(const struct tti_shm_port *port, struct tti_shm_agreement *out)
{
	const struct tti_reach_figures *figures = &out->figures;

	if (port->config.reach == TTI_WISH_SLOTS)
		return TTI_SHM_BY_SETTING;
	if (port->one_process && port->config.reach == TTI_WISH_AUTO)
		return TTI_SHM_BY_THREADS;
	if (find_refusal(port, out))
		return TTI_SHM_BY_REFUSAL;
	out->plain = TTI_REACH_COPIED;
	if (port->config.reach == TTI_WISH_COPIED)
		return TTI_SHM_BY_SETTING;
	if (figures->copied_512k * UINT64_C(100) <= figures->slots_512k * MARGIN)
		out->plain = TTI_REACH_SLOTS;
	return figures->call_ns ? TTI_SHM_BY_FIGURES : TTI_SHM_UNMEASURED;
}

void tti_shm_trial_decide(struct tti_shm_port *port)
{
	struct tti_shm_agreement *agreement = tti_shm_seg_agreement(&port->seg);

	agreement->wish = port->config.reach;
	agreement->plain = TTI_REACH_SLOTS;
	if (port->config.measured)
		agreement->figures = *port->config.measured;
	atomic_store_explicit(&agreement->why, decide(port, agreement), memory_order_release);
}

/* -- Saying ---------------------------------------------------------------- */

/* Why a rank cannot copy from another, and what would change that. */
static void explain_refusal(const struct tti_shm_agreement *agreement, char *buf, size_t size)
{
	const int scope = agreement->error == EPERM ? tti_shm_ptrace_scope() : -1;
	const char *remedy = "";
	char yama[256];

	snprintf(yama, sizeof(yama), ", as kernel.yama.ptrace_scope is %d: %s%s", scope,
		 scope < 3 ? "`sysctl kernel.yama.ptrace_scope=0` lets processes of one user do it"
			   : "that forbids it to all until the next boot",
		 scope == 1 ? ", TUTTI_PTRACER those that one process started" : "");
	if (agreement->error == EPERM && scope > 0)
		remedy = yama;
	else if (agreement->error == EPERM)
		remedy = ": a container's filter of system calls, or a process that hides its "
			 "memory, forbids it (docker run --cap-add=SYS_PTRACE allows it)";
	else if (agreement->error == ENOSYS)
		remedy = ": the kernel is built without CONFIG_CROSS_MEMORY_ATTACH, or a filter "
			 "hides the call";
	else if (agreement->error == ESRCH)
		remedy = ": its process id means nothing there: run both in one pid namespace";
	snprintf(buf, size, "rank %d may not copy from the process of rank %d: %s%s",
		 agreement->rank, agreement->peer, strerror(agreement->error), remedy);
}

static void explain(const struct tti_shm_port *port, const struct tti_shm_agreement *agreement,
		    char *buf, size_t size)
{
	const char *by = port->config.measured ? port->config.measured_by : NULL;
	const struct tti_reach_figures *figures = &agreement->figures;

	switch ((enum tti_shm_why)agreement->why) {
	case TTI_SHM_BY_SETTING:
		snprintf(buf, size, "TUTTI_REACH asks for it");
		return;
	case TTI_SHM_BY_THREADS:
		snprintf(buf, size,
			 "they are threads of one process, what they register is used in place");
		return;
	case TTI_SHM_BY_REFUSAL:
		explain_refusal(agreement, buf, size);
		return;
	case TTI_SHM_BY_FIGURES:
		snprintf(buf, size,
			 "of 512 KiB the kernel copies %.1f GB/s and slots carry %.1f, of 64 KiB "
			 "%.1f and %.1f, a call of the kernel takes %u ns%s%s",
			 figures->copied_512k / 1e3, figures->slots_512k / 1e3,
			 figures->copied_64k / 1e3, figures->slots_64k / 1e3, figures->call_ns,
			 by ? ", as measured by " : "", by ? by : "");
		return;
	case TTI_SHM_UNMEASURED:
		snprintf(buf, size,
			 "the kernel may copy, but how fast that is could not be measured in %d "
			 "ms, as others use the cores (TUTTI_REACH=copied does without)",
			 TTI_SHM_MEASURE_MS);
		return;
	}
	snprintf(buf, size, "%s", "");
}

/* Log which ranks share memory, how, and why: by the first rank of each host. */
static void report(const struct tti_shm_port *port, const char *why)
{
	static const char *const ways[] = {
		[TTI_REACH_SLOTS] = "goes through slots",
		[TTI_REACH_MAPPED] = "is used in place",
		[TTI_REACH_COPIED] = "is copied by the kernel",
	};
	int *members = NULL;
	char ranks[128];
	size_t n = 0;

	if (tti_log_enabled(TTI_LOG_INFO, TTI_SHM))
		members = tti_calloc((size_t)port->n, sizeof(*members));
	if (!members)
		return;
	for (int index = 0; index < port->n; index++)
		if (state_of(port, index) != TTI_SHM_STRANGER)
			members[n++] = port->candidate[index];
	tti_format_ranks(ranks, sizeof(ranks), members, n);
	if (members[0] == port->base.rank)
		tti_log(TTI_LOG_INFO, TTI_SHM,
			"ranks %s: memory of tutti_mem_alloc() is mapped, ordinary memory %s: %s",
			ranks, ways[port->base.plain], why);
	tti_free(members);
}

tutti_status tti_shm_settle(struct tti_port *base)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	const struct tti_shm_agreement *agreement;
	char why[512];

	if (!port->seg.base)
		return TUTTI_OK;
	agreement = tti_shm_seg_agreement(&port->seg);
	if (!atomic_load_explicit(&agreement->why, memory_order_acquire) ||
	    agreement->plain > TTI_REACH_COPIED)
		return tti_fail(TUTTI_EPROTO,
				"shared memory, rank %d: how ordinary memory is reached was not "
				"agreed on",
				base->rank);
	explain(port, agreement, why, sizeof(why));
	if (agreement->wish == TTI_WISH_COPIED && agreement->plain != TTI_REACH_COPIED)
		return tti_fail(TUTTI_EUNSUPPORTED, "TUTTI_REACH=copied cannot be done: %s", why);
	base->plain = (enum tti_reach)agreement->plain;
	base->figures = agreement->figures;
	report(port, why);
	return TUTTI_OK;
}
