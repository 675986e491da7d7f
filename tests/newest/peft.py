"""PEFT: a LoRA, with another scale and with DoRA, beside its base; what it merges is what `export` writes."""

import torch
from common import Case, main, tiny_model, values


def adapter(out, name, form, **how):
    from peft import LoraConfig, get_peft_model
    case = Case(out, name, src="adapter", form=form)
    base = tiny_model()
    base.save_pretrained(case.at("base"))
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj", "down_proj"], r=3, lora_alpha=5, task_type="CAUSAL_LM", **how))
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if "lora_" in key and "magnitude" not in key:
                tensor.copy_(values(key, tensor.shape, torch.float32).to(tensor.dtype) / 8)
    model.save_pretrained(case.at("adapter"))
    from transformers import AutoModelForCausalLM
    from peft import PeftModel
    merged = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(case.at("base"), dtype=torch.bfloat16), case.at("adapter")).merge_and_unload()
    case.expect_folder(merged)


def lora(out):
    adapter(out, "lora", "LoRA")


def rslora(out):
    adapter(out, "rslora", "with use_rslora", use_rslora=True)


if __name__ == "__main__":
    main(["peft", "transformers"], lora, rslora)
