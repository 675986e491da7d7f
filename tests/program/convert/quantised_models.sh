#!/usr/bin/env bash
# Quantised models as published go all the way: into a checkpoint of two and four ranks and back, equal to their source;
# dequantised; and quantised again into the very files that they came in.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data/quantized

same_files() { # FOLDER FOLDER: every file but the manifest
  diff -r -x mckpt_manifest.json "$1" "$2" >&2 || fail "$1 is not $2"
}

for model in "deepseek_v3_128 --tp 2 --ep 2 --dp 1" "gpt_oss --tp 2 --ep 4 --dp 4"; do
  set -- $model
  name=$1 source=$data/$1
  shift
  expect 0 "$mckpt" convert hf-to-fsdp "$source" $name.ckpt "$@"
  expect 0 "$mckpt" verify $name.ckpt --against "$source"
  has out "equal"
  expect 0 "$mckpt" export $name.ckpt $name.plain
  has err "config  without quantization_config"
  expect 0 "$mckpt" convert dequantize "$source" $name.values
  ! grep -E "share storage|tied" err >&2 || fail "computed tensors are not tied"
  # The same tensors, whatever way they came.
  expect 0 "$mckpt" verify $name.plain --against $name.values
  has out "equal"
  ! grep -q quantization_config $name.values/config.json || fail "config.json declares quantised weights"
  expect 0 "$mckpt" export $name.ckpt $name.again --assets "$source" --quantize like-source
  same_files $name.again "$source"
done

# The other way round, and blocks of FP8 are a fixed point of scales that came from bf16.
expect 0 "$mckpt" convert quantize gpt_oss.values gpt_oss.like --to like-source --like "$data/gpt_oss"
same_files gpt_oss.like "$data/gpt_oss"
# Shapes that are stored beside codes and scales are of the quantised model, not copied from the source.
expect 0 "$mckpt" convert dequantize "$data/kimi_k2_int4" kimi.values
expect 0 "$mckpt" convert quantize kimi.values kimi.like --like "$data/kimi_k2_int4" --report kimi.json
has err "41 in -> 65 out: 29 copied, 36 quantized"
grep -q '"made": "quantized", "rule": null, "items": 64, "from": \[{"name": "model.layers.1.mlp.experts.0.down_proj.weight", ' \
  kimi.json || fail "codes and scales are made of values"
same_files kimi.like "$data/kimi_k2_int4"
expect 0 "$mckpt" convert quantize deepseek_v3_128.values fp8 --to fp8-block
has err "61 in -> 97 out: 25 copied, 72 quantized, 72 changed; dropped 0, invented 0"
! grep "share storage" err >&2 || fail "computed tensors are not tied"
expect 0 "$mckpt" verify fp8 --against "$data/deepseek_v3_128"
has out "equal"
expect 0 "$mckpt" verify fp8
has out "scales"
! grep "same bytes" out >&2 || fail "scales are not experts"

# A name that ends in .safetensors is the name of one file.
expect 0 "$mckpt" convert dequantize "$data/gpt_oss" one.safetensors
[ -f one.safetensors ] || fail "one.safetensors is not a file"
expect 0 "$mckpt" verify one.safetensors --against gpt_oss.values
has out "equal"
# One file has no shards, whatever the source is.
rm one.safetensors
expect 2 "$mckpt" convert dequantize "$data/gpt_oss" one.safetensors --max-shard-size 5000
has err "--max-shard-size is for the files of a folder, and the result is one file"
has err "leave --max-shard-size out, or give the result the name of a folder"
[ ! -e one.safetensors ] || fail "one.safetensors was made"
expect 2 "$mckpt" convert dequantize "$data/loose/int.safetensors" values_of_int.safetensors --max-shard-size 5000
has err "leave --max-shard-size out"
lacks err "name of a folder"
expect 0 "$mckpt" convert dequantize "$data/gpt_oss" shards --max-shard-size 5000 --no-sync
[ -f shards/model.safetensors.index.json ] || fail "one file in spite of --max-shard-size"
expect 2 "$mckpt" convert dequantize "$data/gpt_oss" one.pt --max-shard-size 5000
has err "its name says another format"
expect 2 "$mckpt" convert dequantize "$data/gpt_oss" one.pt
has err "MC0001"
[ ! -e one.pt ] || fail "one.pt was made"

