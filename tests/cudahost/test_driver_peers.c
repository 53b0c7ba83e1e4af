/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: memory of one process and device that another process and device use, how it gets
 * there, and the pairs of devices that may not, or that get other memory. */
#include "alone.h"

#include <sys/syscall.h>

#include "driver/driver_api.h"
#include "engine/host_abi.h"
#include "engine/memory.h"

enum { MINE = 0x5a, THEIRS = 0x3c, NBYTES = TTI_CUDA_GRANULARITY };

/* The variables of a test, each with its value; NULL ends them. */
struct settings {
	const char *name[3], *value[3];
};

static void begin_on(int ordinal, const struct settings *settings)
{
	CUcontext context;

	setenv("TUTTI_CUDAHOST_GPUS", "3", 1);
	for (int i = 0; i < 3 && settings->name[i]; i++)
		setenv(settings->name[i], settings->value[i], 1);
	GOOD(cuInit(0));
	GOOD(cuDevicePrimaryCtxRetain(&context, ordinal));
	GOOD(cuCtxSetCurrent(context));
}

/* -- The process that has the memory ------------------------------------------------------- */

struct offer {
	CUipcMemHandle ipc;
	int pid, fd;
};

struct owner {
	int socket, theirs;
	pid_t pid;
	const struct settings *settings;
	struct offer offer;
	int fd; /* that came over the socket */
};

static const CUmemAllocationProp shared = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static CUdeviceptr map(CUmemGenericAllocationHandle handle, int ordinal)
{
	const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, ordinal },
					 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr at;

	GOOD(cuMemAddressReserve(&at, NBYTES, 0, 0, 0));
	GOOD(cuMemMap(at, NBYTES, 0, handle, 0));
	GOOD(cuMemSetAccess(at, NBYTES, &access, 1));
	return at;
}

static void unmap(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
	GOOD(cuMemUnmap(at, NBYTES));
	GOOD(cuMemAddressFree(at, NBYTES));
	GOOD(cuMemRelease(handle));
}

static unsigned char byte_at(CUdeviceptr at)
{
	unsigned char byte;

	GOOD(cuMemcpyDtoH_v2(&byte, at + NBYTES / 2, 1));
	return byte;
}

static void fill(CUdeviceptr at, unsigned char byte)
{
	GOOD(cuMemsetD8_v2(at, byte, NBYTES));
	GOOD(cuCtxSynchronize());
}

/* With the file as ancillary data (unix(7)). */
static void send_offer(int socket, const struct offer *offer)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { (void *)(uintptr_t)offer, sizeof(*offer) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	struct cmsghdr *part;

	if (offer->fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(part), &offer->fd, sizeof(int));
	}
	CHECK(sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*offer));
}

