#!/usr/bin/env bash
# A plan that loses, doubles or cuts something is refused by --dry-run of every mode, with the tensor named, and by the run
# itself before it makes anything. $1: the program in which plans can be broken (broken_plan.cc).
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
broken=$1

expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt --tp 2 --dp 2 --no-sync -q
expect 0 "$mckpt" convert gpt-to-hybrid ckpt hybrid --pattern '*E*E' --no-sync -q
expect 0 "$mckpt" convert gpt-to-hybrid ckpt grouped --pattern '[*E][*E]' --no-sync -q

# refused HOW TEXT ARGUMENTS...: sound as it is, refused with $TEXT when it is broken so.
refused() {
  local status=4 how=$1 text=$2
  [ "$how" != unnamed ] || status=3  # MC2005: the model and its table do not match
  shift 2
  expect 0 "$broken" "$@" --dry-run
  has err "dropped 0"
  has err "invented 0"
  for run in --dry-run --no-sync; do
    MCKPT_BROKEN=$how expect $status "$broken" "$@" "$run"
    has err "$text"
    [ ! -e made ] && [ -z "$(find . -name '*.mckpt-tmp*')" ] || fail "something was made: $how $*"
  done
}

# A family whose table lacks a row loses tensors of the model, or keys of the checkpoint.
refused unnamed 'self_attn.o_proj.weight' convert hf-to-fsdp "$model" made --tp 2 --dp 2
refused unnamed 'self_attn.o_proj.weight' export ckpt made
refused unnamed 'self_attn.o_proj.weight' convert reshard ckpt made --dp 3
refused short 'linear_proj.weight' convert hf-to-fsdp "$model" made --tp 2 --dp 2
refused doubled 'o_proj.weight' convert hf-to-fsdp "$model" made --tp 2 --dp 2
refused short 'o_proj.weight' export ckpt made
refused doubled 'o_proj.weight' export ckpt made
for way in "reshard ckpt made --dp 3" "group hybrid made --pattern [*E][*E]" "ungroup grouped made" \
    "hybrid-to-gpt hybrid made" "gpt-to-hybrid ckpt made --pattern *E*E"; do
  set -f
  refused short model.module. convert $way
  refused doubled model.module. convert $way
  [ "${way%% *}" = reshard ] || refused lost model.module. convert $way
  set +f
done

# The same under the keys of v2, whose fused parameters are whole: here parts are joined, there divided.
refused unnamed 'self_attn.o_proj.weight' convert hf-to-fsdp "$model" made --engine v2 --dp 2
expect 0 "$mckpt" convert hf-to-fsdp "$model" v2 --engine v2 --ep 2 --dp 2 --no-sync -q
refused short model. convert reshard ckpt made --engine v2 --dp 3
refused doubled model. convert reshard ckpt made --engine v2 --dp 3
refused short model.module. convert to-fsdp v2 made --dp 3
refused doubled model. convert reshard v2 made --engine v2 --dp 3
refused unnamed 'self_attn.o_proj.weight' export v2 made

expect 0 "$mckpt" convert safetensors-to-pt "$model" model.pt -q
refused lost 'model.norm.weight, of the source' convert safetensors-to-pt "$model" made
refused lost 'model.norm.weight, of the source' convert pt-to-safetensors model.pt made
