"""`transformers_weights` of config.json names the file of the weights, as transformers 5 reads it: every reader takes that file or
that index, whatever else is in the folder; a name that transformers refuses is refused; and a result names its own files or none,
so that transformers loads it.
"""

import importlib.util
import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

ENTRY = "transformers_weights"
scratch_folder = scratch()
here = scratch_folder.name
numbers = iter(range(1000))


def mckpt(*args, status=0):
    run = run_mckpt(*args)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, expected {status}: {run.stderr or run.stdout}")
    return run.stdout + run.stderr


def path(what=""):
    return os.path.join(here, f"{next(numbers)}_{what}")


def named(folder, value):
    """Sets the entry in the folder's config.json."""
    at = os.path.join(folder, "config.json")
    with open(at) as f:
        config = json.load(f)
    config[ENTRY] = value
    with open(at, "w") as f:
        json.dump(config, f, indent=2)
    return folder


def config_of(folder):
    with open(os.path.join(folder, "config.json")) as f:
        return json.load(f)


def one_file():
    """The model in one file, and another with other values: the first tensor's first byte differs."""
    folder = path("model")
    os.mkdir(folder)
    single = os.path.join(folder, "model.safetensors")
    mckpt("convert", "to-safetensors", TINY_MODEL, single, "--no-sync")
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), folder)
    return folder, single


def other_values(source, target):
    with open(source, "rb") as f:
        data = bytearray(f.read())
    data[-1] ^= 1  # the last value of the last tensor
    with open(target, "wb") as f:
        f.write(data)


def values(at, *more):
    """The digests of all tensors by name."""
    run = run_mckpt("ls", at, "--digest", "--json", "-q", *more)
    expect(run.returncode == 0, f"ls {at} {more}: {run.stderr}")
    return {t["name"]: t["sha256"] for t in json.loads(run.stdout)["tensors"]} if run.returncode == 0 else {}


def in_transformers(folder):
    """Whether transformers finds the weights; None where it is not there."""
    if importlib.util.find_spec("transformers") is None:
        return None
    import transformers

    transformers.utils.logging.disable_progress_bar()

    try:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)[1]["missing_keys"] == set()
    except (OSError, ValueError):
        return False


def the_named_file_is_the_model():
    model, single = one_file()
    foo = os.path.join(model, "foo.safetensors")
    other_values(single, foo)
    of_foo = values(foo)
    expect(of_foo != values(single), "the two files have other values")
    named(model, "foo.safetensors")
    expect(values(model) == of_foo, "ls reads another file than the one that config.json names")
    for said in (mckpt("verify", model), mckpt("verify", model, "--json")):
        expect("model.safetensors is not part of the model that transformers_weights" in said, f"verify: {said}")
        expect("foo.safetensors is not" not in said, f"verify calls the model unused: {said}")
    expect(f"foo.safetensors (by {ENTRY} of config.json)" in mckpt("inspect", model, "--json"), "inspect --json does not name the file")
    expect(f"foo.safetensors (by {ENTRY} of config.json)" in mckpt("inspect", model), "inspect does not name the file")
    # Every conversion takes the values of the named file; a folder has no entry that leads nowhere.
    for mode, target in (("to-safetensors", path("x.safetensors")), ("safetensors-to-pt", path("x.pt")), ("to-dcp", path("dcp"))):
        mckpt("convert", mode, model, target, "--no-sync")
        expect(values(target) == of_foo, f"{mode} wrote other values")
    saved, exported = path("saved"), path("exported")
    mckpt("convert", "to-dcp", model, saved, "--no-sync")
    mckpt("export", saved, exported, "--assets", model, "--no-sync", "--max-shard-size", "20KB")
    expect(values(exported) == of_foo, "export wrote other values")
    expect(ENTRY not in config_of(exported), "config.json of the export names a file that is not there")
    expect(in_transformers(exported) is not False, "transformers does not find the weights of the export")
    mckpt("verify", exported)
    said = mckpt("verify", exported, "--against", model)
    expect("equal" in said and "config.json" not in said, f"verify --against: {said}")
    expect(ENTRY in mckpt("diff", exported, model, status=1), "diff does not show that the entry is in one config alone")
    expect(ENTRY in mckpt("diff", model, exported, status=1), "diff does not show that the entry is in one config alone")
    # The choice of the caller counts more.
    expect(values(model, "--model-files", "single") == values(single), "--model-files single does not read model.safetensors")
    # By way of a run, whose assets have the entry: the file has its old name again, and then the entry stays.
    run, back = path("run"), path("back")
    mckpt("convert", "hf-to-fsdp", model, run, "--ep", "2", "--no-sync")
    mckpt("export", run, back, "--no-sync")
    expect(values(back) == of_foo, "the run has other values")
    expect(os.path.exists(os.path.join(back, "foo.safetensors")), "the export does not have the file of the original")
    expect(config_of(back).get(ENTRY) == "foo.safetensors", "the export has the named file, and its config.json does not name it")
    other = path("other")
    said = mckpt("export", run, other, "--no-sync", "--max-shard-size", "20KB")
    expect(ENTRY not in config_of(other) and ENTRY in said, f"the entry stays beside other files: {said}")
    # The entry of assets from elsewhere.
    assets, by_assets = path("assets"), path("by_assets")
    os.mkdir(assets)
    shutil.copy(os.path.join(model, "config.json"), assets)
    mckpt("export", run, by_assets, "--assets", assets, "--no-sync")
    expect(ENTRY not in config_of(by_assets) or os.path.exists(os.path.join(by_assets, "foo.safetensors")), "--assets")
    expect(in_transformers(by_assets) is not False, "transformers does not find the weights of an export with --assets")
    # A quantised result, too.
    coded = path("coded")
    mckpt("convert", "quantize", model, coded, "--scheme", "fp8-block", "--no-sync")
    expect(ENTRY not in config_of(coded), "quantize keeps the entry")


