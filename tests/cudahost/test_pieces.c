/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory without addresses, and addresses that it is mapped at. */
#include "mapped.h"

#include <pthread.h>

/* -- What is right ------------------------------------------------------------------------ */

static void access_body(void *arg)
{
	struct tti_cuda_piece *piece;
	int access;
	char *at;

	(void)arg;
	GOOD(tti_cuda_piece_create(UNIT, 1, &piece));
	CHECK(tti_cuda_piece_bytes(piece) == UNIT && tti_cuda_piece_device(piece) == 1);
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, (void **)&at));
	CHECK((uintptr_t)at % UNIT == 0 && !alone_can_access(at, false));
	GOOD(tti_cuda_address_map(at, UNIT, 0, piece));
	CHECK(!alone_can_access(at, false));
	GOOD(tti_cuda_address_allowed(at + 5, 0, &access));
	CHECK(access == 0);
	FAILS(TTI_CUDA_EINVAL, "allows nothing yet", tti_cuda_memory_check_copy(&at, at, 1, 4));
	GOOD(tti_cuda_address_allow(at, UNIT, 1, TTI_CUDA_ALL_DEVICES));
	CHECK(alone_can_access(at, false) && !alone_can_access(at, true));
	GOOD(tti_cuda_memory_check_copy(&at, at, 1, 2));
	FAILS(TTI_CUDA_EINVAL, "cannot be written", tti_cuda_memory_check_copy(at, &at, 1, 1));
	GOOD(tti_cuda_address_allow(at, UNIT, 3, TTI_CUDA_ALL_DEVICES));
	CHECK(alone_can_access(at + UNIT - 1, true));
	GOOD(tti_cuda_memory_check(at, UNIT));
	GOOD(tti_cuda_address_allow(at, UNIT, 0, TTI_CUDA_ALL_DEVICES));
	CHECK(!alone_can_access(at, false));
	FAILS(TTI_CUDA_EINVAL, "2 is no access",
	      tti_cuda_address_allow(at, UNIT, 2, TTI_CUDA_ALL_DEVICES));
	unmap_all(at, UNIT);
	GOOD(tti_cuda_piece_release(piece));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void memory_can_be_accessed_once_that_is_allowed(void **state)
{
	(void)state;
	alone_run(access_body, NULL);
}

static void release_body(void *arg)
{
	struct tti_cuda_piece *piece;
	struct tti_cuda_piece *again;
	size_t nfree;
	size_t total;
	char *at;

	(void)arg;
	at = map_new(2 * UNIT, &piece);
	GOOD(tti_cuda_piece_release(piece));
	FAILS(TTI_CUDA_EINVAL, "was released", tti_cuda_piece_release(piece));
	memset(at, 9, 2 * UNIT);
	GOOD(tti_cuda_address_piece(at + 100, &again));
	CHECK(again == piece);
	GOOD(tti_cuda_piece_retain(again));
	unmap_all(at, 2 * UNIT);
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == total - 2 * UNIT);
	/* The bytes are the piece's, not the addresses'. */
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, (void **)&at));
	GOOD(tti_cuda_address_map(at, UNIT, UNIT, again));
	GOOD(tti_cuda_address_allow(at, UNIT, 1, TTI_CUDA_ALL_DEVICES));
	CHECK(at[0] == 9 && at[UNIT - 1] == 9);
	unmap_all(at, UNIT);
	GOOD(tti_cuda_piece_release(again));
	GOOD(tti_cuda_piece_release(again));
	CHECK(tti_cuda_piece_bytes(again) == 0 && tti_cuda_piece_device(again) == -1);
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == total && alone_nfiles() == 0);
}

static void a_piece_that_is_mapped_lives_on(void **state)
{
	(void)state;
	alone_run(release_body, NULL);
}

