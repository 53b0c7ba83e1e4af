/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/setup.h"

#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "coll/files/algo_files.h"
#include "core/comm.h"
#include "core/device/device.h"
#include "core/device/lend.h"
#include "core/family/child.h"
#include "core/init/agree.h"
#include "core/init/nics.h"
#include "core/init/oversubscription.h"
#include "core/init/peer_info.h"
#include "core/init/tuning.h"
#include "core/prepare/memory.h"
#include "core/stall.h"
#include "core/tend.h"
#include "plan/tune/tune.h"
#include "transport/registry.h"
#include "util/caches.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/strbuf.h"

/* Making a communicator once its ranks can talk:
 *
 *     peer info: who is where, with which settings      → oversubscribed or not, or an error
 *     for each transport, until every pair is connected:
 *         open, all-gather cards, join, all-gather domains
 *     topologies to rank 0, its plan to all             → the shape of programs
 *     engine, watch
 *
 * Ranks decide only by what all have gathered, so all decide the same. */

/* While a communicator is made. */
struct setup {
	struct tti_comm *comm;
	struct tti_peers peers;
	double ranks_a_core;                      /* where they are most */
	const struct tti_reach_figures *measured; /* before; NULL: not yet        */
	const char *measured_by;                  /* as tti_port_config has it    */
	char phases[256]; /* "bootstrap 3.1 ms, peer info 0.2 ms"          */
	int64_t last_ns;  /* when the last phase ended                      */
};

/* A phase is over. */
static void mark(struct setup *setup, const char *name, int64_t now_ns)
{
	const size_t len = strlen(setup->phases);

	(void)snprintf(setup->phases + len, sizeof(setup->phases) - len, "%s%s %.1f ms",
		       len ? ", " : "", name, (double)(now_ns - setup->last_ns) / TTI_NS_PER_MS);
	setup->last_ns = now_ns;
}

static const char *transport_names(const tutti_config *config)
{
	const char *set = tti_params()->transport;

	if (set && strcmp(set, "auto") != 0)
		return set;
	return config->transport ? config->transport : "auto";
}

/* Whether machines have more ranks than cores that these may use, and the most ranks per core. */
static tutti_status find_oversubscription(struct setup *setup)
{
	struct tti_comm *comm = setup->comm;
	struct tti_oversubscription *load = tti_calloc((size_t)comm->n, sizeof(*load));
	tutti_status st = load ? tti_oversubscription_find(&setup->peers, load)
			       : tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", comm->n);

	for (int rank = 0; rank < comm->n && st == TUTTI_OK; rank++) {
		const double times = (double)load[rank].nranks / load[rank].ncores;

		comm->oversubscribed_here |= times > 1 && rank == comm->rank;
		comm->oversubscribed_somewhere |= times > 1;
		setup->ranks_a_core = times > setup->ranks_a_core ? times : setup->ranks_a_core;
	}
	tti_free(load);
	return st;
}

/* -- Transports ------------------------------------------------------------ */

struct tti_port_config tti_port_config_of(const struct tti_comm *comm,
					  const struct tti_transport *transport)
{
	const struct tti_param_values *params = tti_params();
	const bool tcp = transport == &tti_transport_tcp;

	return (struct tti_port_config){
		.rank = comm->rank,
		.nranks = comm->n,
		.secret = tti_boot_secret(comm->boot),
		.host_id = params->host_id,
		.slot_bytes = tcp ? params->tcp_slot : params->shm_slot,
		.slots = (int)(tcp ? params->tcp_slots : params->shm_slots),
		.heap_bytes = params->shm_heap,
		.reach = (enum tti_reach_wish)params->reach,
		.ptracer = params->ptracer,
		.encrypt = comm->encrypt,
		.traffic_class = comm->traffic_class,
		.stop = &comm->stop,
		.timeout_ms = comm->boot_timeout.ms,
	};
}

/* In place of the domain of a rank that could not join: for its own reason, or because of another
 * rank. */
#define NOT_ABLE UINT64_MAX
#define NOT_LET  (UINT64_MAX - 1)

/* A rank that meets a dead rank while it joins fails, and so do ranks that wait for it. Only the
 * bootstrap knows which rank died. So all ranks come here, also those that failed, and hear which
 * one; if none died, they are told which one could not join. */
