"""A test that goes on in a virtual machine, under a kernel of a distribution, which can do more than the kernel of this machine (NFS).

    in_own_machine()            at the start of the script: it goes on in a machine, or skips itself

The machine sees all files of this one, and writes into memory, which goes away with it. It needs no right but to read the kernel. QEMU computes
what the processor cannot virtualise; the machine is then slower, by ten times or so. Packages that it needs: PACKAGES.
"""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from mckpt_tests.checks import skip
from mckpt_tests.figures import END

IN_MACHINE = "MCKPT_TESTS_IN_MACHINE"
PACKAGES = "qemu-system-x86 linux-image-amd64 busybox-static"
QEMU, BUSYBOX, MODULES = "qemu-system-x86_64", "/bin/busybox", "/lib/modules"
AT_START = ("virtio_pci", "9pnet_virtio", "9p", "overlay")  # modules without which the machine does not see this one's files
UNPACKERS = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}
BESIDE = "/run/machine"  # where the machine sees the folder that the two share
MEGABYTES = 3072
SECONDS = 300  # at least, for the machine and the script

# Makes a root of this machine's files with memory on top, and starts the script there.
INIT = """#!/busybox sh
PATH=/
/busybox mkdir -p /below /top /root
{load}
/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose below /below
/busybox mount -t tmpfs none /top
/busybox mkdir /top/upper /top/work
/busybox mount -t overlay -o lowerdir=/below,upperdir=/top/upper,workdir=/top/work none /root
for it in proc:/proc sysfs:/sys devtmpfs:/dev tmpfs:/tmp tmpfs:/run tmpfs:/dev/shm tmpfs:/var/tmp; do
  /busybox mkdir -p "/root${{it#*:}}"
  /busybox mount -t "${{it%:*}}" none "/root${{it#*:}}"
done
/busybox mkdir /root{beside}
/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 beside /root{beside}
/busybox chroot /root {python} {beside}/start.py
/busybox poweroff -f
"""

START = """import json, os, subprocess
with open({beside!r} + "/job.json") as f:
    job = json.load(f)
with open({beside!r} + "/output", "w") as out:
    status = subprocess.run(job["words"], env=job["environment"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT).returncode
with open({beside!r} + "/status", "w") as f:
    f.write(str(status))
"""


def name_of_module(path):
    return re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(path)).replace("-", "_")


class Kernel:
    """An installed kernel and its modules; `lacks`: the modules that are wanted and not there."""

    def __init__(self, release, wanted):
        self.image, self.modules = f"/boot/vmlinuz-{release}", os.path.join(MODULES, release)
        self.needs = {}
        with open(os.path.join(self.modules, "modules.dep")) as f:
            for line in f:
                path, _, needed = line.partition(":")
                self.needs[path] = needed.split()
        self.paths = {name_of_module(path): path for path in self.needs}
        with open(os.path.join(self.modules, "modules.builtin")) as f:
            self.inside = {name_of_module(line.strip()) for line in f}
        self.lacks = [name for name in wanted if name not in self.paths and name not in self.inside]

    def in_order(self, names):
        """The files of modules, each after those that it needs."""
        order = []
        for name in names:
            if name not in self.inside:
                order += [*reversed(self.needs[self.paths[name]]), self.paths[name]]
        return list(dict.fromkeys(order))

    def code(self, path):
        path = os.path.join(self.modules, path)
        if unpacker := UNPACKERS.get(os.path.splitext(path)[1]):
            return subprocess.run([unpacker, "-dc", path], check=True, capture_output=True).stdout
        with open(path, "rb") as f:
            return f.read()


def kernel_with(wanted):
    """The newest kernel that has these modules; skips the test where there is none."""
    releases = [name for name in os.listdir(MODULES) if os.access(f"/boot/vmlinuz-{name}", os.R_OK)] if os.path.isdir(MODULES) else []
    releases.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    kernels = [Kernel(name, wanted) for name in reversed(releases) if os.path.exists(os.path.join(MODULES, name, "modules.dep"))]
    if found := next((kernel for kernel in kernels if not kernel.lacks), None):
        return found
    why = f"{kernels[0].image} has no module {', '.join(kernels[0].lacks)}" if kernels else "no readable /boot/vmlinuz-* has its modules in /lib/modules"
    skip(f"no kernel for a virtual machine is here: {why} (apt-get install linux-image-amd64)")


