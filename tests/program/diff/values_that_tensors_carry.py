"""Values that torch saves with a tensor beside its items: how integers become numbers (scale, zero point, axis), and the attributes that a
program gave it, as torch.load gives them back. A difference in one of them is a difference in both orders; they are listed, and what
holds tensors alone does not take them in silence.
"""

import copy
import itertools
import json
import os

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.torch_pickles import called, name, save, tensor, text

need("torch")
import torch  # noqa: E402

temporary = scratch()


def path(file):
    return os.path.join(temporary.name, file)


def by_tensor(scale, zero):
    return torch._make_per_tensor_quantized_tensor(torch.tensor([1, 2], dtype=torch.int8), scale, zero)


def by_channel(scales, zeros, axis):
    return torch._make_per_channel_quantized_tensor(torch.ones(2, 2, dtype=torch.int8), torch.tensor(scales).double(), torch.tensor(zeros), axis)


def with_attributes(base, **attributes):
    out = copy.deepcopy(base)
    for key, value in attributes.items():
        setattr(out, key, value)
    return out


ones, parameter = torch.ones(2), torch.nn.Parameter(torch.ones(2))
# Pairs, and where the difference is.
PAIRS = {
    "scale": (by_tensor(0.5, 0), by_tensor(0.25, 0), "w.(quantizer)"),
    "zero_point": (by_tensor(0.5, 0), by_tensor(0.5, 1), "w.(quantizer)"),
    "scales": (by_channel([0.5, 1.0], [0, 0], 0), by_channel([0.25, 1.0], [0, 0], 0), "w.(quantizer).scales"),
    "zero_points": (by_channel([0.5, 1.0], [0, 0], 0), by_channel([0.5, 1.0], [0, 1], 0), "w.(quantizer).zero_points"),
    "axis": (by_channel([0.5, 1.0], [0, 0], 0), by_channel([0.5, 1.0], [0, 0], 1), "w.(quantizer).axis"),
    "of_a_tensor": (with_attributes(ones, mask=torch.zeros(3)), with_attributes(ones, mask=ones.repeat(2)[:3]), "w.(attributes).mask"),
    "of_a_parameter": (with_attributes(parameter, lr=1.0), with_attributes(parameter, lr=2.0), "w.(attributes).lr"),
    "beside_a_tensor": (with_attributes(parameter, mask=ones, lr=1.0), with_attributes(parameter, mask=ones, lr=2.0), "w.(attributes).lr"),
    "on_one_side": (with_attributes(parameter, partition_dim=0), parameter, "w.(attributes).partition_dim"),
    "below": (with_attributes(ones, m=with_attributes(ones, n=1)), with_attributes(ones, m=with_attributes(ones, n=2)), "w.(attributes).m.(attributes).n"),
}


def same_to_torch(a, b):
    """Whether torch.load gives back the same, attributes included."""
    a, b = (torch.load(f, weights_only=True)["w"] for f in (a, b))
    if not torch.equal(a, b) or vars(a).keys() != vars(b).keys():
        return False
    as_text = lambda t: {k: (v.tolist(), vars(v)) if torch.is_tensor(v) else v for k, v in vars(t).items()}  # noqa: E731
    if a.is_quantized and a.qscheme() == torch.per_channel_affine and a.q_per_channel_axis() != b.q_per_channel_axis():
        return False
    return as_text(a) == as_text(b)


def compared(what, a, b, where):
    answer = json.loads(run_mckpt("diff", a, b, "--json").stdout)
    expect_equal(f"{what}: diff", [r["name"] for r in answer["rows"]], [where] if where else [])
    expect(answer["equal"] == (not where), f"{what}: diff says {answer['equal']}")
    run = run_mckpt("verify", a, "--against", b, "--json")
    expect(run.returncode == (1 if where else 0), f"{what}: verify --against ends with {run.returncode}")
    expect((where is None) or where in run.stdout, f"{what}: verify does not name {where}")
    run = run_mckpt("diff", a, b)
    expect(run.returncode == (1 if where else 0) and (where or "equal: ") in run.stdout, f"{what}: {run.stdout}")


