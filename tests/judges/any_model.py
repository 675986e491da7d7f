"""reshard takes what dcp.save() made of any state dict: keys of every kind, buffers that count, scalars, tensors without items.
torch loads the result into the state dict that was saved. to-fsdp --any-model gives keys of a convention the names of fsdp_dtensor.
"""

import os
import tempfile

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.golden import finish
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save  # noqa: E402

scratch = tempfile.TemporaryDirectory(prefix="mckpt_any_")
torch.manual_seed(3)


def place(name):
    return os.path.join(scratch.name, name)


def save(name, state):
    dcp.save(state, storage_writer=dcp.FileSystemWriter(place(name), sync_files=False), no_dist=True)
    return place(name)


def reshard(source, *flags, status=0, mode="reshard"):
    target = place(f"out_{len(os.listdir(scratch.name))}")
    run = run_mckpt("convert", mode, source, target, "--no-sync", *flags, timeout=60)
    if run.returncode != status:
        print(run.stderr)
    expect_equal(f"{os.path.basename(source)} {flags}: status", [run.returncode], [status])
    return os.path.join(target, "release") if status == 0 else run.stderr


def to_fsdp(source, *flags, status=0):
    return reshard(source, "--any-model", *flags, status=status, mode="to-fsdp")


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return a == b


def check(name, got, want):
    expect_equal(name, [sorted(got), [key for key in want if not same(got.get(key), want[key])]], [sorted(want), []])


def state_dict():
    model = torch.nn.Sequential()
    for name, module in (("table", torch.nn.Embedding(13, 6)), ("linear", torch.nn.Linear(6, 10)), ("norm", torch.nn.BatchNorm1d(10))):
        model.add_module(name, module)
    model.register_buffer("position_ids", torch.arange(9).reshape(1, 9))
    model.register_buffer("mask", torch.tensor([True, False, True]))
    model.empty = torch.nn.Parameter(torch.empty(0, 4))
    model.scale = torch.nn.Parameter(torch.tensor(3.5))
    optim = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optim.step()
    names = {f"state.{n}": optim.state[p] for n, p in model.named_parameters()}
    numbered = {"state": {0: {"m": torch.arange(6.0)}, 1: {"m": torch.ones(2)}}, "list": [torch.zeros(3), {"deep": torch.ones(4)}]}
    return {
        "model": model.state_dict(),
        "optim": names,
        "numbered": numbered,
        "rng": torch.get_rng_state(),
        "step": 7,
        "nested": {"lr": 0.125},
    }


def paths(folder):
    return dcp.FileSystemReader(folder).read_metadata().planner_data


def nested(folder):
    """The dict that torch rebuilds of a checkpoint alone, by the paths of planner_data."""
    torch_file = place("nested.pt")
    dcp_to_torch_save(folder, torch_file)
    return torch.load(torch_file)


whole = state_dict()
plain = save("plain", whole)
want = load_whole(plain)
for flags in (["--dp", 1], ["--dp", 3], ["--dp", 4, "--hsdp", 2], ["--dp", 2, "--cp", 2], ["--dp", 20]):
    check(f"plain {flags}", load_whole(reshard(plain, "--any-model", *flags)), want)
at = reshard(plain, "--any-model", "--dp", 3)
sizes = dcp.FileSystemReader(at).read_metadata().state_dict_metadata["model.table.weight"].chunks
expect_equal("rows of ranks, as torch cuts 13 for three", [list(c.sizes) for c in sizes], [[5, 6], [5, 6], [3, 6]])
check("again", load_whole(reshard(at, "--any-model", "--dp", 2)), want)
verify = run_mckpt("verify", at, "--against", plain, timeout=60)
expect_equal("compared", [verify.returncode], [0])
expect_equal("paths", [paths(at)], [paths(plain)])
rebuilt, wanted = nested(at), nested(plain)
expect_equal("rebuilt", [str(rebuilt["numbered"]), rebuilt["nested"]], [str(wanted["numbered"]), {"lr": 0.125}])
expect_equal("as a list", [type(rebuilt["numbered"]["list"])], [list])
# torch's own way back, into dictionaries as they were.
empty = state_dict()
dcp.load(empty, storage_reader=dcp.FileSystemReader(at), no_dist=True)
check("loaded", empty["model"], whole["model"])
expect_equal("the rest of it", [same(empty["rng"], whole["rng"]), empty["step"], empty["nested"]], [True, 7, {"lr": 0.125}])
weights = load_whole(reshard(plain, "--any-model", "--weights-only", "--dp", 2))
check("weights", weights, {key: value for key, value in want.items() if not key.startswith("optim.")})
told = reshard(plain, "--any-model", "--dp", 2, "--pp", 2, status=4)
expect_equal("stages", ["MC2013" in told], [True])
check("without --any-model", load_whole(reshard(plain, "--dp", 2)), want)
told = to_fsdp(plain, status=3)
expect_equal("names of no convention", [word in told for word in ("MC1112", "no counterparts", "mckpt convert reshard")], [True] * 3)

