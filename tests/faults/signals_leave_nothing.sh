#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc
. "$MCKPT_SOURCE"/tests/support/sparse_model.inc

sparse_model 300

# Starts a conversion and sends it a signal once it writes; a run that was done before is not counted.
interrupted() {
  local signal=$1 attempt status
  for attempt in 1 2 3 4 5 6 7 8; do
    echo old >model.pt
    "$mckpt" convert safetensors-to-pt model.safetensors model.pt --overwrite -j1 >out 2>err &
    until [ -e .model.pt.mckpt-tmp/model.pt ] || ! kill -0 $! 2>/dev/null; do :; done
    kill "-$signal" $! 2>/dev/null || true
    status=0
    wait $! 2>/dev/null || status=$?
    [ $status = 0 ] || break
  done
  [ "$(cat model.pt)" = old ] || fail "SIG$signal: the target was touched"
  [ $status = "$2" ] || fail "SIG$signal: exit status $status, not $2"
}

# Not INT: the shell has it ignored in what runs beside it.
for signal in TERM HUP; do
  interrupted $signal $((128 + $(kill -l $signal)))
  has err "error[MC3002]"
  lacks err "--resume"
  only model.pt
done

interrupted KILL 137
only ".model.pt.mckpt-tmp model.pt"

# The rest of the killed run is taken over, and gone afterwards.
expect 0 "$mckpt" convert safetensors-to-pt model.safetensors model.pt --overwrite --no-sync
only model.pt
[ "$(stat -c %s model.pt)" -gt $((300 << 20)) ] || fail "the result is not whole"
