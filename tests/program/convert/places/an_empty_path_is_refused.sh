#!/usr/bin/env bash
# An empty path, as an unset variable gives it, is not the root folder; a quoted ~ is not the home folder.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 2 "$mckpt" convert hf-to-fsdp "$model" ''
has err 'the path of the output is empty'
expect 2 "$mckpt" convert safetensors-to-pt "$model" ''
has err 'the path of the output is empty'
expect 2 "$mckpt" convert hf-to-fsdp '' made
[ ! -e made ]
expect 2 "$mckpt" inspect ''
has err 'the path of the checkpoint is empty'

for command in "convert hf-to-fsdp $model" "convert safetensors-to-pt $model" example "man --output" "verify $model --report" \
  "plot $model -o"; do
  case $command in verify* | plot*) name='~/x.html' ;; *) name='~/x' ;; esac
  [ "${command#verify}" = "$command" ] || name='~/x.json'
  expect 2 "$mckpt" $command "$name"
  has err 'only a shell makes `~` the home folder'
  [ ! -e '~' ] || fail "a folder named ~ was made: $command"
done

# One slash behind DST, whatever is given.
expect 0 "$mckpt" convert hf-to-fsdp "$model" made// --no-sync
[ "$(cat out)" = made/release ] || fail 'not one slash'

expect 3 "$mckpt" inspect "$model/*.safetensors"
has err "name the folder"
expect 3 "$mckpt" export made new --assets made
has err "give the folder of the original Hugging Face model"

# A file that is not a card, or not there, and a card in a folder that is not there.
expect 0 "$mckpt" export made hf --report account.json --no-sync
expect 3 "$mckpt" verify hf --card account.json
has err "the schema mckpt.export/1"
has err "writes a card with --report"
expect 3 "$mckpt" verify hf --card none.json
has err "with --report in place of --card"
expect 4 "$mckpt" verify hf --report none/card.json
has err "make the folder none first"

# A result that is one file has the name of a file.
expect 2 "$mckpt" convert to-safetensors made newfolder/
has err "such as newfolder/model.safetensors"
expect 2 "$mckpt" convert safetensors-to-pt "$model" newfolder/
has err "such as newfolder/model.pt"
