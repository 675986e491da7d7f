"""Where mckpt and a reference library differ in mutated files, and why: judges/mutated_files.py looks for a rule for every difference."""
import collections
import dataclasses
import glob
import io
import json
import logging
import math
import os
import pickletools
import re
import struct
import time
import zipfile
from pickle import BINGET, BUILD, GET, LONG_BINGET, NEWOBJ, REDUCE, _Unpickler
from typing import Callable

from mckpt_tests import mutated
from mckpt_tests.mutated_runs import OURS, THEIRS
from mckpt_tests.odd_archives import irregular_zip, record_names
from mckpt_tests.setting import DATA


@dataclasses.dataclass
class Read:
    """A file as a reference sees it: its tensors as mutated.Opened has them, or the text of its refusal."""

    tensors: dict = dataclasses.field(default_factory=dict)
    refusal: str = ""


@dataclasses.dataclass
class Rule:
    """`accepts`: who takes the file, "mckpt", "reference" or "both" with other tensors. `ours`: regular expression of mckpt's code and message; `theirs`: of
    the reference's. `also`: what else must hold of (data, ours, theirs)."""

    name: str
    accepts: str
    why: str
    ours: str = ""
    theirs: str = ""
    also: Callable | None = None

    def explains(self, accepts, data, ours, theirs):
        return (self.accepts == accepts and re.search(self.ours, f"{ours.code} {ours.text}", re.S) and re.search(self.theirs, theirs.refusal, re.S)
                and (self.also is None or self.also(data, ours, theirs)))


SLOW = 5  # seconds of processor time that mckpt may take for a small file


class Kind:
    """Cases are the bytes of files."""

    bounded = True

    def make(self, seed, other, rnd):
        return mutated.mutate(self.mutator(seed), seed, other, rnd.getrandbits(63))

    def look(self, data, folder, phase):
        path = os.path.join(folder, f"{os.getpid()}{self.suffix}")
        with open(path, "wb") as f:
            f.write(data)
        phase.enter(OURS)
        begin = time.process_time()
        ours = mutated.opened(path)
        slow = time.process_time() - begin
        phase.enter(THEIRS)
        theirs = self.read(data)
        if slow > SLOW:
            return ("", f"mckpt took {slow:.0f} s"), False
        return self.judge(data, ours, theirs), not ours.code and not theirs.refusal

    def judge(self, data, ours, theirs):
        """None where both are of one mind; else (name of the rule or "", what differs)."""
        if ours.code and theirs.refusal:
            return None
        accepts = "reference" if ours.code else "mckpt" if theirs.refusal else "both"
        difference = self.difference(ours, theirs) if accepts == "both" else ""
        if accepts == "both" and not difference:
            return None
        for rule in self.rules:
            if rule.explains(accepts, data, ours, theirs):
                return rule.name, ""
        return "", f"{accepts} accept{'' if accepts == 'both' else 's'}; mckpt: {ours.code} {ours.text}; reference: {theirs.refusal}; {difference}"

    def difference(self, ours, theirs):
        for name in {**ours.tensors, **theirs.tensors}:
            a, b = ours.tensors.get(name), theirs.tensors.get(name)
            if a is None or b is None or a[:2] != b[:2] or (a[2] is not None and a[2] != b[2]):
                return f"tensor {name!r}: mckpt {a}, reference {b}"
        return ""


# ---- safetensors


# As mckpt names them; F4 has a rule of its own: pairs, half the last dimension.
SAFETENSORS_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32",
    "F32": "float32", "F64": "float64", "I64": "int64", "U64": "uint64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F6_E2M3": "float6_e2m3fn", "F6_E3M2": "float6_e3m2fn", "F4": "float4_e2m1fn"}


