/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/files/algo_files.h"

#include <string.h>

#include "coll/check/check.h"
#include "coll/files/msccl.h"
#include "coll/files/text.h"
#include "util/error.h"
#include "util/file.h"
#include "util/hash.h"
#include "util/mem.h"

/* No file that a person or a tool writes comes near this. */
#define FILE_BYTES ((size_t)64 << 20)

/* -- One file ---------------------------------------------------------------------- */

/* Elements begin with <, programs with a word. */
static bool is_xml(const char *text, size_t nbytes)
{
	const size_t blank = strspn(text, " \t\r\n\xef\xbb\xbf");

	return blank < nbytes && text[blank] == '<';
}

static tutti_status read_programs(const char *text, size_t nbytes, const char *path,
				  struct tti_msccl_head *head, struct tti_program **prog)
{
	if (is_xml(text, nbytes))
		return tti_msccl_read(text, nbytes, path, head, prog);
	if (tti_program_read(text, prog, &head->n) != TUTTI_OK)
		return tti_fail(TUTTI_EINVAL, "%s: %s", path, tti_error_text());
	head->coll = (*prog)->coll;
	head->root = (*prog)->root;
	head->min_bytes = 0;
	head->max_bytes = SIZE_MAX;
	return TUTTI_OK;
}

static bool is_memory(const struct tti_algo_file *file)
{
	for (int rank = 0; rank < file->n; rank++)
		if (tti_program_is_memory(&file->prog[rank]))
			return true;
	return false;
}

/* Calls come in place or not, whatever the file says. Where that is another use of memory, both are
 * proven: of ranks that differ in it each is like one of these. */
static tutti_status prove_order(struct tti_algo_file *file, enum tti_order order)
{
	const bool both = file->algo.needs_memory || tti_collective_is_by_pair(file->algo.coll);

	for (int in_place = 0; in_place <= both; in_place++) {
		for (int rank = 0; rank < file->n; rank++)
			file->prog[rank].in_place = in_place;
		TTI_TRY(tti_program_check(file->prog, file->n, 1, order));
	}
	return TUTTI_OK;
}

/* That they do what they shall, and in which order: of orders the one that keeps most. */
static tutti_status prove(struct tti_algo_file *file)
{
	for (int order = TTI_ORDER_ONE_PASS; order >= TTI_ORDER_ANY; order--) {
		const tutti_status st = prove_order(file, (enum tti_order)order);

		file->algo.order = (enum tti_order)order;
		if (st != TUTTI_EINVAL)
			return st;
	}
	return tti_fail(TUTTI_EINVAL, "%s: as programs%s: %s", file->path,
			file->prog->in_place ? ", in place" : "", tti_error_text());
}

tutti_status tti_algo_file_read(const char *text, size_t nbytes, const char *path,
				struct tti_algo_file **out)
{
	struct tti_msccl_head head;
	struct tti_algo_file *file = tti_zalloc(sizeof(*file) + strlen(path) + 1);
	tutti_status st;

	if (!file)
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", path);
	memcpy(file->path, path, strlen(path) + 1);
	st = read_programs(text, nbytes, path, &head, &file->prog);
	if (st == TUTTI_OK) {
		file->n = head.n;
		file->root = head.root;
		file->min_bytes = head.min_bytes;
		file->max_bytes = head.max_bytes;
		file->algo = (struct tti_algorithm){ .name = file->prog->algorithm,
						     .coll = head.coll,
						     .help = "from a file",
						     .needs_memory = is_memory(file),
						     .programs = file->prog };
		st = prove(file);
	}
	if (st == TUTTI_OK)
		*out = file;
	else
		tti_algo_file_free(file);
	return st;
}

void tti_algo_file_free(struct tti_algo_file *file)
{
	if (!file)
		return;
	for (int rank = 0; file->prog && rank < file->n; rank++)
		tti_program_release(&file->prog[rank]);
	tti_free(file->prog);
	tti_free(file);
}

