#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# The model in the program is the tests' model, file by file; it is sound, converts, and comes back. Nothing
# that has the name is touched, and nothing stays where the model cannot be written.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" example runs/tiny
[ "$(cat out)" = runs/tiny ] || fail "the answer is not the folder: $(cat out)"
empty err
diff -r runs/tiny "$model" || fail "the model is another one"
[ "$(ls -A runs)" = tiny ] || fail "beside the model: $(ls -A runs)"
expect 0 "$mckpt" convert hf-to-fsdp runs/tiny ckpt --tp 2 --ep 4 --no-sync -q
expect 0 "$mckpt" verify ckpt --against runs/tiny

echo mine >runs/tiny/config.json
expect 4 "$mckpt" example runs/tiny
has err MC3003
[ "$(cat runs/tiny/config.json)" = mine ] || fail "a folder of the user was replaced"
touch file
expect 4 "$mckpt" example file
expect 2 "$mckpt" example ''
expect 2 "$mckpt" example
expect 4 "$mckpt" example /proc/tiny