class Safetensors(Kind):
    suffix, reference = ".safetensors", "safetensors"
    rules = []

    def __init__(self):
        import safetensors
        self.library = safetensors

    def mutator(self, seed):
        return "safetensors"

    def seeds(self):
        out = []
        for path in sorted(glob.glob(os.path.join(DATA, "formats", "safetensors", "**", "*.safetensors"), recursive=True)):
            with open(path, "rb") as f:
                out.append(f.read())
        for header, size in (({}, 0), ({"a": {"dtype": "F4", "shape": [2, 4], "data_offsets": [0, 4]}, "__metadata__": {"format": "pt"}}, 4),
                             ({f"t{i}": {"dtype": name, "shape": [8], "data_offsets": [64 * i, 64 * i + 64]} for i, name in enumerate(("F64", "I64", "U64", "C64"))}, 256)):
            text = json.dumps(header).encode()
            out.append(struct.pack("<Q", len(text)) + text + bytes(range(size % 256)) + bytes(size - size % 256))
        return [data for data in out if len(data) < 5000]

    def read(self, data):
        try:
            rows = self.library.deserialize(data)
        except self.library.SafetensorError as e:
            return Read(refusal=str(e))
        out = {}
        for name, row in rows:
            dtype, shape = row["dtype"], tuple(row["shape"])
            if dtype == "F4" and shape and shape[-1] % 2 == 0:
                dtype, shape = "float4_e2m1fn_x2", (*shape[:-1], shape[-1] // 2)
            out[name] = (SAFETENSORS_TYPES.get(dtype, dtype), shape, bytes(row["data"]))
        return Read(out)


def names_one_that_is_twice(data, ours, theirs):
    """mckpt's message names a member that its object has twice: itself, or as the tensor of which one entry is wrong."""
    twice = set()

    def pairs(members):
        counts = collections.Counter(name for name, _ in members)
        twice.update(name for name, count in counts.items() if count > 1)
        return dict(members)

    json.loads(data[8:8 + int.from_bytes(data[:8], "little")], object_pairs_hook=pairs)
    return any(f"'{shown(name)}'" in ours.text for name in twice)


def shown(name):
    """As messages of mckpt show it."""
    return re.sub("[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", name)


def has_no_items_of_many(data, ours, theirs):
    """A shape with a number that needs 64 bits, and with 0."""
    return any(0 in shape and max(shape) >= 2**63 for _, shape, _ in theirs.tensors.values())


def header_of(data):
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])


def overflows_before_a_zero(data, ours, theirs):
    shapes = [entry.get("shape", []) for name, entry in header_of(data).items() if name != "__metadata__"]
    return any(0 in shape and math.prod(shape[:shape.index(0)]) * 64 >= 2**64 for shape in shapes)


def levels(value):
    return 1 + max((levels(item) for item in (value.values() if isinstance(value, dict) else value)), default=0) if isinstance(value, (dict, list)) else 0


def is_deep(data, ours, theirs):
    return levels(header_of(data)) > 8


Safetensors.rules = [
    Rule("a name twice", "reference", "two entries of one name: serde keeps the last, other readers the first; mckpt refuses what can be read in two ways",
         ours=r"^MC(1003|110[1-4]|010[12])", also=names_one_that_is_twice),
    Rule("shapes of 64 bits", "reference", "sizes are numbers of 63 bits for mckpt and for torch, of 64 bits for safetensors", ours=r"^MC1003 .*does not fit 63 bits", also=has_no_items_of_many),
    Rule("names with NUL", "reference", "the interface for C and Python ends texts at NUL, and refuses such a name", ours=r"^MC1111 .*holds a NUL"),
    Rule("sizes before a zero", "mckpt", "safetensors multiplies sizes in their order, and refuses a product that 64 bits do not hold though a later size is 0; the tensor has no items",
         theirs=r"overflow computing buffer size", also=overflows_before_a_zero),
    Rule("depth", "reference", "serde takes 128 levels of JSON; no writer puts more than three into a header, and mckpt takes 8", ours=r"^MC1003 .*nested deeper than the limit of 8", also=is_deep),
]


# ---- torch


def ways(value, way=(), above=()):
    """The tensors below a value, with the keys that lead to each. A container that is in itself is entered once."""
    import torch
    if isinstance(value, torch.Tensor):
        yield way, value
    if len(above) > 600 or isinstance(value, torch.Size) or id(value) in above:
        return
    above = (*above, id(value))
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ways(item, (*way, key), above)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from ways(item, (*way, i), above)
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield from ways(item, (*way, None), above)
    if isinstance(value, (collections.OrderedDict, torch.Tensor)):
        for key, item in vars(value).items():
            yield from ways(item, (*way, "(attributes)", key), above)


