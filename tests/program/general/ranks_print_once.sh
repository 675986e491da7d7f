#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

"$mckpt" env --json | grep '"name": "mpi", [^}]*"built": true' >/dev/null || skip "mpi is not built"
ranks="$MCKPT_SOURCE/scripts/mpirun -n 3 --timeout 60"
expect 0 $ranks "$mckpt" env --json
[ "$(wc -l <out)" = 1 ] || fail "not one line from three ranks"
has out '"ranks": 3'
for line in formats --help --version "env --help" "explain MC0001"; do
  "$mckpt" $line >alone
  expect 0 $ranks "$mckpt" $line
  cmp -s alone out || fail "three ranks print something else than one: $line"
done
# A mistake on the command line is reported by rank 0 alone. Around it, mpirun prints notes of its own: one or two, as its ranks happen to end.
for line in formts "convert hf-to-fsdp a b --nope" "convert hf-to-fsdp a b --tp x" "export nothing" "roundtrip a --device gpu"; do
  expect 2 $ranks "$mckpt" $line
  [ "$(grep -c 'error\[' err)" = 1 ] || fail "a usage error is printed $(grep -c 'error\[' err) times: $line"
  empty out
done
expect 2 $ranks "$mckpt" convert hf-to-fsdp a b --nope --json
[ "$(wc -l <out)" = 1 ] || fail "a usage error is $(wc -l <out) JSON objects"
