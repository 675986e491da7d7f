"""Packs folders of cases into one archive for each group, GROUP.tar.xz: python pack.py CASES OUT [GROUP...].

CASES has a folder for each case; the letters before the first `_` of its name are its group. Programs that DeepSpeed puts beside
its checkpoints are left out. The same cases give the same bytes."""

import io
import lzma
import os
import sys
import tarfile

LEFT_OUT = {"zero_to_fp32.py", "zero_to_torch.py"}


def files_below(folder):
    """Every file, and every folder that is empty (some writers leave such), by its path from `folder`; folders end in "/"."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        here = os.path.relpath(root, folder)
        if not folders and not names:
            yield here + "/"
        for name in sorted(set(names) - LEFT_OUT):
            yield os.path.normpath(os.path.join(here, name))


def pack(cases, names, out):
    blob = io.BytesIO()
    with tarfile.open(fileobj=blob, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            for path in files_below(os.path.join(cases, name)):
                entry = tarfile.TarInfo(os.path.join(name, path).rstrip("/"))
                if path.endswith("/"):
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
                    continue
                entry.size, entry.mode = os.path.getsize(os.path.join(cases, name, path)), 0o644
                with open(os.path.join(cases, name, path), "rb") as f:
                    tar.addfile(entry, f)
    with open(out, "wb") as f:
        f.write(lzma.compress(blob.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    cases, out, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    groups = {}
    for name in sorted(os.listdir(cases)):
        if os.path.exists(os.path.join(cases, name, "case.json")):
            groups.setdefault(name.split("_")[0], []).append(name)
    for group, names in groups.items():
        if not only or group in only:
            pack(cases, names, os.path.join(out, group + ".tar.xz"))
