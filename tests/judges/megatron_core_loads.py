"""Megatron-Core itself loads what `convert to-mcore` writes: megatron.core.dist_checkpointing.load over gloo on CPU, asked as ranks ask
it. For every run whose ranks are golden (test_data/golden/ranks: tensor, expert, expert-tensor and pipeline parallel), each rank's
tensors are described with Megatron's own ShardedTensors and its own factories for gated and recurrent layers, with the extra states of
its modules; what is loaded has the bits that the rank held, whatever grid mckpt
wrote for."""

import importlib.util
import json
import os
import re
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, finish, need, skip
from mckpt_tests.golden import sections, sha
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
if importlib.util.find_spec("megatron") is None or importlib.util.find_spec("megatron.core") is None:
    skip(f"{sys.executable} has no megatron.core: scripts/bootstrap installs it")

import logging  # noqa: E402
import warnings  # noqa: E402

warnings.simplefilter("ignore")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from megatron.core import dist_checkpointing  # noqa: E402
from megatron.core.dist_checkpointing import ShardedObject, ShardedTensor  # noqa: E402
from megatron.core.ssm.mamba_mixer import _split_tensor_factory  # noqa: E402
from megatron.core.transformer.mlp import apply_swiglu_sharded_factory  # noqa: E402

logging.disable(logging.WARNING)
WRONG = {"gpt_oss_2i", "qwen3_moe_mlponly", "qwen3_moe_sparse2"}  # what the real converter lost (test_data/golden/README.md)
COLUMNS = re.compile(r"(linear_(qkv|q_proj|q_up_proj|kv_up_proj|fc1)|in_proj|conv1d|eh_proj|output_layer|word_embeddings|mixer\.norm|merger\.linear_fc1"
                     r"|deepstack_merger_list\.\d+\.linear_fc1)[._](weight|bias)\d*$|softmax_offset$|(mixer|self_attention)\.(A_log|D|dt_bias)$")
ROWS = re.compile(r"(linear_proj|linear_fc2|out_proj)\.weight\d*$")
PLAIN = re.compile(r"(word_embeddings|mlp\.router|conv1d|mixer\.norm|patch_embed\.proj|pos_embed|shared_experts)$")


def sizes_of(config, name):
    """The parts of a fused recurrent parameter of one rank alone, with the names that torch_dist gives them."""
    c = config.get("text_config", config)
    if ".mixer." in name:
        inner, groups = c["mamba_num_heads"] * c["mamba_head_dim"], c["n_groups"] * c["ssm_state_size"]
        return {"in_proj": dict(z=inner, x=inner, B=groups, C=groups, dt=c["mamba_num_heads"]), "conv1d": dict(x=inner, B=groups, C=groups)}
    qk, v = c["linear_num_key_heads"] * c["linear_key_head_dim"], c["linear_num_value_heads"] * c["linear_value_head_dim"]
    return {"in_proj": dict(query=qk, key=qk, value=v, z=v, beta=c["linear_num_value_heads"], alpha=c["linear_num_value_heads"]),
            "conv1d": dict(query=qk, key=qk, value=v)}


