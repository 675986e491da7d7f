#!/usr/bin/env bash
# Files and folders that are something else are called by their names, and the error says how to go on.
. "$MCKPT_SOURCE"/tests/support/common.inc

python - <<'END'
import struct
import zipfile


def npy(values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack("<%df" % len(values), *values)


for name, method in (("stored.npz", zipfile.ZIP_STORED), ("deflated.npz", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(name, "w", method) as z:
        z.writestr("weight.npy", npy([1, 2, 3]))
open("array.npy", "wb").write(npy([1]))
open("model.onnx", "wb").write(b"\x08\x08\x12\x07pytorch\x1a\x052.1.0" + bytes(40))
open("model.tflite", "wb").write(b"\x1c\x00\x00\x00TFL3" + bytes(40))
open("model.gguf", "wb").write(b"GGUF\x03\x00\x00\x00" + bytes(40))
END
named() {
  expect 3 "$mckpt" inspect "$1"
  has err "$2"
}
named stored.npz "the file is a NumPy .npz archive"
named deflated.npz "the file is a NumPy .npz archive"
named array.npy "the file is a NumPy .npy file"
named model.onnx "the file is an ONNX model"
named model.tflite "the file is a TensorFlow Lite model"
named model.gguf "the file is a GGUF file"

# A folder of checkpoints names them.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
mkdir -p runs/notes
cp -r "$model" runs/first
cp -r "$MCKPT_SOURCE/test_data/dcp/plain" runs/second
named runs "checkpoints in it: first, second"
has err "name one of them, such as runs/first"
rm -r runs/first runs/second
cp "$MCKPT_SOURCE"/test_data/hdf5/*.h5 runs
named runs "checkpoints in it: old.h5, sample.h5"
rm runs/*.h5
# Other models that could be opened are named where the model of a folder cannot be.
mkdir beside
head -c 100 "$model/model-00001-of-00002.safetensors" >beside/a.safetensors
cp "$MCKPT_SOURCE/test_data/pt/list.pt" beside
named beside "files of torch.save in the folder, each of which can be opened by its name: list.pt"
named runs "mckpt formats   lists the formats that mckpt reads"

# An adapter and quantised models say what they are; an adapter cannot be converted as if it were a model.
mkdir adapter quantised packed
cp "$model/model-00001-of-00002.safetensors" adapter/adapter_model.safetensors
echo '{"peft_type": "LORA", "r": 8, "base_model_name_or_path": "org/base"}' >adapter/adapter_config.json
expect 0 "$mckpt" inspect adapter
has out "adapter LORA, rank 8, of org/base"
expect 3 "$mckpt" convert hf-to-fsdp adapter new
has err "an adapter, which is no model without the model that it changes"
for kind in quantised packed; do cp "$model"/* $kind; done
python - <<'END'
import json


def write(folder, how):
    config = json.load(open(folder + "/config.json"))
    json.dump({**config, "quantization_config": how}, open(folder + "/config.json", "w"))


write("quantised", {"quant_method": "fp8", "weight_block_size": [128, 64]})
weights = {"num_bits": 4, "type": "int", "group_size": 32}
write("packed", {"quant_method": "compressed-tensors", "format": "pack-quantized",
                 "config_groups": {"group_0": {"weights": weights}}})
END
expect 0 "$mckpt" inspect quantised
has out "quantized fp8, blocks of 128x64"
expect 0 "$mckpt" inspect packed
lacks out "groups of -1"
has out "quantized compressed-tensors pack-quantized, int 4 bits, groups of 32"

# One file of one rank has no map, and the answer says why.
expect 0 "$mckpt" inspect --map adapter
has out "there is nothing to map: one file of one rank has every tensor whole"

# Objects are printed once, names of files stay whole.
expect 0 "$mckpt" inspect --args "$MCKPT_SOURCE/test_data/pt/training.pt"
[ "$(grep -c 'Namespace, 11 fields' out)" = 1 ] || fail "the summary of an object is printed twice"
expect 0 "$mckpt" inspect "$MCKPT_SOURCE/test_data/pt"
grep -q '^dtypes.pt  *21 tensors' out || fail "the name of a file is divided at its dot"
