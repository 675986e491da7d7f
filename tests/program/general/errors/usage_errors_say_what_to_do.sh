#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# said TEXT ARGUMENTS...: a usage error with these words and the way to the help page of the command
said() {
  local text=$1
  shift
  expect 2 "$mckpt" "$@"
  empty out
  has err "$text"
  has err "mckpt $1 --help"
}

said "there is no option '--wrld'; did you mean --world?" layout 10 --wrld 4
said "unexpected argument 'M'" pattern M M
said "--world is given more than once" layout 10 --world 2 --world 4
said "--world needs a value" layout 10 --world
said "--json takes no value" layout 10 --json=5
said "SHAPE is required" layout
said "the shape is not valid" layout 10x
said "follows --" pattern '-*-*'
said "not a thread count" verify x -j 0
said "not a thread count" stats x --threads 1025
said "unexpected argument 'layout'" help pattern layout
said "unexpected argument 'x'" mappings list x
expect 2 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as fsdp --dp 99999999
has err "error[MC0201]"
has err "at most 262,144 ranks"
expect 0 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as fsdp --dp 262144 --rank 262143
