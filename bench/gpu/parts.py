# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/gpu_day measures: parts of steps, each step a program with its arguments."""
import dataclasses
import pathlib

# As a machine with a GPU is lent: so long a command, and all commands together.
PART_SECONDS, ALL_SECONDS = 570, 1800


@dataclasses.dataclass
class Step:
    run: str            # what its figures are said to be of
    program: list       # in the folder of programs, with its arguments
    seconds: int        # that it may take
    library: str = ""   # "nccl": NVIDIA's libnccl.so.2, "tutti": Tutti's
    tool: tuple = ()    # that runs the program
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Part:
    name: str
    what: str
    minutes: float      # that it takes, about; it is ended after PART_SECONDS
    steps: list


# On the stand-in everything is as on a GPU but for the sizes: a kernel is threads of the host.
def make(options):
    dry = options.dry
    most = ["--most", "4096"] if dry else []
    check, soak = (1, 1) if dry else (options.check_seconds, options.soak_seconds)
    ranks = [int(text) for text in options.ranks.split(",")]
    small = ["--small"] if dry else []
    # Calls of the driver may fail, as each name is looked for in both halves of the kernels: who calls looks.
    tool = options.sanitizer and [options.sanitizer, "--error-exitcode", "1", "--report-api-errors", "no"]
    # As programs have it: gpu_day loads all kernels at once otherwise.
    lazy = {"CUDA_MODULE_LOADING": "LAZY"} | ({"TUTTI_CUDAHOST_GPUS": "2"} if dry else {})
    waits = [Step("waits", ["waits"], 180, environment=lazy)]
    limits = [Step("limits", ["limits"], 150), Step("flags", ["flags"], 60)]
    kernels = [Step("kernels, drawn calls", ["device_run", "check", str(check)], check + 60),
               *(Step(f"kernels, {n} ranks", ["device_run", "times", str(n), *small], 60) for n in ranks if n > 1)]
    api = [Step(f"tutti, {n} ranks", ["tutti_ranks", str(n), *most, "plain", "registered"], 60)
           for n in ranks if n > 1]
    nccl = [Step(f"nccl, {n} ranks", ["nccl_ranks", str(n), *most, "plain", "registered"], 90, "nccl")
            for n in ranks if n <= 2]
    nccl += [Step(f"libnccl of tutti, {n} ranks", ["nccl_ranks", str(n), *most, "plain", "registered"], 60,
                  "tutti") for n in ranks if n > 1]
    host = [Step("host16", [pathlib.Path(__file__).parent / "host.py", options.programs, *small], 240)]
    sanitizer = [Step(f"{name}, every kernel", ["device_run", "every", *small], 240,
                      tool=(*tool, "--tool", name) if tool else ())
                 for name in ("memcheck", "racecheck")]
    return [
        Part("waits", "calls of CUDA's driver that wait for a kernel which runs", 2, waits),
        Part("limits", "memory, launches and flags of the GPU", 2, limits),
        Part("kernels", "Tutti's kernels alone: bits beside the host's, times", 3, kernels),
        Part("ranks", "ranks of one GPU, by Tutti's interface", 2, api),
        Part("nccl", "the same by NVIDIA's libnccl.so.2, and by Tutti's", 3, nccl),
        Part("host16", "ranks of one host, up to 16, beside Open MPI and MPICH", 3, host),
        Part("sanitizer", "compute-sanitizer over every kernel", 4, sanitizer),
        Part("soak", "random calls, all results compared", (soak + 30) / 60,
             [Step("soak", ["tutti_soak", str(soak), "4", *small], soak + 60)]),
    ]
