#!/usr/bin/env bash
# A DCP folder whose records are safetensors (SerializationFormat.SAFETENSORS of torch), which torch itself cannot read back: names, shapes and objects are shown, and every
# command that wants the values names the form and the way out of it.
source "$MCKPT_SOURCE/tests/support/common.inc"
folder=$MCKPT_SOURCE/test_data/dcp/safetensors_inside
expect 1 "$mckpt" inspect --args "$folder"
has out "records safetensors"
has out "epoch.number  3"
expect 1 "$mckpt" ls "$folder"
has out "layer.weight  float32   [5, 3]"
has out "layer.bias    bfloat16  [4]"
named="torch wrote the tensors as safetensors (SerializationFormat.SAFETENSORS)"
way="save the checkpoint again as torch.save does, which is the default, or with HuggingFaceStorageWriter"
expect 1 "$mckpt" verify "$folder"
has out "problem[MC1310]: __1_0.distcp: rank 1: tensor 'layer.bias': $named"
has out "0 values, 19 could not be read"
has out "$way"
for command in "ls --digest" "stats" "cat"; do
  expect 3 "$mckpt" $command "$folder" $([ "$command" != cat ] || echo layer.bias)
  has err "error[MC1310]: $named"
  has err "$way"
done
expect 3 "$mckpt" convert to-safetensors "$folder" made.safetensors
has err "error[MC1310]: $named"
expect 3 "$mckpt" convert to-dcp "$folder" made
has err "error[MC1310]: $named"
[ ! -e made ] && [ ! -e made.safetensors ] || fail "something was written"
# Other overlaps are not called so: here the records of two tensors are one archive.
cp -r "$MCKPT_SOURCE/test_data/dcp/plain" plain
expect 0 "$mckpt" inspect plain
lacks out "safetensors"
