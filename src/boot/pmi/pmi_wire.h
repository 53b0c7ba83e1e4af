/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_PMI_WIRE_H
#define TTI_BOOT_PMI_WIRE_H

/* The client's side of the wire protocol of PMI-1. A request and its answer are one line of text
 * each, words of the form name=value:
 *
 *     cmd=init pmi_version=1 pmi_subversion=1    cmd=response_to_init rc=0 ...
 *     cmd=get_my_kvsname                         cmd=my_kvsname kvsname=NAME
 *     cmd=put kvsname=NAME key=KEY value=VALUE   cmd=put_result rc=0 ...
 *     cmd=barrier_in                             cmd=barrier_out
 *     cmd=get kvsname=NAME key=KEY               cmd=get_result rc=0 value=VALUE ...
 *     cmd=finalize                               cmd=finalize_ack
 *
 * Owner: the caller, who closes the socket. Threads: one at a time. */

#include "boot/pmi/pmi.h"

struct tti_pmi_wire {
	int fd;
	char kvsname[257];
	size_t nread, nline; /* bytes in `read`; of these the line that was read last */
	char read[4096];
};

/* Begin to talk over `fd`, a stream socket. */
TUTTI_CHECKED tutti_status tti_pmi_wire_begin(struct tti_pmi_wire *wire, int fd,
					      int64_t deadline_ns);

TUTTI_CHECKED tutti_status tti_pmi_wire_exchange(struct tti_pmi_wire *wire,
						 const struct tti_pmi_call *call);

/* A launcher takes a process that ends without this word for one that has crashed. */
void tti_pmi_wire_finish(struct tti_pmi_wire *wire, int64_t deadline_ns);

#endif
