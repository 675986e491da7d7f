#!/usr/bin/env bash
# --overwrite replaces results, never what they are made from, nor a folder that holds it.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
expect 0 "$mckpt" convert hf-to-fsdp hf run --tp 2 --no-sync
refused() {
  expect 4 "$mckpt" "$@" --overwrite --no-sync
  has err "error[MC3003]"
  has err "${what:-the source from which it is made}"
  expect 0 "$mckpt" verify run --against hf
}
refused export run run
refused export run/release run
refused export run run/release
refused export run run/release/hf_assets
what="a folder that is read, such as that of the assets" refused export run hf --assets hf
refused export run "$PWD"
ln -s run link
refused convert reshard link run
expect 0 "$mckpt" convert safetensors-to-pt hf model.pt --no-sync
refused convert pt-to-safetensors model.pt model.pt
# Results are replaced, also those beside or below the source.
expect 0 "$mckpt" convert hf-to-fsdp hf run --overwrite --no-sync
expect 0 "$mckpt" export run run/hf --no-sync
expect 0 "$mckpt" export run run/hf --overwrite --no-sync
# The error says what the folder of the other side is.
expect 3 "$mckpt" export hf out_hf
has err "hf-to-fsdp"
expect 3 "$mckpt" convert hf-to-fsdp run out_run
has err "mckpt export"
