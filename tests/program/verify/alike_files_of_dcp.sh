#!/usr/bin/env bash
# Data files of a DCP folder that have equal layouts: a copy of another rank's is refused, and of those that could have changed
# places verify says that it was not checked, unless a manifest says which is which.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/dcp/uneven_tp2dp2 saved
said="order of the ranks: not checked for 2 files of equal layout (nothing in the files says it)"
expect 0 "$mckpt" verify saved
has out "pass  ranks    4 files         are one model; $said"
has out "saved: sound, but the order of the ranks was not checked"
expect 0 "$mckpt" convert to-dcp saved whole --no-sync -q
expect 0 "$mckpt" verify whole
lacks out "order of the ranks"
rm whole/mckpt_manifest.json
expect 0 "$mckpt" verify whole
has out "sound, but the order of the ranks was not checked"

cp saved/__2_0.distcp saved/__3_0.distcp
expect 1 "$mckpt" verify saved
has out "problem[MC1113]: __3_0.distcp: rank 3: the file has the same weights as __2_0.distcp"
lacks out "order of the ranks"
expect 3 "$mckpt" convert to-dcp saved copied
has err "MC1113"
[ ! -e copied ] || fail "a folder with a copied file was converted"
