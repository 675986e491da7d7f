"""The table of names is of one release of transformers. A checkpoint with the names that another release has in memory is
refused by name, unless they are the folder's names of that release, too, or the table does the same to them:
test_data/own_names/other_releases.json.xz has the names in memory, and what save_pretrained() of that release writes."""
import json
import lzma
import os
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.numbered_tensors import write_numbered_tensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

RIGHT = {"4.57.3/AltCLIPModel", "4.57.3/ViTMSNForImageClassification", "4.57.3/VideoLlavaForConditionalGeneration"}
# A name that the class always has in memory by the table, and the tensor that the checkpoint has in its place.
REFUSED = {
    "4.57.3/ColPaliForRetrieval": ("vlm.language_model.norm.weight", "vlm.model.language_model.norm.weight"),
    "5.23.0/Inkling2ForCausalLM": ("model.layers.0.self_attn.k_proj.linear.weight", "model.layers.0.self_attn.k_proj.weight"),
}


def config_of(folder, case, of):
    os.mkdir(folder)
    with open(f"{folder}/config.json", "w") as out:
        json.dump({"model_type": of["type"], "architectures": [case.split("/")[1]]}, out)


with lzma.open(os.path.join(DATA, "own_names", "other_releases.json.xz")) as file:
    cases = json.load(file)
expect(set(cases) == RIGHT | set(REFUSED), f"not asked for: {set(cases) ^ (RIGHT | set(REFUSED))}")
with tempfile.TemporaryDirectory(prefix="mckpt_releases_") as folder:
    os.chdir(folder)
    for number, (case, of) in enumerate(cases.items()):
        config_of(f"config{number}", case, of)
        write_numbered_tensors("in.safetensors", of["memory"])
        source, out = f"saved{number}", f"out{number}"
        run_mckpt("convert", "to-dcp", "in.safetensors", source, "--no-sync", "-q")
        done = run_mckpt("export", source, out, "--assets", f"config{number}", "--no-sync", "-q")
        if case in REFUSED:
            wanted, there = REFUSED[case]
            expect(done.returncode == 3 and not os.path.exists(out), f"{case}: exit status {done.returncode}")
            for text in ("MC2002", wanted, there, "5.24.0", "save_pretrained()"):
                expect(text in done.stderr, f"{case}: no '{text}' in {done.stderr[-900:]}")
            continue
        expect(done.returncode == 0, f"{case}: {done.stderr[-600:]}")
        listed = json.loads(run_mckpt("ls", out, "--digest", "--json").stdout)
        found = {t["name"]: t["sha256"][:8] for t in listed["tensors"]}
        want = of["disk"]
        expect(found == want, f"{case}: extra {sorted(set(found) - set(want))[:3]}, missing {sorted(set(want) - set(found))[:3]}, "
               f"differ {[n for n in want if n in found and found[n] != want[n]][:3]}")
        done = run_mckpt("verify", out, "--against", source)
        expect(done.returncode == 0 and "equal" in done.stdout and "not equal" not in done.stdout, f"{case}: {done.stdout[-600:]}{done.stderr[-300:]}")
    # The files of the model's folder say which names it has, whatever the release.
    number = list(cases).index("5.23.0/Inkling2ForCausalLM")
    of = cases["5.23.0/Inkling2ForCausalLM"]
    write_numbered_tensors(f"config{number}/model.safetensors", of["memory"])
    done = run_mckpt("export", f"saved{number}", "kept", "--assets", f"config{number}", "--no-sync", "-q")
    expect(done.returncode == 0, f"with the folder's names: {done.stderr[-600:]}")
    listed = {t["name"] for t in json.loads(run_mckpt("ls", "kept", "--json").stdout)["tensors"]}
    expect(listed == set(of["memory"]), f"with the folder's names: {sorted(listed ^ set(of['memory']))[:3]}")
finish(20)
