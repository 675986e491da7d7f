#!/usr/bin/env bash
# A failure in one rank fails the whole test program, and a rank that aborts takes the waiting ones with it.
# usage: ranks_end_together.sh scripts/mpirun PROGRAM
set -euo pipefail

run() {  # test: runs it as three ranks; its output to $output, its exit status to $status
  status=0
  output=$("$mpirun" -n 3 --timeout 60 "$program" --gtest_also_run_disabled_tests --gtest_filter="*$1" 2>&1 \
    </dev/null) || status=$?
}
mpirun=$1 program=$2

run FailsInRank1
[ "$status" = 1 ] || { echo "$output"; echo "a failure in rank 1 ended with status $status, not 1"; exit 1; }
grep -q '^\[rank 1\].*comm/mpi_test.cc' <<<"$output" || { echo "$output"; echo "rank 1 does not say what failed"; exit 1; }
grep -q '^2 of 3 ranks passed' <<<"$output" || { echo "$output"; echo "the ranks' results were not merged"; exit 1; }

run AbortsInRank1
[ "$status" = 3 ] || { echo "$output"; echo "an abort with 3 ended with status $status"; exit 1; }
