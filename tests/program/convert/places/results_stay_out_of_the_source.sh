#!/usr/bin/env bash
# A result is never written into what it is made from.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
expect 0 "$mckpt" convert hf-to-fsdp hf run --no-sync
ln -s hf link
before=$(find hf run | sort)
refused() {
  for how in "" --dry-run; do
    expect 4 "$mckpt" "$@" $how --no-sync
    has err "error[MC3003]: the result would be written into ${what:-the source from which it is made}"
    [ "$(find hf run | sort)" = "$before" ] || fail "something was written: $*"
  done
}
refused convert hf-to-fsdp hf hf
refused convert hf-to-fsdp hf hf/deep/er
refused convert hf-to-fsdp hf link/x
refused convert hf-to-fsdp hf run/../hf/x
(cd hf && expect 4 "$mckpt" convert hf-to-fsdp . new) || exit 1
[ ! -e hf/new ] || fail "something was written"
refused convert reshard run run/release
refused convert reshard run run/release --iteration 5
refused convert reshard run run
refused export run run/release/hf
# The folder of the assets is read too.
what="a folder that is read, such as that of the assets" refused export run hf/exported --assets hf
has err "choose an output outside of this folder"
# Beside it, they may be: another iteration of the run, and names that begin alike.
expect 0 "$mckpt" convert reshard run run --iteration 5 --no-sync
expect 0 "$mckpt" convert reshard run/iter_0000005 run --iteration 6 --no-sync
expect 0 "$mckpt" convert hf-to-fsdp hf hf2 --no-sync
expect 0 "$mckpt" export run run/hf --no-sync

# Files beside the iterations in a run's folder are not part of the model.
echo 5 >hf/latest_checkpointed_iteration.txt
expect 0 "$mckpt" convert hf-to-fsdp hf without --no-sync
[ -e without/release/hf_assets/config.json ] || fail "the assets are not there"
[ ! -e without/release/hf_assets/latest_checkpointed_iteration.txt ] || fail "a tracker went along"
