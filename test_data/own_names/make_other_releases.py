"""Adds to other_releases.json.xz what the release of transformers that runs it has in memory of classes whose names another
release has otherwise: the names and shapes of small tensors, and the sums of what save_pretrained() writes of them.
Other cases stay. Each class is built with the config that is its default and two layers, on no device.

usage, once with each release:
    make_other_releases.py AltCLIPModel ViTMSNForImageClassification ColPaliForRetrieval VideoLlavaForConditionalGeneration     transformers 4.57.3
    make_other_releases.py Inkling2ForCausalLM                                                                                 transformers 5.23.0
"""
import glob
import hashlib
import json
import lzma
import os
import pathlib
import sys
import tempfile

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

FILE = pathlib.Path(__file__).resolve().parent / "other_releases.json.xz"
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "depth", "n_routed_experts", "num_experts", "num_local_experts")


def shrink(config):
    for key in LAYERS:
        if isinstance(getattr(config, key, None), int) and getattr(config, key) > 2:
            setattr(config, key, 2)
    if isinstance(getattr(config, "layer_types", None), list):
        config.layer_types = config.layer_types[:2]
    for value in list(vars(config).values()):
        if hasattr(value, "to_dict"):
            shrink(value)


def small(state):
    """The tensors of tests/program/export/names_of_every_class.py: each has numbers of its own."""
    out = {}
    for number, (name, tensor) in enumerate(sorted(state.items())):
        shape = ([12, 4, 6] + [2] * 9)[: tensor.dim()]
        count = int(torch.tensor(shape).prod()) if shape else 1
        out[name] = (torch.arange(count, dtype=torch.float32) + 2000 * number).reshape(shape)
    return out


def case_of(cls):
    config = cls.config_class()
    shrink(config)
    with torch.device("meta"):
        model = cls(config)
    state = small(model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, state_dict=dict(state))
        saved = {k: v for file in glob.glob(folder + "/*.safetensors") for k, v in safetensors.torch.load_file(file).items()}
    sums = {k: hashlib.sha256(v.contiguous().numpy().tobytes()).hexdigest()[:8] for k, v in sorted(saved.items())}
    return {"type": config.model_type, "memory": {k: list(v.shape) for k, v in state.items()}, "disk": sums}


def main():
    cases = json.loads(lzma.decompress(FILE.read_bytes())) if FILE.exists() else {}
    for name in sys.argv[1:]:
        cases[f"{transformers.__version__}/{name}"] = case_of(getattr(transformers, name))
    FILE.write_bytes(lzma.compress(json.dumps(dict(sorted(cases.items()))).encode(), preset=9))
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
