/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads attributes and <step>, and checks of a step what can be checked without the others. */
#include "coll/files/msccl_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coll/files/msccl.h"
#include "util/error.h"

tutti_status tti_msccl_fail(const struct tti_msccl *m, int32_t step, const char *fmt, ...)
{
	const struct tti_msccl_step *at = &m->steps.at[step];
	const struct tti_msccl_tb *tb = &m->tbs.at[at->tb];
	char reason[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	return tti_xml_fail(m->doc, at->node, "gpu %d tb %d step %d: %s", tb->gpu, tb->id,
			    step - tb->first, reason);
}

/* -- Attributes -------------------------------------------------------------------- */

tutti_status tti_msccl_number(const struct tti_msccl *m, const struct tti_xml *node,
			      const char *name, int64_t min, int64_t max, int32_t *out)
{
	int64_t value;

	if (!tti_xml_get(node, name))
		return tti_xml_fail(m->doc, node, "%s is missing", name);
	TTI_TRY(tti_xml_int(m->doc, node, name, min, max, -1, &value));
	if (value < min)
		return tti_xml_fail(m->doc, node, "%s is empty", name);
	*out = (int32_t)value;
	return TUTTI_OK;
}

tutti_status tti_msccl_word(const struct tti_msccl *m, const struct tti_xml *node, const char *name,
			    const char *const *words, size_t n, int *out)
{
	const char *value = tti_xml_get(node, name);
	char list[200] = "";
	size_t len = 0;

	for (size_t i = 0; value && i < n; i++)
		if (strcmp(value, words[i]) == 0) {
			*out = (int)i;
			return TUTTI_OK;
		}
	for (size_t i = 0; i < n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					words[i]);
	if (!value)
		return tti_xml_fail(m->doc, node, "%s is missing: it may be %s", name, list);
	return tti_xml_fail(m->doc, node, "%s=\"%.40s\": it may be %s", name, value, list);
}

tutti_status tti_msccl_children(const struct tti_msccl *m, const struct tti_xml *node,
				const char *name)
{
	for (const struct tti_xml *child = node->first; child; child = child->next)
		if (child->name && (!name || strcmp(child->name, name) != 0))
			return tti_xml_fail(m->doc, child, "<%.20s> may not stand in <%.20s>",
					    child->name, node->name);
	return TUTTI_OK;
}

/* -- <step> ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	bool recvs, sends, has_src, has_dst, reduces;
} types[TTI_MSCCL_TYPES] = {
	[TTI_MSCCL_NOP] = { "nop", false, false, false, false, false },
	[TTI_MSCCL_S] = { "s", false, true, true, false, false },
	[TTI_MSCCL_R] = { "r", true, false, false, true, false },
	[TTI_MSCCL_RCS] = { "rcs", true, true, false, true, false },
	[TTI_MSCCL_RRC] = { "rrc", true, false, true, true, true },
	[TTI_MSCCL_RRS] = { "rrs", true, true, true, false, true },
	[TTI_MSCCL_RRCS] = { "rrcs", true, true, true, true, true },
	[TTI_MSCCL_CPY] = { "cpy", false, false, true, true, false },
	[TTI_MSCCL_RE] = { "re", false, false, true, true, true },
};

/* Read one side of a step: a buffer, and a range of its chunks. */
static tutti_status read_side(const struct tti_msccl *m, const struct tti_msccl_step *step,
			      const char *buf_name, const char *off_name, uint8_t *buf,
			      int32_t *off)
{
	static const char *const bufs[] = { "i", "o", "s" };
	static const char *const chunks[] = { "i_chunks", "o_chunks", "s_chunks" };
	const int32_t rank = m->tbs.at[step->tb].gpu;
	int which = 0;
	int32_t room;

	TTI_TRY(tti_msccl_word(m, step->node, buf_name, bufs, 3, &which));
	TTI_TRY(tti_msccl_number(m, step->node, off_name, 0, TTI_MSCCL_CHUNKS_MAX - 1, off));
	room = m->gpu[rank].chunks[which];
	if (*off + step->cnt > room)
		return tti_xml_fail(m->doc, step->node,
				    "%s %d and cnt %d are out of range: gpu %d has %s=\"%d\"",
				    off_name, *off, step->cnt, rank, chunks[which], room);
	*buf = (uint8_t)which;
	return TUTTI_OK;
}

static tutti_status check_type(const struct tti_msccl *m, const struct tti_msccl_step *step)
{
	const struct tti_msccl_tb *tb = &m->tbs.at[step->tb];
	const char *name = types[step->type].name;

	if (types[step->type].sends && tb->send < 0)
		return tti_xml_fail(m->doc, step->node, "type %s sends, but tb %d has send=\"-1\"",
				    name, tb->id);
	if (types[step->type].recvs && tb->recv < 0)
		return tti_xml_fail(m->doc, step->node,
				    "type %s receives, but tb %d has recv=\"-1\"", name, tb->id);
	if (types[step->type].reduces && !tti_collective_reduces(m->coll))
		return tti_xml_fail(m->doc, step->node, "type %s reduces, which %s does not", name,
				    tutti_collective_name(m->coll));
	return TUTTI_OK;
}

tutti_status tti_msccl_read_step(struct tti_msccl *m, const struct tti_xml *node, int32_t tb)
{
	struct tti_msccl_step step = { .node = node, .tb = tb, .dep = -1 };
	struct tti_msccl_tb *in = &m->tbs.at[tb];
	const char *names[TTI_MSCCL_TYPES];
	int type = 0;
	int32_t number_here = 0;

	for (int i = 0; i < TTI_MSCCL_TYPES; i++)
		names[i] = types[i].name;
	TTI_TRY(tti_msccl_word(m, node, "type", names, TTI_MSCCL_TYPES, &type));
	step.type = (uint8_t)type;
	TTI_TRY(tti_msccl_number(m, node, "s", 0, INT32_MAX, &number_here));
	if (number_here != in->n)
		return tti_xml_fail(m->doc, node,
				    "s=\"%d\", but it is step %d of tb %d: steps "
				    "stand in their order",
				    number_here, in->n, in->id);
	TTI_TRY(check_type(m, &step));
	TTI_TRY(tti_msccl_number(m, node, "cnt", type == TTI_MSCCL_NOP ? 0 : 1,
				 TTI_MSCCL_CHUNKS_MAX, &step.cnt));
	if (types[type].has_src)
		TTI_TRY(read_side(m, &step, "srcbuf", "srcoff", &step.src, &step.srcoff));
	if (types[type].has_dst)
		TTI_TRY(read_side(m, &step, "dstbuf", "dstoff", &step.dst, &step.dstoff));
	if (!tti_vec_push(&m->steps, step))
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", m->doc->source);
	in->n++;
	return tti_msccl_children(m, node, NULL);
}

/* -- Dependencies ------------------------------------------------------------------ */

tutti_status tti_msccl_find_dependency(struct tti_msccl *m, int32_t index)
{
	struct tti_msccl_step *step = &m->steps.at[index];
	const struct tti_msccl_gpu *gpu = &m->gpu[m->tbs.at[step->tb].gpu];
	const struct tti_msccl_tb *tb = NULL;
	int32_t id = 0, number_there = 0, has = 0;

	TTI_TRY(tti_msccl_number(m, step->node, "depid", -1, TTI_MSCCL_TBS_MAX - 1, &id));
	TTI_TRY(tti_msccl_number(m, step->node, "deps", -1, INT32_MAX, &number_there));
	if (id < 0 && number_there < 0)
		return TUTTI_OK;
	for (int32_t i = gpu->first; i < gpu->first + gpu->n && !tb; i++)
		if (m->tbs.at[i].id == id)
			tb = &m->tbs.at[i];
	if (!tb)
		return tti_msccl_fail(m, index, "depends on tb %d, which gpu %d does not have", id,
				      m->tbs.at[step->tb].gpu);
	if (number_there < 0 || number_there >= tb->n)
		return tti_msccl_fail(m, index, "depends on step %d of tb %d, which has %d steps",
				      number_there, id, tb->n);
	step->dep = tb->first + number_there;
	if (tb == &m->tbs.at[step->tb] && step->dep >= index)
		return tti_msccl_fail(m, index, "depends on %s of its own thread block",
				      step->dep == index ? "itself" : "a later step");
	TTI_TRY(tti_msccl_number(m, m->steps.at[step->dep].node, "hasdep", 0, 1, &has));
	if (!has)
		return tti_msccl_fail(m, index,
				      "depends on tb %d step %d (line %u), which says "
				      "hasdep=\"0\"",
				      id, number_there, tti_msccl_line(m, step->dep));
	return TUTTI_OK;
}
