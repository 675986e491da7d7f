"""The rules by which judges/mutated_files explains differences. Files with one oddity each have the rule that is named here; the same words of mckpt about a file
without the oddity have none; and what a rule asks of the bytes of a file does not hold of a file as torch.save writes it."""

import io
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish, need

need("torch", "safetensors")
import torch  # noqa: E402

from mckpt_tests import mutated, reference_rules  # noqa: E402
from mckpt_tests.torch_pickles import called, made, name, number, numbers, save, tensor, text, tuple_of  # noqa: E402

KIND = reference_rules.Torch()
ORDERED = name("collections", "OrderedDict") + b")R"
DATA = {"_0": bytes(16)}


def stored(kind, key="0", items=4):
    return tuple_of(text("storage"), kind, text(key), text("cpu"), number(items)) + b"Q"


def view(storage):
    return called("torch._utils", "_rebuild_tensor_v2", storage, number(0), numbers([4]), numbers([1]), b"\x89", ORDERED)


def on_mesh(sizes):
    """A DTensor that one rank has whole, over a mesh of these sizes."""
    layout = made("torch.distributed._mesh_layout", "_MeshLayout", shape=numbers(sizes), stride=numbers([1] * len(sizes)))
    mesh = made("torch.distributed.device_mesh", "DeviceMesh", _layout=layout, _flatten_rank_map=numbers([0]), _rank=number(0))
    spec = made("torch.distributed.tensor._dtensor_spec", "DTensorSpec", mesh=mesh, placements=tuple_of(name("torch.distributed.tensor.placement_types", "Replicate") + b")\x81"))
    state = b"}(" + text("_local_tensor") + tensor("0", [4], [1]) + text("_spec") + spec + b"u"
    kind = name("torch.distributed.tensor", "DTensor")
    args = tuple_of(kind, name("torch", "float32"), numbers([4]), numbers([1]), number(0), called("torch.serialization", "_get_layout", text("torch.strided")), called("torch", "device", text("cpu")), b"\x89")
    return called("torch._tensor", "_rebuild_from_type_v2", name("torch._utils", "_rebuild_wrapper_subclass"), kind, args, state)


def quantised(size):
    per_tensor = tuple_of(name("torch", "per_tensor_affine"), b"G" + struct.pack(">d", 0.5), number(10))
    return called("torch._utils", "_rebuild_qtensor", stored(name("torch", "QUInt8Storage"), items=16), number(0), numbers([size]), numbers([1]), per_tensor, b"\x89", ORDERED)


def key_of_a_dict(value):
    return b"}" + value + number(1) + b"s"


FLOAT = name("torch", "FloatStorage")
PLAIN = tensor("0", [4], [1])
LARGEST = b"\x8a\x08" + bytes(7 * [255]) + b"\x7f"  # the number 2^63 - 1
REPEATED = view(stored(FLOAT)).replace(numbers([1]), numbers([0]), 1)  # one item, four times
# The rule; what makes the file; the same without the oddity. Both sides take a file that has no rule.
CASES = [
    ("states of dicts", ORDERED + b"](" + tuple_of(text("a"), PLAIN) + b"eb", ORDERED + b"}" + text("a") + PLAIN + b"sb"),
    ("states of dicts", ORDERED + text("") + b"b", ORDERED + b"}b"),
    ("states of dicts", ORDERED + b")b", ORDERED),
    ("storages without a class", view(stored(PLAIN)), view(stored(FLOAT))),
    ("storages without a class", view(stored(stored(FLOAT))), PLAIN),
    ("arguments read again", name("torch", "Size") + tuple_of(numbers([1])) + b"q\x01R" + b"h\x01\x86", name("torch", "Size") + tuple_of(numbers([1])) + b"RN\x86"),
    ("a storage named again", tuple_of(PLAIN, view(stored(FLOAT, items=2**30))), tuple_of(PLAIN, PLAIN)),
    ("a storage named again", tuple_of(PLAIN, view(stored(FLOAT)).replace(number(4), LARGEST, 1)), tuple_of(PLAIN, view(stored(FLOAT)))),
    ("a storage named again", tuple_of(view(stored(name("torch", "IntStorage"))), PLAIN), tuple_of(PLAIN, view(stored(FLOAT)))),
    ("enormous views", REPEATED.replace(numbers([4]), tuple_of(LARGEST)), REPEATED),
    ("sizes of device meshes", on_mesh([-4]), on_mesh([1])),
    ("quantised views", quantised(20), quantised(16)),
    ("quantised views", key_of_a_dict(quantised(20)), key_of_a_dict(quantised(16))),
]


