"""Models that no family of mckpt has, as transformers builds them and as a training run under the model's own names saves them: torch
DCP, FSDP2 of two ranks as accelerate lays it out, and one file of torch.save. `export`, `to-safetensors` and `verify` need no
table: transformers loads what is exported, and has the values that were saved. `hf-to-fsdp` of each is refused, and told what can be done.
Models that have other names in memory than in their release, which mckpt does not know, are refused by `export`, with these names.

    families_without_table.py [ARCHITECTURE...]
"""
import importlib.util
import os
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, finish, need
from mckpt_tests.program import run_mckpt

need("torch", "transformers", "safetensors")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

transformers.utils.logging.disable_progress_bar()
SIZES = dict(vocab_size=136, hidden_size=48, intermediate_size=88, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4)
TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
PLAIN = SIZES | TOKENS
LATENT = dict(q_lora_rank=28, kv_lora_rank=20, qk_nope_head_dim=10, qk_rope_head_dim=4, v_head_dim=6, num_key_value_heads=8)
INDEXER = dict(index_n_heads=4, index_head_dim=8, index_topk=16)
ROUTED = dict(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=20, n_shared_experts=1, n_group=1, topk_group=1)
EXPERTS = dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=20)
SLIDING = dict(head_dim=10, swa_num_attention_heads=8, swa_num_key_value_heads=2, swa_head_dim=6, sliding_window_size=16, d_rel=4, rel_extent=16, unpadded_vocab_size=130)
TOWER = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=2)


def less(entries, *names):
    return {key: value for key, value in entries.items() if key not in names}


