"""Every rank of the golden runs: names in order, types, local shapes and digests as `mckpt ls --as megatron` lists them.
"""
import os

from mckpt_tests.checks import expect_equal, fail, in_parallel
from mckpt_tests.golden import finish, listing, report, sections, sha
from mckpt_tests.models import GOLDEN, Models

# The real tool read these wrongly (README.md of the golden data): square experts untransposed, and dense layers of a
# model with experts left random. mckpt must be right, so they are compared with the source itself.
WRONG = {"gpt_oss_2i", "qwen3_moe_mlponly", "qwen3_moe_sparse2"}
models = Models()


def grid_flags(head):
    return [f"--{part}" for part in head[0].split()[1:]]


def rows_of(model, head, rank):
    return listing(models.path(model), "--as", "megatron", "--vocab-size", "auto", "--rank", rank, *grid_flags(head))


def check_rank(tag, model, head, rank, lines):
    rows = rows_of(model, head, rank)
    if isinstance(rows, str):
        return fail(f"{tag} rank {rank}: {rows}")
    got = [f"{r['name']} {r['dtype']} {'x'.join(map(str, r['shape'])) or '-'} {r['sha256']}" for r in rows]
    parameters = [line for line in got if ".router.expert_bias " not in line]
    buffers = sorted("buffer " + line for line in got if ".router.expert_bias " in line)
    expect_equal(f"{tag} rank {rank}", parameters, [line for line in lines if not line.startswith("buffer ")])
    expect_equal(f"{tag} rank {rank} buffers", buffers, sorted(line for line in lines if line.startswith("buffer ")))


def check_square_experts():
    """fc1 of expert e: the even columns of gate_up_proj[e] as rows, then the odd ones."""
    model = "gpt_oss_2i"
    (experts, hidden, columns), data = models.tensors(model)["model.layers.0.mlp.experts.gate_up_proj"]
    assert hidden == columns
    rows = {r["name"]: r["sha256"] for r in listing(models.path(model), "--as", "megatron")}
    want, got = [], []
    for e in range(experts):
        def item(h, c):
            at = ((e * hidden + h) * columns + c) * 2
            return data[at:at + 2]
        order = [*range(0, columns, 2), *range(1, columns, 2)]
        want.append(sha(*(item(h, c) for c in order for h in range(hidden))))
        got.append(rows[f"decoder.layers.0.mlp.experts.linear_fc1.weight{e}"])
    expect_equal(model, got, want)


def check_dense_layers(model, dense):
    """The dense layers of a model with experts, on one rank: gate above up, and no router."""
    tensors = models.tensors(model)
    rows = {r["name"]: r["sha256"] for r in listing(models.path(model), "--as", "megatron")}
    for layer in dense:
        hf, mc = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        want = [sha(tensors[hf + "mlp.gate_proj.weight"][1], tensors[hf + "mlp.up_proj.weight"][1]),
                sha(tensors[hf + "mlp.down_proj.weight"][1]), sha(tensors[hf + "post_attention_layernorm.weight"][1])]
        got = [rows.get(mc + leaf) for leaf in ("mlp.linear_fc1.weight", "mlp.linear_fc2.weight", "mlp.linear_fc1.layer_norm_weight")]
        expect_equal(f"{model} layer {layer}", got, want)
        expect_equal(f"{model} layer {layer}", [n for n in rows if n.startswith(mc) and "router" in n], [])


def check_partly(tag, model, head, rank, lines):
    """For a run that went wrong: whatever both sides have under one name and the real tool did read is
    equal."""
    rows = {r["name"]: r["sha256"] for r in rows_of(model, head, rank)}
    attention = [line.split() for line in lines if ".self_attention." in line or not line.startswith("decoder.layers")]
    expect_equal(f"{tag} rank {rank}", [rows.get(a[0]) for a in attention], [a[3] for a in attention])


def check_plain_queries():
    """DeepSeek-V3 without low-rank queries: the real tool cannot load it. One projection, and no norm of it."""
    model = "deepseek_v3_noq"
    rows = {r["name"]: r["sha256"] for r in listing(models.path(model), "--as", "megatron")}
    names = sorted(n for n in rows if n.startswith("decoder.layers.0.self_attention.linear_q"))
    expect_equal(model, names, ["decoder.layers.0.self_attention.linear_q_proj.weight"])
    expect_equal(model, [rows[n] for n in names], [sha(models.tensors(model)["model.layers.0.self_attn.q_proj.weight"][1])])


work = []
for name in sorted(os.listdir(os.path.join(GOLDEN, "ranks"))):
    head, ranks = sections(f"ranks/{name}")
    model, run = name.split(".")[0], name.removesuffix(".txt")
    check = check_partly if model in WRONG else check_rank
    work += [(check, (run, model, head, rank, lines)) for rank, lines in enumerate(ranks)]
in_parallel(lambda check, args: check(*args), work)
compared = [args[0] for check, args in work if check is check_rank]
report({run: f"ranks equal: {compared.count(run)}" for run in compared})
check_square_experts()
check_dense_layers("qwen3_moe_mlponly", [0])
check_dense_layers("qwen3_moe_sparse2", [0, 2])
check_plain_queries()
finish(5198, "ranks")
