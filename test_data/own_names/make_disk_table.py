"""Writes lib/convert/own/disk_table.inc, by which names and tensors in memory become names and tensors of a
folder, from the tables of transformers 5.24: for every class of it that has other names in memory, and
whose model_type has no row in lib/convert/own/disk_rules.cc. Each class is built once with the config that
is its default, on no device. With --cases it also writes disk_transforms.json.xz, what transformers' own
revert_weight_conversion() makes of small tensors of some of them.

A class also gets names that all its models have in memory, by which a checkpoint is known to be of this release.
A part that some config leaves out is not among them: each class is built again with every entry of its config
that the model's code asks for in a decision changed, one after the other.

usage: make_disk_table.py [--cases] [CLASSES.json]     CLASSES.json: keeps what was built, which takes half an hour
"""
import collections
import contextlib
import copy
import functools
import hashlib
import importlib
import inspect
import json
import lzma
import os
import pathlib
import re
import signal
import sys
import time
import types
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
import torch  # noqa: E402
import transformers  # noqa: E402
import transformers.models  # noqa: E402
from transformers import PreTrainedModel, conversion_mapping  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402
from transformers.core_model_loading import WeightConverter, WeightRenaming, apply_converters, apply_renamings, revert_weight_conversion  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OWN = HERE.parents[1] / "lib" / "convert" / "own"
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth", "num_decoder_layers",
          "num_encoder_layers", "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
STACKS = (".experts.gate_up_proj", ".experts.up_proj", ".experts.down_proj")  # as in lib/convert/own/disk_names.cc
COUNT = re.compile("^(" + "|".join(LAYERS[:8]) + "|(num_)?(hidden_|encoder_|decoder_)?(layers?|blocks?)|depths?)$")  # none is not a model
SIZES = [12, 4, 6]  # of small tensors
HEADS = {"num_attention_heads": 3}
CONFIG = {  # numbers that the steps use, for the tensors of these sizes
    **dict.fromkeys(("kimi_k25", "mistral_large4", "step3p7"), {"vision_config": {**HEADS, "hidden_size": 96}}),
    **dict.fromkeys(("gradium_phonon_tts", "step3p5_vision"), HEADS),
    **dict.fromkeys(("inkling2", "inkling2_loop"), {"text_config": {"vocab_size": 17, "unpadded_vocab_size": 12}}),
    **dict.fromkeys(("inkling2_text", "inkling2_loop_text"), {"vocab_size": 17, "unpadded_vocab_size": 12}),
    "qwen4_exp": {"text_config": {"split_ngram_parts": 5}},
    "qwen4_exp_text": {"split_ngram_parts": 5},
}


def model_classes():
    root = pathlib.Path(transformers.models.__file__).parent
    for file in sorted(root.glob("*/modeling_*.py")):
        name = f"transformers.models.{file.parent.name}.{file.stem}"
        try:
            module = importlib.import_module(name)
        except ImportError as e:
            print("not imported:", name, e)
            continue
        for n, c in vars(module).items():
            if inspect.isclass(c) and issubclass(c, PreTrainedModel) and c.__module__ == name and c.config_class and not n.endswith("PreTrainedModel"):
                yield n, c


@functools.cache
def classes_by_name():
    return dict(model_classes())


def class_of(name):
    return classes_by_name()[name.split(" of ")[0]]


def shrink(config):
    for key in LAYERS:
        if isinstance(getattr(config, key, None), int) and getattr(config, key) > 2:
            setattr(config, key, 2)
    for key in ("layer_types", "mlp_layer_types"):
        if isinstance(getattr(config, key, None), list):
            setattr(config, key, getattr(config, key)[:2])
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PreTrainedConfig):
            shrink(value)


@contextlib.contextmanager
def limited(seconds):
    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def built(cls):
    for small in (False, True):
        try:
            with limited(60), torch.device("meta"):
                config = cls.config_class()
                if small:
                    shrink(config)
                return cls(config)
        except Exception as e:  # noqa: BLE001, classes refuse their own defaults in many ways
            print("not built:", cls.__name__, repr(e)[:90])
    return None


def form(name):
    """A name without the numbers of layers and experts, as lib/convert/own/disk_release.cc compares names."""
    return re.sub(r"\d+", "0", name)


def parameters(cls, config):
    """Forms of the names of all parameters; None if the class refuses the config."""
    try:
        with limited(20), torch.device("meta"):
            return {form(k) for k, _ in cls(config).named_parameters()}
    except Exception:  # noqa: BLE001, as in built()
        return None


