#!/usr/bin/env bash
# --report FILE replaces an earlier report and no other file, and is never in what is read or made, dry run or not.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
expect 0 "$mckpt" convert hf-to-fsdp hf run --no-sync
expect 0 "$mckpt" convert safetensors-to-pt hf model.pt --no-sync
echo mine >notes.json
echo '{"schema": "mckpt.inspect/1", "ok": true}' >inspected.json
echo '{"schema": "mckpt.convert/1", "ok": true} and more' >torn.json
: >empty.json
ln hf/config.json hard_link
ln -s hf/config.json link
ln -s hf linked
mkdir -p old/release/sub
cp run/release/.metadata old/release
before=$(find . -type f -not -path './out' -not -path './err' -exec sha256sum {} + | sort)

refused() {  # REPORT COMMAND...: exit status 4, and nothing changes
  local report=$1
  shift
  for how in "" --dry-run; do
    expect 4 "$mckpt" "$@" $how --no-sync --report "$report"
    has err "error[MC3003]: --report: "
    [ "$(find . -type f -not -path './out' -not -path './err' -exec sha256sum {} + | sort)" = "$before" ] || fail "--report $report $how changed something: $*"
  done
}
for report in notes.json inspected.json torn.json empty.json hard_link link hf/config.json hf/model-00001-of-00002.safetensors hf/new.json linked/new.json hf/../hf/new.json model.pt; do
  refused "$report" convert hf-to-fsdp hf new
  refused "$report" export run new --assets hf
done
for report in hf/new.json hf/config.json notes.json; do
  refused $report convert safetensors-to-pt hf new.pt
  refused $report convert safetensors-to-pt hf model.pt --overwrite
done
for report in run/release/.metadata run/latest_checkpointed_iteration.txt run/release/__0_0.distcp run/new.json run/release/hf_assets/new.json; do
  refused $report export run new
  refused $report convert reshard run new
done
# The result's own folder, and the names that the run gets beside it.
refused old/release/.metadata convert hf-to-fsdp hf old --overwrite
refused old/release/new.json convert hf-to-fsdp hf old --overwrite
refused old/release/sub/new.json convert hf-to-fsdp hf old --overwrite
refused old/latest_checkpointed_iteration.txt convert hf-to-fsdp hf old --iteration 5

# An earlier report is replaced: the dry run's by the result's.
expect 0 "$mckpt" convert hf-to-fsdp hf new --no-sync --dry-run --report report.json
grep -q '"bytes_read": *0' report.json || fail "no report of the dry run"
expect 0 "$mckpt" convert hf-to-fsdp hf new --no-sync --report report.json
! grep -q '"bytes_read": *0,' report.json || fail "the report was not replaced"
expect 0 "$mckpt" export new back --no-sync --report report.json
grep -q mckpt.export/1 report.json || fail "the report was not replaced"
expect 0 "$mckpt" verify back --against hf
