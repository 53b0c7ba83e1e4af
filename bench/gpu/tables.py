# SPDX-License-Identifier: BSD-3-Clause
"""docs/gpu.md from what scripts/gpu_day has kept. A block of the page stands between two lines of its name; one whose
part was not measured here stays as it is."""

SECTIONS = {"device": "The device", "memory": "Its memory", "host": "To and from the host",
            "launch": "Launches", "flags": "Flags", "processes": "Between processes"}
NOT_MEASURED = "not measured"


def figures_of(path):
    """(run, section, what, figure, unit) of each line of a part."""
    if path.exists():
        for line in path.read_text().splitlines():
            parts = [part.strip() for part in line.split(" | ")]
            if len(parts) == 5:
                yield tuple(parts)


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def short(figure):
    """Four digits of a number tell all that a repetition would tell again."""
    try:
        return figure if "." not in figure and "e" not in figure else f"{float(f'{float(figure):.4g}'):.15g}"
    except ValueError:
        return figure


def copy_limit(into):
    """GB/s, read and written, of the best copy within the device; None: it was not measured."""
    found = [float(figure) for _, section, what, figure, unit in figures_of(into / "limits.txt")
             if section == "memory" and what.startswith(("copy,", "cudaMemcpyAsync() of"))]
    return max(found, default=None)


def limits(into):
    figures = list(figures_of(into / "limits.txt"))
    for section, title in SECTIONS.items():
        rows = [(what, f"{short(figure)} {unit}".removesuffix(" -")) for _, name, what, figure, unit in figures
                if name == section]
        if rows:
            yield from ("", f"### {title}", "", *table(["what", "figure"], rows))


def waits(into):
    """Of each call whether it waits for a kernel of its own GPU, and of another one."""
    elsewhere, calls = ", the kernel on another GPU", {}
    for _, tutti, what, verdict, us in figures_of(into / "waits.txt"):
        if tutti == "device":
            yield from ("", f"{what}, {us} {verdict}.")
            continue
        call = calls.setdefault(what.removesuffix(elsewhere), {"tutti": tutti})
        call[what.endswith(elsewhere)] = f"{verdict}, {us}"
    bad = [name for name, call in calls.items() if call["tutti"] != "-" and
           any(call.get(which, "").startswith("waits") for which in (False, True))]
    yield ""
    yield f"Calls that wait although Tutti makes them while kernels of peers may run: {'; '.join(bad) or 'none'}."
    head = ["call", "a kernel of the same GPU", "a kernel of another GPU",
            "Tutti makes it, while kernels of peers may run, for"]
    yield from ("", *table(head, [(name, call.get(False, NOT_MEASURED), call.get(True, NOT_MEASURED), call["tutti"])
                                  for name, call in calls.items()]))


def ranks_of(run):
    return int(run.rpartition(",")[2].split()[0])


def nbytes_of(what):
    """Bytes of the vector that a row is of; None: it is of none."""
    for part in what.split(", "):
        number, _, unit = part.partition(" ")
        if number.isdigit() and unit in ("B", "KiB", "MiB", "GiB"):
            return int(number) << {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
    return None


def shares(runs, limit, most=1 << 20):
    """Rows of the share that a run has of what copying sets: each input is read once, each output written once."""
    whats = [what for run in runs.values() for what, unit in run if unit == "us" and (nbytes_of(what) or 0) >= most]
    for what in dict.fromkeys(whats):
        row = []
        for name, run in runs.items():
            us = run.get((what, "us"))
            moved = 2 * ranks_of(name) * nbytes_of(what)
            row.append(f"{moved / float(us) / 1e3 / limit:.2f}" if us and limit else NOT_MEASURED)
        yield what + ", of what copying sets", "-", *row


def runs_table(figures, limit, names):
    """A row for each thing that was measured, a column for each of `names` and of the other runs."""
    runs = {name: {} for name in names}
    for run, _, what, figure, unit in figures:
        runs.setdefault(run, {})[what, unit] = figure
    keys = list(dict.fromkeys(key for run in runs.values() for key in run if key[1] != "elements"))
    rows = [(what, unit, *(short(run.get((what, unit), NOT_MEASURED)) for run in runs.values()))
            for what, unit in keys]
    yield from table(["what", "unit", *runs], [*rows, *shares(runs, limit)])


def comparisons(figures):
    checks = [(f"{run}, {what}", float(figure)) for run, _, what, figure, unit in figures if unit == "elements"]
    wrong = [f"{what}: {figure:.0f} elements" for what, figure in checks if figure != 0]
    yield ""
    yield (f"All elements of {len(checks)} results were compared, and {len(wrong) or 'none'} of the results had "
           f"wrong ones{': ' if wrong else '.'}" + "; ".join(wrong))


def kernels(into):
    figures = list(figures_of(into / "kernels.txt"))
    drawn = [(what, figure, unit) for run, section, what, figure, unit in figures if section == "drawn"]
    times = [figure for figure in figures if figure[1] == "calls"]
    yield from ("", *table(["what", "figure"], [(what, f"{short(figure)} {unit}".removesuffix(" -"))
                                                for what, figure, unit in drawn]))
    yield from ("", *runs_table(times, copy_limit(into), [f"kernels, {n} ranks" for n in (2, 4, 8)]),
                *comparisons(times))


def calls(into):
    figures = [*figures_of(into / "nccl.txt"), *figures_of(into / "ranks.txt")]
    names = [*(f"nccl, {n} ranks" for n in (1, 2)), *(f"tutti, {n} ranks" for n in (2, 4, 8)),
             *(f"libnccl of tutti, {n} ranks" for n in (2, 4, 8))]
    yield from ("", *runs_table(figures, copy_limit(into), names), *comparisons(figures))


def host16(into):
    figures = list(figures_of(into / "host16.txt"))
    yield from ("", *table(["library", "which"], [(what, figure) for _, section, what, figure, _ in figures
                                                   if section == "libraries"]))
    names, points = [], {}
    for _, section, what, figure, unit in figures:
        if section != "libraries":
            call, _, name = what.rpartition(", ")
            points.setdefault((section, call), {})[name] = figure
            names += [name] if name not in names else []
    yield from ("", *table(["us", *names], [(f"{section}, {call}", *(point.get(name, "-") for name in names))
                                            for (section, call), point in points.items()]))


def rows_of(name):
    def make(into):
        rows = [(run, what, f"{short(figure)} {unit}".removesuffix(" -"))
                for run, _, what, figure, unit in figures_of(into / f"{name}.txt")]
        yield from ("", *table(["run", "what", "figure"], rows))
    return make


# Of each block: the parts one of which must have been measured, and what makes it.
BLOCKS = {"waits": (("waits",), waits), "limits": (("limits",), limits), "kernels": (("kernels",), kernels),
          "calls": (("nccl", "ranks"), calls), "host16": (("host16",), host16),
          "sanitizer": (("sanitizer",), rows_of("sanitizer")), "soak": (("soak",), rows_of("soak"))}


def write(into, document):
    """The names of the blocks that were written; a block that the page does not have is an error."""
    text, written = document.read_text(), []
    for name, (parts, make) in BLOCKS.items():
        begin, end = f"<!-- gpu_day: {name} -->\n", f"<!-- gpu_day: end of {name} -->\n"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{document} has no line {begin.strip()}, or none of its end")
        if not any(True for part in parts for _ in figures_of(into / f"{part}.txt")):
            continue
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        text = before + begin + "\n".join(make(into)).lstrip("\n") + "\n" + end + after
        written.append(name)
    document.write_text(text)
    return written
