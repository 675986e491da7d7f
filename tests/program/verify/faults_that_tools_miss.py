"""Faults that other tools pass over with exit status 0, made by hand: mckpt tells each, with the place."""

import io
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
import zipfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, MCKPT

TRAINING = os.path.join(DATA, "pt/training.pt")
FOLDER = os.path.join(DATA, "dcp/fsdp2")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)


def safetensors(tensors):
    """{name: (dtype, shape, bytes)} as a file."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def payload_at(archive, record):
    """Where the bytes of a stored zip record begin."""
    info = zipfile.ZipFile(io.BytesIO(archive)).getinfo(record)
    name, extra = struct.unpack("<HH", archive[info.header_offset + 26 : info.header_offset + 30])
    return info.header_offset + 30 + name + extra


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_mckpt(self, *args):
        return run_mckpt(*args, timeout=60)

    def verify(self, path):
        """The findings that are not warnings; the exit status must go with them."""
        run = self.run_mckpt("verify", path, "--json")
        findings = [f for f in json.loads(run.stdout)["findings"] if not f["warning"]]
        self.assertEqual(run.returncode, 1 if findings else 0, run.stdout)
        return findings

    def only_finding(self, path, code):
        [finding] = self.verify(path)
        self.assertEqual(finding["code"], code)
        return finding

    def test_a_chunk_that_is_gone_from_metadata_is_a_hole(self):
        path = os.path.join(DATA, "dcp/variations/hole")
        finding = self.only_finding(path, "MC1304")
        self.assertEqual(finding["tensor"], "w")
        self.assertIn("offsets [5, 0], sizes [3, 4]", finding["message"])
        shown = self.run_mckpt("inspect", path, "--map", "--ascii")
        self.assertEqual(shown.returncode, 1)
        self.assertIn("## !!  a hole", shown.stdout)

    def test_b_flipped_bit_of_a_distcp_file_names_the_tensor(self):
        path = self.path("ckpt")
        shutil.copytree(FOLDER, path)
        tensors = json.loads(self.run_mckpt("ls", path, "--json").stdout)["tensors"]
        name, chunk = next((t["name"], c) for t in tensors for c in t["chunks"] if min(c["sizes"], default=1) > 0)
        file = os.path.join(path, chunk["file"])
        content = bytearray(read(file))
        begin, end = chunk["offset"], chunk["offset"] + chunk["bytes"]
        archive = bytes(content[begin:end])
        record = next(n for n in zipfile.ZipFile(io.BytesIO(archive)).namelist() if n.endswith("/data/0"))
        content[begin + payload_at(archive, record)] ^= 1
        write(file, content)
        finding = self.only_finding(path, "MC1203")
        self.assertEqual((finding["tensor"], finding["file"]), (name, chunk["file"]))

    def test_c_flipped_bit_of_a_pt_file_names_the_tensor(self):
        content = bytearray(read(TRAINING))
        content[payload_at(bytes(content), "training/data/0")] ^= 1
        write(self.path("flip.pt"), content)
        [finding] = [f for f in self.verify(self.path("flip.pt")) if f["code"] != "MC1304"]  # it is one rank's file
        self.assertEqual(finding["code"], "MC1203")
        self.assertEqual(finding["tensor"], "model.language_model.embedding.word_embeddings.weight")

    def test_d_nan_and_infinity_of_bf16_are_found_with_their_index(self):
        values = struct.pack("<8H", 0x3F80, 0, 0, 0, 0, 0x7FC0, 0, 0xFF80)
        write(self.path("nan.safetensors"), safetensors({"w": ("BF16", [2, 4], values), "ok": ("BF16", [2], values[:4])}))
        finding = self.only_finding(self.path("nan.safetensors"), "MC1008")
        self.assertEqual(finding["tensor"], "w")
        rows = json.loads(self.run_mckpt("stats", self.path("nan.safetensors"), "--json").stdout)["tensors"]
        found = {r["name"]: (r["nan"], r["first_nan"], r["inf"], r["first_inf"]) for r in rows}
        self.assertEqual(found, {"w": (1, [1, 1], 1, [1, 3]), "ok": (0, None, 0, None)})

    def test_e_half_a_safetensors_file_is_refused_with_both_sizes(self):
        whole = safetensors({f"layers.{i}.w": ("F32", [16], bytes(64)) for i in range(19)})
        write(self.path("half.safetensors"), whole[: len(whole) - 12 * 64])
        for command in ("inspect", "ls", "stats"):
            run = self.run_mckpt(command, self.path("half.safetensors"))
            self.assertEqual((run.returncode, run.stdout), (3, ""))
            for words in (
                "error[MC1101]",
                f"expected {len(whole)} bytes",
                f"found    {len(whole) - 768} bytes",
                "7 of 19 tensors are whole; 12 are not",
                "the first tensor that is cut: layers.7.w",
            ):
                self.assertIn(words, run.stderr)
        self.only_finding(self.path("half.safetensors"), "MC1101")

    def test_f_half_a_pt_file_is_refused(self):
        content = read(TRAINING)
        write(self.path("half.pt"), content[: len(content) // 2])
        run = self.run_mckpt("inspect", self.path("half.pt"))
        self.assertEqual(run.returncode, 3)
        self.assertIn("error[MC1201]", run.stderr)
        self.only_finding(self.path("half.pt"), "MC1201")

    def test_g_equal_names_and_shapes_with_other_values_have_other_digests(self):
        def digests(value):
            path = self.path("values.safetensors")
            write(path, safetensors({"a": ("BF16", [2], bytes(4)), "b": ("BF16", [2], struct.pack("<2H", 0, value))}))
            return {t["name"]: t["sha256"] for t in json.loads(self.run_mckpt("ls", path, "--json", "--digest").stdout)["tensors"]}

        one, other = digests(0x3F80), digests(0x3F81)
        self.assertEqual(one["a"], other["a"])
        self.assertNotEqual(one["b"], other["b"])

    def test_i_j_pickle_that_calls_is_told_and_not_run(self):
        canary = self.path("canary")
        calls = f"cbuiltins\nopen\n(V{canary}\nVw\ntR."
        with zipfile.ZipFile(self.path("evil.pt"), "w") as archive:
            archive.writestr("evil/data.pkl", b"\x80\x02" + calls.encode())
            archive.writestr("evil/version", "3\n")
        for command in (["inspect"], ["inspect", "--args"], ["ls"], ["stats"], ["verify"]):
            run = self.run_mckpt(*command, self.path("evil.pt"))
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("builtins.open", run.stdout + run.stderr)
            self.assertFalse(os.path.exists(canary), f"{command} ran the pickle")
        self.only_finding(self.path("evil.pt"), "MC1213")

    def test_k_what_a_training_loop_saves_is_seen_in_parts(self):
        answer = json.loads(self.run_mckpt("inspect", TRAINING, "--json").stdout)
        self.assertEqual({part: n["tensors"] for part, n in answer["parts"].items()}, {"model": 1, "optimizer": 3, "other": 1})
        self.assertLess({"args", "iteration", "checkpoint_version"}, {o["name"] for o in answer["objects"]})

    def test_m_a_pipe_that_closes_ends_it_quietly(self):
        many = {f"layers.{i}.w": ("F32", [1], bytes(4)) for i in range(5000)}
        write(self.path("many.safetensors"), safetensors(many))
        for command in (["ls"], ["ls", "--jsonl"], ["ls", "--json"], ["inspect", "--tree"], ["stats", "--jsonl"]):
            run = subprocess.Popen(
                [MCKPT, *command, self.path("many.safetensors")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            run.stdout.read(10)
            run.stdout.close()
            self.assertEqual(run.stderr.read(), "", command)
            run.stderr.close()
            self.assertIn(run.wait(timeout=60), (0, 128 + signal.SIGPIPE), command)

    def test_no_look_changes_a_file(self):
        path = self.path("ckpt")
        shutil.copytree(FOLDER, path)
        files = sorted(os.listdir(path))
        before = [(read(os.path.join(path, f)), os.stat(os.path.join(path, f)).st_mtime_ns) for f in files]
        for command in (["inspect", "--args"], ["ls", "--digest"], ["stats"], ["verify"]):
            self.assertEqual(self.run_mckpt(*command, path).returncode, 0)
        self.assertEqual(sorted(os.listdir(path)), files)
        self.assertEqual([(read(os.path.join(path, f)), os.stat(os.path.join(path, f)).st_mtime_ns) for f in files], before)


if __name__ == "__main__":
    unittest.main()
