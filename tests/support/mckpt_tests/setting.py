"""Where things are: the program that is tested, what was built beside it, the source tree. Everything follows from
$MCKPT (by default build/mckpt), so that a test can be run by hand:

    PYTHONPATH=tests/support MCKPT=build/mckpt .venv/bin/python tests/judges/torch_files.py
"""
import os

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DATA = os.path.join(SOURCE, "test_data")
MPIRUN = os.path.join(SOURCE, "scripts", "mpirun")
TINY_MODEL = os.path.join(DATA, "models", "tiny_qwen3_moe")

MCKPT = os.path.abspath(os.environ.get("MCKPT") or os.path.join(SOURCE, "build", "mckpt"))
BUILD = os.path.dirname(MCKPT)
HAS_MPI = os.path.exists(os.path.join(BUILD, "libmckpt_mpi.so"))
SANITIZED = bool(os.environ.get("MCKPT_SANITIZE"))  # the program starts slowly then, and takes more memory
PRELOADS = "address" not in os.environ.get("MCKPT_SANITIZE", "")  # the runtime of that sanitizer wants to be loaded first
SHARE = 10 if SANITIZED else 100  # of what there is to try, in percent


def built(name):
    """A program or library that is built for tests alone."""
    return os.path.join(BUILD, "tests", "support", name)


GOLDEN_MODEL = built("golden_model")
FAULTY_IO = built("libfaulty_io.so")
FAULTY_MEMORY = built("libfaulty_memory.so")