def pairs():
    for what, (one, other, where) in PAIRS.items():
        a, b, again = path(f"{what}_a.pt"), path(f"{what}_b.pt"), path(f"{what}_again.pt")
        torch.save({"w": one}, a), torch.save({"w": other}, b), torch.save({"w": one}, again)
        expect(not same_to_torch(a, b) and same_to_torch(a, again), f"{what}: torch finds no difference")
        compared(what, a, b, where)
        compared(f"{what}, the other way round", b, a, where)
        answer = run_mckpt("diff", a, again)
        expect(answer.returncode == 0 and answer.stdout.startswith("equal"), f"{what}: a second save of it differs")
        expect(where in run_mckpt("ls", a).stdout + run_mckpt("inspect", a).stdout, f"{what}: {where} is not shown")
    old = path("old.pt")
    torch.save({"w": PAIRS["scales"][0]}, old, _use_new_zipfile_serialization=False)
    compared("the form before torch 1.6", old, path("scales_b.pt"), "w.(quantizer).scales")


def marks():
    """Parameters of subclasses and buffers have marks of torch's own, which no program gave them."""
    torch.save({"w": with_attributes(parameter, _is_param=True)}, path("marked.pt"))
    torch.save({"w": parameter}, path("plain.pt"))
    compared("a mark", path("marked.pt"), path("plain.pt"), None)
    compared("a mark", path("plain.pt"), path("marked.pt"), None)
    torch.save({"w": torch.nn.Buffer(torch.ones(3))}, path("buffer.pt"))
    torch.save({"w": torch.ones(3)}, path("no_buffer.pt"))
    compared("a buffer", path("buffer.pt"), path("no_buffer.pt"), None)
    # An attribute of such a name that a program gave a tensor is compared.
    for i, value in enumerate((7, torch.arange(3.0))):
        torch.save({"w": with_attributes(torch.nn.Parameter(torch.ones(3)), persistent=value)}, path(f"named_{i}.pt"))
    for a, b in (("named_0.pt", "named_1.pt"), ("named_1.pt", "named_0.pt"), ("named_0.pt", "no_buffer.pt")):
        expect(run_mckpt("diff", path(a), path(b)).returncode == 1, f"{a} {b}: an attribute called persistent")
    run = run_mckpt("convert", "pt-to-safetensors", path("buffer.pt"), path("buffer.safetensors"), "--no-sync")
    expect(run.returncode == 0, run.stderr)
    # Equal attributes have equal names, whatever else the tensor carries.
    carriers = {"tensor": ones, "parameter": parameter, "buffer": torch.nn.Buffer(torch.ones(2)), "marked": with_attributes(parameter, _is_param=True)}
    for what, carrier in carriers.items():
        torch.save({"w": with_attributes(carrier, lr=1.0)}, path(f"{what}_lr.pt"))
        torch.save({"w": with_attributes(carrier, lr=1.0, mask=torch.zeros(3))}, path(f"{what}_mask.pt"))
    for one, other in itertools.permutations(carriers, 2):
        compared(f"{one} and {other}", path(f"{one}_lr.pt"), path(f"{other}_lr.pt"), None)
        compared(f"{one} and {other}, with a tensor", path(f"{one}_lr.pt"), path(f"{other}_mask.pt"), "w.(attributes).mask")
    # Many small parameters of which each has its own, as Megatron gives them
    many = {}
    for i in range(20000):
        p = many[f"module.decoder.layers.{i}.mlp.linear_fc1.weight"] = torch.nn.Parameter(ones)
        p.tensor_model_parallel, p.partition_dim, p.partition_stride, p.allreduce, p.shared, p.is_embedding = True, 0, 1, True, False, False
    torch.save(many, path("many.pt"))
    run = run_mckpt("diff", path("many.pt"), path("many.pt"))
    expect(run.returncode == 0 and run.stdout.startswith("equal"), f"many attributes: {run.stdout}{run.stderr}")


