"""JSON beside a model that is made to take much memory: verify and inspect take at most 64 MiB and four times the file. A config has a limit of values, which a
config that lists every expert of a large model is below; a tokenizer may be as large as it likes."""
import os
import shutil
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.setting import MCKPT, SANITIZED, TINY_MODEL

if SANITIZED:
    print("skipped: the sanitizers' own memory is counted")
    sys.exit(77)
MIB = 1 << 20


def repeated(front, item, count, end):
    yield front
    for n in range(count):
        yield item(n) if callable(item) else item
    yield end


def expert(n):
    return '"model.layers.%d.mlp.experts.%d.proj_%d":{"quant_algo":"NVFP4","group_size":16},' % (n // 1152, n // 3 % 384, n % 3)


def tokenizer():
    yield from repeated('"vocab":{', lambda n: f'"t{n}":{n},', 300_000, '"last":0},')
    yield from repeated('"merges":[', '["a","b"],', 300_000, "0]")


# name: (the file, what it has more than a config, exit status of verify, words). Written piece by piece: a child begins with the memory of this process.
CASES = {
    "empty lists": ("config.json", lambda: repeated('"x":[', "[],", 2 * MIB, "0]"), 1, "more values than a config"),
    "numbers": ("config.json", lambda: repeated('"x":[', "1,", 2 * MIB, "0]"), 1, "more values than a config"),
    "members": ("config.json", lambda: repeated('"x":{', lambda n: f'"{n}":0,', MIB, '"last":0}'), 1, "more values than a config"),
    "experts of a large model": ("config.json", lambda: repeated('"other":{', expert, 60 * 384 * 3, '"last":0}'), 0, "sound"),
    "a tokenizer": ("tokenizer.json", tokenizer, 0, "sound"),
    "an adapter's config": ("adapter_config.json", lambda: repeated('"peft_type":"LORA","x":[', "[],", 2 * MIB, "0]"), None, ""),
}


def run(*words):
    """Exit status, what was printed, and the largest memory."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([MCKPT, *words, "--threads", "2"] if words[0] == "verify" else [MCKPT, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode("utf8", "replace"), used.ru_maxrss << 10


with tempfile.TemporaryDirectory() as scratch:
    for name, (file, made, status, words) in CASES.items():
        folder = os.path.join(scratch, name)
        shutil.copytree(TINY_MODEL, folder)
        path = os.path.join(folder, file)
        begin = "{"
        if file == "config.json":
            with open(path) as f:
                begin = f.read().rstrip().rstrip("}") + ","
        with open(path, "w") as f:
            f.write(begin)
            f.writelines(made())
            f.write("}")
        for command in ("verify", "inspect"):
            ended, out, used = run(command, folder)
            bound = 64 * MIB + 4 * os.path.getsize(path)
            expect(used <= bound, f"{name}: {command}: {used / MIB:.0f} MiB of {bound / MIB:.0f}")
            if command == "verify" and status is not None:
                expect(ended == status and words in out, f"{name}: {ended} {out[-300:]}")
finish(17)
