"""A tensor of which a file has the conjugate, or the negative, is sound with a warning in a file of torch.save and in a DCP folder alike; nothing converts it, and
nothing is equal to it. The same holds of tensors with two or four items in a byte."""
import os
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt

need("torch")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402

SAID = "tensor 'c': the file stores not the values of the tensor but their conjugate: unsupported"

with tempfile.TemporaryDirectory() as scratch:
    state = {"c": torch.tensor([1 + 2j, 3 - 4j]).conj(), "w": torch.ones(3)}
    file, folder = os.path.join(scratch, "c.pt"), os.path.join(scratch, "c")
    torch.save(state, file)
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    for path in (file, folder):
        run = run_mckpt("verify", path)
        expect(run.returncode == 0 and "warning[MC1224]" in run.stdout and SAID in run.stdout and f"{path}: sound, with warnings" in run.stdout, f"{path}: {run.returncode} {run.stdout}")
        run = run_mckpt("verify", path, "--strict")
        expect(run.returncode == 1, f"{path}: strict: {run.stdout}")
        run = run_mckpt("convert", "to-safetensors", path, os.path.join(scratch, "out.safetensors"))
        expect(run.returncode == 3 and "MC1224" in run.stderr, f"{path}: converted: {run.stderr}")
        run = run_mckpt("verify", path, "--against", path)
        expect(run.returncode != 0 and "MC1224" in run.stdout + run.stderr, f"{path}: against itself: {run.stdout} {run.stderr}")
    packed = os.path.join(scratch, "packed.pt")
    for dtype, items in ((torch.quint4x2, "two"), (torch.quint2x4, "four")):
        torch.save({"c": torch.quantize_per_channel(torch.ones(4, 4), torch.ones(4), torch.zeros(4), 0, dtype), "w": torch.ones(3)}, packed)
        run = run_mckpt("verify", packed)
        said = f"this is a tensor of {str(dtype)[6:]}, which has {items} items in a byte: unsupported"
        expect(run.returncode == 0 and "warning[MC1224]" in run.stdout and said in run.stdout and f"{packed}: sound, with warnings" in run.stdout, f"{dtype}: {run.returncode} {run.stdout}")
        run = run_mckpt("convert", "to-safetensors", packed, os.path.join(scratch, "out.safetensors"))
        expect(run.returncode == 3 and "MC1224" in run.stderr, f"{dtype}: converted: {run.stderr}")
    quantised, out = os.path.join(scratch, "q.pt"), os.path.join(scratch, "q.dcp")
    torch.save({"c": torch.quantize_per_tensor(torch.ones(4), 0.5, 0, torch.qint8), "w": torch.ones(3)}, quantised)
    run = run_mckpt("convert", "to-dcp", quantised, out)
    expect(run.returncode == 4 and "1 tensor cannot be stored in a DCP folder" in run.stderr and quantised in run.stderr and "'c': a tensor of qint8" in run.stderr and "tensor.dequantize()" in run.stderr and not os.path.exists(out), f"qint8: {run.returncode} {run.stderr}")
finish(13)
