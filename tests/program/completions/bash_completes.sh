#!/usr/bin/env bash
# The words that bash offers for a command line, as it calls the function: COMP_WORDS, with the last one under
# the cursor.
. "$MCKPT_SOURCE"/tests/support/common.inc

"$mckpt" completions bash >script
. ./script
complete -p mckpt >registered
grep -qx 'complete -F _mckpt mckpt' registered || fail "mckpt is not registered: $(cat registered)"

# completes "EXPECTED..." WORD...: `=` is a word of its own, as bash cuts lines.
completes() {
  local expected=$1
  shift
  COMP_WORDS=(mckpt "$@")
  COMP_CWORD=$#
  _mckpt
  [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ' | sed 's/ $//')" = "$expected" ] ||
    fail "mckpt $* completes to: ${COMPREPLY[*]}, not to: $expected"
}
offers() {
  local expected=$1
  shift
  COMP_WORDS=(mckpt "$@")
  COMP_CWORD=$#
  _mckpt
  printf '%s\n' "${COMPREPLY[@]}" | grep -x -- "$expected" >/dev/null || fail "mckpt $* does not offer $expected: ${COMPREPLY[*]}"
}

mkdir -p ckpt 'two words'
touch model.safetensors

completes "verify" ver
completes "convert" conv
completes "env example explain export" e
for command in $(commands); do offers "$command" ""; done
completes "hf-to-fsdp hybrid-to-gpt" convert h
completes "reshard" --json convert res
completes "reshard" --color never convert res
completes "--dtype --dtype-rule" export ckpt out --dtype
completes "--strategy" convert hf-to-fsdp model ckpt --str
completes "--report" convert reshard ckpt out --rep
completes "--tp" convert reshard --tp
completes "cuda" roundtrip --device cu
completes "cuda" roundtrip --device = cu
completes "cpu cuda" roundtrip --device =
completes "optim optim_grads optim_grads_params" convert hf-to-fsdp model ckpt --strategy op
completes "optim_grads_params" convert hf-to-fsdp a b --data-parallel-sharding-strategy optim_grads_
completes "always" ls ckpt --color al
completes "MC1313" verify ckpt --against src --accept MC1313
completes "check" mappings ch
completes "gated_mlp gated_mlp_joined" mappings draw gated_ml
completes "qkv_few_groups" mappings --svg draw qkv_f
offers "qkv" mappings draw qk
completes "" mappings draw qwen3_n
completes "qwen3_next" mappings show qwen3_n
completes "" mappings show mo
completes "" mappings list q
completes "model.safetensors" mappings check mo
completes "" mappings check qwen3_n
completes "zsh" completions z
completes "fsdp-to-hf" help convert fsdp
completes "" convert hf-to-fsdp model ckpt --tp ""
completes "model.safetensors" verify mo
completes "model.safetensors" verify ckpt mo
completes "two words" ls two
completes "model.safetensors" verify ckpt --against m
completes "ckpt" export ckpt out --assets ck
completes "" export ckpt out --assets model
completes "model.safetensors" cat mo
completes "" cat ckpt mo
completes "model.safetensors" verify -- mo
completes "" pattern mo
