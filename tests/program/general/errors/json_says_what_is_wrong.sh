#!/usr/bin/env bash
# Where --json says "ok": false, the answer has the reason as well
. "$MCKPT_SOURCE"/tests/support/common.inc
folder=$MCKPT_SOURCE/test_data/dcp/damaged_pp2
norm=model.module.decoder.final_layernorm.weight

for command in "inspect" "ls" "stats" "cat"; do
  expect 1 "$mckpt" --json $command "$folder" $([ $command != cat ] || echo $norm)
  has out '"ok": false'
  has out '"problems": [{"code": "MC1313"'
done
