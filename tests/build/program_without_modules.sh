#!/usr/bin/env bash
# The program builds without any of its modules, works, and says what it lacks. usage: program_without_modules.sh COMPILER
set -euo pipefail
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

cmake -S "$MCKPT_SOURCE" -B "$t/build" -G Ninja -DCMAKE_CXX_COMPILER="$1" -DCMAKE_BUILD_TYPE=None -DMCKPT_TESTS=OFF \
  -DMCKPT_BENCH=OFF -DMCKPT_MPI=OFF -DMCKPT_TORCH=OFF -DMCKPT_CUDA=OFF -DMCKPT_NCCL=OFF -DMCKPT_HDF5=OFF
cmake --build "$t/build" --target program -j 2
[ -z "$(find "$t/build" -maxdepth 1 -name 'libmckpt_*.so' -o -maxdepth 1 -name mckpt-hdf5)" ]
"$t/build/mckpt" env | tee "$t/env"
[ "$(grep -c 'not built: MCKPT_[A-Z0-9]*=OFF' "$t/env")" = 5 ]
"$t/build/mckpt" formats
printf '\x89HDF\r\n\x1a\n' >"$t/x.h5"
! "$t/build/mckpt" inspect "$t/x.h5" 2>"$t/err" || exit 1
grep -F 'libhdf5-dev' "$t/err"
