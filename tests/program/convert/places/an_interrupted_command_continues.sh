#!/usr/bin/env bash
# The same command goes on with what an interrupted run left, and says so, with --overwrite too. Another command is
# refused with both choices: nothing that was done is thrown away unasked.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
begin() {  # TARGET OPTION...: leaves an unfinished output
  (ulimit -f 8 && ! "$mckpt" convert hf-to-fsdp "$model" "$@" --no-sync -q) >out 2>err || fail "the limit on files had no effect"
  [ -s "$1/.release.mckpt-tmp/.plan" ] || fail "nothing is left"
}
begin ck --tp 2
has err "repeat the command to continue where it stopped"
touch ck/.release.mckpt-tmp/.done
stamp=$(stat -c %i ck/.release.mckpt-tmp)

# A limit that stops the repeated command in the same place is named.
expect 5 bash -c 'ulimit -n 20; exec "$@"' - "$mckpt" convert hf-to-fsdp "$model" many --dp 30 -j1 --no-sync
has err "raise the limit of open files, which \`ulimit -n\` shows; repeat the command to continue where it stopped"

# Other options, in words, as JSON and as a dry run; also where --resume asks for it.
for more in "" -n --resume --json; do
  # shellcheck disable=SC2086
  expect 4 "$mckpt" convert hf-to-fsdp "$model" ck --tp 4 --no-sync $more
  has err "error[MC3007]"
  has err '--tp: 2 in the first run, 4 in this one'
  has err "repeat the first command"
  has err "give --overwrite"
  [ "$(stat -c %i ck/.release.mckpt-tmp)" = "$stamp" ] || fail "the unfinished output was touched"
done
has out '"code": "MC3007"'

expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --tp 2 --no-sync --json
has err "resume  continues the unfinished output of an interrupted run of the same command"
has out '"resumed": "unfinished"'
expect 0 "$mckpt" verify ck --against "$model" -q
expect 4 "$mckpt" convert hf-to-fsdp "$model" ck --tp 2 --no-sync -q
has err "error[MC3003]"

# With --overwrite another command begins anew, and the same one goes on.
begin ck --overwrite --tp 1
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --tp 2 --overwrite --no-sync --json
has err "that this run cannot continue; it was removed"
has out '"resumed": "nothing"'
begin ck --overwrite --tp 1
expect 4 "$mckpt" convert hf-to-fsdp "$model" ck --tp 1 --no-sync
has err "--overwrite or --resume, which go on where it stopped"
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --tp 1 --overwrite --no-sync --json
has out '"resumed": "unfinished"'
expect 0 "$mckpt" verify ck --against "$model" -q

# A published result without its last steps.
faulty_io=$(dirname "$mckpt")/tests/support/libfaulty_io.so
{ LD_PRELOAD=$faulty_io FAULTY_IO=unlink:4:KILL "$mckpt" convert hf-to-fsdp "$model" published --tp 1 --no-sync -q && fail "it was not killed"; } 2>err
[ -e published/release/.plan ] || fail "it was killed too early"
echo 3 >published/latest_checkpointed_iteration.txt
expect 0 "$mckpt" convert hf-to-fsdp "$model" published --tp 1 --no-sync --json
has out '"resumed": "published"'
[ "$(cat published/latest_checkpointed_iteration.txt)" = release ] || fail "the tracker is as it was"
[ ! -e published/release/.plan ] || fail "a mark is left"
