#!/usr/bin/env bash
# The program builds without any of its modules, works, and says what it lacks. usage: program_without_modules.sh COMPILER
set -euo pipefail
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

cmake -S "$MCKPT_SOURCE" -B "$t/build" -G Ninja -DCMAKE_CXX_COMPILER="$1" -DCMAKE_BUILD_TYPE=None -DMCKPT_TESTS=OFF \
  -DMCKPT_BENCH=OFF -DMCKPT_MPI=OFF -DMCKPT_TORCH=OFF -DMCKPT_CUDA=OFF -DMCKPT_HDF5=OFF
cmake --build "$t/build" --target program -j 2
[ -z "$(find "$t/build" -maxdepth 1 -name 'libmckpt_*.so')" ]
"$t/build/mckpt" env | tee "$t/env"
[ "$(grep -c 'not built: MCKPT_[A-Z]*=OFF' "$t/env")" = 3 ]
"$t/build/mckpt" formats
