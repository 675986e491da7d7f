"""docs/mission.md as data: the scripts that make its checkpoints, and its lines.

    ```shell                                 a script; all scripts run in one folder, in their order
    | S1.7 | sentence | works | `COMMAND` | exit 2; `MC0203`; not `warning` |

The last cell is what the command must show: its exit status where it is not 0, texts that its output has one after the other, and
texts that it lacks. Blanks count once. The command is `as S1.6` where it is another line's. A line "not run" has its reason there.
"""
import os
import re

from mckpt_tests.setting import SOURCE

PAGE = os.path.join(SOURCE, "docs", "mission.md")
VERDICTS = ("works", "partly", "missing", "not run")


class Line:
    def __init__(self, cells):
        self.name, self.sentence, self.verdict, command, shows = cells
        self.command, self.twin = in_backquotes(command), re.fullmatch(r"as (\S+)", command)
        self.exit, self.texts, self.lacks, self.reason = 0, [], [], ""
        for part in re.split(r"; (?=`|exit |not `)", shows):
            if found := re.fullmatch(r"exit (\d+)", part):
                self.exit = int(found[1])
            elif found := re.fullmatch(r"(not )?(`.+`)", part):
                (self.lacks if found[1] else self.texts).append(in_backquotes(found[2]))
            else:
                self.reason = part


def in_backquotes(cell):
    found = re.fullmatch(r"`` (.*) ``|`([^`]*)`", cell)
    return (found[1] or found[2]) if found else None


def cells_of(row):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def read():
    """The text, the scripts, and the lines of the page."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    scripts = re.findall(r"^```shell\n(.*?)^```$", text, re.M | re.S)
    rows = [cells_of(row) for row in text.splitlines() if re.match(r"\| [A-Z]\d*\.\d+ \|", row)]
    lines = {cells[0]: Line(cells) for cells in rows}
    assert len(lines) == len(rows), "a line is there twice"
    for line in lines.values():
        if line.twin:
            line.command = lines[line.twin[1]].command
    return text, scripts, lines


def fault(line, status, output):
    """Why the output is not what the line says, or an empty text."""
    output = " ".join(output.split())
    if status != line.exit:
        return f"exit status {status}, not {line.exit}"
    at = 0
    for text in line.texts:
        found = output.find(" ".join(text.split()), at)
        if found < 0:
            return f"`{text}` is not in its place"
        at = found + 1
    for text in line.lacks:
        if " ".join(text.split()) in output:
            return f"`{text}` is there"
    return ""
