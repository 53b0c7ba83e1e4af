#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of one host beside Open MPI and MPICH, as bench/compare/run measures them, in minutes and with Tutti's
programs as they are in a folder: host.py FOLDER [--small].

Ranks have cores of their own: numbers of ranks beyond the cores are left out. Peers that are not there are named."""
import os
import pathlib
import shutil
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "compare"), str(HERE.parent)]
import candidates  # noqa: E402
import libraries  # noqa: E402
import points  # noqa: E402
import turns  # noqa: E402

PEERS = ("openmpi", "openmpi-new", "mpich", "mpich-new")
OPERATIONS = ("all_reduce", "all_gather", "broadcast")
SIZES = [8, 1 << 10, 1 << 16, 1 << 20, 16 << 20, 64 << 20]
MODE, ROUNDS = "rewritten", 3
# No other turn begins after so long.
SECONDS = 150


class Packed(libraries.Tutti):
    def __init__(self, folder):
        self.tool, self.program = folder / "tutti", folder / "tutti_bench"
        self.missing = next((f"not in {folder}: {path.name}" for path in (self.tool, self.program)
                             if not path.exists()), None)

    def build(self, source, out):
        self.version = candidates.first_line([self.tool, "version"])


class PathMpi(libraries.Mpi):
    """The one of $PATH, where its commands do not have Debian's names."""

    name = "mpi"

    def __init__(self, others):
        self.mpicc, self.mpirun = shutil.which("mpicc"), shutil.which("mpirun")
        self.compiler = [self.mpicc, "-D_GNU_SOURCE"]
        if not self.mpicc or not self.mpirun:
            self.missing = "no mpicc and mpirun in $PATH"
        for other in others:
            if not self.missing and not other.missing and os.path.samefile(self.mpirun, other.mpirun):
                self.missing = f"is {other.name}"

    def options(self, nranks):
        is_open = "Open MPI" in self.version or "OpenRTE" in self.version
        return candidates.open_mpi_options(nranks, ["--oversubscribe"]) if is_open else []


def report(section, what, figure, unit="-"):
    figure = " ".join(str(figure).replace("|", "/").split())
    print(f"{section} | {what} | {figure} | {unit}", flush=True)


def usable(folder, options, scratch):
    """Tutti, and the peers that can be run here; the others are named."""
    chosen = [Packed(folder), *libraries.choose(folder, PEERS, None, candidates.ROOT / "build" / "peers")[2:]]
    chosen.append(PathMpi(chosen[1:]))
    candidates.build_all(chosen, {library.name: library.source for library in chosen}, scratch)
    for library in chosen:
        library.missing = library.missing or turns.why_not(library, options)
        report("libraries", library.name, library.missing or library.version)
    if chosen[0].missing:
        sys.exit(f"tutti: {chosen[0].missing}")
    return [library for library in chosen if not library.missing]


def measure(found, units, options, until):
    """The rounds of each point by its key, as many as there is time for."""
    rounds = {}
    for number in range(options.rounds):
        for nranks, operation in units:
            if time.monotonic() > until:
                print(f"round {number + 1}, {operation}, {nranks} ranks and what follows: no time is left",
                      file=sys.stderr)
                return rounds
            figures = turns.run_round(found, number, nranks, operation, options.sizes, options, None)
            for (mode, size), mine in figures.items():
                key = (mode, 0, operation, nranks, size)
                us, least = ({name: pair[which] for name, pair in mine.items()} for which in (0, 1))
                rounds.setdefault(key, []).append(points.make_round(number, key, us | {"tutti": us.get("tutti")},
                                                                    least))
    return rounds


def say(point):
    section = f"{point['nranks']} ranks"
    what = f"{point['operation']}, {points.size_text(point['bytes'])}"
    for name, us in point["us"].items():
        report(section, f"{what}, {name}", points.time_text(us), "us")
    report(section, f"{what}, best peer / tutti", points.ratio_text(point["peer_over_tutti"]))


def main():
    small = sys.argv[2:] == ["--small"]
    if len(sys.argv) < 2 or sys.argv[2:] and not small:
        sys.exit(__doc__)
    options = types.SimpleNamespace(modes=[MODE], seconds=0.002 if small else 0.02, timeout=60 if small else 10, load=0,
                                    sizes=[8, 1 << 16] if small else SIZES, rounds=1 if small else ROUNDS)
    until = time.monotonic() + SECONDS
    cores = candidates.ncores()
    report("libraries", "cores", f"{cores}, {candidates.cpu_model()}")
    numbers = [2] if small else [nranks for nranks in (2, 4, 8, 16) if nranks <= cores]
    for nranks in (2, 4, 8, 16):
        if nranks not in numbers:
            report("libraries", f"{nranks} ranks", "left out: small" if small else f"left out: {cores} cores")
    with tempfile.TemporaryDirectory() as scratch:
        found = usable(pathlib.Path(sys.argv[1]).resolve(), options, pathlib.Path(scratch))
        rounds = measure(found, [(n, operation) for n in numbers for operation in OPERATIONS], options, until)
    counts = sorted(map(len, rounds.values()))
    report("libraries", "rounds of a point", f"{counts[0]} to {counts[-1]}" if counts else 0)
    measured = [points.make_point(mine) for mine in rounds.values()]
    for point in measured:
        say(point)
    return 0 if measured and all(point["us"]["tutti"] for point in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
