"""A flipped bit that a stored sum finds is found by a conversion, too, where it computes what it writes: factors of LoRA merged into a base,
experts that change their order, codes and scales that are decoded, values that are quantised. The bits are wherever `verify` finds a sum that
does not match."""
import os
import random
import shutil
import tarfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import files_of, scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, SHARE, TINY_MODEL

BITS = max(2, 10 * SHARE // 100)  # of each source
random.seed(41)
folder = scratch()


def path(name):
    return os.path.join(folder.name, name)


def flip(file, at):
    with open(file, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 4]))


def judge(what, source, endings, *commands):
    """Each command refuses a source in which a sum does not match, and makes its result of the sound one."""
    files = [os.path.join(source, name) for name in files_of(source) if name.endswith(endings)]
    sizes = [os.path.getsize(file) for file in files]
    found = 0
    for _ in range(20 * BITS):
        file = random.choices(files, sizes)[0]
        at = random.randrange(os.path.getsize(file))
        flip(file, at)
        verified = run_mckpt("verify", source)
        if verified.returncode == 1 and "MC1203" in verified.stdout:
            found += 1
            for command in commands:
                made = run_mckpt(*command, "--no-sync", "-q")
                expect(made.returncode == 3 and "MC1203" in made.stderr,
                       f"{what}: {command[:2]} of byte {at} of {os.path.basename(file)} ends with {made.returncode}: {made.stderr[:300]}")
                expect(not [name for name in files_of(path("out")) if not name.startswith(".")], f"{what}: {command[:2]} left a result")
                shutil.rmtree(path("out"), ignore_errors=True)
        flip(file, at)
        if found == BITS:
            break
    expect(found == BITS, f"{what}: only {found} bits are beneath a sum")
    for command in commands:
        made = run_mckpt(*command, "--no-sync", "-q")
        expect(made.returncode == 0, f"{what}: {command[:2]} of the sound source: {made.stderr[:300]}")
        shutil.rmtree(path("out"), ignore_errors=True)


for group in "AT":
    with tarfile.open(os.path.join(DATA, "newest", group + ".tar.xz")) as tar:
        for member in tar:
            if member.name.startswith(("A_verl_lora_t213_w2/", "T_gpt_oss_w2/")):
                tar.extract(member, folder.name, filter="data")

lora, titan = path("A_verl_lora_t213_w2"), path("T_gpt_oss_w2")
judge("LoRA in files of ranks", lora + "/ckpt", (".pt",), ["export", lora + "/ckpt", path("out"), "--assets", lora + "/assets"],
      ["convert", "to-dcp", lora + "/ckpt", path("out")])
judge("experts of torchtitan", titan + "/ckpt", (".distcp",), ["export", titan + "/ckpt", path("out"), "--assets", titan + "/assets"])

run_mckpt("convert", "quantize", TINY_MODEL, path("q"), "--to", "fp8-block", "--no-sync", "-q")
judge("codes and scales", path("q"), (".safetensors",), ["convert", "dequantize", path("q"), path("out")],
      ["convert", "hf-to-fsdp", path("q"), path("out"), "--tp", "2"])
run_mckpt("convert", "dequantize", path("q"), path("plain"), "--no-sync", "-q")
judge("values that are quantised", path("plain"), (".safetensors",), ["convert", "quantize", path("plain"), path("out"), "--to", "fp8-block"])
finish(8 * BITS)
