"""Whether the output layer is the embedding, by every tie_word_embeddings that a config can have (at its top, in each nested config
of a language model; true, false, absent): mckpt says what transformers does with the model that it builds of the config, and
what it saves. A file that has both tensors where the config ties them is loaded by transformers with both, unless they are equal: `verify`
warns of the first, and nobody of the second.
"""

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import BUILT, GOLDEN_FAMILIES, TINY, golden_config, tiny_name

need("transformers")
import copy
import itertools
import json
import os
import sys
import tempfile

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
FLAG = "tie_word_embeddings"
ALWAYS_TIED = ("Ernie4_5_VLMoeForConditionalGeneration",)  # in Megatron
# The class of transformers ties nothing, but the releases bring a class of their own, which does.
OWN_CLASS = ("NemotronHForCausalLM",)
# from_pretrained wants a file of voices, which save_pretrained does not write.
NOT_LOADED = ("Qwen2_5OmniForConditionalGeneration",)
# The configs in which a flag about the language model could be; each is looked for inside of the one before.
NESTED = ("thinker_config", "text_config", "llm_config")


def places(config):
    """The keys that lead to the objects that can have the flag: (), ("text_config",), ..."""
    found, at, here = [()], config, ()
    for key in NESTED:
        if isinstance(at.get(key), dict):
            at, here = at[key], (*here, key)
            found.append(here)
    return found


def with_flags(config, where, flags):
    config = copy.deepcopy(config)
    for keys, flag in zip(where, flags):
        at = config
        for key in keys:
            at = at[key]
        at.pop(FLAG, None)
        if flag is not None:
            at[FLAG] = flag
    return config


def whole(config):
    """With the entries that transformers adds, which mckpt may need."""
    with tempfile.TemporaryDirectory(prefix="mckpt_tied_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        transformers.AutoConfig.from_pretrained(folder).save_pretrained(folder)
        with open(os.path.join(folder, "config.json")) as f:
            return {**json.load(f), "architectures": config["architectures"]}


def built(folder, architecture, device):
    with torch.device(device):
        return getattr(transformers, architecture)(transformers.AutoConfig.from_pretrained(folder))


def language(model):
    return getattr(model, "thinker", model)


def is_tied(model):
    model = language(model)
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def saves_head(folder, architecture):
    """Whether the file that transformers saves has two of the embedding and the output layer."""
    model = built(folder, architecture, "cpu").to(torch.bfloat16)
    shape = list(language(model).get_input_embeddings().weight.shape)
    with tempfile.TemporaryDirectory(prefix="mckpt_tied_") as saved:
        model.save_pretrained(saved)
        with safe_open(os.path.join(saved, "model.safetensors"), "pt") as f:
            words = [k for k in f.keys() if words_of(k) and f.get_slice(k).get_shape() == shape]
    return len(words) == 2, words


def words_of(name):
    return name.endswith(("head.weight", "embed_tokens.weight", "embeddings.weight", "embedding.weight"))


def remarks(folder):
    """The findings of verify about the output layer: whether each is a warning."""
    run = run_mckpt("verify", folder, "--json")
    return run.returncode, [f["warning"] for f in json.loads(run.stdout)["findings"] if f["code"] == "MC2005"]


def check_file_with_both(what, architecture, tied, untied):
    """`tied`, `untied`: two configs of the model, of which transformers ties one."""
    kind = getattr(transformers, architecture)
    with tempfile.TemporaryDirectory(prefix="mckpt_tied_") as folder:
        config = os.path.join(folder, "config.json")
        with open(config, "w") as f:
            json.dump(untied, f)
        model = built(folder, architecture, "cpu").to(torch.bfloat16)
        shape = list(language(model).get_input_embeddings().weight.shape)
        model.save_pretrained(folder)
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        words = sorted((k for k, t in tensors.items() if words_of(k) and list(t.shape) == shape), key=lambda k: "head" in k)
        if not expect(len(words) == 2 and "head" in words[1], f"{what}: {words}"):
            return
        embedding, head = words
        for equal in (False, True):
            if equal:
                tensors[head] = tensors[embedding].clone()
                save_file(tensors, path, {"format": "pt"})
            with open(config, "w") as f:
                json.dump(tied, f)
            loaded = kind.from_pretrained(folder, dtype=torch.bfloat16)
            output = language(loaded).get_output_embeddings().weight
            expect(torch.equal(output, tensors[head]) and is_tied(loaded) is equal, f"{what}: transformers does not load both tensors as they are, equal {equal}")
            found = remarks(folder)
            expect(found == (0, [True] * (not equal)), f"{what}: equal {equal}: verify: {found}")


def head_of_mckpt(folder):
    run = run_mckpt("ls", folder, "--as", "megatron", "--json", "-q")
    if run.returncode != 0:
        return run.stderr
    return any(t["name"].endswith("output_layer.weight") for t in json.loads(run.stdout)["tensors"])


def check(what, config):
    architecture, where, seen = config["architectures"][0], places(config), {}
    for flags in itertools.product((None, True, False), repeat=len(where)):
        said = ", ".join(f"{'.'.join(keys) or 'top'} {flag}" for keys, flag in zip(where, flags))
        with tempfile.TemporaryDirectory(prefix="mckpt_tied_") as folder:
            with open(os.path.join(folder, "config.json"), "w") as f:
                json.dump(with_flags(config, where, flags), f)
            try:
                tied = is_tied(built(folder, architecture, "meta"))
            except Exception as e:
                print(f"{what}: {said}: transformers refuses: {type(e).__name__}: {e}"[:300])
                continue
            head = head_of_mckpt(folder)
            if not tied and architecture in ALWAYS_TIED and "MC2003" in str(head) and FLAG in str(head):
                continue  # refused, by name
            if not tied and head is False and architecture in OWN_CLASS:
                continue
            expect(head is (not tied), f"{what}: {said}: transformers {'ties' if tied else 'does not tie'}, mckpt: {'an output layer' if head is True else 'none' if head is False else head}")
            if tied not in seen:
                seen[tied] = with_flags(config, where, flags)
                saved, words = saves_head(folder, architecture)
                expect(saved is (not tied), f"{what}: {said}: transformers {'ties' if tied else 'does not tie'} and saves {words}")
    if len(seen) == 2 and architecture not in NOT_LOADED:
        check_file_with_both(what, architecture, seen[True], seen[False])


chosen = sys.argv[1:]
for config in TINY:
    if not chosen or config["model_type"] in chosen:
        check(tiny_name(config), whole(config))
for model in GOLDEN_FAMILIES + BUILT:
    if not chosen or model in chosen:
        check(model, golden_config(model))
finish(1 if chosen else 500)
