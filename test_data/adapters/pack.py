#!/usr/bin/env python3
"""Packs this folder from the reference data, an unpacked archive of adapters with known answers (README.md says who made them).

    test_data/adapters/pack.py REFERENCE_DIR          REFERENCE_DIR has D_lora/plain, D_lora/dora, ...

Most bases keep only the tensors that the adapter changes, and small ones beside them; answers keep data
types, shapes and digests, and the values where sums in another order may differ by a step."""
import json
import shutil
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
WHOLE = ("target_parameters",)  # bases that are kept as they are
SMALL = 128  # bytes of tensors that are kept beside those that change
ONLY = {  # modules that are kept of an adapter
    "random_values": ("layers.0.mlp.down_proj", "layers.0.self_attn.k_proj"),
    "patterns": ("layers.0.mlp.up_proj", "layers.0.mlp.down_proj", "layers.0.self_attn.v_proj", "layers.1.self_attn.v_proj"),
    "modules_to_save": ("lm_head", "k_proj"),
    "bias_all": ("layers.0.",),
    "fan_in_fan_out": ("h.0.",),
    "dora": ("layers.0.mlp.up_proj", "layers.1.self_attn.q_proj"),
}


def read(path):
    """{name: (entry of the header, bytes)}"""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {n: (e, data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]) for n, e in header.items()}


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (entry, data) in tensors.items():
        header[name] = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def pack(source, target):
    name = source.name
    answers = {kind: json.loads((source / f"expected_{kind}.json").read_text()) for kind in ("bf16", "f32")}
    shutil.rmtree(target, ignore_errors=True)
    for part in ("base", "adapter"):
        (target / part).mkdir(parents=True)
    wanted = ONLY.get(name)
    changed = [n for n in answers["bf16"]["changed"] if not wanted or any(w in n for w in wanted)]

    def kept(tensor, data):
        small = len(data) <= SMALL and tensor not in answers["bf16"]["changed"]
        return name in WHOLE or tensor in changed or small

    base = {n: t for n, t in read(source / "base/model.safetensors").items() if kept(n, t[1])}
    write(target / "base/model.safetensors", base)
    if name in WHOLE:
        shutil.copy(source / "base/config.json", target / "base")
    adapter = read(source / "adapter/adapter_model.safetensors")
    write(target / "adapter/adapter_model.safetensors",
          {n: t for n, t in adapter.items() if not wanted or any(w in n for w in wanted)})
    shutil.copy(source / "adapter/adapter_config.json", target / "adapter")
    rows = {kind: [f'   {json.dumps(n)}: {json.dumps(a["tensors"][n], separators=(",", ":"))}' for n in sorted(base)]
            for kind, a in answers.items()}
    exact = answers["bf16"]["exact"]
    text = f'{{"exact": {json.dumps(exact)}, "changed": {json.dumps(changed)}'
    for kind, lines in rows.items():
        text += f',\n "{kind}": {{\n' + ",\n".join(lines) + "\n }"
    (HERE / f"{name}.expected.json").write_text(text + "}\n")
    if not exact:
        values = read(source / "expected_f32.safetensors")
        write(HERE / f"{name}.expected.safetensors", {n: values[n] for n in changed})


# Cases that make_rounding.py has with other values.
ELSEWHERE = ("embedding",)

if __name__ == "__main__":
    for case in sorted((Path(sys.argv[1]) / "D_lora").iterdir()):
        if case.name not in ELSEWHERE:
            pack(case, HERE / case.name)
