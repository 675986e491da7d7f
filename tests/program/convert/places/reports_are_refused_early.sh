#!/usr/bin/env bash
# --report FILE: what cannot be made is refused before anything is written; what fails later leaves the result.
. "$MCKPT_SOURCE"/tests/support/common.inc

hf=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert safetensors-to-pt "$hf" model.pt --no-sync
touch file
mkdir folder
refused() {
  local status=$1 text=$2 report=$3
  expect "$status" "$mckpt" convert hf-to-fsdp "$hf" run --report "$report" --no-sync
  has err "$text"
  lacks err plan
  [ ! -e run ] || fail "something was written"
  expect "$status" "$mckpt" convert pt-to-safetensors model.pt new.safetensors --report "$report" --no-sync
  has err "$text"
  [ ! -e new.safetensors ] || fail "something was written"
}
refused 4 "error[MC3006]: the folder of the --report file does not exist" nope/report.json
refused 4 "error[MC3006]: the folder of the --report file does not exist" file/report.json
refused 4 "error[MC3003]: --report: something other than a file" folder
refused 2 "--report needs a value that is not empty" ""
expect 4 "$mckpt" convert hf-to-fsdp "$hf" run --dry-run --report run/report.json
has err "the folder of the --report file does not exist"
expect 2 "$mckpt" convert pt-to-safetensors model.pt new.safetensors --report new.safetensors
has err "neither SRC nor DST"
expect 2 "$mckpt" convert pt-to-safetensors model.pt new.safetensors --report ./model.pt
has err "neither SRC nor DST"

# A name that is too long once the file is being made.
long=$(printf 'r%.0s' {1..250})
expect 5 "$mckpt" convert hf-to-fsdp "$hf" run --report "$long" --no-sync
has err "the result is published as run/release; only its report is missing: "
expect 0 "$mckpt" verify run --against "$hf"

# Beside the result, in the folder of the run that comes with it, and over an older report.
for report in report.json report.json made/report.json; do
  rm -rf made
  expect 0 "$mckpt" convert hf-to-fsdp "$hf" made --report $report --no-sync
  grep -q '"tensors_in": *45' $report || fail "$report is no report"
done
