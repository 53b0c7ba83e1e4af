# SPDX-License-Identifier: BSD-3-Clause
"""The libraries that are compared: where they are, which version, how a benchmark of theirs is
compiled. How it is started is the matter of each comparison."""
import os
import pathlib
import platform
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ncores():
    return len(os.sched_getaffinity(0))


def first_line(command):
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    version = next((line for line in lines if line.startswith("Version:")), None)
    return f"MPICH {version.split()[-1]}" if version else (lines or ["?"])[0]


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def busy_share():
    """How much of all cores is in use while we do nothing; 0 where nobody can say."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(word) for word in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    try:
        before, idle_before = ticks()
        time.sleep(0.5)
        after, idle_after = ticks()
    except (OSError, ValueError):
        return 0.0
    return 1 - (idle_after - idle_before) / max(after - before, 1)


class Library:
    """One of those compared; missing says why it cannot take part."""

    missing = None
    version = ""
    # Ways to run it, of which the best one counts, as somebody who tunes would choose it.
    variants = (None,)
    compiler = ()
    link = ()

    def build(self, source, out):
        """Compile the benchmark `source` into out; CalledProcessError if that fails."""
        self.program = out / f"{source.stem}_{self.name}"
        subprocess.run([*self.compiler, "-O3", source, "-o", self.program, *self.link],
                       check=True)


class Tutti(Library):
    name = "tutti"

    def __init__(self, build_dir):
        self.tool = build_dir / "bin" / "tutti"
        lib = build_dir / "src"
        if not self.tool.exists() or not (lib / "libtutti.so").exists():
            self.missing = f"not built in {build_dir}: cmake --build it first"
        self.compiler = ["cc", "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/include"]
        self.link = [f"-L{lib}", "-ltutti", f"-Wl,-rpath,{lib}"]

    def build(self, source, out):
        super().build(source, out)
        self.version = first_line([self.tool, "version"])


class Mpi(Library):
    packages = ""

    def __init__(self):
        self.mpicc = shutil.which(f"mpicc.{self.name}")
        self.mpirun = shutil.which(f"mpirun.{self.name}")
        if not self.mpicc or not self.mpirun:
            self.missing = f"not installed: apt-get install {self.packages}"
        self.compiler = [self.mpicc, "-D_GNU_SOURCE"]

    def build(self, source, out):
        super().build(source, out)
        self.version = first_line([self.mpirun, "--version"])


def open_mpi_options(nranks, oversubscribe):
    """Of mpirun; `oversubscribe` lets it start more ranks than there are cores."""
    options = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if nranks > ncores():
        # It does not notice by itself that spinning starves the others.
        options += [*oversubscribe, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return options


class OpenMpi(Mpi):
    name = "openmpi"
    packages = "openmpi-bin libopenmpi-dev"

    @staticmethod
    def options(nranks):
        return open_mpi_options(nranks, ["--oversubscribe"])


class Mpich(Mpi):
    name = "mpich"
    packages = "mpich libmpich-dev"


class Gloo(Library):
    name = "gloo"
    version = "gloo, of libgloo-dev, over TCP"
    compiler = ("c++", "-std=c++14")
    link = ("-lgloo", "-lpthread")
    variants = ("hd", "ring")

    def __init__(self):
        if not pathlib.Path("/usr/include/gloo/algorithm.h").exists():
            self.missing = "not installed: apt-get install libgloo-dev"
        elif not shutil.which("c++"):
            self.missing = "there is no C++ compiler: apt-get install g++"


def build_all(libraries, sources, out):
    """Those that cannot be built are missing, and know why. Whoever cannot be asked for its version
    cannot be started either."""
    out.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        if library.missing:
            continue
        try:
            library.build(sources[library.name], out)
        except subprocess.CalledProcessError as error:
            library.missing = f"its benchmark does not compile (exit code {error.returncode})"
        except OSError as error:
            library.missing = f"{error.filename}: {error.strerror}"
