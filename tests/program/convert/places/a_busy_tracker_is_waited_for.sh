#!/usr/bin/env bash
# Runs that end at the same time write one tracker, each for a moment: the others wait. One that stays busy is an error
# of writing, for the result is there.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
busy=run/.latest_checkpointed_iteration.txt.mckpt-tmp
hold() {  # SECONDS
  mkdir -p $busy
  flock $busy sh -c "touch held; exec sleep $1" &
  until [ -e held ]; do sleep 0.01; done
  rm held
}
hold 1
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
[ "$(cat run/latest_checkpointed_iteration.txt)" = release ] || fail "the tracker is not written"
wait
runs=()
for i in 1 2 3 4 5 6; do
  "$mckpt" convert hf-to-fsdp "$model" run --no-sync -q --iteration $i >/dev/null 2>>err &
  runs+=($!)
done
for run in "${runs[@]}"; do wait "$run" || fail "a run failed"; done
hold 15
expect 5 "$mckpt" convert hf-to-fsdp "$model" run --no-sync --iteration 7
has err "error[MC3001]"
has err "is published"
[ -e run/iter_0000007/.metadata ] || fail "the result is not there"
wait
