"""Sums that came with a folder find a flipped bit: SHA256SUMS, what `hf download` keeps, and the names of the blobs in the hub's
cache; also SHA256SUMS as --card. "sound" says which sums were compared.
"""

import hashlib
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, FAULTY_IO

folder = scratch()
MODEL = os.path.join(DATA, "models", "tiny_qwen3_moe")
FILES = sorted(os.listdir(MODEL))
WEIGHTS = [f for f in FILES if f.endswith(".safetensors")]


def path(*names):
    return os.path.join(folder.name, *names)


def content(file):
    with open(os.path.join(MODEL, file), "rb") as f:
        return f.read()


def sha256(file):
    return hashlib.sha256(content(file)).hexdigest()


def git(file):
    return hashlib.sha1(b"blob %d\0" % len(content(file)) + content(file)).hexdigest()


def hub_sum(file):
    return sha256(file) if file in WEIGHTS else git(file)


def copied(name):
    shutil.rmtree(path(name), ignore_errors=True)
    shutil.copytree(MODEL, path(name))
    return path(name)


def listed(name):
    top = copied(name)
    with open(os.path.join(top, "SHA256SUMS"), "w") as f:
        f.write("# made by sha256sum\n" + "".join(f"{sha256(file)}  ./{file}\n" for file in FILES))
    return top, top


def downloaded(name):
    top = copied(name)
    kept = os.path.join(top, ".cache", "huggingface", "download")
    os.makedirs(kept)
    for file in FILES:
        with open(os.path.join(kept, file + ".metadata"), "w") as f:
            f.write(f"{'0' * 40}\n{hub_sum(file)}\n1700000000.5\n")
    return top, top


def cached(name):
    top = path(name, "models--org--tiny")
    snapshot = os.path.join(top, "snapshots", "a" * 40)
    for made in (os.path.join(top, "blobs"), os.path.join(top, "refs"), snapshot):
        os.makedirs(made)
    with open(os.path.join(top, "refs", "main"), "w") as f:
        f.write("a" * 40)
    for file in FILES:
        shutil.copyfile(os.path.join(MODEL, file), os.path.join(top, "blobs", hub_sum(file)))
        os.symlink(f"../../blobs/{hub_sum(file)}", os.path.join(snapshot, file))
    return top, snapshot


def flip(file):
    with open(file, "r+b") as f:
        f.seek(-3, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-3, os.SEEK_END)
        f.write(bytes([byte ^ 4]))


def run(status, *command):
    result = run_mckpt(*command)
    what = " ".join(str(c).replace(folder.name + "/", "") for c in command)
    expect(result.returncode == status, f"{what}: exit status {result.returncode}, not {status}: {result.stdout[-700:]}{result.stderr[-300:]}")
    return result.stdout


def has(text, words, what):
    expect(words in text, f"{what}: lacks {words!r}: {text[-700:]}")


FROM = {listed: "SHA256SUMS", downloaded: "what hf download kept", cached: "the names of the hub's blobs"}
for make, source in FROM.items():
    name = make.__name__
    top, place = make(name)
    text = run(0, "verify", top)
    has(text, f"pass  sums     {len(FILES)} files", name)
    expect(text.count("  sums  ") == 1, f"{name}: {text}")
    has(text, f"sound; {len(FILES)} files compared with sums, by {source}", name)
    expect("no checksums to compare" not in text and "was not read" not in text, f"{name}: {text[-400:]}")
    checks = {c["name"]: c for c in json.loads(run(0, "verify", top, "--json"))["checks"]}
    expect(checks["sums"]["status"] == "pass" and checks["sums"]["count"] == len(FILES), f"{name}: {checks.get('sums')}")
    one = run(0, "verify", os.path.join(place, WEIGHTS[0]))
    has(one, "pass  sums     1 file", f"{name}, one file")
    for file in (WEIGHTS[0], "config.json"):
        before = content(file)
        flip(os.path.join(place, file))
        text = run(1, "verify", top)
        has(text, "FAIL  sums", f"{name}: {file}")
        has(text, f"problem[MC1116]: {file}: the file's ", f"{name}: {file}")
        run(1, "verify", os.path.join(place, file)) if file in WEIGHTS else None
        with open(os.path.join(place, file), "wb") as f:
            f.write(before)
    run(0, "verify", top)

# A list as a card: nothing but its files is looked at. It may lie elsewhere.
top, _ = listed("card")
text = run(0, "verify", top, "--card", os.path.join(top, "SHA256SUMS"))
has(text, "as on the card", "--card")
has(text, f"{len(FILES)} files", "--card")
shutil.move(os.path.join(top, "SHA256SUMS"), path("elsewhere.sha256"))
run(0, "verify", top, "--card", path("elsewhere.sha256"))
run(0, "verify", os.path.join(top, WEIGHTS[0]), "--card", path("elsewhere.sha256"))
flip(os.path.join(top, WEIGHTS[0]))
has(run(1, "verify", top, "--card", path("elsewhere.sha256")), f"{WEIGHTS[0]}: the file's SHA-256 is", "--card, flipped")
os.remove(os.path.join(top, WEIGHTS[0]))
has(run(1, "verify", top, "--card", path("elsewhere.sha256")), f"{WEIGHTS[0]}: the file is missing", "--card, missing")
# The name of a list says that it is not a card in JSON: without a line that is used, the error has the reason.
for lines, said in (("", "no such line"), ("nothing\n", "no such line"), (f"{'0' * 32}  {WEIGHTS[0]}\n", "this line is not as sha256sum writes one"),
                    (f"{'0' * 64}  /etc/passwd\n", "is an absolute path")):
    with open(path("empty.sha256"), "w") as f:
        f.write(lines)
    refused = run_mckpt("verify", top, "--card", path("empty.sha256"))
    expect(refused.returncode == 3, f"{lines!r}: {refused.returncode}")
    text = refused.stderr
    has(text, "error[MC1012]: the list has no sum of a file", repr(lines))
    has(text, said, repr(lines))

