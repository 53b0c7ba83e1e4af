/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/comm.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/thread.h"

#include <fcntl.h>

/* Making a communicator once its ranks can talk:
 *
 *     all-gather who is where and with which settings   → crowded or not, or EINVAL
 *     for each transport, until every pair is connected:
 *         open, all-gather cards, join, all-gather domains
 *     engine, watch
 *
 * All is decided from what was gathered, so all ranks decide the same. */

/* What every rank tells of itself. On the wire: fixed width. */
struct rank_info {
	uint32_t version;
	int32_t ncpus;                                /* that the rank may use at a time         */
	int32_t allowed;                              /* that it may run on: more, under a quota */
	uint64_t machine;                             /* of the boot id: whose cores they share  */
	uint64_t cpus[TTI_BITSET_WORDS(CPU_SETSIZE)]; /* allowed, which   */
	uint64_t transport, algo, slice, shm_slots, tcp_slots; /* settings */
};

static uint64_t hash_text(const char *text)
{
	return text ? tti_hash_bytes(text, strlen(text)) : 0;
}

/* The kernel's boot id; its absence (no /proc) makes every process its own machine. */
static uint64_t machine_hash(void)
{
	char id[64];
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, id, sizeof(id));
		close(fd);
	}
	if (got <= 0)
		return tti_hash_mix((uint64_t)getpid() + (uint64_t)tti_now_ns());
	return tti_hash_bytes(id, (size_t)got);
}

static const char *transport_names(const tutti_config *config)
{
	const char *set = tti_params()->transport;

	if (set && strcmp(set, "auto") != 0)
		return set;
	return config->transport ? config->transport : "auto";
}

static void describe_cpus(struct rank_info *info)
{
	cpu_set_t set;

	info->ncpus = tti_cpu_count();
	info->allowed = info->ncpus;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	info->allowed = CPU_COUNT(&set);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			tti_bit_set(info->cpus, cpu);
}

static void describe_self(struct rank_info *info, const char *transports, const char *algo)
{
	const struct tti_params *params = tti_params();

	*info = (struct rank_info){
		.version = TUTTI_VERSION,
		.machine = machine_hash(),
		.transport = hash_text(transports),
		.algo = hash_text(algo),
		.slice = params->slice,
		.shm_slots = tti_hash_combine(params->shm_slot, (uint64_t)params->shm_slots),
		.tcp_slots = tti_hash_combine(params->tcp_slot, (uint64_t)params->tcp_slots),
	};
	describe_cpus(info);
}

/* Ranks that would choose differently must not begin: the first difference. */
static tutti_status check_settings(const struct rank_info *info, int n)
{
	for (int rank = 1; rank < n; rank++) {
		const char *what = info[rank].version != info[0].version       ? "version of Tutti"
				   : info[rank].transport != info[0].transport ? "TUTTI_TRANSPORT"
				   : info[rank].algo != info[0].algo           ? "TUTTI_ALGO"
				   : info[rank].slice != info[0].slice         ? "TUTTI_SLICE"
				   : info[rank].shm_slots != info[0].shm_slots
					   ? "TUTTI_SHM_SLOT or TUTTI_SHM_SLOTS"
				   : info[rank].tcp_slots != info[0].tcp_slots
					   ? "TUTTI_TCP_SLOT or TUTTI_TCP_SLOTS"
					   : NULL;

		if (what)
			return tti_fail(TUTTI_EINVAL,
					"rank %d has another %s than rank 0: set it alike on all "
					"ranks",
					rank, what);
	}
	return TUTTI_OK;
}

/* Whether the ranks of one machine are more than the cores that they may use. Each may
 * be bound to cores of its own, so it is all of their cores together that count; where
 * a quota lets a rank use less than it may run on, its ranks share that quota. */
static bool is_crowded(const struct rank_info *info, int n, int of, int *nhere)
{
	uint64_t cpus[TTI_BITSET_WORDS(CPU_SETSIZE)] = { 0 };
	size_t ncpus;

	*nhere = 0;
	for (int rank = 0; rank < n; rank++) {
		if (info[rank].machine != info[of].machine)
			continue;
		++*nhere;
		for (size_t i = 0; i < TTI_BITSET_WORDS(CPU_SETSIZE); i++)
			cpus[i] |= info[rank].cpus[i];
	}
	ncpus = tti_bitset_count(cpus, CPU_SETSIZE);
	if (ncpus == 0 || info[of].ncpus < info[of].allowed)
		ncpus = (size_t)info[of].ncpus;
	return (size_t)*nhere > ncpus;
}

