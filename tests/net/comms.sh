#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Communicators made of others on three hosts: split, shrunk after a rank of the third host was
# killed, grown again by a new rank there.
set -eu
cd "$(dirname "$0")"
. ./common
: "${BUILD:?where tests were built}"
comms=$BUILD/tests/net_comms

# replaced NAME HOSTS HOST: ranks on HOSTS, then one that joins on HOST.
replaced()
{
	name=$1 host=$3
	rm -f "$net_dir/joins"
	job_begin "$2" "$comms" "$net_dir/joins"
	code=0
	on "$host" timeout 120 "$comms" "$net_dir/joins" $((job_ranks - 1)) "$job_ranks" \
		>"$net_dir/out.new" 2>"$net_dir/err.new" || code=$?
	job_end || true
	victim=$((job_ranks - 2))
	[ "$code" = 0 ] || die "$name: the new rank ends with $code"
	rank=0
	while [ "$rank" -lt "$job_ranks" ]; do
		code=$(cat "$net_dir/code.$rank")
		if [ "$rank" = "$victim" ]; then
			[ "$code" = 137 ] || die "$name: rank $rank was to be killed, not to end with $code"
		else
			[ "$code" = 0 ] || die "$name: rank $rank ends with $code"
			grep -q '^right$' "$net_dir/out.$rank" || die "$name: rank $rank is wrong"
		fi
		rank=$((rank + 1))
	done
	ok "$name: split, shrunk, grown"
}

net_up 3
export TUTTI_BOOT_TIMEOUT_MS=60000
replaced "three ranks on three hosts" "0 1 2" 2
replaced "six ranks, two on each host" "0 0 1 1 2 2" 1
replaced "five ranks here and there" "0 1 0 2 1" 2
echo "$passed passed, 0 failed"
