"""docs/json.md lists every field of every command's JSON, with its types, and none that is not there.

The commands in the first block of each section are run. A row `| field | type | what |` describes a field; in place of a type may stand the
name of another section, or "fields above" or "fields below" for the fields of the same one.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, MCKPT

DOCUMENT = os.path.join(os.path.dirname(DATA), "docs", "json.md")
COMMON = {"schema": {"string"}, "ok": {"boolean"}}
ROWS = "tensors[]"  # what a line of --jsonl is when it is not a whole answer
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object", type(None): "null"}
failures = []


def fail(what):
    if what not in failures[:20]:
        failures.append(what)
        if len(failures) <= 20:
            print("FAIL", what)


def sections(text):
    """name -> (commands, {field: types})"""
    out = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        name, body = part.split("\n", 1)
        block = re.search(r"^```\n(.*?)^```$", body, flags=re.M | re.S)
        fields = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", body, flags=re.M)
        fields.sort(key=lambda f: -f[0].count("."))  # a.*.b before a.*, which also stands for names with dots
        out[name] = (block[1].splitlines() if block else [], dict(fields))
    return out


class Section:
    def __init__(self, name, all_sections):
        self.name, self.all, self.seen = name, all_sections, set()
        self.commands, self.fields = all_sections[name]

    def describe(self, path):
        """The documented field that a path is, and its types."""
        if path in COMMON:
            return path, COMMON[path]
        for field, types in self.fields.items():
            if types in self.all or types.startswith("fields "):
                if path == field:
                    return field, {"object"}
                if path.startswith(field + "."):
                    self.seen.add((self.name, field))
                    other = self if types.startswith("fields ") else opened(types, self.all)
                    return other.note(path[len(field) + 1:])
            elif re.fullmatch(re.escape(field).replace(r"\*", r"[^\[\]]+?"), path):
                return field, set(types.split(" or "))
        return None, set()

    def note(self, path):
        field, types = self.describe(path)
        if field and path not in COMMON and not isinstance(field, tuple):
            self.seen.add((self.name, field))
        return field, types

    def look(self, value, path, line):
        """Notes every field inside of a value."""
        if isinstance(value, dict):
            for key, v in value.items():
                self.take(v, f"{path}.{key}" if path else key, line)
        elif isinstance(value, list):
            for v in value:
                if isinstance(v, dict):
                    self.take(v, path + "[]", line, entry=True)

    def take(self, value, path, line, entry=False):
        field, types = self.note(path)
        if entry and field is None:  # entries are described by their fields
            return self.look(value, path, line)
        if field is None:
            return fail(f"`{line}` has {path}, which docs/json.md does not list under {self.name}")
        if NAMES[type(value)] not in types:
            fail(f"`{line}`: {path} is {NAMES[type(value)]}, docs/json.md says {' or '.join(sorted(types))}")
        self.look(value, path, line)


cache = {}


def opened(name, all_sections):
    return cache.setdefault(name, Section(name, all_sections))


def answers(line, folder):
    """The objects that a command line prints."""
    program, *args = shlex.split(line.replace("$T", folder))
    assert program == "mckpt", line
    run = subprocess.run([MCKPT, *args], cwd=DATA, capture_output=True, text=True, timeout=60)
    lines = run.stdout.splitlines() if "--jsonl" in args else [run.stdout]
    found = [json.loads(text) for text in lines]
    if "--report" in args:  # what the report has beside the answer
        with open(args[args.index("--report") + 1], encoding="utf-8") as f:
            report = json.load(f)
        if report["schema"] != found[0]["schema"]:  # a card
            return run.returncode, [report]
        found = [{field: value for field, value in report.items() if found[0].get(field) != value}]
    return run.returncode, found


def make_cut(folder):
    """A checkpoint whose data files lost their second halves."""
    shutil.copytree(os.path.join(DATA, "dcp/uneven_4/iter_0000010"), folder)
    for name in os.listdir(folder):
        if name.endswith(".distcp"):
            path = os.path.join(folder, name)
            os.truncate(path, os.path.getsize(path) // 2)


def make_python(path):
    """In place of a Python with transformers, which takes half a minute: program/roundtrip/logits runs one."""
    answer = {"equal": True, "tokens": 16, "layers": 2, "first_layer": None, "largest_difference": 0.25, "relative_l2": 0.5,
              "same_next_tokens": 16, "line": "equal: logits of 16 tokens and all 2 layers, bit for bit"}
    with open(path, "w") as f:
        f.write(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    os.chmod(path, 0o755)


def main():
    documented = sections(open(DOCUMENT, encoding="utf-8").read())
    listed = re.findall(r"^  ([a-z]+) .*", run_mckpt("--help").stdout.split("\nGlobal\n")[0], flags=re.M)
    for command in set(listed) - {"help"} - documented.keys():
        fail(f"docs/json.md has no section for `mckpt {command}`")
    with tempfile.TemporaryDirectory() as folder:
        make_cut(os.path.join(folder, "cut"))
        make_python(os.path.join(folder, "python"))
        run_mckpt("verify", os.path.join(DATA, "models", "tiny_qwen3_moe"), "--report", os.path.join(folder, "made.json"))
        for name in documented:
            section = opened(name, documented)
            for line in section.commands:
                status, objects = answers(line, folder)
                if status == 3 and objects[0].get("error", {}).get("code") == "MC0004":  # a module that this build has not
                    print(f"skipped: `{line}`")
                    section.seen |= {(name, field) for field in section.fields}
                    continue
                if status >= 2 and name != "error":
                    fail(f"`{line}` ended with {status}")
                for answer in objects:
                    whole = "schema" in answer
                    if whole and answer["schema"] != f"mckpt.{name}/1":
                        fail(f"`{line}` has the schema {answer['schema']}")
                    if whole and answer["ok"] is not (status == 0) and "--jsonl" not in line:
                        fail(f"`{line}` ended with {status} and ok is {answer['ok']}")
                    section.look(answer, "" if whole or "--report" in line else ROWS, line)
    fields = 0
    for name, (_, described) in documented.items():
        fields += len(described)
        for field in described:
            if (name, field) not in cache[name].seen:
                fail(f"docs/json.md lists {field} under {name}, which no command there prints")
    print(f"{fields} fields, {len(failures)} failures")
    sys.exit(bool(failures) or fields < 200)


main()
