#!/usr/bin/env bash
# MCKPT_<MODULE>: AUTO goes without a library that is not here and says so, ON fails and says how to get it, OFF does
# not look for it. Configures only. usage: modules_are_optional.sh COMPILER
set -euo pipefail
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

configure() {  # option...: the output to $t/out; fails as cmake does
  cmake -S "$MCKPT_SOURCE" -B "$t/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DMCKPT_TESTS=OFF -DMCKPT_BENCH=OFF \
    -DMCKPT_CUDA=OFF "$@" >"$t/out" 2>&1
}
says() { tr '\n' ' ' <"$t/out" | tr -s ' ' | grep -F -- "$1" >/dev/null || { cat "$t/out"; echo "FAILED: it does not say: $1"; exit 1; }; }
compiler=$1

configure -DMCKPT_MPI=OFF -DMCKPT_TORCH=OFF -DMCKPT_HDF5=OFF
for module in mpi torch hdf5; do says "mckpt: $module: not built, MCKPT_${module^^}=OFF"; done

absent=(-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DCMAKE_DISABLE_FIND_PACKAGE_TorchLibraries=ON)
configure -DMCKPT_MPI=AUTO -DMCKPT_TORCH=AUTO "${absent[@]}"
says "mckpt: mpi: not built, no MPI was found (libopenmpi-dev)"
says "mckpt: torch: not built, no torch 2.6 or newer with headers was found (scripts/bootstrap --torch)"

for module in MPI TORCH; do
  if configure -DMCKPT_MPI=OFF -DMCKPT_TORCH=OFF "-DMCKPT_$module=ON" "${absent[@]}"; then
    echo "FAILED: MCKPT_$module=ON went without its library"
    exit 1
  fi
  says "MCKPT_$module=ON, but: no"
done
