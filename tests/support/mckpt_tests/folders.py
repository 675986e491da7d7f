"""Folders of checkpoints: made, listed, compared byte by byte; tensors as they are stored."""
import json
import os
import struct
import tempfile


def scratch():
    """A folder in memory where there is one: these tests write much and keep nothing."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="mckpt_made_", dir=memory if os.access(memory, os.W_OK) else None)


def scratch_paths():
    """The function that gives the path of names in a scratch folder, which is there as long as the function."""
    folder = scratch()
    return lambda *names: os.path.join(folder.name, *names)


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


def same_bytes(a, b):
    """Read, and not looked at: on NFS the size of a file may be one of a moment ago until the file is opened."""
    with open(a, "rb") as one, open(b, "rb") as other:
        while (data := one.read(1 << 20)) == other.read(1 << 20):
            if not data:
                return True
    return False


def difference(a, b, but=()):
    """The first thing in which two folders differ; "" where they hold the same bytes under the same names, but for files of
    some names that `a` may have."""
    names = [name for name in files_of(a) if name not in but]
    if names != files_of(b):
        return f"other files: {sorted(set(names) ^ set(files_of(b)))[:5]}"
    for name in names:
        if not same_bytes(os.path.join(a, name), os.path.join(b, name)):
            return name
    return ""


def snapshot(folder):
    """Every name below a folder with what tells that it was touched."""
    out = {}
    for root, folders, names in os.walk(folder):
        for name in folders + names:
            st = os.lstat(os.path.join(root, name))
            out[os.path.relpath(os.path.join(root, name), folder)] = (st.st_ino, st.st_mtime_ns, st.st_size if name in names else 0)
    return out


def data_offset(file, record):
    """Where the bytes of the tensor lie whose record in a .distcp file begins at `record`."""
    with open(file, "rb") as f:
        f.seek(record)
        head = f.read(4096)
    name = b"archive/data/0"
    at = head.index(name)
    extra = int.from_bytes(head[at - 2:at], "little")  # the last field of the local header is the length of what follows the name
    return record + at + len(name) + extra


def safetensors(folder):
    """name -> (type, shape, bytes) of all files of a folder."""
    tensors = {}
    for file in sorted(name for name in os.listdir(folder) if name.endswith(".safetensors")):
        with open(os.path.join(folder, file), "rb") as f:
            blob = f.read()
        n = struct.unpack("<Q", blob[:8])[0]
        tensors.update((name, (t["dtype"], t["shape"], blob[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]))
                       for name, t in json.loads(blob[8:8 + n]).items() if name != "__metadata__")
    return tensors


def write_safetensors(path, tensors):
    """name -> (type, shape, bytes), in one file."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
