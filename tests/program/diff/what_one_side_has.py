"""A file that one side alone has is a difference, and the answer says which side by its path: the same in both orders. So do objects and tensors, and
checkpoints beside either side are named. The checkpoint that was opened in a folder with several is named."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

FILES = ("tokenizer.json", "generation_config.json", "config.json", "chat_template.jinja", "README.md", "model.gguf")


def both(a, b):
    """The answers of both orders, as text and JSON."""
    for x, y in ((a, b), (b, a)):
        run = run_mckpt("diff", x, y)
        told = json.loads(run_mckpt("diff", x, y, "--json").stdout)
        yield x, y, run, told


def check_files(scratch):
    for name in FILES:
        one, other = (os.path.join(scratch, f"{side}_{name}") for side in ("one", "other"))
        for folder in (one, other):
            shutil.copytree(TINY_MODEL, folder)
        path = os.path.join(one, name)
        os.remove(os.path.join(other, name)) if os.path.exists(path) else open(path, "w").write("{}")
        for x, y, run, told in both(one, other):
            words = f"only {one} has this file"
            expect(run.returncode == 1 and words in run.stdout and "the other side" not in run.stdout, f"{name}: {run.stdout}")
            rows = [r for r in told["rows"] if r["kind"] == "file" and r["name"] == name]
            expect(len(rows) == 1 and words in rows[0]["at"] and not told["equal"] and not told["alike"], f"{name}: {told['rows']}")
        expect(run_mckpt("diff", one, one).returncode == 0, f"{name}: of itself")


def check_objects(scratch):
    run = os.path.join(scratch, "mcore")
    run_mckpt("convert", "to-mcore", TINY_MODEL, run, "-q")
    fewer = os.path.join(scratch, "fewer")
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, fewer, "--tp", "1", "-q")
    for x, y, text, told in both(run, fewer):
        expect("the other side" not in text.stdout + text.stderr, text.stdout)
        expect(f"-> {run}/release" in text.stdout and f"-> {fewer}/release" in text.stdout, text.stdout)
        expect((told["root_a"], told["root_b"]) == (f"{x}/release", f"{y}/release"), f"{told['root_a']} {told['root_b']}")


def check_beside(scratch):
    """A checkpoint beside the one that was opened is named for either side, under its path."""
    alone, several = os.path.join(scratch, "alone"), os.path.join(scratch, "several")
    shutil.copytree(TINY_MODEL, alone), shutil.copytree(TINY_MODEL, several)
    shutil.copytree(os.path.join(DATA, "dcp", "fsdp2"), os.path.join(several, "dcp"))
    for x, y, text, told in both(alone, several):
        expect(told["unread"] == [f"{several}/dcp"] and f"not read: {several}/dcp" in text.stdout, f"{told['unread']} {text.stdout}")


def check_folders(scratch):
    """Nobody looks into folders such as onnx/, which both sides have: diff and verify say so."""
    one, other = (os.path.join(scratch, f"{side}_with_folder") for side in ("one", "other"))
    for folder, text in ((one, "1"), (other, "2")):
        shutil.copytree(TINY_MODEL, folder)
        os.mkdir(os.path.join(folder, "onnx"))
        with open(os.path.join(folder, "onnx", "model.onnx"), "w") as file:
            file.write(text)
    for x, y, text, told in both(one, other):
        expect("not compared: onnx/, which both have" in text.stdout, text.stdout)
        expect("onnx/, which both have" in json.dumps(told), f"{told}")
    told = run_mckpt("verify", one, "--against", other)
    expect("onnx/, which both have" in told.stdout, told.stdout)


def check_other_weights(scratch):
    """Weights that mckpt does not open are compared in their bytes; a checkpoint has none of them, and it is said."""
    for name in ("model.gguf", "model.onnx", "flax_model.msgpack", "model.npz"):
        one, other = (os.path.join(scratch, f"{side}_with_{name}") for side in ("one", "other"))
        for folder, text in ((one, "1"), (other, "2")):
            shutil.copytree(TINY_MODEL, folder)
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        for x, y, text, told in both(one, other):
            rows = [(r["kind"], r["name"]) for r in told["rows"]]
            expect((text.returncode, rows) == (1, [("file", name)]) and name in text.stdout, f"{rows} {text.stdout}")
        run = run_mckpt("verify", one, "--against", other)
        expect(f"{name}: the file differs from that in {other}" in run.stdout + run.stderr, run.stdout + run.stderr)
        expect(run_mckpt("diff", one, one).returncode == 0, f"{name}: of itself")
    os.remove(os.path.join(other, name))
    run = run_mckpt("verify", one, "--against", other)
    expect(f"not compared: {name}, which only {one} has" in run.stdout, run.stdout)
    made = os.path.join(scratch, "made")
    run_mckpt("convert", "to-mcore", one, made, "-q")
    for x, y, text, told in both(one, made):
        expect(text.returncode == 0 and f"not compared: {name}, which only {one} has" in text.stdout, text.stdout)


def check_indexes(scratch):
    """Another list of files is not a difference, and neither is an index on one side alone; total_size and the rest are."""
    run, one, other = (os.path.join(scratch, name) for name in ("run", "small", "large"))
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, run, "-q")
    for folder, size in ((one, "4KB"), (other, "8KB")):
        made = run_mckpt("export", run, folder, "--max-shard-size", size, "-q")
        expect(made.returncode == 0, made.stderr)
        os.remove(os.path.join(folder, "mckpt_manifest.json"))  # which knows the size of the index
    index = "model.safetensors.index.json"
    for a in (one, TINY_MODEL):
        for x, y, text, told in both(a, other):
            expect(text.returncode == 0 and index not in text.stdout, text.stdout)
    path = os.path.join(one, index)
    with open(path) as file:
        whole = json.load(file)
    for change, at in (({"total_size": 5}, "total_size"), ({"format": "x"}, "format"), ({"total_size": 5, "format": "x"}, "total_size")):
        with open(path, "w") as file:
            json.dump({**whole, "metadata": {**whole["metadata"], **change}}, file)
        for x, y, text, told in both(one, other):
            rows = [(r["kind"], r["name"], r["at"]) for r in told["rows"]]
            expect(text.returncode == 1 and len(rows) == len(change) and ("file", index, f".metadata.{at}") in rows, f"{rows} {text.stdout}")
        for x, y in ((one, other), (other, one)):
            run = run_mckpt("verify", x, "--against", y)
            alone = "format" in change
            expect(("the file differs at .metadata.total_size" in run.stdout) == ("total_size" in change), run.stdout)
            expect("metadata.format" not in run.stdout and (f"format in the metadata of {index}, which only {one} has" in run.stdout) == alone, run.stdout)
            expect(run.returncode == 0 and run.stdout.splitlines()[-1] == f"{x}: equal" + (", but 1 file differs" if "total_size" in change else ""), run.stdout)
            notes = [c["note"] for c in json.loads(run_mckpt("verify", x, "--against", y, "--json").stdout)["checks"] if c["name"] == "assets"]
            expect((notes != [None] and f"format in the metadata of {index}, which only {one} has" in notes[0]) == alone, f"{notes}")
    # An entry that both have is compared, also where a part of it is on one side alone.
    path_of_other = os.path.join(other, index)
    with open(path_of_other) as file:
        plain = file.read()
    for value, value_of_other in (("x", "y"), ({"a": 1}, {})):
        for to, text, entry in ((path, json.dumps(whole), value), (path_of_other, plain, value_of_other)):
            changed = json.loads(text)
            changed["metadata"]["format"] = entry
            with open(to, "w") as file:
                json.dump(changed, file)
        for x, y in ((one, other), (other, one)):
            run = run_mckpt("verify", x, "--against", y)
            expect("the file differs at .metadata.format" in run.stdout and run.stdout.endswith(": equal, but 1 file differs\n"), run.stdout)
    with open(path_of_other, "w") as file:
        file.write(plain)
    # Older programs write no number of parameters, and some write no metadata at all.
    for metadata in ({**whole["metadata"], "total_parameters": 7}, {}, None):
        with open(path, "w") as file:
            json.dump({**({} if metadata is None else {"metadata": metadata}), "weight_map": whole["weight_map"]}, file)
        for x, y, text, told in both(one, other):
            expect((text.returncode, told["equal"]) == (0, True) and index not in text.stdout, f"{metadata}: {text.stdout}")
    # Where the tensors have another type, a true total_size follows from them.
    with open(path, "w") as file:
        json.dump(whole, file)
    wide = os.path.join(scratch, "wide")
    run_mckpt("export", os.path.join(scratch, "run"), wide, "--max-shard-size", "8KB", "--dtype", "fp32", "-q")
    for x, y, text, told in both(one, wide):
        expect(text.returncode == 1 and index not in text.stdout, text.stdout)


def check_hidden(scratch):
    """A hidden name hides nothing that a program could load: it is told as `verify` tells it, and nothing is said of other hidden names."""
    one, other = os.path.join(scratch, "plain"), os.path.join(scratch, "with_hidden")
    shutil.copytree(TINY_MODEL, one), shutil.copytree(TINY_MODEL, other)
    for name in (".more/state.pt", ".state.pt", ".git/config", ".gitattributes", "._model.safetensors"):
        os.makedirs(os.path.dirname(os.path.join(other, name)), exist_ok=True)
        shutil.copyfile(os.path.join(DATA, "pt", "one_tensor.pt"), os.path.join(other, name))
    for x, y, text, told in both(one, other):
        expect((text.returncode, told["equal"]) == (0, True), text.stdout)
        expect(told["unread"] == [f"{other}/.more", f"{other}/.state.pt"], f"{told['unread']}")
        expect(f"not read: {other}/.more (a hidden folder), {other}/.state.pt (a hidden file)" in text.stdout, text.stdout)
        expect(text.stdout.startswith("equal: ") and ", but 1 file and 1 folder were not read" in text.stdout.splitlines()[0], text.stdout)
    run = run_mckpt("verify", other, "--against", one)
    expect(run.returncode == 0 and "not compared: .more (a hidden folder), .state.pt (a hidden file)" in run.stdout, run.stdout)
    expect(" but 1 file and 1 folder were not compared" in run.stdout.splitlines()[-1], run.stdout)
    run = run_mckpt("diff", one, one)
    expect("not read" not in run.stdout, run.stdout)


with tempfile.TemporaryDirectory() as scratch:
    check_files(scratch)
    check_objects(scratch)
    check_beside(scratch)
    check_folders(scratch)
    check_other_weights(scratch)
    check_indexes(scratch)
    check_hidden(scratch)
finish(96)
