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
# Also where an argument is missing beside it, which would not mend the line.
said "there is no option '--bogus'" ls --bogus
said "there is no option '-dash-folder'" verify -dash-folder
said "there is no option '--bogus'" diff a --bogus
expect 2 "$mckpt" convert to-mcore --tpp 2
has err "there is no option '--tpp'; did you mean --tp?"
said "B is required" diff a
said "B is required" diff -- -a
said "unexpected argument 'M'" pattern M M
said "--world is given more than once" layout 10 --world 2 --world 4
said "--world needs a value" layout 10 --world
said "--json takes no value" layout 10 --json=5
said "SHAPE is required" layout
said 'as in `mckpt export ckpt out_hf`' export ckpt
expect 2 "$mckpt" mappings show qwen3_m
has err "these begin so: qwen3_moe"
said "the shape is not valid" layout 10x
said "follows --" pattern '-*-*'
said "not a possible number of threads" verify x -j 0
said "not a possible number of threads" stats x --threads 1025
# A number beyond 63 bits is a wrong value like any other.
for more in 9223372036854775808 99999999999999999999 -9223372036854775809; do
  for option in dp iteration; do
    expect 2 "$mckpt" convert reshard x y "--$option=$more"
    has err "error[MC0001]: --$option: the number does not fit 63 bits"
    has err "mckpt convert reshard --help"
  done
  said "--threads: the number does not fit 63 bits" stats x "--threads=$more"
done
said "SHAPE: the number does not fit 63 bits" layout 99999999999999999999
said "the number of items of a shape does not fit 63 bits" layout 99999999999x99999999999 --world 8
said "does not fit 63 bits" layout 10x4 --world 4611686018427387904
said "the repeats of the regular expression are too many" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe 'a{99999}' --regex
said "unexpected argument 'layout'" help pattern layout
said "unexpected argument 'x'" mappings list x
expect 2 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as fsdp --dp 99999999
has err "error[MC0201]"
has err "at most 262,144 ranks"
expect 0 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as fsdp --dp 262144 --rank 262143

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 2 "$mckpt" convert hf-to-fsdp "$model" ckpt --dtype fp8
has err "the value of --dtype is not a data type that weights can be given"
has err "bf16, fp16 or fp32"
lacks err "mckpt formats"
said "--report needs the name of a file" export "$model" hf --report -
[ ! -e ./- ] || fail "a file named - was written"
said "no file or folder has that name, so it is read as a shape" layout no-such-model
said "a model is the first argument" layout 10x4 "$model"
expect 2 "$mckpt" convert merge a b
has err "did you mean \`mckpt export SRC DST\`?"
expect 2 "$mckpt" convert verify a
has err "did you mean \`mckpt verify\`?"