static void count_crowds(struct tti_comm *comm, const struct rank_info *info)
{
	int nhere;

	comm->crowded_here = is_crowded(info, comm->n, comm->rank, &nhere);
	comm->crowded_somewhere = comm->crowded_here;
	/* One machine for all is the usual case: the others see what we see. */
	for (int rank = 0; rank < comm->n && nhere < comm->n; rank++) {
		int nthere;

		if (info[rank].machine == info[comm->rank].machine ||
		    (rank > 0 && info[rank].machine == info[rank - 1].machine))
			continue;
		comm->crowded_somewhere |= is_crowded(info, comm->n, rank, &nthere);
	}
}

static tutti_status exchange_info(struct tti_comm *comm, const char *transports)
{
	struct rank_info *info = tti_calloc((size_t)comm->n, sizeof(*info));
	tutti_status st;

	if (!info)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", comm->n);
	describe_self(&info[comm->rank], transports, comm->algo);
	st = tti_boot_all_gather(comm->boot, info, sizeof(*info));
	if (st == TUTTI_OK)
		st = check_settings(info, comm->n);
	if (st == TUTTI_OK)
		count_crowds(comm, info);
	tti_free(info);
	return st;
}

/* -- Transports ------------------------------------------------------------ */

static struct tti_port_config port_config(const struct tti_comm *comm,
					  const struct tti_transport *transport)
{
	const struct tti_params *params = tti_params();
	const bool tcp = transport == &tti_transport_tcp;

	return (struct tti_port_config){
		.rank = comm->rank,
		.nranks = comm->n,
		.secret = tti_boot_secret(comm->boot),
		.host_id = params->host_id,
		.slot_bytes = tcp ? params->tcp_slot : params->shm_slot,
		.slots = (int)(tcp ? params->tcp_slots : params->shm_slots),
		.stop = &comm->stop,
		.timeout_ms = params->boot_timeout_ms,
	};
}

static tutti_status open_and_join(struct tti_comm *comm, const struct tti_transport *transport,
				  struct tti_card *cards, uint64_t *domains)
{
	const struct tti_port_config config = port_config(comm, transport);
	struct tti_port *port = NULL;

	TTI_TRY(transport->open(&config, &port, &cards[comm->rank]));
	comm->ports[comm->nports++] = port;
	TTI_TRY(tti_boot_all_gather(comm->boot, cards, sizeof(*cards)));
	TTI_TRY(transport->join(port, cards, &domains[comm->rank]));
	return tti_boot_all_gather(comm->boot, domains, sizeof(*domains));
}

/* How many groups the domains make; a rank without one is its own. */
static int count_groups(const uint64_t *domains, int n)
{
	int groups = 0;

	for (int rank = 0; rank < n; rank++) {
		int first = 0;

		while (domains[rank] != 0 && domains[first] != domains[rank])
			first++;
		groups += domains[rank] == 0 || first == rank;
		if (groups == 1 && rank == 0 && domains[0] != 0 &&
		    memcmp(domains, domains + 1, (size_t)(n - 1) * sizeof(*domains)) == 0)
			return 1;
	}
	return groups;
}

static void take_peers(struct tti_comm *comm, const uint64_t *domains)
{
	const uint64_t own = domains[comm->rank];
	const uint8_t index = (uint8_t)(comm->nports - 1);

	for (int peer = 0; peer < comm->n; peer++)
		if (comm->port_of[peer] == UINT8_MAX && own != 0 && domains[peer] == own)
			comm->port_of[peer] = index;
}

static tutti_status try_transport(struct tti_comm *comm, const struct tti_transport *transport,
				  bool *covers_all)
{
	const size_t n = (size_t)comm->n;
	struct tti_card *cards = tti_calloc(n, sizeof(*cards));
	uint64_t *domains = tti_calloc(n, sizeof(*domains));
	const int64_t begin = tti_now_ns();
	tutti_status st = TUTTI_ENOMEM;

	if (cards && domains)
		st = open_and_join(comm, transport, cards, domains);
	else
		st = tti_fail(TUTTI_ENOMEM, "cards of %d ranks: out of memory", comm->n);
	if (st == TUTTI_OK) {
		const int groups = count_groups(domains, comm->n);

		*covers_all = groups == 1;
		if (transport == &tti_transport_shm)
			comm->nhosts = groups;
		take_peers(comm, domains);
		tti_log(TTI_LOG_INFO, TTI_CORE, "%s: %d group%s of ranks, %.1f ms", transport->name,
			groups, groups == 1 ? "" : "s",
			(double)(tti_now_ns() - begin) / TTI_NS_PER_MS);
	}
	tti_free(cards);
	tti_free(domains);
	return st;
}

