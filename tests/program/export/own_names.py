"""Checkpoints whose tensors have the model's own names become a Hugging Face folder or one safetensors file, with the tensors
that transformers itself writes of them, whatever the chunks; and what is missing, unlike or unknown is said by name.
"""

import filecmp
import hashlib
import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import safetensors, scratch
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt

CASES = os.path.join(os.path.dirname(GOLDEN), "own_names")
temporary = scratch()


def place(name):
    return os.path.join(temporary.name, name)


def new(name="out"):
    path = place(name)
    shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(path):
        os.remove(path)
    return path


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync"] if args[0] not in ("verify", "diff") else []), "-j2")
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stderr}")
    return run.stderr


def other_bytes(a, b):
    """The files of a model that differ. Other files of --assets are copied too, and the manifest lists them."""
    return [name for name in ("config.json", "model.safetensors") if not filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False)]


def source_of(case):
    folder = os.path.join(CASES, case)
    return next(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith("checkpoint"))


def digests(tensors):
    return {name: [dtype, shape, hashlib.sha256(data).hexdigest()] for name, (dtype, shape, data) in tensors.items()}


def of_file(path):
    folder = new("one")
    os.mkdir(folder)
    shutil.copy(path, folder)
    return digests(safetensors(folder))


def expect_tensors(what, got, want):
    """Both: name -> anything."""
    expect_equal(what, sorted(got), sorted(want))
    expect_equal(what, [name for name in want if got.get(name) != want[name]], [])


def write_model(folder, tensors, config):
    """A Hugging Face folder of float32 tensors: name -> (shape, values)."""
    os.makedirs(folder)
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        block = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def expected_tensors():
    """The tensors that transformers writes, from the checkpoint as it is and from chunks of other ranks."""
    cases = sorted(case for case in os.listdir(CASES) if os.path.exists(os.path.join(CASES, case, "expected.json")))
    for case in cases:
        with open(os.path.join(CASES, case, "expected.json")) as f:
            want = {name: [t["dtype"], t["shape"], t["sha256"]] for name, t in json.load(f)["tensors"].items()}
        source, config = source_of(case), os.path.join(CASES, case, "config.json")
        out = new()
        mckpt("export", source, out)  # config.json is in the folder around the checkpoint
        expect_tensors(case, digests(safetensors(out)), want)
        expect(filecmp.cmp(os.path.join(out, "config.json"), config, shallow=False), f"{case}: another config.json")
        mckpt("verify", out, "--against", source)
        given = new("given")
        mckpt("export", source, given, "--assets", os.path.dirname(config))
        expect_equal(f"{case}: with --assets", [other_bytes(given, out)], [[]])
        file = new("model.safetensors")
        mckpt("convert", "to-safetensors", source, file, "--assets", os.path.dirname(config))
        expect(filecmp.cmp(file, os.path.join(out, "model.safetensors"), shallow=False), f"{case}: another file")
    return out


def any_chunks():
    source, assets = source_of("fsdp2_tp"), os.path.join(CASES, "fsdp2_tp")
    whole = new("whole")
    mckpt("export", source, whole)
    for ranks in (1, 2, 3, 11):
        cut, out = new("cut"), new()
        mckpt("convert", "to-dcp", source, cut, "--dp", ranks)
        mckpt("verify", cut)
        mckpt("export", cut, out, "--assets", assets)
        expect_equal(f"of {ranks} ranks", [other_bytes(out, whole)], [[]])
    parts = new("parts")
    mckpt("export", source, parts, "--max-shard-size", "20kB")
    expect(len([f for f in os.listdir(parts) if f.endswith(".safetensors")]) > 3, "one file in spite of --max-shard-size")
    with open(os.path.join(parts, "model.safetensors.index.json")) as f:
        expect_equal("index", sorted(json.load(f)["weight_map"]), sorted(safetensors(whole)))
    expect_tensors("several files", safetensors(parts), safetensors(whole))


def types():
    source, out = source_of("fsdp2_tp"), new()
    text = mckpt("export", source, out, "--dtype", "bf16", "--dtype-rule", "*norm.weight=fp32")
    for name, (dtype, _, _) in safetensors(out).items():
        expect_equal(name, [dtype], ["F32" if name.endswith("norm.weight") else "BF16"])
    expect("config  with dtype bfloat16, as the tensors have it" in text, f"nothing about config.json: {text}")
    mckpt("export", source, new(), "--dtype-rule", "*.nothing=fp32", status=1)


