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
#include "transport/tcp.h"
#include "tutti/tutti.h"

#define RANKS 2
#define BYTES 32 /* of a key */
#define MASK  0x5a
#define CHUNK ((size_t)1 << 18)
/* Sanitizers map terabytes that dumps leave out, and none of which is the library's. */
#define OURS  ((uintptr_t)1 << 26)

enum key { SECRET, CHILD, IN, OUT, KEYS };

static const char *const names[KEYS] = { "the job's secret", "the secret of a split",
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
static char folder[] = "/tmp/tutti-test-XXXXXX", path[64];

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

static bool is_at(const uint8_t *at, const uint8_t *masked)
{
	for (size_t i = 0; i < BYTES; i++)
		if ((at[i] ^ MASK) != masked[i])
			return false;
	return true;
}

static void look_in_chunk(struct search *search, size_t nbytes, const struct mapping *in)
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

static tutti_status look_for_all(struct rank *own, tutti_comm_t comm, tutti_comm_t child)
{
	struct search search = { .own = own, .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) };
	struct tti_comm *entered;
	tutti_status st;

	search.chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (search.fd < 0 || search.chunk == MAP_FAILED)
		return TUTTI_ESYS;
	st = tti_handle_enter(comm, &entered);
	if (st != TUTTI_OK)
		return st;
	note(&search, SECRET, tti_boot_secret(entered->boot));
	note_connections(&search, entered);
	tti_handle_leave(comm);
	st = tti_handle_enter(child, &entered);
	if (st != TUTTI_OK)
		return st;
	note(&search, CHILD, tti_boot_secret(entered->boot));
	tti_handle_leave(child);
	look(&search);
	munmap(search.chunk, CHUNK);
	close(search.fd);
	return TUTTI_OK;
}

static tutti_status be(struct rank *own)
{
	tutti_comm_t comm = NULL, child = NULL;
	tutti_status st = tutti_comm_init_env(&comm, NULL);
	static int from[1000], to[1000];

	if (st == TUTTI_OK)
		st = tutti_comm_split(comm, 0, 0, &child, NULL);
	for (int i = 0; i < 2 && st == TUTTI_OK; i++)
		st = tutti_all_reduce(from, to, 1000, TUTTI_INT32, TUTTI_SUM, i ? child : comm,
				      NULL);
	if (st == TUTTI_OK)
		st = look_for_all(own, comm, child);
	/* Until then nothing ends. */
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	tutti_comm_destroy(child);
	tutti_comm_destroy(comm);
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
	setenv("TUTTI_RANK", rank ? "1" : "0", 1);
	setenv("TUTTI_NRANKS", "2", 1);
	setenv("TUTTI_COMM_FILE", path, 1);
	setenv("TUTTI_TRANSPORT", transport, 1);
	setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
	setenv("TUTTI_ENCRYPT", "1", 1);
	ranks[rank].status = be(&ranks[rank]);
	_exit(0);
}

static void run(const char *transport, bool has_connections)
{
	for (int rank = 0; rank < RANKS; rank++)
		start(rank, transport);
	for (int rank = 0; rank < RANKS; rank++) {
		const struct rank *own = &ranks[rank];

		assert_int_equal(waitpid(own->pid, NULL, 0), own->pid);
		assert_int_equal(own->status, TUTTI_OK);
		for (int key = 0; key < KEYS; key++) {
			assert_true(own->has[key] == (key < IN || has_connections));
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
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
