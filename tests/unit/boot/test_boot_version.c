/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of builds that speak other versions of the protocol: both ends say so, with both
 * numbers, and who meets such a root does not wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/init/id.h"
#include "boot/net/auth.h"
#include "util/clock.h"
#include "util/error.h"

#define HELLO   48
#define ANSWER  80 /* to, or of, a build of version 2 */
#define VERSION 8  /* where it is in either */

static void receive(int fd, uint8_t *data, size_t nbytes)
{
	for (size_t at = 0; at < nbytes;) {
		const ssize_t n = recv(fd, data + at, nbytes - at, 0);

		assert_true(n > 0);
		at += (size_t)n;
	}
}

static struct sockaddr_in here(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = port,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static tutti_status come(int rank, const tutti_unique_id *id, int64_t timeout_ms)
{
	const struct tti_boot_config config = {
		.rank = rank, .nranks = 2, .ids = id, .nids = 1, .timeout_ms = timeout_ms
	};
	struct tti_boot *boot = NULL;
	const tutti_status st = tti_boot_connect(&config, &boot);

	tti_boot_close(boot);
	return st;
}

/* The root turns it away, and tells so when the rank is missed. */
static void an_old_rank(void **state)
{
	uint8_t hello[HELLO], answer[ANSWER];
	const uint8_t payload[16] = { 0 };
	const uint8_t *data;
	struct sockaddr_in to;
	struct tti_auth auth;
	tutti_unique_id id;
	struct tti_id read;
	int fd;

	(void)state;
	assert_int_equal(tti_boot_id_create(&id), TUTTI_OK);
	assert_int_equal(tti_id_decode(&id, &read), TUTTI_OK);
	to = here(read.addrs[0].port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	tti_auth_init(&auth, true, TTI_AUTH_ROOT, read.secret, payload, sizeof(payload));
	assert_int_equal(tti_auth_output(&auth, &data), HELLO);
	memcpy(hello, data, HELLO);
	hello[VERSION] = 2;
	assert_int_equal(send(fd, hello, HELLO, MSG_NOSIGNAL), HELLO);
	receive(fd, answer, ANSWER);
	assert_int_equal(answer[VERSION], 5);
	assert_int_equal(come(0, &id, 4000), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tti_error_text(), "rank 1 of 2 did not come"));
	assert_non_null(strstr(tti_error_text(), "one was turned away, it speaks version 2 of the "
						 "protocol, this side version 5"));
	close(fd);
}

/* Answers all who come with the version of some day, until it is shut. */
static void *serve(void *self)
{
	const int listening = *(const int *)self;
	uint8_t bytes[ANSWER] = { 0 };
	int fd;

	while ((fd = accept(listening, NULL, NULL)) >= 0) {
		if (recv(fd, bytes, HELLO, MSG_WAITALL) == HELLO) {
			bytes[VERSION] = 6;
			(void)!send(fd, bytes, ANSWER, MSG_NOSIGNAL);
		}
		close(fd);
	}
	return NULL;
}

static void a_root_of_some_day(void **state)
{
	struct tti_id made = { .secret = { 1 }, .naddrs = 1 };
	struct sockaddr_in own = here(0);
	socklen_t len = sizeof(own);
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	const int64_t begin = tti_now_ns();
	tutti_unique_id id;
	pthread_t thread;

	(void)state;
	assert_int_equal(bind(listening, (const struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(listen(listening, 8), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&own, &len), 0);
	made.addrs[0].family = 4;
	made.addrs[0].port = own.sin_port;
	memcpy(made.addrs[0].ip, &own.sin_addr, 4);
	tti_id_encode(&made, &id);
	assert_int_equal(pthread_create(&thread, NULL, serve, &listening), 0);
	assert_int_equal(come(1, &id, 60000), TUTTI_EMISMATCH);
	assert_non_null(strstr(tti_error_text(), "another version of Tutti"));
	assert_non_null(strstr(tti_error_text(), "it speaks version 6 of the protocol, this side "
						 "version 5"));
	assert_true(tti_now_ns() - begin < 30 * INT64_C(1000000000));
	shutdown(listening, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listening);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_rank),
		cmocka_unit_test(a_root_of_some_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