MODELS = {
    "Gemma4UnifiedForConditionalGeneration": dict(
        vision_config=dict(patch_size=4, pooling_kernel_size=3, mm_embed_dim=36, mm_posemb_size=10, output_proj_dims=36), audio_config=dict(audio_embed_dim=20),
        text_config=SIZES | dict(head_dim=10, global_head_dim=16, max_position_embeddings=128, sliding_window=16)),
    "KimiLinearForCausalLM": PLAIN | dict(num_attention_heads=4, moe_intermediate_size=20, num_experts=8, num_local_experts=8),
    "BailingHybridForCausalLM": PLAIN | dict(
        num_attention_heads=4, moe_intermediate_size=20, kv_lora_rank=12, qk_rope_head_dim=4, v_head_dim=8, qk_nope_head_dim=8, n_group=1, topk_group=1, num_experts_per_tok=2,
        first_k_dense_replace=1, num_local_experts=8, layer_group_size=2, head_dim=8, num_mtp_layers=0),
    "Glm5NextForConditionalGeneration": dict(
        text_config=PLAIN | LATENT | ROUTED | INDEXER | dict(linear_head_dim=6, linear_num_heads=4, hc_mult=2, index_kpool=4, qk_rope_head_dim=0, head_dim=0),
        vision_config=dict(depth=2, hidden_size=24, num_heads=2, image_size=16, patch_size=4, out_hidden_size=48, intermediate_size=40, projection_intermediate_size=56)),
    "InklingForConditionalGeneration": dict(
        text_config=SIZES | less(ROUTED, "n_group", "topk_group") | SLIDING, audio_config=dict(n_mel_bins=10, mel_vocab_size=12, text_hidden_size=48),
        vision_config=TOWER | dict(text_hidden_size=48, patch_size=4)),
    "InklingForCausalLM": PLAIN | less(ROUTED, "n_group", "topk_group") | SLIDING,
    "Inkling2ForConditionalGeneration": dict(
        text_config=less(SIZES, "intermediate_size") | less(ROUTED, "n_shared_experts", "n_group", "topk_group") | SLIDING | dict(n_layers_per_attn_res_block=2),
        vision_config=TOWER | dict(patch_size=4, posemb_grid_size=4, projection_hidden_dim=40, text_hidden_size=48, mlp_ratio=2.0)),
    "LagunaForCausalLM": PLAIN | EXPERTS | dict(head_dim=10, shared_expert_intermediate_size=24, sliding_window=16),
    "Mistral4ForCausalLM": PLAIN | LATENT | ROUTED | dict(first_k_dense_replace=1),
    "MistralLarge4ForConditionalGeneration": dict(
        text_config=SIZES | LATENT | ROUTED | INDEXER | dict(head_dim=4),
        vision_config=TOWER | dict(model_type="pixtral", intermediate_size=40, image_size=16, patch_size=4, head_dim=12)),
    "LongcatFlashForCausalLM": less(PLAIN | LATENT, "intermediate_size", "num_hidden_layers") | dict(
        num_layers=2, ffn_hidden_size=88, head_dim=4, moe_topk=2, n_routed_experts=8, zero_expert_num=4, expert_ffn_hidden_size=20),
    "HYV4ForCausalLM": PLAIN | LATENT | ROUTED | INDEXER | dict(head_dim=14, hc_mult=2),
    "Dots1ForCausalLM": PLAIN | ROUTED | dict(head_dim=10, first_k_dense_replace=1),
    "AXK1ForCausalLM": PLAIN | LATENT | ROUTED,
    "AXK2ForCausalLM": PLAIN | LATENT | ROUTED,
    "BeamForCausalLM": PLAIN | EXPERTS | dict(head_dim=10, n_group=1, topk_group=1, sliding_window=16),
    "MuseSparkForConditionalGeneration": dict(
        text_config=SIZES | dict(head_dim=10, moe_intermediate_size=20, num_local_experts=8, num_experts_per_tok=2, moe_hidden_size=28, sliding_window=16),
        vision_config=TOWER | dict(num_attention_heads=3, intermediate_size=40, patch_size=14, pos_emb_height=4, pos_emb_width=5, max_position_embeddings=20),
        audio_config=dict(patch_sizes=[4, 2, 2, 2], hidden_sizes=[8, 10, 12, 14], depths=[1, 1, 1, 1], conv_kernel_size=3, out_hidden_size=48),
        out_hidden_size=96, projector_hidden_size=56),
    "Cohere2MoeForCausalLM": PLAIN | EXPERTS | dict(head_dim=10),
    "SolarOpenForCausalLM": PLAIN | ROUTED | dict(head_dim=10),
    "Lfm3ForCausalLM": PLAIN,
    "OlmoHybridForCausalLM": PLAIN | dict(linear_key_head_dim=6, linear_value_head_dim=6, linear_num_key_heads=4, linear_num_value_heads=4),
    "ApertusForCausalLM": PLAIN,
    "SmolLM3ForCausalLM": PLAIN,
    "AfmoeForCausalLM": PLAIN | EXPERTS | dict(head_dim=10, num_dense_layers=1, sliding_window=16),
    "Jais2ForCausalLM": PLAIN,
}
# A class that imports another package, which may not be here.
NEEDS = {"InklingForConditionalGeneration": "scipy"}
# These have other names in memory than in the release, which no table of mckpt has; of Inkling 2 it has the names of transformers 5.24.
OTHER_NAMES = {"Gemma4UnifiedForConditionalGeneration", "Inkling2ForConditionalGeneration"}
RANKS = 2
taken, refused, left_out = [], [], []


def mckpt(what, *arguments, status=0):
    run = run_mckpt(*arguments, "-q", timeout=60)
    expect(run.returncode == status, f"{what}: mckpt {' '.join(arguments)}: {run.returncode}: {run.stdout}{run.stderr}")
    return run


def values(tensors):
    return {name: (t.dtype, list(t.shape), t.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()) for name, t in tensors.items()}


def built(architecture):
    """The model in bfloat16; vectors, which a class fills with ones and zeros, get values of their own."""
    cls = getattr(transformers, architecture)
    torch.manual_seed(1)
    model = cls(cls.config_class(**MODELS[architecture])).to(torch.bfloat16)
    with torch.no_grad():
        for t in [*model.parameters(), *(b for name, b in model.named_buffers() if name in model.state_dict() and b.is_floating_point())]:
            if t.dim() == 1:
                t.add_(torch.randn_like(t) / 8)
    return model


