/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_REGISTRY_H
#define TTI_TRANSPORT_REGISTRY_H

/* The transports by their names. Threads: any. */

#include "transport/transport.h"

/* The transports that a list names ("shm,tcp"), in order of preference. NULL, "" and "auto" mean
 * all. self is always among them, first if the list does not name it. out has room for 8.
 * TUTTI_EINVAL names what is unknown or there twice. */
TUTTI_CHECKED tutti_status tti_registry_list(const char *names, const struct tti_transport **out,
					     int *n);

#endif
