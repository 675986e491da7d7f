"""Workflows, action.yml and the YAML of the pages have what GitHub asks for; their scripts can be read by bash and call only
scripts that are there; and no text of an expression becomes part of a script."""
import glob
import os
import re
import subprocess

from mckpt_tests.checks import expect, finish
from mckpt_tests.github_yaml import load, load_file
from mckpt_tests.setting import SOURCE

JOB_KEYS = {"name", "needs", "if", "runs-on", "container", "timeout-minutes", "permissions", "env", "strategy", "steps"}
STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "shell", "env", "working-directory"}
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.S)
CONTEXTS = {"github", "inputs", "steps", "needs", "env", "matrix", "runner", "secrets"}


def check_expressions(where, tree, known):
    """Every ${{ ... }} is a plain value of a context, or a comparison of one; inputs and steps are there."""
    for text in re.findall(r"\$\{\{.*?\}\}", str(tree)):
        inside = EXPRESSION.match(text)[1]
        value = re.match(r"([a-z]+)((?:\.[\w-]+)+)(?: == '[\w-]*')?$", inside)
        if expect(value and value[1] in CONTEXTS, f"{where}: {text} is no plain value of a context"):
            first = value[2].split(".")[1]
            expect(value[1] not in known or first in known[value[1]], f"{where}: {text}: there is no {first}")


def check_steps(where, steps, known, composite=False):
    expect(isinstance(steps, list) and steps, f"{where} has no steps")
    known = {**known, "steps": {step.get("id") for step in steps}}
    for number, step in enumerate(steps):
        at = f"{where}, step {number} ({step.get('name', step.get('uses'))})"
        expect(not set(step) - STEP_KEYS, f"{at}: unknown keys {set(step) - STEP_KEYS}")
        expect(("uses" in step) != ("run" in step), f"{at}: one of uses and run")
        check_expressions(at, {key: step[key] for key in step if key not in ("run", "if")}, known)
        for word in re.findall(r"inputs\.([\w-]+)", str(step.get("if", ""))):
            expect(word in known.get("inputs", ()), f"{at}: there is no input {word}")
        if "uses" in step:
            expect(re.fullmatch(r"\./|[\w.-]+/[\w./-]+@v\d+(\.\d+)*", step["uses"]), f"{at}: {step['uses']} has no version")
            continue
        script = step["run"]
        expect("name" in step, f"{at}: a script has a name")
        expect(not composite or step.get("shell") == "bash", f"{at}: a step of an action says its shell")
        expect("${{" not in script, f"{at}: the text of an expression would be part of the script; hand it over in env")
        read = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=60)
        expect(read.returncode == 0, f"{at}: {read.stderr}")
        for name in re.findall(r"(?:^|[\s/\"])((?:scripts|\.ci)/[\w-]+)", script):
            expect(os.access(os.path.join(SOURCE, name), os.X_OK), f"{at}: {name} is no program")


def check_jobs(where, jobs, complete=True):
    for name, job in jobs.items():
        at = f"{where}: {name}"
        expect(not set(job) - JOB_KEYS, f"{at}: unknown keys {set(job) - JOB_KEYS}")
        expect(isinstance(job.get("runs-on"), str), f"{at} has no runs-on")
        expect(not complete or isinstance(int(job.get("timeout-minutes", 0)) or None, int), f"{at} may hang for six hours without timeout-minutes")
        needs = job.get("needs", [])
        for other in [needs] if isinstance(needs, str) else needs:
            expect(other in jobs, f"{at} needs {other}, which is no job")
        check_steps(at, job["steps"], {"needs": set(needs)})


def check_workflow(name):
    workflow = load_file(name)
    expect(not {"name", "on", "jobs", "permissions"} - set(workflow), f"{name} lacks one of name, on, jobs, permissions")
    expect(not set(workflow) - {"name", "on", "jobs", "permissions", "concurrency", "env", "defaults"}, f"{name}: unknown keys: {list(workflow)}")
    expect(workflow["permissions"] == {"contents": "read"}, f"{name}: jobs that write say so themselves")
    check_expressions(name, {key: workflow[key] for key in workflow if key != "jobs"}, {})
    check_jobs(name, workflow["jobs"])


def check_action():
    action = load_file("action.yml")
    expect(set(action) == {"name", "description", "inputs", "outputs", "runs"}, f"action.yml: keys {list(action)}")
    for name, entry in action["inputs"].items():
        expect("description" in entry and ("default" in entry) != (entry.get("required") == "true"), f"action.yml: input {name}: a description, and a default or required")
    runs = action["runs"]
    expect(runs["using"] == "composite", "action.yml is a composite action")
    check_steps("action.yml", runs["steps"], {"inputs": set(action["inputs"])}, composite=True)
    check_expressions("action.yml", action["outputs"], {"steps": {step.get("id") for step in runs["steps"]}})
    return set(action["inputs"])


def check_pages(inputs):
    """YAML of the pages; uses of the action name inputs that it has, and the page that describes it names them all."""
    for path in ["README.md", *glob.glob("docs/**/*.md", root_dir=SOURCE, recursive=True)]:
        with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
            text = f.read()
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S):
            tree = load(block)
            check_jobs(path, tree["jobs"], complete=False)
            for job in tree["jobs"].values():
                for step in job["steps"]:
                    if "/mckpt@" in step.get("uses", ""):
                        expect(set(step["with"]) <= inputs and "path" in step["with"], f"{path}: {step['with']} are no inputs of action.yml")
    with open(os.path.join(SOURCE, "docs/ci_users.md"), encoding="utf-8") as f:
        table = set(re.findall(r"^\| `([\w-]+)` \|", f.read(), re.M))
    expect(table == inputs, f"docs/ci_users.md describes {sorted(table)}, action.yml has {sorted(inputs)}")


workflows = glob.glob(".github/workflows/*.y*ml", root_dir=SOURCE)
expect(workflows, "there are no workflows")
for name in workflows:
    check_workflow(name)
check_pages(check_action())
finish(60)
