/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a flag takes from one who writes it to one who awaits it, and back: between blocks, with the
 * host, and between processes that share memory of the device.
 *
 *     flags */
#include "gpu.h"

#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- Between blocks, and with the host ---------------------------------------------------------- */

enum order { OF_DEVICE, OF_SYSTEM };

template <order ORDER> static __device__ word load(const word *at)
{
	word value;

	if (ORDER == OF_DEVICE)
		asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
			     : "=l"(value)
			     : "l"(at)
			     : "memory");
	else
		asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
			     : "=l"(value)
			     : "l"(at)
			     : "memory");
	return value;
}

template <order ORDER> static __device__ void store(word *at, word value)
{
	if (ORDER == OF_DEVICE)
		asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value)
			     : "memory");
	else
		asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value)
			     : "memory");
}

struct flags {
	word *mine;         /* this side writes them */
	const word *theirs; /* and awaits these */
};

/* Some two seconds of a multiprocessor's clock. */
#define LIMIT (word(1) << 32)

/* `rounds` times to and fro between the sides 0 and 1: block i is side + i. Gives up when one waits for
 * longer than LIMIT in all. How many rounds there were stands in done. */
template <order ORDER, int SLEEP>
__global__ void bounce(const flags both[2], int side, word rounds, word *done)
{
	const int me = side + blockIdx.x;
	const flags f = both[me];
	const word from = clock64();
	word round = 0;

	for (; round < rounds; round++) {
		if (me == 0)
			store<ORDER>(f.mine, round + 1);
		while (load<ORDER>(f.theirs) < round + 1) {
			if (clock64() - from > LIMIT)
				goto over;
			if (SLEEP)
				__nanosleep(SLEEP);
		}
		if (me == 1)
			store<ORDER>(f.mine, round + 1);
	}
over:
	done[me] = round;
}

/* Pinned, so that the host can look, too. */
static word *make_words(size_t n)
{
	word *words;

	CHECK(cudaHostAlloc(&words, n * sizeof(word), cudaHostAllocPortable | cudaHostAllocMapped));
	std::memset(words, 0, n * sizeof(word));
	return words;
}

static void set_flags(flags *both, word *first, word *second)
{
	both[0] = flags{ first, second };
	both[1] = flags{ second, first };
}

/* How long one takes, if they have all been. */
static void report_rounds(const std::string &what, double us, word done, word rounds)
{
	if (done == rounds)
		report("flags", what, us * 1e3 / double(rounds), "ns to and fro");
	else
		report("flags", what + ": rounds before the limit", double(done), "-");
}

template <order ORDER, int SLEEP>
static void measure_bounce(const char *what, word *first, word *second)
{
	const word rounds = 2000;
	word *done = make_words(2);
	flags *both = reinterpret_cast<flags *>(make_words(4));
	double us;

	set_flags(both, first, second);
	us = device_us(0, 5, 1, [&](cudaStream_t stream) {
		CHECK(cudaMemsetAsync(first, 0, sizeof(word), stream));
		CHECK(cudaMemsetAsync(second, 0, sizeof(word), stream));
		bounce<ORDER, SLEEP><<<2, 1, 0, stream>>>(both, 0, rounds, done);
	});
	report_rounds(what, us, done[0], rounds);
	CHECK(cudaFreeHost(done));
	CHECK(cudaFreeHost(both));
}

/* The host answers a block. */
static void measure_host_bounce()
{
	const word rounds = 2000;
	word *words = make_words(2 * APART), *done = make_words(2);
	flags *both = reinterpret_cast<flags *>(make_words(4));
	std::vector<double> times;

	set_flags(both, words, words + APART);
	for (int round = 0; round < 5; round++) {
		volatile word *theirs = words, *mine = words + APART;
		double from;

		*theirs = 0;
		*mine = 0;
		bounce<OF_SYSTEM, 0><<<1, 1>>>(both, 0, rounds, done);
		from = now_us();
		while (*theirs < 1 && now_us() - from < 2e6)
			;
		from = now_us();
		for (word at = 1; at <= rounds && now_us() - from < 2e6; at++) {
			while (*theirs < at && now_us() - from < 2e6)
				;
			*mine = at;
		}
		times.push_back(now_us() - from);
		CHECK(cudaDeviceSynchronize());
	}
	report_rounds("a block and the host, in pinned memory", median(times), done[0], rounds);
	CHECK(cudaFreeHost(words));
	CHECK(cudaFreeHost(done));
	CHECK(cudaFreeHost(both));
}