def needs_libraries(program):
    with open(program, "rb") as f:
        head = f.read(4096)
    (at,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
    return any(struct.unpack_from("<I", head, at + size * i)[0] == 3 for i in range(count))  # PT_INTERP


def archive(files):
    """A cpio archive: (name, mode, bytes) each."""
    out = io.BytesIO()

    def fill():
        out.write(b"\0" * (-out.tell() % 4))

    for number, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")]):
        name = name.encode() + b"\0"
        fields = (number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        out.write(b"070701" + "".join(f"{field:08X}" for field in fields).encode() + name)
        fill()
        out.write(data)
        fill()
    return out.getvalue()


def first_files(kernel):
    with open(BUSYBOX, "rb") as f:
        busybox = f.read()
    modules = kernel.in_order(AT_START)
    load = "\n".join(f"/busybox insmod /{name_of_module(path)}.ko" for path in modules)
    init = INIT.format(load=load, beside=BESIDE, python=os.path.realpath(sys.executable))
    files = [(name_of_module(path) + ".ko", 0o100644, kernel.code(path)) for path in modules]
    return archive([("busybox", 0o100755, busybox), ("init", 0o100755, init.encode()), *files])


def accelerator():
    """/dev/kvm may be there without the instructions that an ordinary kernel needs: such a machine never starts."""
    with open("/proc/cpuinfo") as f:
        virtual = re.search(r"^flags.*\b(vmx|svm)\b", f.read(), re.M)
    return "kvm" if virtual and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"


def command_of(kernel, folder):
    def shared(name, path, more=""):
        return ["-fsdev", f"local,id={name},path={path},security_model=none,multidevs=remap{more}", "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]

    return [
        *(QEMU, "-accel", accelerator(), "-cpu", "max", "-smp", "2", "-m", str(MEGABYTES)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", f"file:{folder}/console"),
        *("-kernel", kernel.image, "-initrd", f"{folder}/first_files", "-append", "console=ttyS0 panic=-1 quiet"),
        *shared("below", "/", ",readonly=on"),
        *shared("beside", folder),
    ]


def put(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def got(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        return f.read()


def in_own_machine(modules=(), seconds=SECONDS):
    """`modules`: what its kernel has to know. `seconds`: after which the machine is switched off."""
    if os.environ.get(IN_MACHINE):
        return
    if not shutil.which(QEMU) or not os.path.exists(BUSYBOX):
        skip(f"no virtual machine can be made here: apt-get install {PACKAGES}")
    if needs_libraries(BUSYBOX):
        skip(f"{BUSYBOX} needs libraries: apt-get install busybox-static")
    kernel = kernel_with((*AT_START, *modules))
    with tempfile.TemporaryDirectory(prefix="mckpt_machine_") as folder:
        environment = {**os.environ, IN_MACHINE: "1"}
        figures = environment.get("MCKPT_FIGURES")
        if figures:
            environment["MCKPT_FIGURES"] = BESIDE + "/figures"
        put(folder, "first_files", first_files(kernel))
        put(folder, "start.py", START.format(beside=BESIDE).encode())
        put(folder, "job.json", json.dumps({"words": [sys.executable, *map(os.path.abspath, sys.argv[:1]), *sys.argv[1:]], "environment": environment}).encode())
        left = END - time.time() if END != float("inf") else 0
        told = ""
        try:
            told = subprocess.run(command_of(kernel, folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=max(seconds, left + SECONDS)).stderr
        except subprocess.TimeoutExpired:
            told = "the time was over\n"
        print(got(folder, "output"), end="")
        if figures:
            with open(figures, "a") as f:
                f.write(got(folder, "figures"))
        status = got(folder, "status")
        if not status:
            print("The virtual machine has not ended the test:", told, got(folder, "console")[-3000:], sep="\n")
        sys.exit(int(status or 1))