# Where the keys follow a convention, what cannot be sharded is carried under the names of fsdp_dtensor.
named = {"model": whole["model"], "optimizer": {"state": {n.removeprefix("state."): s for n, s in whole["optim"].items()}}}
MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
want = load_whole(save("named", named))
want = {MODEL + k[len("model.") :] if k.startswith("model.") else STATE + k[len("optimizer.state.") :]: v for k, v in want.items()}
for flags in (["--dp", 1], ["--dp", 3]):
    at = to_fsdp(place("named"), *flags)
    got = load_whole(at)
    check(f"named {flags}", {k: v for k, v in got.items() if isinstance(v, torch.Tensor)}, want)
check("named again", {k: v for k, v in load_whole(reshard(at, "--any-model", "--dp", 2)).items() if isinstance(v, torch.Tensor)}, want)
# Whether names are kept is said: one key more or less decides it otherwise.
for source, flags, word in (
    (place("named"), ["to-fsdp", "--any-model"], "become those of fsdp_dtensor"),
    (plain, ["reshard"], "belong to no known convention"),
    (place("named"), ["reshard"], "with the format of the source"),
    (place("named"), ["reshard", "--any-model"], "with the format of the source"),
    (at, ["reshard", "--any-model", "--keep-names"], "as --keep-names asks"),
):
    told = run_mckpt("convert", flags[0], source, place("n"), "-n", *flags[1:], timeout=60)
    expect_equal(f"{source} {flags}: names", [told.returncode, word in told.stderr], [0, True])
for flags in ([], ["--any-model", "--keep-names"]):
    at = reshard(place("named"), *flags, "--dp", 2)
    expect_equal("kept", [paths(at)], [paths(place("named"))])
    check("kept", load_whole(at), load_whole(place("named")))
for flags, words in ((["--assets", "x"], ["MC0001", "to-fsdp"]), (["--strategy", "optim"], ["MC0001", "--strategy", "to-fsdp"])):
    told = reshard(place("named"), *flags, status=2)
    expect_equal(f"of fsdp_dtensor alone: {flags}", [word in told for word in words], [True] * len(words))
told = reshard(place("named"), "--keep-names", status=2)
expect_equal("alone", ["--any-model" in told], [True])

# Tensors that fsdp_dtensor may store rank after rank are taken where it is known that one rank wrote them;
# parts are not such tensors.
fused = {
    "model": {"module": {"decoder": {"layers": {"0": {"mixer": {"in_proj": {"weight": torch.arange(24.0).reshape(8, 3)}}}}}}},
    "checkpoint_version": 3.0,
}
parts = {
    "model": {"module": {"mlp": {"linear_fc1": {"weight_w": torch.ones(4, 3), "weight_v": torch.zeros(4, 3)}}}},
    "checkpoint_version": 3.0,
}
told = reshard(save("fused", fused), "--any-model", "--dp", 2, status=4)
expect_equal("ranks not known", [word in told for word in ("MC2013", "mixer.in_proj.weight", "--source-tp 1")], [True] * 3)
check("ranks given", load_whole(reshard(place("fused"), "--any-model", "--dp", 2, "--source-tp", 1)), load_whole(place("fused")))
check("parts", load_whole(reshard(save("parts", parts), "--any-model", "--dp", 2)), load_whole(place("parts")))


# Ranks that save without talking to each other, each with a list of its own: other values under one name are told.
def of_two_ranks(name, other):
    at = place(name)
    os.mkdir(at)
    for rank, state in enumerate(({"w": torch.ones(3), "same": torch.zeros(2), "it": 5, "seed": 7}, other)):
        part = save(f"{name}_{rank}", state)
        with open(os.path.join(part, ".metadata"), "rb") as old, open(os.path.join(at, f"__{rank}.metadata"), "wb") as new:
            new.write(old.read().replace(b"__0_0.distcp", f"__{rank}_0.distcp".encode()))
        os.rename(os.path.join(part, "__0_0.distcp"), os.path.join(at, f"__{rank}_0.distcp"))
    return at


for name, other, words in (
    ("alike", {"w": torch.ones(3), "same": torch.zeros(2), "it": 5, "seed": 7}, []),
    ("unlike", {"w": torch.zeros(3), "same": torch.zeros(2), "it": 6, "seed": 8}, ["tensor 'w'", "tensor 'it'", "and of 1 more"]),
):
    at = of_two_ranks(name, other)
    for command in (["verify", at], ["convert", "reshard", at, place(f"{name}_out"), "--any-model", "--keep-names", "--no-sync"]):
        told = run_mckpt(*command, timeout=60)
        said = told.stdout + told.stderr
        expect_equal(
            f"{name} {command[0]}", [told.returncode, "MC1307" in said, all(word in said for word in words)], [0, bool(words), True]
        )
finish(102)
