/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/secret.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

#include "util/fault.h"
#include "util/sanitizer.h"

#if TTI_HAS_LSAN /* it looks for pointers in pages that it is told of */
#include <sanitizer/lsan_interface.h>
#define leak_root_add  __lsan_register_root_region
#define leak_root_drop __lsan_unregister_root_region
#else
#define leak_root_add(begin, nbytes)  ((void)0)
#define leak_root_drop(begin, nbytes) ((void)0)
#endif

/* In front of what is given out. */
struct head {
	alignas(64) size_t nbytes; /* of all of it */
};

void *tti_secret_zalloc(size_t nbytes)
{
	struct head *head;

	nbytes += sizeof(*head);
	if (tti_fault("mem")) {
		errno = ENOMEM;
		return NULL;
	}
	head = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (head == MAP_FAILED)
		return NULL;
	if (madvise(head, nbytes, MADV_DONTDUMP) < 0) {
		munmap(head, nbytes);
		return NULL;
	}
	head->nbytes = nbytes;
	leak_root_add(head, nbytes);
	return head + 1;
}

void tti_secret_free(void *memory)
{
	if (!memory)
		return;

	struct head *head = (struct head *)memory - 1;
	const size_t nbytes = head->nbytes;

	leak_root_drop(head, nbytes);
	explicit_bzero(head, nbytes);
	munmap(head, nbytes);
}
