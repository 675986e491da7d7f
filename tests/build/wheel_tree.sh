#!/usr/bin/env bash
# The part of this build that a wheel would have works from the places where pip puts it. usage: wheel_tree.sh
# BUILD_FOLDER PYTHON
set -euo pipefail
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
unset MCKPT_MODULE_PATH PYTHONPATH
build=$1 python=$2
version=$("$build/mckpt" --version)

cmake --install "$build" --component wheel --prefix "$t/target" >"$t/log" || { cat "$t/log"; fail "cmake --install"; }

works() {  # folder of packages, program
  (cd "$t" && export PYTHONPATH=$1 PYTHONDONTWRITEBYTECODE=1
    [ "$("$python" -m mckpt --version)" = "$version" ] || fail "python -m mckpt in $1"
    status=0
    "$python" -m mckpt inspect "$t/missing" 2>"$t/err" || status=$?
    [ $status = 3 ] || fail "python -m mckpt hides the exit status: $status"
    # A library with sanitizers cannot be loaded into any program.
    [ -n "${MCKPT_SANITIZE:-}" ] || [ "mckpt $("$python" -c 'import mckpt; print(mckpt.__version__)')" = "$version" ] ||
      fail "__version__ in $1"
    [ "$("$python" -c 'import mckpt; print(mckpt.program())')" = "$2" ] || fail "program() in $1")
  # HDF5 files are opened by a helper program, which is in the package.
  [ ! -e "$build/mckpt-hdf5" ] || "$2" ls "$MCKPT_SOURCE/test_data/hdf5/sample.h5" >"$t/out" || fail "no HDF5 from $2"
}

for file in bash-completion/completions/mckpt zsh/site-functions/_mckpt fish/vendor_completions.d/mckpt.fish man/man1/mckpt-verify.1; do
  [ -s "$t/target/share/$file" ] || fail "share/$file is not in the wheel"
done

# pip install --target
works "$t/target" "$t/target/bin/mckpt"

# A module that no wheel has inside is built from the sources in the package, for the MPI that is here.
modules() {
  cd "$t" && export PYTHONPATH=$t/target PYTHONDONTWRITEBYTECODE=1
  rm -f "$t/target/mckpt/lib/libmckpt_mpi.so"
  "$t/target/bin/mckpt" env >"$t/out" || fail "mckpt env without modules"
  grep -q "to get it  python -m mckpt.modules mpi" "$t/out" || { cat "$t/out"; fail "env does not say how to get the mpi module"; }
  status=0
  MPICXX=$t/none "$python" -m mckpt.modules mpi 2>"$t/err" || status=$?
  [ $status = 3 ] && grep -q "^mpi: there is no $t/none: .*libopenmpi-dev" "$t/err" || { cat "$t/err"; fail "no compiler, no error"; }
  CXX=false "$python" -m mckpt.modules torch 2>"$t/err" || true
  grep -Eq "^torch: (.* has no torch|the compiler failed)" "$t/err" || { cat "$t/err"; fail "torch: no error"; }
  [ -n "$(command -v mpicxx)" ] || return 0
  "$python" -m mckpt.modules mpi >"$t/out" || fail "the mpi module cannot be built"
  grep -qx "mpi: $t/target/mckpt/lib/libmckpt_mpi.so" "$t/out" || fail "$(cat "$t/out")"
  [ -z "$(ls -A "$t/target/mckpt/lib" | grep '^\.')" ] || fail "something is left behind"
  "$t/target/bin/mckpt" env | grep -A 2 '^mpi ' | grep '  version ' >/dev/null || fail "the mpi module that was built does not load"
}
# The modules of a build with sanitizers are of another kind.
[ -n "${MCKPT_SANITIZE:-}" ] || (modules)

# An environment, whose list of installed files says where the program is; lib64 on some systems.
for lib in lib lib64; do
  packages=$t/$lib-venv/$lib/python3.99/site-packages
  mkdir -p "$packages/mckpt-1.dist-info" "$t/$lib-venv/bin"
  cp -r "$t/target/mckpt" "$packages/"
  cp "$t/target/bin/mckpt" "$t/$lib-venv/bin/"
  printf 'Metadata-Version: 2.1\nName: mckpt\nVersion: 1\n' >"$packages/mckpt-1.dist-info/METADATA"
  printf '../../../bin/mckpt,,\nmckpt/__init__.py,,\n' >"$packages/mckpt-1.dist-info/RECORD"
  works "$packages" "$t/$lib-venv/bin/mckpt"
done

# Without its program the package says where it looked.
rm "$t/lib-venv/bin/mckpt"
! PYTHONPATH=$packages/../../../../lib-venv/lib/python3.99/site-packages "$python" -m mckpt 2>"$t/err" || fail "no program, no error"
grep -q "is in none of: .*/lib-venv/bin/mckpt, .*; install the package again" "$t/err" || { cat "$t/err"; fail "the error does not say where it looked"; }
