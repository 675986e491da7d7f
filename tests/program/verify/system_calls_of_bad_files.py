"""The system calls of `verify` and `inspect` over every case of test_data/bad_files: no program is started but the HDF5 helper, nothing is
opened for writing but /dev/null, nothing is connected, made, renamed or removed, whatever the file says.
"""

import os
import re
import shutil
import subprocess
import tempfile

from mckpt_tests import bad_files
from mckpt_tests.checks import expect, finish, in_parallel, skip
from mckpt_tests.figures import counted, so_many, some_of
from mckpt_tests.setting import MCKPT, SANITIZED

WATCHED = ("execve,execveat,socket,connect,bind,sendto,open,openat,openat2,creat,truncate,ftruncate,fallocate,unlink,unlinkat,rename,renameat,renameat2,"
           "mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,ptrace,mount,kill,tgkill")
HELPER = os.path.join(os.path.dirname(MCKPT), "mckpt-hdf5")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")


def unexpected(line):
    """Whether a traced call is none of those that looking takes."""
    found = re.match(r"\d+ +(\w+)\((.*)", line)
    if not found:
        return False
    name, rest = found[1], found[2]
    if name in ("execve", "execveat"):
        return not (f'"{MCKPT}"' in rest or HELPER in rest)
    if name in ("open", "openat", "openat2"):
        return WRITES.search(rest) is not None and '"/dev/null"' not in rest
    return name not in ("kill", "tgkill") or "SIGKILL" not in rest  # the helper is ended by force where it does not end


if SANITIZED:
    skip("the sanitizers make calls of their own")
if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
    skip("strace is not installed, or cannot trace here")
cases = bad_files.cases()
with bad_files.unpacked() as folder:
    seen = set()

    def trace(command, path):
        log = tempfile.NamedTemporaryFile("r", dir=folder)
        subprocess.run(["strace", "-f", "-qq", "-o", log.name, "-e", "trace=" + WATCHED, MCKPT, *command, path], capture_output=True, cwd=folder, stdin=subprocess.DEVNULL, timeout=100)
        lines = log.read().splitlines()
        seen.update(re.match(r"\d+ +(\w+)", line)[1] for line in lines if re.match(r"\d+ +(\w+)\(", line))
        return lines

    def check(case, command):
        path = os.path.join(folder, case["copy"], os.path.relpath(case["open"], case["copy"])) if "open" in case else os.path.join(folder, case["copy"])
        lines = trace(command, path)
        wrong = [line for line in lines if unexpected(line)]
        count.one(expect(lines and not wrong, f"{case['id']}: {command[0]}: {wrong[:3]}"))

    with counted("P1", "system calls of `verify` and `inspect` over bad files: no program, connection, or write", so_many(2 * len(cases), None)) as count:
        in_parallel(check, some_of([(case, command) for case in cases for command in (["verify"], ["inspect", "--args"])], 60))
    expect({"execve", "openat2"} <= seen, f"the calls that are seen: {seen}")
    # A command that writes is seen to write.
    lines = trace(["example"], os.path.join(folder, "example"))
    expect(sum(map(unexpected, lines)) > 3, f"writing is not seen: {lines[-5:]}")
finish(60)