static int recv_offer(int socket, struct offer *out)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = { out, sizeof(*out) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	CHECK(recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(*out));
	if (CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Fills both kinds of memory with MINE, offers them, and says of each request what is there. */
static void own(void *arg)
{
	const struct owner *const self = arg;
	struct offer offer = { .pid = getpid(), .fd = -1 };
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr piece = 0, plain;
	unsigned char found[2];
	int has_vmm;
	char request;

	close(self->socket);
	begin_on(0, self->settings);
	GOOD(cuDeviceGetAttribute(&has_vmm, (CUdevice_attribute)102, 0));
	GOOD(cuMemAlloc_v2(&plain, NBYTES));
	GOOD(cuIpcGetMemHandle(&offer.ipc, plain));
	if (has_vmm) {
		GOOD(cuMemCreate(&handle, NBYTES, &shared, 0));
		GOOD(cuMemExportToShareableHandle(&offer.fd, handle,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		piece = map(handle, 0);
		fill(piece, MINE);
	}
	fill(plain, MINE);
	send_offer(self->theirs, &offer);
	while (recv(self->theirs, &request, 1, 0) == 1) {
		found[0] = has_vmm ? byte_at(piece) : 0;
		found[1] = byte_at(plain);
		alone_send(self->theirs, found, sizeof(found));
	}
	if (has_vmm) {
		unmap(piece, handle);
		close(offer.fd);
	}
	GOOD(cuMemFree_v2(plain));
}

static void start(struct owner *self, const struct settings *settings, int ordinal)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	*self = (struct owner){ .socket = ends[0], .theirs = ends[1], .settings = settings };
	self->pid = alone_start(own, self);
	close(self->theirs);
	begin_on(ordinal, settings);
	self->fd = recv_offer(self->socket, &self->offer);
}

static void look(const struct owner *self, unsigned char found[2])
{
	alone_send(self->socket, "?", 1);
	alone_recv(self->socket, found, 2);
}

static void end(struct owner *self)
{
	close(self->socket);
	if (self->fd >= 0)
		close(self->fd);
	CHECK(alone_wait(self->pid) == 0);
}

/* -- Between processes --------------------------------------------------------------------- */

static const struct settings none, guarded = { { "TUTTI_CUDAHOST_GUARD" }, { "1" } };

/* What is at another process's descriptor. */
static int take_fd(const struct offer *offer)
{
	const int process = (int)syscall(SYS_pidfd_open, offer->pid, 0);
	int fd;

	if (process < 0)
		_exit(ALONE_UNTESTED);
	fd = (int)syscall(SYS_pidfd_getfd, process, offer->fd, 0);
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* the system does not allow it */
		_exit(ALONE_UNTESTED);
	CHECK(fd >= 0);
	close(process);
	return fd;
}

static CUdeviceptr import(int fd, int ordinal, CUmemGenericAllocationHandle *handle)
{
	GOOD(cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	return map(*handle, ordinal);
}

static void use_by_socket(void *settings)
{
	CUmemGenericAllocationHandle handle;
	struct tti_cuda_held before, after;
	unsigned char found[2];
	struct owner owner;
	CUdeviceptr at;

	start(&owner, settings, 1);
	tti_cuda_held(&before);
	at = import(owner.fd, 1, &handle);
	CHECK(byte_at(at) == MINE);
	fill(at, THEIRS);
	look(&owner, found);
	CHECK(found[0] == THEIRS && found[1] == MINE);
	unmap(at, handle);
	tti_cuda_held(&after);
	CHECK(memcmp(&before, &after, sizeof(after)) == 0);
	end(&owner);
}

static void use_by_process(void *settings)
{
	CUmemGenericAllocationHandle handle;
	struct owner owner;
	CUdeviceptr at;
	int fd;

	start(&owner, settings, 1);
	fd = take_fd(&owner.offer);
	at = import(fd, 1, &handle);
	close(fd); /* the import has its own */
	CHECK(byte_at(at) == MINE);
	unmap(at, handle);
	end(&owner);
}

static void use_by_handle(void *settings)
{
	struct tti_cuda_held before, opened, after;
	unsigned char found[2];
	struct owner owner;
	CUdeviceptr at;

	start(&owner, settings, 1);
	tti_cuda_held(&before);
	GOOD(cuIpcOpenMemHandle_v2(&at, owner.offer.ipc, 1));
	tti_cuda_held(&opened);
	CHECK(opened.opened == before.opened + 1 && opened.descriptors == before.descriptors);
	CHECK(byte_at(at) == MINE);
	fill(at, THEIRS);
	look(&owner, found);
	CHECK(found[0] == (owner.fd >= 0 ? MINE : 0) && found[1] == THEIRS);
	GOOD(cuIpcCloseMemHandle(at));
	tti_cuda_held(&after);
	CHECK(memcmp(&before, &after, sizeof(after)) == 0);
	end(&owner);
}

static void memory_goes_over_a_socket(void **state)
{
	(void)state;
	alone_run(use_by_socket, (void *)(uintptr_t)&none);
	alone_run(use_by_socket, (void *)(uintptr_t)&guarded);
}

static void memory_is_taken_from_a_process(void **state)
{
	(void)state;
	alone_run(use_by_process, (void *)(uintptr_t)&none);
}

static void memory_has_a_handle(void **state)
{
	(void)state;
	alone_run(use_by_handle, (void *)(uintptr_t)&none);
	alone_run(use_by_handle, (void *)(uintptr_t)&guarded);
}

/* -- A kernel ------------------------------------------------------------------------------ */

static int write_theirs(void **args, const unsigned grid[3], const unsigned block[3],
			size_t shared_bytes)
{
	(void)grid, (void)block, (void)shared_bytes;
	memset(tti_cuda_reach(*(CUdeviceptr *)args[0]), THEIRS, NBYTES);
	return 0;
}

static void use_by_kernel(void *settings)
{
	static const size_t nbytes = sizeof(CUdeviceptr);
	CUmemGenericAllocationHandle handle;
	unsigned char found[2];
	CUfunction function;
	struct owner owner;
	CUdeviceptr at[2];
	CUmodule module;

	start(&owner, settings, 1);
	GOOD(tti_cuda_kernel_register(NULL, "write_theirs", write_theirs, &nbytes, 1));
	GOOD(cuModuleLoadData(&module, ".version 7.0\n"));
	GOOD(cuModuleGetFunction(&function, module, "write_theirs"));
	at[0] = import(owner.fd, 1, &handle);
	GOOD(cuIpcOpenMemHandle_v2(&at[1], owner.offer.ipc, 1));
	for (int i = 0; i < 2; i++)
		GOOD(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &at[i] },
				    NULL));
	GOOD(cuCtxSynchronize());
	look(&owner, found);
	CHECK(found[0] == THEIRS && found[1] == THEIRS);
	unmap(at[0], handle);
	GOOD(cuIpcCloseMemHandle(at[1]));
	GOOD(cuModuleUnload(module));
	end(&owner);
}

static void a_kernel_reaches_guarded_memory_of_others(void **state)
{
	(void)state;
	alone_run(use_by_kernel, (void *)(uintptr_t)&guarded);
	alone_run(use_by_kernel, (void *)(uintptr_t)&none);
}

/* -- Pairs that lie ------------------------------------------------------------------------ */

static void get_other_memory(void *settings)
{
	CUmemGenericAllocationHandle handle, true_handle;
	struct tti_cuda_held before, after;
	CUdeviceptr piece, plain, true_piece;
	unsigned char found[2];
	struct owner owner;

	start(&owner, settings, 1);
	tti_cuda_held(&before);
	true_piece = import(owner.fd, 2, &true_handle); /* only 0 and 1 lie to each other */
	CHECK(byte_at(true_piece) == MINE);
	piece = import(owner.fd, 1, &handle);
	GOOD(cuIpcOpenMemHandle_v2(&plain, owner.offer.ipc, 1));
	CHECK(byte_at(piece) == 0 && byte_at(plain) == 0);
	fill(piece, THEIRS);
	fill(plain, THEIRS);
	CHECK(byte_at(piece) == THEIRS && byte_at(plain) == THEIRS);
	look(&owner, found);
	CHECK(found[0] == MINE && found[1] == MINE);
	CHECK(byte_at(true_piece) == MINE);
	GOOD(cuIpcCloseMemHandle(plain));
	unmap(piece, handle);
	unmap(true_piece, true_handle);
	tti_cuda_held(&after);
	CHECK(memcmp(&before, &after, sizeof(after)) == 0);
	end(&owner);
}

static void a_pair_that_lies_has_other_memory(void **state)
{
	struct settings lying = { { "TUTTI_CUDAHOST_LIE" }, { "0-1" } };

	(void)state;
	alone_run(get_other_memory, &lying);
	lying.name[1] = "TUTTI_CUDAHOST_GUARD";
	lying.value[0] = "1-2,1-0";
	lying.value[1] = "1";
	alone_run(get_other_memory, &lying);
}

/* -- Pairs without access ------------------------------------------------------------------ */

static void be_refused(void *settings)
{
	const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
					 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const CUresult no = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	CUmemGenericAllocationHandle handle;
	struct owner owner;
	CUcontext context;
	CUdeviceptr at;
	int can;

	start(&owner, settings, 1);
	GOOD(cuDeviceCanAccessPeer(&can, 1, 0));
	CHECK(!can);
	GOOD(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	CHECK(!can);
	GOOD(cuDevicePrimaryCtxRetain(&context, 0));
	FAILS(no, "TUTTI_CUDAHOST_NO_PEER", cuCtxEnablePeerAccess(context, 0));
	FAILS(no, "device 0", cuIpcOpenMemHandle_v2(&at, owner.offer.ipc, 1));
	GOOD(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)owner.fd,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	GOOD(cuMemAddressReserve(&at, NBYTES, 0, 0, 0));
	GOOD(cuMemMap(at, NBYTES, 0, handle, 0));
	FAILS(no, "cuMemSetAccess", cuMemSetAccess(at, NBYTES, &access, 1));
	unmap(at, handle);
	GOOD(cuDeviceCanAccessPeer(&can, 2, 0));
	CHECK(can);
	at = import(owner.fd, 2, &handle);
	CHECK(byte_at(at) == MINE);
	unmap(at, handle);
	end(&owner);
}

static void a_pair_without_access_is_refused(void **state)
{
	const struct settings refused = { { "TUTTI_CUDAHOST_NO_PEER" }, { "0-1" } };

	(void)state;
	alone_run(be_refused, (void *)(uintptr_t)&refused);
}

/* -- Without memory apart from addresses --------------------------------------------------- */

static void handles_are_left_without_vmm(void **state)
{
	const struct settings without = { { "TUTTI_CUDAHOST_VMM" }, { "0" } };

	(void)state;
	alone_run(use_by_handle, (void *)(uintptr_t)&without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_goes_over_a_socket),
		cmocka_unit_test(memory_is_taken_from_a_process),
		cmocka_unit_test(memory_has_a_handle),
		cmocka_unit_test(a_kernel_reaches_guarded_memory_of_others),
		cmocka_unit_test(a_pair_that_lies_has_other_memory),
		cmocka_unit_test(a_pair_without_access_is_refused),
		cmocka_unit_test(handles_are_left_without_vmm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
