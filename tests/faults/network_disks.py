"""Sources and results on a file system of another host: conversions of every kind give the same bytes there, from there and to there, and an
interrupted one goes on. The file system is SFTP over a pipe (sshfs), or the one that holds $MCKPT_NETWORK_FOLDER (Lustre, GPFS, ...); NFS: nfs_disks.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from mckpt_tests.checks import finish, skip
from mckpt_tests.mounts import in_own_namespace, unmount
from mckpt_tests.network_walk import network_runs, walk

SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
GIVEN = os.environ.get("MCKPT_NETWORK_FOLDER")


@contextlib.contextmanager
def sshfs(server, behind, at):
    """Mounts the folder `behind` at `at`, through a server of its own that talks over two pipes."""
    to_server, from_client = os.pipe()
    to_client, from_server = os.pipe()
    serving = subprocess.Popen([server], stdin=to_server, stdout=from_server)
    client = subprocess.Popen(["sshfs", "-f", "-o", "passive", f":{behind}", at], stdin=to_client, stdout=from_client)
    for fd in (to_server, from_client, to_client, from_server):
        os.close(fd)
    for _ in range(100):
        if os.path.ismount(at) or client.poll() is not None:
            break
        time.sleep(0.1)
    try:
        if not os.path.ismount(at):
            skip("sshfs does not mount here")
        yield at
    finally:
        if os.path.ismount(at):
            unmount(at)
        client.wait(30)
        serving.kill()
        serving.wait()


@contextlib.contextmanager
def network_folder():
    if GIVEN:
        with tempfile.TemporaryDirectory(prefix="mckpt_network_", dir=GIVEN) as at:
            yield at
        return
    server = next((path for path in SERVERS if os.path.exists(path)), None)
    if not server or not shutil.which("sshfs") or not os.path.exists("/dev/fuse"):
        skip("sshfs, sftp-server or /dev/fuse is not here")
    in_own_namespace(as_root=True)
    with tempfile.TemporaryDirectory(prefix="mckpt_network_") as folder:
        behind, at = os.path.join(folder, "behind"), os.path.join(folder, "at")
        os.mkdir(behind), os.mkdir(at)
        with sshfs(server, behind, at):
            yield at


def kind_of(at):
    return subprocess.run(["stat", "-f", "-c", "%T", at], capture_output=True, text=True).stdout.strip()


with network_folder() as far, network_runs() as runs:
    kind = kind_of(far)
    walk(runs, far, f"a network file system ({'SFTP' if 'fuse' in kind else kind})")
finish(12)
