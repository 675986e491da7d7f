"""The common part of the writers: models whose values follow from their names, ranks on the CPU, and the
folder of a case (test_data/newest/README.md says what is in one).

A writer is a program of its own, `WRITER.py OUT`, which runs with the Python of its virtual environment and puts a folder for each case into OUT."""

import binascii
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist

SAFETENSORS = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
               torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.float8_e4m3fn: "F8_E4M3",
               torch.float8_e5m2: "F8_E5M2", torch.complex64: "C64"}
torch.set_num_threads(1)


def values(name, shape, dtype):
    """Numbers that follow from the name alone. Every item of a tensor in fp32 has one of its own."""
    random = torch.Generator().manual_seed(binascii.crc32(name.encode()))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=random, dtype=torch.float32).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 100, tuple(shape), generator=random).to(dtype)


@torch.no_grad()
def fill(module):
    """Gives every parameter and stored buffer the values of its name."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        tensor.copy_(values(name, tensor.shape, tensor.dtype))
    if getattr(module.config, "tie_word_embeddings", False):
        module.tie_weights()
    return module


def row(tensor):
    tensor = tensor.detach().to("cpu").contiguous()
    data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return {"dtype": SAFETENSORS[tensor.dtype], "shape": list(tensor.shape), "sha256": hashlib.sha256(data).hexdigest()}


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, sort_keys=True)


class Case:
    """A folder of OUT. `facts`: of case.json; `form` is what docs/tested_with.md calls it."""

    def __init__(self, out, name, **facts):
        self.folder = os.path.join(out, name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        write_json(self.at("case.json"), facts)

    def at(self, name):
        return os.path.join(self.folder, name)

    def answer(self, name, tensors):
        write_json(self.at(f"{name}.json"), {"tensors": {key: row(tensor) for key, tensor in tensors.items()}})

    def expect_folder(self, model):
        """The folder that `export` has to write, equal to save_pretrained's of the model; and config.json
        beside it."""
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tensors = read_folder(folder)
            os.makedirs(self.at("assets"), exist_ok=True)
            shutil.copy(os.path.join(folder, "config.json"), self.at("assets"))
        self.answer("expected", tensors)
        self.answer("expected_bf16", {key: t.to(torch.bfloat16) if t.is_floating_point() else t for key, t in tensors.items()})


def read_folder(folder):
    from safetensors import safe_open
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with safe_open(os.path.join(folder, name), "pt") as f:
                tensors.update((key, f.get_tensor(key)) for key in f.keys())
    return tensors


def tiny_model(kind="dense", dtype=torch.bfloat16, **more):
    """A Qwen3 whose sizes are all different; `moe`: its sibling with experts."""
    import transformers
    sizes = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
             "intermediate_size": 34, "max_position_embeddings": 64, "tie_word_embeddings": False, "dtype": dtype, **more}
    if kind == "moe":
        config = transformers.Qwen3MoeConfig(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=14, decoder_sparse_step=1, mlp_only_layers=[], **sizes)
        model = transformers.Qwen3MoeForCausalLM(config)
    else:
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes))
    return fill(model.to(dtype).eval())


def _rank(rank, world, store, function, args):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=os.environ["NEWEST_PORT"])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    try:
        function(*args)
        dist.barrier()
    finally:
        dist.destroy_process_group()


def run_ranks(world, function, *args):
    """Calls function(*args) in so many processes, which are ranks over gloo. An error in one is an error here."""
    os.environ.setdefault("NEWEST_PORT", str(20000 + os.getpid() % 20000))
    with tempfile.TemporaryDirectory() as folder:
        # Forked, so that no rank imports the libraries again. The parent has started no thread.
        torch.multiprocessing.start_processes(_rank, (world, os.path.join(folder, "store"), function, args), nprocs=world, start_method="fork")


def versions(*packages):
    return {name: importlib.metadata.version(name) for name in packages}


def main(packages, *makers):
    """`packages`: the packages of the row in docs/tested_with.md. Every maker is called with OUT; one that
    fails does not keep the others from running."""
    out, failed = sys.argv[1], {}
    os.makedirs(out, exist_ok=True)
    write_json(os.path.join(out, "versions.json"), versions(*packages))
    for maker in makers:
        try:
            maker(out)
        except BaseException as e:  # noqa: BLE001 - whatever it is, it becomes a line of the table
            if isinstance(e, KeyboardInterrupt):
                raise
            failed[maker.__name__] = f"{type(e).__name__}: {e}"[-2000:]
            print(f"{maker.__name__}: {failed[maker.__name__]}", file=sys.stderr)
    write_json(os.path.join(out, "failed.json"), failed)
    sys.exit(1 if failed else 0)
