#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

for command in $(commands); do
  expect 0 "$mckpt" "$command" --help
  empty err
  head -n 1 out | grep -q "^mckpt $command - " || fail "$command --help does not begin with its summary"
  sed -n '/^Examples$/,/^$/{/^$/!p}' out | sed ':a; /\\$/{N; s/ \\\n *//; ba}' >examples
  [ "$(wc -l <examples)" -ge 2 ] || fail "$command --help has no examples"
  ! sed 1d examples | grep -vE "^  (mckpt|mpirun -n [0-9]+ mckpt|source <\(mckpt) $command( |$)" ||
    fail "$command --help does not end with examples of itself"
  mv out page
  expect 0 "$mckpt" help "$command"
  cmp -s page out || fail "help $command differs from $command --help"
done

"$mckpt" convert --help | sed '/mckpt convert MODE/,$d' | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' >modes
[ "$(wc -l <modes)" -ge 8 ] || fail "convert --help lists too few modes: $(cat modes)"
while read -r mode; do
  expect 0 "$mckpt" convert "$mode" --help
  head -n 1 out | grep -q "^mckpt convert $mode - " || fail "convert $mode --help does not begin with its summary"
  mv out page
  expect 0 "$mckpt" help convert "$mode"
  cmp -s page out || fail "help convert $mode differs from convert $mode --help"
done <modes
expect 2 "$mckpt" help ls reshard
has err "the command ls has no modes"
expect 2 "$mckpt" help convert to-nothing
has err "there is no mode 'to-nothing'"
