/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the program that live as long as graphs: cudaUserObjectCreate(), cuUserObjectCreate().
 *
 * Owner: references are the program's, of a graph, or of an executable graph and its runs. The last
 * one calls the program's function, with no lock held.
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_OBJECT_H
#define TUTTI_CUDAHOST_ENGINE_OBJECT_H

#include "engine/graph.h"

struct tti_cuda_object;

#pragma GCC visibility push(default)

/* `what` is the function for messages. EINVAL for what cannot be, as objects that are not known. */
int tti_cuda_object_create(const char *what, void *arg, void (*destroy)(void *arg), unsigned count,
			   unsigned flags, struct tti_cuda_object **out);
int tti_cuda_object_retain(const char *what, struct tti_cuda_object *object, unsigned count);
int tti_cuda_object_release(const char *what, struct tti_cuda_object *object, unsigned count);
/* Flags 1: the references are the program's so far. */
int tti_cuda_object_retain_by(const char *what, const struct tti_cuda_graph *graph,
			      struct tti_cuda_object *object, unsigned count, unsigned flags);
int tti_cuda_object_release_by(const char *what, const struct tti_cuda_graph *graph,
			       struct tti_cuda_object *object, unsigned count);

#pragma GCC visibility pop

/* -- For graphs: an owner is any address ---------------------------------------------------- */

/* Let `to` have a reference to each object of `from`. ENOMEM. */
int tti_cuda_objects_share(const void *from, const void *to);
/* The owner is gone. */
void tti_cuda_objects_drop(const void *owner);

#endif
