"""CHANGELOG.md describes the version that CMakeLists.txt has, newest first, each with a date and something to say.

usage: MCKPT_SOURCE=FOLDER changelog_names_the_version.py
"""
import datetime
import os
import re
import sys

ROOT = os.environ["MCKPT_SOURCE"]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def text_of(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


version = re.search(r"^project\(mckpt VERSION ([0-9.]+)", text_of("CMakeLists.txt"), re.M)[1]
sections = re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.M)[1:]
faults, found = [], []
for section in sections:
    heading, _, body = section.partition("\n")
    kinds = re.findall(r"^### (.*)$", body, re.M)
    faults += [f"{heading}: '{kind}' is none of {', '.join(sorted(KINDS))}" for kind in kinds if kind not in KINDS]
    if heading == "[Unreleased]" and section is sections[0]:
        continue
    m = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})", heading)
    if not m:
        faults.append(f"'{heading}' is not of the form [1.2.3] - 2026-01-31")
        continue
    found.append((tuple(map(int, m[1].split("."))), datetime.date.fromisoformat(m[2])))
    if not kinds or not re.search(r"^- ", body, re.M):
        faults.append(f"{heading} says nothing")
if not found or ".".join(map(str, found[0][0])) != version:
    faults.append(f"the newest version in CHANGELOG.md is {found[:1]}, that of CMakeLists.txt {version}")
if found != sorted(found, reverse=True) or len(set(v for v, _ in found)) != len(found):
    faults.append("versions are not in order, the newest first")
if faults:
    sys.exit("\n".join(faults))
print(f"{len(found)} versions, the newest {version}")
