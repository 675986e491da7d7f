#!/usr/bin/env bash
# "sound" is never said of files that were not read: `verify` reads the checkpoints beside the one that was opened, and
# names what it does not read.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data
cp -r "$data/models/tiny_qwen3_moe" model
cp "$data/pt/one_tensor.pt" model/optimizer.pt
echo '{"epoch": 1}' > model/trainer_state.json
expect 0 "$mckpt" verify model
has out "pass  beside   1 file"
has out "model: sound"
lacks out "not read"

# A file that nothing reads is named, and does not count as a failure; hidden files are not looked at.
echo text > model/README.md
touch model/.gitattributes
expect 0 "$mckpt" verify model
has out "not read: README.md"
has out "model: sound, but 1 file was not read"
expect 0 "$mckpt" verify --json model
has out '"unread": [{"path": "README.md", "reason": null}]'

# Cut files beside: the state of an optimizer, a model in another format, JSON.
truncate -s 300 model/optimizer.pt
expect 1 "$mckpt" verify model
has out "optimizer.pt: "
has out "model: 1 check failed; 1 file was not read"
cp "$data/pt/one_tensor.pt" model/optimizer.pt
cp -r "$data/dcp/fsdp2" dcp
head -c 100 model/model-00001-of-00002.safetensors > dcp/model.safetensors
expect 1 "$mckpt" verify dcp
has out "model.safetensors: the file is truncated"
rm dcp/model.safetensors
echo '{"a": ' > dcp/run.json
expect 0 "$mckpt" verify dcp
has out "run.json: "
has out "dcp: sound, with warnings"

# Each part of what Trainer saves: optimizer, schedule, random states, arguments.
for file in optimizer.bin scheduler.bin random_states_0.pkl rng_state_0.pth training_args.bin; do
  rm -rf trainer && cp -r "$data/rank_files/trainer" trainer
  expect 0 "$mckpt" verify trainer
  has out "pass  beside   5 files"
  truncate -s -40 "trainer/$file"
  expect 1 "$mckpt" verify trainer
  has out "$file: "
  has out "trainer: 1 check failed"
done
expect 0 "$mckpt" verify "$data/rank_files/trainer"
has out "trainer: sound"
lacks out "no optimizer"
rm -rf trainer && cp -r "$data/rank_files/trainer" trainer
rm trainer/optimizer.bin
expect 0 "$mckpt" verify trainer
has out "-     states   no optimizer was found beside scheduler.bin, which is saved together with one"
has out "trainer: sound, but no optimizer was found"
# A folder that was saved without either says nothing of it.
rm trainer/scheduler.bin
expect 0 "$mckpt" verify trainer
lacks out "no optimizer"
expect 0 "$mckpt" inspect "$data/rank_files/trainer"
has out "optimizer.bin, random_states_0.pkl, rng_state_0.pth, scheduler.bin, training_args.bin"
# A rank's optimizer that is cut, or not there: the file is named once, and leads.
for cut in -s-300 -s0; do
  rm -rf ranks && cp -r "$data/rank_files/accelerate" ranks
  truncate "$cut" ranks/optimizer_0_rank0.bin
  expect 1 "$mckpt" verify ranks
  has out "]: optimizer_0_rank0.bin: "
  [ "$(grep -c 'optimizer_0_rank0.bin: ' out)" = 1 ] || fail "the file is named more often than once: $(cat out)"
  expect 3 "$mckpt" convert to-safetensors ranks one.safetensors --no-sync
  has err "optimizer_0_rank0.bin"
  lacks err "MC1113"
done
rm ranks/pytorch_model_fsdp_0_rank1.bin
expect 3 "$mckpt" convert to-safetensors ranks one.safetensors --no-sync
lacks err "MC1113"
cp "$data/rank_files/accelerate/optimizer_0_rank0.bin" ranks
expect 3 "$mckpt" convert to-safetensors ranks one.safetensors --no-sync
has err "error[MC1106]: files of pytorch_model_fsdp_0 are missing: 1 of 2 ranks are there; the first that is missing is pytorch_model_fsdp_0_rank1.bin"
lacks err "MC1113"

# Another iteration is another checkpoint.
mkdir -p run/iter_0000010
cp -r "$data/dcp/fsdp2" run/iter_0000020
cp "$data/pt/one_tensor.pt" run/iter_0000010/
echo 20 > run/latest_checkpointed_iteration.txt
expect 0 "$mckpt" verify run
has out "not read: iter_0000010 (another iteration)"
expect 0 "$mckpt" verify run --against dcp
has out "run: equal"
cp "$data/pt/one_tensor.pt" run/iter_0000020/scheduler.pt
expect 0 "$mckpt" verify run --against dcp
has out "not compared: iter_0000020/scheduler.pt"
has out "run: equal, but 1 file was not compared"

# Where each rank wrote a table of its own, in place of .metadata, all of them were read.
cp -r "$data/dcp/per_rank" per_rank
expect 0 "$mckpt" verify per_rank
has out "per_rank: sound"
lacks out "not read"
# Beside a .metadata no store reads them: they are pickles like others, known by their bytes.
cp per_rank/__0.metadata dcp/
expect 0 "$mckpt" verify dcp
lacks out "not read: __0.metadata"
has out "beside   2 files"

# A second copy of a rank's file has holes where the pieces of the other ranks are: it is told of, and is not
# damage.
cp -r "$data/rank_files/verl2_w3" copied
ln copied/model_world_size_3_rank_0.pt copied/model_world_size_3_rank_0.pt.h
expect 0 "$mckpt" verify copied
has out "warning[MC1225]: model_world_size_3_rank_0.pt.h"
lacks out "MC1304"
expect 1 "$mckpt" verify copied/model_world_size_3_rank_0.pt.h
has out "MC1304"

# A hidden name hides nothing that a program could load; other hidden names are of tools.
cp -r "$data/models/tiny_qwen3_moe" hidden
mkdir hidden/.more hidden/.git
touch hidden/.gitattributes hidden/.git/config hidden/._pytorch_model.bin
cp "$data/pt/one_tensor.pt" hidden/.more/state.pt
expect 0 "$mckpt" verify hidden
has out "not read: .more (a hidden folder)"
has out "hidden: sound, but 1 folder was not read"
lacks out ".git"
lacks out "._pytorch"
rm -r hidden/.more
cp "$data/pt/one_tensor.pt" hidden/.state.pt
expect 0 "$mckpt" verify hidden
has out "not read: .state.pt (a hidden file)"
