"""Writes lib/convert/views/disk_table.inc, by which names and tensors in memory become those of a folder, from the tables of
transformers 5.24: for every class of it that has other names in memory, and whose model_type has no row in
lib/convert/views/disk_rules.cc. Each class is built once with the config that is its default, on no device. With --cases it also
writes disk_transforms.json.xz, what transformers' own revert_weight_conversion() makes of small tensors of some of them.

usage: make_disk_table.py [--cases] [CLASSES.json]     CLASSES.json: keeps what was built, which takes a quarter of an hour
"""
import collections
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
import types
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
import torch  # noqa: E402
import transformers  # noqa: E402
import transformers.models  # noqa: E402
from transformers import PreTrainedModel, conversion_mapping  # noqa: E402
from transformers.core_model_loading import WeightConverter, WeightRenaming, apply_converters, apply_renamings, revert_weight_conversion  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
VIEWS = HERE.parents[1] / "lib" / "convert" / "views"
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth", "num_decoder_layers",
          "num_encoder_layers", "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")


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


def built(cls):
    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    for small in (False, True):
        try:
            signal.alarm(60)
            config = cls.config_class()
            if small:
                shrink(config)
            with torch.device("meta"):
                return cls(config)
        except Exception as e:  # noqa: BLE001, classes refuse their own defaults in many ways
            print("not built:", cls.__name__, repr(e)[:90])
        finally:
            signal.alarm(0)
    return None


def describe():
    out = {}
    for name, cls in sorted(model_classes()):
        if (model := built(cls)) is None:
            continue
        parts = [[p, type(m).__name__, getattr(m.config, "model_type", ""), ""] for p, m in model.named_modules() if p and isinstance(m, PreTrainedModel)]
        out[name] = {"type": model.config.model_type, "prefix": model.base_model_prefix, "subs": parts,
                     "memory": {k: list(v.shape) for k, v in model.state_dict().items()}}
    return {"out": out}


def transforms_of(name, of):
    """What get_model_conversion_mapping() collects of the class and of the models in it, without what adds or takes a prefix."""
    seen, out = collections.defaultdict(list), []
    inside = lambda path, places: any(s == "" or path.startswith(s + ".") for s in places)  # noqa: E731
    for path, cls, model_type, _ in [["", name, of["type"], ""]] + of["subs"]:
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


def kind_of(transform):
    if type(transform).__name__ not in ("WeightRenaming", "WeightConverter"):
        return "kUnknown"
    if isinstance(transform, WeightRenaming):
        return "kName"
    steps = [(type(s).__name__, getattr(s, "dim", None)) for s in transform.operations]
    return {(("SplitModulelist", 0),): "kStack", (("Chunk", 1), ("SplitModulelist", 0)): "kStack", (("Chunk", 0),): "kRows",
            (("Concatenate", 0),): "kJoin"}.get(tuple(steps), "kUnknown")


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def alternatives(transform):
    """In the order in which they are tried, each with the number of its source."""
    for number, pattern in sorted(enumerate(transform.source_patterns), key=lambda x: -len(x[1])):
        pattern = pattern.replace("*.", r".*\.")
        yield number, pattern + (r"(?!\w)" if re.search(r"[a-zA-Z0-9]$", pattern) else "")


def row_of(transform):
    scoped = transform.scope_prefix is not None
    dotted = lambda text: text + "." if text else ""  # noqa: E731
    scope = (dotted(transform.scope_prefix), dotted(transform.base_model_prefix)) if scoped else None
    return kind_of(transform), scope, tuple(alternatives(transform)), tuple(transform.target_patterns)


def changing(known):
    """Type, class and reversed transforms of the classes with other names in memory."""
    by_hand = set(re.findall(r'\n    \{"([a-z0-9_]+)"', (VIEWS / "disk_rules.cc").read_text()))
    for name, of in sorted(known.items(), key=lambda x: (x[1]["type"], x[0])):
        if of["type"] in by_hand:
            continue
        back = [t.reverse_transform() for t in transforms_of(name, of)[::-1]]
        back = [t for t in back if type(t).__name__ != "LayerPairCollapse"]  # which saving leaves out
        names = [t for t in back if isinstance(t, WeightRenaming)]
        tensors = [t for t in back if isinstance(t, WeightConverter)]
        if any(apply_converters(k, tensors)[1] is not None or apply_renamings(k, names) != k for k in of["memory"]):
            yield of["type"], name, tensors + names


