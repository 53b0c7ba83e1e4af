#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on two hosts of a Slurm of our own, by each of the ways in which srun lets them meet.
set -eu
cd "$(dirname "$0")"
here=$PWD
. ../net/common
. ./common

if ! has Slurm command -v slurmctld; then
	exit 77
fi
export PATH="$PATH:/usr/sbin:/sbin"

slurm_begin()
{
	launch_begin 2
	slurm=$net_dir/slurm
	mkdir -m 700 "$slurm" "$slurm/state" "$slurm/pmix" "$slurm/pmix-0" "$slurm/pmix-1"
	head -c 128 /dev/urandom >"$slurm/munge.key"
	chmod 600 "$slurm/munge.key"
	cat >"$slurm/slurm.conf" <<-END
		ClusterName=tutti
		SlurmctldHost=host0(10.77.0.1)
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		AuthType=auth/munge
		AuthInfo=socket=$slurm/munge.socket
		CredType=cred/munge
		ProctrackType=proctrack/pgid
		TaskPlugin=task/none
		ReturnToService=2
		SlurmdParameters=config_overrides
		StateSaveLocation=$slurm/state
		SlurmdSpoolDir=$slurm/spool-%n
		SlurmctldPidFile=$slurm/slurmctld.pid
		SlurmdPidFile=$slurm/slurmd-%n.pid
		SlurmctldLogFile=$slurm/slurmctld.log
		SlurmdLogFile=$slurm/slurmd-%n.log
		NodeName=host0 NodeAddr=10.77.0.1 CPUs=4
		NodeName=host1 NodeAddr=10.77.0.2 CPUs=4
		PartitionName=all Nodes=host0,host1 Default=YES State=UP
	END
	echo "PMIxCliTmpDirBase=$slurm/pmix" >"$slurm/mpi.conf"
	printf '127.0.0.1 localhost\n10.77.0.1 host0\n10.77.0.2 host1\n' >"$slurm/hosts"
	# Messages of libpmi go to hosts by name.
	cat >"$slurm/srun" <<-END
		#!/bin/sh
		exec unshare --mount sh -c 'mount --bind "$slurm/hosts" /etc/hosts; exec $(command -v srun) "\$@"' srun "\$@"
	END
	chmod +x "$slurm/srun"
	export SLURM_CONF="$slurm/slurm.conf"
	# Its folder is not one of the system, so it is to believe that it is right.
	munged --foreground --force --socket="$slurm/munge.socket" --key-file="$slurm/munge.key" \
		--pid-file="$slurm/munge.pid" --log-file="$slurm/munge.log" \
		--seed-file="$slurm/munge.seed" 2>"$slurm/munge.err" &
	net_pids="$net_pids $!"
	await "munge" test -S "$slurm/munge.socket"
	ip netns exec "$net-0" unshare --uts sh -c 'hostname host0; exec slurmctld -D -c' \
		2>"$slurm/slurmctld.err" &
	net_pids="$net_pids $!"
	for node in 0 1; do
		# Hosts have names of their own, and folders that the plug-in for PMIx does not share.
		nsenter --net="/run/netns/$net-$node" unshare --uts --mount sh -c "
			hostname host$node
			mount --bind '$slurm/hosts' /etc/hosts
			mount --bind '$slurm/pmix-$node' '$slurm/pmix'
			exec slurmd -D -N host$node" 2>"$slurm/slurmd-$node.err" &
		net_pids="$net_pids $!"
	done
	await "two hosts of Slurm" has_two_hosts
}

has_two_hosts()
{
	[ "$(on 0 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]
}

slurm_begin
for way in pmix pmi2 none; do
	right "srun --mpi=$way" 4 "$slurm/srun" --mpi=$way -N2 -n4
	survives "srun --mpi=$way" 4 "$slurm/srun" --mpi=$way -N2 -n4 --no-kill --kill-on-bad-exit=0
done

# Every command of the page.
PATH=$slurm:$(dirname "$TUTTI"):$PATH
sed -n 's/^    srun /srun /p' "$here/../../docs/slurm.md" >"$net_dir/commands"
[ "$(wc -l <"$net_dir/commands")" -ge 4 ] || die "docs/slurm.md has no commands"
while read -r command; do
	# shellcheck disable=SC2086 # words
	timeout 100 ip netns exec "$net-0" $command >"$net_dir/out" 2>"$net_dir/err" </dev/null ||
		die "$command"
done <"$net_dir/commands"
ok "the commands of docs/slurm.md"
echo "$passed passed, 0 failed"
