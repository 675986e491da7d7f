#!/usr/bin/env bash
# A parent folder with one model is opened as that model, by every command; what is beside it is named. One with several
# lists them, with a command for each.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data
sum_of() { "$mckpt" ls --jsonl --digest "$1" | grep -o '"sha256": *"[^"]*"' | sort; }
same_tensors() { [ "$(sum_of "$1")" = "$(sum_of "$2")" ] || fail "$1 and $2 have other tensors"; }

# transformers' Trainer with FSDP.
mkdir -p train/checkpoint-100
cp -r "$data/dcp/fsdp2" train/checkpoint-100/pytorch_model_fsdp_0
cp -r "$data/dcp/plain" train/checkpoint-100/optimizer_0
cp "$data"/rank_files/trainer/{scheduler.bin,rng_state_0.pth,training_args.bin} train/checkpoint-100
echo '{}' > train/checkpoint-100/trainer_state.json
for path in train/checkpoint-100 train; do
  expect 0 "$mckpt" inspect $path
  has out "chosen "
  has out "optimizer_0"
  has out "scheduler.bin"
  same_tensors $path "$data/dcp/fsdp2"
  expect 0 "$mckpt" verify $path
  has out "pytorch_model_fsdp_0: sound"
  has out "optimizer_0: sound"
  has out "2 checkpoints, each sound"
  expect 0 "$mckpt" stats $path
done
has out "weight"
expect 0 "$mckpt" inspect --json train/checkpoint-100
has out '"chosen": "pytorch_model_fsdp_0 (the only model)"'
has out '"beside": ["optimizer_0", "rng_state_0.pth", "scheduler.bin", "training_args.bin"]'
# Damage beside the model is found.
truncate -s -300 train/checkpoint-100/optimizer_0/__0_0.distcp
expect 1 "$mckpt" verify train
has out "optimizer_0: 2 checks failed"
has out "1 of 2 checkpoints is not sound"

# Two steps: nothing is guessed.
cp -r train/checkpoint-100 train/checkpoint-200
expect 3 "$mckpt" inspect train
has err "the folder holds several checkpoints, and is none itself"
has err "mckpt inspect train/checkpoint-100"
has err "mckpt inspect train/checkpoint-200"

# verl, with its own folders of steps, and a tracker.
mkdir -p run/global_step_7 run/global_step_14
cp -r "$data/rank_files/pieces" run/global_step_7/actor
cp -r "$data/rank_files/shards" run/global_step_14/actor
cp "$data/rank_files/trainer/rng_state_0.pth" run/global_step_14/data.pt
expect 3 "$mckpt" inspect run
has err "global_step_7, global_step_14"
echo 14 > run/latest_checkpointed_iteration.txt
expect 0 "$mckpt" inspect run
has out "global_step_14"
same_tensors run "$data/rank_files/shards"
same_tensors run/global_step_7 "$data/rank_files/pieces"
cp -r "$data/rank_files/replicas" run/global_step_14/critic
expect 3 "$mckpt" inspect run/global_step_14
has err "actor, critic"

# torchtitan
mkdir -p titan/checkpoint
cp -r "$data/dcp/fsdp2" titan/checkpoint/step-7
same_tensors titan "$data/dcp/fsdp2"

# A step of NeMo-RL, whose dataloader's file is not a model.
mkdir -p nemo/step_5/policy/{weights,optimizer}
cp -r "$data/dcp/fsdp2/." nemo/step_5/policy/weights
cp "$data/rank_files/trainer/scheduler.bin" nemo/step_5/train_dataloader.pt
same_tensors nemo/step_5 "$data/dcp/fsdp2"

# Whole files: the model is the model, and a conversion says what it does not read.
expect 0 "$mckpt" inspect "$data/rank_files/trainer"
has out "beside this checkpoint, not shown: optimizer.bin"
lacks out "exp_avg"
expect 0 "$mckpt" convert pt-to-safetensors "$data/rank_files/trainer" whole.safetensors
has err "pytorch_model_fsdp.bin (the only model); not read: optimizer.bin"
# The states of a trainer beside the files of ranks are nothing odd.
cp -r "$data/rank_files/accelerate" ranks
cp "$data"/rank_files/trainer/{scheduler.bin,rng_state_0.pth,training_args.bin} ranks
expect 0 "$mckpt" verify ranks
has out "ranks: sound"
lacks out "warning"
expect 0 "$mckpt" inspect ranks
has out "beside this checkpoint, not shown: rng_state_0.pth, scheduler.bin, training_args.bin"
cp ranks/pytorch_model_fsdp_0_rank0.bin ranks/other.bin
expect 0 "$mckpt" verify ranks
has out "warning[MC1108]: other.bin"
has out "warning[MC1225]: other.bin: the file has only the pieces of rank 0"
has out "ranks: sound, with warnings"
rm ranks/other.bin
# Two models are shown with their files' names; states alone as what they are.
cp -r "$data/rank_files/trainer" two
cp two/pytorch_model_fsdp.bin two/pytorch_model_fsdp_1.bin
expect 0 "$mckpt" ls two
has out "pytorch_model_fsdp_1.bin:model.norm.weight"
rm two/pytorch_model_fsdp*
expect 0 "$mckpt" ls two
has out "optimizer.bin:state.model.norm.weight.exp_avg"
expect 0 "$mckpt" inspect --json two/optimizer.bin
has out '"parameters": 0'

# A parent of nothing, and one that is a loop.
mkdir -p none/a/b
ln -s .. none/a/up
expect 3 "$mckpt" inspect none
