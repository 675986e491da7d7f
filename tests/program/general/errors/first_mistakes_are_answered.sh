#!/usr/bin/env bash
# Mistakes of a first hour: the answer says what was meant, or what to do.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" model

# A glob behind --map and a blank; a config instead of its folder; a model where a mode is expected.
expect 2 "$mckpt" inspect model --map '*norm*'
has err "--map='*norm*'"
expect 3 "$mckpt" inspect model/config.json
has err "name the folder: model"
expect 2 "$mckpt" convert model new
has err "MODE is missing in front of 'model'"
has err "mckpt convert hf-to-fsdp model DST"

# Suggestions that would mislead are not made.
expect 2 "$mckpt" roundtrip model --device gpu
lacks err "did you mean"
for path in model/nothing.bin './*.safetensors' /nothing; do
  expect 3 "$mckpt" inspect "$path"
  lacks err "hf download"
done
expect 3 "$mckpt" inspect Qwen/Qwen3-0.6B
has err "hf download"

# The last parts of a name; an architecture for its family.
expect 1 "$mckpt" ls model norm.weight
has err "'*norm.weight*' matches"
expect 1 "$mckpt" cat model lm_head
has err "lm_head.weight"
expect 0 "$mckpt" mappings show Qwen3MoeForCausalLM
has out "mlp.router.weight"

# A dry run says that it is one, in JSON too; -vv gives every tensor a line, -v one line to those that are alike.
expect 0 "$mckpt" convert hf-to-fsdp model new --dry-run --json
has out '"dry_run": true'
[ ! -e new ] || fail "a dry run wrote something"
expect 0 "$mckpt" convert hf-to-fsdp model folded --no-sync --json -v
has out '"dry_run": false'
has err "decoder.layers.{0-1}.mlp.router.weight  (2)"
expect 0 "$mckpt" convert hf-to-fsdp model apart --no-sync -vv
lacks err "{0-1}"
[ "$(grep -c 'mlp.router.weight  replicate of' err)" = 2 ] || fail "-vv does not list every tensor"

# An unfinished result is named where it is, and its removal is said.
mkdir -p run/.release.mckpt-tmp
expect 3 "$mckpt" inspect run
has err "an unfinished conversion is here, .release.mckpt-tmp"
has err "repeat its command to complete it"
echo "hf-to-fsdp 00" >run/.release.mckpt-tmp/.plan
expect 4 "$mckpt" convert hf-to-fsdp model run --no-sync
has err "error[MC3007]"
has err "give --overwrite"
expect 0 "$mckpt" convert hf-to-fsdp model run --overwrite --no-sync
has err "an interrupted run left an unfinished output that this run cannot continue; it was removed"
expect 0 "$mckpt" convert hf-to-fsdp model run --overwrite --no-sync
lacks err "was removed"

# A cache folder of the hub whose refs/main is lost; a plain model to decode; codes where a checkpoint is expected.
mkdir -p cache/snapshots cache/blobs && cp -r "$model" cache/snapshots/abc
expect 0 "$mckpt" inspect cache
has out "chosen snapshots/abc (the only snapshot)"
mkdir cache/snapshots/other
expect 3 "$mckpt" inspect cache
has err "has no refs/main"
expect 3 "$mckpt" convert dequantize model decoded
has err "error[MC1112]: no tensor is quantised"
expect 3 "$mckpt" export "$MCKPT_SOURCE"/test_data/quantized/gpt_oss exported
has err "mckpt convert dequantize makes"

# The list of commands, where no command is near.
expect 2 "$mckpt" man nope
has err "help: mckpt --help lists the commands"
