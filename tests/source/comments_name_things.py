"""A comment names the thing that it is about: subject, verb, object. It does not begin with "What" or "Of", has no "that of"
or "those of" in place of a name, and no "is no X" for "is not an X". Prints the sentences that do.

Questions may begin with "What". "There is no X" and "is no longer" are plain. Words in quotes are not judged.
usage: comments_name_things.py [FILE...]"""
import os
import re
import subprocess
import sys

from mckpt_tests.setting import SOURCE

BEGINS = re.compile(r"^(What|Of)\b(?!.*\?$)")
STANDS_FOR = re.compile(r"\b(that|those) of\b", re.I)
IS_NO = re.compile(r"(?<![Tt]here )\b(is|are|was|were) no\b(?! (longer|more)\b)")
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|\bso that of\b")
# The fields of the library write these texts (scripts/fields).
WRITTEN = ("tools/python/mckpt/_fields.py",)
# Quotes a message.
QUOTES = ("lib/io/card/changed_file.h",)


def comment_mark(name):
    if name.endswith((".h", ".cc", ".inc", ".cu")):  # scripts and styles are a part of pages, which are answers
        return "//"
    if name.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) or "." not in os.path.basename(name):
        return "#"
    return None


def comment_of(line, mark, in_text):
    """The comment in a line, or None; `in_text`: the line is in a text between triple quotes."""
    if in_text:
        return line.strip()
    found = re.match(rf"\s*{mark} ?(.*)$", line) or re.match(rf"(?:[^\"']|\"[^\"]*\"|'[^']*')*?\s{mark} (.*)$", line)
    return found[1] if found and not line.startswith("#!") else None


def blocks(text, mark):
    """(number of the first line, text) of each run of comment lines; a line without words ends one, as does a picture."""
    block, first, in_text = [], 0, False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        opens = mark == "#" and not in_text and re.match(r'\s*[rf]?"""', line)
        said = comment_of(line.replace('"""', "", 1) if opens else line, mark, in_text or bool(opens))
        if opens or in_text:
            in_text = line.count('"""') == 1 if opens else '"""' not in line
            said = said.replace('"""', "")
        whole = re.match(rf"\s*{mark}", line) or opens or in_text
        if said and re.search(r"\S {2,}\S", said) and whole:
            said = None  # a picture
        if block and (said is None or not said.strip() or not whole or said.startswith("  ")):
            yield first, " ".join(block)
            block = []
        if said and said.strip():
            first = first if block else number
            block.append(said.strip())


def faults(sentence):
    plain = QUOTED.sub("x", sentence)
    return BEGINS.search(plain) or STANDS_FOR.search(plain) or IS_NO.search(plain)


def main():
    names = sys.argv[1:] or subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "lib", "mappings", "tools", "tests", "scripts", "cmake", "test_data", "CMakeLists.txt"],
                                           cwd=SOURCE, capture_output=True, text=True, check=True).stdout.split("\n")
    seen, found = 0, 0
    for name in names:
        mark = comment_mark(name)
        if not name or not mark or name in WRITTEN or name in QUOTES:
            continue
        try:
            with open(os.path.join(SOURCE, name)) as f:
                text = f.read()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        for line, block in blocks(text, mark):
            for sentence in re.split(r"(?<=[.!?]) (?=[A-Z`\"])", block):
                seen += 1
                if faults(sentence):
                    found += 1
                    print(f"{name}:{line}: {sentence}")
    print(f"{seen} sentences, {found} of them do not name the thing")
    return found > 0 or seen == 0


sys.exit(main())
