"""The settings of functions, as lib/options has them. Written by scripts/fields."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union

from ._setting_types import DType, Flag, Int, Place, Rules, Text, Texts

#: The result of a conversion: `to` of plan() and convert(). WORDS has a line for each of the first ones; the others are other words for the
#: same, such as the program's.
Kind = Literal[
    "hf",
    "mcore",
    "reshard",
    "ungroup",
    "group",
    "hybrid-to-gpt",
    "gpt-to-hybrid",
    "pt-to-safetensors",
    "torch-file",
    "safetensors",
    "fsdp",
    "ranks",
    "dequantize",
    "quantize",
    "dcp",
    "hdf5",
    "from-hdf5",
    "fsdp-to-hf",
    "to-hf",
    "to-mcore",
    "safetensors-to-pt",
    "to-safetensors",
    "to-fsdp",
    "hf-to-fsdp",
    "to-pt",
    "pt",
    "to-ranks",
    "to-dcp",
    "to-hdf5",
]

#: which model is read of a folder with two
ModelFiles = Optional[Literal["equal", "single", "shards"]]


class SourceSettings(TypedDict, total=False):
    """Settings of open_as_fsdp()."""

    assets: Place
    source_tp: Int
    source_etp: Int
    accept: Texts
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place


class DiffSettings(TypedDict, total=False):
    """Settings of diff()."""

    within: Texts
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place
    model_dict: Text
    assets: Place
    source_tp: Int
    source_etp: Int
    accept: Texts
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    path_tp: Int
    path_etp: Int
    live: Optional[Literal["megatron", "fsdp"]]
    rank: Int
    tp: Int
    cp: Int
    ep: Int
    etp: Int
    pp: Int
    dp: Int
    hsdp: Int
    hsdp_outer: Optional[Literal["replicate", "shard"]]
    engine: Optional[Literal["v1", "v2"]]
    strategy: Optional[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"]]
    transformer_units: Flag
    mamba_units: Flag
    hybrid_stack_units: Flag
    fp8_recipe: Optional[Literal["auto", "none", "tensorwise", "delayed", "blockwise", "mxfp8"]]
    units_for: Optional[Literal["full", "sharded"]]
    freeze: Texts
    bucket_size: Int
    spelling: Texts
    hybrid_pattern: Text
    vocab_size: Union[int, str, None]
    params_dtype: DType
    dtype: DType
    dtype_rule: Rules


class PlotSettings(TypedDict, total=False):
    """Settings of plot()."""

    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place


class CompareSettings(TypedDict, total=False):
    """Settings of verify(), with `against`."""

    assets: Place
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place
    model_dict: Text
    accept: Texts
    source_tp: Int
    source_etp: Int
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    path_tp: Int
    path_etp: Int
    params_dtype: DType
    dtype: DType
    dtype_rule: Rules
    weights_only: Flag


class ExportSettings(TypedDict, total=False):
    """Settings of export()."""

    assets: Place
    source_tp: Int
    source_etp: Int
    accept: Texts
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place
    model_dict: Text
    dtype: DType
    dtype_rule: Rules
    max_shard_size: Int
    quantize: Optional[Literal["like-source", "fp8-block", "mxfp4"]]


class LoadSettings(TypedDict, total=False):
    """Settings of load()."""

    rank: Int
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place
    tp: Int
    cp: Int
    ep: Int
    etp: Int
    pp: Int
    dp: Int
    hsdp: Int
    hsdp_outer: Optional[Literal["replicate", "shard"]]
    vocab_size: Union[int, str, None]
    params_dtype: DType
    dtype_rule: Rules
    spelling: Texts
    hybrid_pattern: Text


class ConversionSettings(TypedDict, total=False):
    """Settings of plan() and convert(), for every kind of conversion."""

    assets: Place
    source_tp: Int
    source_etp: Int
    accept: Texts
    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place
    follow_links: Flag
    model_files: Optional[Literal["equal", "single", "shards"]]
    base: Place
    model_dict: Text
    dtype: DType
    dtype_rule: Rules
    max_shard_size: Int
    quantize: Optional[Literal["like-source", "fp8-block", "mxfp4"]]
    iteration: Int
    weights_only: Flag
    tp: Int
    cp: Int
    ep: Int
    etp: Int
    pp: Int
    dp: Int
    vpp: Int
    first_stage_layers: Int
    last_stage_layers: Int
    layers: Optional[Literal["auto", "stacked", "indexed"]]
    spelling: Texts
    hybrid_pattern: Text
    vocab_size: Union[int, str, None]
    params_dtype: DType
    rank_states: Place
    source_ep: Int
    source_hsdp: Int
    any_model: Flag
    keep_names: Flag
    hsdp: Int
    hsdp_outer: Optional[Literal["replicate", "shard"]]
    engine: Optional[Literal["v1", "v2"]]
    strategy: Optional[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"]]
    transformer_units: Flag
    mamba_units: Flag
    hybrid_stack_units: Flag
    fp8_recipe: Optional[Literal["auto", "none", "tensorwise", "delayed", "blockwise", "mxfp8"]]
    units_for: Optional[Literal["full", "sharded"]]
    freeze: Texts
    bucket_size: Int
    fsdp_module: Texts
    pattern: Text
    keys: Optional[Literal["auto", "logical", "member"]]
    without_mixers: Flag
    norms: Optional[Literal["keep", "fused", "apart"]]
    include: Texts
    exclude: Texts
    tensors_only: Flag
    scheme: Optional[Literal["like-source", "fp8-block", "mxfp4"]]
    like: Place
    section: Text
    single_file: Flag


#: Settings that are whole numbers, of any kind or function.
NUMBERS = frozenset(
    {
        "bucket_size",
        "cp",
        "dp",
        "ep",
        "etp",
        "first_stage_layers",
        "hsdp",
        "iteration",
        "last_stage_layers",
        "max_memory",
        "max_shard_size",
        "path_etp",
        "path_tp",
        "pp",
        "rank",
        "source_ep",
        "source_etp",
        "source_hsdp",
        "source_tp",
        "threads",
        "tp",
        "vpp",
    }
)

#: Settings that are True or False, of any kind or function.
FLAGS = frozenset(
    {
        "allow_overflow",
        "any_model",
        "follow_links",
        "hybrid_stack_units",
        "keep_names",
        "mamba_units",
        "overwrite",
        "regex",
        "resume",
        "single_file",
        "stats",
        "strict",
        "sync",
        "tensors_only",
        "transformer_units",
        "weights_only",
        "without_mixers",
    }
)

#: By kind of conversion, or by function: settings with a sentence for each.
FIELDS: dict[str, dict[str, str]] = {
    "hf": {
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
        "dtype": "data type of the tensors: auto (as in the original model; as stored, where source has the model's own names), keep (as stored), bf16, fp16 or fp32",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
        "max_shard_size": "most bytes of tensors in one file; by default the files of the original model, where its headers are known and the tensors have the same types, else 5GB",
        "quantize": "of a Megatron checkpoint: write codes and scales; fp8-block, mxfp4, or like-source (those of assets, with its weights)",
    },
    "mcore": {
        "iteration": "write target/iter_000000N, N above 0; by default the name of source's folder, or release",
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
        "weights_only": "do not copy the states of the optimizer",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default the smallest that works",
        "vpp": "chunks of layers on each pipeline stage, which take turns",
        "first_stage_layers": "layers on the first pipeline stage; by default as many as on the others",
        "last_stage_layers": "layers on the last pipeline stage; by default as many as on the others",
        "layers": "whether all layers are one tensor: auto (as Megatron stores them for this model), stacked or indexed",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "hybrid_pattern": "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units follow it",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype": "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
    },
    "reshard": {
        "iteration": "write target/iter_000000N, N above 0; by default the name of source's folder, or release",
        "weights_only": "do not copy the states of the optimizer",
        "rank_states": "read the optimizer states from files ..._rank_R.pt, in which each rank of source's training run saved its own pieces",
        "source_ep": "number of expert-parallel ranks that wrote source, if source does not say so itself",
        "source_hsdp": "number of HSDP instances that wrote source, if source does not say so itself",
        "any_model": "accept a model without a table: all parameters are in one buffer, of one tensor-parallel rank",
        "keep_names": "with any_model: keep every tensor's own name, also where the names follow a convention that would be translated to that of fsdp_dtensor",
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default the smallest that works",
        "hsdp": "number of HSDP instances",
        "hsdp_outer": "how HSDP instances are related: replicate or shard",
        "vpp": "chunks of layers on each pipeline stage, which take turns",
        "first_stage_layers": "layers on the first pipeline stage; by default as many as on the others",
        "last_stage_layers": "layers on the last pipeline stage; by default as many as on the others",
        "hybrid_pattern": "the pattern of a hybrid source with | at the ends of the new stages; by default they are placed by pp and vpp",
        "engine": "v1 (default) or v2 of Megatron-FSDP; v2 saves whole parameters in fp32 under model.<param>",
        "strategy": "what is sharded: no_shard, optim, optim_grads or optim_grads_params",
        "transformer_units": "whether transformer layers are FSDP units",
        "mamba_units": "whether Mamba layers are FSDP units",
        "hybrid_stack_units": "whether the stacks of a hybrid model are FSDP units: its groups, or without groups the whole stack",
        "fp8_recipe": "recipe of weights that the run has in 8 bits (fp8_param_gather in Megatron): none, tensorwise, delayed, blockwise or mxfp8; they have buffers of their own, and checkpoints their fp32 main weights; auto (default): none, but a checkpoint whose boxes are those of such weights stays packed so",
        "units_for": "strategies that have FSDP units: full (only optim_grads_params) or sharded (later versions)",
        "freeze": "parameters that are not trained; none: all are trained, also those that the family freezes",
        "bucket_size": "number of items after which parameters outside FSDP units begin a new bucket; 0: never",
        "fsdp_module": "with any_model and engine v2: modules that are FSDP units, by their names, as in 'blocks.*'",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), mtp-transformer-layer (transformer_layer for MTP's mtp_model_layer, as in Megatron-Core up to 0.16), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
    },
    "ungroup": {
        "pattern": "the pattern of source, with its groups; by default the pattern in the args of source",
        "weights_only": "do not copy the states of the optimizer",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "group": {
        "pattern": "the pattern that the result has, with groups",
        "keys": "how groups are named: auto (as the format of source stores them), logical or member",
        "weights_only": "do not copy the states of the optimizer",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "hybrid-to-gpt": {
        "pattern": "the pattern of source; by default the pattern in the args of source",
        "layers": "stacked: one tensor for all layers; indexed: one for each layer; auto: as GPT models store them",
        "without_mixers": "drop the M layers, which a GPT model does not have",
        "norms": "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart (in the layer) or keep",
        "weights_only": "do not copy the states of the optimizer",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "gpt-to-hybrid": {
        "pattern": "the pattern that the result has: one * and one - or E for each layer of source",
        "keys": "how groups are named: auto (as the format of source stores them), logical or member",
        "without_mixers": "write a result without the M layers, which the training run has to initialise",
        "norms": "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart (in the layer) or keep",
        "weights_only": "do not copy the states of the optimizer",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "pt-to-safetensors": {
        "include": "convert only tensors whose whole name matches (repeatable)",
        "exclude": "leave out tensors whose whole name matches (repeatable)",
        "tensors_only": "write only tensors; skip args, iteration number and other objects",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "torch-file": {
        "include": "convert only tensors whose whole name matches (repeatable)",
        "exclude": "leave out tensors whose whole name matches (repeatable)",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "safetensors": {
        "assets": "folder with the model's config.json: says which names the model has",
        "dtype": "data type of floating-point tensors except float8: keep (as stored), bf16, fp16 or fp32",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
    },
    "fsdp": {
        "iteration": "write target/iter_000000N, N above 0; by default the name of Megatron's source, or release",
        "assets": "of a checkpoint: folder of the original model, or of its config.json, where there is none beside it",
        "weights_only": "do not copy the states of the optimizer",
        "rank_states": "read the optimizer states from files ..._rank_R.pt, in which each rank of source's training run saved its own pieces",
        "source_ep": "number of expert-parallel ranks that wrote source, if source does not say so itself",
        "source_hsdp": "number of HSDP instances that wrote source, if source does not say so itself",
        "any_model": "accept a model without a table: all parameters are in one buffer, of one tensor-parallel rank",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default the smallest that works",
        "hsdp": "number of HSDP instances",
        "hsdp_outer": "how HSDP instances are related: replicate or shard",
        "engine": "v1 (default) or v2 of Megatron-FSDP; v2 saves whole parameters in fp32 under model.<param>",
        "strategy": "what is sharded: no_shard, optim, optim_grads or optim_grads_params",
        "transformer_units": "whether transformer layers are FSDP units",
        "mamba_units": "whether Mamba layers are FSDP units",
        "hybrid_stack_units": "whether the stacks of a hybrid model are FSDP units: its groups, or without groups the whole stack",
        "fp8_recipe": "recipe of weights that the run has in 8 bits (fp8_param_gather in Megatron): none, tensorwise, delayed, blockwise or mxfp8; they have buffers of their own, and checkpoints their fp32 main weights; auto (default): none, but a checkpoint whose boxes are those of such weights stays packed so",
        "units_for": "strategies that have FSDP units: full (only optim_grads_params) or sharded (later versions)",
        "freeze": "parameters that are not trained; none: all are trained, also those that the family freezes",
        "bucket_size": "number of items after which parameters outside FSDP units begin a new bucket; 0: never",
        "fsdp_module": "with any_model and engine v2: modules that are FSDP units, by their names, as in 'blocks.*'",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "hybrid_pattern": "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units follow it",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype": "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
    },
    "ranks": {
        "iteration": "write target/iter_000000N, N above 0; by default target/release",
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default the smallest that works",
        "hsdp": "number of HSDP instances",
        "hsdp_outer": "how HSDP instances are related: replicate or shard",
        "vpp": "chunks of layers on each pipeline stage, which take turns",
        "first_stage_layers": "layers on the first pipeline stage; by default as many as on the others",
        "last_stage_layers": "layers on the last pipeline stage; by default as many as on the others",
        "hybrid_pattern": "the pattern of a hybrid source with | at the ends of the new stages; by default they are placed by pp and vpp",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), mtp-transformer-layer (transformer_layer for MTP's mtp_model_layer, as in Megatron-Core up to 0.16), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype": "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
    },
    "dequantize": {
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "dtype": "data type of the weights that are quantised: auto (as config.json says, else bf16), bf16, fp16 or fp32; other tensors keep theirs",
        "max_shard_size": "most bytes of tensors in one file of a folder; by default 5GB",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "quantize": {
        "scheme": "fp8-block (128 x 128 codes a scale, as DeepSeek-V3), mxfp4 (experts, as gpt-oss), or like-source",
        "like": "the quantised model that source was made of: scheme like-source",
        "max_shard_size": "most bytes of tensors in one file; by default 5GB, or the files of like",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "dcp": {
        "dp": "number of ranks that the rows are divided among; by default that of a DCP folder, else 1",
        "section": "the dict in which the tensors are, as in model. or app.model.; by default the one in source, and none for a Hugging Face folder",
        "assets": "folder with the model's config.json; needed for the shapes of tensors in files of LOCAL_STATE_DICT",
        "weights_only": "of a DCP folder: do not copy the states of the optimizer",
        "dtype": "data type of the model's floating-point tensors except float8: keep (as stored), bf16, fp16 or fp32; states of the optimizer keep theirs",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
    },
    "hdf5": {
        "single_file": "one HDF5 file, not a folder with a file for each file of source, whatever its name",
        "assets": "folder with config.json and tokenizer that go into the archive; by default those that are with source",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
    },
    "from-hdf5": {
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
    },
    "open_as_fsdp": {
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
    },
    "compare": {
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "path_tp": "tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too (source_tp describes SRC)",
        "path_etp": "expert-tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype": "the type that the conversion was asked for: a weight in another type is a difference; any (the default: types are taken as they are found), keep (those of SRC), bf16, fp16 or fp32",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
        "weights_only": "PATH was made without the states of the optimizer: those of SRC are named as not compared",
    },
    "diff": {
        "within": "tolerances: rtol:1e-3, or atol:1e-6,ulp:4, of all tensors; *.norm.weight=ulp:4 of some, of which the first that matches decides",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "model_dict": "of a save with several dicts that may be the model: the one that is, such as actor or state.policy",
        "assets": "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer",
        "source_tp": "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "source_etp": "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself",
        "accept": "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "path_tp": "tensor-parallel ranks that wrote A, if it does not say so (source_tp describes B)",
        "path_etp": "expert-tensor-parallel ranks that wrote A, if it does not say so",
        "live": "one side is a dump of a live rank, the other its model: what a rank has in a run of megatron or fsdp",
        "rank": "the rank whose dump it is, by default the one that the dump says; tp varies fastest, then cp, dp, pp",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default from the number of ranks that the dump says",
        "hsdp": "number of HSDP instances",
        "hsdp_outer": "how HSDP instances are related: replicate or shard",
        "engine": "v1 (default) or v2 of Megatron-FSDP; v2 saves whole parameters in fp32 under model.<param>",
        "strategy": "what is sharded: no_shard, optim, optim_grads or optim_grads_params",
        "transformer_units": "whether transformer layers are FSDP units",
        "mamba_units": "whether Mamba layers are FSDP units",
        "hybrid_stack_units": "whether the stacks of a hybrid model are FSDP units: its groups, or without groups the whole stack",
        "fp8_recipe": "recipe of weights that the run has in 8 bits (fp8_param_gather in Megatron): none, tensorwise, delayed, blockwise or mxfp8; they have buffers of their own, and checkpoints their fp32 main weights; auto (default): none, but a checkpoint whose boxes are those of such weights stays packed so",
        "units_for": "strategies that have FSDP units: full (only optim_grads_params) or sharded (later versions)",
        "freeze": "parameters that are not trained; none: all are trained, also those that the family freezes",
        "bucket_size": "number of items after which parameters outside FSDP units begin a new bucket; 0: never",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "hybrid_pattern": "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units follow it",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype": "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
    },
    "plot": {
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
    },
    "load_rank": {
        "rank": "the rank whose tensors are loaded; tp varies fastest, then cp, dp, pp",
        "expert_layout": "how experts are stored: auto, apart, fused or hub (transposed)",
        "map_file": "JSON file with rows that override the built-in table, as mckpt mappings draft writes them",
        "follow_links": "follow links that lead out of a checkpoint's folder",
        "model_files": "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards",
        "base": "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged",
        "tp": "tensor-parallel size",
        "cp": "context-parallel size",
        "ep": "expert-parallel size",
        "etp": "expert-tensor-parallel size, 1 by default (not tp)",
        "pp": "pipeline stages",
        "dp": "data-parallel size, without cp and including hsdp; by default the smallest that works",
        "hsdp": "number of HSDP instances",
        "hsdp_outer": "how HSDP instances are related: replicate or shard",
        "vocab_size": "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)",
        "params_dtype": "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32",
        "dtype_rule": "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)",
        "spelling": "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like), or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own",
        "hybrid_pattern": "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units follow it",
    },
}

#: The result of each `to`, and other words for it.
WORDS: dict[str, str] = {
    "hf": "a Hugging Face folder, of a checkpoint of a training run; as mckpt.export(); fsdp-to-hf, to-hf",
    "mcore": "torch_dist of Megatron-Core, of any checkpoint; to-mcore",
    "reshard": "the same format for another grid: fsdp_dtensor, torch_dist, other DCP, files of Megatron's ranks (weights only)",
    "ungroup": "the same format, with the layers of groups as layers of their own",
    "group": "the same format, with layers in groups",
    "hybrid-to-gpt": "the same format, with names of layers as a GPT model has them",
    "gpt-to-hybrid": "the same format, with names of layers as a hybrid model has them",
    "pt-to-safetensors": "one safetensors file with the tensors of .pt files as they are",
    "torch-file": "ONE FILE of torch.save, .pt, .pth, .bin or .ckpt, with the tensors of safetensors files as they are; safetensors-to-pt",
    "safetensors": "one safetensors file, of a Hugging Face model or a checkpoint with its names; to-safetensors",
    "fsdp": "fsdp_dtensor of Megatron-FSDP, of any checkpoint; of Megatron's with the states of the optimizer; to-fsdp, hf-to-fsdp",
    "ranks": "A FOLDER with the files of Megatron's ranks, mp_rank_*/model_optim_rng.pt, of any checkpoint; to-pt, pt, to-ranks",
    "dequantize": "a Hugging Face folder with plain numbers, of a quantised one",
    "quantize": "a Hugging Face folder with codes and scales, of one with plain numbers",
    "dcp": "a torch DCP folder, of a Hugging Face model or a checkpoint with its names; to-dcp",
    "hdf5": "an HDF5 archive with all files, of any checkpoint; to-hdf5",
    "from-hdf5": "the files again, of such an archive",
}
