/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/files/msccl.h"

#include <string.h>

#include "coll/files/msccl_file.h"
#include "util/error.h"
#include "util/mem.h"

tutti_status tti_msccl_read(const char *text, size_t nbytes, const char *source,
			    struct tti_msccl_head *head, struct tti_program **prog_out)
{
	struct tti_msccl_events events = { 0 };
	struct tti_program *prog = NULL;
	struct tti_xml_doc *doc;
	struct tti_msccl m;
	tutti_status st;

	TTI_TRY(tti_xml_read(text, nbytes, source, &doc));
	st = tti_msccl_parse(doc, &m);
	if (st == TUTTI_OK)
		st = tti_msccl_order(&m, &events);
	if (st == TUTTI_OK) {
		prog = tti_zalloc((size_t)m.n * sizeof(*prog) + sizeof(head->name));
		st = prog ? tti_msccl_emit(&m, &events, prog)
			  : tti_fail(TUTTI_ENOMEM, "programs of %d ranks: out of memory", m.n);
	}
	if (st == TUTTI_OK) {
		*head = (struct tti_msccl_head){ .coll = m.coll,
						 .n = m.n,
						 .root = m.root,
						 .min_bytes = m.min_bytes,
						 .max_bytes = m.max_bytes };
		memcpy(head->name, m.name, strlen(m.name) + 1);
		memcpy(prog + m.n, m.name, strlen(m.name) + 1);
		for (int rank = 0; rank < m.n; rank++)
			prog[rank].algorithm = (const char *)(prog + m.n);
		*prog_out = prog;
	} else {
		for (int rank = 0; prog && rank < m.n; rank++)
			tti_program_release(&prog[rank]);
		tti_free(prog);
	}
	tti_msccl_events_release(&events);
	tti_msccl_release(&m);
	return st;
}
