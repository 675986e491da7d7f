"""faults/lost_rank on GPUs, two ranks with one each: ranks are killed, and work of NCCL fails where the library that makes it fail is built. For scripts/trust;
the tests of a build with NCCL have both as faults/nccl_fault and by hand."""

import glob
import os
import subprocess
import sys

from mckpt_tests.setting import BUILD

LOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lost_rank.py")
words = [sys.executable, LOST, "--device", "cuda", "--ranks", "2", "--tp", "2", "--vocab-size", "auto", "--rank-timeout", "6", "--repeat", "20"]
status = subprocess.run([*words, "--kills", "10", "--seconds", "20"]).returncode
fault = glob.glob(os.path.join(BUILD, "tests", "**", "*nccl_fault*.so"), recursive=True)
nccl = glob.glob(os.path.join(sys.prefix, "lib", "python3*", "site-packages", "nvidia", "nccl", "lib", "libnccl.so.2"))
if status == 0 and fault and nccl:
    status = subprocess.run([*words, "--kills", "3", "--nccl-fault", f"{fault[0]}:{nccl[0]}"]).returncode
sys.exit(status)
