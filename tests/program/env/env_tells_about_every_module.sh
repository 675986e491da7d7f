#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

status=0
"$mckpt" env --json >out 2>err || status=$?
[ $status = 0 ] || fail "exit status $status: a module that is here does not load"
python - <<'PYTHON' || fail "the answer"
import json
answer = json.load(open("out"))
modules = {m["name"]: m for m in answer["modules"]}
assert list(modules) == ["mpi", "torch", "cuda", "nccl", "hdf5"], list(modules)
assert answer["ranks"] == 1 and answer["cores"] >= 1, answer
for m in modules.values():
    assert m["loads"] == m["built"], m
    assert m["loads"] == (m["path"] is not None), m
    assert (m["facts"].get("version", "") != "") == m["loads"], m
    assert (m["problem"] is None) == m["loads"] and (m["help"] is None) == m["loads"], m
PYTHON