def parts_of(config):
    """The config and those in it, each with the path to it."""
    yield [], config
    for key, value in vars(config).items():
        if isinstance(value, transformers.PreTrainedConfig):
            yield from (([key] + path, part) for path, part in parts_of(value))


def decisive(cls, config):
    """The entries of configs that lines of the models' code ask for in a decision, with the texts in these lines."""
    modules = {cls.__module__}
    for _, part in parts_of(config):
        package = type(part).__module__.rsplit(".", 1)[0]
        for file in pathlib.Path(sys.modules[type(part).__module__].__file__).parent.glob("modeling_*.py"):
            modules.add(f"{package}.{file.stem}")
    out = {}
    for module in sorted(modules):
        for line in inspect.getsource(importlib.import_module(module)).splitlines():
            if not re.search(r"\b(if|else|range|or|and|not|in|getattr)\b|[=!]=|bias=|\b(is|has|use)_", line):
                continue
            for key in re.findall(r"\b\w*config\w*\.(\w+)", line) + re.findall(r'getattr\(\s*[\w.]*config\w*, "(\w+)"', line):
                out.setdefault(key, set()).update(re.findall(r'"(\w+)"', line))
    return out


def other_values(key, value, texts):
    if isinstance(value, bool):
        return [not value]
    if value is None:
        return [True, 4]
    if isinstance(value, int):
        return [1, 2] if COUNT.search(key) else [None, 0, 1, 2]
    if isinstance(value, float):
        return [None, 0.0]
    if isinstance(value, str):
        return [None, *sorted(texts)]
    if isinstance(value, (list, tuple)):
        if COUNT.search(key):
            return [[1] * len(value), [2] * len(value)]
        kinds = set(value) | texts | {"full_attention", "sliding_attention", "linear_attention"} if value and isinstance(value[0], str) else {0, 1}
        return [None, [], *([kind] * len(value) for kind in sorted(kinds, key=str))]
    return [None]


def variants(cls, config):
    keys = decisive(cls, config)
    for path, part in parts_of(config):
        entries = [(k, v) for k, v in vars(part).items() if k in keys and not isinstance(v, transformers.PreTrainedConfig)]
        for key, value in [(k, x) for k, v in entries for x in other_values(k, v, keys[k])] + [(k, None) for k, v in vars(part).items() if isinstance(v, transformers.PreTrainedConfig)]:
            changed = copy.deepcopy(config)
            try:
                setattr(functools.reduce(getattr, path, changed), key, value)
            except Exception:  # noqa: BLE001, as in built()
                continue
            yield changed


def some_have(cls):
    """The parameters of a model with few layers, and the parameters among these that a model with another config lacks."""
    config = cls.config_class()
    try:
        shrink(config)
    except Exception as e:  # noqa: BLE001, layers that have numbers of their own, for one
        print("not shrunk:", cls.__name__, repr(e)[:90])
        config = cls.config_class()
    if (small := parameters(cls, config)) is None:
        config = cls.config_class()
        small = parameters(cls, config) or set()
    left_out, end = set(), time.monotonic() + 120
    for changed in variants(cls, config) if small else ():
        if time.monotonic() > end:
            print("not all configs tried:", cls.__name__)
            return {"small": [], "left_out": []}  # then nothing is known to be in all
        has = parameters(cls, changed)
        if has:
            left_out |= small - has
    return {"small": sorted(small), "left_out": sorted(left_out)}


def describe():
    out = {}
    for name, cls in sorted(model_classes()):
        if (model := built(cls)) is None:
            continue
        parts = [[p, type(m).__name__, getattr(m.config, "model_type", ""), ""] for p, m in model.named_modules() if p and isinstance(m, PreTrainedModel)]
        out[name] = {"type": model.config.model_type, "prefix": model.base_model_prefix, "subs": parts,
                     "memory": {k: list(v.shape) for k, v in model.state_dict().items()}}
    return {"out": out}


def add_other_types(known):
    """Classes that are built with the config of a type that no class has as its own: exaone is a Llama with other names in its folder."""
    types_ = {of["type"] for of in known.values()}
    for mapping in [v for k, v in vars(modeling_auto).items() if k.endswith("CAUSAL_LM_MAPPING_NAMES")]:
        for model_type, name in mapping.items():
            if model_type in types_ or name not in known or not conversion_mapping.get_checkpoint_conversion_mapping(model_type):
                continue
            known[f"{name} of {model_type}"] = {**known[name], "type": model_type}