def one_of_several_is_enough():
    model, single = one_file()
    foo, bar = (os.path.join(model, f"{name}.safetensors") for name in ("foo", "bar"))
    other_values(single, foo)
    os.rename(single, bar)
    for chosen, of in (("foo", foo), ("bar", bar)):
        named(model, f"{chosen}.safetensors")
        expect(values(model) == values(of), f"{chosen}: ls reads another file")
        mckpt("verify", model)
    # A file of torch.save that transformers would load otherwise.
    shutil.copy(bar, os.path.join(model, "pytorch_model.bin"))
    expect(values(model) == values(bar), "beside pytorch_model.bin")


def an_index_is_named():
    model = path("shards")
    shutil.copytree(TINY_MODEL, model)
    for name in os.listdir(model):
        os.chmod(os.path.join(model, name), 0o644)
    of_shards = values(model)
    os.rename(os.path.join(model, "model.safetensors.index.json"), os.path.join(model, "foo.safetensors.index.json"))
    _, at = one_file()
    other_values(at, os.path.join(model, "model.safetensors"))
    mckpt("verify", model, status=1)  # two models that are not equal
    named(model, "foo.safetensors.index.json")
    expect(values(model) == of_shards, "the named index is not read")
    expect(in_transformers(model) is not False, "transformers does not load it")
    said = mckpt("verify", model)
    expect("model.safetensors is not part of the model" in said, f"verify: {said}")
    shutil.copy(os.path.join(model, "foo.safetensors.index.json"), os.path.join(model, "bar.safetensors.index.json"))
    expect(values(model) == of_shards, "of several indexes, the named one is not read")


def names_that_transformers_refuses():
    for value, code in (("foo.safetensors", "MC1106"), ("model.bin", "MC2001"), (5, "MC2001"), ("../model.safetensors", "MC"),
                        ("/etc/passwd.safetensors", "MC")):
        model, _ = one_file()
        named(model, value)
        for command in (("verify",), ("inspect",), ("ls",)):
            run = run_mckpt(*command, model)
            expect(run.returncode != 0 and code in run.stdout + run.stderr, f"{value}: {command}: {run.returncode} {run.stdout}{run.stderr}")
        target = path("refused")
        run = run_mckpt("convert", "hf-to-fsdp", model, target)
        expect(run.returncode == 3 and code in run.stderr and "config.json" in run.stderr and not os.path.exists(target), f"{value}: {run.stderr}")
        expect(in_transformers(model) is not True if isinstance(value, str) else True, f"transformers loads {value}")
    for value in (None, "adapter_model.bin"):
        model, single = one_file()
        named(model, value)
        expect(values(model) == values(single), f"{value}: the usual file is not read")


the_named_file_is_the_model()
one_of_several_is_enough()
an_index_is_named()
names_that_transformers_refuses()
finish(60)