# Counted as what they are: computed.
expect 0 "$mckpt" convert dequantize "$data/deepseek_v3_128" planned --dry-run --report planned.json
has err "97 in -> 61 out: 25 copied, 36 dequantized, 36 changed; dropped 0, invented 0"
python - <<'PY'
import collections, json
report = json.load(open("planned.json"))
assert (report["dequantized"], report["quantized"], report["copied"]) == (36, 0, 25), report
made = collections.Counter(t["made"] for t in report["tensors"])
assert made == {"dequantized": 36, "copied": 25}, made
PY
expect 0 "$mckpt" convert hf-to-fsdp "$data/gpt_oss" planned --dry-run --tp 1
has err "17 copied, 4 fused, 32 split, 16 changed"

# Values under their names; codes and scales where they are asked for.
expect 0 "$mckpt" cat "$data/gpt_oss" 'model.layers.0.mlp.experts.gate_up_proj[0,:1,:4]'
has out "-0.1875  -0.25  0.03125  -0"
expect 0 "$mckpt" cat "$data/gpt_oss" 'model.layers.0.mlp.experts.gate_up_proj_scales[0,:1]'
has out "124  120  125"
expect 0 "$mckpt" inspect "$data/deepseek_v3_128"
has out "quantized modules fp8 blocks 128x128, 36 of 43 modules"
expect 0 "$mckpt" inspect "$data/gpt_oss"
lacks out "quantized mxfp4"
has out "stored  41 tensors   145 K (144,884) items"
expect 0 "$mckpt" verify "$data/gpt_oss"
has out "pass  scales   4 tensors       fit their codes"

# Only what was quantised is written in the type that was asked for, and that is what the comparison asks of it.
expect 0 "$mckpt" convert dequantize "$data/gpt_oss" wide --dtype fp32 --no-sync -q
expect 0 "$mckpt" verify wide --against "$data/gpt_oss" --dtype fp32
has out "pass  types    37 tensors"
expect 1 "$mckpt" verify gpt_oss.values --against "$data/gpt_oss" --dtype fp32
has out "problem[MC1010]: 4 tensors, model.layers.0.mlp.experts.down_proj"
expect 2 "$mckpt" convert dequantize "$data/loose/int.safetensors" named.pt
has err "its name says another format"

# A scale that is NaN, one that is negative, one that is zero, and a grid of scales of another shape.
cp -r "$data/gpt_oss" bad
cp -r "$data/deepseek_v3_128" worse
cp -r "$data/deepseek_v3_128" other
cp -r "$data/deepseek_v3_128" zero
cp -r "$data/deepseek_v3_128" nan
cp -r "$data/deepseek_v3_128" silent
python - <<'PY'
import json, os, struct
def data_of(path, name):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return 8 + size + json.loads(f.read(size))[name]["data_offsets"][0]
def put(path, name, at, value):
    begin = data_of(path, name)
    with open(path, "r+b") as f:
        f.seek(begin + at)
        f.write(value)
bad = "bad/model-00001-of-00002.safetensors"
put(bad, "model.layers.0.mlp.experts.down_proj_scales", 17, b"\xff")
worse = "worse/model-00002-of-00003.safetensors"
put(worse, "model.layers.1.self_attn.o_proj.weight_scale_inv", 4, struct.pack("<f", -1.0))
put(worse, "model.layers.1.self_attn.q_a_proj.weight_scale_inv", 0, struct.pack("<f", 0.0))
put("zero/model-00002-of-00003.safetensors", "model.layers.1.self_attn.q_a_proj.weight_scale_inv", 0, struct.pack("<f", 0.0))
put("nan/model-00002-of-00003.safetensors", "model.layers.1.self_attn.o_proj.weight", 130, b"\xff")
config = json.load(open("other/config.json"))
os.mkdir("silent/none")
config["quantization_config"]["weight_block_size"] = [64, 128]
json.dump(config, open("other/config.json", "w"))
del config["quantization_config"]
json.dump(config, open("silent/config.json", "w"))
PY
expect 1 "$mckpt" verify bad
has out "MC2017"
has out "down_proj_scales"
has out "NaN: 1 of 768"
expect 1 "$mckpt" verify worse
has out "negative: 1 of 2"
has out "zero: 1 of 4"
expect 3 "$mckpt" convert hf-to-fsdp other nothing --tp 1
has err "MC2016"
has err "expected [3, 2], found [2, 2]"
[ ! -e nothing ] || fail "something was written"