def transforms_of(name, of):
    """The conversions that get_model_conversion_mapping() collects for the class and the models in it,
    without those that add or take a prefix."""
    seen, out = collections.defaultdict(list), []
    inside = lambda path, places: any(s == "" or path.startswith(s + ".") for s in places)  # noqa: E731
    for path, cls, model_type, _ in [["", name.split(" of ")[0], of["type"], ""]] + of["subs"]:
        if inside(path, seen[cls]):
            continue
        found = conversion_mapping.get_checkpoint_conversion_mapping(cls)
        by_class = found is not None
        if not by_class:
            if model_type and inside(path, seen[model_type]):
                continue
            found = conversion_mapping.get_checkpoint_conversion_mapping(model_type) if model_type else None
        if found is None:
            continue
        for t in found if path else []:
            t.scope_prefix, t.base_model_prefix = path.removeprefix(of["prefix"]).removeprefix("."), of["prefix"]
        out.extend(found)
        seen[cls].append(path)
        if not by_class and model_type:
            seen[model_type].append(path)
    return [t for t in out if not isinstance(t, conversion_mapping.PrefixChange)]


def text_part(config):
    """Where get_text_config() finds its entries in config.json."""
    text = config.get_text_config()
    return "" if text is config else next(f"{k}." for k, v in vars(config).items() if v is text)


def entry(config, part, key):
    """An entry of config.json, and its default."""
    inner = getattr(config, part.rstrip("."), None) if part else config
    inner, part = (config, "") if inner is None else (inner, part)
    return part + inner.attribute_map.get(key, key), getattr(inner, key, 1)


def step_of(step, config):
    """A row of DiskStep: kind, dim, other, names, the entry of the config, its default. transformers' class of the step says the rest."""
    name, of = type(step).__name__, vars(step)
    if name == "Chunk" and step.num_shards_attribute:
        return "kDivide", of["dim"], 0, (), *entry(config, text_part(config), step.num_shards_attribute)
    if name == "Concatenate" and step.num_shards_attribute is None or name == "Chunk":
        return {"Chunk": "kDivide", "Concatenate": "kJoin"}[name], of["dim"], 0, (), "", 0
    if name == "SplitModulelist":
        return "kExperts", of["dim"], 0, (), "", 0
    if name == "Transpose" and not step.check_dims:
        return "kTranspose", of["dim0"], of["dim1"], (), "", 0
    if name == "Transpose" or name == "Inkling2LoopDequantizeExperts":
        return "kSame", 0, 0, (), "", 0  # a tensor of the model has the model's dimensions, and is not quantised
    if name == "Interleave" and step.inverse:
        return "kInterleave", of["dim"], 0, (), "", 0
    if name == "PermuteForRope" and step.inverse:
        return "kRope", 0, 0, tuple(step.permute_layer_names or ()), *entry(config, f"{step.subconfig_key or ''}.".lstrip("."), "num_attention_heads")
    if name == "ErnieSplitAndDecoupleTextVisionExperts":
        return "kTextVision", of["stack_dim"], of["concat_dim"], (), "", 0
    if name == "Inkling2UnpadVocab" and step.inverse:
        return "kPad", 0, 0, (), *entry(config, text_part(config), "vocab_size")
    if name == "Inkling2LoopMergeMessageQueries" and step.inverse:
        return "kQueries", 0, 0, (), "", 0
    return "kUnknown", 0, 0, (), "", 0


def kind_of(transform, config):
    """Kind, steps and offset."""
    if isinstance(transform, WeightConverter):
        return "kItems", tuple(step_of(o, config) for o in transform.operations), 0
    name = type(transform).__name__  # LayerPairCollapse is left out when a model is saved
    return {"WeightRenaming": "kName", "GroupWeightRename": "kEach", "Inkling2IndexOffsetWeightRename": "kNumber"}[name], (), getattr(transform, "offset", 0)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def alternatives(transform):
    """In the order in which they are tried, each with the number of its source."""
    for number, pattern in sorted(enumerate(transform.source_patterns), key=lambda x: -len(x[1])):
        pattern = pattern.replace("*.", r".*\.")
        yield number, pattern + (r"(?!\w)" if re.search(r"[a-zA-Z0-9]$", pattern) else "")


def row_of(transform, config):
    scoped = transform.scope_prefix is not None
    dotted = lambda text: text + "." if text else ""  # noqa: E731
    scope = (dotted(transform.scope_prefix), dotted(transform.base_model_prefix)) if scoped else None
    return *kind_of(transform, config), scope, tuple(alternatives(transform)), tuple(transform.target_patterns)


