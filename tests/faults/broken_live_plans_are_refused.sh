#!/usr/bin/env bash
# A live model whose plan loses or doubles something is refused before anything of it is read or written, with the tensor
# named, and nothing is left behind. usage: broken_live_plans_are_refused.sh BROKEN_PROGRAM MODULES
. "$MCKPT_SOURCE"/tests/support/common.inc
export MCKPT_MODULE_PATH=$2
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
ranks=("$MCKPT_SOURCE"/scripts/mpirun -n 2 "$1" roundtrip "$model" --device cpu --tp 2 --dp 1)

expect 0 "${ranks[@]}" --checkpoint sound
for how in short doubled unnamed; do
  status=4
  [ $how != unnamed ] || status=3  # MC2005: the model and its table do not match
  for result in "--checkpoint ckpt" "--output hf"; do
    MCKPT_BROKEN=$how expect $status "${ranks[@]}" $result
    grep -qE "(self_attn.o_proj|self_attention.linear_proj).weight" "$t/err" || fail "no tensor is named: $how $result"
    [ "$(ls | sort | tr '\n' ' ')" = "err out sound " ] || fail "something was made: $how $result: $(ls -A)"
  done
done
