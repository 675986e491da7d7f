"""torch and safetensors as judges of what `mckpt convert` writes: every file loads with them, bit for bit as it went in."""

import json
import struct
import sys

from mckpt_tests.checks import need
from mckpt_tests.program import run_mckpt

need("safetensors", "huggingface_hub")
import huggingface_hub  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402

from mckpt_tests.judge import NEWER, OLDER, Judge, random_tensor, random_view, row  # noqa: E402

NAMES = [
    "weight",
    "bias",
    "model.layers.10.w",
    "model.layers.9.w",
    "a b",
    "\u952e",
    "q\"uote\\",
    "tab\t",
    "\u00e9",
    "x" * 300,
    "",
    "..",
    "__metadata",
    "1",
    "line\n\r\b\f",
]
DTYPES = [d for d in OLDER + NEWER if d != torch.complex128]  # which safetensors does not have
judged = 0
failures = []


def expect(ok, what):
    global judged
    judged += 1
    if not ok:
        failures.append(what)
        print("FAIL", what)


def convert(mode, source, target, *options, status=0):
    run = run_mckpt("convert", mode, source, target, "--json", "--no-sync", *options, timeout=60)
    expect(run.returncode == status, f"{mode} {source} {options}: exit status {run.returncode}, not {status}: {run.stderr}")
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def rows(state):
    return {name: row(tensor) for name, tensor in state.items()}


def data_of(path):
    """The header and the bytes behind it."""
    blob = path.read_bytes()
    n = struct.unpack("<Q", blob[:8])[0]
    expect((8 + n) % 64 == 0, f"{path}: data begin at {8 + n}")
    return blob[8 : 8 + n].decode().rstrip(" "), blob[8 + n :]


def reference_data(state):
    blob = safetensors.torch.save({n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in state.items()}, {"format": "pt"})
    n = struct.unpack("<Q", blob[:8])[0]
    return blob[8 : 8 + n].decode().rstrip(" "), blob[8 + n :]


def random_state(r, dtypes, views):
    bases, state = [], {}
    for name in r.sample(NAMES, r.randrange(len(NAMES))):
        if views and bases and r.random() < 0.5:
            state[name] = random_view(r, r.choice(bases))
        else:
            bases.append(random_tensor(r, dtypes))
            state[name] = bases[-1]
    return state


def pt_to_safetensors(judge, count):
    r = judge.random
    for _ in range(count):
        state = random_state(r, DTYPES, views=True)
        source, target, again = judge.path(".pt"), judge.path(".safetensors"), judge.path(".safetensors")
        torch.save(state, source, _use_new_zipfile_serialization=r.random() < 0.7)
        account = convert("pt-to-safetensors", source, target, f"-j{r.randrange(1, 5)}")
        expect(rows(safetensors.torch.load_file(target)) == rows(state), f"{target}: the library reads something else")
        expect(data_of(target) == reference_data(state), f"{target}: the library writes something else")
        expect(account["tensors_in"] == account["tensors_out"] == account["copied"] == len(state), f"{account}")
        expect(account["dropped"] == account["invented"] == 0 and account["bytes"] == target.stat().st_size, f"{account}")
        convert("pt-to-safetensors", source, again, "-j4", "--max-memory", "1MiB")
        expect(again.read_bytes() == target.read_bytes(), f"{again}: other bytes the second time")


def safetensors_to_pt(judge, count):
    r = judge.random
    for i in range(count):
        state = random_state(r, DTYPES, views=False)
        source, target, again, back = (judge.path(s) for s in (".safetensors", ".pt", ".pt", ".safetensors"))
        metadata = {"format": "pt"} if i % 2 else None
        safetensors.torch.save_file(state, source, metadata)
        convert("safetensors-to-pt", source, target, f"-j{r.randrange(1, 5)}")
        for mmap in (False, True):
            expect(rows(torch.load(target, weights_only=True, mmap=mmap)) == rows(state), f"{target}: torch reads something else")
        convert("safetensors-to-pt", source, again, "-j4")
        expect(
            again.read_bytes().replace(again.stem.encode(), target.stem.encode()) == target.read_bytes(),
            f"{again}: other bytes the second time",
        )
        convert("pt-to-safetensors", target, back)
        expect(rows(safetensors.torch.load_file(back)) == rows(state), f"{back}: lost on the way there and back")


def large_tensors(judge):
    """More than the engine takes at a time, at strides and tied."""
    base = torch.arange(4_000_000).reshape(2000, 2000)
    state = {"base": base, "tied": base, "turned": base.t(), "columns": base[:, ::3], "small": torch.ones(3, dtype=torch.bool)}
    source, target, back = judge.path(".pt"), judge.path(".safetensors"), judge.path(".pt")
    torch.save(state, source)
    account = convert("pt-to-safetensors", source, target, "-j3", "--max-memory", "4MiB")
    expect(account["tied"] == 3, f"{account}")
    small = convert("pt-to-safetensors", source, judge.path(".safetensors"), "--include", "small")
    # Less than all of it at a time; a sanitizer keeps memory of its own.
    expect(account["peak_rss"] - small["peak_rss"] < 60 << 20 < account["bytes"], f"{account}, {small}")
    expect(rows(safetensors.torch.load_file(target)) == rows(state), "large tensors to safetensors")
    convert("safetensors-to-pt", target, back, "-j3")
    expect(rows(torch.load(back, weights_only=True)) == rows(state), "large tensors to .pt")


