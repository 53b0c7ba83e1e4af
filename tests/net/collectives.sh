#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The same program between 2 to 4 hosts (network namespaces) over TCP: started by
# mpirun of Open MPI and of MPICH, and by hand with an id in a file.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}"

# Every size must be right, and over TCP.
check_json()
{
	grep -q '"wrong":0' "$net_dir/out" || die "$1: no result"
	! grep -q '"wrong":[1-9]' "$net_dir/out" || die "$1: wrong results"
	grep -q '"transport":"[a-z+]*tcp"' "$net_dir/out" || die "$1: not over tcp"
	ok "$1"
}

perf="perf all_reduce -b 8 -e 4M -f 64 -i 3 -w 1 --json"

# Run by a launcher: its rank says which namespace.
by_launcher()
{
	name=$1 n=$2
	shift 2
	cat >"$net_dir/rank.sh" <<-'END'
		#!/bin/sh
		rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
		exec ip netns exec "$NET-$rank" "$TUTTI" "$@"
	END
	chmod +x "$net_dir/rank.sh"
	# shellcheck disable=SC2086
	timeout 60 env NET="$net" TUTTI="$TUTTI" TUTTI_COMM_ID=10.77.0.1:4711 \
		TUTTI_COMM_SECRET=the-secret-of-this-test "$@" -n "$n" "$net_dir/rank.sh" $perf \
		>"$net_dir/out" 2>"$net_dir/err" || die "$name"
	check_json "$name, $n hosts"
}

by_hand()
{
	n=$1 transport=$2
	rm -f "$net_dir/id"
	rank=$((n - 1))
	net_pids=
	while [ "$rank" -gt 0 ]; do
		# shellcheck disable=SC2086
		TUTTI_RANK=$rank TUTTI_NRANKS=$n TUTTI_COMM_FILE="$net_dir/id" \
			ip netns exec "$net-$rank" timeout 60 "$TUTTI" $perf $transport >/dev/null &
		net_pids="$net_pids $!"
		rank=$((rank - 1))
	done
	# shellcheck disable=SC2086
	TUTTI_RANK=0 TUTTI_NRANKS=$n TUTTI_COMM_FILE="$net_dir/id" on 0 timeout 60 "$TUTTI" \
		$perf $transport >"$net_dir/out" || die "by hand, $n hosts"
	for pid in $net_pids; do
		wait "$pid" || die "by hand, $n hosts: a rank failed"
	done
	net_pids=
	check_json "by hand with an id in a file, $n hosts $transport"
}

net_up 4
by_hand 2 ""
by_hand 3 "--transport tcp"
by_hand 4 ""
TUTTI_SOCKET_FAMILY=AF_INET6 by_hand 2 ""
for coll in all_to_all all_to_all_v gather scatter_v all_gather_v reduce_scatter_v; do
	perf="perf $coll -b 8 -e 1M -f 64 -i 3 -w 1 --json"
	by_hand 3 ""
done
perf="perf all_to_all --algorithm hierarchical -b 8 -e 1M -f 64 -i 3 -w 1 --json"
by_hand 4 ""
perf="perf all_reduce -b 8 -e 4M -f 64 -i 3 -w 1 --json"
if command -v mpirun.openmpi >/dev/null; then
	by_launcher "Open MPI" 4 mpirun.openmpi --allow-run-as-root --oversubscribe
else
	echo "skipped Open MPI: not installed"
fi
if command -v mpiexec.mpich >/dev/null; then
	by_launcher "MPICH" 3 mpiexec.mpich
elif command -v mpiexec.hydra >/dev/null; then
	by_launcher "MPICH" 3 mpiexec.hydra
else
	echo "skipped MPICH: not installed"
fi
echo "$passed passed, 0 failed"
