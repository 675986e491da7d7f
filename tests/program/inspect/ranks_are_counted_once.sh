#!/usr/bin/env bash
# The text for a person about a Megatron run: parameters without the copies of its ranks, experts in a line,
# args before all else; and the config that is beside a checkpoint is found, or the right command is named.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe # 7,408 parameters
expect 0 "$mckpt" convert to-pt "$model" pt --tp 2 --pp 2 --ep 2
expect 0 "$mckpt" inspect pt
has out 'model  50 tensors  7,408 params, 7,648 with copies'
has out 'mlp.experts.linear_fc1.weight{0,1} '
expect 0 "$mckpt" inspect pt --json
has out '"parameters": 7408, "with_copies": false, "bytes"'
has out '"model": {"tensors": 50, "parameters": 7648,'
lacks out 'weight0'
expect 0 "$mckpt" inspect pt --tree
has out 'mlp.experts.linear_fc1.weight0'
rm -r pt/release/hf_assets pt/release/mckpt_manifest.json
expect 0 "$mckpt" inspect pt
has out "model  50 tensors  7,648 params, with the ranks' copies"
expect 0 "$mckpt" inspect pt --json
has out '"parameters": 7648, "with_copies": true, "bytes"'

expect 0 "$mckpt" convert to-mcore "$model" core --tp 2
expect 0 "$mckpt" convert hf-to-fsdp "$model" fsdp --tp 2
for folder in pt core fsdp; do
  expect 0 "$mckpt" inspect $folder --args
  lacks out '_extra_state'
  name=$(sed -n '/^$/{n;p;q}' out)
  case $folder:$name in
    "pt:  mp_rank_00_000_000/args "* | "core:  common.pt "* | "fsdp:  args "*) ;;
    *) fail "$folder: the first object is '$name'" ;;
  esac
done
expect 0 "$mckpt" inspect pt --args
has out 'objects of other ranks  x9, shown with --tree'
expect 0 "$mckpt" inspect core --args
has out 'extra states of modules  x27, shown with --tree'
expect 0 "$mckpt" inspect core --args --tree
has out 'decoder.layers.self_attention.linear_qkv._extra_state/shard_0_2'

# The config that is beside a checkpoint.
expect 0 "$mckpt" ls "$model" --as fsdp --tp 2 --rank 1
cp out wanted
for path in fsdp core core/release; do
  expect 0 "$mckpt" ls $path --as fsdp --tp 2 --rank 1
  cmp -s out wanted || fail "$path is not drawn as the model is"
done
expect 0 "$mckpt" plot core --as fsdp --dp 2 -o core.html
for path in fsdp core/release pt/release; do
  expect 3 "$mckpt" convert hf-to-fsdp $path no
  has err 'this is a checkpoint of Megatron'
  has err 'mckpt convert to-fsdp'
done
