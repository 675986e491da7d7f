"""A card finds every change of a checkpoint and says where it is: flipped bits of files of four formats; chunks that were
removed, doubled, exchanged, moved or zeroed; missing and additional files. The contents of a card are
compared with hashlib, sha256sum and the rules of OpenSSF model signing. With the standard library alone.
usage: cards_find_every_change.py [FLIPS], by default 600 in all"""
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from mckpt_tests.package import run
from mckpt_tests.setting import BUILD, DATA, TINY_MODEL

import mckpt

FLIPS = int(sys.argv.pop()) if len(sys.argv) > 1 and sys.argv[-1].isdigit() else 600
# The kind of each, and whether the card knows the places of all its tensors.
SOURCES = {"safetensors": TINY_MODEL, "pt": f"{DATA}/pt/training.pt", "views": f"{DATA}/pt/views.pt", "dcp": f"{DATA}/dcp/uneven_tp2dp2"}
if os.path.exists(os.path.join(BUILD, "mckpt-hdf5")):
    SOURCES["hdf5"] = f"{DATA}/hdf5/sample.h5"


def flip(path, at, bit):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << bit]))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Cards(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def copy(self, source, name="copy"):
        """A copy of the source that can be written, with its card."""
        to = self.folder / name
        if os.path.isdir(source):
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("*.expected.json", "*.manifest.json"))
        else:
            to = to.with_suffix(os.path.splitext(source)[1])
            shutil.copy(source, to)
        for top, _, names in os.walk(to):
            for each in names:
                os.chmod(os.path.join(top, each), 0o644)
        card = self.folder / f"{name}.card.json"
        mckpt.verify(to, report=card, progress=False)
        return to, card, json.loads(card.read_text())

    def findings(self, path, card):
        report = mckpt.verify(path, card=card, threads=1, progress=False)
        self.assertEqual(report.as_card, not [f for f in report.findings if not f.warning])
        self.assertEqual((report.ok, report.sound), (report.as_card, False))
        return [] if report.as_card else [f for f in report.findings if not f.warning]

    def file_of(self, path, name):
        return path / name if path.is_dir() else path

    def test_flipped_bits(self):
        found, self.by_values = {"tensor": 0, "other": 0}, 0
        for kind, source in SOURCES.items():
            path, card, content = self.copy(source, kind)
            self.assertEqual(self.findings(path, card), [])
            files = content["predicate"]["resources"]
            r = random.Random(kind)
            chunks = [c for t in content["tensors"] for c in t["chunks"]]
            for number in range(FLIPS // len(SOURCES)):
                file = r.choice([f for f in files if f["bytes"]])
                at, bit = r.randrange(file["bytes"]), r.randrange(8)
                if number % 2:  # every other one in a tensor
                    chunk = r.choice(chunks)
                    file = next(f for f in files if f["name"] == chunk["file"])
                    at = chunk["offset"] + r.randrange(chunk["bytes"])
                where = self.file_of(path, file["name"])
                flip(where, at, bit)
                findings = self.findings(path, card)
                flip(where, at, bit)
                self.assertTrue(findings, f"{kind}: bit {bit} of byte {at} of {file['name']} was not found")
                here = [t for t in content["tensors"] for c in t["chunks"] if c["file"] == file["name"] and c["offset"] <= at < c["offset"] + c["bytes"]]
                found["tensor" if here else "other"] += 1
                self.check_place(findings, file["name"], at, here, kind)
            self.assertEqual(self.findings(path, card), [])
        print(f"{sum(found.values())} flipped bits found: {found['tensor']} in tensors, {found['other']} in headers, padding and other files")
        self.assertGreater(min(found.values()), FLIPS // 5)
        self.assertTrue(self.by_values or "hdf5" not in SOURCES)

    def check_place(self, findings, file, at, here, kind):
        """The finding is about the bytes around the flipped one, and names a tensor that has them; or it is about the values of a
        tensor whose bytes are in places that its format alone knows."""
        by_values = [f for f in findings if f.offset < 0]
        self.assertTrue(not by_values or (kind == "hdf5" and not here), by_values)
        self.by_values += len(by_values)
        findings = [f for f in findings if f.offset >= 0]
        for f in findings:
            self.assertEqual(f.file, file)
            begin, end = re.search(r"bytes? (\d+)(?:\.\.(\d+))?", f.message).groups()
            self.assertTrue(int(begin) <= at <= int(end or begin), f"{kind}: byte {at}: {f.message}")
            names = {f"{t['checkpoint']}: {t['name']}" if t["checkpoint"] else t["name"] for t in here}
            self.assertEqual(f.tensor in names, bool(here), f"{kind}: byte {at}: {f}")
        self.assertEqual(len(findings), len({(c["offset"], c["bytes"]) for t in here for c in t["chunks"] if c["file"] == file and c["offset"] <= at < c["offset"] + c["bytes"]}) or 1)

    def test_places_are_those_of_the_header(self):
        """A safetensors file says itself which bytes are whose."""
        path, _, content = self.copy(TINY_MODEL)
        told = {(c["file"], c["offset"], c["bytes"], c["sha256"], t["name"], t["sha256"]) for t in content["tensors"] for c in t["chunks"]}
        expected = set()
        for name in sorted(os.listdir(path)):
            data = (path / name).read_bytes()
            if not name.endswith(".safetensors"):
                continue
            begin = 8 + int.from_bytes(data[:8], "little")
            for tensor, entry in json.loads(data[8:begin]).items():
                if tensor != "__metadata__":
                    first, last = (begin + at for at in entry["data_offsets"])
                    digest = sha256(data[first:last])
                    expected.add((name, first, last - first, digest, tensor, digest))
        self.assertEqual(told, expected)

    def test_digests_of_tensors(self):
        """Those that `ls --digest` has, whatever pieces the tensors are in."""
        for kind, source in SOURCES.items():
            with mckpt.open(source) as checkpoint:
                expected = {name: checkpoint[name].digest() for name in checkpoint}
            _, _, content = self.copy(source, kind)
            self.assertEqual({t["name"]: t["sha256"] for t in content["tensors"]}, expected)

    def test_files(self):
        for kind, source in SOURCES.items():
            path, _, content = self.copy(source, kind)
            names = {os.path.relpath(os.path.join(top, n), path) for top, _, each in os.walk(path) for n in each} or {path.name}
            resources = content["predicate"]["resources"]
            self.assertEqual({f["name"] for f in resources}, names)
            for f in resources:
                data = self.file_of(path, f["name"]).read_bytes()
                self.assertEqual((f["digest"], f["bytes"]), (sha256(data), len(data)))

    def test_model_signing(self):
        """The statement of OpenSSF model signing, version 1.0 of its predicate."""
        path, card, content = self.copy(TINY_MODEL)
        resources = content["predicate"]["resources"]
        self.assertEqual((content["_type"], content["predicateType"]), ("https://in-toto.io/Statement/v1", "https://model_signing/signature/v1.0"))
        self.assertEqual([f["name"] for f in resources], sorted(f["name"] for f in resources))
        root = sha256(b"".join(bytes.fromhex(f["digest"]) for f in resources))
        self.assertEqual(content["subject"], [{"name": "copy", "digest": {"sha256": root}}])
        self.assertEqual({f["algorithm"] for f in resources}, {"sha256"})
        how = content["predicate"]["serialization"]
        self.assertEqual((how["method"], how["hash_type"], set(how)), ("files", "sha256", {"method", "hash_type", "allow_symlinks", "ignore_paths"}))
        try:
            from model_signing import hashing
            from model_signing._signing import signing
        except ImportError:
            return
        expected = signing.dsse_payload_to_manifest(content)
        self.assertEqual(expected, hashing.Config().use_file_serialization(allow_symlinks=True).hash(path))

    def test_sha256sum(self):
        path, _, _ = self.copy(TINY_MODEL)
        (path / "a name\nof two lines").write_text("x")
        sums, page = path / "SHA256SUMS", self.folder / "page.md"
        mckpt.verify(path, report=[sums, page], progress=False)
        for file in (sums, page):
            check = subprocess.run(["sha256sum", "-c", "--quiet", file], cwd=path, capture_output=True, text=True)
            self.assertEqual((check.returncode, check.stdout), (0, ""), check.stderr)
        self.assertEqual(len([line for line in sums.read_text().splitlines() if not line.startswith("#")]), len(os.listdir(path)) - 1)
        flip(path / "config.json", 5, 1)
        self.assertEqual(subprocess.run(["sha256sum", "-c", "--status", sums], cwd=path).returncode, 1)

    def test_cards_beside_each_other(self):
        path, _, _ = self.copy(TINY_MODEL)
        card = self.folder / "both.json"
        mckpt.verify(path, report=[card, path / "SHA256SUMS", path / "page.md"], progress=False)
        self.assertEqual([], [f for f in mckpt.verify(path, card=card, progress=False).findings if not f.warning])
        (path / "another.md").write_text("x")
        self.assertEqual(["another.md"], [f.file for f in mckpt.verify(path, card=card, progress=False).findings])

    def test_damaged_chunks(self):
        path, card, content = self.copy(f"{DATA}/dcp/uneven_tp2dp2")
        chunks = [(t["name"], c) for t in content["tensors"] for c in t["chunks"]]
        size = max({c["bytes"] for _, c in chunks}, key=lambda n: len({c["sha256"] for _, c in chunks if c["bytes"] == n}))
        (one, a), (other, b) = [(n, c) for n, c in chunks if c["bytes"] == size][:2]
        self.assertNotEqual(a["sha256"], b["sha256"])
        files = {f: (path / f).read_bytes() for f in {a["file"], b["file"]}}
        data_a, data_b = (files[c["file"]][c["offset"]:c["offset"] + size] for c in (a, b))

        def put(*changes):
            now = {f: bytearray(data) for f, data in files.items()}
            for chunk, data in changes:
                now[chunk["file"]][chunk["offset"]:chunk["offset"] + size] = data
            for f, data in now.items():
                (path / f).write_bytes(data)
            return {f.tensor: f.message for f in self.findings(path, card)}

        def moved(change):
            data = bytearray(files[a["file"]])
            change(data)
            (path / a["file"]).write_bytes(data)
            return self.findings(path, card)

        self.assertRegex(put((b, data_a))[other], f"those of tensor '{re.escape(one)}'")
        swapped = put((a, data_b), (b, data_a))
        self.assertEqual(set(swapped), {one, other})
        self.assertRegex(swapped[one], f"those of tensor '{re.escape(other)}'")
        self.assertRegex(put((a, bytes(size)))[one], "all zero")
        put()
        found = moved(lambda d: d.__setitem__(slice(a["offset"], a["offset"]), bytes(64)))  # 64 bytes more before the chunk
        self.assertIn((one, True), [(f.tensor, "moved by 64 bytes" in f.message) for f in found], found)
        found = moved(lambda d: d.__delitem__(slice(a["offset"], a["offset"] + size)))  # the chunk is not there
        self.assertIn(one, [f.tensor for f in found])
        self.assertIn("bytes, but", found[0].message)
        found = moved(lambda d: d.__delitem__(slice(a["offset"] + size // 2, None)))  # the file is cut
        self.assertIn((one, True), [(f.tensor, "the file ends before" in f.message) for f in found], found)
        put()
        self.assertEqual(self.findings(path, card), [])

    def test_missing_and_other_files(self):
        path, card, _ = self.copy(TINY_MODEL)
        (path / "config.json").unlink()
        (path / "model-00003-of-00003.safetensors").write_bytes(b"x")
        (path / ".hidden").write_bytes(b"x")
        report = mckpt.verify(path, card=card, progress=False)
        self.assertFalse(report.ok)
        self.assertEqual([(f.file, f.message, f.warning) for f in report.findings],
                         [("config.json", "the file is missing, but the card lists it", False), (".hidden", "the card does not list the file", True),
                          ("model-00003-of-00003.safetensors", "the card does not list the file", False)])
        self.assertEqual([(c.name, c.status) for c in report.checks], [("files", "fail"), ("digests", "fail")])
        (path / "model-00003-of-00003.safetensors").unlink()
        (path / "config.json").write_bytes(Path(TINY_MODEL, "config.json").read_bytes())
        report = mckpt.verify(path, card=card, progress=False)
        self.assertEqual([(c.name, c.status) for c in report.checks], [("files", "warn"), ("digests", "pass")])
        # A name that is no longer a file of the folder is a finding like others, and the others are found
        # too.
        flip(path / "model-00001-of-00002.safetensors", 5000, 0)
        for make in (os.mkfifo, lambda p: os.symlink("/etc/passwd", p)):
            (path / "config.json").unlink()
            make(path / "config.json")
            report = mckpt.verify(path, card=card, progress=False)
            self.assertEqual([(c.name, c.status) for c in report.checks], [("files", "fail"), ("digests", "fail")])
            self.assertEqual({f.file for f in report.findings if not f.warning}, {"config.json", "model-00001-of-00002.safetensors"})
            self.assertEqual(report.unread, [])

    def test_card_in_its_own_folder(self):
        path, _, _ = self.copy(TINY_MODEL)
        for _ in range(2):  # the second replaces the first, and does not list it
            mckpt.verify(path, report=path / "card.json", progress=False)
        content = json.loads((path / "card.json").read_text())
        self.assertEqual(content["predicate"]["serialization"]["ignore_paths"], ["card.json"])
        self.assertEqual(self.findings(path, path / "card.json"), [])
        self.assertEqual(mckpt.verify(path, card=path / "card.json", progress=False).unread, [])  # the card itself was read
        moved = self.folder / "elsewhere"
        path.rename(moved)
        self.assertEqual(self.findings(moved, moved / "card.json"), [])
        with self.assertRaisesRegex(mckpt.Error, "not a report|is not a card"):
            mckpt.verify(moved, report=moved / "config.json", progress=False)

    def test_cards_that_are_none(self):
        path, card, content = self.copy(TINY_MODEL)
        for change, words in ((lambda c: c["predicate"]["resources"][0].update(digest="0" * 64), "digest over them"),
                              (lambda c: c["predicate"]["resources"][0].update(name="../x"), "leads outside|not allowed|outside"),
                              (lambda c: c["tensors"][0]["chunks"][0].update(bytes=1 << 62), "outside of their file"),
                              (lambda c: c.update(schema="mckpt.verify/1"), "not a card"),
                              (lambda c: c.pop("predicate"), "lacks")):
            other = json.loads(json.dumps(content))
            change(other)
            (self.folder / "other.json").write_text(json.dumps(other))
            with self.assertRaisesRegex(mckpt.Error, words):
                mckpt.verify(path, card=self.folder / "other.json", progress=False)
        (self.folder / "card.md").write_text("<!-- mckpt.card/1 -->\n")
        with self.assertRaises(mckpt.Error) as raised:
            mckpt.verify(path, card=self.folder / "card.md", progress=False)
        self.assertIn("NAME.json", raised.exception.help)
        with self.assertRaisesRegex(mckpt.Error, "of a folder"):
            mckpt.verify(path / "config.json", card=card, progress=False)

    def test_conversions_have_cards(self):
        """The tensors of an export have the digests of those that were converted."""
        _, _, original = self.copy(TINY_MODEL)
        card = self.folder / "fsdp.json"
        made = mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, card=card, progress=False)
        content = json.loads(card.read_text())
        self.assertEqual((content["ok"], content["made_of"], content["against"]), (None, [TINY_MODEL], None))
        self.assertIn("45 in -> 41 out", content["plan"])
        self.assertEqual(self.findings(Path(made.output), card), [])
        self.assertEqual(self.findings(self.folder / "ckpt", card), [])  # whose tracker file names the result
        mckpt.export(made.output, self.folder / "hf", card=[self.folder / "hf.json", self.folder / "hf.md"], progress=False)
        exported = json.loads((self.folder / "hf.json").read_text())
        self.assertEqual({t["name"]: t["sha256"] for t in exported["tensors"]}, {t["name"]: t["sha256"] for t in original["tensors"]})
        self.assertIn("not checked: the digests alone were taken", (self.folder / "hf.md").read_text())
        mckpt.verify(self.folder / "hf", TINY_MODEL, report=self.folder / "equal.json", progress=False)
        equal = json.loads((self.folder / "equal.json").read_text())
        self.assertEqual((equal["ok"], equal["against"]), (True, {"source": TINY_MODEL, "equal": True, "tensors": 45, "rounded": 0}))

    def test_a_missing_card_is_told_with_its_result(self):
        target = self.folder / "pub"
        with self.assertRaisesRegex(mckpt.Error, f"the result is published as {target}/release; only its card is missing: ") as raised:
            mckpt.convert(TINY_MODEL, target, to="fsdp", card=self.folder / ("c" * 246 + ".json"), progress=False)
        self.assertEqual((raised.exception.status, raised.exception.notes), (5, []))
        self.assertTrue(mckpt.verify(target, TINY_MODEL, progress=False).ok)


run()