def read(value, folder, record=b"data/0"):
    """The bytes of the file, what mckpt says of it, and torch. `record`: the name of the first storage's."""
    path = os.path.join(folder, "file.pt")
    save(path, value, **DATA)
    with open(path, "rb") as f:
        data = f.read().replace(b"archive/data/0", b"archive/" + record)
    with open(path, "wb") as f:
        f.write(data)
    return data, mutated.opened(path), KIND.read(data)


def check(rule, odd, good, folder):
    data, ours, theirs = read(odd, folder)
    expect(KIND.judge(data, ours, theirs) == (rule, ""), f"{rule}: {KIND.judge(data, ours, theirs)}, mckpt: {ours.code} {ours.text}, torch: {theirs.refusal}")
    data, fine, theirs = read(good, folder)
    expect(KIND.judge(data, fine, theirs) is None, f"{rule}, without the oddity: mckpt: {fine.code} {fine.text}, torch: {theirs.refusal}")
    excuse = KIND.judge(data, ours, theirs)
    expect(excuse is not None and excuse[0] == "", f"{rule}: '{excuse}' excuses the same words about a file without the oddity")


def check_conditions(rules, data, read):
    for rule in rules:
        if rule.also is not None:
            expect(not rule.also(data, mutated.Opened(code="MC0000", text="found 16 bytes"), read), f"{rule.name}: its condition holds of a plain file")


with tempfile.TemporaryDirectory(prefix="mckpt_rules_") as scratch:
    for case in CASES:
        check(*case, scratch)
    for record in (b"Data/0", b"DATA/0"):
        judged = KIND.judge(*read(PLAIN, scratch, record))
        expect(judged == ("another case", ""), f"the record {record}: {judged}")
    inside = called("torch._utils", "_rebuild_qtensor", stored(FLOAT), number(0))
    for rule, value in (
            ("a parameter of nothing", b"}" + text("p") + called("torch._utils", "_rebuild_parameter", b"N", b"\x88", ORDERED) + b"s" + text("w") + PLAIN + b"s"),
            ("a parameter of nothing", tuple_of(PLAIN, called("torch._utils", "_rebuild_parameter", b"N", number(84), ORDERED))),
            ("devices", tuple_of(PLAIN, called("torch", "device", text("0cpu")))),
            ("devices", tuple_of(PLAIN, called("torch", "device", b")"))),
            ("texts of Python 2", tuple_of(PLAIN, b"U\x03aa\xff")),
            ("thrown away", PLAIN.replace(ORDERED + b"tR", b"}" + text("hook") + inside + b"s" + b"tR"))):
        judged = KIND.judge(*read(value, scratch))
        expect(judged == (rule, ""), f"{rule}: {judged}")
    judged = KIND.judge(*read(PLAIN, scratch, b"data/9"))
    expect(judged is None, f"a record under another key: {judged}")
    # A tensor that cannot be made is left on the stack, and another value is the file's.
    judged = KIND.judge(*read(PLAIN.replace(ORDERED + b"tR", ORDERED + FLOAT + b"tR") + b"0" + PLAIN, scratch))
    expect(judged == ("thrown away", ""), f"a tensor that is thrown away: {judged}")
    raw = io.BytesIO()
    torch.save({"w": torch.arange(4.0), "more": {"x": torch.nn.Parameter(torch.ones(2, 3))}}, raw)
    check_conditions(KIND.rules, raw.getvalue(), KIND.read(raw.getvalue()))
    safetensors = reference_rules.Safetensors()
    plain = safetensors.seeds()[0]
    check_conditions(safetensors.rules, plain, safetensors.read(plain))
    entry = '{"w":{"dtype":"F32","data_offsets":[0,0],%s}}'
    for rule, header in (
            *(("a name twice", '{"__metadata__":{' + f'"{key}":"1","{key}":"2"' + "}}") for key in ("k", "k\\n")),
            ("sizes before a zero", entry % '"shape":[68719476737,68719476737,0]'),
            ("depth", entry % f'"shape":[0],"more":{"[" * 9}{"]" * 9}')):
        header = header.encode()
        path, data = os.path.join(scratch, "twice.safetensors"), struct.pack("<Q", len(header)) + header
        with open(path, "wb") as f:
            f.write(data)
        judged = safetensors.judge(data, mutated.opened(path), safetensors.read(data))
        expect(judged == (rule, ""), f"{rule}: {judged}")
finish(3 * len(CASES) + 26)