def changing(known):
    """Type, class and reversed transforms of the classes with other names in memory, and a name that they have in the folder alone."""
    by_hand = set(re.findall(r'\n    \{"([a-z0-9_]+)"', (OWN / "disk_rules.cc").read_text()))
    for name, of in sorted(known.items(), key=lambda x: (x[1]["type"], x[0])):
        if of["type"] in by_hand:
            continue
        back = [t.reverse_transform() for t in transforms_of(name, of)[::-1]]
        back = [t for t in back if type(t).__name__ != "LayerPairCollapse"]  # which saving leaves out
        names = [t for t in back if isinstance(t, WeightRenaming)]
        tensors = [t for t in back if isinstance(t, WeightConverter)]
        changed = {k: apply_renamings(k, names) for k in of["memory"] if apply_converters(k, tensors)[1] is None}
        if len(changed) < len(of["memory"]) or any(k != disk for k, disk in changed.items()):
            only = [disk for disk in changed.values() if disk not in of["memory"]]
            yield of["type"], name, tensors + names, min(only, key=lambda k: (len(k), k), default="")
        elif any(k.endswith(STACKS) for k in of["memory"]):
            yield of["type"], name, [], ""  # stacks are the form in the folder, too


def always(of, back, configs):
    """The fewest names in memory that all models of the class have and by which every transform is seen that changes one, at
    each place where it does. Names that the class has beside its base model are not among them: a head may be left out."""
    names = [t for t in back if isinstance(t, WeightRenaming)]
    tensors = [t for t in back if isinstance(t, WeightConverter)]
    inside = of["prefix"] + "."
    bare = lambda k: k.removeprefix(inside)  # noqa: E731
    left_out = {bare(k) for entry in configs for k in entry["left_out"]}
    all_have = {bare(k) for entry in configs for k in entry["small"]} - left_out
    only_base = any(k.startswith(inside) for k in of["memory"])
    seen = {}
    for k in sorted(of["memory"], key=lambda k: (len(k), k)):
        if bare(form(k)) not in all_have or only_base and not k.startswith(inside):
            continue
        disk, converter = apply_converters(k, tensors)
        did = {(converter, form(os.path.commonprefix([k, disk])))} if converter else set()
        disk = k if converter is None else disk
        for number, t in enumerate(names):
            before, disk = disk, apply_renamings(disk, [t])
            if before != disk:
                did.add((number, form(os.path.commonprefix([before, disk]))))
        if form(disk) != form(k):
            seen.setdefault(form(k), (k, did))
    chosen, left = [], set().union(*(did for _, did in seen.values()))
    while left:
        k, did = max(seen.values(), key=lambda x: (len(x[1] & left), -len(x[0]), x[0]))
        chosen.append(k)
        left -= did
    return sorted(chosen)


class Arrays:
    """Constant arrays of the table, each once."""

    def __init__(self, type_and_name):
        self.type_and_name, self.numbers = type_and_name, {}

    def name(self, entries):
        if not entries:
            return "{}"
        return self.type_and_name.split()[-1] + str(self.numbers.setdefault(tuple(entries), len(self.numbers)))

    def write(self, out):
        for entries, i in self.numbers.items():
            out.write(f'constexpr {self.type_and_name}{i}[] = {{{", ".join(entries)}}};\n')


def tried_configs(described):
    """By class what some_have() says, of those with transforms."""
    out = described.setdefault("configs", {})
    for _, name, back, _ in changing(described["out"]):
        if back and (cls := class_of(name)).__name__ not in out:
            out[cls.__name__] = some_have(cls)
    return out


