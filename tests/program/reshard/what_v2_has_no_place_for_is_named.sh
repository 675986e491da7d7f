#!/usr/bin/env bash
# To Megatron-FSDP v2, from torch_dist as from fsdp_dtensor: objects that v2 has no place for are named and counted, also
# those that are inside the common state of torch_dist.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data
v2=("$mckpt" convert to-fsdp --assets "$data"/golden/models/tiny_dense2 --engine v2 -n)

expect 0 "${v2[@]}" "$data"/dcp/torch_dist_pp2 v2
has err "Megatron-FSDP v2 has no place for checkpoint_version, iteration, 13 _extra_state objects"
has err "dropped 0 and 13 objects"

expect 0 "${v2[@]}" "$data"/dcp/torch_dist_pp2 v2 --weights-only
has err "no place for checkpoint_version, iteration, 13 _extra_state objects"

expect 0 "$mckpt" convert to-fsdp "$data"/dcp/torch_dist_pp2 v1 --assets "$data"/golden/models/tiny_dense2 --no-sync
has err "fsdp_dtensor has no place for 13 _extra_state objects"
expect 0 "${v2[@]}" v1 v2
has err "Megatron-FSDP v2 has no place for checkpoint_version, iteration, args"
has err "dropped 0 and 3 objects"
