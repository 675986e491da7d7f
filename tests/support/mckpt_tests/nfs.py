"""An NFS server in a virtual machine, and folders of it that are mounted there: over the loopback, all in one kernel.

    with Server(folder) as server:
        with server.mounted(at, "vers=4.2") as far: ...
        server.stop(), server.start()           goes away and comes back, with all that it had made durable
"""

import contextlib
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time

from mckpt_tests.checks import skip
from mckpt_tests.mounts import mounted

MODULES = ("nfs", "nfsv3", "nfsv4", "nfsd", "lockd", "ext4", "loop")
PACKAGES = "nfs-kernel-server"
TOOLS = ("rpcbind", "rpc.statd", "rpc.mountd", "rpc.nfsd", "nfsdcld", "exportfs", "mount.nfs", "modprobe")


def need():
    """The modules that a kernel must have; skips the test where a tool is missing."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        skip(f"{', '.join(missing)} is not here: apt-get install {PACKAGES}")
    return MODULES


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")


def prepare():
    """The machine knows NFS, and has a network of its own."""
    for module in MODULES:
        run("modprobe", module)
    start_loopback()


def start_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack_from("16sh", fcntl.ioctl(s, 0x8913, request.ljust(40, b"\0")))[1]  # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", flags | 1).ljust(40, b"\0"))  # SIOCSIFFLAGS, IFF_UP


class Server:
    """Serves a folder to this machine."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        os.makedirs("/run/rpc_pipefs", exist_ok=True)
        for folder in ("/var/lib/nfs/sm", "/var/lib/nfs/v4recovery", "/var/lib/nfs/nfsdcld"):
            os.makedirs(folder, exist_ok=True)
        run("mount", "-t", "rpc_pipefs", "none", "/run/rpc_pipefs")
        run("mount", "-t", "nfsd", "none", "/proc/fs/nfsd")
        with open("/proc/sys/fs/nfs/nlm_grace_period" if os.path.exists("/proc/sys/fs/nfs/nlm_grace_period") else "/dev/null", "w") as f:
            f.write("10")
        for name in ("nfsv4gracetime", "nfsv4leasetime"):
            with open("/proc/fs/nfsd/" + name, "w") as f:
                f.write("10")
        run("rpcbind", "-w")
        run("rpc.statd", "--no-notify")
        run("nfsdcld")
        run("rpc.mountd")
        run("exportfs", "-i", "-o", "rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0", f"*:{self.folder}")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        run("rpc.nfsd", "4")

    def stop(self):
        run("rpc.nfsd", "0")

    @contextlib.contextmanager
    def mounted(self, at, options):
        source = "127.0.0.1:" + (self.folder if "vers=3" in options else "/")
        with mounted("nfs", source, at, options):
            yield at
