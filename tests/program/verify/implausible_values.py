"""Values that are finite and yet no weights are warnings (MC1013), in every format: matrices that are zero throughout, and
values far above all others. Tensors that begin with zeros in healthy models are not named.
"""
import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

folder = scratch()
LAYER = "model.layers.1."
UP, QUERY = LAYER + "mlp.experts.3.up_proj.weight", LAYER + "self_attn.q_proj.weight"


def bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def edited(name, **edits):
    """A copy of the tiny model in which edits change the bytes of tensors: name -> f(bytearray)."""
    out = os.path.join(folder.name, name)
    shutil.copytree(TINY_MODEL, out)
    left = dict(edits)
    for file in sorted(os.listdir(out)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(out, file), "r+b") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(size))
            for tensor in [t for t in left if t in header]:
                begin, end = header[tensor]["data_offsets"]
                f.seek(8 + size + begin)
                data = bytearray(f.read(end - begin))
                left.pop(tensor)(data)
                f.seek(8 + size + begin)
                f.write(data)
    expect(not left, f"{name}: {left} are not there")
    return out


def zeros(data):
    data[:] = bytes(len(data))


def value(index, number):
    def put(data):
        struct.pack_into("<H", data, 2 * index, bf16(number))
    return put


def flipped(index):
    """The highest bit of the exponent."""
    def flip(data):
        data[2 * index + 1] ^= 0x40
    return flip


def warnings(path, *more):
    run = run_mckpt("verify", path, "--json", *more)
    answer = json.loads(run.stdout)
    status = {c["name"]: c["status"] for c in answer["checks"]}["values"]
    found = {f["tensor"]: f["message"] for f in answer["findings"] if f["code"] == "MC1013"}
    expect((run.returncode, status) == (0, "warn" if found else "pass"), f"{path}: {run.returncode} {status}")
    return found


