"""mckpt.torch_dcp.StorageReader: torch.distributed.checkpoint.load() of folders that torch wrote gives what torch's own reader
gives; of other formats it gives the values of the files; on gloo ranks each rank gets its shards, and reads no others."""
from mckpt_tests.checks import need

need("torch", "safetensors")
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner, _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros

from mckpt_tests.package import run
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt

PLAIN, FSDP2 = (os.path.join(DATA, "dcp", name) for name in ("plain", "fsdp2"))
RANKS = 3
# Placements of a tensor of the form [7, 5] on 3 ranks: rows, columns, rows of a slice; and a tensor that
# every rank has whole.
PLACEMENTS = [Shard(0), Shard(1), Replicate()]


def bits(tensor):
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)


def load(state, source, **how):
    dcp.load(state, storage_reader=mckpt.torch_dcp.StorageReader(source, **how), no_dist=True)
    return state


def rank_program(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    whole = torch.arange(35, dtype=torch.float32).reshape(7, 5)
    state = {f"t{i}": zeros(7, 5, device_mesh=mesh, placements=[p]) for i, p in enumerate(PLACEMENTS)}
    reader = mckpt.torch_dcp.StorageReader(os.path.join(folder, "saved"))
    asked = []
    read = mckpt.Tensor._read_to
    mckpt.Tensor._read_to = lambda part, address: (asked.append((part.name, part.size)), read(part, address))[1]
    dcp.load(state, storage_reader=reader)
    for i, placement in enumerate(PLACEMENTS):
        expected = distribute_tensor(whole + i, mesh, [placement])
        assert torch.equal(state[f"t{i}"].to_local(), expected.to_local()), (rank, i)
    # A rank reads at most its own items of each tensor, whatever pieces the file has.
    read_of = {name: sum(size for n, size in asked if n == name) for name, _ in asked}
    own = {f"t{i}": state[f"t{i}"].to_local().numel() for i in range(len(PLACEMENTS))}
    assert all(read_of.get(name, 0) <= items for name, items in own.items()), (rank, read_of, own)
    dist.barrier()
    dist.destroy_process_group()
    print("loaded")


class Reader(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def as_torch_loads(self, folder):
        """Everything in a DCP folder, by torch's own reader."""
        state = {}
        _load_state_dict(state, storage_reader=dcp.FileSystemReader(folder), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
        return state

    def test_a_folder_of_torch_gives_the_same_bytes(self):
        for folder, least in ((PLAIN, 30), (FSDP2, 20)):
            with mckpt.open(folder) as ckpt:
                names = [n for n, t in ckpt.items() if "quint" not in t.dtype and "qint" not in t.dtype and hasattr(torch, t.dtype)]
                shapes = {n: (ckpt[n].shape, getattr(torch, ckpt[n].dtype)) for n in names}
            mine = {n: torch.empty(shape, dtype=dtype) for n, (shape, dtype) in shapes.items()}
            theirs = {n: torch.empty(shape, dtype=dtype) for n, (shape, dtype) in shapes.items()}
            load(mine, folder)
            dcp.load(theirs, checkpoint_id=folder, no_dist=True)
            for name in names:
                self.assertTrue(torch.equal(bits(mine[name]), bits(theirs[name])), name)
            self.assertGreaterEqual(len(names), least)

    def test_nested_state_dicts_with_objects(self):
        theirs = self.as_torch_loads(FSDP2)
        mine = {"model": {n: torch.zeros_like(t) for n, t in theirs["model"].items()},
                "optimizer": {"param_groups": {"0": {}} if isinstance(theirs["optimizer"]["param_groups"], dict) else [{}], "state": {}}}
        group = theirs["optimizer"]["param_groups"][0]
        mine["optimizer"]["param_groups"] = [{name: None for name in group}]
        mine["optimizer"]["state"] = {n: {k: torch.zeros_like(v) for k, v in of.items()} for n, of in theirs["optimizer"]["state"].items()}
        load(mine, FSDP2)
        self.assertEqual(mine["optimizer"]["param_groups"][0], group)
        self.assertEqual(type(mine["optimizer"]["param_groups"][0]["betas"]), tuple)
        for name, of in theirs["optimizer"]["state"].items():
            for key, value in of.items():
                self.assertTrue(torch.equal(mine["optimizer"]["state"][name][key], value))

    def test_objects_are_plain_values_or_refused(self):
        state = {"objects": {"iteration": 0, "lr": 0.0, "tuple": (), "none": 1}}
        load(state, PLAIN)
        self.assertEqual(state["objects"], {"iteration": 10, "lr": 0.0003, "tuple": (1, "a"), "none": None})
        state = {"objects": {"args": "mine"}}
        with self.assertRaisesRegex(CheckpointException, "args.*not made of plain values alone: Namespace"):
            load(state, PLAIN)
        load(state, PLAIN, keep_objects=True)
        self.assertEqual(state, {"objects": {"args": "mine"}})

    def test_plain_values_are_exact(self):
        values = [None, True, -(2**40), 0.1, 1e300, 5e-324, float("-inf"), 2**63, -(2**64), -(2**64) - 1, 7**5000, -(7**5000), "nan", "it's\n\\\0 \u00e9\u6f22", b"\x00'\xff", (), (1,), [[], [1]], {"a": (1, 2.5), "b": None}, {1, 2}]
        dcp.save({f"v{i}": value for i, value in enumerate([values, *values])}, checkpoint_id=self.folder / "saved", no_dist=True,
                 planner=DefaultSavePlanner(flatten_state_dict=False))
        with mckpt.open(self.folder / "saved") as ckpt:
            got = [ckpt.object(o.name) for o in sorted(ckpt.objects(), key=lambda o: int(o.name[1:]))]
            self.assertEqual(got, [values, *values])
            self.assertEqual([type(v) for v in got[0]], [type(v) for v in values])
            self.assertRaisesRegex(mckpt.Error, "no object", ckpt.object, "v99")

    def test_a_nan_is_read(self):
        dcp.save({"loss": float("nan"), "history": [1.0, float("nan")]}, checkpoint_id=self.folder / "nan", no_dist=True)
        state = load({"loss": 0.0, "history": [0.0, 0.0]}, self.folder / "nan")
        self.assertTrue(math.isnan(state["loss"]) and math.isnan(state["history"][1]) and state["history"][0] == 1.0)

    def test_nothing_is_executed(self):
        class Evil:
            def __reduce__(self):
                return (os.mkdir, (str(self.where),))

        Evil.where = self.folder / "executed"
        dcp.save({"w": torch.ones(3), "evil": Evil()}, checkpoint_id=self.folder / "saved", no_dist=True)
        state = {"w": torch.zeros(3), "evil": 0}
        with self.assertRaisesRegex(CheckpointException, "evil"):
            load(state, self.folder / "saved")
        state = load({"w": torch.zeros(3)}, self.folder / "saved")
        self.assertTrue(torch.equal(state["w"], torch.ones(3)))
        self.assertFalse(Evil.where.exists())

    def test_other_formats(self):
        values = {"a.weight": torch.randn(4, 6), "b": torch.randn(3).to(torch.bfloat16), "scalar": torch.tensor(7), "empty": torch.empty(0, 3)}
        safetensors.torch.save_file(values, self.folder / "model.safetensors")
        torch.save(values, self.folder / "model.pt")
        for name in ("model.safetensors", "model.pt"):
            state = load({n: torch.zeros_like(t) for n, t in values.items()}, self.folder / name)
            for n, value in values.items():
                self.assertTrue(torch.equal(state[n], value), (name, n))
        with mckpt.open(TINY_MODEL) as ckpt:
            model = {n: torch.empty(t.shape, dtype=torch.bfloat16) for n, t in ckpt.items()}
            load(model, TINY_MODEL)
            for n, t in ckpt.items():
                self.assertTrue(torch.equal(model[n], t.torch()), n)
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, ep=2, progress=False)
        with mckpt.open(self.folder / "ckpt") as ckpt:
            name = "model.module.embedding.word_embeddings.weight"
            state = load({name: torch.zeros(ckpt[name].shape, dtype=torch.bfloat16)}, self.folder / "ckpt")
            self.assertTrue(torch.equal(state[name], model["model.embed_tokens.weight"]))

    def test_other_types_and_memory_orders_of_the_target(self):
        values = {"w": torch.randn(4, 6)}
        safetensors.torch.save_file(values, self.folder / "model.safetensors")
        state = load({"w": torch.zeros(6, 4, dtype=torch.float64).t()}, self.folder / "model.safetensors")
        self.assertTrue(torch.equal(state["w"], values["w"].double()))
        parameter = torch.nn.Parameter(torch.zeros(4, 6))
        load({"w": parameter}, self.folder / "model.safetensors")
        self.assertTrue(torch.equal(parameter.detach(), values["w"]))

    def test_partial_loads_and_errors_of_torch(self):
        values = {"a": torch.randn(4), "b": torch.randn(4)}
        path = self.folder / "model.safetensors"
        safetensors.torch.save_file(values, path)
        state = load({"a": torch.zeros(4)}, path)
        self.assertTrue(torch.equal(state["a"], values["a"]))
        with self.assertRaisesRegex(CheckpointException, "Missing key in checkpoint state_dict: c"):
            load({"a": torch.zeros(4), "c": torch.zeros(4)}, path)
        state = {"a": torch.zeros(4), "c": torch.full((4,), 9.0)}
        dcp.load(state, storage_reader=mckpt.torch_dcp.StorageReader(path), planner=DefaultLoadPlanner(allow_partial_load=True), no_dist=True)
        self.assertTrue(torch.equal(state["a"], values["a"]) and torch.equal(state["c"], torch.full((4,), 9.0)))
        with self.assertRaisesRegex(CheckpointException, "Size mismatch.*a"):
            load({"a": torch.zeros(5)}, path)
        with self.assertRaisesRegex(mckpt.Error, "MC"):
            load({"a": torch.zeros(4)}, self.folder / "nothing")

    def test_a_state_dict_is_built_of_the_checkpoint(self):
        state = {}
        _load_state_dict(state, storage_reader=mckpt.torch_dcp.StorageReader(TINY_MODEL), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
        with mckpt.open(TINY_MODEL) as ckpt:
            self.assertEqual(set(state), set(ckpt))
            self.assertTrue(torch.equal(state["lm_head.weight"], ckpt["lm_head.weight"].torch()))

    def test_an_open_checkpoint_and_another_path(self):
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, progress=False)
        with mckpt.open_as_fsdp(self.folder / "ckpt") as view:
            name = next(iter(view))
            state = load({name: torch.zeros(view[name].shape, dtype=getattr(torch, view[name].dtype))}, view)
            self.assertTrue(torch.equal(state[name], view[name].torch()))
            self.assertGreater(len(view), 0)  # still open
        reader = mckpt.torch_dcp.StorageReader(FSDP2)
        state = {"lm_head.weight": torch.zeros(32, 16, dtype=torch.bfloat16)}
        dcp.load(state, storage_reader=reader, checkpoint_id=TINY_MODEL, no_dist=True)
        self.assertTrue(state["lm_head.weight"].any())

    def test_ranks_read_their_shards(self):
        whole = torch.arange(35, dtype=torch.float32).reshape(7, 5)
        dcp.save({f"t{i}": whole + i for i in range(len(PLACEMENTS))}, checkpoint_id=self.folder / "saved", no_dist=True)
        command = [sys.executable, os.path.abspath(__file__), "--rank"]
        ranks = [subprocess.Popen([*command, str(rank), str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
        for rank in ranks:
            out, err = rank.communicate(timeout=120)
            self.assertEqual((rank.returncode, out.strip()), (0, "loaded"), err[-3000:])

    def test_a_mesh_of_one(self):
        dist.init_process_group("gloo", init_method=f"file://{self.folder}/meeting", rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)
        mesh = init_device_mesh("cpu", (1,))
        with mckpt.open(FSDP2) as ckpt:
            name = max((n for n in ckpt if ckpt[n].ndim == 2), key=lambda n: len(ckpt[n].chunks()))
            self.assertGreater(len(ckpt[name].chunks()), 1)  # the ranks that wrote it had a piece each
            state = {name: zeros(*ckpt[name].shape, device_mesh=mesh, placements=[Shard(0)])}
            dcp.load(state, storage_reader=mckpt.torch_dcp.StorageReader(FSDP2))
            self.assertTrue(torch.equal(state[name].to_local(), ckpt[name].torch()))

    def test_damage_is_an_error_of_mckpt(self):
        shutil.copytree(FSDP2, self.folder / "cut")
        with mckpt.open(FSDP2) as ckpt:
            name = next(n for n in ckpt if ckpt[n].nbytes)
            chunk = ckpt[name].chunks()[0]
            shape, dtype = ckpt[name].shape, getattr(torch, ckpt[name].dtype)
        os.remove(self.folder / "cut" / chunk.file)
        with self.assertRaisesRegex(CheckpointException, "MC[0-9]{4}"):
            load({name: torch.zeros(shape, dtype=dtype)}, self.folder / "cut")


if sys.argv[1:2] == ["--rank"]:
    rank_program(int(sys.argv[2]), sys.argv[3])
else:
    run()
