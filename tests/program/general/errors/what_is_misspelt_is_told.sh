#!/usr/bin/env bash
# Codes and paths that are not there: what comes near, or how to go on.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" explain MC99
has err "these codes begin so: MC9901, MC9902"
expect 2 "$mckpt" explain MC9999
has err "the nearest code is MC99"
expect 2 "$mckpt" explain zzz
has err "codes are MC and four digits, from MC0001 to MC9902"

mkdir runs
echo text >runs/model.txt
expect 3 "$mckpt" inspect runs/modle.txt
has err "did you mean runs/model.txt?"
expect 3 "$mckpt" inspect runz/
has err "did you mean runs?"
expect 3 "$mckpt" inspect Qwen/Qwen3-0.6B
has err "mckpt downloads nothing"
for path in runs runs/model.txt; do
  expect 3 "$mckpt" inspect $path
  has err "mckpt formats   lists the formats that mckpt reads"
done

# Wherever a path stands on the line.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" model
missing() {
  local text=$1
  shift
  expect 3 "$mckpt" "$@"
  has err "$text"
}
missing "mckpt downloads nothing" ls Qwen/Qwen3-30B-A3B --as megatron
missing "did you mean model?" ls modle --as megatron
missing "did you mean model?" mappings check modle
missing "did you mean model?" convert hf-to-fsdp modle new
missing "--map-file names" ls model --as megatron --map-file nope
missing "--map-file names" convert hf-to-fsdp model new --map-file nope
lacks err --assets
expect 0 "$mckpt" convert hf-to-fsdp model run --no-sync
missing "did you mean model?" export run new --assets modle
missing "--rank-states is the folder" convert reshard run new --rank-states nope

# Options before the command.
expect 2 "$mckpt" --jsn
has err "there is no option '--jsn'; did you mean --json?"
expect 2 "$mckpt" --zzzzzzzz=5
has err "there is no option '--zzzzzzzz'"
expect 2 "$mckpt" --tp 2 convert
has err "options of a command follow its name"
expect 2 "$mckpt" --json
has err "a command is missing"
expect 2 "$mckpt" --json formts
has err 'did you mean `mckpt formats`?'

# Globs that choose nothing.
unmatched() {
  expect 1 "$mckpt" ls model "$@"
  has err "no name matches"
}
for as in megatron fsdp; do
  unmatched --as $as --freeze 'nothing*'
  unmatched --as $as --dtype-rule 'nothing*=fp32'
  # Where two rules match a name the last decides, so an exception in front has no effect.
  expect 1 "$mckpt" ls model --as $as --dtype-rule '*fc1*=fp32' --dtype-rule '*=fp16'
  has err "a later rule decides about every name that this rule matches"
  has err "fc1*=float32"
  expect 0 "$mckpt" ls model --as $as --dtype-rule '*=fp16' --dtype-rule '*fc1*=fp32'
  # A glob that matches only on another rank does match.
  expect 0 "$mckpt" ls model --as $as --ep 2 --freeze '*linear_fc2.weight3' --dtype-rule '*linear_fc1.weight3*=fp32'
  expect 2 "$mckpt" ls model --as $as --dtype-rule 'nothing*'
done

# Values have names, and the default name is given to none.
for command in inspect ls cat verify layout "convert hf-to-fsdp" "convert reshard" export; do
  expect 0 "$mckpt" $command --help-all
  lacks out "TEXT"
done
