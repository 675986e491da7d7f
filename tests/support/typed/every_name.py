"""A program of a user with types that uses every public name; tests/python/types_are_right.py has mypy look at it, and runs it.
usage: every_name.py MODEL FOLDER"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import mckpt


def read(model: str) -> int:
    with mckpt.open(model, follow_links=False) as ckpt:
        names: Mapping[str, mckpt.Tensor] = ckpt
        tensor: mckpt.Tensor = names["lm_head.weight"]
        chunk: mckpt.Chunk = tensor.chunks()[0]
        statistics: mckpt.Statistics = tensor.statistics()
        objects: list[mckpt.Object] = ckpt.objects()
        findings: list[mckpt.Finding] = ckpt.findings
        shape: tuple[int, ...] = tensor[:4, 0].shape
        text: str = tensor.digest() + tensor.dtype + ckpt.format + ckpt.path + repr(ckpt.facts)
        assert len(text) > 64 and len(tensor.tobytes()) == chunk.bytes and shape == (4,)
        try:
            ckpt["lm_head.weigh"]
        except mckpt.NoSuchTensor as missing:
            error: mckpt.Error = missing
            assert error.code == "MC1007" and error.notes
        return statistics.nan + len(objects) + len(findings) + sum(1 for _ in ckpt.in_file_order("*.mlp.*"))


def sizes(model: str) -> Iterator[int]:
    checkpoint: mckpt.Checkpoint = mckpt.open(Path(model))
    for name, tensor in mckpt.tensors(model, "model.norm*"):
        yield tensor.nbytes + checkpoint[name].size
    checkpoint.close()


def convert(model: str, folder: Path) -> mckpt.Report:
    seen: list[mckpt.Progress] = []
    planned: mckpt.Conversion = mckpt.plan(model, folder / "ckpt", to="hf-to-fsdp", tp=2, strategy="optim_grads_params", dtype_rule={"*": "bf16"})
    grid: dict[str, int] | None = planned.grid
    account: mckpt.Account = planned.prove(progress=seen.append)
    outputs: list[mckpt.OutputFile] = planned.outputs
    notes: list[mckpt.Note] = planned.notes
    done: mckpt.RunReport = planned.run(progress=False)
    mckpt.convert(model, folder / "other", to="fsdp", progress=lambda progress: None)
    mckpt.export(done.output, folder / "hf", progress=False)
    view: mckpt.Checkpoint = mckpt.open_as_fsdp(folder / "ckpt")
    assert len(view) == account.tensors_out and outputs and len(notes) >= 0
    report: mckpt.Report = mckpt.verify(folder / "hf", against=model, progress=False)
    checks: list[mckpt.Check] = report.checks
    differences: list[mckpt.Difference] = report.differences
    assert checks and not differences and report.ok and grid == done.grid
    return report


def into_memory(model: str) -> int:
    loaded: mckpt.Loaded = mckpt.load(model, device="cpu", progress=False)
    norm: mckpt.LoadedTensor = loaded["model.norm.weight"]
    rank: mckpt.Loaded = mckpt.load(model, "cpu", "fp32", rank=1, tp=2, threads=1, progress=False)
    assert norm.size * 2 == len(norm.tobytes()) and norm.ndim == 1 and norm.device == "cpu"
    with mckpt.load(model, "cpu", progress=False, names="model.norm.weight") as some:
        assert len(some) == 1
    assert norm.data and norm.nbytes == 2 * norm.shape[0] and rank.device == "cpu"
    return loaded.nbytes


def compare(folder: Path) -> bool:
    difference: mckpt.Diff = mckpt.diff(folder / "ckpt", folder / "other", progress=False)
    rows: list[mckpt.DiffRow] = [row for row in difference if row.largest is None or row.largest > 0]
    drawn: bool = mckpt.plot(folder / "ckpt", folder / "ckpt.html", names="*norm*", regex=False, stats=True, threads=1, progress=False)
    return difference.equal and not rows and drawn


def main(model: str, folder: Path) -> None:
    program: Path = mckpt.program() if (folder / "bin").exists() else folder
    version: str = mckpt.version() + mckpt.__version__
    assert program.exists() and version
    assert read(model) > 0 and into_memory(model) > 0 and all(size > 0 for size in sizes(model))
    assert convert(model, folder).equal and compare(folder)
    print("every name works")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
