"""DeepSpeed: ZeRO 1 to 3 on CPU ranks, one step, `save_checkpoint`; what its own zero_to_fp32 makes of it is what `convert to-safetensors` writes. With AutoTP, which
zero_to_fp32 refuses, what its ds_to_universal makes of it."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist
from common import Case, main, run_ranks, tiny_model


def save(folder, stage, tp=1):
    import deepspeed
    import deepspeed.comm.torch
    deepspeed.comm.torch.build_shm_op = lambda: None  # collectives in shared memory: compiled here, and they hang where cores are few
    deepspeed.comm.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)
    model = tiny_model(dtype=torch.float32)
    settings = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage}, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
                "gradient_clipping": 0.0, **({"tensor_parallel": {"autotp_size": tp}} if tp > 1 else {})}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3), config=settings)
    tokens = torch.arange(8).reshape(1, 8) + dist.get_rank() // tp
    engine.backward(engine(input_ids=tokens, labels=tokens).loss)
    engine.step()
    engine.save_checkpoint(folder, tag="global_step1")


def make(out, stage, world):
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    case = Case(out, f"zero{stage}", src="ckpt", form=f"ZeRO {stage}")
    run_ranks(world, save, case.at("ckpt"), stage)
    case.expect_folder(tiny_model(dtype=torch.float32))
    for name in ("expected.json", "expected_bf16.json"):  # training has changed the values
        os.remove(case.at(name))
    case.answer("expected_raw", {key: t.clone() for key, t in get_fp32_state_dict_from_zero_checkpoint(case.at("ckpt")).items()})
    os.rename(case.at("expected_raw.json"), case.at("expected.json"))


def zero1(out):
    make(out, 1, 2)


def zero2(out):
    make(out, 2, 3)


def zero3(out):
    make(out, 3, 2)


def autotp(out):
    case = Case(out, "autotp", src="ckpt/global_step1", form="ZeRO 2 with AutoTP")
    run_ranks(4, save, case.at("ckpt"), 2, 2)
    subprocess.run([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--input_folder", case.at("ckpt/global_step1"), "--output_folder", case.at("universal"),
                    "--num_extract_workers", "1", "--num_merge_workers", "1"], check=True, stdout=subprocess.DEVNULL)
    case.expect_folder(tiny_model(dtype=torch.float32))
    os.remove(case.at("expected_bf16.json"))
    zero = case.at("universal/zero")
    names = [name for name in os.listdir(zero) if os.path.exists(os.path.join(zero, name, "fp32.pt"))]
    case.answer("expected", {name: torch.load(os.path.join(zero, name, "fp32.pt"), weights_only=False)["param"] for name in names})


if __name__ == "__main__":
    main(["deepspeed", "torch"], zero1, zero2, zero3, autotp)
