"""Which names are one parameter, class by class: mckpt's table (lib/hf/adapter/lora/tied_classes.inc) has the names that models of transformers
share in truth. Each class is built on no device, with few layers, of the config that is its default; classes that can tie also of a config.json
with tie_word_embeddings true, and false, in all parts.

    tied_classes.py [CLASS...]
"""
import collections
import importlib
import inspect
import pathlib
import re
import subprocess
import sys

from mckpt_tests.checks import expect, finish, need, skip
from mckpt_tests.setting import SOURCE, built

need("torch", "transformers")
import torch  # noqa: E402
import transformers  # noqa: E402
import transformers.models  # noqa: E402

transformers.utils.logging.set_verbosity_error()
if not hasattr(transformers.PreTrainedModel, "get_expanded_tied_weights_keys"):
    skip(f"transformers {transformers.__version__} ties by other rules: version 5 is needed")
TABLE = pathlib.Path(SOURCE, "lib/hf/adapter/lora/tied_classes.inc")
FLAG = "tie_word_embeddings"
MOST = 4  # parameters with several names: the table leaves classes with more out, which tie their layers
SIZES = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth",
         "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
Row = collections.namedtuple("Row", "by_default fixed names")


def table_of(classes):
    """The rows of the classes, by a program that asks the library; None: it does not know the class."""
    done = subprocess.run([built("tied_names")], input="\n".join(classes), capture_output=True, text=True, check=True)
    rows = {}
    for line in done.stdout.splitlines():
        name, *of = line.split(" ")
        rows[name] = Row(of[0] == "1", of[1] == "1", sorted(p.split("=") for p in of[2].split(";") if p)) if of else None
    return rows


def classes_of_transformers():
    for file in sorted(pathlib.Path(transformers.models.__file__).parent.glob("*/modeling_*.py")):
        try:
            module = importlib.import_module(f"transformers.models.{file.parent.name}.{file.stem}")
        except ImportError:
            continue
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and issubclass(kind, transformers.PreTrainedModel) and kind.__module__ == module.__name__ and kind.config_class:
                yield name, kind


def with_few_layers(config):
    for key, value in vars(config).items():
        if isinstance(value, transformers.PreTrainedConfig):
            with_few_layers(value)
        elif key in SIZES and isinstance(value, int):
            setattr(config, key, min(value, 2))
        elif key in ("layer_types", "mlp_layer_types") and isinstance(value, list):
            setattr(config, key, value[:2])
    return config


def with_flag(entries, flag):
    return {**{k: with_flag(v, flag) if isinstance(v, dict) and ("model_type" in v or FLAG in v) else v for k, v in entries.items()}, FLAG: flag}


def made(kind, flag=None, sizes=(with_few_layers, lambda config: config)):
    """Nothing where transformers refuses the config, as some classes do with their own default."""
    for size in sizes:
        try:
            config = size(kind.config_class())
            if flag is not None:
                config = kind.config_class.from_dict(with_flag(config.to_dict(), flag))
            with torch.device("meta"):
                return kind(config)
        except Exception:  # noqa: BLE001, they refuse in many ways
            continue
    return None


def shared(model):
    """The names of each parameter that has several, in the order of the modules."""
    names = collections.defaultdict(list)
    for name, value in [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]:
        names[id(value)].append(name)
    return sorted(n for n in names.values() if len(n) > 1)


def asks_for_flag(kind):
    """Whether a module of the class's file computes otherwise where the config does not tie."""
    source = inspect.getsource(sys.modules[kind.__module__])
    return re.search(rf"\n +if self\.config\.{FLAG}\b", source) is not None


def check_true(name, kind, row):
    if (model := made(kind, True)) is not None:
        expect(shared(model) == row.names, f"{name}, {FLAG} true: one parameter are {shared(model)}, the table has {row.names}")


def check_false(name, kind, row):
    if (model := made(kind, False)) is not None:
        fixed = bool(shared(model)) or bool(row.names) and asks_for_flag(kind)
        expect(fixed == row.fixed, f"{name}, {FLAG} false: one parameter are {shared(model)}; the table has a class that {'always ties' if row.fixed else 'ties nothing then'}")


def check(name, kind, row):
    """Whether the class could be built."""
    model = made(kind)
    if model is None or not hasattr(model, "all_tied_weights_keys"):  # only others are made of such a class
        return False
    names = shared(model)
    if row is None:
        names = shared(made(kind, sizes=(lambda config: config,)) or model)
        return expect(len(names) > MOST, f"{name}: not in the table, and one parameter are {names}") or True
    expect(names == (row.names if row.by_default else []),
           f"{name}, by default: one parameter are {names}, the table has {row.names}, which {'are' if row.by_default else 'are not'} tied by default")
    can_tie = names or row.names or any(getattr(m, "_tied_weights_keys", None) for m in model.modules())
    if can_tie:
        check_true(name, kind, row)
        check_false(name, kind, row)
    return True


def main():
    chosen = sys.argv[1:]
    classes = dict(classes_of_transformers())
    rows = table_of(classes)
    of = re.search(r"transformers (\S+)[;,]", TABLE.read_text()).group(1)
    same = of == transformers.__version__
    if not same:
        print(f"the table is of transformers {of}, and here is {transformers.__version__}: only classes that both have are compared")
    number = 0
    for name, kind in classes.items():
        if not name.endswith("PreTrainedModel") and (same or rows[name] is not None) and (not chosen or name in chosen):
            number += check(name, kind, rows[name])
    print(f"{number} classes")
    finish(least=2000 if same and not chosen else 1)


main()
