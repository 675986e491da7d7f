#!/usr/bin/env bash
# Only a model's tables tell how fused tensors of several tensor-parallel ranks become one rank's: without
# tables, reshard refuses such a checkpoint before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
layers=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["num_hidden_layers"])' "$model/config.json")
pattern=$(for _ in $(seq "$layers"); do printf '*E'; done)
refused() {  # SRC ARG RANKS HELP [FLAG...]
  local how
  for how in "" --dry-run; do
    expect 4 "$mckpt" convert reshard "$1" none --no-sync --dp 2 $how "${@:5}"
    has err "error[MC2013]"
    has err "$2 1"
    has err "$3"
    has err "$4"
    [ ! -e none ] || fail "something was written"
  done
}
expect 0 "$mckpt" convert hf-to-fsdp "$model" two --no-sync --tp 2 --dp 2
expect 0 "$mckpt" convert gpt-to-hybrid two two_hybrid --no-sync --pattern "$pattern"
refused two tensor_model_parallel_size 2 --keep-names --any-model
refused two_hybrid tensor_model_parallel_size 2 hybrid-to-gpt
refused two_hybrid tensor_model_parallel_size 2 hybrid-to-gpt --tp 1
expect 0 "$mckpt" convert hf-to-fsdp "$model" etp --no-sync --etp 2 --dp 2
refused etp expert_tensor_parallel_size 2 --keep-names --any-model

# One rank's are right, and so is what keeps the number of ranks.
expect 0 "$mckpt" convert hf-to-fsdp "$model" one --no-sync --dp 2
expect 0 "$mckpt" convert gpt-to-hybrid one one_hybrid --no-sync --pattern "$pattern"
for source in one one_hybrid; do
  expect 0 "$mckpt" convert reshard $source out_$source --no-sync --dp 3 $([ $source = one ] && echo --any-model)
  expect 0 "$mckpt" verify out_$source --against "$model"
done
expect 0 "$mckpt" convert reshard two kept --no-sync --dp 2 --any-model --keep-names
expect 0 "$mckpt" verify kept --against "$model" --assets "$model"
