#!/usr/bin/env python3
"""Writes lib/hf/adapter/lora/tied_classes.inc: for every class of transformers the names in memory of which it makes one parameter, by its
own all_tied_weights_keys. Each class is built once with the config that is its default, on no device.

    test_data/adapters/make_tied_classes.py [TIES.json]     TIES.json: keeps what was built, which takes a quarter of an hour"""
import collections
import inspect
import json
import pathlib
import re
import sys

import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "own_names"))
from make_disk_table import built, model_classes  # noqa: E402

TABLE = HERE.parents[1] / "lib/hf/adapter/lora/tied_classes.inc"
MOST_GROUPS = 4  # of one class: ties of layers, as of detectors, are none of a vocabulary


def groups_of(model):
    """The names of each parameter, in the order of the modules."""
    order = {name: i for i, (name, _) in enumerate([*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)])}
    groups = {}
    for copy, of in model.all_tied_weights_keys.items():
        groups.setdefault(of, {of}).add(copy)
    return [sorted(names, key=lambda n: order.get(n, len(order))) for names in groups.values()]


def is_fixed(cls):
    """Whether tie_word_embeddings false makes another model: the config ties them all the same, or the model computes with the entry."""
    if re.search(r"^\s+if self\.config\.tie_word_embeddings:$", inspect.getsource(sys.modules[cls.__module__]), re.M):
        return True
    try:
        config = cls.config_class(tie_word_embeddings=False)
        return config.tie_word_embeddings is True and not hasattr(config, "text_config")  # which has the entry, too
    except Exception:  # noqa: BLE001, a config that cannot be made so ties nothing
        return False


def describe():
    out = {}
    for name, cls in sorted(model_classes()):
        model = built(cls)
        if model is None or not hasattr(model, "all_tied_weights_keys"):
            continue
        # Where the default is not to tie, a class may tie all the same.
        by_default = bool(getattr(model.config, "tie_word_embeddings", False))
        if not by_default and getattr(cls, "_tied_weights_keys", None):
            model.config.tie_word_embeddings = True
            for part in vars(model.config).values():
                if hasattr(part, "tie_word_embeddings"):
                    part.tie_word_embeddings = True
            model.all_tied_weights_keys = model.get_expanded_tied_weights_keys(all_submodels=True)
        out[name] = {"groups": groups_of(model), "default": by_default, "fixed": is_fixed(cls)}
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
            rows[names, bool(of["groups"]) and of["default"], bool(of["groups"]) and of["fixed"]].append(name)
    lines = [f"// Made by test_data/adapters/make_tied_classes.py from the classes of transformers {known['transformers']}; not written by hand.", "constexpr Row kRows[] = {"]
    for (names, default, fixed), classes in sorted(rows.items(), key=lambda row: (-len(row[1]), row)):
        lines += [f'    {{"{names}", {str(default).lower()}, {str(fixed).lower()},', *(f'     " {c}"' for c in classes), '     " "},']
    TABLE.write_text("\n".join([*lines, "};", ""]))


if __name__ == "__main__":
    main()
