"""Files of the product have at most 400 lines, headers 120, and lines of comments 110 columns, pictures apart. Prints what else
says how easy the tree is to read: how deep files include each other, and the share of comments."""
import re
import statistics
import sys

from mckpt_tests.sources import include_graph, product_files, read

MOST, MOST_OF_A_HEADER, MOST_COLUMNS = 400, 120, 110

# Headers that hold one type with its parts, or one table. One that no longer is long must leave this list.
LONG_HEADERS = set("""
lib/convert/keys/stored_chunks.h
lib/convert/views/piece_store.h
lib/io/pickle/arena.h
lib/io/pickle/machine.h
lib/io/pickle/value.h
lib/io/store/store.h
lib/live/model/model.h
mappings/config.h
mappings/models/blocks.h
mappings/models/deepseek.h
""".split())


# A change of these begins the counts of fuzzed inputs anew (tests/fuzz/executions.py): their lines stay as they are.
COUNTED = ("lib/io/json/", "lib/io/pickle/", "lib/io/safetensors/", "lib/io/zip/")

MADE = {"lib/convert/own/disk_table.inc", "lib/hf/adapter/lora/tied_classes.inc"}  # by a program


def is_sentence(line):
    """Whether the line is one of comment, and not a part of a picture, which has columns."""
    return re.match(r"\s*// \S", line) is not None and not re.search(r"\S {2,}\S", line.lstrip())


def include_depths(graph):
    """file -> how many files follow one another below it"""
    depths = {}

    def depth(file):
        if file not in depths:
            depths[file] = 0  # a file that includes itself has no depth
            depths[file] = max((1 + depth(target) for target in graph[file]), default=0)
        return depths[file]

    for file in graph:
        depth(file)
    return depths


def main():
    wrong, comments, filled = [], 0, 0
    for file in product_files(".h", ".cc", ".cu", ".inc"):
        lines = read(file).splitlines()
        if file in MADE:
            continue
        comments += sum(line.lstrip().startswith("//") for line in lines)
        if not file.startswith(COUNTED):
            wrong += [f"{file}:{number}: a line of comment has {len(line)} columns; at most {MOST_COLUMNS}"
                      for number, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS and is_sentence(line)]
        filled += sum(bool(line.strip()) for line in lines)
        if len(lines) > MOST:
            wrong.append(f"{file} has {len(lines)} lines; at most {MOST}")
        if file.endswith(".h") and (len(lines) > MOST_OF_A_HEADER) != (file in LONG_HEADERS):
            wrong.append(f"{file} has {len(lines)} lines; " + (
                "take it off the list LONG_HEADERS" if file in LONG_HEADERS else f"at most {MOST_OF_A_HEADER} for a header"))
    for file in product_files(".js", ".css"):
        if len(read(file).splitlines()) > MOST:
            wrong.append(f"{file} has more than {MOST} lines")
    missing = LONG_HEADERS - set(product_files(".h"))
    wrong += [f"{file} is not there any more: take it off the list LONG_HEADERS" for file in sorted(missing)]

    graph = include_graph()
    depths = sorted(depth for file, depth in include_depths(graph).items() if file.endswith((".cc", ".cu")))
    print(f"{len(graph)} files; include depth of .cc files: {statistics.median(depths):g} at the median, {depths[-1]} at most; "
          f"comment lines: {100 * comments / filled:.1f} %")
    print("\n".join(wrong))
    return bool(wrong) or len(graph) < 100


sys.exit(main())
