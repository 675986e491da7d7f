"""A family without a new rule is two files: its table, and its word in the registry. This adds one so, in a copy, and links it with the libraries as they are:
its config is read, its tensors are paired, its facts are there. A family that needs another file fails here.

The third file of a family that is added for good is its golden ranks (docs/adding_a_model.md); README's row is written by family_facts.py.
"""

import os
import shutil
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.setting import BUILD, SANITIZED, SOURCE

MOST = 3  # with its golden ranks
TABLE = """
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};
constexpr std::string_view kTypes[] = {"dummy"};
constexpr ConfigStep kConfig[] = {text({.kv_groups = 8}), size(kFfn, "dummy_width"), layers()};
constexpr Family kFamilies[] = {
    {.name = "dummy",
     .model_types = kTypes,
     .architecture = "DummyForCausalLM",
     .summary = "a family that nobody has",
     .sections = kSections,
     .config = kConfig,
     .facts = {"dummy/Dummy-1B", "fp8", "tp2"}},
};

}  // namespace

std::span<const Family> dummy_families() { return kFamilies; }

}  // namespace mckpt::impl
"""
MAIN = """
#include <iostream>

#include "core/base/error.h"
#include "hf/config/json.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_table.h"
#include "mappings/registry.h"

using namespace mckpt::impl;

int main() try {
  const HfConfig c = read_hf_config(R"({"model_type": "dummy", "vocab_size": 64, "hidden_size": 16, "num_attention_heads": 4,
      "num_key_value_heads": 2, "num_hidden_layers": 2, "dummy_width": 48})");
  check_family(*c.family);
  const ModelMap map = ModelMap::promised(c.model, *c.family, {});
  std::cout << c.family->name << " " << c.model.text.ffn << " " << map.sources().size() << " " << c.family->facts.examples << " "
            << family_named("DummyForCausalLM").name << "\\n";
} catch (const Error& e) {
  std::cout << e.what() << "\\n";
  return 1;
}
"""
EDITS = {
    "mappings/models/dummy.cc": lambda _: TABLE,
    "mappings/models/families.h": lambda text: text.replace("#define MCKPT_FAMILY_TABLES(NAME) \\\n", "#define MCKPT_FAMILY_TABLES(NAME) \\\n  NAME(dummy) \\\n"),
}

compiler = os.environ.get("CXX") or shutil.which("c++")
libraries = [os.path.join(BUILD, p) for p in ("lib/hf/libmckpt_hf.a", "lib/io/libmckpt_io.a", "mappings/libmckpt_mappings.a", "lib/core/libmckpt_core.a",
                                              "lib/runtime/system/libmckpt_system.a")]
if SANITIZED or not compiler or not all(map(os.path.exists, libraries)):
    skip("it needs a compiler and the libraries of a plain build")
expect(len(EDITS) + 1 <= MOST, f"a family is {len(EDITS) + 1} files")
with tempfile.TemporaryDirectory() as scratch:
    shutil.copytree(os.path.join(SOURCE, "mappings"), os.path.join(scratch, "mappings"))
    for path, edit in EDITS.items():
        at = os.path.join(scratch, path)
        before = open(at).read() if os.path.exists(at) else ""
        after = edit(before)
        expect(after != before, f"{path} was not changed")
        with open(at, "w") as f:
            f.write(after)
    with open(os.path.join(scratch, "main.cc"), "w") as f:
        f.write(MAIN)
    program = os.path.join(scratch, "program")
    made = subprocess.run(
        [compiler, "-std=c++20", "-O0", f"-I{scratch}", f"-I{SOURCE}/lib", f"-I{SOURCE}", os.path.join(scratch, "main.cc"),
         os.path.join(scratch, "mappings/registry.cc"), os.path.join(scratch, "mappings/models/dummy.cc"), "-Wl,--start-group", *libraries, "-Wl,--end-group",
         "-Wl,--allow-multiple-definition",  # of the registry: in a unified build its neighbours come with the old one, and the new one is first
         "-ldl", "-lpthread", *[f"-l{name}" for name in ("deflate", "z") if os.path.exists(f"/usr/lib/x86_64-linux-gnu/lib{name}.so")], "-o", program],
        capture_output=True, text=True, timeout=300)
    if expect(made.returncode == 0, made.stderr[-2000:]):
        answer = subprocess.run([program], capture_output=True, text=True, timeout=60)
        expect(answer.stdout == "dummy 48 21 dummy/Dummy-1B dummy\n", answer.stdout + answer.stderr)
finish(5)
