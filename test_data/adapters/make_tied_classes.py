#!/usr/bin/env python3
"""Writes lib/hf/adapter/lora/tied_classes.inc: for every class of transformers the names in memory of which it makes one parameter, by its
own all_tied_weights_keys. Each class is built once with the config that is its default, on no device.

    test_data/adapters/make_tied_classes.py [TIES.json]     TIES.json: keeps what was built, which takes a few minutes"""
import collections
import inspect
import json
import pathlib
import re
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "own_names"))
from make_disk_table import built, model_classes  # noqa: E402

TABLE = HERE.parents[1] / "lib/hf/adapter/lora/tied_classes.inc"
MOST_GROUPS = 4  # of one class: ties of layers, as of detectors, are none of a vocabulary


def groups_of(model):
    """The names of each parameter, in the order of the modules; of those that the model has."""
    order = {name: i for i, (name, _) in enumerate([*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)])}
    groups = {}
    for copy, of in model.all_tied_weights_keys.items():
        groups.setdefault(of, {of}).add(copy)
    groups = [sorted(names & order.keys(), key=order.get) for names in groups.values()]
    return [names for names in groups if len(names) > 1]


def say_tied(config):
    config.tie_word_embeddings = True
    for part in vars(config).values():
        if isinstance(part, transformers.PreTrainedConfig):
            say_tied(part)


def said_untied(config):
    """The entries of a config.json, with false in it and in all its parts."""
    return {**{k: said_untied(v) if isinstance(v, dict) and "model_type" in v else v for k, v in config.items()}, "tie_word_embeddings": False}


def is_fixed(cls, config):
    """Whether tie_word_embeddings false makes another model: the class ties them all the same, or the model computes with the entry."""
    if re.search(r"^\s+if self\.config\.tie_word_embeddings:$", inspect.getsource(sys.modules[cls.__module__]), re.M):
        return True
    try:
        with torch.device("meta"):
            return bool(cls(cls.config_class.from_dict(said_untied(config.to_dict()))).all_tied_weights_keys)
    except Exception:  # noqa: BLE001, a config that cannot be made so ties nothing
        return False


def describe():
    out = {}
    for name, cls in sorted(model_classes()):
        model = built(cls)
        if model is None or not hasattr(model, "all_tied_weights_keys"):
            continue
        by_default = bool(model.all_tied_weights_keys)
        # Where the default is not to tie, a class may tie all the same, or a model in it.
        if not by_default and any(getattr(m, "_tied_weights_keys", None) for m in model.modules()):
            say_tied(model.config)
            model.all_tied_weights_keys = model.get_expanded_tied_weights_keys(all_submodels=True)
        groups = groups_of(model)
        out[name] = {"groups": groups, "default": by_default, "fixed": bool(groups) and is_fixed(cls, model.config)}
    return out


def main():
    kept = pathlib.Path(sys.argv[1]) if sys.argv[1:] else None
    known = json.loads(kept.read_text()) if kept and kept.exists() else {"transformers": transformers.__version__, "classes": describe()}
    if kept and not kept.exists():
        kept.write_text(json.dumps(known))
    rows = collections.defaultdict(list)
    for name, of in sorted(known["classes"].items()):
        if len(of["groups"]) <= MOST_GROUPS:
            names = ";".join("=".join(names) for names in of["groups"])
            rows[names, of["default"], of["fixed"]].append(name)
    lines = [f"// Made by test_data/adapters/make_tied_classes.py from the classes of transformers {known['transformers']}; not written by hand.", "constexpr Row kRows[] = {"]
    for (names, default, fixed), classes in sorted(rows.items(), key=lambda row: (-len(row[1]), row)):
        lines += [f'    {{"{names}", {str(default).lower()}, {str(fixed).lower()},', *(f'     " {c}"' for c in classes), '     " "},']
    TABLE.write_text("\n".join([*lines, "};", ""]))


if __name__ == "__main__":
    main()
