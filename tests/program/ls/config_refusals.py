"""Configs that lie, lack or overflow beside weights that are sound: each is refused with its status and code, and by the
words that say what is wrong; the two that are sound are listed.
"""
import json
import os
import struct
import sys
import tempfile

from mckpt_tests.program import run_mckpt

MISSING, INPUT = object(), 3
failures = []

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 16,
         "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 16, "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "float32"}


def weights_of(layers=1, head=True):
    """name -> shape of the sound weights."""
    shapes = {"model.embed_tokens.weight": [16, 8], "model.norm.weight": [8]}
    for n in range(layers):
        for name, shape in {"input_layernorm": [8], "post_attention_layernorm": [8], "self_attn.q_proj": [8, 8],
                            "self_attn.k_proj": [4, 8], "self_attn.v_proj": [4, 8], "self_attn.o_proj": [8, 8],
                            "mlp.gate_proj": [16, 8], "mlp.up_proj": [16, 8], "mlp.down_proj": [8, 16]}.items():
            shapes[f"model.layers.{n}.{name}.weight"] = shape
    if head:
        shapes["lm_head.weight"] = [16, 8]
    return shapes


def write_weights(path, shapes):
    header, data = {}, b""
    for number, (name, shape) in enumerate(shapes.items()):
        items = shape[0] * (shape[1] if len(shape) > 1 else 1)
        begin = len(data)
        data += b"".join(struct.pack("<f", number + i / 1024) for i in range(items))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def config(**changes):
    return json.dumps({key: value for key, value in {**LLAMA, **changes}.items() if value is not MISSING})


def listed(text, shapes):
    with tempfile.TemporaryDirectory(prefix="mckpt_config_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            f.write(text)
        write_weights(os.path.join(folder, "model.safetensors"), shapes)
        return run_mckpt("ls", folder, "--as", "megatron", "--digest", timeout=20)


def check(what, run, status, *words):
    if run.returncode != status:
        failures.append(f"{what}: status {run.returncode}, not {status}: {run.stderr}")
    for word in words:
        if word not in run.stderr:
            failures.append(f"{what}: {word!r} is not said: {run.stderr}")
    if status and run.stdout:
        failures.append(f"{what}: refused, yet something was listed")


def refused(what, code, *words, text=None, shapes=None, status=INPUT, **changes):
    run = listed(config(**changes) if text is None else text, shapes or weights_of())
    check(what, run, status, code, *words)
    return 1


count = 0
# what it is
count += refused("no model", "MC2001", "model_type", "architectures", model_type=MISSING, architectures=MISSING)
count += refused("an unknown model", "MC2002", "EvilForCausalLM", "evil", model_type="evil", architectures=["EvilForCausalLM"])
count += refused("quantised", "MC2004", "quantization_config", "squeeze", quantization_config={"quant_method": "squeeze", "bits": 3})
# no JSON
count += refused("YAML", "MC1003", "config.json", text="hidden_size: 8\nmodel_type: llama\n")
count += refused("cut", "MC1003", "config.json", text=config()[:-40])
count += refused("nested 30,000 deep", "MC1003", "limit", text='{"a": ' + "[" * 30000 + "]" * 30000 + "}")
# numbers
count += refused("2^64 + 8", "MC2001", "hidden_size", hidden_size=2**64 + 8)
count += refused("true", "MC2001", "num_hidden_layers", num_hidden_layers=True)
count += refused("8.5", "MC2001", "hidden_size", hidden_size=8.5)
count += refused("null", "MC2001", "hidden_size", hidden_size=None)
count += refused("no layers", "MC2001", "num_hidden_layers", num_hidden_layers=MISSING)
count += refused("no heads", "MC2001", "num_attention_heads", num_attention_heads=MISSING)
count += refused("more groups than heads", "MC2001", "num_key_value_heads", num_key_value_heads=4)
count += refused("no groups", "MC2001", "num_key_value_heads", num_key_value_heads=0)
# against the weights
count += refused("two groups, weights of one", "MC2005", "k_proj", "v_proj", num_key_value_heads=2)
count += refused("another vocabulary", "MC2005", "embed_tokens", "lm_head", vocab_size=32)
count += refused("a layer too many in the file", "MC2005", "model.layers.1.", "9 unmatched", shapes=weights_of(2))
count += refused("a layer too few in the file", "MC2005", "model.layers.1.", "9 missing", num_hidden_layers=2)
assert count == 18

# Sound, or read as the reference libraries read it.
check("sound", listed(config(), weights_of()), 0)
check("tied, without an output layer", listed(config(tie_word_embeddings=True), weights_of(head=False)), 0)
check("8.0", listed(config(hidden_size=8.0), weights_of()), INPUT, "MC2001", "hidden_size")
check("1e400 where nothing is read", listed(config().replace("10000.0", "1e400"), weights_of()), INPUT, "MC1003", "1e400")
check("tied, but the output layer differs", listed(config(tie_word_embeddings=True), weights_of()), INPUT, "MC2005", "lm_head")

for failure in failures:
    print("FAIL", failure)
print(f"{count + 5} configs, {len(failures)} failures")
sys.exit(1 if failures else 0)
