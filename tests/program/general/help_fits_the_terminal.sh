#!/usr/bin/env bash
# No line of a help page is longer than the terminal. Examples that would be go on behind a backslash, and can be copied.
. "$MCKPT_SOURCE"/tests/support/common.inc

fits() { # COLUMNS ARGUMENTS...
  local columns=$1 page
  shift
  for page in --help --help-all; do
    expect 0 env COLUMNS="$columns" "$mckpt" "$@" $page
    mv out page
    [ "$(wc -l <page)" -ge 5 ] || fail "$* $page is short"
    awk -v most="$columns" 'length > most { print; bad = 1 } END { exit bad }' page >long ||
      fail "$* $page at $columns columns has long lines: $(cat long)"
  done
}

"$mckpt" convert --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/convert \1/p' >pages
commands >>pages
[ "$(wc -l <pages)" -ge 20 ] || fail "too few pages: $(cat pages)"
echo >>pages
for columns in 60 120; do
  while read -r page; do fits "$columns" $page; done <pages
done

# Wider terminals have fewer lines, up to a width that is comfortable to read.
lines() { COLUMNS=$1 "$mckpt" verify --help-all | wc -l; }
[ "$(lines 60)" -gt "$(lines 80)" ] && [ "$(lines 80)" -gt "$(lines 100)" ] || fail "the width makes no difference"
[ "$(lines 100)" = "$(lines 200)" ] || fail "lines are longer than 100 columns"
[ "$(lines nonsense)" = "$(lines 80)" ] || fail "80 columns are not the default"