def write_table(known):
    rows, classes, lists = {}, [], {}
    for model_type, name, back in changing(known):
        classes.append((model_type, name, tuple(rows.setdefault(row_of(t), len(rows)) for t in back)))
    for _, _, numbers in classes:
        lists.setdefault(numbers, len(lists))
    with open(VIEWS / "disk_table.inc", "w") as out:
        out.write(f"// Made by test_data/own_names/make_disk_table.py from the tables of transformers {transformers.__version__}; not written by hand.\n")
        for (_, _, sources, targets), i in rows.items():
            out.write(f'constexpr Alternative kA{i}[] = {{{", ".join(f"{{{n}, {quoted(p)}}}" for n, p in sources)}}};\n')
            out.write(f'constexpr std::string_view kT{i}[] = {{{", ".join(map(quoted, targets))}}};\n')
        out.write("constexpr Transform kTransforms[] = {\n")
        for (kind, scope, _, _), i in rows.items():
            where = f"{quoted(scope[0])}, {quoted(scope[1])}, true" if scope else '"", "", false'
            out.write(f"    {{Transform::{kind}, {where}, kA{i}, kT{i}}},\n")
        out.write("};\n")
        for numbers, i in lists.items():
            out.write(f'constexpr u16 kL{i}[] = {{{", ".join(map(str, numbers))}}};\n')
        out.write("constexpr ClassRules kClasses[] = {\n")
        for model_type, name, numbers in classes:
            out.write(f"    {{{quoted(model_type)}, {quoted(name)}, kL{lists[numbers]}}},\n")
        out.write("};\n")
    return classes


def small_tensors(of):
    """Tensors of layers and blocks 0 and 1: 12 rows, and otherwise sizes of 2. Each has numbers of its own."""
    names = [k for k in sorted(of["memory"]) if not any(p.isdigit() and int(p) > 1 for p in k.split("."))]
    out = {}
    for number, k in enumerate(names):
        shape = [12] + [2] * (len(of["memory"][k]) - 1) if of["memory"][k] else []
        count = int(torch.tensor(shape).prod()) if shape else 1
        out[k] = (torch.arange(count, dtype=torch.float32) + 1000 * number).reshape(shape)
    return out


def write_cases(known, classes):
    cases, seen = {}, set()
    for model_type, name, numbers in classes:
        state = small_tensors(known[name])
        if model_type in seen or len(state) > 400:
            continue
        if any(kind_of(t) == "kUnknown" for t in [t.reverse_transform() for t in transforms_of(name, known[name])]):
            continue
        model = types.SimpleNamespace(_weight_conversions=transforms_of(name, known[name]), config=types.SimpleNamespace())
        disk = revert_weight_conversion(model, dict(state))
        if set(disk) == set(state):
            continue
        seen.add(model_type)
        sums = {k: hashlib.sha256(v.contiguous().numpy().tobytes()).hexdigest()[:8] for k, v in sorted(disk.items())}
        cases[f"{model_type}/{name}"] = {"memory": {k: list(v.shape) for k, v in state.items()}, "disk": sums}
    (HERE / "disk_transforms.json.xz").write_bytes(lzma.compress(json.dumps(cases).encode(), preset=9))
    print(len(cases), "cases")


def main():
    words = [a for a in sys.argv[1:] if a != "--cases"]
    kept = pathlib.Path(words[0]) if words else None
    known = json.loads(kept.read_text()) if kept and kept.exists() else describe()
    if kept and not kept.exists():
        kept.write_text(json.dumps(known))
    classes = write_table(known["out"])
    print(len(classes), "classes of", len({c[0] for c in classes}), "model types")
    if "--cases" in sys.argv:
        write_cases(known["out"], classes)


main()
