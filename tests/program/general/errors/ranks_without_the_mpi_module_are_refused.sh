#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# A program that is alone although a launcher started four would do everything four times.
cp "$mckpt" alone
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 expect 3 ./alone env
has err "error[MC0004]"
has err "the mpi module was not found"
has err "apt-get install libopenmpi-dev"
empty out