static tutti_status gather_domains(struct tti_comm *comm, tutti_status joined, uint64_t *domains)
{
	char why[TTI_FAILURE_TEXT], name[TTI_BOOT_NAME];

	if (joined != TUTTI_OK) {
		(void)snprintf(why, sizeof(why), "%s", tti_error_text());
		domains[comm->rank] = joined == TUTTI_EPEER ? NOT_LET : NOT_ABLE;
	}
	TTI_TRY(tti_boot_all_gather(comm->boot, domains, sizeof(*domains)));
	for (int rank = 0; rank < comm->n && domains[comm->rank] != NOT_ABLE; rank++)
		if (domains[rank] == NOT_ABLE)
			return tti_fail(TUTTI_EPEER,
					"%s could not join the others: its own error says why",
					tti_boot_name(comm->boot, rank, name));
	for (int rank = 0; rank < comm->n && joined == TUTTI_OK; rank++)
		if (domains[rank] == NOT_LET)
			return tti_fail(TUTTI_EPEER,
					"%s and another rank could not join each other: its own "
					"error says why",
					tti_boot_name(comm->boot, rank, name));
	return joined == TUTTI_OK ? TUTTI_OK : tti_fail_quiet(joined, "%s", why);
}

static tutti_status open_and_join(const struct setup *setup, const struct tti_transport *transport,
				  struct tti_card *cards, uint64_t *domains)
{
	struct tti_comm *comm = setup->comm;
	struct tti_port_config config = tti_port_config_of(comm, transport);
	struct tti_port *port = NULL;

	config.measured = setup->measured;
	config.measured_by = setup->measured_by;
	TTI_TRY(transport->open(&config, &port, &cards[comm->rank]));
	comm->ports[comm->nports++] = port;
	TTI_TRY(tti_boot_all_gather(comm->boot, cards, sizeof(*cards)));
	TTI_TRY(gather_domains(comm, transport->join(port, cards, &domains[comm->rank]), domains));
	return transport->settle ? transport->settle(port) : TUTTI_OK;
}

/* The number of groups that the domains make, and the lowest rank of each rank's group. */
static tutti_status find_groups(const uint64_t *domains, int n, int *first, int *ngroups)
{
	TTI_TRY(tti_peers_group(domains, n, first));
	*ngroups = 0;
	for (int rank = 0; rank < n; rank++)
		*ngroups += first[rank] == rank;
	return TUTTI_OK;
}

static void take_peers(struct tti_comm *comm, const uint64_t *domains)
{
	const uint64_t own = domains[comm->rank];
	const uint8_t index = (uint8_t)(comm->nports - 1);

	for (int peer = 0; peer < comm->n; peer++)
		if (comm->port_of[peer] == UINT8_MAX && own != 0 && domains[peer] == own)
			comm->port_of[peer] = index;
}

/* Domains of shared memory are hosts. */
static tutti_status take_domains(struct setup *setup, const struct tti_transport *transport,
				 const uint64_t *domains, int *ngroups)
{
	const size_t n = (size_t)setup->comm->n;
	int *first = tti_calloc(n, sizeof(*first));
	tutti_status st = first ? find_groups(domains, (int)n, first, ngroups)
				: tti_fail(TUTTI_ENOMEM, "%zu ranks: out of memory", n);

	if (st == TUTTI_OK && transport == &tti_transport_shm) {
		setup->comm->nhosts = *ngroups;
		memcpy(setup->comm->host_of, first, n * sizeof(*first));
	}
	tti_free(first);
	return st;
}

