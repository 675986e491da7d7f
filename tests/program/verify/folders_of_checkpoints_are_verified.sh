#!/usr/bin/env bash
# The save of accelerate: folders of torch DCP for the model and the optimizer, files for the rest. Each is
# verified and has its verdict, whichever of them a folder's own reader takes; and so are the checkpoints of a
# folder that is none.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data
mkdir saved
cp -r "$data/dcp/fsdp2" saved/pytorch_model_fsdp_0
cp -r "$data/dcp/plain" saved/optimizer_0
expect 0 "$mckpt" verify saved
has out "saved/pytorch_model_fsdp_0: sound"
has out "saved/optimizer_0: sound"
has out "saved: 2 checkpoints, each sound"
lacks out "saved: sound"
cp "$data/pt/one_tensor.pt" saved/scheduler.bin
expect 0 "$mckpt" verify saved
has out "pass  beside"
expect 0 "$mckpt" inspect saved
has out "chosen pytorch_model_fsdp_0 (the only model)"
has out "beside this checkpoint, not shown: optimizer_0, scheduler.bin"
cut() {
  cp "$1" kept
  truncate -s -300 "$1"
  expect 1 "$mckpt" verify saved
  has out "${1#saved/*/}: "
  has out "${1%/*}: 2 checks failed"
  [ "$(grep -c '^saved/.*: sound' out)" = 1 ] || fail "not one of the two is sound: $(cat out)"
  has out "saved: 1 of 2 checkpoints is not sound"
  cp kept "$1"
}
cut saved/pytorch_model_fsdp_0/__1_0.distcp
cut saved/optimizer_0/__0_0.distcp
rm saved/scheduler.bin
cut saved/pytorch_model_fsdp_0/__1_0.distcp
# A folder with several models is none of them: the last line counts, and says what was not read, also inside of them.
mkdir two
cp -r "$data/models/tiny_qwen3_moe" two/a
cp -r "$data/dcp/fsdp2" two/b
echo text > two/README.md
echo text > two/b/notes.txt
expect 0 "$mckpt" verify two/
has out "two/a: sound"
has out "two/b: sound, but 1 file was not read"
has out "not read: README.md"
has out "two/: 2 checkpoints, each sound, but 2 files were not read"
expect 0 "$mckpt" verify two -q
[ "$(wc -l < out)" = 3 ] || fail "with -q not a line for each verdict: $(cat out)"
truncate -s -8 two/a/model-00001-of-00002.safetensors
expect 1 "$mckpt" verify two
has out "two/b: sound, but 1 file was not read"
has out "two: 1 of 2 checkpoints is not sound; 2 files were not read"
expect 1 "$mckpt" verify two --json
python -c '
import json
answer = json.load(open("out"))
assert [(p["path"], p["ok"], [u["path"] for u in p["unread"]]) for p in answer["parts"]] == [("a", False, []), ("b", True, ["notes.txt"])], answer
assert sorted(u["path"] for u in answer["unread"]) == ["README.md", "b/notes.txt"], answer
assert answer["findings"] and all(f["file"].startswith("a/") for f in answer["findings"]), answer
assert not answer["ok"] and [c["status"] for c in answer["checks"] if c["name"] == "below"] == ["fail"], answer'
# A link out of the folder is not followed, and named.
ln -s "$data/pt" saved/elsewhere
expect 0 "$mckpt" verify saved
has out "not read: elsewhere ("
# A folder without any is none, as ever.
mkdir none
echo text > none/README.md
expect 3 "$mckpt" verify none
# A checkpoint in it is judged as by itself: its manifest and assets too.
"$mckpt" convert hf-to-fsdp "$data/models/tiny_qwen3_moe" inner/run --no-sync -q 2>err
expect 0 "$mckpt" verify inner
sed -i 's/1000000\.0/1000001.0/' inner/run/release/hf_assets/config.json
expect 1 "$mckpt" verify inner/run
expect 1 "$mckpt" verify inner
has out "problem[MC1314]: hf_assets/config.json"
# A run's folder is one checkpoint, also where its tracker is damaged.
for text in '2elease' '' '??'; do
  printf '%s' "$text" > inner/run/latest_checkpointed_iteration.txt
  expect 3 "$mckpt" verify inner/run
  has err "error[MC1112]"
  expect 1 "$mckpt" verify inner
done
