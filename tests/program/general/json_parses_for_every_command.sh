#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Every example of every command's help page, as JSON, on files that have the names of the examples: each gives an answer,
# one object that names its schema, and with --jsonl a line an object.
cat >check.py <<'PYTHON'
import json, sys
command, status, lines = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "--jsonl"
text = open("out", encoding="utf-8").read()
if status > 1:
    command, lines = "error", False
parts = text.splitlines() if lines else [text]
assert parts, "no answer"
for part in parts:
    answer = json.loads(part)
    assert isinstance(answer, dict) and len(answer) > 2, part
    if not lines:
        assert answer["schema"] == f"mckpt.{command}/1", answer["schema"]
        assert answer["ok"] is (status == 0), (answer["ok"], status)
PYTHON

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe Qwen3-30B-A3B
cp -r Qwen3-30B-A3B Qwen3-0.6B
mkdir kept
cp "$MCKPT_SOURCE"/test_data/live_ranks/tiny_qwen3_moe.tp2_rank1.json kept/rank1.json
"$mckpt" convert hf-to-fsdp Qwen3-30B-A3B kept/ckpt --tp 2 --ep 4 --iteration 1000 --no-sync -q >out
"$mckpt" export kept/ckpt out_hf --max-shard-size 5GB --no-sync -q >out
mv out_hf/model.safetensors kept
mkdir kept/checkpoint-500
"$mckpt" convert to-dcp Qwen3-0.6B kept/checkpoint-500/pytorch_model_fsdp_0 --section model --no-sync -q >out
cp Qwen3-0.6B/config.json kept/checkpoint-500
cp -r "$MCKPT_SOURCE"/test_data/own_families/phi3 Phi-3-mini
"$mckpt" mappings draft Phi-3-mini kept/phi3.json >out 2>err || true  # questions are open
mkdir kept/adapter
python - <<'PYTHON'
import json, struct
header, at = {}, 0
for name, shape in (("lora_A", [2, 16]), ("lora_B", [32, 2])):
    size = 4 * shape[0] * shape[1]
    header[f"base_model.model.model.layers.0.self_attn.q_proj.{name}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
open("kept/adapter/adapter_model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.5) * (at // 4))
json.dump({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}, open("kept/adapter/adapter_config.json", "w"))
PYTHON
"$mckpt" convert safetensors-to-pt kept/model.safetensors kept/model.pt --no-sync -q >out

# Everything that an example reads, and nothing that it makes.
prepare() {
  rm -rf ckpt adapter checkpoint-500 model.safetensors model.pt out_hf phi3.json tiny_qwen3_moe
  cp -r kept/* .
  case $1 in
    "convert hf-to-fsdp "*) rm -r ckpt ;;
    "convert pt-to-safetensors "*) rm model.safetensors ;;
    "convert safetensors-to-pt "*) rm model.pt ;;
    "mappings draft "*) rm phi3.json ;;
  esac
}

answered=0
for command in $(commands); do
  while read -r line; do
    for flag in --json --jsonl; do
      status=0
      prepare "$line"
      # The examples are written for a shell.
      eval "\"\$mckpt\" $flag $line" >out 2>err </dev/null || status=$?
      python check.py "$command" $status $flag || fail "exit status $status: mckpt $flag $line"
      if [ $status -le 1 ]; then
        answered=$((answered + 1))
      elif [ "$command" != roundtrip ]; then  # which needs the torch module
        fail "exit status $status: mckpt $flag $line"
      fi
    done
  done < <(examples "$command")
done
[ $answered -ge 50 ] || fail "only $answered examples gave an answer"
