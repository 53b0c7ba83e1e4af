/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/files/text.h"

#include <string.h>

#include "util/error.h"
#include "util/mem.h"

const char *tti_text_before_peer(enum tti_step_kind kind)
{
	if (kind == TTI_WAIT)
		return "for";
	return kind == TTI_SEND || kind == TTI_PUT || kind == TTI_NOTIFY ? "to" : "from";
}

#define NAME_BYTES 64
#define WORDS_MAX  10 /* of the first line */

struct word {
	const char *at;
	size_t len;
};

struct reader {
	const char *at; /* what comes next */
	int line;       /* of the words    */
	struct word word[WORDS_MAX];
	int nwords;
	struct tti_program head;
	struct tti_program *prog; /* [head.n], nchunks 0: not seen yet; then the name */
	struct tti_program *rank; /* the one whose steps are read, NULL: none yet     */
	size_t nsteps;            /* of all ranks */
};

static bool is_word(struct word word, const char *text)
{
	return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

/* A number of at most 9 digits. */
static bool read_number(struct word word, int *out)
{
	int value = 0;

	if (word.len < 1 || word.len > 9)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
		value = 10 * value + (word.at[i] - '0');
	}
	*out = value;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The words of the next line that has any; nwords 0: the end. */
static tutti_status next_line(struct reader *r)
{
	r->nwords = 0;
	while (*r->at && !r->nwords) {
		r->line++;
		while (*r->at && *r->at != '\n' && *r->at != '#') {
			const char *from = r->at;

			if (is_blank(*r->at)) {
				r->at++;
				continue;
			}
			while (*r->at && !is_blank(*r->at) && *r->at != '\n' && *r->at != '#')
				r->at++;
			if (r->nwords == WORDS_MAX)
				return tti_fail_quiet(TUTTI_EINVAL, "line %d: too many words",
						      r->line);
			r->word[r->nwords++] = (struct word){ from, (size_t)(r->at - from) };
		}
		while (*r->at && *r->at != '\n')
			r->at++;
		if (*r->at)
			r->at++;
	}
	return TUTTI_OK;
}

static bool is_name(struct word word)
{
	if (word.len < 1 || word.len >= NAME_BYTES)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		const char c = word.at[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-' && c != '.')
			return false;
	}
	return true;
}

static tutti_collective find_collective(struct word word)
{
	int coll = 0;

	while (coll < TUTTI_COLLECTIVE_COUNT &&
	       !is_word(word, tutti_collective_name((tutti_collective)coll)))
		coll++;
	return (tutti_collective)coll;
}

/* How much of a word an error text quotes. */
static int quoted(struct word word)
{
	return word.len < 40 ? (int)word.len : 40;
}

static tutti_status check_head(const struct reader *r)
{
	const struct tti_program *head = &r->head;

	if (head->coll == TUTTI_COLLECTIVE_COUNT)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: no collective \"%.*s\"", r->line,
				      quoted(r->word[1]), r->word[1].at);
	if (!is_name(r->word[3]))
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: no name for an algorithm: \"%.*s\"",
				      r->line, quoted(r->word[3]), r->word[3].at);
	if (head->n < 1 || head->n > TTI_TEXT_RANKS_MAX)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: n %d: 1 to %d are possible", r->line,
				      head->n, TTI_TEXT_RANKS_MAX);
	if (head->root >= head->n)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: root %d of %d ranks", r->line,
				      head->root, head->n);
	if (head->nchunks < 1 || head->nchunks > TTI_TEXT_CHUNKS_MAX)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: chunks %d: 1 to %d are possible",
				      r->line, head->nchunks, TTI_TEXT_CHUNKS_MAX);
	return TUTTI_OK;
}

/* program COLLECTIVE algorithm NAME n N root R chunks C */
static tutti_status read_head(struct reader *r)
{
	const struct word *word = r->word;
	struct tti_program *head = &r->head;
	char *name;

	if (r->nwords != 10 || !is_word(word[0], "program") || !is_word(word[2], "algorithm") ||
	    !is_word(word[4], "n") || !is_word(word[6], "root") || !is_word(word[8], "chunks") ||
	    !read_number(word[5], &head->n) || !read_number(word[7], &head->root) ||
	    !read_number(word[9], &head->nchunks))
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"line %d: must be \"program COLLECTIVE algorithm NAME n RANKS "
			"root RANK chunks CHUNKS\"",
			r->line);
	head->coll = find_collective(word[1]);
	TTI_TRY(check_head(r));
	r->prog = tti_zalloc((size_t)head->n * sizeof(*r->prog) + NAME_BYTES);
	if (!r->prog)
		return tti_fail(TUTTI_ENOMEM, "programs of %d ranks: out of memory", head->n);
	name = (char *)(r->prog + head->n);
	memcpy(name, word[3].at, word[3].len);
	head->algorithm = name;
	return TUTTI_OK;
}

/* rank R [in_place] */
static tutti_status read_rank(struct reader *r)
{
	int rank;

	if (r->nwords < 2 || r->nwords > 3 || !read_number(r->word[1], &rank) ||
	    rank >= r->head.n || (r->nwords == 3 && !is_word(r->word[2], "in_place")))
		return tti_fail_quiet(TUTTI_EINVAL,
				      "line %d: must be \"rank R [in_place]\", R below %d", r->line,
				      r->head.n);
	r->rank = &r->prog[rank];
	if (r->rank->nchunks)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: rank %d was there before", r->line,
				      rank);
	*r->rank = r->head;
	r->rank->rank = rank;
	r->rank->in_place = r->nwords == 3;
	return TUTTI_OK;
}