def write_table(known, configs):
    rows, classes, lists = {}, [], {}
    of_type = collections.defaultdict(list)
    for model_type, name, back, _ in changing(known):
        if back:
            of_type[model_type].append(configs[name.split(" of ")[0]])
    for model_type, name, back, on_disk in changing(known):
        config = class_of(name).config_class()
        numbers = tuple(rows.setdefault(row_of(t, config), len(rows)) for t in back)
        classes.append((model_type, name, numbers, on_disk, always(known[name], back, of_type[model_type])))
    for _, _, numbers, _, _ in classes:
        lists.setdefault(numbers, len(lists))
    words, alternatives_, steps = Arrays("std::string_view kT"), Arrays("Alternative kA"), Arrays("DiskStep kS")
    lines = []
    for kind, did, offset, scope, sources, targets in rows:
        texts = [f'{{StepKind::{k}, {dim}, {other}, {words.name([quoted(n) for n in names])}, {quoted(key)}, {number}}}' for k, dim, other, names, key, number in did]
        where = f"{quoted(scope[0])}, {quoted(scope[1])}, true" if scope else '"", "", false'
        more = f", {steps.name(texts)}" + (f", {offset}" if offset else "") if texts or offset else ""
        lines.append(f"    {{Transform::{kind}, {where}, {alternatives_.name([f'{{{n}, {quoted(p)}}}' for n, p in sources])}, {words.name([quoted(t) for t in targets])}{more}}},\n")
    in_memory = [words.name([quoted(k) for k in names]) for *_, names in classes]
    with open(OWN / "disk_table.inc", "w") as out:
        out.write(f"// Made by test_data/own_names/make_disk_table.py from the tables of transformers {transformers.__version__}; not written by hand.\n")
        out.write(f'constexpr std::string_view kTableRelease = "{transformers.__version__}";\n')
        for arrays in (words, alternatives_, steps):
            arrays.write(out)
        out.write("constexpr Transform kTransforms[] = {\n" + "".join(lines) + "};\n")
        for numbers, i in lists.items():
            if numbers:
                out.write(f'constexpr u16 kL{i}[] = {{{", ".join(map(str, numbers))}}};\n')
        out.write("constexpr ClassRules kClasses[] = {\n")
        for (model_type, name, numbers, on_disk, _), names in zip(classes, in_memory):
            transforms = f"kL{lists[numbers]}" if numbers else "{}"
            out.write(f"    {{{quoted(model_type)}, {quoted(name.split(' of ')[0])}, {transforms}, {quoted(on_disk)}, {names}}},\n")
        out.write("};\n")
    return classes


def small_tensors(of, layers):
    """Tensors of these layers and blocks. Each has numbers of its own, and dimensions that no other has."""
    names = [k for k in sorted(of["memory"]) if not any(p.isdigit() and int(p) not in layers for p in k.split("."))]
    out = {}
    for number, k in enumerate(names):
        shape = (SIZES + [2] * 9)[: len(of["memory"][k])]
        if k.endswith("message_input.query"):
            shape = [3, 4, 5]
        count = int(torch.tensor(shape).prod()) if shape else 1
        out[k] = (torch.arange(count, dtype=torch.float32) + 2000 * number).reshape(shape)
    return out


def first_layers(_):
    return 0, 1


def layers_of_stacks(of):
    """The first layer, and the first one with a stack of experts: where the first two have none, as in DeepSeek-V3."""
    return 0, min((int(p) for k in of["memory"] if k.endswith(STACKS) for p in k.split(".") if p.isdigit()), default=1)


def write_cases(known, classes):
    cases, seen = {}, set()
    for (model_type, name, *_), layers_of in [(c, layers) for layers in (first_layers, layers_of_stacks) for c in classes]:
        transforms = transforms_of(name, known[name])
        state = small_tensors(known[name], layers_of(known[name]))
        config = class_of(name).config_class()
        back = [t.reverse_transform() for t in transforms if isinstance(t, WeightConverter)]
        moves = any(s[0] not in ("kDivide", "kExperts", "kJoin") for t in back for s in kind_of(t, config)[1])
        if model_type in seen or len(state) > 400 and not moves:
            continue
        model = types.SimpleNamespace(_weight_conversions=transforms, config=class_of(name).config_class(**CONFIG.get(model_type, {})))
        disk = revert_weight_conversion(model, dict(state))
        if set(disk) == set(state):
            continue
        seen.add(model_type)
        sums = {k: hashlib.sha256(v.contiguous().numpy().tobytes()).hexdigest()[:8] for k, v in sorted(disk.items())}
        cases[f"{model_type}/{name}"] = {"memory": {k: list(v.shape) for k, v in state.items()}, "disk": sums, "config": CONFIG.get(model_type, {}), "moves": moves}
    cases = dict(sorted(cases.items(), key=lambda case: case[0].split("/")[0]))
    (HERE / "disk_transforms.json.xz").write_bytes(lzma.compress(json.dumps(cases).encode(), preset=9))
    print(len(cases), "cases")


def main():
    words = [a for a in sys.argv[1:] if a != "--cases"]
    kept = pathlib.Path(words[0]) if words else None
    known = json.loads(kept.read_text()) if kept and kept.exists() else describe()
    add_other_types(known["out"])
    configs = tried_configs(known)
    if kept:
        kept.write_text(json.dumps(known))
    classes = write_table(known["out"], configs)
    print(len(classes), "classes of", len({c[0] for c in classes}), "model types")
    if "--cases" in sys.argv:
        write_cases(known["out"], classes)


if __name__ == "__main__":
    main()