def pairs_of_floats(judge):
    """safetensors counts 4-bit floats, torch pairs of them; the library's own loader for torch has no name for either."""
    state = {"w": random_tensor(judge.random, [torch.float4_e2m1fn_x2], [3, 4])}
    source, target, back = judge.path(".safetensors"), judge.path(".pt"), judge.path(".safetensors")
    safetensors.torch.save_file(state, source, {"format": "pt"})
    convert("safetensors-to-pt", source, target)
    expect(rows(torch.load(target, weights_only=True)) == rows(state), "pairs to .pt")
    convert("pt-to-safetensors", target, back)
    expect(data_of(back) == reference_data(state), "pairs to safetensors")


def shards(judge):
    """The folders that Hugging Face writes, of either kind."""
    state = {f"model.layers.{i}.w": random_tensor(judge.random, OLDER[:4], [7, 9]) for i in range(23)}
    folder, target = judge.path(), judge.path(".pt")
    folder.mkdir()
    huggingface_hub.save_torch_state_dict(state, folder, max_shard_size=2000)
    expect((folder / "model.safetensors.index.json").exists(), "there is one shard only")
    account = convert("safetensors-to-pt", folder, target)
    expect(rows(torch.load(target, weights_only=True)) == rows(state), "shards of safetensors")
    expect(list(torch.load(target, weights_only=True)) == sorted(state, key=lambda n: int(n.split(".")[2])), "the order of names")
    expect(account["tensors_in"] == 23, f"{account}")
    folder, target = judge.path(), judge.path(".safetensors")
    folder.mkdir()
    huggingface_hub.save_torch_state_dict(state, folder, max_shard_size=2000, safe_serialization=False)
    convert("pt-to-safetensors", folder, target)
    expect(rows(safetensors.torch.load_file(target)) == rows(state), "shards of torch")


def refusals(judge):
    """A tensor that safetensors cannot hold is named, and nothing is written."""
    cases = [
        ({"w": torch.zeros(2, dtype=torch.complex128)}, "'w': safetensors has no type for complex128"),
        ({"__metadata__": torch.zeros(2)}, "the name is reserved"),
        ({"w": torch.zeros(2), "epoch": 3, "args": {"lr": 0.1}}, "2 objects of the source: epoch, args"),
    ]
    for value, words in cases:
        source, target = judge.path(".pt"), judge.path(".safetensors")
        torch.save(value, source)
        error = convert("pt-to-safetensors", source, target, status=4)
        expect(words in error, f"{words!r} is not in {error}")
        expect(not target.exists(), f"{target} was written")
    account = convert("pt-to-safetensors", source, target, "--tensors-only")
    expect(list(safetensors.torch.load_file(target)) == ["w"] and account["dropped"] == 0, f"{account}")
    damaged, target = judge.path(".pt"), judge.path(".safetensors")
    damaged.write_bytes(source.read_bytes().replace(b"\0" * 8 + b"PK", b"\0" * 7 + b"\1PK"))
    expect(damaged.read_bytes() != source.read_bytes(), "nothing was damaged")
    error = convert("pt-to-safetensors", damaged, target, "--tensors-only", status=3)
    expect("checksum" in error and not target.exists(), f"a wrong checksum: {error}")


def choices(judge):
    state = {f"model.{i}.{n}": torch.full((2,), float(i)) for i in range(3) for n in ("w", "b")}
    source, target = judge.path(".safetensors"), judge.path(".pt")
    safetensors.torch.save_file(state, source, {"format": "pt", "author": "someone"})
    account = convert("safetensors-to-pt", source, target, "--include", "model.0.*", "--include", "model.2.*", "--exclude", "*.b")
    expect(list(torch.load(target, weights_only=True)) == ["model.0.w", "model.2.w"], "--include and --exclude")
    expect((account["tensors_in"], account["tensors_out"], account["dropped"]) == (6, 2, 4), f"{account}")
    run = run_mckpt("convert", "safetensors-to-pt", source, target, "--overwrite")
    expect("author" in run.stderr and "format" not in run.stderr, f"metadata that is left behind: {run.stderr}")
    convert("safetensors-to-pt", source, judge.path(".pt"), "--include", "nothing.*", status=1)


def main():
    judge = Judge(11)
    pt_to_safetensors(judge, 60)
    safetensors_to_pt(judge, 60)
    large_tensors(judge)
    pairs_of_floats(judge)
    shards(judge)
    refusals(judge)
    choices(judge)
    print(f"{judged} judged, {len(failures)} failures")
    if failures:
        sys.exit(f"the files are in {judge.folder}")
    judge.finish(0)


main()
