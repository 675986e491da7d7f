"""Pickles beside a model are found by their bytes, whatever their names, and what they would run is said; nothing is run. Code
that trust_remote_code runs is called code.
"""

import json
import os
import pickle
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

folder = scratch()
top = os.path.join(folder.name, "model")
shutil.copytree(os.path.join(DATA, "models", "tiny_qwen3_moe"), top)
marker = os.path.join(folder.name, "it_ran")


class Hostile:
    def __reduce__(self):
        return os.system, (f"touch {marker}",)


def put(name, content):
    with open(os.path.join(top, name), "wb") as f:
        f.write(content)


def verify(status):
    result = run_mckpt("verify", top, "--json")
    expect(result.returncode == status, f"exit status {result.returncode}, not {status}: {result.stdout[-800:]}")
    answer = json.loads(result.stdout)
    return answer, {f["file"]: f for f in answer["findings"]}, {u["path"]: u["reason"] for u in answer["unread"]}


# A file that is not a pickle stays among the files that were not read.
put("notes", b"I am no pickle.\n")
put("cat.txt", b"cats\nand dogs\n.")
put("table.csv", b"]a,b\n1,2\n")
put("noise.bin2", bytes(range(256)) * 4)
put("archive.zip2", b"PK\x03\x04 not an archive")
_, findings, unread = verify(0)
expect(not findings, f"{findings}")
expect(set(unread) == {"notes", "cat.txt", "table.csv", "noise.bin2", "archive.zip2"}, f"{unread}")

hostile = {f"weights.{protocol}": pickle.dumps(Hostile(), protocol=protocol) for protocol in range(6)}
hostile["weights.joblib"] = pickle.dumps({"array": [1, 2], "cb": Hostile()}, protocol=4)
hostile["noext"] = pickle.dumps([Hostile()], protocol=0)
for name, content in hostile.items():
    put(name, content)
_, findings, unread = verify(1)
for name in hostile:
    expect(findings.get(name, {}).get("code") == "MC1213", f"{name}: {findings.get(name)}, {unread.get(name, 'read')}")
expect(not os.path.exists(marker), "a payload ran")
text = run_mckpt("verify", top).stdout
expect("system" in text and "noext" in text, text[-800:])
for name in hostile:
    os.remove(os.path.join(top, name))

put("states.joblib", pickle.dumps({"mean": [1.0, 2.0]}, protocol=4))
put("cut.joblib", pickle.dumps({"mean": list(range(1000))}, protocol=4)[:-40])
_, findings, unread = verify(0)
expect("states.joblib" not in unread and "states.joblib" not in findings, f"{unread}, {findings}")
expect("not read to its end" in findings.get("cut.joblib", {}).get("message", ""), f"{findings}")
os.remove(os.path.join(top, "cut.joblib"))

put("modeling_x.py", b"import os\n")
_, _, unread = verify(0)
expect(unread.get("modeling_x.py") == "code", f"{unread}")
config = os.path.join(top, "config.json")
with open(config) as f:
    told = json.load(f)
told["auto_map"] = {"AutoModelForCausalLM": "modeling_x.Model"}
with open(config, "w") as f:
    json.dump(told, f)
_, findings, unread = verify(0)
expect(unread.get("modeling_x.py") == "code, which runs with trust_remote_code", f"{unread}")
expect(findings["config.json"]["code"] == "MC1115" and findings["config.json"]["warning"], f"{findings}")
expect("modeling_x.py (code, which runs with trust_remote_code" in run_mckpt("verify", top).stdout, "text")
finish(10)
