"""Pairs of which one side holds more than the other can: padding of the vocabulary, a copy of a tied output layer, inverse frequencies, states of the optimizer,
weights that DeepSpeed saves twice. `diff` gives one answer in both orders, in text and JSON: the same verdict and counts, and the same words about what was not
compared; so do `verify --against` and Python. The next kind of pair is one more row of one of the lists of pairs."""
import dataclasses
import io
import json
import os
import re
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import safetensors, write_safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

need("torch")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402

EMBEDDING, HEAD, FREQUENCIES = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"
AVERAGE = "app.averages.model.norm.weight"
MIRROR = {"only_a": "only_b", "only_b": "only_a"}
scratch = tempfile.TemporaryDirectory()


@dataclasses.dataclass
class Pair:
    what: str
    a: str
    b: str
    differ: int = 0  # tensors that differ
    rows: tuple = ()  # kinds of rows, with a as the first side
    left: str | tuple = ""  # in the notes about what was not compared; "": there are none
    verdict: str = ""  # how the first line goes on behind "was compared"
    against: tuple = ()  # exit statuses of verify a --against b, and b --against a; (): the status of diff
    words: tuple = ()  # behind the two paths


def at(*names):
    return os.path.join(scratch.name, *names)


def mckpt(*args):
    """Where the result is: a conversion has its kind between the command and the source."""
    run = run_mckpt(*args, "--no-sync")
    expect(run.returncode == 0, f"{args}: {run.returncode} {run.stderr}")
    return args[2 if args[0] == "export" else 3]


