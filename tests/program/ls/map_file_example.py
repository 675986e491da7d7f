"""The map file that docs/adding_a_model.md shows, on a model that has such names: it reads it as the table reads the same
model under its own names. Without it, and with one that is wrong, the model is refused.
"""
import json
import os

from mckpt_tests.checks import expect_equal
from mckpt_tests.golden import finish, listing
from mckpt_tests.models import example, renamed_models
from mckpt_tests.program import run_mckpt

models, source, mine = renamed_models()


def map_file(text):
    path = os.path.join(models.root.name, "rows.json")
    with open(path, "w") as f:
        f.write(text)
    return path


def refused(what, code, *args):
    answer = listing(mine, "--as", "megatron", *args)
    expect_equal(what, [code in answer if isinstance(answer, str) else "accepted"], [True])


grid = ("--tp", 2, "--rank", 1, "--vocab-size", "auto")
for how in ("megatron", "fsdp"):
    got = listing(mine, "--as", how, "--map-file", map_file(example()), *grid)
    expect_equal(how, got, listing(source, "--as", how, *grid))
check = run_mckpt("mappings", "check", mine, "--map-file", map_file(example()))
expect_equal("mappings check", [check.returncode, "computed again from the config" in check.stderr], [0, True])

# A row that is fp32 at run time, in a model of bf16.
fc2 = {"megatron": "decoder.layers.{L}.mlp.linear_fc2.weight", "rule": "row", "hugging_face": [["model.layers.{L}.mlp.down_proj.weight", "hidden ffn"]]}
wide = listing(source, "--as", "megatron", "--map-file", map_file(json.dumps({"rows": [fc2 | {"fp32": True}]})), *grid)
kinds = sorted({(".linear_fc2." in row["name"], row["dtype"]) for row in wide})
expect_equal("an fp32 row", kinds, [(False, "bfloat16"), (True, "float32")])

refused("without it", "MC2005")
without_unread = {"rows": json.loads(example())["rows"]}
refused("without the unread tensor", "MC2005", "--map-file", map_file(json.dumps(without_unread)))
# A tensor under `unread` is read by no row of the model. A head that a row reads only in some models may be named.
contradiction = json.loads(example())
contradiction["unread"].append({"name": "model.norm.weight", "reason": "of another model"})
refused("an unread tensor that a row reads", "MC2009", "--map-file", map_file(json.dumps(contradiction)))
contradiction["unread"][-1] = {"name": "lm_head.weight", "copy_of": "model.embed_tokens.weight", "reason": "tied"}
got = listing(mine, "--as", "megatron", "--map-file", map_file(json.dumps(contradiction)), *grid)
expect_equal("an unread tensor that a row may read", got, listing(source, "--as", "megatron", *grid))
twice = json.loads(example())
twice["rows"].insert(0, twice["rows"][0] | {"hugging_face": twice["rows"][0]["hugging_face"][::-1]})
refused("two rows of one parameter", "MC2009", "--map-file", map_file(json.dumps(twice)))
wrong = [
    ("a rule that is not there", "MC0001", '"gated_mlp"', '"gated_mpl"'),
    ("a word that is not there", "MC2009", '"ffn hidden"', '"fnn hidden"'),
    ("a number on one side only", "MC2009", "model.layers.{L}.mlp.w1", "model.layers.mlp.w1"),
    ("a split that is not there", "MC2009", '"swiglu"', '"swigloo"'),
    ("no rule for two sources", "MC2009", '"rule": "gated_mlp",', ""),
    ("a row that is not there", "MC2009", "mlp.linear_fc1.weight", "mlp.linear_fc3.weight"),
    ("a key that is not there", "MC2009", '"split"', '"splits"'),
    ("a rule and its dimension", "MC2009", '"split": "swiglu"', '"partition_dim": 0'),
    ("a control character in a name", "MC2009", "mlp.w1", "mlp.\\u001b[31mw1"),
    ("no JSON", "MC1003", "{", "("),
]
for what, code, old, new in wrong:
    assert old in example(), old
    refused(what, code, "--map-file", map_file(example().replace(old, new)))
finish(84)