def compared():
    """verify --against names the tensor that differs, in either direction, and says what is not the same on purpose."""
    source, out = source_of("fsdp2_bare"), new()
    mckpt("export", source, out, "--dtype", "bf16")
    run = run_mckpt("verify", out, "--against", source)
    expect(run.returncode == 0 and "bfloat16" in run.stdout, f"bf16: {run.stdout}{run.stderr}")
    mckpt("verify", source, "--against", out, status=1)  # bfloat16 does not have the values of float32
    mckpt("export", source, new())
    mckpt("verify", source, "--against", out)  # a head that repeats the embedding is not a difference
    with open(os.path.join(out, "model.safetensors"), "r+b") as f:
        f.seek(-3, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-3, os.SEEK_END)
        f.write(bytes([byte ^ 1]))
    os.remove(os.path.join(out, "mckpt_manifest.json"))
    run = run_mckpt("verify", out, "--against", source)
    expect(run.returncode == 1 and "model.norm.weight" in run.stdout, f"one bit: {run.stdout}{run.stderr}")


def missing_names():
    case = "fsdp2_tp"
    source = source_of(case)
    with open(os.path.join(CASES, case, "config.json")) as f:
        config = json.load(f)
    assets = new("assets")
    os.mkdir(assets)

    def given(index=None, **changed):
        with open(os.path.join(assets, "config.json"), "w") as f:
            json.dump({**config, **changed}, f)
        if index:
            with open(os.path.join(assets, "model.safetensors.index.json"), "w") as f:
                json.dump({"metadata": {}, "weight_map": {name: "model-00001-of-00002.safetensors" for name in index}}, f)

    given(num_hidden_layers=config["num_hidden_layers"] + 1)
    text = mckpt("export", source, new(), "--assets", assets, status=3)
    expect("MC2005" in text and f"model.layers.{config['num_hidden_layers']}.mlp.down_proj.weight" in text, text)
    expect(not os.path.exists(place("out")), "a result in spite of missing tensors")
    given(model_type="nobody_knows_it")
    text = mckpt("export", source, new(), "--assets", assets)
    expect("it was not judged whether tensors are missing" in text, text)
    names = list(safetensors(place("out")))
    given(names, model_type="nobody_knows_it")
    text = mckpt("export", source, new(), "--assets", assets)
    expect("judged" not in text and "warning" not in text, text)
    given([*names, "model.layers.0.extra.weight"], model_type="nobody_knows_it")
    text = mckpt("export", source, new(), "--assets", assets, status=3)
    expect("do not match: 1 missing" in text and "model.layers.0.extra.weight" in text, text)
    given(names[1:], model_type="nobody_knows_it")
    text = mckpt("export", source, new(), "--assets", assets)
    expect(f"warning: the checkpoint has tensors beside those of {assets}" in text and ": " + names[0] in text, text)
    os.remove(os.path.join(assets, "config.json"))
    mckpt("export", source, new(), "--assets", assets, status=3)
    alone = new("alone")
    shutil.copytree(source, os.path.join(alone, "nowhere", "checkpoint"))
    text = mckpt("export", os.path.join(alone, "nowhere", "checkpoint"), new(), status=4)
    expect("MC2014" in text and "--assets HF_DIR" in text, text)