def row_of(t):
    """As mutated.Opened has it."""
    import torch
    whole, t = t, getattr(t, "_local_tensor", t).detach()  # a DTensor's
    if whole.numel() == t.numel() == 0:
        t = t.reshape(whole.shape)  # no piece of a tensor without items
    dtype = str(t.dtype).removeprefix("torch.")
    if t.dtype == torch.bool:
        t = t.view(torch.uint8)  # a copy makes 1 of every byte other than 0
    if t.is_quantized:
        return dtype, tuple(t.shape), t.int_repr().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    data = None
    if t.numel() * t.element_size() <= 1 << 20:
        data = torch.empty(t.shape, dtype=t.dtype).copy_(t).reshape(-1).view(torch.uint8).numpy().tobytes()
    return dtype, tuple(t.shape), data


class Torch(Kind):
    suffix, reference = ".pt", "torch"
    rules = []

    def __init__(self):
        import torch
        import torch.distributed.tensor  # else torch.load refuses DTensors
        self.torch = torch
        torch.set_num_threads(1)
        logging.getLogger("torch.distributed.device_mesh").setLevel(logging.ERROR)  # one line a mesh

    def mutator(self, seed):
        return "zip" if seed.startswith(b"PK") else "pickles"

    def seeds(self):
        torch, out = self.torch, []
        for folder in ("pt", "formats/pt"):
            for path in sorted(glob.glob(os.path.join(DATA, folder, "**", "*.pt"), recursive=True)):
                with open(path, "rb") as f:
                    out.append(f.read())
        base = torch.arange(24, dtype=torch.float32)
        for value in ({"w": base.reshape(4, 6)}, {"a": base[2:8].reshape(2, 3).t(), "b": base[::2]}, [base.to(torch.bfloat16), {"k": base.to(torch.int64)}],
                      collections.OrderedDict(p=torch.nn.Parameter(base[:4])), base.to(torch.float8_e4m3fn), {1: base[:0], "x": {"y": (1, "z", base[0])}}):
            raw = io.BytesIO()
            torch.save(value, raw)  # the older form has addresses in it: other bytes in each run
            out.append(raw.getvalue())
        return [data for data in out if len(data) < 6000]

    def read(self, data):
        try:
            value = self.torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except Exception as e:
            return Read(refusal=self.reason(e))
        out = Read()
        out.value = value
        try:
            found = list(ways(value))
            out.tensors = {way: row_of(t) for way, t in found}
        except Exception as e:
            out.refusal = f"reading values: {type(e).__name__}: {e}"[:2000]
        return out

    def reason(self, e):
        """The message without what torch says to everybody."""
        text = str(e)
        if (at := text.find("WeightsUnpickler error:")) >= 0:
            text = text[at:].split("Check the documentation")[0]
        return f"{type(e).__name__}: {text.strip()}"[:2000]

    def difference(self, ours, theirs):
        named = {".".join(str(key) for key in way) if way else "tensor": row for way, row in theirs.tensors.items()}
        plain = all(isinstance(key, str) or type(key) is bool or (type(key) is int and abs(key) < 2**63) for way in theirs.tensors for key in way)
        if len(named) < len(theirs.tensors) or not plain:  # names that mckpt makes different, or spells in its own way: compared without them
            a, b = (collections.Counter(side.values()) for side in (ours.tensors, theirs.tensors))
            return "" if a == b else f"tensors without names: mckpt alone {a - b}, reference alone {b - a}"
        return Kind.difference(self, ours, Read(named))


# Errors of torch while it makes a tensor.
MAKING = r"expected dict|requires_grad|rebuild|set_storage|setStorage|storage|size|stride|argument|unpack|dtype|Tensor|quant"


