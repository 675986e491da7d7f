#!/usr/bin/env bash
# Files of ranks that are not one save: of a job of another size, of another rank than their name says, lost, or with
# copies that differ. None of them is sound, and each problem names its file or its ranks.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data/rank_files
begin() {
  rm -rf saved
  cp -r "$data/$1" saved
}
broken() { # WORDS...: `verify` fails with each of them, and no conversion takes the folder
  expect 1 "$mckpt" verify saved
  for words; do has out "$words"; done
  expect 3 "$mckpt" convert pt-to-safetensors saved out.safetensors --tensors-only
}

begin pieces
cp "$data"/replicas/model_world_size_4_rank_*.pt saved
broken "model_world_size_4_rank_2.pt: the file is of another save than the model here: one of a job of 4 ranks"
lacks out "model_world_size_3"
lacks out "a hole"  # each of these files by itself is not a checkpoint, which is not said as well
begin pieces
cp "$data/replicas/model_world_size_4_rank_1.pt" saved/model_world_size_3_rank_1.pt
broken "model_world_size_3_rank_1.pt: by its name the file is of one of 3 ranks, but a job of 4 ranks wrote it" "most tensors of the file are not described as in model_world_size_3_rank_0.pt"
expect 1 "$mckpt" verify saved
[ "$(grep -c 'most tensors' out)" = 1 ] || fail "another model's file is said more than once"
lacks out "rank 1 describes"
lacks out "of 4 ranks are there"
# The odd one of three may be the first.
begin pieces
cp "$data/replicas/model_world_size_4_rank_0.pt" saved/model_world_size_3_rank_0.pt
broken "model_world_size_3_rank_0.pt: most tensors of the file are not described as in model_world_size_3_rank_1.pt"
for folder in pieces shards; do
  begin $folder
  cp "$data/$folder/model_world_size_3_rank_0.pt" saved/model_world_size_3_rank_1.pt
  broken "model_world_size_3_rank_1.pt: by its name the file is of rank 1, but rank 0 wrote it"
  begin $folder
  rm saved/model_world_size_3_rank_1.pt
  broken "files of model are missing: 2 of 3 ranks are there; the first that is missing is model_world_size_3_rank_1.pt" "a hole: no chunk covers"
