"""Nothing under lib/ and mappings/ has variables that a whole process shares, or reads the environment: what the program
decides is passed in. Prints what breaks this. The exceptions are listed here, with their reasons in docs/decisions.md.
"""
import re
import sys

from mckpt_tests.sources import product_files, read

# file -> what it may have, as the lines say it
JUSTIFIED = {
    "lib/api/c_python.cc": ["mckpt_python python{};"],
    "lib/io/hdf5/helper.cc": ['const char* libraries = std::getenv("LD_LIBRARY_PATH");'],
    "lib/live/cuda/functions.cc": ["static std::mutex mutex;", "static auto& opened = *new std::map<int, std::unique_ptr<Gpu>>;"],
    "lib/live/cuda/kernel.cc": ["static Compiled compiled;"],
    "lib/live/cuda/nccl_module.cc": ['setenv("NCCL_NVLS_ENABLE", "0", 0);'],
    "lib/runtime/comm/mpi_module.cc": ["static MPI_Comm all = MPI_COMM_WORLD;"],
    "lib/runtime/modules/module.cc": ["static std::mutex mutex;", "static std::map<std::string, Module, std::less<>> loaded;"],
    "lib/runtime/modules/module_guard.h": ["static thread_local std::string text;"],
}

ENVIRONMENT = re.compile(r"\b(secure_)?(get|set|put|unset)env\b|\benviron\b")
CONSTANT = re.compile(r"\b(constexpr|consteval|const)\b")
STATIC = re.compile(r"^\s*(inline )?(static|thread_local)\b(?P<rest>.*)")
# A function has parameters with types, or none; a variable may have values in parentheses.
FUNCTION = re.compile(r"^[^=({;]*\w\((\)|[\w:<>, ]+[&* ]+\w*[,)= ]|[\w:<>, &*]*$)|operator")
# Declarations of the namespace begin in the first column.
AT_NAMESPACE = re.compile(r"^(inline )?(?!return\b|using\b|class\b|struct\b|enum\b|union\b|namespace\b|typedef\b|template\b|friend\b)"
                          r"[A-Za-z_][\w:<>,*& ]* [*&]?[a-z_]\w*(\[\w*\])?( = .*|\{.*\})?;$")

def is_shared(line):
    """Whether the line of code declares a variable of the process or of a thread that can change."""
    code = line.split("//")[0].rstrip()
    if static := STATIC.match(code):
        return not (CONSTANT.search(code.split("=")[0]) or FUNCTION.match(static["rest"]))
    return bool(AT_NAMESPACE.match(code)) and not CONSTANT.search(code)

SAMPLES = {
    "std::atomic<bool> links_are_followed = false;": True, "Table* current;": True, "int counts[8];": True,
    "  static std::map<std::string, int, std::less<>> known;": True, "  thread_local int used = -1;": True,
    "  static Job own(read_launch(), 1);": True, "  static Table table{1};": True, "  inline static int made = 0;": True,
    "constexpr int kMost = 3;": False, "  static constexpr int kMost = 3;": False, "  static const bool has_sha = look();": False,
    "  static Sha256 portable();": False, "  static i64 tensor_bytes(const Store& store, i64 tensor);": False,
    "  static u64 dtype_row(PickleValue dtype);  // the row": False, "class Store;": False, "using Names = Set<int>;": False,
    "  static i64 row_of(PickleValue object, Kind kind, std::string_view what, std::string_view name = {}) {": False,
    "  static ModelMap promised(ModelConfig model, const Family& family, const MapOptions& options = {});": False,
    "  return out;": False, "int default_threads();": False,
}

def main():
    wrong = [f"the test takes '{line}' for {'a constant' if shared else 'a variable'}" for line, shared in SAMPLES.items()
             if is_shared(line) != shared]
    for file in product_files(".h", ".cc", ".cu"):
        if file.startswith("tools/"):
            continue
        allowed = list(JUSTIFIED.get(file, []))
        for number, line in enumerate(read(file).splitlines(), 1):
            code = line.split("//")[0]
            if not is_shared(line) and not ENVIRONMENT.search(code):
                continue
            if code.strip() in allowed:
                allowed.remove(code.strip())
            else:
                wrong.append(f"{file}:{number}: {line.strip()}")
        wrong += [f"{file} has no '{text}' any more: take it off the list JUSTIFIED" for text in allowed]
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