/* KIND [chunk C] [to|from|for P] [stage S] [final], from word[0] on. */
static bool parse_step(const struct word *word, int nwords, int rank, struct tti_step *out)
{
	int kind = 0, at = 1;

	while (kind < TTI_STEP_KINDS && !is_word(word[0], tti_step_name((enum tti_step_kind)kind)))
		kind++;
	if (kind == TTI_STEP_KINDS)
		return false;
	*out = (struct tti_step){ .kind = (enum tti_step_kind)kind, .peer = rank };
	if (!tti_step_is_sync(out->kind)) {
		if (at + 2 > nwords || !is_word(word[at], "chunk") ||
		    !read_number(word[at + 1], &out->chunk))
			return false;
		at += 2;
	}
	if (out->kind != TTI_COPY) {
		if (at + 2 > nwords || !is_word(word[at], tti_text_before_peer(out->kind)) ||
		    !read_number(word[at + 1], &out->peer))
			return false;
		at += 2;
	}
	if (at + 2 <= nwords && is_word(word[at], "stage") &&
	    read_number(word[at + 1], &out->stage))
		at += 2;
	if ((out->kind == TTI_RECV_REDUCE || out->kind == TTI_GET_REDUCE) && at + 1 == nwords &&
	    is_word(word[at], "final")) {
		out->final = true;
		at++;
	}
	return at == nwords;
}

/* [NUMBER] STEP */
static tutti_status read_step(struct reader *r)
{
	const struct word *word = r->word;
	struct tti_step step;
	int nwords = r->nwords, number;

	if (!r->rank)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: a step before the first \"rank R\"",
				      r->line);
	if (nwords > 1 && read_number(word[0], &number)) {
		if ((size_t)number != r->rank->steps.n)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "line %d: number %d, but it is step %zu of rank %d",
					      r->line, number, r->rank->steps.n, r->rank->rank);
		word++;
		nwords--;
	}
	if (!parse_step(word, nwords, r->rank->rank, &step))
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"line %d: must be \"send chunk C to P\", \"recv chunk C from "
			"P\", \"recv_reduce chunk C from P [final]\", \"copy chunk C\", "
			"\"get chunk C from P\", \"get_reduce chunk C from P [final]\", "
			"\"put chunk C to P\", \"notify to P\" or \"wait for P\"",
			r->line);
	if (++r->nsteps > TTI_TEXT_STEPS_MAX)
		return tti_fail_quiet(TUTTI_EINVAL, "line %d: more than %d steps", r->line,
				      TTI_TEXT_STEPS_MAX);
	if (!tti_vec_push(&r->rank->steps, step))
		return tti_fail(TUTTI_ENOMEM, "step %zu of a program: out of memory", r->nsteps);
	return TUTTI_OK;
}

/* input chunk C, or output chunk C */
static tutti_status read_end(struct reader *r, uint8_t end)
{
	const bool is_stated = tti_collective_get(r->head.coll)->input == TTI_HOLDER_STATED;
	int chunk;

	if (!r->rank || !is_stated || r->nwords != 3 || !is_word(r->word[1], "chunk") ||
	    !read_number(r->word[2], &chunk) || chunk >= r->head.nchunks)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "line %d: must be \"%.*s chunk C\", C below %d, of a rank of "
				      "send_recv or handoff",
				      r->line, quoted(r->word[0]), r->word[0].at, r->head.nchunks);
	while (r->rank->ends.n < (size_t)r->head.nchunks)
		if (!tti_vec_push(&r->rank->ends, 0))
			return tti_fail(TUTTI_ENOMEM, "chunk %d of a program: out of memory",
					chunk);
	r->rank->ends.at[chunk] |= end;
	return TUTTI_OK;
}

static tutti_status read_all(struct reader *r)
{
	TTI_TRY(next_line(r));
	TTI_TRY(read_head(r));
	for (;;) {
		TTI_TRY(next_line(r));
		if (!r->nwords)
			break;
		if (is_word(r->word[0], "rank"))
			TTI_TRY(read_rank(r));
		else if (is_word(r->word[0], "input"))
			TTI_TRY(read_end(r, TTI_END_INPUT));
		else if (is_word(r->word[0], "output"))
			TTI_TRY(read_end(r, TTI_END_OUTPUT));
		else
			TTI_TRY(read_step(r));
	}
	for (int rank = 0; rank < r->head.n; rank++)
		if (!r->prog[rank].nchunks)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "line %d: the text ends without rank %d", r->line,
					      rank);
	return TUTTI_OK;
}

tutti_status tti_program_read(const char *text, struct tti_program **out, int *n)
{
	struct reader r = { .at = text };
	const tutti_status st = read_all(&r);

	if (st == TUTTI_OK) {
		*out = r.prog;
		*n = r.head.n;
		return TUTTI_OK;
	}
	for (int rank = 0; r.prog && rank < r.head.n; rank++)
		tti_program_release(&r.prog[rank]);
	tti_free(r.prog);
	return st;
}
