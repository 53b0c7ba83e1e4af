/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank dies between its check-in and the ring. Another one is slow, and by the time it comes to
 * connect, its neighbour has given up for that death: it names the dead one, not the neighbour. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/crew.h"

enum { SLOW = 1, DEAD = 3, RANKS = 5 };

static struct scene {
	_Atomic int is_slow, has_died;
} * scene;
static int own_rank = -1, nconnects;

/* The library's, too. First it goes to the root, then to the next rank of the ring. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (to->sa_family == AF_INET && ++nconnects == 2 && own_rank == SLOW) {
		scene->is_slow = 1;
		while (!scene->has_died)
			crew_nap_us(500);
		crew_nap_us(1000000);
	}
	if (to->sa_family == AF_INET && nconnects == 2 && own_rank == DEAD) {
		while (!scene->is_slow)
			crew_nap_us(500);
		/* All others have checked in by now. */
		crew_nap_us(500000);
		scene->has_died = 1;
		raise(SIGKILL);
	}
	return (int)syscall(SYS_connect, fd, to, len);
}

static void prepare(struct crew *crew, int rank)
{
	(void)crew;
	own_rank = rank;
	setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
	setenv("TUTTI_SOCKET_FAMILY", "AF_INET", 1);
	setenv("TUTTI_BOOT_TIMEOUT_MS", "60000", 1);
}

static tutti_status never(struct crew *crew, int rank, tutti_comm_t comm)
{
	(void)crew;
	(void)rank;
	(void)comm;
	return TUTTI_EINTERNAL;
}

static void the_dead_rank_is_named(void **state)
{
	struct crew *crew = crew_create(RANKS, NULL, never);
	char name[64];

	(void)state;
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(scene != MAP_FAILED);
	crew->prepare = prepare;
	assert_int_not_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < RANKS; rank++) {
		const struct crew_rank *own = &crew->rank[rank];

		if (rank == DEAD)
			continue;
		snprintf(name, sizeof(name), ", process %d)", (int)crew->rank[DEAD].pid);
		if (own->status != TUTTI_EPEER || !strstr(own->text, "rank 3 (") ||
		    !strstr(own->text, name))
			fail_msg("rank %d: %s: %s", rank,
				 tutti_status_name((tutti_status)own->status), own->text);
	}
	munmap(scene, sizeof(*scene));
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_rank_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