def thrown_away(data, ours, theirs):
    """The pickle makes values that are not part of the one that it has: it leaves some on the stack, takes some off, puts some into one place, or gives them
    to a tensor as its hooks."""
    hooks = [value for function, args in calls_of(data) if "._rebuild_" in str(function) for arg in args if isinstance(arg, dict) for value in arg.values()]
    return any("._rebuild_" in str(getattr(value, "maker", "")) for value in hooks) or any(Calls(pickle).left or any(op.name in ("POP", "POP_MARK") for op, _, _ in pickletools.genops(pickle)) for pickle in pickles_of(data))


def unsummed(archive, name):
    with archive.open(name) as f:
        f._expected_crc = None  # torch can write archives without checksums, and compares none
        return f.read()


def pickles_of(data):
    if data.startswith(b"PK"):
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
            return [unsummed(archive, name) for name in archive.namelist() if name.endswith("data.pkl")]
        except Exception:
            return []
    out, stream = [], io.BytesIO(data)
    try:
        for _ in range(5):
            begin = stream.tell()
            for _op in pickletools.genops(stream):
                pass
            out.append(data[begin:stream.tell()])
    except Exception:
        pass
    return out


class Made(dict):
    """The result of a call."""

    __hash__ = object.__hash__


def reading(opcode):
    """The handler of an opcode that reads the memo: Calls notes arguments of calls among what it reads."""
    def get(self):
        _Unpickler.dispatch[opcode](self)
        self.reads_taken |= self.stack[-1] != () and any(self.stack[-1] is args for args in self.taken)
    return get


class Calls(_Unpickler):
    """Notes the calls of a pickle and the storages that it names, up to where it ends or breaks. Nothing is imported or called."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.calls, self.storages, self.states = [], [], []  # (name of the function, arguments), persistent ids, (name of the function, state)
        self.taken, self.reads_taken = [], False  # arguments of calls; whether one of them is read again
        self.left = False  # whether values are left on the stack
        try:
            self.load()
            self.left = bool(self.stack)
        except Exception:
            pass

    def find_class(self, module, name):
        return f"{module}.{name}"

    def persistent_load(self, pid):
        self.storages.append(pid)
        return pid

    def call(self):
        args = self.stack.pop()
        self.taken.append(args)
        if isinstance(args, tuple):
            args = tuple(dict(arg) if isinstance(arg, dict) else arg for arg in args)  # as they are now
        self.calls.append((self.stack[-1], args))
        self.stack[-1] = Made()
        self.stack[-1].maker = self.calls[-1][0]

    def build(self):
        state = self.stack.pop()
        self.states.append((getattr(self.stack[-1], "maker", None), state))

    dispatch = _Unpickler.dispatch | {REDUCE[0]: call, NEWOBJ[0]: call, BUILD[0]: build} | {op[0]: reading(op[0]) for op in (GET, BINGET, LONG_BINGET)}


def calls_of(data):
    return [call for pickle in pickles_of(data) for call in Calls(pickle).calls]


def has_storage_named_in_two_ways(data, ours, theirs):
    ways = collections.defaultdict(set)
    for pickle in pickles_of(data):
        for pid in Calls(pickle).storages:
            if isinstance(pid, tuple) and len(pid) > 2:
                ways[str(pid[2])].add(repr((pid[1], pid[4:5])))  # its class and its size
    return any(len(named) > 1 for named in ways.values())


def has_protocol_to_come(data, ours, theirs):
    for pickle in pickles_of(data) or [data]:
        try:
            if any(op.name == "PROTO" and number > 5 for op, number, _ in pickletools.genops(pickle)):
                return True
        except Exception:
            pass
    return False


MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # the number that a file of the older form begins with


def has_magic_behind_more(data, ours, theirs):
    return 2 < data.find(MAGIC, 0, 64)


def has_state_without_dict(data, ours, theirs):
    return any(maker == "collections.OrderedDict" and not isinstance(state, dict) for pickle in pickles_of(data) for maker, state in Calls(pickle).states)


def has_negative_mesh(data, ours, theirs):
    layouts = (state for pickle in pickles_of(data) for maker, state in Calls(pickle).states if str(maker).startswith("torch.distributed._mesh_layout."))
    return any(isinstance(state, dict) and "-" in repr((state.get("shape"), state.get("axes"))) for state in layouts)


def has_storage_without_class(data, ours, theirs):
    return any(isinstance(pid, tuple) and not isinstance(pid[1], str) for pickle in pickles_of(data) for pid in Calls(pickle).storages)


def has_arguments_read_again(data, ours, theirs):
    return any(Calls(pickle).reads_taken for pickle in pickles_of(data))


def has_call_without_tuple(data, ours, theirs):
    return any(not isinstance(args, tuple) for _, args in calls_of(data))


def has_metadata_filled_later(data, ours, theirs):
    most = {"torch._utils._rebuild_tensor_v2": 7, "torch._utils._rebuild_tensor_v3": 8}
    return any(isinstance(args, tuple) and len(args) == most.get(str(name)) and args[-1] == {} for name, args in calls_of(data))


LOOKED_FOR = {"byteorder", "data.pkl", "version", ".data/version", ".data/serialization_id", ".format_version", ".storage_alignment"}


def has_record_in_capitals(data, ours, theirs):
    names = record_names(data)
    top = names[0].split("/")[0] if names else ""
    return any(part != part.lower() and (part.lower() in LOOKED_FOR or part.lower().startswith("data/")) for part in (name.removeprefix(f"{top}/") for name in names))


def has_enlarged_storage(data, ours, theirs):
    """A storage of the older form that has just the bytes of the view that is too large for it."""
    found = re.search(r"found (\d+) bytes", ours.text)
    return found and is_legacy(data, ours, theirs) and any(t.untyped_storage().nbytes() == int(found[1]) for _, t in ways(theirs.value))


def has_no_strides(data, ours, theirs):
    return any("_rebuild_" in str(name) and isinstance(args, tuple) and len(args) > 3 and args[3] in (None, (), []) for name, args in calls_of(data))


def pieces(theirs):
    """The DTensors, of which torch has one rank's piece."""
    return [t for _, t in ways(theirs.value) if hasattr(t, "_local_tensor")]


