#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Whoever reads has gone before the first word is written.
for line in formats explain "formats --json" --help; do
  { sleep 0.1; status=0; "$mckpt" $line 2>err || status=$?; echo $status >status; } | true
  [ "$(cat status)" = 0 ] || fail "exit status $(cat status) with a closed pipe: $line"
  empty err
done
"$mckpt" formats 2>err | head -n 1 >out
empty err
[ "$(wc -l <out)" = 1 ] || fail "head got no line"

# An answer keeps its status, and is never "equal" or "sound" where it was not: text and JSON, one line and many.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" other
printf '\1' | dd of=other/model-00001-of-00002.safetensors bs=1 seek=9000 conv=notrunc status=none
cp -r "$model" lost
rm lost/model-00002-of-00002.safetensors
while read -r wanted words; do
  for form in "" --json; do
    { sleep 0.1; status=0; "$mckpt" $words $form 2>err || status=$?; echo $status >status; } | true
    [[ "$(cat status)" = "$wanted" || "$(cat status)" = 141 ]] || fail "exit status $(cat status), not $wanted, with a closed pipe: $words $form"
  done
done <<EOF
1 diff $model other
0 diff $model $model
1 verify $model --against other
1 verify lost
3 diff $model lost
EOF
