#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Messages with tags between two hosts: what comes is what was sent, and a rank that is killed is
# named by all that wait for its message.
set -eu
cd "$(dirname "$0")"
. ./common
: "${BUILD:?where tests were built}"
message=$BUILD/tests/net_message

# exchanged NAME HOSTS: each rank got what the others sent it.
exchanged()
{
	job "$2" "$message" || die "$1: it fails"
	for rank in $(seq 0 $((job_ranks - 1))); do
		grep -q '^right$' "$net_dir/out.$rank" || die "$1: rank $rank is wrong"
	done
	ok "messages between $1"
}

net_up 2
exchanged "two ranks on two hosts" "0 1"
exchanged "four ranks on two hosts" "0 1 1 0"
make_own_host
job_begin "0 0 1 1" "$net_dir/own_host" "$message" wait
await_begin "a killed rank"
kill -9 "$(cat "$net_dir/pid.3")"
fails_soon "a killed rank" 30000 "0 1 2" "rank 3 (.*died"
echo "$passed passed, 0 failed"
