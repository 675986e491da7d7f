#!/usr/bin/env bash
# --make-vocab-size-divisible-by N pads the vocabulary as Megatron does: always, to a multiple of tp times N.
. "$MCKPT_SOURCE/tests/support/common.inc"
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe # 32 rows

rows() { # CHECKPOINT: the rows of all ranks
  "$mckpt" ls "$1" '*word_embeddings.weight' --json | python3 -c 'import json, sys; print(sum(t["shape"][0] for t in json.load(sys.stdin)["tensors"]))'
}
for case in "2 128 256" "2 16 32" "1 128 128" "4 24 96" "1 7 35"; do
  read -r tp by wanted <<<"$case"
  rm -rf ranks
  expect 0 "$mckpt" convert to-pt "$model" ranks --tp "$tp" --make-vocab-size-divisible-by "$by" --no-sync -q
  [ "$(rows ranks)" = "$wanted" ] || fail "tp $tp, divisible by $by: $(rows ranks) rows, not $wanted"
done
# Each kind of result, and back: the padding is cut off again.
for to in "hf-to-fsdp $model" "to-mcore $model"; do
  rm -rf ckpt back
  expect 0 "$mckpt" convert $to ckpt --tp 2 --make-vocab-size-divisible-by 128 --no-sync
  lacks err "its default, 128"
  [ "$(rows ckpt)" = 256 ] || fail "$to: $(rows ckpt) rows"
  expect 0 "$mckpt" export ckpt back --no-sync -q
  expect 0 "$mckpt" diff "$model" back
done
rm -rf ckpt moved
expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt --no-sync -q
expect 0 "$mckpt" convert reshard ckpt moved --make-vocab-size-divisible-by 24 --no-sync -q
[ "$(rows moved)" = 48 ] || fail "reshard: $(rows moved) rows"

# The padding is one word of --vocab-size, too.
expect 0 "$mckpt" convert to-mcore "$model" by_word --tp 2 --vocab-size divisible-by-128 --no-sync -q
[ "$(rows by_word)" = 256 ] || fail "divisible-by-128: $(rows by_word) rows"
for word in some divisible-by-0 divisible-by- 12x; do
  expect 2 "$mckpt" convert to-mcore "$model" none --vocab-size "$word"
  has err "keep, auto, a number of rows, or divisible-by- with a number" "found $word"
done

expect 2 "$mckpt" convert to-mcore "$model" none --vocab-size 64 --make-vocab-size-divisible-by 8
expect 2 "$mckpt" convert to-mcore "$model" none --make-vocab-size-divisible-by 0