# A conversion of a model refuses a problem of verify, with tensor, file, index and numbers; unless it is
# accepted.
refused() { # WORDS COMMAND...: nothing is published
  local words=$1
  shift
  expect 3 "$mckpt" "$@"
  has err "MC2017"
  has err "$words"
  has err "accept"
  [ ! -e nothing/config.json ] && [ ! -e nothing/release ] || fail "something was published"
  rm -rf nothing
}
scales=model.layers.0.mlp.experts.down_proj_scales
refused "scales of model.layers.0.mlp.experts.down_proj that are NaN: 1 of 768, the first at [0, 8, 1]" convert dequantize bad nothing
has err "bad/model-00001-of-00002.safetensors"
has err "$scales"
refused "$scales" convert hf-to-fsdp bad nothing --tp 1
refused "$scales" convert to-mcore bad nothing --tp 1
refused "negative: 1 of 2, the first at [1, 0]" convert dequantize worse nothing
refused "codes of model.layers.1.self_attn.o_proj.weight that are NaN: 1 of" convert dequantize nan nothing
expect 0 "$mckpt" convert dequantize nan accepted --accept MC2017
has err "warning: model-00002-of-00003.safetensors"
has err "codes of model.layers.1.self_attn.o_proj.weight that are NaN: 1 of"
expect 0 "$mckpt" convert hf-to-fsdp worse accepted.ckpt --tp 1 --accept MC2017
has err "that are negative: 1 of 2, the first at [1, 0]"
has err "that are zero: 1 of 4, the first at [0, 0]"
expect 0 "$mckpt" convert dequantize zero zeros
has err "that are zero: 1 of 4, the first at [0, 0]"

# Codes and scales beside a config that does not declare them.
expect 1 "$mckpt" verify silent
has out "MC2016"
has out "the config does not declare it"
for how in "convert dequantize silent nothing" "convert hf-to-fsdp silent nothing --tp 1" "convert quantize silent nothing --to fp8-block"; do
  expect 3 "$mckpt" $how
  has err "MC2016"
  has err "expected an entry quantization_config"
  [ ! -e nothing ] || fail "something was written"
done

# A part that is not written, and a part that is missing, are named with what to do.
usage() { # WORDS WORDS COMMAND...
  local expected=$1 found=$2
  shift 2
  expect 2 "$mckpt" "$@"
  has err "expected $expected"
  has err "found    $found"
  has err "help:"
}
usage "fp8-block, mxfp4 or like-source" int4 convert quantize gpt_oss.values nothing --to int4
usage "fp8-block, mxfp4 or like-source" int8 export gpt_oss.ckpt nothing --quantize int8
usage "a folder with its codes and scales" "no --like" convert quantize gpt_oss.values nothing --to like-source
usage "the folder of that model with its safetensors files, as --assets" "no --assets" export gpt_oss.ckpt nothing --quantize like-source
usage "the folder of that model with its safetensors files" "silent/none, which has none" \
  export gpt_oss.ckpt nothing --quantize like-source --assets silent/none
usage "codes with scales" "plain numbers alone" convert quantize gpt_oss.values nothing --to like-source --like gpt_oss.values

# Values that are not finite have no codes, whatever the scheme: how many there are, where the first is, and no result.
not_finite() { # NAME TENSOR WORDS ARGUMENTS...: the values of the folder are refused
  local name=$1 tensor=$2 words=$3
  shift 3
  expect 3 "$mckpt" convert quantize $name refused.$name "$@"
  has err "MC2017"
  has err "$tensor"
  has err "$words"
  [ ! -e refused.$name ] || fail "something was published"
}
cp -r gpt_oss.values infinite
cp -r deepseek_v3_128.values infinite8
python - <<'PY'
import glob, json, struct
def put(folder, name, values):
    for path in glob.glob(folder + "/*.safetensors"):
        with open(path, "r+b") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(size))
            if name not in header:
                continue
            for item, bits in values.items():
                f.seek(8 + size + header[name]["data_offsets"][0] + 2 * item)
                f.write(struct.pack("<H", bits))
            return print(folder, name, header[name]["shape"])
    raise SystemExit("no " + name)
put("infinite", "model.layers.0.mlp.experts.down_proj", {5: 0x7f80})
put("infinite8", "model.layers.1.self_attn.o_proj.weight", {5: 0xff80, 7: 0x7fc0, 9: 0x7f80})
PY
not_finite infinite "model.layers.0.mlp.experts.down_proj" "1 infinity, the first at [0, 0, 5]" --to mxfp4
not_finite infinite "model.layers.0.mlp.experts.down_proj" "1 infinity, the first at [0, 0, 5]" \
  --to like-source --like "$data/gpt_oss"
not_finite infinite8 "model.layers.1.self_attn.o_proj.weight" \
  "1 NaN, the first at [0, 7], 2 infinities, the first at [0, 5]" --to fp8-block
