#!/usr/bin/env bash
. "$(dirname "$0")"/common.inc

for command in $(commands); do
  expect 0 "$mckpt" "$command" --help
  empty err
  head -n 1 out | grep -q "^mckpt $command - " || fail "$command --help does not begin with its summary"
  sed -n '/^Examples$/,$p' out >examples
  [ "$(wc -l <examples)" -ge 2 ] || fail "$command --help has no examples"
  ! sed 1d examples | grep -vE "^  (mckpt|mpirun -n [0-9]+ mckpt) $command( |$)" ||
    fail "$command --help does not end with examples of itself"
  mv out page
  expect 0 "$mckpt" help "$command"
  cmp -s page out || fail "help $command differs from $command --help"
done
