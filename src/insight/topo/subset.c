/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/subset.h"

#include <stdlib.h>
#include <string.h>

#include "topo/graph/words.h"
#include "topo/tree/busid.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* The target of a GPU's link: a function of a host. */
struct function {
	uint64_t host, busid;
};

struct subset {
	struct tti_xml_doc *doc;
	const struct tti_graph *graph;
	bool *keep;                         /* of each GPU of the graph, in the order of names */
	TTI_VEC(struct tti_xml *) elements; /* of each GPU */
	TTI_VEC(struct function) gone;
	TTI_VEC(struct tti_xml *) links; /* that lead to what is gone */
};

static tutti_status no_memory(const struct subset *s)
{
	return tti_fail(TUTTI_ENOMEM, "GPUs of %s: out of memory", s->doc->source);
}

static const struct tti_node *gpu_at(const struct subset *s, uint32_t i)
{
	return &s->graph->nodes[s->graph->by_type[TTI_NODE_GPU][i]];
}

static uint32_t count_gpus(const struct subset *s)
{
	return s->graph->ntype[TTI_NODE_GPU];
}

/* -- The list --------------------------------------------------------------------------- */

/* "it has GPU0-7", or their bus ids. */
static tutti_status refuse(const struct subset *s, const char *list, size_t len, const char *why,
			   bool busids)
{
	const char **names = tti_calloc((size_t)count_gpus(s) + 1, sizeof(*names));
	struct tti_strbuf has = { 0 };
	tutti_status st;
	char *text;

	if (!names)
		return no_memory(s);
	for (uint32_t i = 0; i < count_gpus(s); i++) {
		const struct tti_node *gpu = gpu_at(s, i);

		names[i] = busids ? s->graph->nodes[gpu->parent].name : gpu->full_name;
	}
	if (busids)
		for (uint32_t i = 0; i < count_gpus(s); i++)
			tti_strbuf_addf(&has, "%s%s", i ? ", " : "", names[i]);
	else
		tti_words_names(names, count_gpus(s), &has);
	tti_free(names);
	text = tti_strbuf_take(&has);
	if (!text)
		return no_memory(s);
	st = tti_fail(TUTTI_EINVAL, "GPUs '%.*s': %s: %s has %s", (int)(len < 64 ? len : 64), list,
		      why, s->doc->source, *text ? text : "no GPU");
	tti_free(text);
	return st;
}

static tutti_status take(struct subset *s, uint32_t i, const char *word, size_t len)
{
	if (s->keep[i])
		return refuse(s, word, len, "this GPU is named twice", false);
	s->keep[i] = true;
	return TUTTI_OK;
}

/* Parts of a partitioned GPU have one bus id. */
static tutti_status take_busid(struct subset *s, uint64_t busid, const char *word, size_t len)
{
	uint32_t device = TTI_NODE_NONE;

	for (uint32_t i = 0; i < count_gpus(s); i++) {
		const uint32_t parent = gpu_at(s, i)->parent;

		if (s->graph->nodes[parent].pci.busid != busid)
			continue;
		if (device != TTI_NODE_NONE && device != parent)
			return refuse(s, word, len, "several hosts have that, name it as HOST/GPU0",
				      false);
		device = parent;
		TTI_TRY(take(s, i, word, len));
	}
	if (device == TTI_NODE_NONE)
		return refuse(s, word, len, "no GPU has that bus id", true);
	return TUTTI_OK;
}

/* The number of GPUs that a name may mean, the first of them in *out. */
static uint32_t find_name(const struct subset *s, const char *name, uint32_t *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count_gpus(s); i++) {
		const struct tti_node *gpu = gpu_at(s, i);

		if (strcmp(gpu->full_name, name) == 0) {
			*out = i;
			return 1;
		}
		if (strcmp(gpu->name, name) == 0 && n++ == 0)
			*out = i;
	}
	return n;
}

/* "3" and "HOST/3" mean GPU3. */
static tutti_status take_name(struct subset *s, const char *name, const char *word, size_t len)
{
	const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
	const bool number = *bare && !bare[strspn(bare, "0123456789")];
	struct tti_strbuf buf = { 0 };
	uint32_t found = 0, n;
	char *full;

	tti_strbuf_addf(&buf, "%.*s%s%s", (int)(bare - name), name, number ? "GPU" : "", bare);
	full = tti_strbuf_take(&buf);
	if (!full)
		return no_memory(s);
	n = find_name(s, full, &found);
	tti_free(full);
	if (n == 0)
		return refuse(s, word, len, "there is no such GPU", false);
	if (n > 1)
		return refuse(s, word, len, "several hosts have that, name it as HOST/0", false);
	return take(s, found, word, len);
}

