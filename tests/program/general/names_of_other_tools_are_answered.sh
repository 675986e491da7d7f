#!/usr/bin/env bash
# Options and modes as other converters spell them, and an object where a tensor is asked for.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
answered() { # TEXT OPTION...
  expect 2 "$mckpt" convert hf-to-fsdp "$model" dst "${@:2}"
  has err "$1"
}
answered "did you mean --tp?" --target-tensor-parallel-size 2
answered "did you mean --tp?" --tensor-parallel 2
answered "did you mean --etp?" --target_expert_tensor_parallel_size 2
answered "did you mean --overwrite?" --force
answered "did you mean --ep?" --target-expert-parallel-size 2
answered "--dp D sets the number of ranks" --world-size 8
answered "SRC DST" --input x
answered "SRC DST" --output x
expect 2 "$mckpt" export "$model" dst --tp 2
has err "a Hugging Face folder has no grid"
expect 2 "$mckpt" export "$model" dst --torch-dtype fp16
has err "did you mean --dtype?"

expect 0 "$mckpt" convert --tp 2 hf-to-fsdp "$model" dst --dry-run
expect 2 "$mckpt" convert torch-dist-to-hf a b
has err "did you mean \`mckpt export SRC DST\`?"
expect 2 "$mckpt" convert-torch-dist-to-fsdp-dtensor a b
has err "mckpt convert to-fsdp"

expect 1 "$mckpt" cat "$MCKPT_SOURCE"/test_data/dcp/plain args
has err "'args' is an object and no tensor"
has err "--args"

# An option is guessed only where the words are near.
for option in --fast --deep; do
  expect 2 "$mckpt" verify "$model" $option
  lacks err "did you mean"
done
expect 2 "$mckpt" verify "$model" --rtol 1
has err "mckpt diff A B"
expect 2 "$mckpt" verify "$model" --reference x
has err "did you mean --against?"
expect 2 "$mckpt" export "$model" dst --hf-dir x
has err "did you mean --assets"
expect 2 "$mckpt" export "$model" dst --base-model x
has err "did you mean --base?"
answered "did you mean --overwrite?" -f
expect 2 "$mckpt" export "$model" dst --bf16
has err "did you mean --dtype bf16?"
expect 2 "$mckpt" merge-lora a b
has err "mckpt export ADAPTER DST --base HF_DIR"
expect 2 "$mckpt" download a
has err "mckpt downloads nothing"