def has_part_of_a_tensor(data, ours, theirs):
    return any(t._local_tensor.shape != t.shape for t in pieces(theirs))


def reaches_out(storage, offset, size, stride, *_):
    """Whether a view of these arguments leaves its storage. Arguments of other types are for another rule."""
    try:
        steps = [(n - 1) * step for n, step in zip(size, stride)]
        first, last = offset + sum(min(step, 0) for step in steps), offset + sum(max(step, 0) for step in steps)
        return 0 not in size and (first < 0 or last >= storage[4])
    except (TypeError, IndexError):
        return False


def has_quantised_outside(data, ours, theirs):
    return any(reaches_out(*args) for function, args in calls_of(data) if function == "torch._utils._rebuild_qtensor")


def is_legacy(data, ours, theirs):
    return not data.startswith(b"PK")


def is_parameter_of_nothing(function, args):
    return function == "torch._utils._rebuild_parameter" and isinstance(args, tuple) and args[:1] == (None,)


def has_text_of_bytes(data, ours, theirs):
    """Whether a text of the opcodes of Python 2 is not UTF-8."""
    for pickle in pickles_of(data):
        try:
            for op, text, _ in pickletools.genops(pickle):
                if op.name in ("STRING", "BINSTRING", "SHORT_BINSTRING"):
                    text.encode("latin1").decode()
        except UnicodeDecodeError:
            return True
        except Exception:
            continue
    return False


def has_parameter_of_nothing(data, ours, theirs):
    """Without the empty tensors of torch that mckpt does not have, both see the same."""
    if not any(is_parameter_of_nothing(*call) for call in calls_of(data)):
        return False
    stored = {way: row for way, row in theirs.tensors.items() if row != ("float32", (0,), b"") or ".".join(map(str, way)) in ours.tensors}
    return not Torch.difference(None, ours, Read(stored))


def has_enormous_view(data, ours, theirs):
    return any(t.numel() * t.element_size() >= 2**63 for _, t in ways(theirs.value))


def has_no_items(data, ours, theirs):
    return any(0 in shape for _, shape, _ in theirs.tensors.values())


