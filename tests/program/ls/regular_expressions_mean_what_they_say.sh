#!/usr/bin/env bash
# --regex knows \d, \w, \s and \b, and refuses what POSIX's syntax would silently take for something else
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

names() { expect 0 "$mckpt" ls -q "$model" "$1" --regex; cp out "names"; }

# same PATTERN POSIX: both choose the same names, and not all of them
same() {
  names "$2"
  mv names wanted
  names "$1"
  cmp -s names wanted || fail "$1 chooses other names than $2"
  [ "$(wc -l <names)" -lt "$("$mckpt" ls -q "$model" | wc -l)" ] || fail "$1 chooses everything"
}

same 'layers\.\d+\.mlp' 'layers\.[0-9]+\.mlp'
same 'experts\.\d{1}\.' 'experts\.[0-9]\.'
same 'layers\.[\d]\.self' 'layers\.[0-9]\.self'
same 'experts\.[^\d\.]|^lm_\w+\.' '^lm_head\.'
same '\bnorm\b' '(^|\.)norm\.'
same '^\D+$' '^[^0-9]+$'
same '[[:digit:]].*[]_]proj' '[0-9].*_proj'
same 'q_proj*?\.' 'q_pro(j*)\.'

# refused PATTERN TEXT
refused() {
  expect 2 "$mckpt" ls "$model" "$1" --regex
  has err "$2"
}

refused 'layers\t0' 'has \t, which is not part of its syntax'
refused '(.)\1' 'has \1, which'
refused '(?:a|b)' 'has (?, which'
refused '(?i)NORM' 'has (?, which'
refused '[\]]' 'has \] in brackets, which'
refused '[a\-z]' 'has \- in brackets, which'
refused 'a[' 'not valid'
refused 'a\' 'not valid'
has err 'Trailing backslash'
refused '[[:digit:' 'not valid'

# a long name and a pattern of many ways through it end soon
expect 1 timeout 20 "$mckpt" ls "$model" '((\w*)*)*!' --regex

expect 0 "$mckpt" ls --help-all
has out 'POSIX extended'
