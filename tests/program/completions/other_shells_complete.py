"""zsh and fish complete command lines by the scripts that mckpt prints for them. A shell that is not here is left out; if none is
here, the test is skipped."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from mckpt_tests.program import run_mckpt

failures, tried = [], []


def script(shell, folder):
    path = os.path.join(folder, "mckpt." + shell)
    with open(path, "w", encoding="utf-8") as f:
        f.write(run_mckpt("completions", shell).stdout)
    parsed = subprocess.run([shell, "-n", path], capture_output=True, text=True)
    if parsed.returncode or parsed.stderr:
        failures.append(f"{shell} -n: {parsed.stderr}")
    return path


def check(shell, line, expected, found):
    if not found:
        failures.append(f"{shell}: `{line}` has no {expected}")


def fish(folder):
    path = script("fish", folder)
    cases = [("mckpt ver", "verify"), ("mckpt convert re", "reshard"), ("mckpt roundtrip --device ", "cuda"),
             ("mckpt --color never convert hf-to-fsdp a b --str", "--strategy"), ("mckpt verify mod", "model.safetensors"),
             ("mckpt export a b --assets ", "ckpt/"), ("mckpt verify a --against mod", "model.safetensors"),
             ("mckpt ls --js", "--json"), ("mckpt mappings ch", "check"), ("mckpt mappings draw gated_m", "gated_mlp"),
             ("mckpt mappings show qwen3_ne", "qwen3_next"), ("mckpt mappings check mod", "model.safetensors")]
    for line, expected in cases:
        run = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"], capture_output=True, text=True, cwd=folder)
        offered = [row.split("\t")[0] for row in run.stdout.splitlines()]
        check("fish", line, expected, expected in offered)
    for line in ("mckpt export a b --assets mod", "mckpt mappings draw qwen3_ne", "mckpt mappings draw model.s", "mckpt mappings list q",
                 "mckpt mappings check qwen3_ne"):
        run = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"], capture_output=True, text=True, cwd=folder)
        check("fish", line, "nothing", run.stdout.strip() == "")


def read_until(fd, pattern, limit=20):
    seen, end = b"", time.monotonic() + limit
    while not re.search(pattern, seen) and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                seen += os.read(fd, 65536)
            except OSError:
                break
    return seen


def zsh(folder):
    """Types lines with a tab at their end into a shell whose mckpt prints its arguments."""
    path = script("zsh", folder)
    site = os.path.join(folder, "site")
    os.mkdir(site)
    shutil.copy(path, os.path.join(site, "_mckpt"))
    environment = {**os.environ, "ZDOTDIR": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8", "HOME": folder}
    cases = [("mckpt veri", "verify"), ("mckpt convert resh", "convert reshard"), ("mckpt roundtrip --device cu", "roundtrip --device cuda"),
             ("mckpt convert hf-to-fsdp a b --strateg", "convert hf-to-fsdp a b --strategy"), ("mckpt verify mod", "verify model.safetensors"),
             ("mckpt verify x --color=al", "verify x --color=always"), ("mckpt mappings che", "mappings check"),
             ("mckpt mappings draw gated_m", "mappings draw gated_mlp"), ("mckpt mappings --svg draw gated_m", "mappings --svg draw gated_mlp"),
             ("mckpt mappings show qwen3_ne", "mappings show qwen3_next"), ("mckpt mappings draw qwen3_ne", "mappings draw qwen3_ne"),
             ("mckpt mappings check mod", "mappings check model.safetensors"), ("mckpt mappings draw mod", "mappings draw mod")]
    for how in (f"fpath=({site} $fpath); autoload -Uz compinit; compinit -u -D", f"autoload -Uz compinit; compinit -u -D; source {path}"):
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        os.write(fd, f"unsetopt zle_bracketed_paste; PS1=; {how}; mckpt() {{ print -r -- RAN:\"$*\": }}; print -r -- REA''DY\n".encode())
        read_until(fd, b"READY")
        for line, expected in cases:
            os.write(fd, line.encode() + b"\t")
            time.sleep(0.3)
            os.write(fd, b"\n")
            seen = read_until(fd, rb"RAN:[^\r\n]*:")
            check("zsh", line, expected, f"RAN:{expected}".encode() in seen)
        os.close(fd)
        os.waitpid(pid, 0)


with tempfile.TemporaryDirectory() as there:
    os.mkdir(os.path.join(there, "ckpt"))
    open(os.path.join(there, "model.safetensors"), "w").close()
    for name, work in (("fish", fish), ("zsh", zsh)):
        if shutil.which(name):
            tried.append(name)
            work(there)
if not tried:
    print("skipped: neither zsh nor fish is here")
    sys.exit(77)
print("tried", *tried)
sys.exit("\n".join(failures) if failures else 0)
