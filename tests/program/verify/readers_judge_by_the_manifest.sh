#!/usr/bin/env bash
# A file that a reader takes from a folder by mckpt is compared with the folder's manifest.
. "$MCKPT_SOURCE"/tests/support/common.inc

"$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" ck --tp 2 --ep 4 -q
"$mckpt" export ck hf --max-shard-size 5GB -q

# flip FILE BYTE: changes one bit of it
flip() {
  python - "$1" "$2" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as f:
    data = bytearray(f.read())
    data[int(sys.argv[2])] ^= 1
    f.seek(0)
    f.write(data)
PYTHON
}
# refused FILE COMMAND...: the command names the file and writes nothing
refused() {
  local file=$1
  shift
  expect 3 "$mckpt" "$@"
  has err "$file"
  [ ! -e made/release ] && [ ! -e made/config.json ] || fail "$* published a result"
  rm -rf made .made.mckpt-tmp
}

# A tab in config.json: the JSON is the same, the file is not.
sed -i 's/": /":\t/1' ck/release/hf_assets/config.json
refused config.json export ck made
has err "error[MC1314]"
has err "remove mckpt_manifest.json"
refused config.json convert reshard ck made --dp 2
expect 1 "$mckpt" verify ck
has out "hf_assets/config.json"
expect 1 "$mckpt" verify hf --against ck
rm -r ck
"$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" ck --tp 2 --ep 4 -q

# A bit of the weights.
cp -r hf sound
flip hf/model.safetensors -1
refused model.safetensors convert hf-to-fsdp hf made --tp 2
has err "error[MC1203]"
refused model.safetensors convert safetensors-to-pt hf made
expect 1 "$mckpt" verify hf
has out "FAIL  crc32"
has out "have its names and sizes"
lacks out "fit the manifest"
flip hf/model.safetensors -1
expect 0 "$mckpt" convert hf-to-fsdp hf made --tp 2
rm -r made

# Data of another save that are sound by themselves.
python - <<'PYTHON'
import shutil
shutil.copytree("sound", "other")
with open("other/model.safetensors", "r+b") as f:
    data = bytearray(f.read())
    for i in range(len(data) - 64, len(data), 2):
        data[i] ^= 1
    f.seek(0)
    f.write(data)
import os
os.remove("other/mckpt_manifest.json")
PYTHON
"$mckpt" convert hf-to-fsdp other ck2 --tp 2 --ep 4 -q
for file in ck2/release/*.distcp; do cp "$file" ck/release/; done
refused distcp export ck made
expect 1 "$mckpt" verify ck

# The manifest of another folder; one that was edited; none.
cp -r ck2/release/. ck/release/
expect 0 "$mckpt" verify ck
cp ck/release/mckpt_manifest.json hf/
expect 1 "$mckpt" verify hf
has out "describes another folder"
refused mckpt_manifest.json convert hf-to-fsdp hf made
sed -i 's/"bytes": /"bytes":  /' hf/mckpt_manifest.json
refused mckpt_manifest.json convert hf-to-fsdp hf made
has err "SHA-256"
rm hf/mckpt_manifest.json
expect 0 "$mckpt" convert hf-to-fsdp hf made
[ ! -e made/release/hf_assets/mckpt_manifest.json ] || fail "a manifest was taken for an asset"
rm -r made

# A file that is not there is not taken: verify says that it is missing.
cp -r ck2 bare
rm -r bare/release/hf_assets
expect 1 "$mckpt" verify bare
has out "problem[MC1302]: hf_assets/config.json: the file is missing"
expect 0 "$mckpt" export bare made --assets sound
cmp made/model.safetensors other/model.safetensors || fail "the model is another one"

# A file that is not listed is named, and nothing more.
echo text >sound/notes.txt
expect 0 "$mckpt" verify sound
has out "notes.txt"
has out "warning[MC1316]"

# A link that leads nowhere in place of the manifest.
rm -r made
ln -sf gone.json sound/mckpt_manifest.json
expect 1 "$mckpt" verify sound
has out "problem[MC1314]: mckpt_manifest.json: the manifest is a link that leads nowhere"
refused mckpt_manifest.json convert hf-to-fsdp sound made
has err "error[MC1314]: the manifest is a link that leads nowhere"