static tutti_status try_transport(struct setup *setup, const struct tti_transport *transport,
				  bool *covers_all)
{
	struct tti_comm *comm = setup->comm;
	const size_t n = (size_t)comm->n;
	struct tti_card *cards = tti_calloc(n, sizeof(*cards));
	uint64_t *domains = tti_calloc(n, sizeof(*domains));
	const int64_t begin = tti_now_ns();
	int ngroups = 0;
	tutti_status st = TUTTI_ENOMEM;

	if (cards && domains)
		st = open_and_join(setup, transport, cards, domains);
	else
		st = tti_fail(TUTTI_ENOMEM, "cards of %d ranks: out of memory", comm->n);
	if (st == TUTTI_OK)
		st = take_domains(setup, transport, domains, &ngroups);
	if (st == TUTTI_OK) {
		*covers_all = ngroups == 1;
		take_peers(comm, domains);
		tti_log(TTI_LOG_INFO, TTI_CORE, "%s: %d group%s of ranks, %.1f ms", transport->name,
			ngroups, ngroups == 1 ? "" : "s",
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
	struct tti_port_config config = tti_port_config_of(comm, &tti_transport_self);
	struct tti_card card;

	TTI_TRY(tti_transport_self.open(&config, &comm->ports[0], &card));
	comm->nports = 1;
	comm->port_of[comm->rank] = 0;
	return TUTTI_OK;
}

static tutti_status open_transports(struct setup *setup, const char *names)
{
	struct tti_comm *comm = setup->comm;
	const struct tti_transport *list[8];
	bool covers_all = comm->n == 1;
	int nlist;

	TTI_TRY(tti_registry_list(names, list, &nlist));
	comm->nhosts = comm->n;
	comm->port_of = tti_alloc((size_t)comm->n);
	comm->host_of = tti_calloc((size_t)comm->n, sizeof(*comm->host_of));
	if (!comm->port_of || !comm->host_of)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", comm->n);
	memset(comm->port_of, UINT8_MAX, (size_t)comm->n);
	for (int rank = 0; rank < comm->n; rank++)
		comm->host_of[rank] = rank;
	TTI_TRY(open_self(comm));
	for (int i = 0; i < nlist; i++)
		comm->may_tcp |= list[i] == &tti_transport_tcp;
	for (int i = 0; i < nlist && !covers_all; i++)
		if (list[i] != &tti_transport_self)
			TTI_TRY(try_transport(setup, list[i], &covers_all));
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
	for (int i = 0; i < comm->nports; i++) {
		const struct tti_port *port = comm->ports[i];

		if (port->figures.call_ns)
			comm->figures = port->figures;
		if (port->slot_bytes < comm->slot_bytes)
			comm->slot_bytes = port->slot_bytes;
	}
	comm->host_slot_bytes = comm->slot_bytes;
	tti_devices_settle(comm);
}

/* One rank's part of what the ranks of this host may keep in caches. */
static size_t cache_bytes(const struct tti_comm *comm)
{
	int here = 0;

	for (int rank = 0; rank < comm->n; rank++)
		here += comm->host_of[rank] == comm->host_of[comm->rank];
	return tti_cache_bytes(here) / (size_t)here;
}

static tutti_status start_engine(struct tti_comm *comm)
{
	struct tti_engine_config config = {
		.rank = comm->rank,
		.n = comm->n,
		.nports = comm->nports,
		.port_of = comm->port_of,
		.oversubscribed = comm->oversubscribed_here,
		.cuts = !comm->oversubscribed_somewhere,
		.cache_bytes = cache_bytes(comm),
		.spin_rounds = tti_params()->spin,
		.stop = &comm->stop,
		.events = { .self = comm, .on_wait = tti_stall_on_wait },
	};

	memcpy(config.ports, comm->ports, sizeof(config.ports));
	TTI_TRY(tti_engine_init(&comm->engine, &config));
	comm->has_engine = true;
	tti_memory_init(comm);
	return TUTTI_OK;
}

static tutti_status start_watch(struct tti_comm *comm)
{
	const struct tti_watch_events events = {
		.self = comm,
		.on_lost = tti_stall_on_lost,
		.on_ask = tti_stall_on_ask,
		.on_answer = tti_stall_on_answer,
		.on_tick = tti_tend_on_tick,
	};

	TTI_TRY(tti_watch_start(comm->boot, &events));
	comm->watching = true;
	return TUTTI_OK;
}

/* -- Plan --------------------------------------------------------------------- */

/* Ports that can choose begin with the NICs that the plan gave to this rank. */
static void prefer_nics(const struct tti_comm *comm)
{
	const struct tti_nic_names none = { .n = 0 };
	const struct tti_nic_names *nics = comm->nics ? comm->nics : &none;
	const char *names[TTI_HOST_NETS];

	for (int i = 0; i < nics->n; i++)
		names[i] = nics->name[i];
	for (int i = 0; i < comm->nports && nics->n > 0; i++) {
		struct tti_port *port = comm->ports[i];

		if (!port->transport->prefer)
			continue;
		port->transport->prefer(port, names, nics->n);
		tti_log(TTI_LOG_INFO, TTI_PLAN, "rank %d begins with %s of %d NICs", comm->rank,
			names[0], nics->n);
	}
}

/* Data to a neighbour in a channel of the plan goes by the channel's NICs. */
static void assign_nics(const struct tti_comm *comm)
{
	for (int i = 0; i < comm->nports; i++)
		tti_nics_assign(&comm->wires, comm->ports[i], comm->port_of, (uint8_t)i);
}

static void say_why_no_plan(const struct tti_comm *comm)
{
	const char *why = comm->n > 1 ? "one host with one NUMA node" : "one rank";
	const char *dump = tti_params()->plan_dump_file;

	if (dump)
		tti_log(TTI_LOG_WARN, TTI_PLAN,
			"TUTTI_PLAN_DUMP_FILE=%s is not written: the ranks have no plan, as %s "
			"leaves nothing to choose",
			dump, why);
	else
		tti_log(TTI_LOG_INFO, TTI_PLAN,
			"%s: nothing to choose, so nothing is detected or planned", why);
}

static tutti_status agree_on_plan(struct setup *setup)
{
	struct tti_comm *comm = setup->comm;
	struct tti_agreed agreed;
	int64_t topology_ns = 0;

	if (!tti_needs_plan(&setup->peers, comm->nhosts)) {
		if (comm->rank == 0)
			say_why_no_plan(comm);
		return tti_dump_topology(&setup->peers);
	}
	TTI_TRY(tti_agree_on_plan(&setup->peers, comm->host_of, comm->nhosts, &agreed,
				  &topology_ns));
	comm->plan = agreed.plan;
	comm->shape = agreed.shape;
	comm->wires = agreed.wires;
	comm->wiring = agreed.wiring;
	TTI_TRY(tti_nics_copy(&agreed.nics, &comm->nics));
	prefer_nics(comm);
	assign_nics(comm);
	mark(setup, "topology", topology_ns);
	mark(setup, "plan", tti_now_ns());
	return TUTTI_OK;
}

/* A file is for one number of ranks. If no file is for this number, that may be a mistake. */
static void report_algo_files(const struct tti_algo_files *files, int n)
{
	size_t nused = 0;

	for (size_t i = 0; files && i < files->files.n; i++) {
		const struct tti_algo_file *file = files->files.at[i];

		nused += file->n == n;
		tti_log(TTI_LOG_INFO, TTI_COLL, "%s: %s for %s of %d ranks, %zu to %zu bytes%s",
			file->path, file->algo.name, tutti_collective_name(file->algo.coll),
			file->n, file->min_bytes, file->max_bytes,
			file->n == n ? "" : ": not for this communicator");
	}
	if (files && files->files.n && !nused)
		tti_log(TTI_LOG_WARN, TTI_COLL,
			"no file of TUTTI_ALGO_FILE is for %d ranks, %s is for %d: none is used", n,
			files->files.at[0]->path, files->files.at[0]->n);
}

static tutti_status tune(struct setup *setup)
{
	struct tti_comm *comm = setup->comm;
	struct tti_tune_table *table = setup->peers.tune;
	struct tti_algo_files *files = setup->peers.algo_files;

	setup->peers.tune = NULL;
	setup->peers.algo_files = NULL;
	report_algo_files(files, comm->n);
	return tti_tuning_of(table, files, comm->plan, setup->ranks_a_core, &comm->tuning);
}

/* -- All of it ------------------------------------------------------------------- */

static void report(const struct setup *setup)
{
	const struct tti_comm *comm = setup->comm;
	struct tti_strbuf text = { 0 };

	tti_log(TTI_LOG_INFO, TTI_CORE, "communicator %s%sof %d ranks over %s, %d host%s%s",
		comm->name, comm->name[0] ? " " : "", comm->n, comm->transport, comm->nhosts,
		comm->nhosts == 1 ? "" : "s",
		comm->oversubscribed_here ? ", more ranks than cores" : "");
	if (comm->rank != 0 || !tti_log_enabled(TTI_LOG_INFO, TTI_CORE))
		return;
	tti_log(TTI_LOG_INFO, TTI_CORE, "init: %s", setup->phases);
	if (comm->nhosts > 1)
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"ranks of different hosts share no memory: all data between "
			"them goes by messages");
	if (comm->plan)
		tti_agreed_sum_up(&(struct tti_agreed){ .plan = comm->plan, .shape = comm->shape },
				  &text);
	if (text.len)
		tti_log(TTI_LOG_INFO, TTI_PLAN, "plan: %s", text.text);
	tti_strbuf_release(&text);
}

/* The same on all ranks, as they have the same tune file, or the same root. */
static void take_figures(struct setup *setup, const struct tti_reach_figures *figures,
			 const char *by)
{
	if (!figures->call_ns)
		return;
	setup->measured = figures;
	setup->measured_by = by;
}

/* All is found out. */
static tutti_status begin_first(struct setup *setup, const char *names)
{
	struct tti_comm *comm = setup->comm;
	const struct tti_peer_settings settings = { names, comm->algo, comm->reproducible,
						    comm->encrypt, comm->device_wish };

	TTI_TRY(tti_peers_exchange(comm->boot, &settings, &setup->peers));
	TTI_TRY(find_oversubscription(setup));
	TTI_TRY(tti_devices_begin(comm, setup->peers.info));
	TTI_TRY(tti_peers_digest(&setup->peers));
	mark(setup, "peer info", tti_now_ns());
	if (setup->peers.tune)
		take_figures(setup, &setup->peers.tune->figures, "`tutti tune`");
	TTI_TRY(open_transports(setup, names));
	mark(setup, "transports", tti_now_ns());
	TTI_TRY(agree_on_plan(setup));
	TTI_TRY(tune(setup));
	tti_peers_release(&setup->peers);
	return TUTTI_OK;
}

/* Only its own transports are new. */
static tutti_status begin_child(struct setup *setup, const char *names)
{
	struct tti_comm *comm = setup->comm;

	take_figures(setup, &comm->root->figures, "the first communicator of the family");
	TTI_TRY(open_transports(setup, names));
	mark(setup, "transports", tti_now_ns());
	if (tti_fault("core.child"))
		return tti_fail(TUTTI_EPEER, "core.child: injected fault");
	TTI_TRY(tti_child_derive(comm));
	TTI_TRY(tti_devices_derive(comm));
	prefer_nics(comm);
	assign_nics(comm);
	return TUTTI_OK;
}

static tutti_status run(struct setup *setup, const char *names, bool is_child)
{
	struct tti_comm *comm = setup->comm;

	mark(setup, "bootstrap", tti_now_ns());
	TTI_TRY(is_child ? begin_child(setup, names) : begin_first(setup, names));
	measure_ports(comm);
	name_transports(comm);
	TTI_TRY(start_engine(comm));
	/* Whatever has failed on one rank alone until here fails on all. */
	TTI_TRY(tti_boot_all_gather(comm->boot, comm, 0));
	TTI_TRY(start_watch(comm));
	TTI_TRY(tti_lending_begin(comm));
	tti_tend_begin(comm);
	mark(setup, "engine", tti_now_ns());
	atomic_store_explicit(&comm->state, TTI_COMM_READY, memory_order_release);
	report(setup);
	return TUTTI_OK;
}

tutti_status tti_comm_setup(struct tti_comm *comm, struct tti_boot *boot,
			    const tutti_config *config, const struct tti_maker *maker,
			    int64_t began_ns)
{
	const struct tti_comm *parent = maker ? maker->parent : NULL;
	const char *algo = tti_params()->algo ? tti_params()->algo : config->algo;
	const char *names = transport_names(config);
	struct setup setup = { .comm = comm, .last_ns = began_ns };
	tutti_status st;

	comm->boot = boot;
	comm->algo = algo ? tti_strdup(algo) : NULL;
	atomic_store(&comm->call_algo, comm->algo);
	comm->transports = tti_strdup(names);
	if ((algo && !comm->algo) || !comm->transports)
		return tti_fail(TUTTI_ENOMEM, "settings: out of memory");
	if (parent)
		TTI_TRY(tti_child_descend(comm, parent, maker->ranks));
	if (tti_fault("core.setup"))
		return tti_fail(TUTTI_EINTERNAL, "core.setup: injected fault");
	st = run(&setup, names, parent != NULL);
	tti_peers_release(&setup.peers);
	return st;
}
