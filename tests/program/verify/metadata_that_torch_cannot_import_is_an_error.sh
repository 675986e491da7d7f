#!/usr/bin/env bash
# torch imports the classes that .metadata names. One of torch's own in a module that torch does not have keeps it from
# reading anything; a fork's class is only told.
. "$MCKPT_SOURCE"/tests/support/common.inc
renamed() {
  rm -rf ckpt
  cp -r "$MCKPT_SOURCE/test_data/dcp/fsdp2" ckpt
  LC_ALL=C sed -i "s/$1/$2/" ckpt/.metadata
  cmp -s ckpt/.metadata "$MCKPT_SOURCE/test_data/dcp/fsdp2/.metadata" && fail "nothing was renamed: $1"
  return 0
}
for other in torch.distributed.checkpoint.metadatb torch.distributed.checkpoins.metadata torch.distributee.checkpoint.metadata; do
  renamed torch.distributed.checkpoint.metadata $other
  expect 1 "$mckpt" verify ckpt
  has out "torch cannot read .metadata, because torch has no $other.Metadata"
done
renamed torch.distributed.checkpoint.filesystem torch.distributed.checkpoint.filesysten
expect 1 "$mckpt" verify ckpt
has out "torch has no torch.distributed.checkpoint.filesysten._StorageInfo"
renamed StorageMeta StorageMetb
expect 1 "$mckpt" verify ckpt
renamed torch.distributed.checkpoint.metadata forks.distributed.checkpoint.metadata
expect 0 "$mckpt" verify ckpt
has out "ckpt: sound, with warnings"
