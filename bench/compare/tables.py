# SPDX-License-Identifier: BSD-3-Clause
"""What was measured as tables in Markdown: lines of text."""
import goals
import points

# As the tables call them; the versions are said once, beside them.
NAMES = {"openmpi": "Open MPI 4", "openmpi-new": "Open MPI 5", "mpich": "MPICH 4",
         "mpich-new": "MPICH 5", "intelmpi": "Intel MPI", "oneccl": "oneCCL", "gloo": "Gloo"}
HEADINGS = {"rewritten": "Send buffers written again before each call",
            "unchanged": "Send buffers never written again"}


def row(cells):
    return "| " + " | ".join(cells) + " |"


def rows(head, body):
    yield row(head)
    yield "|" + "---|" * len(head)
    yield from (row(cells) for cells in body)


def name_of(library):
    return NAMES.get(library, library)


def place(point):
    size = points.size_text(point["bytes"])
    return " ".join([point["operation"], *([size] if point["bytes"] else []),
                     f"on {point['nranks']} ranks"])


# -- What was to be reached ------------------------------------------------------------

def goal_cells(goal, measured):
    mine = goal.points(measured)
    if not mine:
        return [goal.title, "0", "-", str(goal.least), "-", "-", str(goal.mean), "not measured"]
    worst = min(mine, key=lambda point: point[goal.ratio])
    mean = points.geometric_mean(points.ratios_of(mine, goal.ratio))
    missed = goal.missed(mine)
    return [goal.title, str(len(mine)), f"{points.ratio_text(worst[goal.ratio])}, {place(worst)}",
            str(goal.least), str(len(missed)), points.ratio_text(mean), str(goal.mean),
            "no" if missed or mean < goal.mean else "yes"]


def goals_table(measured):
    yield from rows(["best other / Tutti", "points", "worst", "at least", "below", "mean",
                     "at least", "reached"],
                    (goal_cells(goal, measured) for goal in goals.GOALS))


def missed_table(measured):
    """All points below what is asked for; nothing if there is none."""
    missed = [(goal, point) for goal in goals.GOALS for point in goal.missed(measured)]
    if missed:
        yield from rows(
            ["missed", "point", "Tutti, us", "best other, us", "ratio", "at least"],
            ([goal.title, place(point), points.time_text(point["us"].get(goal.library)),
              best_other(point), points.ratio_text(point[goal.ratio]), str(goal.least)]
             for goal, point in missed))


# -- Beside busy loops -----------------------------------------------------------------

def loaded_cells(point):
    def pair(library):
        return (f"{points.time_text(point['us'].get(library))} / "
                f"{points.time_text(point['p90'].get(library))}")

    best, most = point["best_peer"], goals.loaded_goal(point)
    return [place(point), pair("tutti"), f"{pair(best)} {name_of(best)}" if best else "-",
            points.ratio_text(point["peer_over_tutti"]), str(most or "-"),
            "no" if goals.loaded_missed([point]) else "yes" if most else "-"]


def loaded_table(measured):
    for load in sorted({point["load"] for point in measured}):
        yield from rows([f"beside {load} busy loops, mean / 90th percentile, us", "Tutti",
                         "best other", "ratio of means", "mean at most", "reached"],
                        (loaded_cells(point) for point in measured if point["load"] == load))


# -- All points ------------------------------------------------------------------------

def best_other(point):
    best = point["best_peer"]
    return f"{points.time_text(point['us'][best])} {name_of(best)}" if best else "-"


def cells_of(point):
    """Of one number of ranks: Tutti and its own memory, the best peer, the ratio."""
    if not point:
        return ["-", "-", "-"]
    us = point["us"]
    return [f"{points.time_text(us.get('tutti'))} / {points.time_text(us.get('tutti-mem'))}",
            best_other(point), points.ratio_text(point["peer_over_tutti"])]


def operation_table(operation, measured):
    mine = {(point["nranks"], point["bytes"]): point for point in measured
            if point["operation"] == operation}
    all_ranks = sorted({nranks for nranks, _ in mine})
    head = [cell for nranks in all_ranks for cell in (f"{nranks} ranks", "best other", "ratio")]
    yield from rows([operation, *head],
                    ([points.size_text(nbytes),
                      *(cell for nranks in all_ranks
                        for cell in cells_of(mine.get((nranks, nbytes))))]
                     for nbytes in sorted({nbytes for _, nbytes in mine})))


def summary_cells(operation, all_ranks, measured):
    mine = [point for point in measured if operation in (None, point["operation"])]
    ratios = points.ratios_of(mine)
    parts = [points.ratios_of([point for point in mine if point["nranks"] == nranks])
             for nranks in all_ranks]
    over = [points.ratios_of([point for point in mine if point["operation"] != "barrier"],
                             "peer_over_registered"), points.registered_ratios_of(mine)]
    return [operation or "all",
            *(points.ratio_text(points.geometric_mean(part)) for part in [*parts, ratios]),
            str(len(ratios)), str(sum(ratio < 1 for ratio in ratios)),
            *(points.ratio_text(points.geometric_mean(part)) for part in over)]


def summary_table(measured):
    all_ranks = sorted({point["nranks"] for point in measured})
    yield from rows(["best other / Tutti", *(f"{nranks} ranks" for nranks in all_ranks), "all",
                     "points", "below 1", "best other / shared heap",
                     "Tutti / shared heap, from 1 MB"],
                    (summary_cells(operation, all_ranks, measured)
                     for operation in [*points.operations_of(measured), None]))


def tables(measured):
    """All that docs/performance.md has of it, one text."""
    yield from goals_table(measured)
    for more in (missed_table(measured), loaded_table(points.of_mode(measured, "loaded"))):
        lines = list(more)
        yield from ["", *lines] if lines else []
    for mode, heading in HEADINGS.items():
        mine = points.of_mode(measured, mode)
        if not mine:
            continue
        yield from ["", f"### {heading}", ""]
        yield from summary_table(mine)
        for operation in points.operations_of(mine):
            yield ""
            yield from operation_table(operation, mine)
