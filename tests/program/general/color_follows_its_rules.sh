#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

escape=$(printf '\033[')
colored() { grep -qF -- "$escape" "$t/out" || fail "no colour: $1"; }
plain() { ! grep -qF -- "$escape" "$t/out" || fail "colour: $1"; }

expect 0 "$mckpt" formats && plain "in a pipe"
expect 0 "$mckpt" formats --color=always && colored "--color=always"
expect 0 "$mckpt" --color always formats && colored "--color always before the command"
expect 0 env CLICOLOR_FORCE=1 "$mckpt" formats && colored "CLICOLOR_FORCE=1"
expect 0 env CLICOLOR_FORCE=0 "$mckpt" formats && plain "CLICOLOR_FORCE=0"
expect 0 env CLICOLOR_FORCE=1 NO_COLOR=1 "$mckpt" formats && plain "NO_COLOR wins over CLICOLOR_FORCE"
expect 0 env CLICOLOR_FORCE=1 NO_COLOR= "$mckpt" formats && colored "an empty NO_COLOR is none"
expect 0 env CLICOLOR_FORCE=1 "$mckpt" formats --color=never && plain "--color=never"
expect 0 env NO_COLOR=1 "$mckpt" formats --color=always && colored "--color=always wins over NO_COLOR"
expect 0 "$mckpt" formats --json --color=always && plain "JSON is never coloured"
expect 2 "$mckpt" formats --color=sometimes

# A terminal, where one can be made.
script -qec true /dev/null >/dev/null 2>&1 </dev/null || exit 0
on_terminal() { script -qec "$*" /dev/null >"$t/out" </dev/null; }
on_terminal "$mckpt formats" && colored "on a terminal"
on_terminal "NO_COLOR=1 $mckpt formats" && plain "NO_COLOR on a terminal"
on_terminal "TERM=dumb $mckpt formats" && plain "a dumb terminal"