def save_shards(rank, folder, names):
    """As accelerate saves FSDP2: {"model": the state} in pytorch_model_fsdp_0."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    for name in names:
        model = built(name)
        fully_shard(model, mesh=mesh)
        dcp.save({"model": model.state_dict()}, checkpoint_id=os.path.join(folder, name, "fsdp2", "pytorch_model_fsdp_0"))
    dist.barrier()


def run_ranks(folder, names):
    """Children of this process, which has imported everything and has no thread."""
    children = []
    for rank in range(RANKS):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                save_shards(rank, folder, names)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(pid)
    expect(not any(os.waitpid(pid, 0)[1] for pid in children), "the ranks of FSDP2 failed")


def refuses_megatron(architecture, hub, folder):
    run = mckpt(architecture, "convert", "hf-to-fsdp", hub, os.path.join(folder, "megatron"), status=3)
    for words in ("MC2002", "mckpt mappings draft", "need no table", "mckpt export"):
        expect(words in run.stderr, f"{architecture}: hf-to-fsdp does not say '{words}': {run.stderr}")


def check(architecture, folder, beside):
    """`beside`: which of the two saves of one process is taken to FSDP2's."""
    cls = getattr(transformers, architecture)
    model = built(architecture)
    hub, save, file = (os.path.join(folder, name) for name in ("hub", "dcp", "model.pt"))
    model.save_pretrained(hub)
    state = model.state_dict()
    dcp.save(state, checkpoint_id=save, no_dist=True) if beside == "dcp" else torch.save(state, file)
    refuses_megatron(architecture, hub, folder)
    wanted = values(state)
    for kind, source in (("fsdp2", os.path.join(folder, "fsdp2")), (beside, save if beside == "dcp" else file)):
        mckpt(architecture, "verify", source)
        single = os.path.join(folder, f"{kind}.safetensors")
        mckpt(architecture, "convert", "to-safetensors", source, single)
        mckpt(architecture, "verify", single, "--against", source)
        distinct = values(load_file(single))
        expect(set(distinct) <= set(wanted), f"{architecture}: {kind}: names that the model has not: {sorted(set(distinct) - set(wanted))[:3]}")
        expect_equal(f"{architecture}: {kind} as one file", [distinct[n] for n in sorted(distinct)], [wanted[n] for n in sorted(distinct)])
        out = os.path.join(folder, f"{kind}_export")
        run = run_mckpt("export", source, out, "--assets", hub, "-q", timeout=60)
        if run.returncode:
            refused.append(architecture)
            lost = set(load_file(os.path.join(hub, "model.safetensors"))) - set(wanted)
            named = {line[5:].removeprefix("missing: ") for line in run.stderr.splitlines() if line.startswith("   = ") and not line.startswith("   = and ")}
            expect("MC2005" in run.stderr and named and named <= lost, f"{architecture}: {kind}: refused without the names: {run.stderr}")
            continue
        taken.append(architecture)
        mckpt(architecture, "verify", out, "--against", hub)
        again = values(cls.from_pretrained(out).to(torch.bfloat16).state_dict())  # which keeps some modules in fp32
        expect_equal(f"{architecture}: {kind} exported", [again.get(n) for n in sorted(wanted)], [wanted[n] for n in sorted(wanted)])


def main():
    names = []
    for name in sys.argv[1:] or MODELS:
        lacks = NEEDS.get(name) if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None else None
        if lacks or not hasattr(transformers, name):
            left_out.append(f"{name} ({'without ' + lacks if lacks else 'not in transformers ' + transformers.__version__})")
        else:
            names.append(name)
    with tempfile.TemporaryDirectory(prefix="mckpt_no_table_") as folder:
        run_ranks(folder, names)
        for i, name in enumerate(names):
            check(name, os.path.join(folder, name), ("dcp", "pt")[i % 2])
    for name in set(refused) - OTHER_NAMES:
        fail(f"{name} was not exported")
    print(f"exported: {sorted(set(taken))}; refused by name: {sorted(set(refused))}; left out: {left_out or 'none'}")
    finish(40 * len(names))


main()
