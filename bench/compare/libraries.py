# SPDX-License-Identifier: BSD-3-Clause
"""How each library that is compared is built and started. Its command ends with what batches.h
takes: OPERATION SECONDS BYTES,...

Peers wait by spinning, which starves the others where ranks share cores. So Open MPI is told
to yield there; MPICH has settings for it
(MPIR_CVAR_POLLS_BEFORE_YIELD) that changed nothing when they were tried, so it stays as it is.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import candidates

OPERATIONS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
              "send_recv", "barrier")
PEERS = ("openmpi", "mpich", "gloo")


class Library:
    """What every library here has besides that of candidates.Library."""

    is_tutti = False

    def variants_of(self, operation):
        """Ways to do `operation`, of which the best counts, as somebody who tunes would choose."""
        return (None,)

    def environment(self, nranks):
        return {}


class Tutti(Library, candidates.Tutti):
    source = HERE / "tutti_bench.c"
    buffers = "plain"
    is_tutti = True

    def command(self, nranks, arguments, variant, scratch):
        return [self.tool, "run", "-n", str(nranks), self.program, *arguments, self.buffers]


class TuttiRegistered(Tutti):
    name = "tutti-mem"
    buffers = "registered"


class Mpi(Library, candidates.Mpi):
    source = HERE / "mpi_bench.c"

    def options(self, nranks):
        return []

    def command(self, nranks, arguments, variant, scratch):
        return [self.mpirun, *self.options(nranks), "-n", str(nranks), self.program, *arguments]


class OpenMpi(Mpi, candidates.OpenMpi):
    def options(self, nranks):
        return candidates.OpenMpi.options(nranks)


class Mpich(Mpi, candidates.Mpich):
    pass


class Gloo(Library, candidates.Gloo):
    source = HERE / "gloo_bench.cc"

    def __init__(self, tutti, prefix):
        super().__init__()
        self.tool = tutti.tool
        if prefix:
            if not (prefix / "include" / "gloo" / "algorithm.h").exists():
                sys.exit(f"{prefix} has no include/gloo/algorithm.h")
            self.missing = None
            self.version = f"gloo of {prefix}, over TCP"
            self.compiler = ("c++", "-std=c++17", f"-I{prefix}/include")
            self.link = (f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgloo", "-lpthread")

    def variants_of(self, operation):
        return ("hd", "ring") if operation == "all_reduce" else ("hd",)

    def command(self, nranks, arguments, variant, scratch):
        script = 'exec "$@" "$TUTTI_NRANKS" "$TUTTI_RANK"'
        return [self.tool, "run", "-n", str(nranks), "sh", "-c", script, "sh", self.program,
                *arguments, variant, scratch]


def choose(build_dir, peers, gloo_dir):
    """Tutti, with both kinds of memory, and the peers of these names."""
    tutti = Tutti(build_dir)
    makers = {"openmpi": OpenMpi, "mpich": Mpich, "gloo": lambda: Gloo(tutti, gloo_dir)}
    return [tutti, TuttiRegistered(build_dir),
            *(makers[name]() for name in PEERS if name in peers)]