def conversions():
    """Numbers beside a tensor are objects, which a file of tensors does not have; tensors on it are tensors."""
    source, result = path("of_a_parameter_a.pt"), path("out.safetensors")
    run = run_mckpt("convert", "pt-to-safetensors", source, result)
    expect(run.returncode == 4 and "MC3005" in run.stderr and "w.(attributes)" in run.stderr, run.stderr)
    run = run_mckpt("convert", "pt-to-safetensors", source, result, "--tensors-only", "--no-sync")
    expect(run.returncode == 0 and "w.(attributes)" in run.stderr, run.stderr)
    result = path("mask.safetensors")
    run = run_mckpt("convert", "pt-to-safetensors", path("of_a_tensor_a.pt"), result, "--no-sync")
    expect(run.returncode == 0, run.stderr)
    expect("w.(attributes).mask" in run_mckpt("ls", result).stdout, "the attribute is not in the result")
    compared("a file of safetensors", result, path("of_a_tensor_a.pt"), None)


def names():
    """The name of an attribute takes no other tensor's, and values that lead back to their tensor end the walk."""
    save(path("cycle.pt"), looped(), _0=bytes(8))
    shown = run_mckpt("inspect", path("cycle.pt"))
    expect(shown.returncode == 0 and "w.(attributes)" in shown.stdout, shown.stdout + shown.stderr)
    compared("a cycle", path("cycle.pt"), path("cycle.pt"), None)
    torch.save({"w": with_attributes(ones, mask=torch.zeros(3)), "w.mask": torch.ones(4)}, path("names.pt"))
    rows = json.loads(run_mckpt("ls", path("names.pt"), "--json").stdout)["tensors"]
    expect_equal("names", sorted(r["name"] for r in rows), ["w", "w.(attributes).mask", "w.mask"])


def in_records():
    """Records of torch DCP with attributes or a quantizer, as a writer of its own leaves them: named as not compared, in both orders. torch leaves none."""
    import torch.distributed.checkpoint as dcp

    plain, dcp_save = {"w": torch.arange(3.0), "v": torch.ones(2)}, torch.save
    for folder, change in (("plain", lambda t: t), ("marked", lambda t: with_attributes(t.clone(), mask=ones)), ("again", lambda t: with_attributes(t.clone(), mask=ones))):
        torch.save = lambda value, stream, change=change, **options: dcp_save(change(value) if isinstance(value, torch.Tensor) else value, stream, **options)
        try:
            dcp.save(plain, checkpoint_id=path(folder))
        finally:
            torch.save = dcp_save
    words = "not compared: attributes and quantizers in records of torch DCP of "
    for a, b in (("plain", "marked"), ("marked", "plain"), ("marked", "again"), ("plain", "plain")):
        diff, against = run_mckpt("diff", path(a), path(b)), run_mckpt("verify", path(a), "--against", path(b))
        shown = f"{a} {b}: {diff.stdout}{diff.stderr}{against.stdout}{against.stderr}"
        expect(diff.returncode == against.returncode == 0, shown)
        is_marked = "marked" in (a, b)
        for out in (diff.stdout, against.stdout):
            expect((words in out) == is_marked and (not is_marked or path("marked") in out.split(words)[1]), shown)
        told = "equal, but attributes in records of torch DCP were not compared" in against.stdout
        expect(told == is_marked, shown)


def looped():
    """A tensor whose attribute `me` is the tensor: the state is filled after the tensor is made of it."""
    state = b"}q\x63"
    inner = tensor("0", [2], [1])
    args = inner[len(name("torch._utils", "_rebuild_tensor_v2")):-1]
    made = called("torch._tensor", "_rebuild_from_type_v2", name("torch._utils", "_rebuild_tensor_v2"), name("torch", "Tensor"), args, state)
    # The tensor, memo 100; its state gets it as an entry; the tensor is left on the stack.
    return made + b"q\x64" + b"h\x63" + text("me") + b"h\x64" + b"s0"


pairs()
marks()
conversions()
names()
in_records()
finish(110)