def raw(name, tensors):
    """A safetensors file of float32, or of bytes in another type: tensor -> (shape, values), (shape, bytes, type)."""
    path, header, data = os.path.join(folder.name, name + ".safetensors"), {}, b""
    for tensor, (shape, values, *dtype) in tensors.items():
        packed = values if dtype else struct.pack(f"<{len(values)}f", *values)
        header[tensor] = {"dtype": dtype[0] if dtype else "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return path


CASES = [
    ("zero_expert", {UP: zeros}, {UP: "every value is zero, unlike those of its kind in other experts"}),
    ("zero_head", {"lm_head.weight": zeros}, {"lm_head.weight": "every value is zero"}),
    ("huge_head", {"lm_head.weight": value(5, 1e30)}, {"lm_head.weight": "a magnitude of 9.953038e+29 at [0, 5]; half"}),
    ("flipped_bit", {QUERY: flipped(37)}, {QUERY: "at [2, 5]; half of the values near it are below"}),
    ("huge_norm", {"model.norm.weight": value(3, -1e20)}, {"model.norm.weight": "a magnitude of"}),
    ("far_above", {QUERY: value(40, 40000)}, {QUERY: "a magnitude of 39936 at [2, 8]"}),
]


def others_of_the_kind_are_named():
    """Experts are not called layers, and what all experts of a layer lack is told of the layer."""
    none = ([4, 4], [0.0] * 16)
    names = [f"layers.{layer}.experts.{e}.up_proj.weight" for layer in range(2) for e in range(2)]
    fused = [name.replace(".experts", ".mlp.experts.local_experts") for name in names]
    plain = [f"layers.{layer}.q_proj.weight" for layer in range(2)]
    for case, tensors, zero, kin in (
        ("expert", names, names[:1], "experts"), ("every_other_expert", names, names[1::2], "experts"), ("layer_of_experts", names, names[2:], "layers"),
        ("local_expert", fused, fused[3:], "experts"), ("layer", plain, plain[:1], "layers"), ("shared", names[:2] + plain, plain[1:], "layers"),
    ):  # fmt: skip
        found = warnings(raw("of_" + case, {name: none if name in zero else ([4, 4], [1.0 + i * (n + 1) for i in range(16)]) for n, name in enumerate(tensors)}))
        expect(found == dict.fromkeys(zero, f"every value is zero, unlike those of its kind in other {kin}"), f"{case}: {found}")


def found_in_every_format():
    expect(not warnings(TINY_MODEL), "a healthy model is warned of")
    for name, edits, expected in CASES:
        model = edited(name, **edits)
        found = warnings(model)
        expect(sorted(found) == sorted(expected) and all(text in found[t] for t, text in expected.items()), f"{name}: {found}")
        run = run_mckpt("verify", model)
        expect("warning[MC1013]: " in run.stdout and run.stdout.rstrip().endswith("no checksums to compare")
               and "sound, with warnings" in run.stdout, f"{name}: {run.stdout}")
        for mode, more in ("hf-to-fsdp", ("--tp", "2")), ("to-mcore", ()), ("to-pt", ("--tp", "2")):
            out = os.path.join(folder.name, name + mode)
            done = run_mckpt("convert", mode, model, out, *more)
            expect(done.returncode == 0, f"{name} {mode}: {done.stderr}")
            # A stack of layers or experts, or rows of q, k and v, hide zeros of one of them, not a large value.
            expect(warnings(out) or mode == "to-mcore" and "zero" in name or name == "zero_expert", f"{name} is not found in {mode}")


def not_found_in_healthy_models():
    some = [0.01 * (i % 7 - 3) for i in range(64)]
    one, none = [1.0] * 8, [0.0] * 64
    trained = [1.0 + 0.01 * i for i in range(8)]
    healthy = {
        "adapter": {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": ([8, 8], some),
                    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": ([8, 8], none)},
        "untrained": {f"model.layers.{i}.{n}": v for i in range(2) for n, v in
                      {"mlp.down_proj.weight": ([8, 8], none), "mlp.up_proj.weight": ([8, 8], some),
                       "input_layernorm.weight": ([8], one)}.items()},
        "tokens": {"embeddings.position_embeddings": ([1, 8, 8], none), "embeddings.cls_token": ([1, 1, 64], none),
                   "attn.rel_pos_h": ([8, 8], none), "mlp.experts.gate_up_proj_bias": ([8, 8], none), "w.weight": ([8, 8], some)},
        "bias_and_norm": {"attn.bias": ([64], none), "norm.weight": ([8], [0.0] * 8), "fc.weight": ([8, 8], some)},
        "optimizer": {"model.fc.weight": ([8, 8], some), "optimizer.state.fc.weight.exp_avg": ([8, 8], none),
                      "optimizer.state.fc.weight.exp_avg_sq": ([8, 8], [1e15] * 64)},
        "mask": {"attn.causal_mask": ([8, 8], [-3.4e38] * 64), "fc.weight": ([8, 8], some)},
        "padding": {"model.embed_tokens.weight": ([16, 8], some + none)},
        "outlier": {"fc.weight": ([8, 8], some[:-1] + [250.0])},
        "spread": {"codebook.weight": ([8, 8], [10.0 ** (i % 16 - 8) for i in range(64)])},
        "one_layer_off": {"model.layers.0.mlp.up_proj.bias": ([64], none), "fc.weight": ([8, 8], some)},
    }
    for name, tensors in healthy.items():
        found = warnings(raw(name, tensors))
        expect(not found, f"{name}: {found}")
    # The same zeros in a model whose norms were trained, and in states that overflow.
    ill = {f"model.layers.{i}.{n}": v for i in range(2) for n, v in
           {"mlp.down_proj.weight": ([8, 8], none), "mlp.up_proj.weight": ([8, 8], some),
            "input_layernorm.weight": ([8], trained)}.items()}
    expect_equal("trained", sorted(warnings(raw("trained", ill))), [f"model.layers.{i}.mlp.down_proj.weight" for i in range(2)])
    # Norms whose values are packed say nothing, and do no harm.
    packed = {**ill, **{f"model.layers.{i}.input_layernorm.weight": ([8], bytes(4), "F4") for i in range(2)}}
    expect_equal("packed", sorted(warnings(raw("packed", packed))), [f"model.layers.{i}.mlp.down_proj.weight" for i in range(2)])
    states = {"model.fc.weight": ([8, 8], some), "optimizer.state.fc.weight.exp_avg": ([8, 8], some[:-1] + [3e36])}
    expect_equal("states", sorted(warnings(raw("states", states))), ["optimizer.state.fc.weight.exp_avg"])
    nothing = {name: (shape, [0.0] * len(values)) for name, (shape, values) in ill.items()}
    expect("model.layers.0.mlp.up_proj.weight" in warnings(raw("nothing", nothing)), "a file of zeros is not found")


def kept_on_cards():
    path, card = edited("of_card", **{UP: zeros}), os.path.join(folder.name, "card.json")
    expect(run_mckpt("verify", path, "--report", card).returncode == 0, "no card is made")
    with open(card) as f:
        text = f.read()
    expect("MC1013" in text and UP in text, f"the card does not name it: {text[:400]}")


others_of_the_kind_are_named()
found_in_every_format()
not_found_in_healthy_models()
kept_on_cards()
explained = run_mckpt("explain", "MC1013").stdout
expect("implausible" in explained, explained)
finish(60)
