"""HTML of answers, for notebooks: a heading and a table. Everything is text of files, so everything is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

MOST_ROWS = 200  # a notebook keeps every answer: longer tables say how many rows are left out


def table(heading: str, rows: Sequence[Iterable[object]], columns: Sequence[str] = ()) -> str:
    """The heading above a table with a row for each of `rows`."""
    lines = [_row("th", columns)] if columns and rows else []
    lines += [_row("td", row) for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        width = max(len(columns), 1)
        lines.append(f'<tr><td colspan="{width}">and {len(rows) - MOST_ROWS:,} more</td></tr>')
    return f"<p>{html.escape(heading)}</p><table>{''.join(lines)}</table>"


def _row(cell: str, texts: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<{cell}>{html.escape(str(text))}</{cell}>" for text in texts) + "</tr>"