/* "2-5" */
static bool read_range(const char *word, unsigned *from, unsigned *to)
{
	const size_t first = strspn(word, "0123456789");
	const size_t second = word[first] == '-' ? strspn(word + first + 1, "0123456789") : 0;

	if (!first || !second || first > 6 || second > 6 || word[first + 1 + second])
		return false;
	*from = (unsigned)strtoul(word, NULL, 10);
	*to = (unsigned)strtoul(word + first + 1, NULL, 10);
	return *from <= *to;
}

/* The GPUs from .. to of the host that `word` begins with, if it names one. */
static tutti_status take_range(struct subset *s, const char *word, size_t host, unsigned from,
			       unsigned to)
{
	tutti_status st = TUTTI_OK;

	for (unsigned gpu = from; gpu <= to && st == TUTTI_OK; gpu++) {
		struct tti_strbuf name = { 0 };
		char *text;

		tti_strbuf_addf(&name, "%.*s%u", (int)host, word, gpu);
		text = tti_strbuf_take(&name);
		st = text ? take_name(s, text, word, strlen(word)) : no_memory(s);
		tti_free(text);
	}
	return st;
}

static tutti_status take_word(struct subset *s, const char *word)
{
	const char *slash = strrchr(word, '/'), *bare = slash ? slash + 1 : word;
	unsigned from, to;
	uint64_t busid;

	if (tti_busid_parse(word, &busid))
		return take_busid(s, busid, word, strlen(word));
	if (read_range(bare, &from, &to))
		return take_range(s, word, (size_t)(bare - word), from, to);
	return take_name(s, word, word, strlen(word));
}

static tutti_status read_list(struct subset *s, const char *list)
{
	while (true) {
		const size_t len = strcspn(list, ",");
		char *word = strndup(list, len);
		tutti_status st = word ? take_word(s, word) : no_memory(s);

		free(word);
		if (st != TUTTI_OK || !list[len])
			return st;
		list += len + 1;
	}
}

/* -- Taking away ------------------------------------------------------------------------ */

static uint64_t host_of(const struct tti_xml *element)
{
	while (element && !tti_xml_is(element, "cpu"))
		element = element->parent;
	return element ? tti_schema_host(element) : 0;
}

struct numbered {
	uint32_t element, gpu;
};

static int by_element(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	return (a->element > b->element) - (a->element < b->element);
}

/* The graph knows elements by their numbers. */
static tutti_status find_elements(struct subset *s)
{
	const uint32_t ngpus = count_gpus(s);
	struct numbered *order = tti_calloc((size_t)ngpus + 1, sizeof(*order));
	uint32_t number = 0, next = 0;

	if (!order || !tti_vec_reserve((void **)&s->elements.at, &s->elements.room,
				       (size_t)ngpus + 1, sizeof(*s->elements.at))) {
		tti_free(order);
		return no_memory(s);
	}
	s->elements.n = ngpus;
	for (uint32_t i = 0; i < ngpus; i++)
		order[i] = (struct numbered){ gpu_at(s, i)->element, i };
	if (ngpus)
		qsort(order, ngpus, sizeof(*order), by_element);
	for (struct tti_xml *at = s->doc->root; at && next < ngpus; at = tti_xml_walk(at), number++)
		while (next < ngpus && order[next].element == number)
			s->elements.at[order[next++].gpu] = at;
	tti_free(order);
	if (next == ngpus)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINTERNAL, "a GPU of %s is not in its document", s->doc->source);
}

/* A device goes with the last of its GPUs. */
static tutti_status remove_gpu(struct subset *s, uint32_t i)
{
	struct tti_xml *element = s->elements.at[i], *pci = element;
	const struct tti_node *device = &s->graph->nodes[gpu_at(s, i)->parent];
	const struct function function = { host_of(element), device->pci.busid };

	if (tti_xml_is(element, "gpu")) {
		pci = element->parent;
		tti_xml_unlink(element);
		if (tti_xml_find(pci, "gpu", NULL, NULL))
			return TUTTI_OK;
	}
	if (!tti_xml_find(pci, NULL, NULL, NULL))
		tti_xml_unlink(pci);
	return tti_vec_push(&s->gone, function) ? TUTTI_OK : no_memory(s);
}

static int by_function(const void *left, const void *right)
{
	const struct function *a = left, *b = right;

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	return (a->busid > b->busid) - (a->busid < b->busid);
}

