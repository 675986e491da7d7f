#!/usr/bin/env bash
# The library names a setting by its option field, as in `vocab_size`. The printed message has the flag, in
# text and in JSON.
. "$MCKPT_SOURCE"/tests/support/common.inc

shows_flags() {
  ! grep -qE '`[a-z]+_[a-z_]+`' out err || fail "names a field: $(grep -hE '`[a-z]+_[a-z_]+`' out err)"
}
for code in $("$mckpt" explain | cut -d' ' -f1); do
  expect 0 "$mckpt" explain "$code"
  shows_flags
  tr '\n' ' ' <out >>explained
done
grep -q -- '--vocab-size auto pads it' explained || fail "MC2006 does not name --vocab-size"
expect 0 "$mckpt" explain MC2006 --json
has out '--vocab-size auto'

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 2 "$mckpt" ls "$model" --as megatron --tp 2 --ep 3 --dp 2 --rank 0
has err 'help: choose another --dp, --ep or --etp'
shows_flags
expect 2 "$mckpt" ls "$model" --as megatron --tp 2 --ep 3 --dp 2 --rank 0 --json
has out '"help": "choose another --dp, --ep or --etp"'
expect 2 "$mckpt" ls "$model" --as megatron --tp 0 --rank 0
has err '--tp must be at least 1'

# Other words in backquotes stay as they are.
expect 0 "$mckpt" explain MC1007
has out '`mckpt ls PATH`'
