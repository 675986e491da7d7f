#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# A quantised result is compared with its source of values: the source is quantised again, and codes and scales have to be
# the same. Where they are not, the answer says what each side is.
"$mckpt" example a >out
"$mckpt" convert quantize a q --to fp8-block -q
expect 0 "$mckpt" verify q --against a
has out "pass  against  77 tensors"
has out "q: equal"
"$mckpt" convert to-mcore a ckpt --tp 2 --no-sync -q >out
"$mckpt" export ckpt exported --quantize fp8-block -q >out
expect 0 "$mckpt" verify exported --against ckpt
expect 0 "$mckpt" verify exported --against a
# The checkpoint may also be what was made of the quantised model.
"$mckpt" convert hf-to-fsdp q made --no-sync -q >out
expect 0 "$mckpt" verify made --against q
expect 0 "$mckpt" verify q --against made

# One code and one scale.
for name in weight weight_scale_inv; do
  rm -rf bad && cp -r q bad
  python - "model.layers.1.self_attn.q_proj.$name" <<'PYTHON'
import glob, json, struct, sys
for path in glob.glob("bad/*.safetensors"):
    with open(path, "r+b") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        entry = json.loads(f.read(length)).get(sys.argv[1])
        if entry:
            f.seek(8 + length + entry["data_offsets"][0] + 2)
            byte = f.read(1)[0]
            f.seek(-1, 1)
            f.write(bytes([byte ^ 1]))
PYTHON
  rm bad/mckpt_manifest.json
  for source in a ckpt; do
    expect 1 "$mckpt" verify bad --against $source
    has out "tensor 'model.layers.1.self_attn.q_proj.$name': differs at ["
    lacks out "expected ,"
    has out "bad is quantised (fp8 blocks 128x128, 32 of 36 modules), and $source is not: \`mckpt diff\` measures"
  done
  expect 1 "$mckpt" verify bad --against a --json
  lacks out "expected ,"
  python - <<'PYTHON'
import json
found = json.load(open("out"))
assert any(d["found"] and d["expected"] for d in found["differences"]), found["differences"]
PYTHON
done

# Like a published model, whose scales are kept where they stand for the values.
published=$MCKPT_SOURCE/test_data/quantized/gpt_oss
"$mckpt" convert dequantize "$published" values -q
"$mckpt" convert quantize values again --to like-source --like "$published" -q
expect 0 "$mckpt" verify again --against values
expect 0 "$mckpt" verify "$published" --against values
"$mckpt" convert quantize a other --to fp8-block -q
expect 1 "$mckpt" verify other --against values
has out "other is quantised"
lacks out "expected ,"