static tutti_status remove_links(struct subset *s)
{
	if (s->gone.n == 0)
		return TUTTI_OK;
	qsort(s->gone.at, s->gone.n, sizeof(*s->gone.at), by_function);
	for (struct tti_xml *at = s->doc->root; at; at = tti_xml_walk(at)) {
		struct function to = { 0, 0 };
		const char *target = tti_xml_is(at, "nvlink") || tti_xml_is(at, "xgmi")
					     ? tti_xml_get(at, "target")
					     : NULL;

		if (!target || !tti_busid_parse(target, &to.busid))
			continue;
		to.host = host_of(at);
		if (bsearch(&to, s->gone.at, s->gone.n, sizeof(to), by_function) &&
		    !tti_vec_push(&s->links, at))
			return no_memory(s);
	}
	for (size_t i = 0; i < s->links.n; i++)
		tti_xml_unlink(s->links.at[i]);
	return TUTTI_OK;
}

/* GPUs that a driver has not numbered are numbered here; ranks have no gaps. */
static tutti_status number_gpu(struct subset *s, uint32_t i)
{
	const struct tti_node *gpu = gpu_at(s, i);
	struct tti_xml *element = s->elements.at[i];
	uint32_t before = 0;

	if (gpu->gpu.dev < 0 &&
	    !tti_xml_setf(s->doc, element, "tutti_number", "%lu",
			  strtoul(gpu->name + strcspn(gpu->name, "0123456789"), NULL, 10)))
		return no_memory(s);
	if (gpu->gpu.rank < 0)
		return TUTTI_OK;
	for (uint32_t k = 0; k < count_gpus(s); k++)
		before += s->keep[k] && gpu_at(s, k)->gpu.rank >= 0 &&
			  gpu_at(s, k)->gpu.rank < gpu->gpu.rank;
	return tti_xml_setf(s->doc, element, "rank", "%u", before) ? TUTTI_OK : no_memory(s);
}

static tutti_status apply(struct subset *s)
{
	struct tti_strbuf names = { 0 };
	bool first = true, good;
	char *text;

	TTI_TRY(find_elements(s));
	for (uint32_t i = 0; i < count_gpus(s); i++) {
		if (!s->keep[i]) {
			TTI_TRY(remove_gpu(s, i));
			continue;
		}
		TTI_TRY(number_gpu(s, i));
		tti_strbuf_addf(&names, "%s%s", first ? "" : ",", gpu_at(s, i)->full_name);
		first = false;
	}
	TTI_TRY(remove_links(s));
	text = tti_strbuf_take(&names);
	good = text && tti_xml_set(s->doc, s->doc->root, "tutti_gpus", text);
	tti_free(text);
	return good ? TUTTI_OK : no_memory(s);
}

static tutti_status begin(struct subset *s)
{
	s->keep = tti_calloc((size_t)count_gpus(s) + 1, sizeof(*s->keep));
	return s->keep ? TUTTI_OK : no_memory(s);
}

static void end(struct subset *s)
{
	tti_vec_release(&s->elements);
	tti_vec_release(&s->gone);
	tti_vec_release(&s->links);
	tti_free(s->keep);
}

/* -- Which GPUs ------------------------------------------------------------------------- */

tutti_status tti_subset_gpus(struct tti_xml_doc *doc, const char *list)
{
	struct tti_graph *graph = NULL;
	struct subset s = { .doc = doc };
	tutti_status st;

	TTI_TRY(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph));
	s.graph = graph;
	st = begin(&s);
	if (st == TUTTI_OK)
		st = read_list(&s, list);
	if (st == TUTTI_OK)
		st = apply(&s);
	end(&s);
	tti_graph_free(graph);
	return st;
}

bool tti_subset_has_ranks(const struct tti_graph *graph)
{
	bool with = false, without = false;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_GPU]; i++) {
		const bool has = graph->nodes[graph->by_type[TTI_NODE_GPU][i]].gpu.rank >= 0;

		with |= has;
		without |= !has;
	}
	return with && without;
}

tutti_status tti_subset_ranks(struct tti_xml_doc *doc, const struct tti_graph *graph)
{
	struct subset s = { .doc = doc, .graph = graph };
	tutti_status st = begin(&s);

	for (uint32_t i = 0; st == TUTTI_OK && i < count_gpus(&s); i++)
		s.keep[i] = gpu_at(&s, i)->gpu.rank >= 0;
	if (st == TUTTI_OK)
		st = apply(&s);
	end(&s);
	return st;
}
