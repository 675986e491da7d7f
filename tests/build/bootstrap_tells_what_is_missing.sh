#!/usr/bin/env bash
# Without network, bootstrap names the packages that are missing and what is not built without them.
set -euo pipefail
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

# A machine without ninja, mpirun and Python: the tools of this one but for those.
mkdir "$t/bin"
for tool in bash c++ cat cmake cut dirname env grep head id mkdir sed sh tr; do
  ln -s "$(command -v $tool)" "$t/bin/$tool"
done

status=0
PATH=$t/bin "$MCKPT_SOURCE/scripts/bootstrap" --offline >"$t/out" 2>&1 || status=$?
cat "$t/out"
[ $status = 1 ] # without ninja nothing can be built
grep -qx 'bootstrap: missing: ninja-build; without it not built: the build' "$t/out"
grep -qx 'bootstrap: missing: openmpi-bin; without it not built: starting ranks' "$t/out"
grep -q 'apt-get install .*ninja-build.*openmpi-bin' "$t/out"
[ "$(grep -c 'missing: cmake' "$t/out")" = 0 ]

# A tool that is only nice to have does not stop the build.
ln -s "$(command -v ninja)" "$t/bin/ninja"
PATH=$t/bin "$MCKPT_SOURCE/scripts/bootstrap" --offline >"$t/out" 2>&1
grep -q 'missing: openmpi-bin' "$t/out"

# The machine as it is.
"$MCKPT_SOURCE/scripts/bootstrap" --offline