/* Two kernels of two streams. */
static void measure_streams_bounce()
{
	const word rounds = 2000;
	word *done = make_words(2), *words;
	flags *both = reinterpret_cast<flags *>(make_words(4));
	cudaStream_t streams[2];

	CHECK(cudaMalloc(&words, 2 * APART * sizeof(word)));
	for (auto &stream : streams)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	set_flags(both, words, words + APART);
	const double us = host_us(5, [&] {
		CHECK(cudaMemset(words, 0, 2 * APART * sizeof(word)));
		CHECK(cudaDeviceSynchronize());
		for (int side = 0; side < 2; side++)
			bounce<OF_SYSTEM, 0><<<1, 1, 0, streams[side]>>>(both, side, rounds, done);
		CHECK(cudaDeviceSynchronize());
	});
	report_rounds("two kernels of two streams, system", us, done[0], rounds);
	for (auto &stream : streams)
		CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(words));
	CHECK(cudaFreeHost(done));
	CHECK(cudaFreeHost(both));
}

static void measure_flags()
{
	word *device, *host = make_words(2 * APART);

	CHECK(cudaMalloc(&device, 2 * APART * sizeof(word)));
	measure_bounce<OF_DEVICE, 0>("two blocks, scope of the device", device, device + APART);
	measure_bounce<OF_SYSTEM, 0>("two blocks, scope of the system", device, device + APART);
	measure_bounce<OF_SYSTEM, 20>("two blocks, scope of the system, sleeping 20 ns", device,
				      device + APART);
	measure_bounce<OF_SYSTEM, 200>("two blocks, scope of the system, sleeping 200 ns", device,
				       device + APART);
	measure_bounce<OF_SYSTEM, 0>("two blocks, flags in pinned memory", host, host + APART);
	measure_streams_bounce();
	measure_host_bounce();
	CHECK(cudaFree(device));
	CHECK(cudaFreeHost(host));
}

/* -- Between processes ------------------------------------------------------------------------ */

#define SHARED_BYTES (size_t(2) << 20) /* the granularity of cuMemCreate() */

static void send_all(int fd, const void *bytes, size_t nbytes, int passed)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	iovec part = { const_cast<void *>(bytes), nbytes };
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	if (passed >= 0) {
		message.msg_control = room;
		message.msg_controllen = sizeof(room);
		cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		std::memcpy(CMSG_DATA(head), &passed, sizeof(int));
	}
	if (sendmsg(fd, &message, 0) != static_cast<ssize_t>(nbytes)) {
		std::perror("sendmsg");
		give_up();
	}
}

/* Returns the descriptor that came along, -1 if none did. */
static int receive_all(int fd, void *bytes, size_t nbytes)
{
	char room[CMSG_SPACE(sizeof(int))];
	iovec part = { bytes, nbytes };
	msghdr message = {};
	int passed = -1;

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = room;
	message.msg_controllen = sizeof(room);
	if (recvmsg(fd, &message, MSG_WAITALL) != static_cast<ssize_t>(nbytes)) {
		std::fprintf(stderr, "the other process has gone\n");
		give_up();
	}
	if (cmsghdr *head = CMSG_FIRSTHDR(&message))
		std::memcpy(&passed, CMSG_DATA(head), sizeof(int));
	return passed;
}

static CUmemAllocationProp shared_properties()
{
	CUmemAllocationProp properties = {};

	properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return properties;
}

static word *map(CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = {};
	CUdeviceptr at;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	check_driver(DRIVER(cuMemAddressReserve)(&at, SHARED_BYTES, 0, 0, 0),
		     "cuMemAddressReserve");
	check_driver(DRIVER(cuMemMap)(at, SHARED_BYTES, 0, handle, 0), "cuMemMap");
	check_driver(DRIVER(cuMemSetAccess)(at, SHARED_BYTES, &access, 1), "cuMemSetAccess");
	return reinterpret_cast<word *>(at);
}