# Lines as other programs write them. sha256sum -c reads the first five; the line of openssl 3 and a mark of UTF-8 before a
# list, as PowerShell writes one, are understood too. Lines of other sums are told, because nothing is compared with them.
top = copied("lines")
WRONG, FILE = "0" * 64, WEIGHTS[0]
for line in (f"  {WRONG}  {FILE}", f"{WRONG} {FILE}", f"{WRONG}\t {FILE}", f"SHA256({FILE})= {WRONG}", f"SHA256 ({FILE})={WRONG}", f"SHA2-256({FILE})= {WRONG}"):
    with open(os.path.join(top, "SHA256SUMS"), "w") as f:
        f.write(f"{sha256('config.json')}  config.json\n{line}\n")
    for options in ([], ["--card", os.path.join(top, "SHA256SUMS")]):
        has(run(1, "verify", top, *options), f"{FILE}: the file's SHA-256 is", line)
with open(os.path.join(top, "SHA256SUMS"), "w", encoding="utf-8-sig") as f:
    f.write(f"{WRONG}  {FILE}\n{sha256('config.json')}  config.json\n")
for options in ([], ["--card", os.path.join(top, "SHA256SUMS")]):
    has(run(1, "verify", top, *options), f"{FILE}: the file's SHA-256 is", "a mark of UTF-8")
with open(os.path.join(top, "SHA256SUMS"), "w", encoding="utf-16") as f:
    f.write(f"{WRONG}  {FILE}\n")
has(run(0, "verify", top), "warning[MC1012]: SHA256SUMS: the list is UTF-16", "UTF-16")
for line in (sha256(FILE)[:40], f"{'0' * 128}  {FILE}", f"MD5 ({FILE}) = {'0' * 32}", f"SHA512 ({FILE}) = {'0' * 128}", f"sha256:{WRONG}  {FILE}",
             f"{FILE}: {WRONG}", WRONG):
    with open(os.path.join(top, "SHA256SUMS"), "w") as f:
        f.write(f"{sha256('config.json')}  config.json\n{line}\n")
    for options in ([], ["--card", os.path.join(top, "SHA256SUMS")]):
        has(run(0, "verify", top, *options), "warning[MC1012]: SHA256SUMS: this line is not as sha256sum writes one" if not options else "warning[MC1012]", line)
        expect("MC1116" not in run(0, "verify", top, *options), f"{line}: is compared with no file")

# A sum without a name is of the file that its list is named for, if it is alone there; SHA256SUMS is named for none.
with open(os.path.join(top, "SHA256SUMS"), "w") as f:
    f.write(f"# one\n{WRONG}\n")
has(run(0, "verify", top), "warning[MC1012]: SHA256SUMS: this line is not as sha256sum writes one", "one sum in SHA256SUMS")
os.remove(os.path.join(top, "SHA256SUMS"))
for others, status in (("# one\n", 1), (f"{sha256('config.json')}  config.json\n", 0)):
    with open(os.path.join(top, FILE + ".sha256"), "w") as f:
        f.write(f"{others}{WRONG}\n")
    has(run(status, "verify", top), "warning[MC1012]" if others[0] != "#" else f"{FILE}: the file's SHA-256 is", f"a sum without a name behind {others!r}")

# A card in Markdown has sums of tensors in its table, and no warning of them.
top = copied("page")
run(0, "verify", top, "--report", path("page.md"))
expect("MC1012" not in run(0, "verify", top, "--card", path("page.md")), "the rows of a card's table")

# Names that lead out of the folder are followed nowhere; the sum of a file that has none of its own lines is of its name.
top = copied("odd")
with open(os.path.join(top, "SHA256SUMS"), "w") as f:
    f.write(f"{'0' * 64}  ../../etc/passwd\n{'0' * 64}  /etc/passwd\n{sha256(WEIGHTS[0])} *{WEIGHTS[0]}\n")
with open(os.path.join(top, "config.json.sha256"), "w") as f:
    f.write(sha256("config.json").upper() + "\n")
text = run(0, "verify", top)
has(text, "warning[MC1004]", "names that lead out")
has(text, "2 files", "two lists")
has(text, "1 file of tensors has none", "a file without a sum")
with open(os.path.join(top, "SHA256SUMS"), "a") as f:
    f.write(f"SHA256 (gone.safetensors) = {'0' * 64}\n")
has(run(1, "verify", top), "gone.safetensors: the file is missing, but SHA256SUMS lists it", "a listed file that is missing")

# A disk that does not list a folder, or a config that it does not give: nobody says "sound" of the sums in it, which are wrong.
top, _ = listed("faulty")
flip(os.path.join(top, "config.json"))
expect(run_mckpt("verify", top).returncode == 1, "sums that are wrong")
for n in range(1, 200):
    with tempfile.NamedTemporaryFile("r") as log:
        result = run_mckpt("verify", top, env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"readdir:{n}:EIO", "FAULTY_IO_LOG": log.name})
        calls = log.read().split().count("readdir")
    told = result.returncode != 0 or "sums may be here, and were not looked for" in result.stdout or "FAIL  sums" in result.stdout
    expect(told, f"readdir {n} fails: {result.returncode}: {result.stdout[-400:]}{result.stderr[-300:]}")
    if n >= calls:
        break
finish(90)
