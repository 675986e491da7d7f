"""Control groups of memory, version 1 or 2: a command in one has this much memory and no more, its page cache included."""

import contextlib
import os
import resource
import subprocess

from mckpt_tests.checks import skip

V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"


@contextlib.contextmanager
def memory_group(limit_bytes):
    """Yields a function that starts commands in the group; skips the test where no group can be made."""
    own = f"mckpt_tests_{os.getpid()}"
    v1 = os.path.exists(os.path.join(V1, "memory.limit_in_bytes"))
    group = os.path.join(V1 if v1 else V2, own)
    try:
        os.mkdir(group)
        limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if v1 else ("memory.max", "memory.swap.max")
        for name, value in zip(limits, (limit_bytes, limit_bytes if v1 else 0)):
            path = os.path.join(group, name)
            if os.path.exists(path) or name == limits[0]:
                with open(path, "w") as f:
                    f.write(str(value))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(group)
        skip(f"no control group of memory can be made here: {error}")

    def run(*words, **how):
        """The finished command, with `peak_bytes`: its most resident memory."""

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen(list(map(str, words)), preexec_fn=enter, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **how)
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        done = subprocess.CompletedProcess(words, process.returncode, out, err)
        done.peak_bytes = usage.ru_maxrss << 10
        return done

    try:
        yield run
    finally:
        os.rmdir(group)