/* -- Several ----------------------------------------------------------------------- */

static tutti_status add(struct tti_algo_files *files, const char *path)
{
	struct tti_algo_file *file;
	size_t nbytes;
	char *text;
	tutti_status st;

	TTI_TRY(tti_file_read(path, "TUTTI_ALGO_FILE", FILE_BYTES, &text, &nbytes));
	st = nbytes > FILE_BYTES
		     ? tti_fail(TUTTI_EINVAL, "%s has more than %zu bytes", path, FILE_BYTES)
		     : tti_algo_file_read(text, nbytes, path, &file);
	tti_free(text);
	if (st != TUTTI_OK)
		return st;
	for (size_t i = 0; i < files->files.n; i++) {
		const struct tti_algo_file *other = files->files.at[i];

		if (other->algo.coll == file->algo.coll && other->n == file->n &&
		    strcmp(other->algo.name, file->algo.name) == 0) {
			st = tti_fail(
				TUTTI_EINVAL,
				"%s and %s are both called %s, for %s of %d ranks: rename one",
				other->path, path, file->algo.name,
				tutti_collective_name(file->algo.coll), file->n);
			tti_algo_file_free(file);
			return st;
		}
	}
	if (tti_vec_push(&files->files, file))
		return TUTTI_OK;
	tti_algo_file_free(file);
	return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", path);
}

tutti_status tti_algo_files_read(const char *list, struct tti_algo_files **out)
{
	struct tti_algo_files *files = tti_zalloc(sizeof(*files));
	char *paths = tti_strdup(list);
	tutti_status st = TUTTI_OK;

	if (!files || !paths)
		st = tti_fail(TUTTI_ENOMEM, "TUTTI_ALGO_FILE: out of memory");
	for (char *at = paths, *end; st == TUTTI_OK && at; at = end) {
		end = strchr(at, ':');
		if (end)
			*end++ = '\0';
		if (*at)
			st = add(files, at);
	}
	tti_free(paths);
	if (st == TUTTI_OK)
		*out = files;
	else
		tti_algo_files_free(files);
	return st;
}

void tti_algo_files_free(struct tti_algo_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->files.n; i++)
		tti_algo_file_free(files->files.at[i]);
	tti_vec_release(&files->files);
	tti_free(files);
}

static uint64_t hash_program(const struct tti_program *prog)
{
	uint64_t hash = (uint64_t)prog->nchunks;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];

		hash = tti_hash_combine(hash, (uint64_t)step->stage << 8 |
						      (uint64_t)step->kind << 1 | step->final);
		hash = tti_hash_combine(hash, (uint64_t)step->chunk << 32 | (uint32_t)step->peer);
	}
	return hash;
}

uint64_t tti_algo_files_hash(const struct tti_algo_files *files)
{
	uint64_t hash = 0;

	for (size_t i = 0; files && i < files->files.n; i++) {
		const struct tti_algo_file *file = files->files.at[i];

		hash = tti_hash_combine(hash,
					tti_hash_bytes(file->algo.name, strlen(file->algo.name)));
		hash = tti_hash_combine(hash,
					(uint64_t)file->algo.coll << 32 | (uint32_t)file->root);
		hash = tti_hash_combine(hash, file->min_bytes);
		hash = tti_hash_combine(hash, file->max_bytes);
		for (int rank = 0; rank < file->n; rank++)
			hash = tti_hash_combine(hash, hash_program(&file->prog[rank]));
	}
	return hash;
}

int tti_algo_files_find(const struct tti_algo_files *files, tutti_collective coll, int n, int root,
			size_t nbytes)
{
	for (size_t i = 0; files && i < files->files.n; i++) {
		const struct tti_algo_file *file = files->files.at[i];

		if (file->algo.coll == coll && file->n == n &&
		    (file->root == root || !tti_collective_is_rooted(coll)) &&
		    file->min_bytes <= nbytes && nbytes <= file->max_bytes)
			return (int)i;
	}
	return -1;
}
