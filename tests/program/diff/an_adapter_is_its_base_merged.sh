#!/usr/bin/env bash
# The folder of a PEFT adapter is read as its base with the adapter merged: by diff beside its base, by others with --base.
. "$MCKPT_SOURCE"/tests/support/common.inc

data=$MCKPT_SOURCE/test_data/adapters/target_parameters
base=$data/base adapter=$data/adapter

# diff names exactly what the adapter changes, on either side, and what it does not.
expect 1 "$mckpt" diff "$base" "$adapter"
has out "26 of 45 tensors differ, 19 are bit-equal"
has out "compared: by name; $adapter is read as $base with the adapter in it"
has out "changed  model.layers.*.mlp.experts.*.down_proj.weight  all 8"
has out "model.layers.*.self_attn.q_proj.weight         all 2"
has out "same     lm_head.weight, model.embed_tokens.weight"
expect 1 "$mckpt" diff "$adapter" "$base" --only changed --json
python - "$t/out" "$data.expected.json" <<'END'
import json
import sys

found, expected = (json.load(open(path)) for path in sys.argv[1:])
assert sorted(r["name"] for r in found["rows"]) == sorted(expected["changed"]), found["rows"]
END

# Readers show the model.
expect 0 "$mckpt" inspect "$adapter" --base "$base"
has out "LoRA of rank 2 in $adapter, 26 of 45 tensors changed"
has out "model_type qwen3_moe"
lacks out "adapter_model.safetensors"
expect 0 "$mckpt" verify "$adapter" --base "$base"
has out "sound"
expect 0 "$mckpt" ls "$adapter" --base "$base" --digest --json
python - "$t/out" "$data.expected.json" <<'END'
import json
import sys

found, expected = (json.load(open(path)) for path in sys.argv[1:])
digests = {t["name"]: t["sha256"] for t in found["tensors"]}
assert digests == {n: a["sha256"] for n, a in expected["bf16"].items()}
END
expect 0 "$mckpt" cat "$adapter" "model.layers.0.self_attn.q_proj.weight[0, :2]" --base "$base"
has out "0.0"
expect 0 "$mckpt" stats "$adapter" "*layers.1*q_proj*" --base "$base"

# export writes it, with the files of the base; a training run can start from it.
expect 0 "$mckpt" export "$adapter" merged --base "$base"
has err "45 in -> 45 out: 45 copied, 26 changed; dropped 0, invented 0"
has err "adapter LoRA of rank 2"
cmp "$base/config.json" merged/config.json || fail "config.json is another one"
expect 0 "$mckpt" verify merged --against "$adapter" --base "$base"
has out "merged: equal"
expect 0 "$mckpt" diff merged "$adapter" --base "$base" -q
expect 1 "$mckpt" verify merged --against "$base"
# Without its base it is not a model; its own tensors can be compared.
for pair in "merged --against $adapter" "$adapter --against merged"; do
  expect 3 "$mckpt" verify $pair
  has err "the folder has an adapter, which is no model"
  has err "--base"
done
expect 0 "$mckpt" verify "$adapter/adapter_model.safetensors" --against "$adapter"
for mode in hf-to-fsdp to-mcore to-pt; do
  expect 0 "$mckpt" convert $mode "$adapter" $mode --base "$base" --tp 2 -q
  expect 0 "$mckpt" verify $mode --against merged
  expect 0 "$mckpt" verify $mode --against "$adapter" --base "$base"
  expect 0 "$mckpt" verify "$adapter" --against $mode --base "$base"
  has out "$adapter: equal"
done

expect 0 "$mckpt" convert to-dcp "$adapter" dcp --base "$base" --dp 2
has err "45 copied, 26 changed"
has err "adapter LoRA of rank 2"
expect 0 "$mckpt" verify dcp --against merged
expect 0 "$mckpt" convert to-safetensors "$adapter" one.safetensors --base "$base"
has err "45 copied, 26 changed"
has err "adapter LoRA of rank 2"
expect 0 "$mckpt" diff one.safetensors dcp -q
expect 1 "$mckpt" diff one.safetensors "$base" -q
expect 0 "$mckpt" plot "$adapter" --base "$base" -o page.html --json
has out '"tensors": 45'

# A merge that was interrupted is continued with the same adapter and no other.
cp -r "$adapter" own
(ulimit -f 10 && ! "$mckpt" export own resumed --base "$base" -q) >out 2>err || fail "the limit on files had no effect"
sed -i 's/"lora_alpha": [0-9]*/"lora_alpha": 9/' own/adapter_config.json
expect 4 "$mckpt" export own resumed --base "$base" --resume
has err "the files of the adapter: not those of the first run"
expect 0 "$mckpt" export "$adapter" resumed --base "$base" --overwrite -q
expect 0 "$mckpt" diff resumed merged -q

# An adapter that does not fit is refused, and nothing is written.
expect 3 "$mckpt" export "$adapter" alone
has err "an adapter, which is no model without the model that it changes"
has err "--base"
[ ! -e alone ] || fail "something was written"
expect 2 "$mckpt" inspect "$base" --base "$base"
has err "no path is one"
expect 2 "$mckpt" verify "$adapter" --base "$base" --report card.json
has err "a card is of a checkpoint as its files are"
expect 2 "$mckpt" inspect "$adapter" --base "$adapter"
has err "the base of an adapter is an adapter itself"
expect 3 "$mckpt" inspect "$adapter" --base "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe"
has err "do not fit"
expect 3 "$mckpt" inspect "$adapter" --base "$MCKPT_SOURCE/test_data/dcp/plain"
has err "the base of an adapter is none of safetensors"
cp -r "$adapter" bin && mv bin/adapter_model.safetensors bin/adapter_model.bin
expect 3 "$mckpt" inspect bin --base "$base"
has err "mckpt convert pt-to-safetensors bin/adapter_model.bin bin/adapter_model.safetensors"
