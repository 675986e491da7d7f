#!/usr/bin/env bash
# A config with other heads, or other groups of them, than the args of the checkpoint has the same shapes and another
# order of rows: it is refused.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
changed() {  # FACTOR_OF_HEADS FACTOR_OF_GROUPS
  python - "$model/config.json" "$1" "$2" <<'PYTHON'
import json, sys
config = json.load(open(sys.argv[1]))
heads, groups = float(sys.argv[2]), float(sys.argv[3])
config["head_dim"] = int(config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]) / heads)
config["num_attention_heads"] = int(config["num_attention_heads"] * heads)
config["num_key_value_heads"] = int(config["num_key_value_heads"] * groups)
json.dump(config, open("as/config.json", "w"))
PYTHON
}
mkdir as
changed 0.5 0.5
expect 4 "$mckpt" export run made --no-sync --assets as
has err "error[MC2015]"
has err "the assets are of another model than the checkpoint"
has err "as/config.json"
has err "expected num_attention_heads 4, num_query_groups 2, kv_channels 8, as in the args of run/release"
has err "found    num_attention_heads 2, num_query_groups 1, kv_channels 16"
has err "help: give the folder of the checkpoint's own model with --assets"
[ ! -e made ] || fail "something was written"
changed 1 1
expect 0 "$mckpt" export run made --no-sync --assets as

# A folder of quite another model: three of the numbers that differ are named.
expect 4 "$mckpt" export run other --no-sync --assets "$MCKPT_SOURCE"/test_data/golden/models/qwen3_dense
has err "error[MC2015]"
has err "hidden_size"
