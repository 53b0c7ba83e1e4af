/* SPDX-License-Identifier: BSD-3-Clause */
/* Which messages over shared memory are written for a reader that waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reduce/reduce.h"
#include "shm_world.h"
#include "transport/shm/shm_link.h"
#include "util/thread.h"

static void exchange(struct world *world, struct tti_port *port, struct tti_link *link,
		     size_t nbytes, bool expected)
{
	size_t got;
	uint64_t tag;

	CHECK(link->ops->reserve(link, nbytes, 0));
	CHECK(!expected || link->is_awaited);
	CHECK(expected || !link->is_awaited);
	link->ops->commit(link, nbytes, 1);
	world_sync(world);
	while (!link->ops->peek(link, &got, &tag))
		CHECK(port->failed_peer == -1);
	link->ops->release(link);
}

/* A message that follows one which was read answers it, so somebody waits for it; the next one in
 * a row, and a long one, nobody does. */
static void await(struct world *world, struct tti_port *port)
{
	const bool demotes = tti_copies_for_reader() && tti_cpu_online() >= world->n;
	struct tti_link *link;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	exchange(world, port, link, 1000, false);
	exchange(world, port, link, 1000, demotes);
	CHECK(link->ops->reserve(link, 1000, 0));
	CHECK(link->is_awaited == demotes);
	link->ops->commit(link, 1000, 2);
	exchange(world, port, link, 1000, false);
	CHECK(link->ops->peek(link, &(size_t){ 0 }, &(uint64_t){ 0 }));
	link->ops->release(link);
	exchange(world, port, link, 2048, demotes);
	exchange(world, port, link, 2049, false);
	world_sync(world);
}

/* While nothing is there to read, the lines of the next message are fetched, once; also if there
 * is no room for one. */
static void own(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const own = tti_shm_port_of(port);
	struct tti_link *link;
	size_t got;
	uint64_t tag;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	CHECK(!link->ops->peek(link, &got, &tag) && !own->unowned);
	world_sync(world);
	while (port->rank == 0 && link->ops->reserve(link, 9000, 0)) {
		link->ops->commit(link, 9000, 1);
		CHECK(own->unowned == tti_shm_link_of(link));
		CHECK(!link->ops->peek(link, &got, &tag) && !own->unowned);
	}
	world_sync(world);
}

static void lines_are_owned_while_nothing_comes(void **state)
{
	(void)state;
	world_run_two(own);
}

static void an_answer_is_awaited(void **state)
{
	(void)state;
	world_run_two(await);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_owned_while_nothing_comes),
		cmocka_unit_test(an_answer_is_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
