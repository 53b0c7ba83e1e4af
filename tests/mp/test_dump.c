/* SPDX-License-Identifier: BSD-3-Clause */
/* What a core dump of a rank holds: ranks that have met through TUTTI_COMM_FILE look for the secret of
 * their job, and for the keys of their connections, in all of their own memory. The copies that
 * they look by are masked, and are made byte by byte. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/comm.h"
#include "core/handle.h"
#include "transport/tcp/tcp.h"
#include "tutti/tutti.h"

#define RANKS 3  /* the last one joins */
#define BYTES 32 /* of a key */
#define MASK  0x5a
#define CHUNK ((size_t)1 << 18)
/* Sanitizers map terabytes that dumps leave out, and none of which is the library's. */
#define OURS  ((uintptr_t)1 << 26)

enum key { SECRET, CHILD, GROWN, IN, OUT, KEYS };

static const char *const names[KEYS] = { "the job's secret", "the secret of a split",
					 "the secret of a growth",
					 "the key of what a connection brings",
					 "the key of what it sends" };

struct rank {
	pid_t pid;
	tutti_status status;
	bool has[KEYS]; /* else it is not looked for */
	int dumped[KEYS], left_out[KEYS];
	char where[KEYS][128]; /* the last one of `dumped` */
};

static struct rank *ranks; /* [RANKS], shared */
static char folder[] = "/tmp/tutti-test-XXXXXX", path[64], passed[64];

/* One line of /proc/self/smaps and what follows it. */
struct mapping {
	uintptr_t begin, end;
	char line[128];
	bool is_left_out;
};

struct search {
	struct rank *own;
	uint8_t masked[KEYS][BYTES];
	bool begins[256]; /* some key begins with this byte */
	uint8_t *chunk;   /* where memory is read to, itself left out */
	int fd;
};

static void note(struct search *search, enum key key, const void *bytes)
{
	const volatile uint8_t *from = bytes;

	for (size_t i = 0; i < BYTES; i++)
		search->masked[key][i] = (uint8_t)(from[i] ^ MASK);
	search->begins[from[0]] = true;
	search->own->has[key] = true;
}

/* All memory is looked at, byte by byte, from a buffer of this thread alone: sanitizers have nothing to see. */
#define QUIET __attribute__((no_sanitize("address", "thread")))

QUIET static bool is_at(const uint8_t *at, const uint8_t *masked)
{
	for (size_t i = 0; i < BYTES; i++)
		if ((at[i] ^ MASK) != masked[i])
			return false;
	return true;
}

QUIET static void look_in_chunk(struct search *search, size_t nbytes, const struct mapping *in)
{
	struct rank *own = search->own;

	for (size_t at = 0; at + BYTES <= nbytes; at++)
		for (int key = 0; key < KEYS && search->begins[search->chunk[at]]; key++) {
			if (!own->has[key] || !is_at(search->chunk + at, search->masked[key]))
				continue;
			++*(in->is_left_out ? &own->left_out[key] : &own->dumped[key]);
			if (!in->is_left_out)
				memcpy(own->where[key], in->line, sizeof(in->line));
		}
}

static void look_in_mapping(struct search *search, const struct mapping *in)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (in->begin == (uintptr_t)search->chunk ||
	    (in->is_left_out && in->end - in->begin > OURS))
		return;
	for (uintptr_t at = in->begin; at < in->end;) {
		const size_t left = in->end - at, most = left < CHUNK ? left : CHUNK;
		const ssize_t got = pread(search->fd, search->chunk, most, (off_t)at);

		if (got > 0)
			look_in_chunk(search, (size_t)got, in);
		/* A key may lie across the end of what was read; a page that cannot be read is none
		 * of memory. */
		at += got <= 0 ? page : (size_t)got < left ? (size_t)got - (BYTES - 1) : left;
	}
}

/* All mappings that have pages. */
static void look(struct search *search)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	struct mapping mapping = { 0 };
	unsigned long begin, end, kilobytes = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
			mapping = (struct mapping){ .begin = begin, .end = end };
			memcpy(mapping.line, line, sizeof(mapping.line) - 1);
			mapping.line[strcspn(mapping.line, "\n")] = '\0';
		}
		(void)sscanf(line, "Rss: %lu kB", &kilobytes);
		if (strncmp(line, "VmFlags:", 8) != 0)
			continue;
		mapping.is_left_out = strstr(line, " dd") != NULL;
		if (kilobytes > 0)
			look_in_mapping(search, &mapping);
	}
	if (file)
		fclose(file);
}

static void note_connections(struct search *search, struct tti_comm *comm)
{
	for (int i = 0; i < comm->nports; i++) {
		if (comm->ports[i]->transport != &tti_transport_tcp)
			continue;

		const struct tti_tcp_port *port = tti_tcp_port_of(comm->ports[i]);
		const struct tti_tcp_link *link = port->link_of[1 - comm->rank];

		if (!link || !link->conn[0])
			continue;
		note(search, IN, link->conn[0]->in.key);
		note(search, OUT, link->conn[0]->out_seal.key);
	}
}

static tutti_status note_secret(struct search *search, enum key key, tutti_comm_t comm)
{
	struct tti_comm *entered;
	const tutti_status st = tti_handle_enter(comm, &entered);

	if (st != TUTTI_OK)
		return st;
	note(search, key, tti_boot_secret(entered->boot));
	if (key == SECRET)
		note_connections(search, entered);
	tti_handle_leave(comm);
	return TUTTI_OK;
}

