#!/usr/bin/env bash
# Under mpirun the space of the result is asked for once: by the rank that takes it, before it takes it.
. "$MCKPT_SOURCE"/tests/support/common.inc

"$mckpt" env --json | grep '"name": "mpi", [^}]*"built": true' >/dev/null || skip "mpi is not built"
mounted='mount -t tmpfs -o size=12M none disk && exec "$@"'
mkdir disk
unshare -rm sh -c "$mounted" - true 2>err || skip "no file system can be mounted here: $(tail -n 1 err)"
python "$MCKPT_SOURCE"/tests/bench/make_model.py model --layers 4 --hidden 256 --heads 8 --kv 4 --head-dim 32 --ffn 640 --vocab 4096
bytes=$("$mckpt" convert hf-to-fsdp model run --dp 2 --dry-run --json | sed 's/.*"bytes": \([0-9]*\).*/\1/')
[ "$bytes" -gt 6500000 ] && [ "$bytes" -lt 12000000 ] || fail "the result has $bytes bytes: not more than half of the disk"

export mckpt MCKPT_SOURCE
inside() { unshare -rm sh -c "$mounted" - bash -c "$1"; }
# Late ranks look at a disk on which the first has taken the room.
for i in 1 2 3; do
  expect 0 inside '"$MCKPT_SOURCE"/scripts/mpirun -n 3 --timeout 60 "$mckpt" convert hf-to-fsdp model disk/run --dp 2 --no-sync && "$mckpt" verify disk/run --against model'
  has out "equal"
done
