"""Models that no family of mckpt has, as a training run under the model's own names saves them (torch DCP, and one file of torch.save):
`export`, `to-safetensors` and `verify` need no table. transformers loads what is exported, and has the values that were saved. Gemma 4
unified has other names in memory than in its release: `export` refuses it, and names them.
"""
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, finish, need
from mckpt_tests.program import run_mckpt

need("torch", "transformers", "safetensors")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

SIZES = dict(vocab_size=136, hidden_size=48, intermediate_size=88, num_hidden_layers=4, num_key_value_heads=4)
TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
MODELS = {
    "Gemma4UnifiedForConditionalGeneration": dict(
        vision_config=dict(patch_size=4, pooling_kernel_size=3, mm_embed_dim=36, mm_posemb_size=10, output_proj_dims=36), audio_config=dict(audio_embed_dim=20),
        text_config=SIZES | dict(num_attention_heads=8, head_dim=10, global_head_dim=16, max_position_embeddings=128, sliding_window=16)),
    "KimiLinearForCausalLM": SIZES | TOKENS | dict(num_attention_heads=4, moe_intermediate_size=20, num_experts=8, num_local_experts=8),
    "BailingHybridForCausalLM": SIZES | TOKENS | dict(
        num_attention_heads=4, moe_intermediate_size=20, kv_lora_rank=12, qk_rope_head_dim=4, v_head_dim=8, qk_nope_head_dim=8, n_group=1, topk_group=1, num_experts_per_tok=2,
        first_k_dense_replace=1, num_local_experts=8, layer_group_size=2, head_dim=8, num_mtp_layers=0),
}
taken, refused = [], []


def mckpt(what, *arguments, status=0):
    run = run_mckpt(*arguments, "-q", timeout=60)
    expect(run.returncode == status, f"{what}: mckpt {' '.join(arguments)}: {run.returncode}: {run.stdout}{run.stderr}")
    return run


def values(tensors):
    return {name: (t.dtype, list(t.shape), t.contiguous().view(torch.uint8).numpy().tobytes()) for name, t in tensors.items()}


def check(architecture, entries, folder):
    cls = getattr(transformers, architecture)
    torch.manual_seed(1)
    model = cls(cls.config_class(**entries)).to(torch.bfloat16)
    hub, save, file = (os.path.join(folder, name) for name in ("hub", "dcp", "model.pt"))
    model.save_pretrained(hub)
    state = model.state_dict()
    dcp.save(state, checkpoint_id=save, no_dist=True)
    torch.save(state, file)
    for kind, source in (("dcp", save), ("pt", file)):
        mckpt(architecture, "verify", source)
        single = os.path.join(folder, f"{kind}.safetensors")
        mckpt(architecture, "convert", "to-safetensors", source, single)
        mckpt(architecture, "verify", single, "--against", source)
        distinct = {name: t for name, t in values(load_file(single)).items()}
        wanted = values(state)
        expect(set(distinct) <= set(wanted), f"{architecture}: {kind}: names that the model has not: {sorted(set(distinct) - set(wanted))[:3]}")
        expect_equal(f"{architecture}: {kind} as one file", [distinct[n] for n in sorted(distinct)], [wanted[n] for n in sorted(distinct)])
        out = os.path.join(folder, f"{kind}_export")
        run = run_mckpt("export", source, out, "--assets", hub, "-q", timeout=60)
        if run.returncode:
            refused.append(architecture)
            lost = sorted(set(load_file(os.path.join(hub, "model.safetensors"))) - set(wanted))
            expect("MC2005" in run.stderr and lost and all(name in run.stderr for name in lost), f"{architecture}: {kind}: refused without the names: {run.stderr}")
            continue
        taken.append(architecture)
        mckpt(architecture, "verify", out, "--against", hub)
        again = values(cls.from_pretrained(out).to(torch.bfloat16).state_dict())  # which keeps some modules in fp32
        expect_equal(f"{architecture}: {kind} exported", [again[n] for n in sorted(wanted)], [wanted[n] for n in sorted(wanted)])


for architecture, entries in MODELS.items():
    if not hasattr(transformers, architecture):
        print(f"transformers {transformers.__version__} has no {architecture}")
        continue
    with tempfile.TemporaryDirectory(prefix="mckpt_no_table_") as folder:
        check(architecture, entries, folder)
for architecture in set(refused) - {"Gemma4UnifiedForConditionalGeneration"}:
    fail(f"{architecture} was not exported")
print(f"exported: {sorted(set(taken))}; refused by name: {sorted(set(refused))}")
finish(100)
