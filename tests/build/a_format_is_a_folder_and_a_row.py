"""A new format costs a folder with its reader, a row of the table, and its line in the list of sources: no other file.

usage: MCKPT_SOURCE=FOLDER a_format_is_a_folder_and_a_row.py BUILD

In a copy of the sources a format "Dummy" is added so. Its two files are compiled with the flags of the build, and linked in front of the
library with a program that opens a dummy file and lists what people are shown. If the table needs more than the row, this does not compile,
or does not find the file."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["MCKPT_SOURCE"], sys.argv[1]

READER = """// A format for a test: "DUMMY" and then the bytes of one tensor "all".
#include "io/file/file.h"
#include "io/store/open/format_ids.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

class DummyStore final : public Store {
 public:
  DummyStore(const std::string& path, const OpenOptions& opening) {
    root_ = path, opening_ = opening, format_ = Format::kDummy;
    dims_[0] = InputFile(path, opening).size() - 5;
    files_.push_back({"", dims_[0] + 5});
  }
  i64 tensor_count() const override { return 1; }
  std::string_view name(i64) const override { return "all"; }
  DType dtype(i64) const override { return DType::kU8; }
  std::span<const i64> dims(i64) const override { return dims_; }
  i64 chunk_count(i64) const override { return 1; }
  Chunk chunk(i64, i64) const override { return {.offsets = zero_offsets(1), .sizes = dims_, .file = 0}; }
  ChunkData resolve(i64, i64) const override { return {.file = 0, .offset = 5, .dtype = DType::kU8}; }

 private:
  i64 dims_[1];
};

}  // namespace

std::unique_ptr<Store> open_dummy(const std::string& path, const OpenOptions& opening) {
  return std::make_unique<DummyStore>(path, opening);
}

}  // namespace mckpt::impl
"""

ROW = """OPENER(open_dummy)
DRIVER(kDummy,
       .name = "Dummy",
       .recognised_by = "DUMMY in its first 5 bytes",
       .is_file = [](const FileLook& f) { return f.begins_with("DUMMY"); },
       .open_file = open_dummy)
"""

PROGRAM = """#include <cstdio>

#include "io/store/store.h"

int main(int, char** argv) {
  using namespace mckpt::impl;
  const auto store = open_store(argv[1]);
  std::printf("%s %lld\\n", store->driver().name.data(), static_cast<long long>(store->dims(0)[0]));
  for (const Driver& d : all_drivers())
    if (!d.recognised_by.empty()) std::printf("%s\\n", d.name.data());
}
"""


def add_format(root):
    """The edits of a person: returns the files that it takes."""
    os.makedirs(os.path.join(root, "lib/io/dummy"))
    with open(os.path.join(root, "lib/io/dummy/dummy.cc"), "w") as f:
        f.write(READER)
    table = os.path.join(root, "lib/io/store/open/drivers.inc")
    text = open(table).read()
    assert text.count("#undef DRIVER\n") == 1
    open(table, "w").write(text.replace("#undef DRIVER\n", ROW + "#undef DRIVER\n"))
    build = os.path.join(root, "lib/io/CMakeLists.txt")
    text = open(build).read()
    open(build, "w").write(text.replace("  file/crc32.cc\n", "  dummy/dummy.cc\n  file/crc32.cc\n"))
    assert "dummy/dummy.cc" in open(build).read()


def changed_files(root):
    out = []
    for top, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(top, name), root)
            theirs = os.path.join(SOURCE, path)
            if not os.path.exists(theirs) or open(theirs, "rb").read() != open(os.path.join(root, path), "rb").read():
                out.append(path)
    return sorted(out)


def flags_of(target):
    """The compiler and its flags for the files of a library, without what names inputs and outputs."""
    for entry in json.load(open(os.path.join(BUILD, "compile_commands.json"))):
        if f"/{target}.dir/" in entry["command"] and entry["file"].endswith((".cc", ".cxx")) and "cmake_pch" not in entry["file"]:
            words = shlex.split(entry["command"])
            for option in ("-o", "-c", "-MF", "-MT"):
                while option in words:
                    at = words.index(option)
                    del words[at:at + 2]
            return [w for w in words if w != "-MD" and not w.endswith((".cc", ".cxx"))], entry["directory"]
    sys.exit(f"the build does not compile {target}")


with tempfile.TemporaryDirectory() as folder:
    root = os.path.join(folder, "tree")
    shutil.copytree(os.path.join(SOURCE, "lib"), os.path.join(root, "lib"))
    add_format(root)
    changed = changed_files(root)
    print("a format takes:", ", ".join(changed))
    assert len(changed) == 3, "a format takes more than its folder, its row and its line in the list of sources"

    words, where = flags_of("mckpt_io")
    # the copy is looked in first, for its headers and its table
    words = [words[0], f"-I{root}/lib", *[w for w in words[1:]]]
    with open(os.path.join(folder, "main.cc"), "w") as f:
        f.write(PROGRAM)
    objects = []
    for source in (os.path.join(folder, "main.cc"), f"{root}/lib/io/dummy/dummy.cc", f"{root}/lib/io/store/open/drivers.cc"):
        objects.append(os.path.join(folder, os.path.basename(source) + ".o"))
        subprocess.run([*words, "-c", source, "-o", objects[-1]], check=True, cwd=where)
    libraries = []
    # below lib/: the folder of a build may have other builds in it
    for top, _, names in os.walk(os.path.join(BUILD, "lib")):
        libraries += [os.path.join(top, n) for n in names if re.fullmatch(r"libmckpt_(io|core|system)\.a", n)]
    program = os.path.join(folder, "program")
    more = [lib for lib in ("-ldeflate",) if "DMCKPT_LIBDEFLATE" in " ".join(words)]
    sanitizers = [w for w in words if w.startswith("-fsanitize")]
    subprocess.run([words[0], *sanitizers, *objects, "-Wl,--start-group", *libraries, "-Wl,--end-group", "-lz", *more, "-lpthread",
                    "-Wl,--allow-multiple-definition",  # of the table: in a unified build its neighbours come with the old one, and the new one is first
                    "-ldl", "-o", program], check=True)
    file = os.path.join(folder, "a.dummy")
    with open(file, "wb") as f:
        f.write(b"DUMMY" + bytes(7))
    out = subprocess.run([program, file], check=True, capture_output=True, text=True).stdout.splitlines()
    assert out[0] == "Dummy 7", out
    assert "Dummy" in out[1:] and "safetensors" in out[1:], out
print("opened as its row says")