def model(name, words=32, change=None, **settings):
    """The tiny model with the first words of its vocabulary, and other tensors beside the original's."""
    os.mkdir(at(name))
    tensors = safetensors(TINY_MODEL)
    for key in (EMBEDDING, HEAD):
        kind, (rows, width), data = tensors[key]
        tensors[key] = (kind, [words, width], data[:len(data) // rows * words])
    if change:
        change(tensors)
    write_safetensors(at(name, "model.safetensors"), tensors)
    with open(os.path.join(TINY_MODEL, "config.json")) as f:
        config = json.load(f) | {"vocab_size": words} | settings
    with open(at(name, "config.json"), "w") as f:
        json.dump(config, f)
    return at(name)


def with_padding(source, name):
    """A checkpoint of Megatron with other values behind its words, as each training run has them."""
    folder, out = os.path.join(source, "release"), at(name, "release")
    reader = dcp.FileSystemReader(folder)
    metadata = reader.read_metadata()
    state = {key: torch.empty(v.size, dtype=v.properties.dtype) for key, v in metadata.state_dict_metadata.items() if hasattr(v, "size")}
    dcp.load(state, storage_reader=reader, no_dist=True)
    for index, info in metadata.storage_data.items():
        if index.fqn not in state:
            with open(os.path.join(folder, info.relative_path), "rb") as f:
                f.seek(info.offset)
                state[index.fqn] = torch.load(io.BytesIO(f.read(info.length)), weights_only=False)
    for key, value in state.items():
        if key.endswith(("word_embeddings.weight", "output_layer.weight")):
            value[31:] = 7
    dcp.save(state, checkpoint_id=out, no_dist=True)
    for file in ("common.pt", "metadata.json"):
        if os.path.exists(os.path.join(folder, file)):
            shutil.copy(os.path.join(folder, file), out)
    shutil.copytree(os.path.join(folder, "hf_assets"), os.path.join(out, "hf_assets"))
    shutil.copy(os.path.join(source, "latest_checkpointed_iteration.txt"), at(name))
    return at(name)


def zero(case, name, file, *keys, lost=False, shape=None):
    """A save of DeepSpeed with weights of one of its files set to zero, taken out, or of another shape."""
    shutil.copytree(os.path.join(DATA, "zero", case), at(name))
    path = at(name, "global_step2", file)
    states = torch.load(path, weights_only=False)
    weights = states.get("module", states)
    for key in keys:
        if shape:
            weights[key] = weights[key].reshape(shape)
        else:
            weights.pop(key) if lost else weights[key].zero_()
    torch.save(states, path)
    return at(name)


def last_word(tensors):
    kind, shape, data = tensors[EMBEDDING]
    tensors[EMBEDDING] = (kind, shape, data[:-1] + bytes([data[-1] ^ 1]))


def copied(tensors):
    tensors[HEAD] = tensors[EMBEDDING]


def without_head(tensors):
    del tensors[HEAD]


def other_head(tensors):
    kind, shape, data = tensors[EMBEDDING]
    tensors[HEAD] = (kind, shape, data[:-1] + bytes([data[-1] ^ 1]))


def with_frequencies(tensors):
    tensors[FREQUENCIES] = ("F32", [4], bytes(16))


def with_average(tensors):
    """The names of a dict that has the model and an average of one of its tensors."""
    named = {f"app.model.{key}": value for key, value in tensors.items()}
    tensors.clear()
    tensors.update({**named, AVERAGE: named["app.model.model.norm.weight"]})


def megatron_pairs():
    words, last = model("words", 31), model("last", 31, change=last_word)
    tied, copy, unlike = model("tied", change=without_head, tie_word_embeddings=True), model("copy", change=copied, tie_word_embeddings=True), model("unlike", change=other_head, tie_word_embeddings=True)
    frequencies = model("frequencies", change=with_frequencies)
    note, kept = "1 row of padding behind the 31 words of the vocabulary", f"{FREQUENCIES} (no conversion keeps them)"
    for mode, name in (("to-mcore", "core"), ("to-fsdp", "fsdp")):
        zeros = mckpt("convert", mode, words, at(f"{name}_zeros"), "--tp", "2", "-q")
        values = with_padding(zeros, f"{name}_values")
        yield Pair(f"padding of zeros, {name}", words, zeros, left=note)
        yield Pair(f"padding with values, {name}", words, values, left=note, against=(0, 1))
        yield Pair(f"the last word beside padding, {name}", last, values, differ=1, rows=("values",), left=note)
        wider = mckpt("convert", mode, words, at(f"{name}_wider"), "--tp", "4", "--make-vocab-size-divisible-by", "16", "-q")
        yield Pair(f"more padding, {name}", zeros, wider, left="of padding of the vocabulary that one side alone has")
        weights = mckpt("convert", mode, tied, at(f"{name}_tied"), "--tp", "2", "-q")
        yield Pair(f"a copy of a tied layer, {name}", copy, weights)
        yield Pair(f"an output layer that differs, {name}", unlike, weights, differ=1, rows=("values",))
        whole = mckpt("convert", mode, TINY_MODEL, at(f"{name}_whole"), "--tp", "2", "-q")
        yield Pair(f"inverse frequencies, {name}", frequencies, whole, left=kept)
    average = model("average", change=with_average)
    os.remove(os.path.join(average, "config.json"))  # a dict of a training run, of which names alone say what is the model's
    run = mckpt("convert", "to-mcore", TINY_MODEL, at("averaged_core"), "--tp", "2", "-q")
    with_states = safetensors(TINY_MODEL)
    write_safetensors(at("with_states.safetensors"), {**with_states, f"optimizer.state.{EMBEDDING}.exp_avg": with_states[EMBEDDING]})
    yield Pair("states beside the model in a file", at("with_states.safetensors"), run, left=f"optimizer.state.{EMBEDDING}.exp_avg (beside the model")
    yield Pair("an average beside the model", os.path.join(average, "model.safetensors"), run, left=AVERAGE, verdict=", but 1 tensor beside the model was not compared")
    yield Pair("a copy in a folder", copy, tied, differ=1, rows=("only_a",))
    yield Pair("inverse frequencies in a folder", frequencies, model("plain"), differ=1, rows=("only_a",), against=(1, 0))


def state_pairs():
    with tarfile.open(os.path.join(DATA, "megatron_runs", "chunks.tar.xz")) as archive:
        archive.extractall(scratch.name, filter="data")
    for folder in ("iter_0000003", os.path.join("torch_dist", "iter_0000003")):
        run = at("chunks", folder)
        exported = mckpt("export", run, at(f"exported_{len(folder)}"), "--assets", at("chunks", "hf"), "-q")
        yield Pair(f"states of a run, {folder}", exported, run, left="more (beside the model, whose tensors alone are compared)")


def zero_pairs():
    def of(case):
        return os.path.join(DATA, "zero", case)
    model, expert = "mp_rank_00_model_states.pt", "layer_1_expert_0_mp_rank_00_model_states.pt"
    up, projection = "layers.1.moe.deepspeed_moe.experts.deepspeed_experts.0.up.", "model.layers.1.self_attn.q_proj.weight"
    for case in ("zero1_tied_w2", "zero2_groups_w3"):
        yield Pair(f"weights in module, {case}", zero(case, f"{case}_zeros", model, projection), of(case), differ=1, rows=("values",))
    yield Pair("weights of a float32 run", zero("zero1_moe_w4", "float32_zeros", model, "layers.0.norm.weight"), of("zero1_moe_w4"), differ=1, rows=("values",))
    yield Pair("weights of an expert", zero("zero1_moe_w4", "expert_zeros", expert, f"{up}weight", f"{up}bias"), of("zero1_moe_w4"), differ=2, rows=("values", "values"))
    shaped = zero("zero1_tied_w2", "shaped", model, projection, shape=(-1, 12))
    yield Pair("a weight of another shape", shaped, of("zero1_tied_w2"), differ=1, rows=("shape",))
    run = run_mckpt("verify", shaped)
    expect(run.returncode == 1 and "another shape than its main weight" in run.stdout, f"a weight of another shape: {run.stdout}")
    one = "1 weight that DeepSpeed saves beside its float32 part"
    yield Pair("a weight of one side", zero("zero1_tied_w2", "lost", model, projection, lost=True), of("zero1_tied_w2"), left=one, verdict=f", but {one} was not compared")
    alone = mckpt("convert", "to-safetensors", of("zero1_tied_w2"), at("zero.safetensors"), "-q")
    all_of_them = "25 weights that DeepSpeed saves beside their float32 parts"
    uncompared = f", but {all_of_them} were not compared"
    yield Pair("weights beside another format", of("zero1_tied_w2"), alone, left=all_of_them, verdict=uncompared)
    # The folder of the assets has a folder of its own, which belongs to neither side.
    assets = os.path.join(DATA, "own_names", "torchtitan_qwen3_tied")
    states = "optimizer.state.model.layers.0.self_attn.k_proj.weight.step and 69 more (beside the model, whose tensors alone are compared)"
    run = mckpt("convert", "to-fsdp", of("zero2_tied_w2"), at("zero_fsdp"), "--assets", assets, "-q")
    yield Pair("states of ZeRO beside Megatron", of("zero2_tied_w2"), run, left=(all_of_them, states, f"checkpoint/, which only {assets} has"), verdict=uncompared, words=("--assets", assets))
    folder = mckpt("export", of("zero2_tied_w2"), at("zero_folder"), "--assets", assets, "-q")
    copy = "lm_head.weight (a copy of the tensor that the model ties it to)"
    yield Pair("a copy of a tied layer beside its folder", of("zero2_tied_w2"), folder, left=(all_of_them, copy, states), verdict=uncompared)
    tensors = safetensors(folder)
    shutil.copytree(folder, at("zero_heads"), ignore=shutil.ignore_patterns("*.safetensors", "*.index.json", "mckpt_manifest.json"))
    write_safetensors(at("zero_heads", "model.safetensors"), {**tensors, HEAD: tensors[EMBEDDING]})
    yield Pair("a copy of a tied layer that both have", of("zero2_tied_w2"), at("zero_heads"), left=(all_of_them, states), verdict=uncompared)
    for name, expected in (("zero_folder", (all_of_them, copy, states)), ("zero_heads", (all_of_them, states))):
        saved = mckpt("convert", "to-dcp", at(name), at(f"{name}_dcp"), "-q")
        yield Pair(f"a copy of a tied layer beside a save of {name}", of("zero2_tied_w2"), saved, left=expected, verdict=uncompared, words=("--assets", assets))
    kind, shape, data = tensors[EMBEDDING]
    shutil.copytree(at("zero_heads"), at("zero_other_heads"))
    write_safetensors(at("zero_other_heads", "model.safetensors"), {**tensors, HEAD: (kind, shape, data[:-1] + bytes([data[-1] ^ 1]))})
    yield Pair("an output layer that differs from its copy", of("zero2_tied_w2"), at("zero_other_heads"), differ=1, rows=("values",), left=(all_of_them, states))


def check(pair):
    orders = ((pair.a, pair.b), (pair.b, pair.a))
    ends = [run_mckpt("diff", x, y, "--json", *pair.words) for x, y in orders]
    status = 1 if pair.differ else 0
    if not expect([e.returncode for e in ends] == [status, status], f"{pair.what}: {[(e.returncode, e.stdout[:600], e.stderr[:300]) for e in ends]}"):
        return
    told = [json.loads(e.stdout) for e in ends]
    for t, end, (x, y) in zip(told, ends, orders):
        expect((t["equal"], t["alike"], t["differ"], t["not_read"]) == (not pair.differ, not pair.differ, pair.differ, 0), f"{pair.what}: {t}")
        kinds = tuple(sorted(row["kind"] if x == pair.a else MIRROR.get(row["kind"], row["kind"]) for row in t["rows"] if row["kind"] != "cast"))
        expect(kinds == pair.rows, f"{pair.what}: {kinds}")
        notes = [note for note in t["not_compared"] if not any(words in note for words in ("has no objects", "describe the grid", "store objects", "no other object"))]
        left = (pair.left,) if isinstance(pair.left, str) else pair.left
        expect(len(notes) <= 3 and (all(words in "; ".join(notes) for words in left) if pair.left else not notes), f"{pair.what}: {notes}")
        text = run_mckpt("diff", x, y, *pair.words)
        first = text.stdout.splitlines()[0]
        expect(text.returncode == status and all(note in text.stdout for note in t["not_compared"]), f"{pair.what}: {text.stdout}")
        expect(pair.differ or re.fullmatch(r"equal: all \d+ tensors and everything else that was compared" + pair.verdict, first), f"{pair.what}: {first}")
    said = [sorted(note for note in t["not_compared"] if "store objects" not in note) for t in told]  # which has the two formats in the order of the sides
    expect(said[0] == said[1], f"{pair.what}: {said}")
    alike = "folder" in told[0]["compared"] or told[0]["compared"] == told[1]["compared"]
    expect(alike and told[0]["tensors"] == told[1]["tensors"], f"{pair.what}: {[(t['compared'], t['tensors']) for t in told]}")
    for (x, y), expected in zip(orders, pair.against or (status, status)):
        run = run_mckpt("verify", x, "--against", y, *pair.words)
        expect(run.returncode == expected, f"{pair.what}: verify {x} --against {y}: {run.stdout} {run.stderr}")
        expect(expected or pair.verdict in run.stdout.splitlines()[-1], f"{pair.what}: {run.stdout}")


def check_main():
    """`verify` of one save compares the weights with their main weights: rounded, or exactly where they are float32."""
    for name, weight in (("zero1_tied_w2_zeros", "model.layers.1.self_attn.q_proj.weight, rounded"), ("float32_zeros", "layers.0.norm.weight"), ("expert_zeros", "deepspeed_experts.0.up.weight")):
        run = run_mckpt("verify", at(name))
        expect(run.returncode == 1 and re.search(f"MC1311.* differ from the main weight of the optimizer, .*{re.escape(weight)}; first at", run.stdout), f"{name}: {run.stdout}")
    for name, weights in (("zero1_tied_w2", 25), ("zero2_groups_w3", 21), ("zero1_moe_w4", 27), ("zero2_moe_w2", 39)):
        run = run_mckpt("verify", os.path.join(DATA, "zero", name))
        expect(run.returncode == 0 and re.search(f"pass +main +{weights} tensors ", run.stdout), f"{name}: {run.stdout}")


for pairs in (megatron_pairs, state_pairs, zero_pairs):
    for pair in pairs():
        check(pair)
check_main()
finish(300)