/* In the order of their keys. A rank that has no last one made the id itself, so its user has that. */
static tutti_status look_for_all(struct rank *own, const tutti_comm_t comms[3])
{
	struct search search = { .own = own, .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) };
	tutti_status st = TUTTI_OK;

	search.chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (search.fd < 0 || search.chunk == MAP_FAILED)
		return TUTTI_ESYS;
	for (int key = SECRET; key <= GROWN && st == TUTTI_OK; key++)
		if (comms[key])
			st = note_secret(&search, (enum key)key, comms[key]);
	if (st == TUTTI_OK)
		look(&search);
	munmap(search.chunk, CHUNK);
	close(search.fd);
	return st;
}

/* Rank 0 makes an id and hands it to one that joins; rank 1 has it from the library alone. */
static tutti_status grow(int rank, tutti_comm_t comm, tutti_comm_t *grown)
{
	const bool has_id = rank != 1;
	tutti_unique_id id;
	tutti_status st = rank == 0 ? tutti_get_unique_id(&id) : TUTTI_OK;
	int fd;

	if (rank == 0 && st == TUTTI_OK) {
		fd = open(passed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, &id, sizeof(id)) != (ssize_t)sizeof(id) || close(fd))
			return TUTTI_ESYS;
	}
	if (rank == 2) {
		while ((fd = open(passed, O_RDONLY | O_CLOEXEC)) < 0 ||
		       read(fd, &id, sizeof(id)) != (ssize_t)sizeof(id))
			if (fd >= 0)
				close(fd);
		close(fd);
	}
	return st == TUTTI_OK ? tutti_comm_grow(comm, 3, has_id ? &id : NULL, rank == 2 ? 2 : -1,
						grown, NULL)
			      : st;
}

static tutti_status be(struct rank *own, int rank)
{
	tutti_comm_t comms[3] = { NULL };
	tutti_status st = TUTTI_OK;
	static int from[1000], to[1000];

	if (rank < 2)
		st = tutti_comm_init_env(&comms[SECRET], NULL);
	if (rank < 2 && st == TUTTI_OK)
		st = tutti_comm_split(comms[SECRET], 0, 0, &comms[CHILD], NULL);
	if (st == TUTTI_OK)
		st = grow(rank, comms[SECRET], &comms[GROWN]);
	for (int i = 0; i < 3 && st == TUTTI_OK; i++)
		if (comms[i])
			st = tutti_all_reduce(from, to, 1000, TUTTI_INT32, TUTTI_SUM, comms[i],
					      NULL);
	if (st == TUTTI_OK && rank < 2)
		st = look_for_all(own, (const tutti_comm_t[]){ comms[SECRET], comms[CHILD],
							       rank == 1 ? comms[GROWN] : NULL });
	/* Until then nothing ends. */
	if (st == TUTTI_OK)
		st = tutti_barrier(comms[GROWN], NULL);
	for (int i = 2; i >= 0; i--)
		tutti_comm_destroy(comms[i]);
	return st;
}

static void start(int rank, const char *transport)
{
	memset(&ranks[rank], 0, sizeof(ranks[rank]));
	fflush(NULL);

	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0) {
		ranks[rank].pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rank < 2) {
		setenv("TUTTI_RANK", rank ? "1" : "0", 1);
		setenv("TUTTI_NRANKS", "2", 1);
		setenv("TUTTI_COMM_FILE", path, 1);
	}
	setenv("TUTTI_TRANSPORT", transport, 1);
	setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
	setenv("TUTTI_ENCRYPT", "1", 1);
	ranks[rank].status = be(&ranks[rank], rank);
	_exit(0);
}

static void run(const char *transport, bool has_connections)
{
	unlink(passed);
	for (int rank = 0; rank < RANKS; rank++)
		start(rank, transport);
	for (int rank = 0; rank < RANKS; rank++) {
		const struct rank *own = &ranks[rank];

		assert_int_equal(waitpid(own->pid, NULL, 0), own->pid);
		assert_int_equal(own->status, TUTTI_OK);
		for (int key = 0; key < KEYS && rank < 2; key++) {
			assert_true(own->has[key] == (key < GROWN    ? true
						      : key == GROWN ? rank == 1
								     : has_connections));
			if (own->dumped[key] > 0)
				fail_msg("rank %d, %s: %s is %d times in what dumps hold, in %s",
					 rank, transport, names[key], own->dumped[key],
					 own->where[key]);
			/* It is somewhere, or nothing was looked at. */
			assert_true(!own->has[key] || own->left_out[key] > 0);
		}
	}
}

static void keys_of_tcp_are_left_out(void **state)
{
	(void)state;
	run("tcp", true);
}

static void the_secret_is_left_out_over_shared_memory(void **state)
{
	(void)state;
	run("shm", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_tcp_are_left_out),
		cmocka_unit_test(the_secret_is_left_out_over_shared_memory),
	};
	int failed;

	ranks = mmap(NULL, RANKS * sizeof(*ranks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ranks == MAP_FAILED || !mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/id", folder);
	snprintf(passed, sizeof(passed), "%s/grow", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(passed);
	rmdir(folder);
	return failed;
}
