# SPDX-License-Identifier: BSD-3-Clause
"""How each library's benchmark is started over the nodes of a network, and what it said."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import candidates

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = {"tutti": HERE / "tutti_net.c", "openmpi": HERE / "mpi_net.c",
           "mpich": HERE / "mpi_net.c", "gloo": HERE / "gloo_net.cc"}


class Job:
    """What is to be run: `words` are the benchmark's, `ranks` how many on each node."""

    def __init__(self, net, ranks, words, scratch):
        self.net, self.ranks, self.scratch = net, ranks, scratch
        self.words = [str(word) for word in words]

    @property
    def nranks(self):
        return self.ranks * self.net.count

    def per_rank(self, command):
        """One process for each rank, with the environment that is common to all."""
        return [self.net.nodes[rank // self.ranks].inside(*command(rank))
                for rank in range(self.nranks)]

    def agent(self):
        """A program for launchers: "agent HOST COMMAND" runs it there, as ssh would. Launchers
        run on the first node, which sees the processes of all."""
        path = self.scratch / "agent"
        cases = "".join(f"{node.name}) set -- {' '.join(node.inside())} sh -c \"$*\" ;;\n"
                        for node in self.net.nodes)
        path.write_text("#!/bin/sh\n"
                        "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                        f"host=$1\nshift\ncase $host in\n{cases}esac\nexec \"$@\"\n")
        path.chmod(0o755)
        return path

    def hosts(self):
        return ",".join(f"{node.name}:{self.ranks}" for node in self.net.nodes)

    def launched(self, *command):
        return [self.net.nodes[0].inside(*command)]


class Tutti(candidates.Tutti):
    title = "Tutti"

    def commands(self, job, _variant):
        def command(rank):
            return ["env", f"TUTTI_RANK={rank}", f"TUTTI_NRANKS={job.nranks}",
                    f"TUTTI_COMM_FILE={job.scratch}/id", self.program, *job.words]
        return job.per_rank(command)


class OpenMpi(candidates.OpenMpi):
    title = "Open MPI"

    def commands(self, job, _variant):
        options = [*self.options(job.nranks), "--mca", "plm_rsh_agent", job.agent()]
        if "--bind-to" not in options:
            # All nodes are this machine and would bind their ranks to the same cores.
            options += ["--bind-to", "none"]
        return job.launched(self.mpirun, *options, "--host", job.hosts(), "-n", job.nranks,
                            self.program, *job.words)


class Mpich(candidates.Mpich):
    title = "MPICH"

    def commands(self, job, _variant):
        return job.launched(self.mpirun, "-launcher", "ssh", "-launcher-exec", job.agent(),
                            "-hosts", job.hosts(), "-n", job.nranks, self.program, *job.words)


class Gloo(candidates.Gloo):
    title = "Gloo"

    def commands(self, job, variant):
        def command(rank):
            return [self.program, *job.words, variant, job.scratch, job.nranks, rank,
                    job.net.nodes[rank // job.ranks].name]
        return job.per_rank(command)

    def variants_of(self, operation):
        return self.variants if operation == "all_reduce" else self.variants[:1]


class Running:
    """The processes of one job. Output of the first is read, errors of all are kept."""

    def __init__(self, library, job, variant=None, extra=()):
        self.errors = tempfile.TemporaryFile("w+")
        self.job = job
        # Launchers put their sockets there; a directory of our own is gone with the rest.
        environment = dict(os.environ, TMPDIR=str(job.scratch), LC_ALL="C", **dict(extra))
        for name in list(environment):
            if name.startswith(("OMPI_", "PMI_", "TUTTI_RANK", "TUTTI_NRANKS")):
                del environment[name]
        self.processes = [
            subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE if i == 0 else subprocess.DEVNULL,
                             stderr=self.errors, text=True, env=environment,
                             start_new_session=True)
            for i, command in enumerate(library.commands(job, variant))]
        self.out = self.processes[0].stdout

    def wait(self, timeout):
        """The output, or None; a rank that has failed ends the others soon."""
        end = time.monotonic() + timeout
        while any(process.poll() is None for process in self.processes):
            if any(process.poll() for process in self.processes):
                end = min(end, time.monotonic() + 20)
            if time.monotonic() > end:
                return None
            time.sleep(0.005)
        good = all(process.returncode == 0 for process in self.processes)
        return self.out.read() if good else None

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        self.job.net.kill_all()
        for process in self.processes:
            process.kill()
            process.wait()
        self.out.close()
        self.errors.close()


def measure(library, net, ranks, words, scratch, timeout):
    """The median in us, or None with a word on stderr."""
    best = None
    variants = library.variants_of(words[0]) if library.name == "gloo" else library.variants
    for variant in variants:
        here = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        running = Running(library, Job(net, ranks, words, here), variant)
        try:
            out = running.wait(timeout)
            if out is None:
                print(f"{library.title}, {' '.join(map(str, words))}: failed\n"
                      f"{running.said().strip()[-2000:]}", file=sys.stderr)
                continue
        finally:
            running.end()
            shutil.rmtree(here, ignore_errors=True)
        figures = [float(line.split()[0]) for line in out.splitlines() if len(line.split()) == 4]
        if len(figures) == 1 and (best is None or figures[0] < best):
            best = figures[0]
    return best