static void name_transports(struct tti_comm *comm)
{
	char *at = comm->transport;
	size_t room = sizeof(comm->transport);

	for (int i = 0; i < comm->nports; i++) {
		bool used = false;
		int len;

		for (int peer = 0; peer < comm->n; peer++)
			used |= comm->port_of[peer] == i && (peer != comm->rank || comm->n == 1);
		if (!used)
			continue;
		len = snprintf(at, room, "%s%s", at == comm->transport ? "" : "+",
			       comm->ports[i]->transport->name);
		if (len < 0 || (size_t)len >= room)
			return;
		at += len;
		room -= (size_t)len;
	}
}

static tutti_status open_self(struct tti_comm *comm)
{
	struct tti_port_config config = port_config(comm, &tti_transport_self);
	struct tti_card card;

	TTI_TRY(tti_transport_self.open(&config, &comm->ports[0], &card));
	comm->nports = 1;
	comm->port_of[comm->rank] = 0;
	return TUTTI_OK;
}

static tutti_status open_transports(struct tti_comm *comm, const char *names)
{
	const struct tti_transport *list[8];
	bool covers_all = comm->n == 1;
	int nlist;

	TTI_TRY(tti_transport_list(names, list, &nlist));
	comm->nhosts = comm->n;
	comm->port_of = tti_alloc((size_t)comm->n);
	if (!comm->port_of)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", comm->n);
	memset(comm->port_of, UINT8_MAX, (size_t)comm->n);
	TTI_TRY(open_self(comm));
	for (int i = 0; i < nlist && !covers_all; i++)
		if (list[i] != &tti_transport_self)
			TTI_TRY(try_transport(comm, list[i], &covers_all));
	for (int peer = 0; peer < comm->n; peer++)
		if (comm->port_of[peer] == UINT8_MAX)
			return tti_fail(TUTTI_EUNSUPPORTED,
					"no transport of \"%s\" connects ranks %d and %d: add tcp "
					"to TUTTI_TRANSPORT",
					names, comm->rank, peer);
	return TUTTI_OK;
}

static void measure_ports(struct tti_comm *comm)
{
	comm->slot_bytes = SIZE_MAX;
	comm->inline_bytes = SIZE_MAX;
	for (int i = 0; i < comm->nports; i++) {
		const struct tti_port *port = comm->ports[i];

		if (port->slot_bytes < comm->slot_bytes)
			comm->slot_bytes = port->slot_bytes;
		if (port->inline_bytes < comm->inline_bytes && comm->n > 1 && i > 0)
			comm->inline_bytes = port->inline_bytes;
	}
}

static tutti_status start_engine(struct tti_comm *comm)
{
	struct tti_engine_config config = {
		.rank = comm->rank,
		.n = comm->n,
		.nports = comm->nports,
		.port_of = comm->port_of,
		.crowded = comm->crowded_here,
		.spin_rounds = tti_params()->spin,
		.stop = &comm->stop,
		.events = { .self = comm, .on_wait = tti_stall_on_wait },
	};

	memcpy(config.ports, comm->ports, sizeof(config.ports));
	TTI_TRY(tti_engine_init(&comm->engine, &config));
	comm->has_engine = true;
	return TUTTI_OK;
}

static tutti_status start_watch(struct tti_comm *comm)
{
	const struct tti_watch_events events = {
		.self = comm,
		.on_lost = tti_stall_on_lost,
		.on_ask = tti_stall_on_ask,
		.on_answer = tti_stall_on_answer,
	};

	TTI_TRY(tti_watch_start(comm->boot, &events));
	comm->watching = true;
	return TUTTI_OK;
}

tutti_status tti_comm_setup(struct tti_comm *comm, struct tti_boot *boot,
			    const tutti_config *config)
{
	const char *names = transport_names(config);
	const int64_t begin = tti_now_ns();

	const char *algo = tti_params()->algo ? tti_params()->algo : config->algo;

	comm->boot = boot;
	if (algo && !(comm->algo = tti_strdup(algo)))
		return tti_fail(TUTTI_ENOMEM, "settings: out of memory");
	if (tti_fault("core.setup"))
		return tti_fail(TUTTI_EINTERNAL, "core.setup: injected fault");
	TTI_TRY(exchange_info(comm, names));
	TTI_TRY(open_transports(comm, names));
	measure_ports(comm);
	name_transports(comm);
	TTI_TRY(start_engine(comm));
	TTI_TRY(start_watch(comm));
	atomic_store_explicit(&comm->state, TTI_COMM_READY, memory_order_release);
	tti_log(TTI_LOG_INFO, TTI_CORE,
		"communicator %s%sof %d ranks over %s, %d host%s%s: %.1f ms after the bootstrap",
		comm->name, comm->name[0] ? " " : "", comm->n, comm->transport, comm->nhosts,
		comm->nhosts == 1 ? "" : "s", comm->crowded_here ? ", more ranks than cores" : "",
		(double)(tti_now_ns() - begin) / TTI_NS_PER_MS);
	return TUTTI_OK;
}
