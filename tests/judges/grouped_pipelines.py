"""Hybrid models with groups on other pipelines: random patterns with groups, pipes and MTP parts, resharded to and fro as torch_dist and as
files of ranks. This file computes from the text of a pattern whether Megatron takes it, and which stage has which layers.
"""

import json
import os
import random
import re
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import files_of
from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

scratch = tempfile.TemporaryDirectory(prefix="mckpt_pipelines_")
DIGESTS = ("mckpt_manifest.json", "mckpt_card.json")  # of other files


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-300:]}{run.stderr[-900:]}")
    return run


def convert(how, source, *args, status=0):
    out = place("out")
    run = mckpt("convert", how, source, out, *args, "--no-sync", "-q", status=status)
    return run.stderr if status else out


# ---- A pattern, as Megatron reads it


class Pattern:
    def __init__(self, text):
        self.text = text
        main, slash, rest = text.partition("/")
        self.segments = [re.findall(r"\[[^]]*\]|[^][]", segment) for segment in main.split("|")]
        self.items = [item for segment in self.segments for item in segment]
        self.alike = "".join(self.items) + slash + rest  # what a run on other stages has too
        self.flat = re.sub(r"[][|]", "", text)

    def layers(self):
        return len("".join(self.items).replace("[", "").replace("]", ""))

    def stages(self, pp):
        """By item, its stage; None where a run refuses the pattern."""
        if len(self.segments) > 1 or pp == 1:
            # One stage with several segments would be an interleaved schedule, which has at least two stages.
            if len(self.segments) % pp or (pp == 1 and len(self.segments) > 1):
                return None
            return [number % pp for number, segment in enumerate(self.segments) for _ in segment]
        if self.layers() % pp:
            return None
        each, first, out = self.layers() // pp, 0, []
        for item in self.items:
            last = first + len(item.strip("[]")) - 1
            if first // each != last // each:
                return None
            out.append(first // each)
            first = last + 1
        return out

    def chunks(self, pp):
        return max(1, len(self.segments) // pp)


def args_of(folder):
    return dict(re.findall(r"(\w+): (.*)", mckpt("inspect", folder, "--args").stdout))


def pattern_of(folder):
    return Pattern(args_of(folder)["hybrid_layer_pattern"].strip("'"))


def told(args):
    """The args that a run would take: it passes over None."""
    return {name: value for name, value in args.items() if value != "None"}


def rows(folder):
    return {row["name"]: row for row in json.loads(mckpt("ls", folder, "--json", "--digest").stdout)["tensors"]}


def digests(folder):
    return {name: (row["dtype"], row["shape"], row["sha256"]) for name, row in rows(folder).items()}


def check_stages(said, folder, pp):
    """Megatron would start a run of these args, and every layer is in the file of its stage."""
    pattern, args = pattern_of(folder), args_of(folder)
    stages = pattern.stages(pp)
    expect(stages is not None, f"{said}: no run takes {pattern.text} on {pp} stages")
    expect(args["pipeline_model_parallel_size"] == str(pp), f"{said}: {args['pipeline_model_parallel_size']} stages")
    chunks = pattern.chunks(pp) if pp > 1 else 1
    expect((args.get("virtual_pipeline_model_parallel_size") or "None") == (str(chunks) if chunks > 1 else "None"), f"{said}: chunks in the args, not {chunks}")
    expect((args.get("num_layers_per_virtual_pipeline_stage") or "None") == "None", f"{said}: Megatron refuses it beside a pattern")
    expect(args["num_layers"] == str(pattern.layers()), f"{said}: {args['num_layers']} layers")
    if stages is None:
        return pattern
    found = {}
    for name, row in rows(folder).items():
        if layer := re.match(r"decoder\.layers\.(\d+)\.", name):
            found.setdefault(int(layer[1]), set()).update(chunk["rank"] for chunk in row["chunks"])
    expect_equal(f"{said}: {pattern.text} on {pp}", sorted(found.items()), [(i, {stage}) for i, stage in enumerate(stages)])
    return pattern


def check_files(said, folder, pp):
    """The files of the ranks have the layers of their stages, each counted from 0 in its chunk."""
    pattern = pattern_of(folder)
    stages = pattern.stages(pp)
    expect(stages is not None and "[" not in pattern.text, f"{said}: no run takes {pattern.text} on {pp} stages")
    chunks = pattern.chunks(pp) if pp > 1 else 1
    segments = pattern.segments if len(pattern.segments) > 1 else [[i for i, at in zip(pattern.items, stages, strict=True) if at == s] for s in range(pp)]
    for stage in range(pp):
        (name,) = [f for f in os.listdir(os.path.join(folder, "release")) if f == (f"mp_rank_00_{stage:03}" if pp > 1 else "mp_rank_00")]
        held = {row["name"] for row in json.loads(mckpt("ls", os.path.join(folder, "release", name, "model_optim_rng.pt"), "--json").stdout)["tensors"]}
        for chunk in range(chunks):
            front = f"model{chunk}" if chunks > 1 else "model"
            own = {int(m[1]) for n in held if (m := re.match(rf"{front}[./]decoder\.layers\.(\d+)\.", n))}
            expect_equal(f"{said}: {pattern.text}, stage {stage}, chunk {chunk}", sorted(own), list(range(len(segments[chunk * pp + stage]))))
    return pattern


def same_file(a, b, name):
    with open(os.path.join(a, name), "rb") as one, open(os.path.join(b, name), "rb") as other:
        return one.read() == other.read()


# ---- There and back


def check(pattern, source, start, pp, to, checked, how):
    """`start`: a checkpoint of `pattern` on `pp` stages."""
    said = f"{how} {pattern.text}, pp {pp} to {to}"
    needed = to if to > 1 else 0
    if len(pattern.items) < needed:
        text = convert("reshard", start, "--pp", to, status=4)
        groups = [i for i in pattern.items if len(i) > 3]
        expect("MC2007" in text and f"found    {len(pattern.items)} layer" in text and "sizes that fit: --pp 1" in text, f"{said}: {text}")
        expect(all(g in text for g in groups[:5]), f"{said}: {text}")
        return
    out = convert("reshard", start, "--pp", to)
    found = checked(said, out, to)
    expect(found.alike == pattern.alike, f"{said}: {found.text}")
    if checked is check_stages:
        expect_equal(said, sorted(digests(out).items()), sorted(digests(start).items()))
    for one, other in ((out, start), (start, out)):
        text = mckpt("verify", one, "--against", other).stdout
        expect("name the layers differently" not in text, f"{said}: {text}")
        mckpt("diff", one, other, "-q")
    mckpt("verify", out, "--against", source, "-q")
    # With the pattern that was, all is as it was.
    back = convert("reshard", out, "--pp", pp, "--hybrid-pattern", pattern.text)
    expect_equal(f"{said} and back: args", sorted(told(args_of(back)).items()), sorted(told(args_of(start)).items()))
    if checked is check_stages:
        # The pickle of args that were made is written anew, with the same fields.
        beside = (*DIGESTS, "common.pt")
        unlike = [name for name in files_of(start) if os.path.basename(name) not in beside and not same_file(start, back, name)]
        expect(not unlike, f"{said} and back: {unlike}")
    twice = convert("reshard", convert("reshard", back, "--pp", to), "--pp", pp, "--hybrid-pattern", pattern.text)
    unlike = [name for name in files_of(back) if os.path.basename(name) not in DIGESTS and not same_file(back, twice, name)]
    expect(not unlike, f"{said} and back, twice: {unlike}")
    # Pipes that were divided are joined again by themselves.
    if pp > 1 and to % pp == 0 and len(pattern.segments) > 1 and found.chunks(to) == pattern.chunks(pp):
        if all(len(s) >= len(found.segments) // len(pattern.segments) for s in pattern.segments):
            again = pattern_of(convert("reshard", out, "--pp", pp))
            expect(again.text == pattern.text, f"{said} and back: {again.text}")


def check_pattern(text, pp):
    pattern = Pattern(text)
    source = hybrid_model(text, place("model"))
    start = convert("to-mcore", source, "--pp", pp, "--hybrid-pattern", text)
    check_stages(f"made of {text}", start, pp)
    for to in {1, 2, 3, 4} - {pp}:
        check(pattern, source, start, pp, to, check_stages, "torch_dist")
    # Megatron-FSDP has one stage, and a run of one stage has no pipes.
    fsdp = convert("to-fsdp", start, "--dp", 2)
    found = pattern_of(fsdp)
    expect(found.alike == pattern.alike and found.stages(1) is not None, f"{text} in fsdp_dtensor: {found.text}")
    units = [[g["unit"] for g in json.loads(mckpt("layout", f, "--dp", 2, "--json", "-q").stdout)["groups"]] for f in (start, fsdp)]
    expect(units[0] == units[1], f"{text}: layout of torch_dist has the units {units[0]}, and of fsdp_dtensor {units[1]}")
    mckpt("verify", fsdp, "--against", start, "-q")
    mckpt("verify", start, "--against", fsdp, "-q")
    again = convert("to-mcore", fsdp, "--pp", pp, *(["--hybrid-pattern", text] if pp > 1 else []))
    expect_equal(f"{text} by fsdp_dtensor", sorted(digests(again).items()), sorted(digests(start).items()))
    expect(pattern_of(again).text == text, f"{text} by fsdp_dtensor: {pattern_of(again).text}")
    # Files of ranks have layers without groups.
    files = convert("to-pt", start, "--pp", pp)
    flat = check_files(f"to-pt of {text}", files, pp)
    for to in {1, 2, 3, 4} - {pp}:
        check(flat, source, files, pp, to, check_files, "files of ranks")
    # Other groups of the same layers, on the same stages.
    if "[" in text:
        apart = convert("ungroup", start)
        without = check_stages(f"ungroup of {text}", apart, pp)
        expect(without.text == re.sub(r"[][]", "", text), f"ungroup of {text}: {without.text}")
        together = convert("group", apart, "--pattern", text)
        expect_equal(f"group of {text}", sorted(digests(together).items()), sorted(digests(start).items()))
        check_stages(f"group of {text}", together, pp)


def drawn(rng):
    """A pattern that a run takes, and its number of stages."""
    while True:
        ffn, items = rng.choice("-E"), []
        for _ in range(rng.randint(1, 6)):
            group = rng.choice((f"[M{ffn}]", f"[*{ffn}]", f"[M*{ffn}]", "[*]", "[M*]", f"[{ffn}]"))
            items.append(group if rng.random() < 0.5 else rng.choice(("M", "*", ffn)))
        pp = rng.choice((1, 2, 2, 3, 4))
        segments = rng.choice((1, pp, pp, 2 * pp)) if pp > 1 else 1
        if segments > len(items):
            continue
        cuts = sorted(rng.sample(range(1, len(items)), segments - 1))
        main = "|".join("".join(items[a:b]) for a, b in zip([0, *cuts], [*cuts, len(items)], strict=True))
        text = main + rng.choice(("", "", f"/*{ffn}", f"/*{ffn}/*{ffn}", "/M"))
        # A model of this family has Mamba layers, and attention.
        if {"M", "*"} <= set(main) and Pattern(text).stages(pp) is not None:
            return text, pp


for text, pp in (
    ("[*-]M|[*-]M", 2),
    ("M-|M*-M", 2),
    ("[M-]M[*-]M", 2),
    ("M|[M*]|-|M", 4),
    ("M|[M*]|-|M", 2),
    ("[M-]|[*-]/*-/*-", 2),
    ("[M-][*-][M-][*-]", 1),
):
    check_pattern(text, pp)
rng = random.Random(20)
for _ in range(6 * SHARE // 100 or 1):
    check_pattern(*drawn(rng))

# ---- Chunks of the stages are segments of the pattern, also of a model without groups

source = hybrid_model("M-M*M-M*", place("model"))
made = convert("to-mcore", source, "--pp", 2, "--vpp", 2)
expect(check_stages("vpp", made, 2).text == "M-|M*|M-|M*", "--vpp of a model")
for start in (convert("to-mcore", source), convert("to-mcore", source, "--hybrid-pattern", "M-M*|M-M*", "--pp", 2)):
    out = convert("reshard", start, "--pp", 2, "--vpp", 2)
    expect(check_stages("vpp", out, 2).text == "M-|M*|M-|M*", "--vpp of reshard")
files = convert("to-pt", source, "--pp", 2, "--vpp", 2)
expect(check_files("vpp", files, 2).text == "M-|M*|M-|M*", "--vpp of files")
text = convert("reshard", made, "--pp", 2, "--first-stage-layers", 3)
expect(pattern_of(text).text == "M-M*M-M*", "the layers of the first stage take the place of pipes")

# ---- Patterns that are given

grouped = convert("to-mcore", source, "--pp", 2, "--hybrid-pattern", "[M-]M*|[M-]M*")
for given, status, says in (
    ("[M-]|M*[M-]M*", 0, ""),
    ("[M-]M*[M-]M*", 0, ""),
    ("M-|M*M-M*", 2, "the pattern has other layers or groups than the source"),
    ("[M-]M|*|[M-]M*", 4, "the segments of the pattern do not divide by the pipeline-parallel size"),
    ("[M-]M[*", 2, "unclosed"),
):
    out = convert("reshard", grouped, "--pp", 2, "--hybrid-pattern", given, status=status)
    if status:
        expect(says in out, f"{given}: {out}")
    else:
        expect(check_stages(given, out, 2).text == given, f"{given}: {pattern_of(out).text}")
told_of_dense = convert("reshard", convert("to-fsdp", source), "--hybrid-pattern", "M-", status=2)
expect("--hybrid-pattern has no meaning" in told_of_dense, told_of_dense)
warned = mckpt("convert", "group", convert("ungroup", grouped), place("no"), "--pattern", "[M-]|M*|[M-]M*", "--no-sync").stderr
expect("the pattern has 3 segments, and the args 2 stages" in warned, warned)
finish(300)
