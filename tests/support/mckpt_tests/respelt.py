"""A DCP folder with other names: the strings of .metadata are written anew, and nothing else is changed. Neither mckpt nor torch
takes part.
"""
import os
import pickletools
import re
import shutil
import struct

# The usual names and the other ones of core/hybrid/spellings.h, behind the layer, as regular expressions.
SUBMODULE_CONV = [(r"mixer\.conv1d_(weight|bias)", r"mixer.conv1d.\1")]
UNFUSED_NORMS = [
    (r"mixer\.in_proj\.layer_norm_(weight|bias)", r"norm.\1"),
    (r"self_attention\.(?:linear_qkv|in_proj)\.layer_norm_(weight|bias)", r"input_layernorm.\1"),
    (r"self_attention\.linear_(q|kv)_up_proj\.layer_norm_(weight|bias)", r"self_attention.\1_layernorm.\2"),
    (r"mlp\.linear_fc1\.layer_norm_(weight|bias)", r"pre_mlp_layernorm.\1"),
]


def renamed(name, rules):
    for usual, other in rules:
        name = re.sub(rf"(?<![^.]){usual}(?=$|[./])", other, name)
    return name


def strings_changed(pickle, change):
    """The pickle with other strings, and without frames, whose lengths would no longer be right."""
    ops = [(op, value, at) for op, value, at in pickletools.genops(pickle)] + [(None, None, len(pickle))]
    out = b""
    for (op, value, at), (_, _, end) in zip(ops, ops[1:]):
        if op.name == "FRAME":
            continue
        raw = pickle[at:end]
        if isinstance(value, str) and "UNICODE" in op.name and change(value) != value:
            text = change(value).encode()
            raw = b"X" + struct.pack("<I", len(text)) + text
        out += raw
    return out


def respelt(source, folder, rules):
    """A copy of an iteration's folder, without the manifest, whose digests would belong to other names.
    Returns the copy and the number of names that were changed."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("mckpt_manifest.json"))
    changed = set()

    def change(text):
        new = renamed(text, rules)
        if new != text and not text.startswith("module."):  # a part of the path to a name
            changed.add(text)
        return new

    path = os.path.join(folder, ".metadata")
    with open(path, "rb") as f:
        data = strings_changed(f.read(), change)
    with open(path, "wb") as f:
        f.write(data)
    return folder, len(changed)
