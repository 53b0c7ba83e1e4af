/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/peer_info.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/boot.h"
#include "coll/files/algo_files.h"
#include "core/device/device.h"
#include "core/init/differ.h"
#include "plan/tune/tune.h"
#include "plan/tune/tune_path.h"
#include "topo/detect/sysfs.h"
#include "topo/tree/xml.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/thread.h"

/* Plans larger than this are no plans. */
#define PLAN_BYTES ((size_t)256 << 20)
#define WHY_BYTES  1024

/* -- This rank ------------------------------------------------------------------------ */

static uint64_t hash_text(const char *text)
{
	return text ? tti_hash_bytes(text, strlen(text)) : 0;
}

/* A hash of the kernel's boot id; without it (no /proc) every process is its own machine. */
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

static void describe_cpus(struct tti_peer_info *info)
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

/* X(field, variable): what the routes of a topology depend on. */
#define LEVEL_MAP(X)                            \
	X(p2p_level, "TUTTI_P2P_LEVEL")         \
	X(p2p_disable, "TUTTI_P2P_DISABLE")     \
	X(net_gdr_level, "TUTTI_NET_GDR_LEVEL") \
	X(net_gdr_read, "TUTTI_NET_GDR_READ")   \
	X(pxn_disable, "TUTTI_PXN_DISABLE")     \
	X(nvb_disable, "TUTTI_NVB_DISABLE")

static uint64_t pack_levels(const struct tti_param_values *params)
{
	uint64_t levels = 0;

#define X(field, variable) levels = levels << 8 | (uint8_t)params->field;
	LEVEL_MAP(X)
#undef X
	return levels;
}

/* The variable of the first byte in which they differ. */
static const char *differing_level(uint64_t a, uint64_t b)
{
	static const char *const variables[] = {
#define X(field, variable) variable,
		LEVEL_MAP(X)
#undef X
	};
	const size_t n = sizeof(variables) / sizeof(variables[0]);

	for (size_t i = 0; i < n; i++)
		if ((a ^ b) >> 8 * (n - 1 - i) & 0xff)
			return variables[i];
	return NULL;
}

static void describe_settings(struct tti_peer_info *info, const struct tti_peer_settings *settings)
{
	const struct tti_param_values *params = tti_params();

	*info = (struct tti_peer_info){
		.version = TUTTI_VERSION,
		.machine = machine_hash(),
		.transport = hash_text(settings->transports),
		.algo = hash_text(settings->algo),
		.slice = params->slice,
		.registered_least = params->registered_least,
		.shm_slots = tti_hash_combine(params->shm_slot, (uint64_t)params->shm_slots),
		.tcp_slots = tti_hash_combine(params->tcp_slot, (uint64_t)params->tcp_slots),
		.levels = pack_levels(params),
		.sysfs_root = hash_text(params->sysfs_root),
		.check = params->check,
		.reproducible = settings->reproducible,
		.encrypt = settings->encrypt,
		.reach = (int32_t)params->reach,
		.dumps = params->topo_dump_file != NULL,
	};
	info->host = tti_hash_combine(info->machine, hash_text(params->host_id));
}

/* -- What it plans by ---------------------------------------------------------------- */

static tutti_status print_file(const char *path, const char *what, size_t most, char **text,
			       struct tti_file_print *out)
{
	size_t nbytes;

	if (!path)
		return TUTTI_OK;
	TTI_TRY(tti_file_read(path, what, most, text, &nbytes));
	if (nbytes > most)
		return tti_fail(TUTTI_EINVAL, "%s %s has more than %zu bytes", what, path, most);
	*out = (struct tti_file_print){ tti_hash_bytes(*text, nbytes), nbytes };
	return TUTTI_OK;
}

/* How many NUMA nodes have cores: "0-3" or "0,2". */
static int count_numa_nodes(void)
{
	struct tti_sysfs root;
	char line[256];
	int count = 0;

	if (tti_sysfs_open(tti_params()->sysfs_root, &root) != TUTTI_OK)
		return 0;
	if (!tti_sysfs_line(&root, line, sizeof(line), "sys/devices/system/node/has_cpu"))
		count = 1; /* a kernel without NUMA */
	for (char *at = line; *at && count < CPU_SETSIZE;) {
		const long first = strtol(at, &at, 10);
		const long last = *at == '-' ? strtol(at + 1, &at, 10) : first;

		count += last >= first ? (int)(last - first) + 1 : 0;
		if (*at++ != ',')
			break;
	}
	tti_sysfs_close(&root);
	return count;
}

