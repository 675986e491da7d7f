#!/usr/bin/env bash
# No command that looks at a checkpoint changes it, adds to it, or leaves something in the working folder.
. "$MCKPT_SOURCE"/tests/support/common.inc

mkdir data empty
for part in pt dcp models; do cp -r "$MCKPT_SOURCE/test_data/$part" data/; done
everything() { (cd data && find . -printf '%p %y %s %T@ %C@ %i %m\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
everything >before
[ "$(wc -l <before)" -gt 300 ] || fail "too little was copied"

cd empty
for path in "$t"/data/pt/* "$t"/data/dcp/* "$t"/data/models/*; do
  case $path in *.py | *.md | *.json) continue ;; esac
  for line in "inspect --args" "ls --digest" "ls --jsonl" stats verify; do
    status=0
    "$mckpt" $line "$path" >"$t/out" 2>"$t/err" </dev/null || status=$?
    [ $status -le 3 ] || fail "exit status $status: $line $path"
  done
done
cd ..
everything >after
cmp -s before after || fail "changed: $(diff before after | head -n 5)"
[ -z "$(ls -A empty)" ] || fail "left in the working folder: $(ls -A empty)"
