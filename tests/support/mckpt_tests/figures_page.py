"""The table of figures in docs/reliability.md: read, brought up to date by a run of scripts/trust, and written.

A run replaces the rows of the programs that it ran, and leaves the rows of others: so several runs, each on the machine that can measure its
part, make one table. Each row names its run by a letter; the runs are listed above the table."""

import dataclasses
import re

BEGIN, END = "<!-- figures: scripts/trust -->", "<!-- end of figures -->"
HEAD = ["| # | measured by | what | asked | reached | seconds | run |", "|---|---|---|---|---|---|---|"]
SHORT = "**short** "


@dataclasses.dataclass
class Row:
    promise: str
    part: str
    what: str  # "": the checks of the part
    asked: str
    reached: str
    met: bool
    seconds: float
    run: str = ""  # the letter of the run

    @property
    def is_measured(self):
        return not self.reached.startswith("not ")

    def line(self):
        cells = [self.promise, f"`{self.part}`" if self.part else "", self.what, self.asked, ("" if self.met else SHORT) + self.reached, f"{self.seconds:,.0f}", self.run]
        return ("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |").replace("\n", " ")


def row_of(line):
    promise, part, what, asked, reached, seconds, run = (cell.strip() for cell in line.strip().strip("|").split("|"))
    return Row(promise, part.strip("`"), what, asked, reached.removeprefix(SHORT), not reached.startswith(SHORT), float(seconds.replace(",", "")), run)


def read(page):
    """(rows, {letter: run}) of the page; nothing where it has no table yet."""
    with open(page) as f:
        inside = f.read().split(BEGIN, 1)[1].split(END, 1)[0].splitlines()
    runs = dict(m.groups() for m in map(re.compile(r"- ([a-z]): (.*)").fullmatch, inside) if m)
    return [row_of(line) for line in inside if re.match(r"\| P\d+ \|", line)] if HEAD[0] in inside else [], runs


def merged(old, new):
    """The rows of `old` whose part was not measured anew, and the rows of `new`; a part that could not run replaces nothing."""
    ran = {(row.promise, row.part) for row in new if row.is_measured}
    kept = [row for row in old if (row.promise, row.part) not in ran]
    have = {(row.promise, row.part) for row in kept}
    return kept + [row for row in new if row.is_measured or (row.promise, row.part) in ran or (row.promise, row.part) not in have]


def table(rows, runs, promises, parts):
    """The lines between BEGIN and END. `parts`: the names of the programs, in their order."""
    used = [letter for letter in sorted(runs) if any(row.run == letter for row in rows)]
    order = {name: i for i, name in enumerate(parts)}
    out = ["Runs of `scripts/trust`:", "", *(f"- {letter}: {runs[letter]}" for letter in used), "", *HEAD]
    for promise in promises:
        mine = sorted((row for row in rows if row.promise == promise), key=lambda row: order.get(row.part, len(order)))
        out += [row.line() for row in mine or [Row(promise, "", promises[promise], "", "not measured", False, 0)]]
    short = [f"- {row.promise}, `{row.part}`{', ' + row.what if row.what else ''}: {row.reached} (asked: {row.asked})" for row in rows if not row.met]
    short += [f"- {promise}, {promises[promise]}: not measured" for promise in promises if not any(row.promise == promise for row in rows)]
    return [*out, "", *(["What falls short:", "", *short] if short else ["Nothing falls short."])]


def write(page, lines):
    with open(page) as f:
        head, rest = f.read().split(BEGIN, 1)
    with open(page, "w") as f:
        f.write(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])
