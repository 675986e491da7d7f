"""Runs the program on a terminal of a given width: what a person sees of it."""
import fcntl
import os
import pty
import re
import struct
import termios

from mckpt_tests.setting import MCKPT


def on_terminal(*args, columns=80, cwd=None, env=None, stdout=None):
    """Exit status, and all that was written to the terminal. `stdout`: a file that takes the answer instead."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            if stdout:
                os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
            os.chdir(cwd or ".")
            os.execve(MCKPT, [MCKPT, *map(str, args)], {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **(env or {})})
        finally:
            os._exit(126)
    seen = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the program has ended
            break
        if not part:
            break
        seen += part
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), seen.decode("utf-8", "replace")


def screen_lines(text):
    """The lines without colours; what a carriage return begins anew counts as a line of its own."""
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", text)
    return [part for line in plain.replace("\r\n", "\n").split("\n") for part in line.split("\r")]
