#!/usr/bin/env bash
# convert to-mcore says what it cannot make, and how to go on; other programs' words for it lead to it.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data
moe=$data/models/tiny_qwen3_moe

# Layers are one tensor only if they are alike; the other way is always possible.
expect 0 "$mckpt" convert to-mcore "$moe" core --layers indexed --no-sync -q
expect 0 "$mckpt" inspect core
has out "layers a tensor each | experts one tensor"
has out "└─ layers.{0,1}  "
expect 0 "$mckpt" verify core --against "$moe" -q

# A real save with its optimizer: two groups, and the way back has every state, option and schedule of the source.
llama=$data/golden/models/tiny_llama1
expect 0 "$mckpt" convert to-mcore "$data"/dcp/fsdp_dtensor_optim states --assets "$llama" --no-sync
has err "plan    27 in -> 32 out: 21 copied, 3 fused, 8 tied; dropped 0, invented 0"
expect 0 "$mckpt" inspect states
has out "optimizer fully_reshardable"
# Megatron takes weights alone from "release": states are in the iteration that the objects of the source say, and so are the args
# that are made for them.
[ "$(cat states/latest_checkpointed_iteration.txt)" = 7 ] || fail "states are not in iteration 7"
# The name of the source's folder comes first, in the result's folder and in the common state.
cp -r "$data"/dcp/fsdp_dtensor_optim iter_0000009
expect 0 "$mckpt" convert to-mcore iter_0000009 renamed --assets "$llama" --no-sync
python - <<'PY'
import pickle, zipfile
class Namespace:
    def __setstate__(self, state): self.__dict__.update(state)
class Reader(pickle.Unpickler):
    def find_class(self, module, name): return Namespace if name == "Namespace" else lambda *a: name
for states, iteration in ("states", 7), ("renamed", 9):
    with zipfile.ZipFile(f"{states}/iter_{iteration:07}/common.pt") as z:
        common = Reader(z.open(next(n for n in z.namelist() if n.endswith("data.pkl")))).load()
    found = common["iteration"], common["args"].iteration, common["args"].add_position_embedding
    assert found == (iteration, iteration, True), (states, found)
PY
expect 0 "$mckpt" verify states --against "$data"/dcp/fsdp_dtensor_optim --assets "$llama"
has out "not compared: args, which a change of format makes again"
has out "pass  against  36 tensors      as in the source"
has err "main    the main weights of the optimizer, made of the weights, are compared with the weights"
lacks out "\.param"
expect 0 "$mckpt" convert to-fsdp states back --dp 3 --no-sync
lacks err "common_state.optimizer"
[ ! -e back/iter_0000007/common.pt ] || fail "common.pt is copied to fsdp_dtensor"
expect 1 "$mckpt" verify back --against "$data"/dcp/fsdp_dtensor_optim --assets "$llama"
has out "object 'args': only back/iter_0000007 has this object"
has out "9 tensors, optimizer.state.module.module.module.decoder.final_layernorm.weight.param"
lacks out "differs"

# States without the options of their parameters: no run would find its step.
mkdir lost && cp -r "$data"/dcp/fsdp_dtensor_optim/. lost
python - <<'PY'
with open("lost/.metadata", "rb") as f:
    metadata = f.read()
with open("lost/.metadata", "wb") as f:
    f.write(metadata.replace(b"param_to_group_meta", b"param_to_group_lost"))
PY
expect 4 "$mckpt" convert to-mcore lost other --assets "$llama" -n
has err "MC3005"
has err "but not the options of its parameters"
has err "--weights-only"
expect 0 "$mckpt" convert to-mcore lost other --assets "$llama" -n --weights-only

expect 2 "$mckpt" convert hf2torch-dist "$moe" other
has err "did you mean \`mckpt convert to-mcore\`?"
expect 2 "$mckpt" convert torch-dist-to-fsdp core other
has err "did you mean \`mckpt convert to-fsdp\`?"
expect 4 "$mckpt" convert to-mcore "$moe" other --ep 3
expect 2 "$mckpt" convert to-mcore "$moe" other --iteration 0
