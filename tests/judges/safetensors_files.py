"""safetensors, transformers and torch's Hugging Face writer as judges: single files, folders with an index, and sharded folders without."""

from mckpt_tests.checks import need

need("safetensors", "transformers")
import json

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

from mckpt_tests.judge import NEWER, OLDER, Judge, random_tensor, random_view, row  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, save_as_ranks  # noqa: E402

DTYPES = [t for t in OLDER + NEWER if t != torch.complex128] + [torch.float4_e2m1fn_x2]
FLOATS = [t for t in OLDER + NEWER if t.is_floating_point]
NAMES = [
    "weight",
    "bias",
    "model.layers.0.mlp.weight",
    "model.layers.10.mlp.weight",
    "\u952e",
    "a b",
    "q\"uote",
    "back\\slash",
    "x" * 300,
    "\U0001f600",
    "lm_head.weight",
    "0",
    "new\nline",
]


def expected(tensors):
    return {name: row(t) for name, t in tensors.items()}


def random_tensors(r, dtypes=DTYPES):
    tensors = {}
    for name in r.sample(NAMES, r.randrange(len(NAMES))):
        t = random_tensor(r, dtypes)
        if r.random() < 0.3:
            t = random_view(r, t).clone(memory_format=torch.contiguous_format)
        no_pairs = t.dtype == torch.float4_e2m1fn_x2 and t.dim() == 0
        tensors[name] = t.reshape(1) if no_pairs else t
    return tensors


def single_files(judge, count):
    r = judge.random
    for _ in judge.repeat(count):
        path, tensors = judge.path(".safetensors"), random_tensors(r)
        # With neither tensors nor metadata, safetensors 0.8 writes what it cannot read.
        metadata = r.choice([None, {"format": "pt"}, {"format": "pt", "\u952e": "v\"\n"}, {} if tensors else None])
        safetensors.torch.save_file(tensors, path, metadata=metadata)
        judge.expect(path, expected(tensors), "safetensors.torch")


def numpy_files(judge, count):
    r = judge.random
    for _ in judge.repeat(count):
        path, tensors = judge.path(".safetensors"), random_tensors(r, [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool])
        safetensors.numpy.save_file({k: np.array(t.numpy(), order="C") for k, t in tensors.items()}, path)
        judge.expect(path, expected(tensors), "safetensors.numpy")


def indexed_folders(judge, count):
    """Shards and index as huggingface_hub lays them out."""
    r = judge.random
    for _ in judge.repeat(count):
        folder, tensors = judge.path(), random_tensors(r)
        tensors.setdefault("weight", torch.ones(3))
        folder.mkdir()
        shards = r.randrange(1, min(4, len(tensors)) + 1)
        weight_map = {}
        for s in range(shards):
            name = f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
            mine = dict(list(tensors.items())[s::shards])
            safetensors.torch.save_file(mine, folder / name, metadata={"format": "pt"})
            weight_map.update(dict.fromkeys(mine, name))
        size = sum(t.numel() * t.itemsize for t in tensors.values())
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": weight_map}))
        judge.expect(folder, expected(tensors), "an indexed folder")


def models(judge, count):
    """Real models with save_pretrained, split where transformers splits them."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    sizes = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=40)
    kinds = [
        (transformers.LlamaConfig, {}),
        (transformers.Qwen2Config, {"tie_word_embeddings": True}),
        (transformers.Qwen3MoeConfig, {"num_experts": 4, "moe_intermediate_size": 8, "head_dim": 8}),
        (transformers.MixtralConfig, {"num_local_experts": 2}),
        (transformers.GPT2Config, {"n_embd": 16, "n_head": 2, "n_layer": 2}),
    ]
    for i in judge.repeat(count):
        kind, more = kinds[i % len(kinds)]
        model = transformers.AutoModelForCausalLM.from_config(kind(**(more if "n_embd" in more else sizes | more)))
        folder = judge.path()
        model.to(judge.random.choice([torch.float32, torch.bfloat16])).save_pretrained(
            folder, max_shard_size=judge.random.choice(["10KB", "40KB", "5GB"])
        )
        tensors = {}
        for file in folder.glob("*.safetensors"):
            tensors |= safetensors.torch.load_file(file)
        judge.expect(folder, expected(tensors), f"transformers {kind.__name__}")


def sharded_folders(judge, count):
    """torch DCP's Hugging Face writer, each rank its own shards; no index and no .metadata. Its shape is what the shards reach to, so
    the last row is never left out here."""
    r = judge.random
    for _ in judge.repeat(count):
        ranks, folder = r.randrange(1, 5), judge.path()
        whole = {
            f"layers.{i}.weight": random_tensor(r, FLOATS, [r.randrange(1, 12)] + [r.randrange(1, 5)] * r.randrange(3))
            for i in range(r.randrange(1, 6))
        }
        states = [{} for _ in range(ranks)]
        for name, tensor in whole.items():
            for rank, (begin, end) in enumerate(cuts(r, len(tensor), ranks)):
                if end > begin:
                    states[rank][name] = Shards(tensor, [((begin,) + (0,) * (tensor.dim() - 1), (end - begin, *tensor.shape[1:]))])
        mapping = {name: 1 + i % 2 for i, name in enumerate(whole)} if len(whole) > 1 else None
        save_as_ranks(states, lambda: HuggingFaceStorageWriter(str(folder), fqn_to_index_mapping=mapping, save_distributed=True))
        judge.expect(folder, expected(whole), f"torch's Hugging Face writer, {ranks} ranks")


def main():
    judge = Judge(seed=2)
    single_files(judge, 420)
    numpy_files(judge, 60)
    indexed_folders(judge, 120)
    models(judge, 10)
    sharded_folders(judge, 100)
    judge.finish(least=710)


main()
