#!/usr/bin/env bash
# A type that is asked for is written into config.json, too, in the spelling that it has; without one the config stays byte for byte,
# and a result that is larger than the checkpoint is said.
. "$MCKPT_SOURCE/tests/support/common.inc"
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe # torch_dtype bfloat16

expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt --tp 2 --no-sync -q
expect 0 "$mckpt" export ckpt wide --dtype fp32 --no-sync
has err "config  with dtype float32, as the tensors have it"
lacks err "config.json says"
[ "$(sed 's/"torch_dtype": "float32"/"torch_dtype": "bfloat16"/' wide/config.json)" = "$(cat "$model/config.json")" ] || fail "another change of config.json"
expect 0 "$mckpt" verify wide --against ckpt
expect 0 "$mckpt" verify wide
expect 0 "$mckpt" verify ckpt --against wide
# The next export goes by that config.
expect 0 "$mckpt" convert to-mcore wide again --no-sync -q
expect 0 "$mckpt" export again back --no-sync -q
expect 0 "$mckpt" diff wide back
cmp wide/config.json back/config.json

# A config that says another type than the tensors have is found.
sed -i 's/"torch_dtype": "float32"/"torch_dtype": "float16"/' wide/config.json
expect 1 "$mckpt" verify wide --against ckpt

# Nested configs, and tensors under their own names: both entries follow, others stay.
mkdir own
cp "$model"/* own/
python3 - <<'P'
import json
config = json.load(open("own/config.json"))
del config["torch_dtype"]
config.update(dtype="float32", text_config={"dtype": "float32", "note": "dtype"}, quantization_note={"dtype": "float32"})
json.dump(config, open("own/config.json", "w"))
P
expect 0 "$mckpt" convert to-dcp "$model" dcp --no-sync -q
expect 0 "$mckpt" export dcp narrow --assets own --dtype fp16 --no-sync -q
python3 - <<'P'
import json
config = json.load(open("narrow/config.json"))
assert (config["dtype"], config["text_config"], config["quantization_note"]) == ("float16", {"dtype": "float16", "note": "dtype"}, {"dtype": "float32"}), config
P

# bf16 values of a model that was fp32 are not widened without a word.
rm own/*.safetensors* # what a run keeps beside its files
expect 0 "$mckpt" convert to-dcp dcp dcp32 --dtype fp32 --no-sync -q
expect 0 "$mckpt" convert to-mcore dcp32 small --assets own --dtype bf16 --no-sync -q
expect 0 "$mckpt" export small large --no-sync
has err "of bfloat16 become float32, the type of the model's own folder; --dtype keep leaves them"
expect 0 "$mckpt" export small kept --dtype keep --no-sync