done
# The optimizer of a job of another size.
begin replicas
cp "$data"/pieces/optim* saved
broken "optim_world_size_3_rank_0.pt: the file is of one of 3 ranks, but the model's files are of 4"
# accelerate's names do not say how many ranks there are; the tensors in the files do.
begin accelerate
rm saved/*_rank1.bin
broken "files of pytorch_model_fsdp_0 are missing: 1 of 2 ranks are there"
# A rank more often than once.
begin accelerate
cp saved/pytorch_model_fsdp_0_rank1.bin saved/pytorch_model_fsdp_0_rank01.bin
broken "is of rank 1, and so is"

# A plain tensor of which each rank should have a copy, and one has other values; whole tensors are not put together.
cat > bias.py <<'P'
import sys, zipfile
old = zipfile.ZipFile(sys.argv[1])
with zipfile.ZipFile(sys.argv[2], 'w') as new:
    for entry in old.infolist():
        data = old.read(entry)
        is_bias = data == b'\0\0\xc8\x43\0\x80\xc8\x43\0\0\xc9\x43'  # 400, 401, 402
        new.writestr(entry, b'\1' * 12 if is_bias else data)
P
begin pieces
python bias.py "$data/pieces/model_world_size_3_rank_2.pt" saved/model_world_size_3_rank_2.pt
broken "rank 0 and rank 2 have different values of it, and each should have a copy of the whole"
expect 1 "$mckpt" ls saved
has out "rank_2:model.layers.0.mlp.gate.e_score_correction_bias"
# A piece of which another group of ranks has a copy.
begin replicas
python bias.py saved/model_world_size_4_rank_3.pt other.pt
cp other.pt saved/model_world_size_4_rank_3.pt
broken "rank 0 and rank 3 have different values of it"

# Without checksums small copies are read and compared.
cat > no_sums.py <<'P'
import struct, sys
for path in sys.argv[1:]:
    data = bytearray(open(path, 'rb').read())
    for mark, field in ((b'PK\1\2', 16), (b'PK\3\4', 14), (b'PK\7\x08', 4)):
        at = data.find(mark)
        while at >= 0:
            data[at + field:at + field + 4] = bytes(4)
            at = data.find(mark, at + 4)
    open(path, 'wb').write(data)
P
begin pieces
python no_sums.py saved/*.pt
expect 0 "$mckpt" verify saved
lacks out "were not compared"
has out "sound, with warnings"
begin pieces
python bias.py "$data/pieces/model_world_size_3_rank_2.pt" saved/model_world_size_3_rank_2.pt
python no_sums.py saved/*.pt
broken "rank 0 and rank 2 have different values of it"

# Files that changed places. The contents of verl's other files belong to no rank by themselves, but
# torch.save wrote their names in them.
swap() { mv "$1" held && mv "$2" "$1" && mv held "$2"; }
begin verl1st_w3
swap saved/extra_state_world_size_3_rank_0.pt saved/extra_state_world_size_3_rank_2.pt
broken "extra_state_world_size_3_rank_0.pt: rank 0: this is another file of the save: it was saved as extra_state_world_size_3_rank_2.pt" \
  "extra_state_world_size_3_rank_2.pt: rank 2: this is another file of the save"
# DTensors whose meshes do not say the rank; then the name says it, and if the name is "archive", nothing does.
cat > unsaid.py <<'P'
import sys, zipfile
top = sys.argv[1]
for path in sys.argv[2:]:
    old = zipfile.ZipFile(path)
    entries = [(e.filename, old.read(e)) for e in old.infolist()]
    with zipfile.ZipFile(path, 'w') as new:
        for name, data in entries:
            data = data.replace(b'\5\0\0\0_rank', b'\5\0\0\0_runk')
            new.writestr(name if not top else top + name[name.index('/'):], data)
P
begin pieces
rm saved/optim*
python unsaid.py "" saved/*.pt
expect 0 "$mckpt" verify saved
lacks out "order of the ranks"
swap saved/model_world_size_3_rank_0.pt saved/model_world_size_3_rank_1.pt
broken "model_world_size_3_rank_1.pt: rank 1: this is another file of the save: it was saved as model_world_size_3_rank_0.pt"
python unsaid.py archive saved/*.pt
expect 0 "$mckpt" verify saved
has out "order of the ranks: not checked (nothing in the files says it)"
# "_rank" is called "_runk" there, which is said too.
has out "sound, with warnings, but the order of the ranks was not checked"
expect 0 "$mckpt" convert to-safetensors saved swapped --no-sync
has err "if files of two ranks changed places, the weights are wrong"

# Flat pieces (LOCAL_STATE_DICT): shown without shapes; and files that are not one save.
expect 0 "$mckpt" verify "$data/flat"
has out "sound"
expect 0 "$mckpt" inspect "$data/flat"
has out "torch.save, flat pieces of ranks"
has out "flat parameters 1"
begin flat_lost
broken "items 0 to 31 of _flat_param are of no tensor"
expect 1 "$mckpt" verify "$data/flat_nameless"
has out "no tensor in it is a part of a flat parameter"
has out "SHARDED_STATE_DICT"
begin flat
cp "$data/flat/pytorch_model_fsdp_rank0.bin" saved/pytorch_model_fsdp_rank1.bin
broken "by its name the file is of rank 1, but rank 0 wrote it"
begin flat
rm saved/pytorch_model_fsdp_rank0.bin
broken "the first that is missing is pytorch_model_fsdp_rank0.bin"
expect 0 "$mckpt" ls "$data/flat/pytorch_model_fsdp_rank1.bin"
has err "flat pieces of rank 1 of 2"

# The file of one rank by itself, and commands and types that are for others.
for how in export "convert to-dcp" "convert to-safetensors" "convert pt-to-safetensors"; do
  expect 3 "$mckpt" $how "$data/pieces/model_world_size_3_rank_1.pt" out.safetensors
  has err "MC1225"
  has err "name the folder with the files of all ranks"
  [ ! -e out.safetensors ] || fail "$how of one rank's file made something"
done
expect 3 "$mckpt" convert reshard "$data/pieces" resharded
has err "mckpt convert to-fsdp makes one of a checkpoint with the model's own names"
expect 2 "$mckpt" export "$data/pieces" exported --dtype fp8
has err "expected auto, keep, bf16, fp16 or fp32"
