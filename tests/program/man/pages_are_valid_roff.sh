#!/usr/bin/env bash
# Every command and mode has a man page, with all its options; groff has nothing to warn of.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" man --output pages
[ "$(cat out)" = pages ] || fail "the folder is not printed"
for command in $(commands) help; do
  [ -s pages/mckpt-"$command".1 ] || fail "there is no page of $command"
  expect 0 "$mckpt" man "$command"
  cmp -s out pages/mckpt-"$command".1 || fail "man $command prints another page"
done
[ "$(ls pages/mckpt-convert-*.1 | wc -l)" -ge 9 ] || fail "modes lack pages: $(ls pages)"
expect 0 "$mckpt" man
cmp -s out pages/mckpt.1 || fail "man prints another page of mckpt"
expect 2 "$mckpt" man ls reshard
expect 2 "$mckpt" man ls --output pages
expect 5 "$mckpt" man --output pages/mckpt.1/below
expect 0 "$mckpt" man --output pages # pages of mckpt are replaced, files of others are not
mkdir mine && echo mine >mine/mckpt-verify.1
expect 4 "$mckpt" man --output mine
grep -q 'MC3003' err || fail "a file of somebody else: $(cat err)"
[ "$(cat mine/*)" = mine ] || fail "a file of somebody else is replaced, or pages are beside it"
# A write that fails leaves the pages whole, and no page in half; the command can be repeated.
cp -r pages again
status=0
(trap '' XFSZ && ulimit -f 4 && "$mckpt" man --output again) >out 2>err || status=$?
[ $status = 5 ] && grep -q 'MC3001' err && grep -q 'File too large' err || fail "a page that cannot be written: $(cat err)"
diff -r pages again || fail "pages are damaged"
mkdir new
(trap '' XFSZ && ulimit -f 4 && "$mckpt" man --output new) >out 2>err && fail "pages of more than 4 KiB are written"
expect 0 "$mckpt" man --output new
diff -r pages new || fail "something is left behind"

command -v groff >/dev/null || skip "there is no groff"
for page in pages/*.1; do
  name=$(basename "$page" .1)
  groff -man -ww -Tascii -P-c "$page" >text 2>warnings || fail "groff: $name"
  [ ! -s warnings ] || fail "$name: $(head -n 3 warnings)"
  col -bx <text | tr -s ' \n' ' ' >words
  grep -qi "$name(1)" words || fail "$name has no title"
done
col -bx < <(groff -man -rLL=300n -Tascii -P-c pages/mckpt-convert-reshard.1) | tr -s ' \n' ' ' >words
for text in "--tp N" "Also accepted as --tensor-model-parallel-size" "mckpt convert reshard ckpt ckpt_on_8 --tp 4 --dp 2" "2 usage"; do
  grep -qF -- "$text" words || fail "the page of reshard lacks: $text"
done
# Quotes, brackets and backslashes are the help's.
col -bx < <(groff -man -rLL=300n -Tascii -P-c pages/mckpt-pattern.1) | tr -s ' \n' ' ' >words
grep -qF -- "mckpt pattern '[*-]M|[*E]-/*M'" words || fail "an example of pattern is not as the help has it"
col -bx < <(groff -man -rLL=300n -Tascii -P-c pages/mckpt-ls.1) | tr -s ' \n' ' ' >words
grep -qF -- '\d \w \s \b' words || fail "backslashes are lost"
