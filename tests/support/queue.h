/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_QUEUE_H
#define TESTS_SUPPORT_QUEUE_H

/* Queues of a program, for streams that are wrapped. A server is one thread that calls the functions of
 * its queues, one at a time, and of each queue in order: a queue that has a server of its own may wait in
 * them, queues that share one are like the streams of a GPU.
 *
 * Owner: the test. Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#include "tutti/tutti.h"

struct server;
struct queue;

/* Which of the queues is served next is drawn by `dice`. Both end the test if there is no memory, or no
 * thread. */
struct server *server_create(uint64_t dice);
struct queue *queue_create(struct server *server);
/* When nothing is in a queue; when there is no queue. */
void queue_free(struct queue *queue);
void server_free(struct server *server);

/* How a stream uses a queue: by functions that wait, or by those that do not and are held. */
const tutti_stream_ops *queue_ops(bool is_held);

/* What the program itself lets it run. */
void queue_add(struct queue *queue, void (*fn)(void *arg), void *arg);
/* From the next push on, push() returns `error`; 0: it takes what comes. */
void queue_refuse(struct queue *queue, int error);
/* Until it has run everything. */
void queue_wait(struct queue *queue);
/* What a child of the process finds in its memory: call what has its turn. False: nothing has. */
bool queue_run_in_child(struct queue *queue);

#endif