class Run:
    """One golden run: what its ranks held, and how each of them would ask Megatron for it."""

    def __init__(self, tag, config):
        head, ranks = sections(f"ranks/{tag}.txt")
        self.ranks = [[line.removeprefix("buffer ").split(" ") for line in rank] for rank in ranks]
        self.size = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", head[0])}
        self.config, self.hybrid = config, "layers_block_type" in config
        text = config.get("text_config", config)
        self.layers = len(config["layers_block_type"]) if self.hybrid else text["num_hidden_layers"]
        self.gated = not self.hybrid

    def cell(self, rank):
        s = self.size
        stage = s["tp"] * s["cp"] * s["dp"]
        r = rank % stage
        return {"pp": rank // stage, "tp": r % s["tp"], "etp": r % s["etp"], "ep": r // s["etp"] % s["ep"]}

    def state_dict(self, rank, stored):
        """`stored`: the keys of the checkpoint, which say whether a block's layers are one tensor."""
        cell, out = self.cell(rank), {}
        for name, dtype, shape, _ in self.ranks[rank]:
            data = torch.zeros([int(n) for n in shape.split("x")], dtype=getattr(torch, dtype))
            out[name] = self.sharded(name, data, cell, stored)
            out |= self.extra_state(name, cell, stored)
        return out

    def place(self, name, cell, stored):
        """The key, and (axis, index, count) for layers and experts in front."""
        key, front = name.replace("mixer.conv1d_", "mixer.conv1d.").replace("mtp_model_layer", "transformer_layer"), []
        if layer := re.match(r"(.*decoder\.layers\.)(\d+)\.(.*)", key):
            index = int(layer[2]) + (0 if key.startswith("vision_model") else cell["pp"] * self.layers // self.size["pp"])
            count = self.config["vision_config"]["depth"] if key.startswith("vision_model") else self.layers
            vision = key.startswith("vision_model")
            one = vision or not any("decoder.layers.0." in k for k in stored if not k.startswith("vision_model"))
            if one:
                key, front = layer[1] + layer[3], [(0, index, count)]
            else:
                key = f"{layer[1]}{index}.{layer[3]}"
        if expert := re.match(r"(.*mlp\.experts\.)(linear_fc[12]\.(weight|bias))(\d+)$", key):
            c = self.config.get("text_config", self.config)
            experts = next(c[n] for n in ("num_experts", "n_routed_experts", "num_local_experts") if c.get(n))
            index = cell["ep"] * (experts // self.size["ep"]) + int(expert[4])
            key, front = f"{expert[1]}experts.{expert[2]}", [*front, (len(front), index, experts)]
        return key, front

    def sharded(self, name, data, cell, stored):
        key, front = self.place(name, cell, stored)
        mesh = "etp" if ".experts.linear" in name else "tp"
        axis = 1 if ROWS.search(name) else 0
        if ".experts.linear_fc2.bias" in name or self.is_whole(name):
            mesh = None
        offsets = [(len(front) + axis, cell[mesh], self.size[mesh])] if mesh and (axis or COLUMNS.search(name)) else []
        tensor = ShardedTensor.from_rank_offsets(key, data, *front, *offsets, prepend_axis_num=len(front),
                                                 allow_shape_mismatch="word_embeddings" in name or "output_layer" in name)
        if re.search(r"linear_fc1\.(weight|bias)\d*$", name) and self.gated and not name.startswith("vision_model"):
            return apply_swiglu_sharded_factory(tensor, tuple(front))
        if part := re.search(r"(mixer|self_attention)\.(in_proj|conv1d)[._](weight|bias)$", name):
            sizes = sizes_of(self.config, name)[part[2]]
            return _split_tensor_factory(tensor, [s // self.size["tp"] for s in sizes.values()], list(sizes), 0)
        return tensor

    @staticmethod
    def is_whole(name):
        return bool(re.search(r"vision_model\.patch_embed|pos_embed|linear_q_down|linear_kv_down|gate_weight|router", name))

    def extra_state(self, name, cell, stored):
        """The extra state that Megatron's module saves beside the parameter."""
        module, leaf = name.rsplit(".", 1)
        leaf = re.sub(r"\d+$", "", leaf)
        if leaf not in ("weight", "layer_norm_weight", "softmax_offset") or PLAIN.search(module):
            return {}
        if module.endswith("output_layer") and not self.hybrid:
            return {}
        key, front = self.place(name, cell, stored)
        offset, shape = ([f[1] for f in front], [f[2] for f in front]) if front else ([0], [1])
        key = f"{key.rsplit('.', 1)[0]}._extra_state"
        return {f"{key}|{offset}": ShardedObject(key, None, tuple(shape), tuple(offset))}


def load(run, rank, folder, stored):
    """The digests of what the rank loads, by name; and its common state."""
    asked = run.state_dict(rank, stored)
    got = dist_checkpointing.load(asked, folder, validate_access_integrity=False)
    digests = {name: sha(t.contiguous().flatten().view(torch.uint8).numpy().tobytes()) for name, t in got.items() if isinstance(t, torch.Tensor)}
    return digests, got


def held(run, rank):
    return {name: digest for name, _, _, digest in run.ranks[rank]}


def in_rank(rank, world, meeting, cases, answers):
    """A rank of all runs with so many ranks: what it loaded and what it should have, run by run."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    for tag, config, folder, stored in cases:
        run = Run(tag, config)
        try:
            digests, common = load(run, rank, folder, stored)
            others = sorted(name for name in common if name not in digests and "._extra_state|" not in name)
            answers.put((tag, rank, sorted(digests.items()), sorted(held(run, rank).items()), others))
        except Exception as error:  # what Megatron refuses is the answer; the other ranks of the run meet it too
            answers.put((tag, rank, f"{type(error).__name__}: {str(error)[:600]}", [], []))
    dist.barrier()
    dist.destroy_process_group()


def main():
    models, scratch = Models(), tempfile.TemporaryDirectory(prefix="mckpt_mcore_")
    folders, cases, count = {}, {}, 0

    def folder_of(model):
        """The folders that mckpt writes: one folder for the runs of all grids of the model, of another grid
        for every model."""
        if model not in folders:
            out, grid = os.path.join(scratch.name, model), [[], ["--tp", 2], ["--tp", 2, "--pp", 1, "--cp", 2]][len(folders) % 3]
            run = run_mckpt("convert", "to-mcore", models.path(model), out, *grid, "--no-sync", "-q", timeout=60)
            expect(run.returncode == 0, f"{model}: {run.stderr}")
            names = [json.loads(line)["name"] for line in run_mckpt("ls", out, "--jsonl", "-q").stdout.splitlines()]
            folders[model] = os.path.join(out, "release"), names
        return folders[model]

    for tag in sorted(name[:-4] for name in os.listdir(os.path.join(GOLDEN, "ranks"))):
        model = tag.split(".")[0]
        if model in WRONG:
            continue
        with open(os.path.join(models.path(model), "config.json")) as f:
            config = json.load(f)
        cases.setdefault(len(Run(tag, config).ranks), []).append((tag, config, *folder_of(model)))

    # Forked while this process has no process group: torch and Megatron are imported once.
    context = mp.get_context("fork")
    for world, of_world in sorted(cases.items()):
        answers, meeting = context.Queue(), os.path.join(scratch.name, f"meet{world}")
        ranks = [context.Process(target=in_rank, args=(r, world, meeting, of_world, answers)) for r in range(world)]
        for process in ranks:
            process.start()
        for _ in range(world * len(of_world)):
            tag, rank, got, want, common = answers.get(timeout=120)
            count += len(want)
            if isinstance(got, str):
                fail(f"{tag} rank {rank}: {got}")
                continue
            expect_equal(f"{tag} rank {rank}", got, want)
            expect_equal(f"{tag} rank {rank}: common state", common,
                         ["args", "checkpoint_version", "content_metadata", "iteration"])
        for process in ranks:
            process.join()
            expect(process.exitcode == 0, f"a rank of {world}: status {process.exitcode}")
    print(f"{sum(map(len, cases.values()))} runs, {count} tensors of ranks")
    finish(5000)


if __name__ == "__main__":
    main()
