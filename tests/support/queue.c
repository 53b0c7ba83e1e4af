/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/queue.h"

#include <pthread.h>
#include <stdlib.h>

/* Something that is queued: a call of a function, or a wait until so many were released. */
struct entry {
	struct entry *next;
	tutti_queue_fn fn; /* NULL: a wait */
	void *arg;
	uint64_t number;
};

struct queue {
	struct queue *next;
	struct server *server;
	struct entry *first, **end;
	uint64_t pushed, released;
	int refuses;
	bool busy; /* a function of it runs */
};

struct server {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct queue *queues, **end;
	uint64_t dice;
	bool closing;
};

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* Whether its first entry is a function that may run. Under the lock. */
static bool is_ready(struct queue *queue)
{
	while (queue->first && !queue->first->fn && queue->first->number <= queue->released) {
		struct entry *over = queue->first;

		queue->first = over->next;
		if (!queue->first)
			queue->end = &queue->first;
		free(over);
	}
	return queue->first && queue->first->fn && !queue->busy;
}

/* NULL: none is ready. Under the lock. */
static struct queue *choose(struct server *server)
{
	struct queue *chosen = NULL;
	uint64_t nready = 0;

	for (struct queue *queue = server->queues; queue; queue = queue->next) {
		if (!is_ready(queue))
			continue;
		server->dice = server->dice * 6364136223846793005u + 1442695040888963407u;
		if ((server->dice >> 33) % ++nready == 0)
			chosen = queue;
	}
	return chosen;
}

static void run_first(struct queue *queue)
{
	struct entry *entry = queue->first;

	queue->first = entry->next;
	if (!queue->first)
		queue->end = &queue->first;
	queue->busy = true;
	pthread_mutex_unlock(&queue->server->lock);
	entry->fn(entry->arg);
	free(entry);
	pthread_mutex_lock(&queue->server->lock);
	queue->busy = false;
	pthread_cond_broadcast(&queue->server->changed);
}

static void *serve(void *self)
{
	struct server *server = self;

	pthread_mutex_lock(&server->lock);
	while (!server->closing) {
		struct queue *queue = choose(server);

		if (queue)
			run_first(queue);
		else
			pthread_cond_wait(&server->changed, &server->lock);
	}
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

struct server *server_create(uint64_t dice)
{
	struct server *server = need(calloc(1, sizeof(*server)));

	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->changed, NULL);
	server->end = &server->queues;
	server->dice = dice;
	if (pthread_create(&server->thread, NULL, serve, server) != 0)
		abort();
	return server;
}

void server_free(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->closing = true;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	pthread_join(server->thread, NULL);
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

struct queue *queue_create(struct server *server)
{
	struct queue *queue = need(calloc(1, sizeof(*queue)));

	queue->server = server;
	queue->end = &queue->first;
	pthread_mutex_lock(&server->lock);
	*server->end = queue;
	server->end = &queue->next;
	pthread_mutex_unlock(&server->lock);
	return queue;
}

void queue_free(struct queue *queue)
{
	struct server *server = queue->server;
	struct queue **at = &server->queues;

	pthread_mutex_lock(&server->lock);
	/* A function that is over may not have returned yet. */
	while (queue->busy || queue->first) {
		(void)is_ready(queue);
		if (queue->busy || queue->first)
			pthread_cond_wait(&server->changed, &server->lock);
	}
	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
	if (!*at)
		server->end = at;
	pthread_mutex_unlock(&server->lock);
	free(queue);
}

/* Under the lock. */
static void append(struct queue *queue, struct entry what)
{
	struct entry *entry = need(malloc(sizeof(*entry)));

	*entry = what;
	*queue->end = entry;
	queue->end = &entry->next;
	pthread_cond_broadcast(&queue->server->changed);
}

static int push(struct queue *queue, tutti_queue_fn fn, void *arg, bool is_held)
{
	int error;

	pthread_mutex_lock(&queue->server->lock);
	error = queue->refuses;
	if (!error)
		append(queue, (struct entry){ .fn = fn, .arg = arg });
	if (!error && is_held)
		append(queue, (struct entry){ .number = ++queue->pushed });
	pthread_mutex_unlock(&queue->server->lock);
	return error;
}

static int push_waiting(void *queue, tutti_queue_fn fn, void *arg)
{
	return push(queue, fn, arg, false);
}

static int push_held(void *queue, tutti_queue_fn fn, void *arg)
{
	return push(queue, fn, arg, true);
}

static void release(void *self)
{
	struct queue *queue = self;

	pthread_mutex_lock(&queue->server->lock);
	queue->released++;
	pthread_cond_broadcast(&queue->server->changed);
	pthread_mutex_unlock(&queue->server->lock);
}

const tutti_stream_ops *queue_ops(bool is_held)
{
	static const tutti_stream_ops waiting = { .size = sizeof(waiting), .push = push_waiting };
	static const tutti_stream_ops held = { .size = sizeof(held),
					       .push = push_held,
					       .release = release };

	return is_held ? &held : &waiting;
}

void queue_add(struct queue *queue, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&queue->server->lock);
	append(queue, (struct entry){ .fn = fn, .arg = arg });
	pthread_mutex_unlock(&queue->server->lock);
}

void queue_refuse(struct queue *queue, int error)
{
	pthread_mutex_lock(&queue->server->lock);
	queue->refuses = error;
	pthread_mutex_unlock(&queue->server->lock);
}

void queue_wait(struct queue *queue)
{
	pthread_mutex_lock(&queue->server->lock);
	while (is_ready(queue) || queue->busy || queue->first)
		pthread_cond_wait(&queue->server->changed, &queue->server->lock);
	pthread_mutex_unlock(&queue->server->lock);
}

bool queue_run_in_child(struct queue *queue)
{
	struct entry *entry = queue->first;

	if (!entry || !entry->fn)
		return false;
	queue->first = entry->next;
	entry->fn(entry->arg);
	return true;
}
