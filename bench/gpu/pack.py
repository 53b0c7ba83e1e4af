# SPDX-License-Identifier: BSD-3-Clause
"""All that scripts/gpu_day runs, in one folder that another machine can be given."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Programs with kernels of their own, which only nvcc makes.
KERNELS = ("limits", "flags")
# Tutti's.
OF_GPU, OF_HOST = "tutti_kernels.fatbin", "libtutti_kernels_host.so"
# What every Linux has.
SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread", "libdl.so", "librt.so", "libgcc_s",
          "libstdc++")
TARGET = "gpu_programs"


def say(text):
    print(f"gpu_day: {text}", file=sys.stderr)


def nvcc():
    for place in filter(None, (shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc")):
        if os.access(place, os.X_OK):
            return pathlib.Path(place)
    return None


def packages():
    """Where Python's packages of NVIDIA have their libraries."""
    return pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"


def find_nccl(given):
    for folder in filter(None, (given, packages() / "nccl" / "lib")):
        if (folder / "libnccl.so.2").exists():
            return folder
    return None


def find_runtime():
    """The folder of libcudart.so.13: that of the toolkit, or of the Python package."""
    compiler = nvcc()
    toolkit = [compiler.resolve().parent.parent / name for name in ("lib64", "lib")] if compiler else []
    for folder in (*toolkit, packages() / "cu13" / "lib", packages() / "cuda_runtime" / "lib"):
        if (folder / "libcudart.so.13").exists():
            return folder
    return None


def copy(source, to):
    """The file that a link leads to, by the link's name."""
    to.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, to / source.name)


def copy_needed(library, to, place):
    """What `library` needs and is not on every machine."""
    environment = os.environ | {"LD_LIBRARY_PATH": place}
    lines = subprocess.run(["ldd", library], capture_output=True, text=True, env=environment).stdout
    for line in lines.splitlines():
        name, _, path = line.strip().partition(" => ")
        path = path.partition(" (")[0]
        if path.startswith("/") and not name.startswith(SYSTEM) and not (to / name).exists():
            copy(pathlib.Path(path), to)


def least_glibc(folder):
    """The version of glibc that the programs and libraries below `folder` need, and which of them needs it."""
    found = [(tuple(map(int, version.split(b"."))), path.name) for path in sorted(folder.rglob("*")) if path.is_file()
             for version in re.findall(rb"GLIBC_([0-9.]+)\0", path.read_bytes())]
    version, name = max(found, default=((), "nothing"))
    return ".".join(map(str, version)), name


def compile_kernels(to):
    """With code for the usual GPUs, and for later ones."""
    compiler = nvcc()
    if not compiler:
        say("no nvcc: limits and flags are left out")
        return True
    kinds = [f"-gencode=arch=compute_{n},code={kind}_{n}" for n, kind in
             ((80, "sm"), (90, "sm"), (90, "compute"))]
    running = {name: subprocess.Popen([compiler, "-std=c++20", "-O2", "-cudart", "shared", *kinds, "-o", to / name,
                                       ROOT / "bench" / "gpu" / f"{name}.cu"]) for name in KERNELS}
    failed = [name for name, process in running.items() if process.wait() != 0]
    for name in failed:
        say(f"{name}: nvcc failed")
    return not failed


def pack(build, to, with_kernels=True):
    """Whether all that can be made here is in the folder `to`."""
    shutil.rmtree(to, ignore_errors=True)
    libraries = to / "lib"
    libraries.mkdir(parents=True)
    programs = build / "bench" / "gpu"
    names = [path for path in sorted(programs.iterdir()) if path.is_file() and os.access(path, os.X_OK)]
    if not names:
        say(f"{programs} has no programs: build {TARGET}")
        return False
    for path in filter(pathlib.Path.exists, (*names, build / "bin" / "tutti")):
        copy(path, to)
    tutti = build / "lib" / "tutti"
    copy(build / "src" / "libtutti.so.0", libraries)
    for path in filter(pathlib.Path.exists, (tutti / name for name in (OF_GPU, OF_HOST))):
        copy(path, libraries / "tutti")
    if (tutti / "nccl" / "libnccl.so.2").exists():
        copy(tutti / "nccl" / "libnccl.so.2", libraries / "tutti" / "nccl")
    needed = OF_GPU if with_kernels else OF_HOST
    if not (libraries / "tutti" / needed).exists():
        target = "tutti_fatbin" if with_kernels else "tutti_kernels_host"
        say(f"there is no {needed}: build {target}, or Tutti will have no kernels")
    for path in [*names, to / "tutti", libraries / "libtutti.so.0"]:
        copy_needed(path, libraries, f"{libraries}:{libraries / 'tutti' / 'nccl'}")
    for name in ("libnccl.so.2", "libcudart.so.13"):  # by the loader's path alone
        (libraries / name).unlink(missing_ok=True)
    runtime = find_runtime()
    if with_kernels and runtime:
        copy(runtime / "libcudart.so.13", libraries / "cuda")
    if not with_kernels:
        return True
    good = compile_kernels(to)
    say("the other machine needs glibc {} or newer, for {}".format(*least_glibc(to)))
    return good