static void side_by_side_body(void *arg)
{
	struct tti_cuda_piece *pieces[3];
	struct tti_cuda_range range;
	char *at;

	(void)arg;
	GOOD(tti_cuda_address_reserve(4 * UNIT, 4 * UNIT, NULL, (void **)&at));
	CHECK((uintptr_t)at % (4 * UNIT) == 0);
	for (size_t i = 0; i < 3; i++) {
		GOOD(tti_cuda_piece_create(UNIT, 0, &pieces[i]));
		GOOD(tti_cuda_address_map(at + i * UNIT, UNIT, 0, pieces[i]));
	}
	GOOD(tti_cuda_address_allow(at, 3 * UNIT, 3, TTI_CUDA_ALL_DEVICES));
	GOOD(tti_cuda_memory_check(at + 1, 3 * UNIT - 1));
	FAILS(TTI_CUDA_EINVAL, "reach 1 bytes beyond", tti_cuda_memory_check(at + 1, 3 * UNIT));
	CHECK(tti_cuda_memory_find(at + UNIT, &range) && range.base == at + UNIT);
	GOOD(tti_cuda_address_allow(at + UNIT, UNIT, 1, TTI_CUDA_ALL_DEVICES));
	FAILS(TTI_CUDA_EINVAL, "to read alone", tti_cuda_memory_check(at, 3 * UNIT));
	GOOD(tti_cuda_memory_check(at, UNIT));
	GOOD(tti_cuda_address_unmap(at + UNIT, UNIT));
	FAILS(TTI_CUDA_EINVAL, "nothing is mapped at", tti_cuda_address_unmap(at, 3 * UNIT));
	FAILS(TTI_CUDA_EINVAL, "are mapped in", tti_cuda_address_free(at, 4 * UNIT));
	GOOD(tti_cuda_address_map(at + UNIT, UNIT, 0, pieces[1]));
	GOOD(tti_cuda_address_unmap(at, 3 * UNIT));
	GOOD(tti_cuda_address_free(at, 4 * UNIT));
	for (int i = 0; i < 3; i++)
		GOOD(tti_cuda_piece_release(pieces[i]));
}

static void pieces_side_by_side_are_one_memory(void **state)
{
	(void)state;
	alone_run(side_by_side_body, NULL);
}

static void guard_body(void *arg)
{
	struct tti_cuda_piece *piece;
	char *at;

	(void)arg;
	CHECK(setenv("TUTTI_CUDAHOST_GUARD", "1", 1) == 0);
	at = map_new(2 * UNIT, &piece);
	CHECK(!alone_can_access(at, false));
	memset(tti_cuda_memory_reach(at), 7, 2 * UNIT);
	CHECK(*(char *)tti_cuda_memory_reach(at + UNIT) == 7);
	unmap_all(at, 2 * UNIT);
	GOOD(tti_cuda_piece_release(piece));
	CHECK(alone_maps() == 0);
}

static void mapped_pieces_are_guarded_too(void **state)
{
	(void)state;
	alone_run(guard_body, NULL);
}

static void hint_body(void *arg)
{
	void *at;
	void *other;

	(void)arg;
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, &at));
	GOOD(tti_cuda_address_free(at, UNIT));
	GOOD(tti_cuda_address_reserve(UNIT, 0, at, &other));
	CHECK(at == other);
	GOOD(tti_cuda_address_reserve(UNIT, 0, at, &other)); /* taken: elsewhere */
	CHECK(at != other);
	GOOD(tti_cuda_address_free(at, UNIT));
	GOOD(tti_cuda_address_free(other, UNIT));
}

static void a_hint_is_followed_where_it_can_be(void **state)
{
	(void)state;
	alone_run(hint_body, NULL);
}

/* -- What is wrong ------------------------------------------------------------------------ */