def other_sizes():
    """A config of a model of other sizes is refused before anything is written, by tensor and both shapes."""
    case = "fsdp2_tp"
    source = source_of(case)
    with open(os.path.join(CASES, case, "config.json")) as f:
        config = json.load(f)
    wide = config["intermediate_size"]
    assets = new("assets")
    os.mkdir(assets)
    with open(os.path.join(assets, "config.json"), "w") as f:
        json.dump({**config, "intermediate_size": wide + 2}, f)
    want = f"model.layers.1.mlp.down_proj.weight: expected [{config['hidden_size']}, {wide + 2}], found [{config['hidden_size']}, {wide}]"

    def refused():
        text = mckpt("export", source, new(), "--assets", assets, status=3)
        expect("MC2005" in text and want in text and f"check that {assets} is the folder of this model" in text, text)
        expect(not os.path.exists(place("out")), "a result in spite of other shapes")
        return text

    refused()
    with open(os.path.join(CASES, case, "expected.json")) as f:
        names = list(json.load(f)["tensors"])
    with open(os.path.join(assets, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": {name: "model-00001-of-00001.safetensors" for name in names}}, f)
    expect(f"the shapes of {assets}/config.json" in refused(), "the shapes are not the index's")


def flat_pieces():
    """FSDP1's LOCAL_STATE_DICT: its tensors have the shapes of the model, and without them none."""
    case = "accelerate_fsdp1_local"
    source, config = source_of(case), os.path.join(CASES, case, "config.json")
    whole, dcp = new("whole"), new("dcp")
    mckpt("export", source, whole)
    mckpt("convert", "to-dcp", source, dcp)
    mckpt("verify", dcp, "--against", source)
    mckpt("verify", source, "--against", whole)
    mckpt("export", dcp, new(), "--assets", os.path.dirname(config))
    expect_equal("by way of DCP", [other_bytes(place("out"), whole)], [[]])
    mckpt("convert", "to-fsdp", source, new("fsdp"), "--dp", 3)
    mckpt("verify", place("fsdp"), "--against", whole)

    def refused(status, *words, of, to="out", assets=(), command=("export",)):
        text = mckpt(*command, of, new(to), *assets, status=status)
        expect(all(word in text for word in words), f"{words}: {text}")
        expect(not os.path.exists(place(to)), f"{words}: a result")

    alone = new("alone")
    shutil.copytree(source, os.path.join(alone, "nowhere", "checkpoint"))
    nowhere = os.path.join(alone, "nowhere", "checkpoint")
    refused(4, "MC2014", "--assets HF_DIR", of=nowhere)
    refused(4, "MC2014", "LOCAL_STATE_DICT", "--assets names the folder", of=nowhere, command=("convert", "to-dcp"))
    refused(4, "MC2014", "to-safetensors", of=nowhere, to="out.safetensors", command=("convert", "pt-to-safetensors"))
    mckpt("convert", "to-dcp", nowhere, new("again"), "--assets", os.path.dirname(config))
    mckpt("verify", place("again"), "--against", dcp)
    mckpt("convert", "to-dcp", whole, new(), "--assets", whole, status=2)
    # A model of another size, and of other names.
    assets = ("--assets", os.path.join(alone, "assets"))
    os.mkdir(assets[1])

    def given(**changed):
        with open(config) as f, open(os.path.join(assets[1], "config.json"), "w") as out:
            json.dump({**json.load(f), **changed}, out)

    given(intermediate_size=50)
    refused(3, "MC2011", "model.layers.1.mlp.up_proj.weight: expected [50, 32], which are 1,600 items, found 1,728", of=source, assets=assets)
    given(num_hidden_layers=1)
    refused(3, "MC2005", "has no shape for tensors", "model.layers.1.input_layernorm.weight: 32 items", of=source, assets=assets)
    # One of the files, and a folder that lacks one.
    one = os.path.join(nowhere, "pytorch_model_fsdp_rank1.bin")
    for command, to in ((("export",), "out"), (("convert", "to-dcp"), "out"), (("convert", "to-safetensors"), "out.safetensors")):
        refused(3, "MC1225", "flat pieces of rank 1 of 2", "name the folder with the files of all ranks", of=one, to=to, command=command)
    os.remove(os.path.join(nowhere, "pytorch_model_fsdp_rank0.bin"))
    given()
    refused(3, "MC1106", "copy pytorch_model_fsdp_rank0.bin of the same save into", of=nowhere, assets=assets)
    expect("the first that is missing is pytorch_model_fsdp_rank0.bin" in run_mckpt("verify", nowhere).stdout, "verify does not say which file is missing")


def tied_layers():
    embedding, other = ([4, 2], [1, 2, 3, 4, 5, 6, 7, 8]), ([4, 2], [1, 2, 3, 4, 5, 6, 7, 9])
    for name, head, tie in (("equal", embedding, True), ("unlike", other, True), ("apart", other, False)):
        model, checkpoint = new("model"), new("checkpoint")
        config = {"model_type": "nobody_knows_it", "tie_word_embeddings": tie}
        write_model(model, {"lm_head.weight": head, "model.embed_tokens.weight": embedding}, config)
        mckpt("convert", "to-dcp", model, checkpoint, "--section", "model")
        os.remove(os.path.join(model, "model.safetensors"))
        text = mckpt("export", checkpoint, new(), "--assets", model, status=3 if name == "unlike" else 0)
        if name == "unlike":
            # Which of the two is named depends on where they are compared.
            expect("MC2005" in text and "embed" in text, text)
            continue
        want = ["model.embed_tokens.weight"] if tie else ["lm_head.weight", "model.embed_tokens.weight"]
        expect_equal(name, sorted(safetensors(place("out"))), want)
    # The folder of the model has both, the checkpoint only one.
    model, checkpoint, one = new("model"), new("checkpoint"), new("one_tensor")
    config = {"model_type": "nobody_knows_it", "tie_word_embeddings": True}
    write_model(model, {"lm_head.weight": embedding, "model.embed_tokens.weight": embedding}, config)
    write_model(one, {"model.embed_tokens.weight": embedding}, config)
    mckpt("convert", "to-dcp", one, checkpoint)
    mckpt("export", checkpoint, new(), "--assets", model)
    expect_tensors("both again", safetensors(place("out")), safetensors(model))


def files_beside():
    """Only the files of the model are copied from the folder of a training run."""
    run = new("run")
    os.makedirs(run)
    shutil.copytree(source_of("fsdp2_bare"), os.path.join(run, "pytorch_model_fsdp_0"))
    shutil.copy(os.path.join(CASES, "fsdp2_bare", "config.json"), run)
    for name in ("tokenizer.json", "trainer_state.json", "chat_template.jinja", "zero_to_fp32.py", "modeling_own.py", "notes.txt"):
        with open(os.path.join(run, name), "w") as f:
            f.write("{}")
    out = os.path.join(run, "hf")  # a result may be made beside the checkpoint
    mckpt("export", os.path.join(run, "pytorch_model_fsdp_0"), out)
    expect_equal("files", sorted(os.listdir(out)), ["chat_template.jinja", "config.json", "mckpt_manifest.json", "model.safetensors",
                                                     "modeling_own.py", "tokenizer.json"])
    mckpt("verify", out)
    mckpt("export", os.path.join(run, "pytorch_model_fsdp_0"), out, status=4)
    mckpt("export", os.path.join(run, "pytorch_model_fsdp_0"), out, "--overwrite")


def accounts():
    source, report = source_of("fsdp2_bare"), new("report.json")
    mckpt("export", source, new(), "--dry-run", "--report", report)
    expect(not os.path.exists(place("out")), "--dry-run wrote")
    with open(report) as f:
        account = json.load(f)
    expect_equal("account", [account[key] for key in ("tensors_out", "copied", "dropped", "invented", "dry_run")], [24, 24, 0, 0, True])
    expect_equal("rows", [len(account["tensors"])], [24])
    mckpt("export", source, new(), "--resume")
    # The ways that are none.
    text = mckpt("convert", "to-safetensors", source, temporary.name, status=2)
    expect("DST is a folder" in text, text)
    text = mckpt("convert", "to-dcp", source, new(), "--section", "model", status=2)
    expect("--section is for other checkpoints" in text, text)
    text = mckpt("convert", "to-dcp", source, new(), "--dp", "0", status=2)
    expect("--dp is not a number of ranks" in text, text)
    megatron, hf = new("megatron"), os.path.join(os.path.dirname(GOLDEN), "models", "tiny_qwen3_moe")
    mckpt("convert", "hf-to-fsdp", hf, megatron)
    text = mckpt("convert", "to-safetensors", megatron, new("one.safetensors"), status=3)
    expect("mckpt export" in text, text)
    text = mckpt("convert", "to-dcp", hf, new(), "--section", "a..b", status=2)
    expect("empty part" in text, text)


def dicts():
    """A model without a table, in a dict beside others: its names are those inside of the dict."""
    saves = os.path.join(os.path.dirname(GOLDEN), "saved_dicts")
    config = new("config")
    os.mkdir(config)
    with open(os.path.join(config, "config.json"), "w") as f:
        json.dump({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, f)
    for source in ("model_and_more", "model_and_more.pt"):
        out = new()
        said = mckpt("export", os.path.join(saves, source), out, "--assets", config)
        expect_equal(f"names of {source}", sorted(safetensors(out)), ["bert.embeddings.weight", "bert.pooler.dense.bias", "cls.bias"])
        expect("tensors that are not of the model: ema.bert" in said, f"{source}: what is beside is not named: {said}")
    refused = mckpt("export", os.path.join(saves, "two_models.pt"), new(), "--assets", config, status=3)
    expect("actor, critic" in refused and "--model-dict NAME" in refused, f"two models: {refused}")
    two, out = os.path.join(saves, "two_models.pt"), new()
    said = mckpt("export", two, out, "--assets", config, "--model-dict", "critic")
    expect_equal("names of the critic", sorted(safetensors(out)), ["bert.embeddings.weight", "bert.pooler.dense.bias"])
    expect_equal("values of the critic", [safetensors(out)["bert.embeddings.weight"][2]], [struct.pack("<2f", 1000, 1001)])
    expect("3 tensors of these may be weights: actor." in said, f"what is beside the critic is not named: {said}")
    mckpt("verify", out, "--against", two, "--model-dict", "critic")
    mckpt("verify", out, "--against", two, "--model-dict", "actor", status=1)
    dcp = new("dcp")
    mckpt("convert", "to-dcp", two, dcp, "--model-dict", "actor")
    mckpt("verify", dcp, "--against", two, "--model-dict", "actor")
    for tested in (out, two):
        text = mckpt("verify", tested, "--against", two, "--model-dict", "nobody", status=3)
        expect("has" in text and "nobody" in text, f"a dict that is not there, {tested}: {text}")
    # The model's folder, which the actor has all tensors of, and the critic not.
    folder = new("actor")
    mckpt("export", two, folder, "--assets", config, "--model-dict", "actor")
    for dict, status, word in (("actor", 0, "sound"), ("critic", 1, "cls.bias"), ("nobody", 1, "no dict of the name")):
        run = run_mckpt("verify", two, "--assets", folder, "--model-dict", dict)
        expect(run.returncode == status and word in run.stdout, f"{dict} by the assets: {run.returncode} {run.stdout} {run.stderr}")
    mckpt("diff", two, folder, "--model-dict", "actor")
    mckpt("diff", two, folder, "--model-dict", "critic", status=1)
    text = mckpt("export", two, new("empty"), "--assets", config, "--model-dict", "", status=2)
    expect("not empty" in text, f"an empty name: {text}")
    text = mckpt("convert", "to-dcp", dcp, new("kept"), "--model-dict", "actor", status=2)
    expect("keeps all its dicts" in text, f"a DCP folder: {text}")
    # Where no dict is looked at.
    for command in (("convert", "to-dcp", dcp, new("again")), ("convert", "to-fsdp", os.path.join(os.path.dirname(GOLDEN), "models", "tiny_qwen3_moe"), new("fsdp")), ("verify", out)):
        expect("--model-dict is for" in mckpt(*command, "--model-dict", "actor", status=2), f"{command}: another error")


def weights_only():
    """States are left out wherever their dict is; a module of that name in a dict of the model is none."""

    def folder_of(names, *section):
        """A DCP folder of the names, in the dict of the section."""
        file, out = new("names.safetensors"), new("nested")
        header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(names)}).encode()
        with open(file, "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + bytes(8 * len(names)))
        mckpt("convert", "to-dcp", file, out, *section)
        return out

    state = "actor.optimizer.state.h.w.exp_avg"
    for names, section, left in (
        (["actor.h.w", state, "critic_optim.state.h.w"], [], 2),
        (["h.w", "heads.optimizer.w"], ["--section", "actor"], 0),
        (["h.w", "b.w"], ["--section", "actor.optimizer"], 2),
    ):
        source, out = folder_of(names, *section), new("weights")
        said = mckpt("convert", "to-dcp", source, out, "--weights-only")
        expect(f"dropped {left}" in said, f"{names}: {said}")
        mckpt("verify", source, "--against", source, "--weights-only", status=1 if left else 0)
        if left < len(names):
            mckpt("verify", out, "--against", source, "--weights-only")


expected_tensors()
any_chunks()
types()
compared()
missing_names()
other_sizes()
flat_pieces()
tied_layers()
files_beside()
accounts()
dicts()
weights_only()
finish(least=250)
