"""The ranges of Gemma 4's clipped layers, which transformers makes from minus infinity to infinity, are sound; other infinities are not."""

import json
import os
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

folder = scratch()
MINUS, PLUS = struct.pack("<H", 0xFF80), struct.pack("<H", 0x7F80)


def verified(name, values):
    file = os.path.join(folder.name, name + ".safetensors")
    header = {tensor: {"dtype": "BF16", "shape": [], "data_offsets": [2 * i, 2 * i + 2]} for i, tensor in enumerate(values)}
    text = json.dumps(header).encode()
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(values.values()))
    result = run_mckpt("verify", file, "--json")
    found = [(f["code"], f["tensor"]) for f in json.loads(result.stdout)["findings"]]
    return result.returncode, found


layer = "model.vision_tower.encoder.layers.0.self_attn.q_proj."
ends = {layer + end: MINUS if end.endswith("min") else PLUS for end in ("input_min", "input_max", "output_min", "output_max")}
expect(verified("open", ends) == (0, []), f"open ranges: {verified('open', ends)}")
turned = {**ends, layer + "input_min": PLUS}
expect(verified("turned", turned) == (1, [("MC1008", layer + "input_min")]), f"a range without values: {verified('turned', turned)}")
other = {**ends, layer + "linear.bias": PLUS}
expect(verified("other", other) == (1, [("MC1008", layer + "linear.bias")]), f"another tensor: {verified('other', other)}")
finish(3)