static void wrong_body(void *arg)
{
	struct tti_cuda_piece *piece = NULL;
	struct tti_cuda_piece *none;
	int access;
	void *other;
	char *at;

	(void)arg;
	FAILS(TTI_CUDA_EINVAL, "granularity", tti_cuda_piece_create(UNIT + 1, 0, &piece));
	FAILS(TTI_CUDA_EINVAL, "granularity", tti_cuda_piece_create(0, 0, &piece));
	FAILS(TTI_CUDA_EDEVICE, "no device 2", tti_cuda_piece_create(UNIT, 2, &piece));
	FAILS(TTI_CUDA_ENOMEM, "of which 67108864 are free",
	      tti_cuda_piece_create(64 * MIB + UNIT, 0, &piece));
	FAILS(TTI_CUDA_EINVAL, "no handle of memory", tti_cuda_piece_release(NULL));
	FAILS(TTI_CUDA_EINVAL, "no handle of memory", tti_cuda_piece_retain((void *)&at));
	FAILS(TTI_CUDA_EINVAL, "no handle of memory", tti_cuda_piece_export((void *)&at, &access));
	FAILS(TTI_CUDA_EINVAL, "power of two", tti_cuda_address_reserve(UNIT, 3, NULL, &other));
	FAILS(TTI_CUDA_EINVAL, "multiple", tti_cuda_address_reserve(5000, 0, NULL, &other));
	FAILS(TTI_CUDA_EINVAL, "multiple", tti_cuda_address_reserve(0, 0, NULL, &other));
	FAILS(TTI_CUDA_ENOMEM, "reserving addresses",
	      tti_cuda_address_reserve((size_t)1 << 60, 0, NULL, &other));
	GOOD(tti_cuda_address_reserve(4 * UNIT, 0, NULL, (void **)&at));
	GOOD(tti_cuda_piece_create(2 * UNIT, 0, &piece));
	FAILS(TTI_CUDA_EINVAL, "multiples", tti_cuda_address_map(at + 4096, UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "multiples", tti_cuda_address_map(at, UNIT - 1, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "multiples", tti_cuda_address_map(at, 0, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "do not lie", tti_cuda_address_map(at, UNIT, 4096, piece));
	FAILS(TTI_CUDA_EINVAL, "do not lie", tti_cuda_address_map(at, 2 * UNIT, UNIT, piece));
	FAILS(TTI_CUDA_EINVAL, "do not lie", tti_cuda_address_map(at, UNIT, 4 * UNIT, piece));
	FAILS(TTI_CUDA_EINVAL, "not within",
	      tti_cuda_address_map(at + 3 * UNIT, 2 * UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "not within", tti_cuda_address_map((void *)UNIT, UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "no handle", tti_cuda_address_map(at, UNIT, 0, NULL));
	GOOD(tti_cuda_address_map(at + UNIT, 2 * UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "overlap", tti_cuda_address_map(at, 2 * UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "overlap", tti_cuda_address_map(at + 2 * UNIT, UNIT, 0, piece));
	FAILS(TTI_CUDA_EINVAL, "but a part", tti_cuda_address_unmap(at + UNIT, UNIT));
	FAILS(TTI_CUDA_EINVAL, "but a part", tti_cuda_address_unmap(at + 2 * UNIT, UNIT));
	FAILS(TTI_CUDA_EINVAL, "but a part",
	      tti_cuda_address_allow(at + UNIT, UNIT, 3, TTI_CUDA_ALL_DEVICES));
	FAILS(TTI_CUDA_EINVAL, "nothing is mapped",
	      tti_cuda_address_allow(at, 3 * UNIT, 3, TTI_CUDA_ALL_DEVICES));
	GOOD(tti_cuda_address_unmap(at, UNIT)); /* where nothing is mapped */
	FAILS(TTI_CUDA_EINVAL, "no piece is mapped", tti_cuda_address_allowed(at, 0, &access));
	FAILS(TTI_CUDA_EINVAL, "no piece is mapped", tti_cuda_address_piece(at, &none));
	FAILS(TTI_CUDA_EINVAL, "cuMemUnmap", tti_cuda_memory_free(at + UNIT));
	FAILS(TTI_CUDA_EINVAL, "1 pieces are mapped", tti_cuda_address_free(at, 4 * UNIT));
	GOOD(tti_cuda_address_unmap(at + UNIT, 2 * UNIT));
	FAILS(TTI_CUDA_EINVAL, "not what was reserved", tti_cuda_address_free(at, UNIT));
	FAILS(TTI_CUDA_EINVAL, "not what was reserved", tti_cuda_address_free(at + UNIT, 3 * UNIT));
	GOOD(tti_cuda_address_free(at, 4 * UNIT));
	FAILS(TTI_CUDA_EINVAL, "not what was reserved", tti_cuda_address_free(at, 4 * UNIT));
	GOOD(tti_cuda_piece_release(piece));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void misuse_is_an_error(void **state)
{
	(void)state;
	alone_run(wrong_body, NULL);
}

static void budget_body(void *arg)
{
	struct tti_cuda_piece *piece;
	struct tti_cuda_piece *more;
	void *at;

	(void)arg;
	GOOD(tti_cuda_piece_create(32 * MIB, 0, &piece));
	FAILS(TTI_CUDA_ENOMEM, "of which 33554432 are free", tti_cuda_memory_alloc(33 * MIB, &at));
	GOOD(tti_cuda_memory_alloc(32 * MIB, &at));
	FAILS(TTI_CUDA_ENOMEM, "of which 0 are free", tti_cuda_piece_create(UNIT, 0, &more));
	GOOD(tti_cuda_piece_release(piece));
	GOOD(tti_cuda_piece_create(32 * MIB, 0, &piece));
	GOOD(tti_cuda_piece_release(piece));
	GOOD(tti_cuda_memory_free(at));
}

static void pieces_are_memory_of_their_device(void **state)
{
	(void)state;
	alone_run(budget_body, NULL);
}

/* -- A random model ----------------------------------------------------------------------- */

#define PLACES 8
#define PIECES 6

struct place {
	int piece; /* -1: nothing is mapped; only at the first unit of a mapping */
	size_t offset;
	size_t n;
	int access;
};

struct model {
	char *at;
	struct tti_cuda_piece *pieces[PIECES];
	char bytes[PIECES][2]; /* of each unit */
	struct place places[PLACES];
};

static bool is_free(const struct model *model, size_t at, size_t n)
{
	for (size_t i = 0; i < PLACES; i++)
		if (model->places[i].piece >= 0 && i < at + n && at < i + model->places[i].n)
			return false;
	return at + n <= PLACES;
}

static void step(struct model *model, uint32_t *seed)
{
	const size_t at = alone_random(seed) % PLACES;
	const size_t n = 1 + alone_random(seed) % 2;
	const size_t offset = alone_random(seed) % 2;
	const int which = (int)(alone_random(seed) % PIECES);
	struct place *const place = &model->places[at];
	char *const address = model->at + at * UNIT;
	int error;

	switch (alone_random(seed) % 4) {
	case 0:
		error = tti_cuda_address_map(address, n * UNIT, offset * UNIT,
					     model->pieces[which]);
		CHECK((error == 0) == (is_free(model, at, n) && offset + n <= 2));
		if (!error)
			*place = (struct place){ which, offset, n, 0 };
		break;
	case 1:
		error = tti_cuda_address_unmap(address, n * UNIT);
		if (!error) {
			CHECK(place->piece >= 0 || is_free(model, at, n));
			for (size_t i = 0; i < n; i++)
				model->places[at + i].piece = -1;
		} else {
			CHECK(place->piece < 0 || place->n != n);
		}
		break;
	case 2:
		if (place->piece >= 0) {
			place->access = (int[]){ 0, 1, 3 }[alone_random(seed) % 3];
			GOOD(tti_cuda_address_allow(address, place->n * UNIT, place->access,
						    TTI_CUDA_ALL_DEVICES));
		}
		break;
	default:
		if (place->piece < 0 || place->access == 0)
			break;
		CHECK(address[3] == model->bytes[place->piece][place->offset]);
		if (place->access == 3) {
			address[3] = (char)alone_random(seed);
			model->bytes[place->piece][place->offset] = address[3];
		}
	}
}

static void model_body(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;
	struct model model = { 0 };

	GOOD(tti_cuda_address_reserve(PLACES * UNIT, 0, NULL, (void **)&model.at));
	for (int i = 0; i < PIECES; i++)
		GOOD(tti_cuda_piece_create(2 * UNIT, 0, &model.pieces[i]));
	for (size_t i = 0; i < PLACES; i++)
		model.places[i].piece = -1;
	for (int i = 0; i < 4000; i++)
		step(&model, &seed);
	for (int i = 0; i < PIECES; i++)
		GOOD(tti_cuda_piece_release(model.pieces[i]));
	for (size_t i = 0; i < PLACES; i++)
		if (model.places[i].piece >= 0)
			GOOD(tti_cuda_address_unmap(model.at + i * UNIT, model.places[i].n * UNIT));
	GOOD(tti_cuda_address_free(model.at, PLACES * UNIT));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void mappings_are_as_a_model_has_them(void **state)
{
	(void)state;
	for (uintptr_t seed = 1; seed <= 5; seed++)
		alone_run(model_body, (void *)seed);
}

static void *map_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct tti_cuda_piece *piece;
		char *const at = map_new(UNIT, &piece);

		GOOD(tti_cuda_piece_release(piece));
		at[0] = 1;
		GOOD(tti_cuda_memory_check(at, UNIT));
		unmap_all(at, UNIT);
	}
	return NULL;
}

static void threads_body(void *arg)
{
	pthread_t threads[4];

	(void)arg;
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, map_thread, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void threads_map_at_the_same_time(void **state)
{
	(void)state;
	alone_run(threads_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_can_be_accessed_once_that_is_allowed),
		cmocka_unit_test(a_piece_that_is_mapped_lives_on),
		cmocka_unit_test(pieces_side_by_side_are_one_memory),
		cmocka_unit_test(mapped_pieces_are_guarded_too),
		cmocka_unit_test(a_hint_is_followed_where_it_can_be),
		cmocka_unit_test(misuse_is_an_error),
		cmocka_unit_test(pieces_are_memory_of_their_device),
		cmocka_unit_test(mappings_are_as_a_model_has_them),
		cmocka_unit_test(threads_map_at_the_same_time),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
