"""The families that are written down once more as formulas (mckpt_tests/formulas.py), without a look at mckpt's tables. A new one
is a function, and a row here.
"""

from mckpt_tests.family_formulas.deepseek_v4 import deepseek_v4
from mckpt_tests.family_formulas.ernie import ernie4_5_vl_moe
from mckpt_tests.family_formulas.exaone import exaone4_5
from mckpt_tests.family_formulas.gemma4 import gemma4
from mckpt_tests.family_formulas.kimi_k25 import kimi_k25
from mckpt_tests.family_formulas.mcore_bridge import internvl, llama4, muse_glimmer
from mckpt_tests.family_formulas.mimo_v2 import mimo_v2_flash
from mckpt_tests.family_formulas.nemotron import llama_nemotron, nemotron_omni, nemotron_vl
from mckpt_tests.family_formulas.qwen import qwen2_5_omni, qwen3_asr
from mckpt_tests.family_formulas.qwen4 import qwen4_exp
from mckpt_tests.family_formulas.sarvam import sarvam_mla
from mckpt_tests.family_formulas.step import step3p5, step3p7
from mckpt_tests.formulas import Family

SPLIT = dict(experts=True, split_experts=True, in_order=True)
FAMILIES = {
    "llama_nemotron": Family(llama_nemotron),
    "qwen3_asr": Family(qwen3_asr),
    "qwen2_5_omni": Family(qwen2_5_omni),
    "exaone4_5": Family(exaone4_5, no_context=True),
    "nemotron_vl": Family(nemotron_vl, no_context=True),
    "nemotron_omni": Family(nemotron_omni, experts=True, no_context=True),
    "ernie4_5_vl_moe": Family(ernie4_5_vl_moe, experts=True),
    "gemma4": Family(gemma4, experts=True, no_context=True),
    "internvl": Family(internvl, experts=True),
    "llama4": Family(llama4, experts=True),
    "muse_glimmer": Family(muse_glimmer),
    "qwen4_exp": Family(qwen4_exp, **SPLIT),
    "sarvam_mla": Family(sarvam_mla, experts=True),
    "deepseek_v4": Family(deepseek_v4, experts=True, one_tensor_rank=True),
    "step3p5": Family(step3p5, **SPLIT),
    "step3p7": Family(step3p7, **SPLIT),
    "mimo_v2_flash": Family(mimo_v2_flash, no_context=True, **SPLIT),
    "kimi_k25": Family(kimi_k25, **SPLIT),
}
