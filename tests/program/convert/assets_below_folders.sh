#!/usr/bin/env bash
# The chat templates of a tokenizer that has several are in a folder, and copied with it through every conversion; other
# folders beside a model are named as left out.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
mkdir hf/additional_chat_templates hf/1_Pooling
echo '{{ tools }}' >hf/additional_chat_templates/tool_use.jinja
echo '{}' >hf/1_Pooling/config.json
expect 0 "$mckpt" convert hf-to-fsdp hf run --tp 2
has err "folders beside the model's files are not copied into the result: 1_Pooling/"
expect 0 "$mckpt" verify run
lacks out "not in mckpt_manifest.json"
expect 0 "$mckpt" verify run --against hf
has out "not compared: 1_Pooling/, which only hf has"
expect 0 "$mckpt" convert reshard run other --ep 2
lacks err 1_Pooling
expect 0 "$mckpt" export other made
cmp hf/additional_chat_templates/tool_use.jinja made/additional_chat_templates/tool_use.jinja
expect 0 "$mckpt" verify made
expect 0 "$mckpt" verify made --against run
lacks out "which only"
# They are parts of the result as its other files are.
expect 0 "$mckpt" convert hf-to-fsdp hf run --overwrite
echo changed >run/release/hf_assets/additional_chat_templates/tool_use.jinja
expect 1 "$mckpt" verify run
has out "tool_use.jinja"
expect 1 "$mckpt" verify run --against hf
