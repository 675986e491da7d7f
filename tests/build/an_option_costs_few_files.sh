#!/usr/bin/env bash
# An option of `mckpt export` that is added in a copy of the commit is in help, completions, man page, program, Python, C and docs, a
# metric of `mckpt stats` in JSON, Python, C and docs; each takes at most 6 files. It builds the program from nothing.
. "$MCKPT_SOURCE/tests/support/common.inc"
[ -n "${MCKPT_PYTHON:-}" ] || skip "there is no python3"
git -C "$MCKPT_SOURCE" rev-parse HEAD >/dev/null 2>&1 || skip "the sources are no clone"
expect 0 "$MCKPT_PYTHON" "$MCKPT_SOURCE/scripts/option_cost" --most 6 --jobs 2
has out "a dummy option"
has out "a dummy metric"
has out "5 files"
lacks out "LACKS IT"
