#!/usr/bin/env bash
# layout of a checkpoint takes the grid of its args, and says so. An option comes first.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt --tp 2 --ep 2 --dp 4 --hsdp 2 --strategy optim --no-sync -q
expect 0 "$mckpt" layout ckpt
has out 'optim: tp=2 cp=1 ep=2 etp=1 pp=1 dp=4 hsdp=2'
has err 'tp=2 cp=1 ep=2 etp=1 hsdp=2 dp=4 hsdp-outer=replicate strategy=optim from the args of the checkpoint'
lacks err 'chosen'
cp out from_args
expect 0 "$mckpt" layout ckpt --tp 2 --ep 2 --dp 4 --hsdp 2 --strategy optim
cmp out from_args || fail "the layout differs from that of the same grid in options"
lacks err 'disagree'

# Args that are of another run than the boxes.
cp -r ckpt other
python - <<'P'
import glob, struct, zlib
path = glob.glob("other/*/__0_0.distcp")[0]
with open(path, "rb") as f:
    data = f.read()
at = data.index(b"context_parallel_size")
header = data.rindex(b"PK\3\4", 0, at)
name, extra = struct.unpack_from("<HH", data, header + 26)
begin = header + 30 + name + extra
entry = data.index(b"PK\1\2", at)
while data[entry + 46 : entry + 46 + name] != data[header + 30 : header + 30 + name]:
    entry = data.index(b"PK\1\2", entry + 1)
old = new = data[begin : begin + struct.unpack_from("<I", data, entry + 24)[0]]
for word, was, becomes in ((b"context_parallel_size", 1, 2), (b"tensor_model_parallel_size", 2, 1)):
    assert new.count(word + b"K" + bytes([was])) == 1, word
    new = new.replace(word + b"K" + bytes([was]), word + b"K" + bytes([becomes]))
data = data.replace(old, new).replace(struct.pack("<I", zlib.crc32(old)), struct.pack("<I", zlib.crc32(new)))
with open(path, "wb") as f:
    f.write(data)
P
expect 0 "$mckpt" layout other
has err "warning: the args and the boxes of the checkpoint disagree: tp=1 by the args and 2 by the boxes, dp*cp=8 by the args and 4 by the boxes"

expect 0 "$mckpt" layout ckpt --tensor-model-parallel-size 1 --strategy optim_grads
has out 'optim_grads: tp=1 cp=1 ep=2 etp=1 pp=1 dp=4 hsdp=2'
has err 'hsdp-outer=replicate from the args of the checkpoint; tp=1 strategy=optim_grads from the options'
expect 0 "$mckpt" layout ckpt --tp 1 --json
has out '"tp": "option"'
has out '"ep": "args"'
has out '"strategy": "args"'

# A grid that the two make together and that cannot be is refused, after it was said where its sizes come from.
expect 2 "$mckpt" layout ckpt --cp 1 --etp 3
has err "tp=2 ep=2 hsdp=2 dp=4 hsdp-outer=replicate strategy=optim from the args of the checkpoint; cp=1 etp=3 from the options"

# Without args nothing changes.
expect 0 "$mckpt" layout "$model" --ep 2
has err 'dp=2 chosen, the smallest that works'
lacks err 'args'
expect 0 "$mckpt" layout "$model" --ep 2 --json
has out '"dp": "default"'

# A checkpoint with the layers of a hybrid model is shown as the model of its config.json, and says so.
expect 0 "$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" gpt
expect 0 "$mckpt" layout gpt
lacks err "another form"
expect 0 "$mckpt" convert gpt-to-hybrid gpt hybrid --pattern '*E*E'
expect 0 "$mckpt" layout hybrid
has err "names of another form than those of the model in config.json"
