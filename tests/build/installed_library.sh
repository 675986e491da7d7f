#!/usr/bin/env bash
# Programs outside the tree are built against what `cmake --install` puts down, and work; also after the folder
# was moved. usage: installed_library.sh BUILD_FOLDER CXX_COMPILER
set -euo pipefail
[ -z "${MCKPT_SANITIZE:-}" ] || { echo "skipped: a library with sanitizers cannot be linked into any program"; exit 77; }
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
build=$1 compiler=$2
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$t/first" >"$t/log" || { cat "$t/log"; fail "cmake --install"; }
mv "$t/first" "$t/moved"
prefix=$t/moved
for file in bin/mckpt lib/libmckpt.so include/mckpt/mckpt.h include/mckpt/c.h lib/cmake/mckpt/mckptConfig.cmake \
  share/bash-completion/completions/mckpt share/zsh/site-functions/_mckpt share/fish/vendor_completions.d/mckpt.fish \
  share/man/man1/mckpt.1 share/man/man1/mckpt-convert-reshard.1; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done

# The Python package finds the library of its folder.
if command -v python3 >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  (cd "$t" && env -u MCKPT_LIBRARY PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$prefix/lib/python" python3 -c '
import mckpt, sys
with mckpt.open(sys.argv[1]) as ckpt: print(len(ckpt), "tensors")' "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe") |
    grep -qx '45 tensors' || fail "the installed Python package does not work"
fi

# Nothing of the engine is seen from outside: the names of the C interface, and namespace mckpt without impl.
nm -D --defined-only -C "$prefix/lib/libmckpt.so" | cut -d' ' -f3- >"$t/symbols"
grep -q '^mckpt_open$' "$t/symbols" && grep -q '^mckpt::open(' "$t/symbols" || fail "the interface is not exported"
if grep -E 'mckpt::impl|^(std|__gnu_cxx|nlohmann)::' "$t/symbols"; then fail "these names are seen from outside"; fi

# Each header compiles by itself; c.h also as C99.
for header in "$prefix"/include/mckpt/*.h; do
  echo "#include <mckpt/$(basename "$header")>" >"$t/one.cc"
  "$compiler" -std=c++20 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" "$t/one.cc" ||
    fail "$(basename "$header") does not compile by itself"
done

cmake -S "$MCKPT_SOURCE/tests/build/outside" -B "$t/outside" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" >"$t/log" && cmake --build "$t/outside" >>"$t/log" || { cat "$t/log"; fail "build"; }

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
"$t/outside/convert" "$model" "$t/ckpt" | tee "$t/out"
grep -qx '45 in, 41 out, 0 invented' "$t/out"
grep -qx "$t/ckpt/release: equal" "$t/out"
grep -q "^model.norm.weight bfloat16 $("$prefix/bin/mckpt" ls "$model" model.norm.weight --digest --json |
  sed -n 's/.*"sha256": *"\([0-9a-f]*\)".*/\1/p')$" "$t/out"
"$prefix/bin/mckpt" verify "$t/ckpt" --against "$model" | tail -n 1

"$t/outside/convert_in_c" "$t/ckpt" "$t/hf" model.norm.weight | tee "$t/out"
grep -qx '45 out, 0 invented, progress seen' "$t/out"
# The values that the program prints of the source: 0.96875 is 0x3f78 in bfloat16.
grep -qx 'safetensors folder: 3f78 3f6f 3f4f 3f8c' "$t/out"
[ "$(ls "$t"/hf/model-*.safetensors | wc -l)" -gt 1 ] || fail "max_shard_size had no effect"

# An error says what and where, as the program does; nothing is left behind.
status=0
"$t/outside/convert" "$model" "$t/ckpt" 2>"$t/err" >"$t/out" || status=$?
[ $status = 4 ] && grep -q '^MC3' "$t/err" || { cat "$t/err"; fail "an existing result was not refused: $status"; }

# HDF5 files are opened by a helper program, which the installed program finds.
if [ -e "$prefix/lib/mckpt/mckpt-hdf5" ]; then
  (unset MCKPT_MODULE_PATH && "$prefix/bin/mckpt" ls "$MCKPT_SOURCE/test_data/hdf5/sample.h5" | head -n 3)
fi