Torch.rules = [
    Rule("opcodes of other writers", "mckpt", "torch's restricted unpickler has a part of Python's opcodes; mckpt has all that are data", theirs=r"Unsupported operand \d+"),
    Rule("classes", "mckpt", "a class outside torch's list of safe ones is an object without tensors, or a record with a warning",
         theirs=r"Unsupported (global|class)|was not an allowed global|not an allowed global"),
    Rule("objects", "mckpt", "what is not a tensor is left to torch: a storage that is made by a call has no record, and its arguments are not judged",
         theirs=r"^TypeError: torch.UntypedStorage\(\) received", also=lambda data, ours, theirs: any(str(name).endswith(".UntypedStorage") for name, _ in calls_of(data))),
    Rule("types without a storage class, in the older form", "mckpt", "torch.save writes float8 and the like so, torch.load does not read them; mckpt does",
         theirs=r"UntypedStorage' has no attribute 'dtype'", also=is_legacy),
    Rule("thrown away", "mckpt", "torch makes every tensor, also one that is not part of the value; mckpt looks at those that are", theirs=MAKING, also=thrown_away),
    Rule("devices", "mckpt", "a device that this torch does not know may be one of another build, so mckpt judges no arguments of devices",
         theirs=r"Invalid device string|^TypeError: device\(\) received an invalid combination",
         also=lambda data, ours, theirs: any(function == "torch.device" for function, _ in calls_of(data))),
    Rule("a parameter of nothing", "both", "torch makes an empty tensor of None, for which no storage is there; mckpt lists tensors that are stored", also=has_parameter_of_nothing),
    Rule("a parameter of nothing", "mckpt", "such a parameter is no tensor to mckpt, and its other arguments are left to torch", theirs=r"^TypeError: _make_subclass\(\)",
         also=lambda data, ours, theirs: any(is_parameter_of_nothing(*call) for call in calls_of(data))),
    Rule("texts of Python 2", "mckpt", "torch.load has an argument for their encoding, and takes UTF-8 where none is given; mckpt keeps the bytes that are no UTF-8",
         theirs=r"^UnicodeDecodeError", also=has_text_of_bytes),
    Rule("archives", "reference", "torch takes the directory's word, finds names without regard to case, sums nothing and inflates; mckpt takes archives that can be read in one way",
         ours=r"^MC(1201|1202|1203|1004)", also=lambda data, ours, theirs: irregular_zip(data)),
    Rule("another case", "reference", "torch finds DATA.PKL where it looks for data.pkl, and Data/0 for data/0", ours=r"^MC1222 the storage data/\S+ is missing from the archive|^MC1220 .*((data.pkl|version) is missing|letters of another case)", also=has_record_in_capitals),
    Rule("metadata that is filled later", "reference", "torch looks at the metadata of a tensor while the dict is empty; no writer names one that is filled behind",
         ours=r"^MC1224 .*metadata that mckpt does not know", also=has_metadata_filled_later),
    Rule("limits", "reference", "mckpt bounds memory by the size of the file: memo slots, keys, names, views that repeat a small storage", ours=r"^MC(1211|1223 .*(repeats a small storage|enormous))"),
    Rule("protocols", "reference", "torch reads past the number of a protocol that is not there yet", ours=r"^MC(1212 .*protocol|1220 .*this is not a file of torch.save)", also=has_protocol_to_come),
    Rule("in front of the magic number", "reference", "torch unpickles the magic number of the older form, behind a mark too; mckpt knows a file by its first bytes, as every writer makes them",
         ours=r"^MC1220 .*this is not a file of torch.save", also=has_magic_behind_more),
    Rule("a key twice", "reference", "of two entries with one key Python keeps the last", ours=r"^MC1210 .*in one dict the key"),
    Rule("types of arguments", "reference", "torch takes a number, a tuple or a bool where its writers put a text, a dict or an integer (judges/torch_refuses has the list)",
         ours=r"^MC1210 (the metadata of a tensor is not a dict|the (key|device) of a storage is of the wrong type|.* is of the wrong type)"),
    Rule("names with NUL", "reference", "the interface for C and Python ends texts at NUL, and refuses such a name", ours=r"^MC1111 .*holds a NUL"),
    Rule("open marks", "reference", "Python takes the top of the stack though marks are open below it; no writer leaves any", ours=r"^MC1210 .*open marks on its stack"),
    Rule("quantised views", "reference", "torch's _rebuild_qtensor does not look at the bounds of the storage: it reads memory around it", ours=r"^MC1223 .*(out of the bounds|stride of a tensor is negative|offset of a tensor is negative)",
         also=has_quantised_outside),
    Rule("storages without a class", "reference", "torch asks what stands for the class of a storage for a dtype, which tensors and other storages have too; no writer puts them there",
         ours=r"^MC1222 a storage is of a class that mckpt does not know", also=has_storage_without_class),
    Rule("a storage named again", "reference", "torch looks at the first name of a storage alone; a second one may have another size or type, or be none. No writer makes such a file",
         ours=r"^MC1222 .*(two data types|two sizes|size of a storage is negative|a storage is of a class)|^MC1223 .*out of the bounds|^MC0101 .*the size of a tensor in bytes", also=has_storage_named_in_two_ways),
    Rule("enormous views", "reference", "torch gives a view of few bytes any number of items; mckpt counts the bytes of a tensor in 63 bits",
         ours=r"^MC0101 .*the size of a tensor in bytes does not fit 63 bits", also=has_enormous_view),
    Rule("states of dicts", "reference", "torch gives an OrderedDict as attributes whatever dict.update takes: nothing, pairs, texts of two letters; writers give a dict",
         ours=r"^MC1210 .*BUILD gives a dict attributes that are no dict", also=has_state_without_dict),
    Rule("arguments read again", "reference", "mckpt frees the arguments of calls that make dicts, lists, sets, sizes and bytes; picklers make them for the one call and read them never again",
         ours=r"^MC1210 .*of the memo is read after its value was taken out", also=has_arguments_read_again),
    Rule("calls without a tuple", "reference", "torch calls a function with the items of a list or the keys of a dict; Python's pickle module refuses them as mckpt does",
         ours=r"^MC1210 .*the arguments of a call are", also=has_call_without_tuple),
    Rule("no strides", "reference", "an empty stride, or none, is that of one block for torch; no writer makes it",
         ours=r"^MC(1223 .*different lengths: expected \d+, found 0$|1210 the stride of a tensor is not a tuple of integers: found None)", also=has_no_strides),
    Rule("one rank of several", "reference", "torch has the piece of the rank that wrote the file; mckpt opens whole tensors, which one file of several does not have",
         ours=r"^MC1304 .*a hole: no chunk covers", also=has_part_of_a_tensor),
    Rule("device meshes", "reference", "torch looks at the spec of a DTensor, its mesh and its ranks where the tensor is used, not where it is loaded",
         ours=r"^MC1210 (a device mesh names a rank|the (shape and the strides|sizes and the ranks) of a device mesh|a DTensor (has no (spec|device mesh)|does not have one placement|is sharded along no dimension|has a placement that mckpt does not know))|^MC0102 a DTensor is sharded along a dimension that it does not have|^MC1303 .*chunk 0 reaches outside the tensor", also=lambda data, ours, theirs: bool(pieces(theirs))),
    Rule("sizes of device meshes", "reference", "torch computes with the sizes of a mesh where the tensor is used, not where it is loaded",
         ours=r"^MC1210 a size of a device mesh is negative", also=has_negative_mesh),
    Rule("views without items", "reference", "torch does not look at the strides of a tensor without items", ours=r"^MC1223", also=has_no_items),
    Rule("storages of the older form", "reference", "torch returns memory that was never written for a storage that the file does not have, and takes sizes as they come",
         ours=r"^MC(1222|1220 .*the legacy torch file)", also=is_legacy),
    Rule("enlarged storages", "reference", "torch enlarges a storage of the older form for a view that is too large, by memory that was never written",
         ours=r"^MC1223 .*out of the bounds", also=has_enlarged_storage),
]
