#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manifests of docs/kubernetes.md fit to what they name, and their commands run with their variables and
# those of the cluster, in pods that are hosts with the names, the user and the privileges of the manifests.
set -eu
umask 022
cd "$(dirname "$0")"
. ../net/common
. ./common

launch_begin 3
/usr/bin/python3 manifests.py ../../docs/kubernetes.md "$net_dir" || die "the manifests"

# Where no warning is to be given, a busy machine is not to give one.
path="PATH=/mnt/bin:/usr/bin:/bin TUTTI_STALL_MS=100000"
user="setpriv --reuid 1000 --regid 1000 --clear-groups"
few="--inh-caps=-all --bounding-set=-all --no-new-privs"

# begin_pods KIND: on the first hosts, each with a process that only holds it; `pods` are these, the last one
# first. A pod has the image in /mnt, and folders of its own for temporary files and for POSIX shared memory,
# of which there is less than anything could use.
begin_pods()
{
	image=$net_dir/$1 node=0 pods=
	mkdir "$image/bin"
	cp "$TUTTI" "$image/bin/tutti"
	echo "mpiuser:x:1000:1000::/tmp:/bin/sh" >"$image/passwd"
	while read -r name; do
		# shellcheck disable=SC2016 # its own arguments
		ip netns exec "$net-$node" unshare --uts sh -ec '
			hostname "$1"
			mount --bind "$2" /mnt
			mount --bind /mnt/hosts /etc/hosts
			mount --bind /mnt/passwd /etc/passwd
			mount -t tmpfs -o size=4k tmpfs /dev/shm
			mount -t tmpfs tmpfs /tmp
			exec $3 sleep infinity' sh "$name" "$image" "$user $few" 2>"$net_dir/err.pod" &
		pods="$! $pods"
		await "pod $name" grep -q '^sleep$' "/proc/$!/comm"
		node=$((node + 1))
	done <"$image/pods"
}

# in_pod PID COMMAND...: in the pod that the process holds.
in_pod()
{
	pid=$1
	shift
	exec timeout 100 nsenter --target "$pid" --net --mount --uts "$@"
}

# verified KIND OUTPUT COUNTS: `tutti perf` found no wrong value; so many ranks were in each of the pods.
verified()
{
	grep -q '^# Out of bounds values : 0 OK' "$2" || die "$1: no result"
	places=$(awk '$2 == "Rank" { n[$9]++ } END { for (name in n) print n[name], name }' "$2" | sort -k 2)
	[ "$places" = "$3" ] || die "$1: ranks are in $places, not in $3"
	# Open MPI's own warning comes if the child that becomes ssh has done so before its parent names its group.
	! grep -qv 'plm:rsh: Warning: setpgid(.*) failed in parent' "$net_dir"/err* || die "$1: a warning"
	ok "the $1 of docs/kubernetes.md"
}

# Ranks that meet by a name and a port, which is asked for before anybody listens there.
run_indexed()
{
	begin_pods "$1"
	index=$(wc -l <"$image/pods")
	for pid in $pods; do
		index=$((index - 1))
		# shellcheck disable=SC2086 # words
		(in_pod "$pid" $user $few env -i $path sh "/mnt/run.$index") \
			>"$net_dir/out.$index" 2>"$net_dir/err.$index" &
		net_pids="$net_pids $!"
	done
	for pid in $net_pids; do
		wait "$pid" || die "$1: a pod failed"
	done
	net_pids=
	verified "$1" "$net_dir/out.0" "$2"
}
run_indexed Job "1 mean-0
1 mean-1
1 mean-2"
run_indexed JobSet "2 mean-set-ranks-0-0
2 mean-set-ranks-0-1"

# mpirun in one pod, and ranks in two others. What stands for ssh and its daemon may enter a pod, and takes
# nothing along: neither a variable nor that right.
if has "Open MPI" command -v mpirun.openmpi; then
	begin_pods MPIJob
	# shellcheck disable=SC2086 # words
	set -- $pods
	printf 'mean-mpi-worker-1.mean-mpi.default.svc %s\nmean-mpi-worker-0.mean-mpi.default.svc %s\n' "$1" "$2" \
		>"$image/processes"
	ln -s "$(command -v mpirun.openmpi)" "$image/bin/mpirun"
	cat >"$image/bin/ssh" <<-'END'
		#!/bin/sh
		attempts=
		while :; do
			case $1 in
			-o) attempts=$2; shift 2 ;;
			-*) shift ;;
			*) break ;;
			esac
		done
		[ "$attempts" = ConnectionAttempts=10 ] || { echo "ssh: no option of the operator" >&2; exit 255; }
		pid=$(awk -v host="$1" '$1 == host { print $2 }' /mnt/processes)
		[ -n "$pid" ] || { echo "ssh: no host $1" >&2; exit 255; }
		shift
		exec nsenter --target "$pid" --net --mount --uts \
	END
	echo "	setpriv --ambient-caps=-all $few env -i $path HOME=/tmp sh -c \"\$*\"" >>"$image/bin/ssh"
	chmod 755 "$image/bin/ssh"
	enter=-all,+sys_admin,+sys_chroot,+setpcap
	# shellcheck disable=SC2086 # words
	(in_pod "$3" $user --inh-caps=$enter --ambient-caps=$enter env -i $path HOME=/tmp sh /mnt/run.0) \
		>"$net_dir/out.0" 2>"$net_dir/err.0" || die "MPIJob: mpirun"
	verified MPIJob "$net_dir/out.0" "2 mean-mpi-worker-0
2 mean-mpi-worker-1"
fi
echo "$passed passed, 0 failed"
