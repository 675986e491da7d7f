"""The settings of functions, with their types: for editors, mypy and help().

    mckpt.plan("Qwen3-0.6B", "ckpt", to="fsdp", tp=2, dtype_rule={"*.router.*": "fp32"})
                                                 '-----'-- keys of ConversionSettings

A class is a group of settings that belong together; its text has a line for each of them. The groups of a function
are listed in its text. None leaves a setting out. tests/python/settings_are_known.py compares names and types with
those that the library reads.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, TypeVar, Union

from ._call import Path

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from typing_extensions import Unpack as Unpack  # known to every type checker, and never imported
else:
    Unpack = getattr(typing, "Unpack", Optional)

Int = Optional[int]
Flag = Optional[bool]
Text = Optional[str]
Texts = Union[str, Sequence[str], None]
Place = Optional[Path]
#: which model is read of a folder with two
ModelFiles = Optional[Literal["equal", "single", "shards"]]
#: "bf16", "fp16", "fp32", as torch spells them or as torch has them; some settings have more words, such as "auto"
DType = Union[str, "torch.dtype", None]
Rules = Optional[Mapping[str, Union[str, "torch.dtype"]]]

#: What a conversion is to make: `to` of plan() and convert(). WORDS has a line for each of the first 17; the others are other
#: words for the same, such as those of the program.
Kind = Literal[
    "fsdp",
    "mcore",
    "hf",
    "reshard",
    "safetensors",
    "dcp",
    "dequantize",
    "quantize",
    "hdf5",
    "from-hdf5",
    "pt-to-safetensors",
    "pt",
    "ranks",
    "ungroup",
    "group",
    "hybrid-to-gpt",
    "gpt-to-hybrid",
    "to-fsdp",
    "to-mcore",
    "to-hf",
    "to-safetensors",
    "to-ranks",
    "to-dcp",
    "to-hdf5",
    "to-pt",
    "hf-to-fsdp",
    "fsdp-to-hf",
    "safetensors-to-pt",
]


class Files(TypedDict, total=False):
    """
    follow_links: follow links that lead out of the checkpoint's folder
    model_files: which weights are read of a folder with two models, model.safetensors or pytorch_model.bin and other shards: equal, single or shards
    base: the Hugging Face model that an adapter of PEFT (LoRA) changes: the adapter's folder is read as that model with it merged
    """

    follow_links: Flag
    model_files: ModelFiles
    base: Place


class Model(TypedDict, total=False):
    """
    expert_layout: how a Hugging Face model stores experts: auto, apart, fused or hub (transposed)
    map_file: a file with rows that override the built-in table of names
    """

    expert_layout: Optional[Literal["auto", "apart", "fused", "hub"]]
    map_file: Place


class Accept(TypedDict, total=False):
    """
    accept: codes of damage that is accepted: "MC1311"
    """

    accept: Texts


class Assets(TypedDict, total=False):
    """
    assets: folder of the original Hugging Face model, if the checkpoint has no copy of its config
    """

    assets: Place


class Source(TypedDict, total=False):
    """
    source_tp: tensor-parallel ranks that wrote the checkpoint, if it does not say so
    source_etp: expert-tensor-parallel ranks that wrote it, if it does not say so
    """

    source_tp: Int
    source_etp: Int


class Tested(TypedDict, total=False):
    """
    path_tp: tensor-parallel ranks that wrote the first checkpoint, if it does not say so
    path_etp: expert-tensor-parallel ranks that wrote it, if it does not say so
    """

    path_tp: Int
    path_etp: Int


class Within(TypedDict, total=False):
    """
    within: tolerances: "rtol:1e-3", "atol:1e-6,ulp:4" for all tensors, "*.norm.weight=ulp:4" for some
    """

    within: Texts


class Ranks(TypedDict, total=False):
    """
    dp: data-parallel ranks, without cp; the smallest number that fits the other sizes unless it is set
    """

    dp: Int


class Grid(TypedDict, total=False):
    """
    tp: tensor-parallel ranks
    cp: context-parallel ranks
    ep: expert-parallel ranks
    etp: tensor-parallel ranks of experts
    pp: pipeline stages
    hsdp: FSDP instances, which dp contains
    hsdp_outer: how the instances are related: replicate or shard
    """

    tp: Int
    cp: Int
    ep: Int
    etp: Int
    pp: Int
    hsdp: Int
    hsdp_outer: Optional[Literal["replicate", "shard"]]


class Pipeline(TypedDict, total=False):
    """
    vpp: chunks of layers on each pipeline stage, which take turns
    first_stage_layers: layers on the first pipeline stage; as many as on the others unless it is set
    last_stage_layers: layers on the last pipeline stage, likewise
    """

    vpp: Int
    first_stage_layers: Int
    last_stage_layers: Int


class Spelling(TypedDict, total=False):
    """
    spelling: names as other versions of Megatron have them: unfused-norms; of files of ranks also submodule-conv, mtp-transformer-layer
    """

    spelling: Texts


class Fsdp(TypedDict, total=False):
    """
    engine: of Megatron-FSDP: v1, or v2 (whole parameters, in fp32, under model.<param>)
    strategy: what is sharded: no_shard, optim, optim_grads or optim_grads_params
    transformer_units: whether transformer layers are FSDP units
    mamba_units: whether Mamba layers are FSDP units
    hybrid_stack_units: whether the stacks of a hybrid model are FSDP units
    units_for: strategies that have units: full (only optim_grads_params) or sharded
    bucket_size: items at which buckets outside of units are cut; 0: never
    freeze: globs of parameters that are not trained; "none": all are
    """

    engine: Optional[Literal["v1", "v2"]]
    strategy: Optional[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"]]
    transformer_units: Flag
    mamba_units: Flag
    hybrid_stack_units: Flag
    units_for: Optional[Literal["full", "sharded"]]
    bucket_size: Int
    freeze: Texts


class Vocab(TypedDict, total=False):
    """
    vocab_size: rows of the vocabulary: auto (padded where needed), keep, a number, or divisible-by-128 as Megatron pads
    """

    vocab_size: Union[int, str, None]


class ParamsDtype(TypedDict, total=False):
    """
    params_dtype: type at run time, through which values pass: none, auto, bf16, fp16 or fp32
    """

    params_dtype: DType


class Dtype(TypedDict, total=False):
    """
    dtype: type that is written: bf16, fp16, fp32, keep (as stored) or auto (of the original model, to="hf"); verify(): any
    """

    dtype: DType


class DtypeRule(TypedDict, total=False):
    """
    dtype_rule: types by globs of names, {"*.router.*": "fp32"}; of several that match, the last decides
    """

    dtype_rule: Rules


class Naming(TypedDict, total=False):
    """
    spelling: names as other versions of Megatron have them: submodule-conv, unfused-norms
    hybrid_pattern: layer pattern of a hybrid training run with its layers in groups: "[*-]M"
    """

    spelling: Texts
    hybrid_pattern: Text


class Iteration(TypedDict, total=False):
    """
    iteration: number of the iteration that is written
    """

    iteration: Int


class Export(TypedDict, total=False):
    """
    max_shard_size: bytes of tensors in one file
    """

    max_shard_size: Int


class Quantizing(TypedDict, total=False):
    """
    quantize: codes and scales instead of plain numbers: fp8-block, mxfp4, or like-source, as `assets` has them
    """

    quantize: Optional[Literal["fp8-block", "mxfp4", "like-source"]]


class Scheme(TypedDict, total=False):
    """
    scheme: how weights are quantised: fp8-block, mxfp4, or like-source, as the model in `like` has them
    like: the quantised model that the source was made of
    """

    scheme: Optional[Literal["fp8-block", "mxfp4", "like-source"]]
    like: Place


class Dict(TypedDict, total=False):
    """
    section: the nested dict in which the tensors are, "app.model."; not of a DCP folder
    """

    section: Text


class ModelDict(TypedDict, total=False):
    """
    model_dict: of a checkpoint with several dicts that may be the model: the one that is, such as "actor"
    """

    model_dict: Text


class SingleFile(TypedDict, total=False):
    """
    single_file: one HDF5 file, not a folder of several; a name that ends in .h5 always is one
    """

    single_file: Flag


class WeightsOnly(TypedDict, total=False):
    """
    weights_only: leave the states of the optimizer out
    """

    weights_only: Flag


class KeepNames(TypedDict, total=False):
    """
    keep_names: with any_model: every tensor keeps its name
    """

    keep_names: Flag


class Resharding(TypedDict, total=False):
    """
    any_model: accept a model that no table knows
    fsdp_module: with any_model and engine v2: globs of modules that are FSDP units
    rank_states: folder with the optimizer states of the ranks, a file each
    source_ep: expert-parallel ranks of the training run that wrote rank_states
    source_hsdp: FSDP instances of that training run
    """

    any_model: Flag
    fsdp_module: Texts
    rank_states: Place
    source_ep: Int
    source_hsdp: Int


class Layers(TypedDict, total=False):
    """
    pattern: layer pattern, of the source (ungroup, hybrid-to-gpt) or of the result
    keys: names of layers in the result (group, gpt-to-hybrid): auto, logical or member
    norms: to and from GPT: keep, fused or apart
    without_mixers: to and from GPT: leave the M layers out
    """

    pattern: Text
    keys: Optional[Literal["auto", "logical", "member"]]
    norms: Optional[Literal["keep", "fused", "apart"]]
    without_mixers: Flag


class Stacks(TypedDict, total=False):
    """
    layers: layers of the result (mcore, hybrid-to-gpt): auto, stacked (all are one tensor) or indexed
    """

    layers: Optional[Literal["auto", "stacked", "indexed"]]


class Choice(TypedDict, total=False):
    """
    include: globs of the tensors that are copied; all unless it is set
    exclude: globs of tensors that are not
    """

    include: Texts
    exclude: Texts


class TensorsOnly(TypedDict, total=False):
    """
    tensors_only: leave out what is not a tensor, instead of refusing it
    """

    tensors_only: Flag


class Rank(TypedDict, total=False):
    """
    rank: number of a rank of the grid; tp varies fastest, then cp, dp, pp
    """

    rank: Int


class SourceSettings(Files, Model, Accept, Assets, Source, total=False):
    """Of open_as_fsdp()."""


class DiffSettings(SourceSettings, Tested, Within, ModelDict, total=False):
    """Of diff()."""


class PlotSettings(Files, total=False):
    """Of plot()."""


class CompareSettings(SourceSettings, Tested, ParamsDtype, Dtype, DtypeRule, WeightsOnly, ModelDict, total=False):
    """Of verify(), with `against`."""


class ExportSettings(SourceSettings, Dtype, DtypeRule, Export, Quantizing, ModelDict, total=False):
    """Of export()."""


class LoadSettings(Files, Model, Ranks, Grid, Vocab, ParamsDtype, DtypeRule, Naming, Rank, total=False):
    """Of load()."""


class ConversionSettings(
    ExportSettings,
    Ranks,
    Grid,
    Fsdp,
    Vocab,
    ParamsDtype,
    Pipeline,
    Naming,
    Iteration,
    Scheme,
    Dict,
    SingleFile,
    WeightsOnly,
    Resharding,
    KeepNames,
    Layers,
    Stacks,
    Choice,
    TensorsOnly,
    total=False,
):
    """Of plan() and convert(), for every kind of conversion."""


_SOURCE = (Files, Model, Accept, Assets, Source)
_LAYERS = (Layers, Stacks, WeightsOnly, Accept, Files)
# By function, or by `to`: the groups of settings that there are.
SOURCE: dict[str, tuple[type, ...]] = {"": _SOURCE}
DIFF: dict[str, tuple[type, ...]] = {"": (*_SOURCE, Tested, Within, ModelDict)}
PLOT: dict[str, tuple[type, ...]] = {"": (Files,)}
COMPARE: dict[str, tuple[type, ...]] = {"": (*_SOURCE, Tested, ParamsDtype, Dtype, DtypeRule, WeightsOnly, ModelDict)}
LOAD: dict[str, tuple[type, ...]] = {"": (Files, Rank, Ranks, Grid, Model, Vocab, ParamsDtype, DtypeRule, Naming)}
EXPORT: dict[str, tuple[type, ...]] = {"": (*_SOURCE, Dtype, DtypeRule, Export, Quantizing, ModelDict)}
CONVERSION: dict[str, tuple[type, ...]] = {
    "fsdp": (
        *(*_SOURCE, ModelDict, Ranks, Grid, Fsdp, Vocab, ParamsDtype, Dtype, DtypeRule, Naming, WeightsOnly),
        *(Resharding, Iteration),
    ),
    "mcore": (*_SOURCE, ModelDict, Ranks, Grid, Pipeline, Vocab, ParamsDtype, Dtype, DtypeRule, Spelling, Stacks, WeightsOnly, Iteration),
    "hf": EXPORT[""],
    "reshard": (*_SOURCE, Ranks, Grid, Fsdp, Pipeline, Vocab, WeightsOnly, Resharding, KeepNames, Iteration),
    "safetensors": (Files, Assets, Accept, Dtype, DtypeRule, ModelDict),
    "dcp": (Files, Assets, Accept, Ranks, Dict, WeightsOnly, Dtype, ModelDict),
    "dequantize": (Files, Accept, Dtype, Export),
    "quantize": (Files, Scheme, Export),
    "hdf5": (Files, Accept, Assets, SingleFile),
    "from-hdf5": (Files,),
    "pt-to-safetensors": (Files, Choice, TensorsOnly),
    "pt": (Files, Choice),
    "ranks": (*_SOURCE, ModelDict, Ranks, Grid, Pipeline, Vocab, ParamsDtype, Dtype, DtypeRule, Spelling, Iteration),
    **dict.fromkeys(("ungroup", "group", "hybrid-to-gpt", "gpt-to-hybrid"), _LAYERS),
}

#: What each `to` makes, and the program's word where it is another one.
WORDS: dict[str, str] = {
    "fsdp": "fsdp_dtensor of Megatron-FSDP, of any checkpoint; of Megatron's with the states of the optimizer; to-fsdp, hf-to-fsdp",
    "mcore": "torch_dist of Megatron-Core, of any checkpoint; to-mcore",
    "hf": "a Hugging Face folder, of a checkpoint of a training run; to-hf, fsdp-to-hf; as mckpt.export()",
    "reshard": "the same format for another grid: fsdp_dtensor, torch_dist, other DCP, files of Megatron's ranks (weights only)",
    "safetensors": "one safetensors file, of a Hugging Face model or a checkpoint with its names; to-safetensors",
    "dcp": "a torch DCP folder, of the same; to-dcp",
    "dequantize": "a Hugging Face folder with plain numbers, of a quantised one",
    "quantize": "a Hugging Face folder with codes and scales, of one with plain numbers",
    "hdf5": "an HDF5 archive with all files, of any checkpoint; to-hdf5",
    "from-hdf5": "the files again, of such an archive",
    "pt-to-safetensors": "one safetensors file with the tensors of .pt files as they are",
    "pt": "ONE FILE of torch.save, .pt, .pth, .bin or .ckpt, with the tensors of safetensors files as they are; safetensors-to-pt",
    "ranks": "A FOLDER with the files of Megatron's ranks, mp_rank_*/model_optim_rng.pt, of any checkpoint; to-ranks, to-pt",
    "ungroup": "the same format, with the layers of groups as layers of their own",
    "group": "the same format, with layers in groups",
    "hybrid-to-gpt": "the same format, with names of layers as a GPT model has them",
    "gpt-to-hybrid": "the same format, with names of layers as a hybrid model has them",
}
# Settings that other programs, or the program, have: what to call instead.
MISNAMED: dict[str, str] = {
    "dry_run": "mckpt.plan() plans without writing, and prove() of what it returns proves",
    "rtol": 'tolerances are those of mckpt.diff(a, b, within="rtol:1e-3")',
    "atol": 'tolerances are those of mckpt.diff(a, b, within="atol:1e-6")',
    "force": "overwrite=True replaces an existing result",
    "exist_ok": "overwrite=True replaces an existing result",
}


def refuse_misnamed(given: Iterable[str]) -> None:
    """Raises TypeError for a setting that there is under another name."""
    for name in given:
        if name in MISNAMED:
            raise TypeError(f"there is no setting {name}: {MISNAMED[name]}")


Function = TypeVar("Function", bound=Callable[..., Any])


def names_of(groups: tuple[type, ...]) -> list[str]:
    return [name for group in groups for name in group.__annotations__]


def lists(parts: dict[str, tuple[type, ...]]) -> Callable[[Function], Function]:
    """Puts the settings of each part behind the text of a function, with a line for each setting; where the parts are kinds
    of conversions, also a line for each kind."""
    heads: list[str] = []
    lines: dict[str, None] = {}  # in order, each once
    for kind, groups in parts.items():
        heads += [f'Settings of to="{kind}": {", ".join(names_of(groups))}.'] if kind else []
        for group in groups:
            for line in (group.__doc__ or "").strip().splitlines():
                lines[line.strip()] = None
    words = ["Values of to:", *(f'"{word}": {line}' for word, line in WORDS.items()), ""] if heads else []
    text = "\n".join([*words, *(heads or ["Settings:"]), "", *lines])

    def listing(function: Function) -> Function:
        if function.__doc__:  # python -OO has no texts
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{text}\n"
        return function

    return listing
