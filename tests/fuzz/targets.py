"""How a fuzz target is run: its seeds, its folder, libFuzzer's options. `run` and executions.py share it."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "fuzz")
PROGRAMS = os.path.join(BUILD, "fuzz")
WORK = os.path.join(BUILD, "corpus")
MOST_BYTES = 16384


def targets(programs=PROGRAMS):
    return sorted(name.removesuffix("_fuzz") for name in (os.listdir(programs) if os.path.isdir(programs) else []) if name.endswith("_fuzz"))


def prepare(target, work=WORK):
    """Makes the seeds and the dictionary; what grew in earlier runs stays."""
    folder = os.path.join(work, target)
    os.makedirs(os.path.join(folder, "grown"), exist_ok=True)
    subprocess.run([sys.executable, os.path.join(HERE, "seeds.py"), target, os.path.join(folder, "seeds"), os.path.join(folder, "words.dict")], check=True)


def command(target, options, programs=PROGRAMS, work=WORK):
    """For `prepare`d targets. Later options replace earlier ones."""
    folder = os.path.join(work, target)
    return [os.path.join(programs, target + "_fuzz"), os.path.join(folder, "grown"), os.path.join(folder, "seeds"),
            f"-dict={folder}/words.dict", f"-max_len={MOST_BYTES}", "-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=256",
            "-print_final_stats=1", f"-artifact_prefix={folder}/", *options]