/* Side 0 makes the memory, side 1 gets it. */
static word *share(const std::string &way, int side, int fd)
{
	if (way == "IPC") {
		cudaIpcMemHandle_t handle;
		word *words;

		if (side == 0) {
			CHECK(cudaMalloc(&words, SHARED_BYTES));
			CHECK(cudaMemset(words, 0, SHARED_BYTES));
			CHECK(cudaDeviceSynchronize());
			CHECK(cudaIpcGetMemHandle(&handle, words));
			send_all(fd, &handle, sizeof(handle), -1);
			return words;
		}
		receive_all(fd, &handle, sizeof(handle));
		const double from = now_us();
		CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&words), handle,
					   cudaIpcMemLazyEnablePeerAccess));
		report("processes", "cudaIpcOpenMemHandle() of 2 MiB", now_us() - from, "us");
		return words;
	}
	CUmemGenericAllocationHandle handle;
	char byte = 0;

	if (side == 0) {
		const CUmemAllocationProp properties = shared_properties();
		int descriptor;
		word *words;

		check_driver(DRIVER(cuMemCreate)(&handle, SHARED_BYTES, &properties, 0),
			     "cuMemCreate");
		words = map(handle);
		CHECK(cudaMemset(words, 0, SHARED_BYTES));
		CHECK(cudaDeviceSynchronize());
		check_driver(
			DRIVER(cuMemExportToShareableHandle)(
				&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			"cuMemExportToShareableHandle");
		send_all(fd, &byte, 1, descriptor);
		return words;
	}
	const int descriptor = receive_all(fd, &byte, 1);
	const double from = now_us();

	check_driver(DRIVER(cuMemImportFromShareableHandle)(
			     &handle, reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)),
			     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		     "cuMemImportFromShareableHandle");
	word *words = map(handle);
	report("processes", "import and map 2 MiB by a file descriptor", now_us() - from, "us");
	return words;
}

/* Both sides launch their kernel at about the same time. */
static void bounce_between(const std::string &way, int side, int fd)
{
	const word rounds = 1000;
	word *done = make_words(2);
	flags *both = reinterpret_cast<flags *>(make_words(4));
	char byte = 0;
	double from;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	word *words = share(way, side, fd);
	set_flags(both, words, words + APART);
	send_all(fd, &byte, 1, -1);
	receive_all(fd, &byte, 1);
	from = now_us();
	bounce<OF_SYSTEM, 0><<<1, 1>>>(both, side, rounds, done);
	CHECK(cudaDeviceSynchronize());
	if (side == 0)
		report("processes",
		       "kernels of two processes, memory by " + way + ", rounds " +
			       std::to_string(done[0]),
		       (now_us() - from) / double(std::max<word>(done[0], 1)), "us to and fro");
}

/* A process that is started anew, since one that has used CUDA cannot fork. */
/* Whether all went well. */
static bool measure_processes(const char *program)
{
	bool good = true;

	for (const char *way : { "IPC", "VMM" }) {
		int fds[2], status;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0) {
			std::perror("socketpair");
			give_up();
		}
		for (int side = 0; side < 2; side++)
			if (fork() == 0) {
				close(fds[1 - side]); /* so that each sees the other's end */
				const std::string fd = std::to_string(fds[side]);
				const std::string which = std::to_string(side);

				execl(program, program, way, which.c_str(), fd.c_str(), nullptr);
				_exit(127);
			}
		close(fds[0]);
		close(fds[1]);
		for (int side = 0; side < 2; side++)
			if (wait(&status) < 0 || status != 0) {
				std::fprintf(stderr, "%s: a process failed: status %d\n", way,
					     status);
				good = false;
			}
	}
	return good;
}

int main(int argc, char **argv)
{
	if (argc == 4) {
		bounce_between(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
		return 0;
	}
	if (argc != 1) {
		std::fprintf(stderr, "usage: flags\n");
		return 2;
	}
	measure_flags();
	return measure_processes("/proc/self/exe") ? 0 : 1;
}
