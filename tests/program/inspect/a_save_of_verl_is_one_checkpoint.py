#!/usr/bin/env python3
"""A save of verl 0.9 of a Megatron run: every command takes the run, the step and the role; the list of
contents decides what is there, not the folders; without it the save is unfinished. `verify` of a step goes
over all roles, whatever is beside them."""
import json
import os
import shutil
import tarfile
import tempfile
import unittest

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

CASES = "M_verl2_both_w2", "M_verl2_hf_w2", "M_verl2_w2"


class Verl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with tarfile.open(os.path.join(DATA, "newest", "M.tar.xz")) as tar:
            tar.extractall(cls.folder.name, [m for m in tar.getmembers() if m.name.split("/")[0] in (*CASES, "M_verl1_w2")], filter="data")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_of(self, case):
        """A copy of the run of a case, which the test may change."""
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        run = os.path.join(work.name, "run")
        shutil.copytree(os.path.join(self.folder.name, case, "ckpt"), run)
        return run

    def names(self, path):
        done = run_mckpt("ls", path, "--digest", "--jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted((row["name"], row.get("digest")) for row in map(json.loads, done.stdout.splitlines()) if "name" in row)

    def test_what_the_list_names_is_there(self):
        """The model as Hugging Face has it, beside the shards that are opened, and files of settings."""
        sound = self.run_of("M_verl2_both_w2")
        self.assertEqual(run_mckpt("verify", sound).returncode, 0)
        for lost, word in (("model/huggingface/model.safetensors", "problem"), ("model/huggingface/config.json", "warning"), ("transformer_config.json", "warning")):
            run = self.run_of("M_verl2_both_w2")
            os.remove(os.path.join(run, "global_step_7", "actor", lost))
            for path in (run, os.path.join(run, "global_step_7"), os.path.join(run, "global_step_7", "actor")):
                done = run_mckpt("verify", path)
                self.assertEqual(done.returncode, int(word == "problem"), f"{lost}: {done.stdout}")
                self.assertIn(f"{word}[MC1302]: {lost.removesuffix('/model.safetensors')}: ckpt_contents.json lists", done.stdout)
            self.assertEqual(run_mckpt("verify", run, "--strict").returncode, 1)

    def test_an_entry_that_cannot_be_read_does_not_end_the_checks(self):
        run = self.run_of("M_verl2_both_w2")
        actor = os.path.join(run, "global_step_7", "actor")
        path = os.path.join(actor, "ckpt_contents.json")
        with open(path) as f:
            contents = json.load(f)
        os.remove(os.path.join(actor, "model/huggingface/config.json"))
        os.remove(os.path.join(actor, "transformer_config.json"))
        for entry, value, word, other in (
            ("hf_config", None, "warning", "the settings of the run"),
            ("hf_config", {"path": "model/.."}, "warning", "the settings of the run"),
            ("transformer_config", {"path": 1}, "warning", "the config of the model"),
            ("hf_model", None, "problem", "the config of the model"),
        ):
            with open(path, "w") as f:
                json.dump(contents | {"contents": contents["contents"] | {entry: value}}, f)
            done = run_mckpt("verify", run)
            self.assertEqual(done.returncode, int(word == "problem"), f"{entry} {value}: {done.stdout} {done.stderr}")
            self.assertRegex(done.stdout, rf"{word}\[MC\d+\]: [^:]*ckpt_contents.json: ", f"{entry} {value}")
            self.assertIn(f"lists {other}", done.stdout, f"{entry} {value}")

    def refused(self, path, *words):
        for command in ("inspect", "ls", "verify"):
            done = run_mckpt(command, path)
            self.assertNotEqual(done.returncode, 0, command)
            for word in words:
                self.assertIn(word, done.stdout + done.stderr, command)

    def test_run_step_and_role_are_the_same_checkpoint(self):
        for case, sections in ((CASES[0], 44), (CASES[1], 47), (CASES[2], 14)):
            run = self.run_of(case)
            of_run = self.names(run)
            self.assertEqual(len(of_run), sections, case)
            for below in ("global_step_7", "global_step_7/actor"):
                self.assertEqual(self.names(os.path.join(run, below)), of_run, f"{case} {below}")
                self.assertEqual(run_mckpt("verify", os.path.join(run, below)).returncode, 0, f"{case} {below}")

    def test_empty_folders_mean_nothing(self):
        run = self.run_of(CASES[0])
        want = self.names(run)
        for folder in ("critic/model/dist_ckpt", "actor/dist_ckpt", "actor/model/huggingface/adapter"):
            os.makedirs(os.path.join(run, "global_step_7", folder))
        self.assertEqual(self.names(run), want)

    def test_unfinished_without_the_list(self):
        run = self.run_of(CASES[0])
        os.remove(os.path.join(run, "global_step_7/actor/ckpt_contents.json"))
        for below in ("", "global_step_7", "global_step_7/actor"):
            self.refused(os.path.join(run, below), "MC1302", "ckpt_contents.json")
        self.assertEqual(run_mckpt("inspect", os.path.join(run, "global_step_7/actor/model/dist_ckpt")).returncode, 0)

    def test_a_part_that_the_list_names_is_missed(self):
        run = self.run_of(CASES[0])
        shutil.rmtree(os.path.join(run, "global_step_7/actor/optimizer/dist_ckpt"))
        os.mkdir(os.path.join(run, "global_step_7/actor/optimizer/dist_ckpt"))
        self.refused(run, "MC1302", "optimizer")

    def test_the_configuration_of_the_run_is_compared(self):
        for case in ("M_verl1_w2", CASES[0], CASES[2]):
            actor = os.path.join(self.run_of(case), "global_step_7/actor")
            assets = os.path.join(self.folder.name, case, "assets")
            places = [actor, *(p for p in (actor + "/dist_ckpt", actor + "/model/dist_ckpt") if os.path.isdir(p))]
            path = os.path.join(actor, "transformer_config.json")
            with open(path) as f:
                config = json.load(f)
            for entries, code, status in (
                ({}, None, 0),
                ({"layernorm_epsilon": 3e-5}, "layernorm_epsilon is 3e-05 in transformer_config.json of the run, and 1e-05 by config.json (rms_norm_eps)", 0),
                ({"layernorm_zero_centered_gamma": True}, "layernorm_zero_centered_gamma True, as in transformer_config.json of", 4),
                ({"num_query_groups": 4}, "num_query_groups 4, as in transformer_config.json of", 4),
                ({"layernorm_epsilon": 3e-5, "num_layers": "four"}, None, 0),
                ({"layernorm_epsilon": [3e-5]}, None, 0),
            ):
                with open(path, "w") as f:
                    json.dump({**config, **entries}, f)
                for place in places:
                    done = run_mckpt("export", place, os.path.join(self.folder.name, "out"), "--assets", assets, "--dry-run")
                    self.assertEqual(done.returncode, status, f"{place} {entries} {done.stderr}")
                    self.assertEqual("MC2015" in done.stderr, code is not None, f"{place} {entries} {done.stderr}")
                    self.assertIn(code or "", done.stderr, f"{place} {entries}")
                    told = run_mckpt("verify", place, "--assets", assets)
                    self.assertEqual((told.returncode, "MC2015" in told.stdout), (int(status > 0), code is not None), f"{place} {entries} {told.stdout}")
            with open(path, "w") as f:
                f.write("[")
            self.assertNotIn("MC2015", run_mckpt("export", actor, os.path.join(self.folder.name, "out"), "--assets", assets, "--dry-run").stderr)

    def test_another_layout_is_named(self):
        run = self.run_of(CASES[2])
        path = os.path.join(run, "global_step_7/actor/ckpt_contents.json")
        with open(path) as f:
            contents = json.load(f)
        for field, value in (("schema_version", 3), ("framework", "fsdp2"), ("contents", [])):
            with open(path, "w") as f:
                json.dump(contents | {field: value}, f)
            self.refused(run, "MC1112", field)
        # A part in a format that is not read: the rest of the save is not a checkpoint.
        for part in ("model", "optimizer"):
            for form in ({"format": "megatron_fsdp_checkpoint"}, {"format": None}):
                changed = contents["contents"] | {part: contents["contents"][part] | form}
                with open(path, "w") as f:
                    json.dump(contents | {"contents": changed}, f)
                self.refused(run, "MC1112", f"a format of contents.{part} that is")

    def test_weights_as_hugging_face_alone_are_the_model(self):
        run = self.run_of(CASES[1])
        out = os.path.join(os.path.dirname(run), "out")
        done = run_mckpt("convert", "to-mcore", run, out, "--no-sync")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not read: global_step_7/actor/extra/dist_ckpt, global_step_7/actor/optimizer/dist_ckpt", done.stdout + done.stderr)

    def test_shards_and_hugging_face_are_equal_in_both_orders(self):
        one, other = self.run_of(CASES[1]), self.run_of(CASES[2])
        for a, b in ((one, other), (other, one)):
            done = run_mckpt("diff", a, b)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("equal: all ", done.stdout)

    def test_verify_of_a_step_goes_over_all_roles(self):
        run = self.run_of(CASES[2])
        step = os.path.join(run, "global_step_7")
        shutil.copytree(os.path.join(step, "actor"), os.path.join(step, "critic"))
        with open(os.path.join(step, "data.pt"), "wb") as f:
            f.write(b"\x80\x02}q\x00.")
        done = run_mckpt("verify", step)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 checkpoints, each sound", done.stdout)
        with open(os.path.join(step, "critic/model/dist_ckpt/__0_0.distcp"), "r+b") as f:
            f.seek(2000)
            f.write(b"\xff" * 64)
        self.assertEqual(run_mckpt("verify", step).returncode, 1)


if __name__ == "__main__":
    unittest.main()