/* Interfaces, and so NICs, belong to a network namespace. */
static uint64_t network_hash(void)
{
	struct stat info;

	return stat("/proc/self/ns/net", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

static tutti_status describe_inputs(struct tti_peers *peers, struct tti_peer_info *info)
{
	const struct tti_param_values *params = tti_params();

	TTI_TRY(print_file(params->topo_file, "TUTTI_TOPO_FILE", TTI_XML_BYTES, &peers->topo_text,
			   &info->topo_file));
	TTI_TRY(print_file(params->plan_file, "TUTTI_PLAN_FILE", PLAN_BYTES, &peers->plan_text,
			   &info->plan_file));
	info->nnuma = count_numa_nodes();
	info->place = tti_hash_combine(tti_hash_combine(info->host, network_hash()),
				       tti_hash_combine(info->topo_file.hash, info->sysfs_root));
	return TUTTI_OK;
}

/* Each rank has its own copy, also ranks of one process. */
static tutti_status describe_tuning(struct tti_peers *peers, struct tti_peer_info *info)
{
	const char *list = tti_params()->algo_file;
	struct tti_tune_used used;

	TTI_TRY(tti_tune_read_used(&used));
	if (used.named)
		info->tune = tti_tune_hash(used.named);
	if (used.measured)
		info->measured = tti_tune_hash(used.measured);
	peers->tune = used.named ? used.named : used.measured;
	if (list) {
		TTI_TRY(tti_algo_files_read(list, &peers->algo_files));
		info->algo_files = tti_algo_files_hash(peers->algo_files);
	}
	return TUTTI_OK;
}

/* Ranks of one process have one environment: the first looks for all. */
static void copy_inputs(struct tti_peer_info *info, int n)
{
	for (int rank = 1; rank < n; rank++) {
		info[rank].nnuma = info[0].nnuma;
		info[rank].place = info[0].place;
		info[rank].topo_file = info[0].topo_file;
		info[rank].plan_file = info[0].plan_file;
	}
}

/* -- Failing together ------------------------------------------------------------------ */

struct decision {
	int32_t status;
	char text[WHY_BYTES];
};

tutti_status tti_peers_fail(struct tti_boot *boot, int failed_rank, tutti_status status)
{
	struct decision decision = { .status = status };

	if (tti_boot_rank(boot) == failed_rank)
		(void)snprintf(decision.text, sizeof(decision.text), "%s", tti_error_text());
	TTI_TRY(tti_boot_broadcast(boot, failed_rank, &decision, sizeof(decision)));
	if (tti_boot_rank(boot) == failed_rank)
		return status;
	decision.text[sizeof(decision.text) - 1] = '\0';
	if (decision.status >= 0)
		return tti_fail(TUTTI_EPROTO, "rank %d failed and does not say why", failed_rank);
	return tti_fail((tutti_status)decision.status, "rank %d: %s", failed_rank, decision.text);
}

/* -- Together ------------------------------------------------------------------------- */

struct keyed {
	uint64_t key;
	int rank;
};

static int by_key(const void *left, const void *right)
{
	const struct keyed *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->rank - b->rank;
}

tutti_status tti_peers_group(const uint64_t *key, int n, int *first_out)
{
	struct keyed *sorted;

	/* Mostly all are together. */
	memset(first_out, 0, (size_t)n * sizeof(*first_out));
	if (key[0] && memcmp(key, key + 1, (size_t)(n - 1) * sizeof(*key)) == 0)
		return TUTTI_OK;
	sorted = tti_calloc((size_t)n, sizeof(*sorted));
	if (!sorted)
		return tti_fail(TUTTI_ENOMEM, "groups of %d ranks: out of memory", n);
	for (int rank = 0; rank < n; rank++)
		sorted[rank] = (struct keyed){ key[rank], rank };
	qsort(sorted, (size_t)n, sizeof(*sorted), by_key);
	for (int i = 0; i < n; i++) {
		const bool joins =
			i > 0 && sorted[i].key != 0 && sorted[i].key == sorted[i - 1].key;

		first_out[sorted[i].rank] = joins ? first_out[sorted[i - 1].rank] : sorted[i].rank;
	}
	tti_free(sorted);
	return TUTTI_OK;
}

static tutti_status check_settings(const struct tti_peer_info *info, int n)
{
	for (int rank = 1; rank < n; rank++) {
		const char *what =
			info[rank].version != info[0].version       ? "version of Tutti"
			: info[rank].transport != info[0].transport ? "TUTTI_TRANSPORT"
			: info[rank].algo != info[0].algo           ? "TUTTI_ALGO"
			: info[rank].slice != info[0].slice         ? "TUTTI_SLICE"
			: info[rank].check != info[0].check         ? "TUTTI_CHECK"
			: info[rank].reach != info[0].reach         ? "TUTTI_REACH"
			: info[rank].registered_least != info[0].registered_least
				? "TUTTI_REGISTERED_LEAST"
			: info[rank].reproducible != info[0].reproducible
				? "TUTTI_REPRODUCIBLE, or `reproducible` of its configuration,"
			: info[rank].encrypt != info[0].encrypt
				? "TUTTI_ENCRYPT, or `encrypt` of its configuration,"
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
		what = differing_level(info[0].levels, info[rank].levels);
		if (what)
			return tti_fail(
				TUTTI_EPLAN,
				"rank %d has another %s than rank 0, and would make another "
				"plan: set it alike on all ranks",
				rank, what);
	}
	return TUTTI_OK;
}

static bool same_print(const struct tti_file_print *a, const struct tti_file_print *b)
{
	return a->hash == b->hash && a->nbytes == b->nbytes;
}

/* A file of ranks a and b that should be one. */
struct file_pair {
	const char *variable, *advice;
	const struct tti_file_print *of_a, *of_b;
	const char *a_text, *b_text; /* each only at its rank */
	void (*differ)(const struct tti_differ_texts *texts, char *why, size_t size);
	int a, b;
};

static tutti_status explain(const struct file_pair *pair, const char *a_text)
{
	const struct tti_differ_texts texts = { a_text, pair->b_text, pair->of_a->nbytes,
						pair->of_b->nbytes };
	char why[640];

	pair->differ(&texts, why, sizeof(why));
	return tti_fail(TUTTI_EPLAN, "the %s of rank %d (B) is not that of rank %d (A): %s; %s",
			pair->variable, pair->b, pair->a, why, pair->advice);
}

/* Rank a broadcasts its text, and rank b finds the first difference. */
static tutti_status fail_files(const struct tti_peers *peers, const struct file_pair *pair)
{
	tutti_status st = TUTTI_EPLAN;
	char *text;

	if (!pair->of_a->hash || !pair->of_b->hash)
		return tti_fail(TUTTI_EPLAN, "rank %d has no %s and rank %d has one: %s",
				pair->of_a->hash ? pair->b : pair->a, pair->variable,
				pair->of_a->hash ? pair->a : pair->b, pair->advice);
	text = tti_alloc(pair->of_a->nbytes + 1);
	if (!text)
		return tti_fail(TUTTI_ENOMEM, "a file of %llu bytes: out of memory",
				(unsigned long long)pair->of_a->nbytes);
	if (peers->rank == pair->a)
		memcpy(text, pair->a_text, pair->of_a->nbytes);
	st = tti_boot_broadcast(peers->boot, pair->a, text, pair->of_a->nbytes);
	if (st == TUTTI_OK && peers->rank == pair->b)
		st = explain(pair, text);
	tti_free(text);
	return st == TUTTI_OK || st == TUTTI_EPLAN
		       ? tti_peers_fail(peers->boot, pair->b, TUTTI_EPLAN)
		       : st;
}

static tutti_status check_plan_files(const struct tti_peers *peers)
{
	const struct tti_peer_info *info = peers->info;

	for (int rank = 1; rank < peers->n; rank++) {
		const struct file_pair pair = {
			.variable = "TUTTI_PLAN_FILE",
			.advice = "give all ranks one plan",
			.of_a = &info[0].plan_file,
			.of_b = &info[rank].plan_file,
			.a_text = peers->plan_text,
			.b_text = peers->plan_text,
			.differ = tti_differ_plan,
			.b = rank,
		};

		if (!same_print(pair.of_a, pair.of_b))
			return fail_files(peers, &pair);
	}
	return TUTTI_OK;
}

static tutti_status check_topology(const struct tti_peers *peers, int a, int b)
{
	const struct tti_peer_info *info = peers->info;
	const struct file_pair pair = {
		.variable = "TUTTI_TOPO_FILE",
		.advice = "ranks of one machine must see one topology, or count as on several "
			  "hosts (TUTTI_HOST_ID)",
		.of_a = &info[a].topo_file,
		.of_b = &info[b].topo_file,
		.a_text = peers->topo_text,
		.b_text = peers->topo_text,
		.differ = tti_differ_topology,
		.a = a,
		.b = b,
	};

	if (!same_print(pair.of_a, pair.of_b))
		return fail_files(peers, &pair);
	if (info[a].sysfs_root != info[b].sysfs_root)
		return tti_fail(TUTTI_EPLAN,
				"rank %d has another TUTTI_SYSFS_ROOT than rank %d: %s", b, a,
				pair.advice);
	return TUTTI_OK;
}

/* Ranks of one machine against the first of them. */
static tutti_status check_topologies(const struct tti_peers *peers)
{
	const struct tti_peer_info *info = peers->info;
	const int n = peers->n;
	bool any = false;
	uint64_t *host;
	int *first;
	tutti_status st;

	for (int rank = 0; rank < n; rank++)
		any |= info[rank].topo_file.hash || info[rank].sysfs_root;
	if (!any)
		return TUTTI_OK;
	host = tti_calloc((size_t)n, sizeof(*host));
	first = tti_calloc((size_t)n, sizeof(*first));
	st = host && first ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", n);
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		host[rank] = info[rank].host;
	if (st == TUTTI_OK)
		st = tti_peers_group(host, n, first);
	for (int rank = 1; rank < n && st == TUTTI_OK; rank++)
		if (first[rank] != rank)
			st = check_topology(peers, first[rank], rank);
	tti_free(host);
	tti_free(first);
	return st;
}

static tutti_status check(const struct tti_peers *peers)
{
	TTI_TRY(check_settings(peers->info, peers->n));
	for (int rank = 0; rank < peers->n; rank++)
		if (peers->info[rank].status != TUTTI_OK)
			return tti_peers_fail(peers->boot, rank,
					      (tutti_status)peers->info[rank].status);
	if (tti_boot_is_local(peers->boot))
		return TUTTI_OK;
	for (int rank = 1; rank < peers->n; rank++) {
		const struct tti_peer_info *info = &peers->info[rank];
		const char *what = info->tune != peers->info[0].tune ? "TUTTI_TUNE_FILE"
				   : info->algo_files != peers->info[0].algo_files
					   ? "TUTTI_ALGO_FILE"
					   : NULL;

		if (what)
			return tti_fail(
				TUTTI_EINVAL,
				"the %s of rank %d is not that of rank 0: give all ranks the "
				"same",
				what, rank);
	}
	TTI_TRY(check_plan_files(peers));
	return check_topologies(peers);
}

/* Measurements count only if all ranks have the same. Nobody named the files, so a difference is no
 * error, but ranks would choose different algorithms. */
static void settle_measured(struct tti_peers *peers)
{
	const struct tti_peer_info *info = peers->info;
	int other = 0;

	for (int rank = 1; rank < peers->n && !other; rank++)
		if (info[rank].measured != info[0].measured)
			other = rank;
	if (!other)
		return;
	if (peers->rank == 0)
		tti_log(TTI_LOG_WARN, TTI_PLAN,
			"rank %d does not have what `tutti tune` measured at rank 0, so "
			"all ranks use built-in figures: copy one file to all hosts, or "
			"keep one in a folder that they share (`tutti env` names it; "
			"with TUTTI_TUNE_FILE=none there is no file and no warning)",
			other);
	if (info[peers->rank].measured) {
		tti_tune_table_free(peers->tune);
		peers->tune = NULL;
	}
}

tutti_status tti_peers_exchange(struct tti_boot *boot, const struct tti_peer_settings *settings,
				struct tti_peers *out)
{
	const bool local = tti_boot_is_local(boot);
	struct tti_peers peers = { .boot = boot,
				   .rank = tti_boot_rank(boot),
				   .n = tti_boot_nranks(boot) };
	struct tti_peer_info *own;
	tutti_status st;

	peers.info = tti_calloc((size_t)peers.n, sizeof(*peers.info));
	if (!peers.info)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", peers.n);
	own = &peers.info[peers.rank];
	describe_settings(own, settings);
	describe_cpus(own);
	own->status = tti_device_wish(settings->device, &own->device);
	if (own->status == TUTTI_OK && (!local || peers.rank == 0))
		own->status = describe_inputs(&peers, own);
	if (own->status == TUTTI_OK)
		own->status = describe_tuning(&peers, own);
	st = tti_boot_all_gather(boot, peers.info, sizeof(*peers.info));
	if (st == TUTTI_OK && local)
		copy_inputs(peers.info, peers.n);
	if (st == TUTTI_OK)
		st = check(&peers);
	if (st == TUTTI_OK)
		settle_measured(&peers);
	if (st == TUTTI_OK)
		*out = peers;
	else
		tti_peers_release(&peers);
	return st;
}

tutti_status tti_peers_digest(struct tti_peers *peers)
{
	peers->place = tti_calloc((size_t)peers->n, sizeof(*peers->place));
	if (!peers->place)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", peers->n);
	for (int rank = 0; rank < peers->n; rank++) {
		const struct tti_peer_info *info = &peers->info[rank];

		peers->place[rank] = info->place;
		peers->asks |= info->nnuma > 1 || info->topo_file.hash || info->plan_file.hash ||
			       info->sysfs_root;
		peers->dumps |= info->dumps != 0;
		peers->has_plan_file |= info->plan_file.hash != 0;
	}
	if (peers->rank == 0)
		return TUTTI_OK;
	tti_free(peers->info);
	peers->info = NULL;
	return TUTTI_OK;
}

void tti_peers_release(struct tti_peers *peers)
{
	tti_free(peers->info);
	tti_free(peers->place);
	tti_free(peers->topo_text);
	tti_free(peers->plan_text);
	tti_tune_table_free(peers->tune);
	tti_algo_files_free(peers->algo_files);
	*peers = (struct tti_peers){ 0 };
}
