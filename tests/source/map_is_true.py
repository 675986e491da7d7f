"""The places that the documentation names exist, and contain what it says they contain.

usage: MCKPT_SOURCE=FOLDER map_is_true.py

In every page below, a name in backquotes that begins with a folder of the project is a file or folder: `lib/io/store/store.h`,
`io/store/store` (the same without lib/ and without the ending), `lib/io/store/store.{h,cc}`, or a test: `faults/stopped_runs`. In docs/map.md, names in backquotes after
"FILE: " are functions or types that the file contains: `lib/io/store/store.h`: `Store`, `open_store`.
"""
import os
import re
import sys

ROOT = os.environ["MCKPT_SOURCE"]
PAGES = ["README.md", "docs/map.md", "docs/library.md", "docs/python.md", "docs/decisions.md", "docs/design.md", "docs/glossary.md", "docs/conventions.md", "docs/getting_started.md", "docs/commands.md", "docs/clusters.md", "docs/ci_users.md", "docs/faq.md", "docs/agents.md", "docs/releasing.md", "CHANGELOG.md", "docs/adding_a_model.md", "docs/families.md", "docs/formats.md", "docs/json.md", "docs/rules.md", "docs/reliability.md", "docs/performance.md", "SECURITY.md", "docs/formats/adapters.md", "docs/formats/dcp.md", "docs/formats/hdf5.md", "docs/formats/layer_patterns.md", "docs/formats/card.md", "docs/formats/manifest.md", "docs/formats/megatron_args.md", "docs/formats/own_names.md", "docs/formats/pickle.md", "docs/formats/rank_files.md", "docs/formats/safetensors.md", "docs/formats/torch_file.md", "docs/formats/fsdp_buffers.md"]
TOP = ["lib", "mappings", "tools", "tests", "docs", "scripts", "cmake", "test_data"]
TESTS = ["faults", "judges", "program", "python", "unit"]
LIBRARIES = ["api", "core", "io", "hf", "convert", "runtime", "live"]
PATH = re.compile(r"^(?:%s)/[\w./{},*-]*$" % "|".join(TOP + TESTS + LIBRARIES))


def files_of(name):
    """The files or folders that the name stands for; [] if one of them does not exist."""
    if "{" in name:
        front, endings, back = re.match(r"(.*)\{(.*)\}(.*)", name).groups()
        found = [files_of(front + ending + back) for ending in endings.split(",")]
        return sum(found, []) if all(found) else []
    top = name.split("/")[0]
    bases = [name] if top in TOP else ["tests/" + name] if top in TESTS else ["lib/" + name]
    for base in bases:
        if "*" in base:
            import glob

            found = [os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, base))]
        else:
            found = [base + e for e in ("", ".h", ".cc", ".py", ".sh", "_test.cc") if os.path.exists(os.path.join(ROOT, base + e))]
        if found:
            return found
    return []


def contains(paths, word):
    pattern = re.compile(r"(?<![\w])%s(?![\w])" % re.escape(word.removesuffix("()")))
    return any(os.path.isfile(os.path.join(ROOT, p)) and pattern.search(open(os.path.join(ROOT, p), encoding="utf-8").read()) for p in paths)


faults, places, words = [], 0, 0
for page in PAGES:
    text = re.sub(r"^```.*?^```", "", open(os.path.join(ROOT, page), encoding="utf-8").read(), flags=re.M | re.S)
    for m in re.finditer(r"`([^`\n]+)`((?::| and|,)? (?:`[^`\n]+`(?:, )?)+)?", text):
        names = re.findall(r"`([^`\n]+)`", m[0])
        listing = m[2] is not None and m[2].startswith(":")
        for n, name in enumerate(names):
            if PATH.match(name):
                places += 1
                found = files_of(name)
                if not found:
                    faults.append(f"{page}: `{name}` does not exist")
            elif listing and n > 0 and PATH.match(names[0]):
                words += 1
                if not contains(files_of(names[0]), name):
                    faults.append(f"{page}: {names[0]} does not contain `{name}`")
print(f"{places} places, {words} names in them")
assert places >= 60, "too few places were found: has the form of the pages changed?"
assert words >= int(os.environ.get("MAP_WORDS", "60")), "too few functions were found: has the form of docs/map.md changed?"
if faults:
    sys.exit("\n".join(faults))
