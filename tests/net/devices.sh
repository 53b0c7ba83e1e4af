#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks with devices on two hosts: kernels and proxies move data over TCP, by calls and by a graph that is
# launched again and again, also while a NIC fails, and a death is an error on all others. Devices are those
# of the driver on host memory, which is guarded.
set -eu
cd "$(dirname "$0")"
. ./common
: "${BUILD:?where tests were built}"
devices=$BUILD/tests/net_devices
export TUTTI_CUDA_LIB="$BUILD/lib/tutti/cuda/libcuda.so.1" TUTTI_CUDAHOST_GPUS=2 TUTTI_CUDAHOST_GUARD=1
[ -e "$TUTTI_CUDA_LIB" ] || {
	echo "skipped: no driver on host memory was built (TUTTI_CUDAHOST)"
	exit 77
}
set_0="TUTTI_HOST_ID=a TUTTI_CUDA_DEVICE=0" set_1="TUTTI_HOST_ID=a TUTTI_CUDA_DEVICE=1"
set_2="TUTTI_HOST_ID=b TUTTI_CUDA_DEVICE=0" set_3="TUTTI_HOST_ID=b TUTTI_CUDA_DEVICE=1"

# is_right NAME HOSTS ARGUMENTS...
is_right()
{
	name=$1 hosts=$2
	shift 2
	job "$hosts" "$net_dir/own_host" "$devices" "$@" || die "$name"
	[ "$(cat "$net_dir"/out.* | grep -c '^right$')" = "$job_ranks" ] || die "$name: no results"
	nothing_left "$name"
	ok "$name"
}

is_killed()
{
	name=$1 victim=$2 others=$3
	job_begin "0 0 1 1" "$net_dir/own_host" "$devices" forever
	for rank in 0 1 2 3; do
		await "$name: rank $rank begins" grep -qs begin "$net_dir/out.$rank"
	done
	kill -9 "$(cat "$net_dir/pid.$victim")"
	fails_soon "$name" 20000 "$others" "rank $victim"
}

# Messages of kernels take the other NIC meanwhile.
lane_flaps()
{
	name="a graph of 2 x 2 ranks, 150 times, while eth1 comes and goes"
	job_begin "0 0 1 1" "$net_dir/own_host" "$devices" graph 150
	while [ ! -e "$net_dir/code.0" ]; do
		link 0 1 down
		sleep 0.1
		link 0 1 up
		sleep 0.1
	done
	job_end || die "$name"
	nothing_left "$name"
	ok "$name"
}

net_rails 0 0
make_own_host
is_right "calls of 2 x 2 ranks with devices" "0 0 1 1" calls
[ $(($(rail_bytes 0) + $(rail_bytes 1))) -gt 1000000 ] || die "the data went elsewhere than over the wires"
is_right "a graph of 2 x 2 ranks with devices, 100 times" "0 0 1 1" graph 100
lane_flaps
is_killed "a rank of the other host is killed" 3 "0 1 2"
is_killed "a rank of this host is killed" 1 "0 2 3"
set_3="TUTTI_HOST_ID=b"
is_right "calls of 2 x 2 ranks, one without a device" "0 0 1 1" calls
net_down
[ -z "$(net_spaces)" ] || die "namespaces are left"
echo "$passed passed, 0 failed"
