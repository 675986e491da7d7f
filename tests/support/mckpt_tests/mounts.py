"""File systems of a test's own, in a mount namespace that goes away with it: small ones in memory, and images on loop devices.

    in_own_namespace()                      at the start of the script: it goes on in a namespace, or skips itself
    with mounted("tmpfs", "none", at, "size=1M"): ...
    with image("ext4", at, megabytes=64, options="data=ordered") as disk: disk.cut_power()
"""
import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys

from mckpt_tests.checks import skip

IN_NAMESPACE = "MCKPT_TESTS_IN_NAMESPACE"
SHUTDOWN = 0x8004587D  # _IOR('X', 125, u32): the file system stops as at a power cut
NO_LOG_FLUSH = struct.pack("I", 2)
FICLONE = 0x40049409
MAKERS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
LEAST = {"ext4": 32, "xfs": 320, "btrfs": 128}  # megabytes


def in_own_namespace(as_root=False):
    """`as_root`: loop devices are needed, which a user's namespace has not."""
    if os.environ.get(IN_NAMESPACE):
        return
    if as_root and os.geteuid() != 0:
        skip("only root can mount images")
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"no mount namespace can be made here: {tried.stderr.strip()}")
    os.environ[IN_NAMESPACE] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def mount(kind, source, at, options="", loop=False):
    options = ",".join(o for o in (options, "loop" if loop else "") if o)
    done = subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), source, at], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"mount -t {kind} -o {options} {source}: {done.stderr.strip()}")


def unmount(at):
    subprocess.run(["umount", at], check=True, capture_output=True)


@contextlib.contextmanager
def mounted(kind, source, at, options="", loop=False):
    os.makedirs(at, exist_ok=True)
    mount(kind, source, at, options, loop)
    try:
        yield at
    finally:
        unmount(at)


class Image:
    """A file with a file system in it, mounted at a folder."""

    def __init__(self, kind, file, at, options):
        self.kind, self.file, self.at, self.options = kind, file, at, options
        mount(kind, file, at, options, loop=True)

    def cut_power(self):
        """The disk keeps what it has, the rest is lost, and every later call of the programs that use it fails."""
        fd = os.open(self.at, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(fd)

    def clone_disk(self, file):
        """Writes a copy of the disk as a power cut at this moment leaves it: the bytes that it has, all at one moment. Its folder has to share extents."""
        with open(self.file, "rb") as a, open(file, "wb") as b:
            fcntl.ioctl(b.fileno(), FICLONE, a.fileno())

    def start_again(self, file=None):
        """Mounts what is on the disk, or on a clone of it, which takes its place."""
        unmount(self.at)
        if file:
            os.rename(file, self.file)
        mount(self.kind, self.file, self.at, self.options, loop=True)


@contextlib.contextmanager
def image(kind, folder, name, options="", megabytes=0):
    """An image below a folder, mounted at FOLDER/NAME; a file system that cannot be made or mounted here is an OSError."""
    maker = MAKERS[kind]
    if not shutil.which(maker[0]):
        raise OSError(f"{maker[0]} is not installed")
    file, at = os.path.join(folder, name + ".img"), os.path.join(folder, name)
    os.makedirs(at)
    with open(file, "wb") as f:
        f.truncate(max(megabytes, LEAST[kind]) << 20)
    made = subprocess.run([*maker, file], capture_output=True, text=True)
    if made.returncode != 0:
        raise OSError(f"{maker[0]}: {made.stderr.strip()}")
    disk = Image(kind, file, at, options)
    try:
        yield disk
    finally:
        unmount(at)
        os.remove(file)
