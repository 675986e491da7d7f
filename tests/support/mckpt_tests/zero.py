"""Checkpoint folders in the form of DeepSpeed ZeRO, of any shapes and number of ranks, made without DeepSpeed: whole tensors are cut into
flat parts as its engine does, padded, and saved by rank. The right answer of a reader is known because the
whole tensors are known.

    made = write(folder, stage=2, ranks=3, groups=[{"a": (4, 6), "b": (7,)}], frozen={"f": (3,)}, shared={"c": "a"})
    made.want["a"]        the float32 weights; made.want["optimizer.state.a.exp_avg"] their state
"""
import collections
import copy
import re
import sys
import types

import torch


def _known_class(module, name, base=object, fields=()):
    """A class that pickles by the name that DeepSpeed's has."""
    kind = type(name, (base,), {"__module__": module, **dict(fields)})
    if module not in sys.modules:
        sys.modules[module] = types.ModuleType(module)
    setattr(sys.modules[module], name, kind)
    return kind


if "deepspeed" in sys.modules:
    from deepspeed.runtime.fp16.loss_scaler import LossScaler  # noqa: F401
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address
else:
    import enum
    ZeroStageEnum = enum.Enum("ZeroStageEnum", {"disabled": 0, "optimizer_states": 1, "gradients": 2, "weights": 3})
    ZeroStageEnum.__module__ = "deepspeed.runtime.zero.config"
    _module = types.ModuleType(ZeroStageEnum.__module__)
    _module.ZeroStageEnum = ZeroStageEnum
    for _name in ("deepspeed", "deepspeed.runtime", "deepspeed.runtime.zero", "deepspeed.utils"):
        sys.modules[_name] = types.ModuleType(_name)
    sys.modules[ZeroStageEnum.__module__] = _module
    fragment_address = _known_class("deepspeed.utils.tensor_fragment", "fragment_address")
    _known_class("deepspeed.runtime.fp16.loss_scaler", "LossScaler")


def _address(items, begin):
    if "dataclass" in str(getattr(fragment_address, "__dataclass_params__", "")) or hasattr(fragment_address, "__dataclass_fields__"):
        return fragment_address(numel=items, start=begin)
    out = fragment_address()
    out.numel, out.start = items, begin
    return out


class Made:
    def __init__(self):
        self.want = {}  # every tensor that a reader lists, by name
        self.fp32 = {}  # those that zero_to_fp32 gives
        self.model, self.optimizer = {}, {}  # the dicts, by the path of their file

    def save(self, folder):
        for path, state in {**self.model, **self.optimizer}.items():
            torch.save(state, folder / path)


def _numbers(shape, generator, dtype=torch.float32):
    return torch.randn(shape, generator=generator).to(dtype)


def make(stage, ranks, groups, frozen=(), shared=(), buffers=(), gaps=False, sub_groups=1, steps=2, seed=0, bf16=True, adam=True,
         version="0.19.8", lists_frozen=True, step_value=None, elastic=False, values=None, last_pads=False, turns=False):
    """`groups`, `frozen`, `buffers`: {name: shape}; `shared`: {second name: first name}. `gaps`: padding between parameters. ZeRO 3 has
    `sub_groups` parts a rank, each of whole parameters. `last_pads`: the last rank counts the padding of all, as older programs do. `values`: weights, and states by their kind, as {kind: {name: tensor}}, weights under "".
    `turns`: round_robin_gradients: the parts and param_shapes have each `ranks`th parameter of a group first, param_slice_mappings the group's own order."""
    listed = groups
    if turns:
        groups = [{n: group[n] for r in range(ranks) for n in list(group)[r::ranks]} for group in groups]
    g = torch.Generator().manual_seed(seed)
    frozen, shared, buffers, made = dict(frozen), dict(shared), dict(buffers), Made()
    whole = {n: _numbers(s, g) for group in groups for n, s in group.items()}
    states = {kind: {n: _numbers(t.shape, g) for n, t in whole.items()} for kind in (("exp_avg", "exp_avg_sq") if adam else ())}
    for kind, tensors in (values or {}).items():
        (whole if kind == "" else states[kind]).update(tensors)
    low = torch.bfloat16 if bf16 else torch.float32
    fixed = {n: _numbers(s, g, low) for n, s in frozen.items()}
    kept = {n: _numbers(s, g) for n, s in buffers.items()}
    step = torch.tensor(float(steps if step_value is None else step_value))
    made.fp32.update(whole)
    if stage > 1 and lists_frozen:
        made.fp32.update(fixed)
    made.fp32.update(kept)
    made.fp32.update({second: made.fp32[first] for second, first in shared.items()})
    made.want.update(made.fp32)
    if stage == 1:
        made.want.update(fixed)
    for kind, tensors in states.items():
        made.want.update({f"optimizer.state.{n}.{kind}": t for n, t in tensors.items()})
    if adam:
        made.want.update({f"optimizer.state.{n}.step": step for n in whole})
    common = {"buffer_names": list(buffers), "optimizer": None,
              "param_shapes": [collections.OrderedDict((n, torch.Size(s)) for n, s in group.items()) for group in groups],
              "frozen_param_shapes": collections.OrderedDict((n, torch.Size(s)) for n, s in frozen.items()) if stage > 1 and lists_frozen else None,
              "shared_params": shared, "lr_scheduler": None, "skipped_steps": 0, "global_steps": steps, "dp_world_size": ranks,
              "mp_world_size": 1, "ds_config": {"zero_optimization": {"stage": stage, **({"round_robin_gradients": True} if turns else {})}},
              "ds_version": version}
    everything = {**whole, **fixed}
    everything.update({second: everything[first] for second, first in shared.items()})
    if not lists_frozen:
        everything = {n: t for n, t in everything.items() if n not in fixed}
    prefix = "bf16_" if bf16 else ""

    def cut3(t):
        """The pieces of all ranks: ceil(items / ranks) each, padded."""
        part = -(-t.numel() // ranks)
        flat = torch.zeros(part * ranks, dtype=t.dtype)
        flat[:t.numel()] = t.reshape(-1)
        return flat.reshape(ranks, part) if part else flat.reshape(ranks, 0)

    if stage == 3:
        for r in range(ranks):
            module = {n: torch.empty(0, dtype=low) for n in everything} | kept
            made.model[f"zero_pp_rank_{r}_mp_rank_00_model_states.pt"] = {
                "module": module, **common, "shared_params": shared if r == 0 else {},
                "frozen_param_fragments": {n: cut3(t)[r].clone() for n, t in fixed.items()} if lists_frozen else None}
        parts = {kind: [torch.cat([torch.zeros(0)] + [cut3(tensors[n])[r] for group in groups for n in group]) for r in range(ranks)]
                 for kind, tensors in {"": whole, **states}.items()}
        for r in range(ranks):
            ends = [0]
            for n in (n for group in groups for n in group):
                ends.append(ends[-1] + -(-whole[n].numel() // ranks))
            ends = [ends[(len(ends) - 1) * i // sub_groups] for i in range(sub_groups + 1)]
            sub = {kind: [p[r][ends[i]:ends[i + 1]].clone() for i in range(sub_groups)] for kind, p in parts.items()}
            state = {i: {"step": step.clone(), **{k: sub[k][i] for k in states}} for i in range(sub_groups)} if adam else {}
            made.optimizer[f"{prefix}zero_pp_rank_{r}_mp_rank_00_optim_states.pt"] = {
                "optimizer_state_dict": {"zero_stage": ZeroStageEnum(3), "partition_count": ranks, "fp32_flat_groups": sub[""],
                                         "optimizer_state_dict": {"state": state, "param_groups": []}},
                "ds_config": {}, "ds_version": version}
        return made

    made.model["mp_rank_00_model_states.pt"] = {
        "module": {n: t.to(low) for n, t in everything.items()} | kept, **common,
        "frozen_param_fragments": fixed if stage > 1 and lists_frozen else None}
    files = [{"zero_stage": ZeroStageEnum(stage), "partition_count": [ranks] * len(groups), "single_partition_of_fp32_groups": [],
              "group_paddings": [], "param_slice_mappings": [], "base_optimizer_state": [] if elastic else {"state": {}, "param_groups": []},
              "ds_version": version} for _ in range(ranks)]
    for i, group in enumerate(groups):
        between = [3 * (k % 2) if gaps else 0 for k in range(len(group))]

        def flat(tensors):
            pieces = [torch.cat([tensors[n].reshape(-1), torch.zeros(b)]) for n, b in zip(group, between)]
            joined = torch.cat(pieces) if pieces else torch.zeros(0)
            return torch.cat([joined, torch.zeros(-joined.numel() % (2 * ranks))])

        used = sum(whole[n].numel() for n in group) + sum(between)
        part = flat(whole).numel() // ranks
        for r, f in enumerate(files):
            padding = (part * ranks - used if r == ranks - 1 else 0) if last_pads else min(part, max(0, (r + 1) * part - used))
            lean = max(0, part - padding)
            own = {kind: flat(tensors)[r * part:(r + 1) * part] for kind, tensors in {"": whole, **states}.items()}
            f["single_partition_of_fp32_groups"].append(own[""][:lean].clone())
            f["group_paddings"].append(padding)
            if gaps:
                f.setdefault("param_alignment_paddings", []).append(between)
            addresses, begin = collections.OrderedDict(), 0
            for n, b in zip(listed[i], between):
                first, last = max(begin, r * part), min(begin + whole[n].numel(), (r + 1) * part)
                if first < last:
                    addresses[n] = _address(last - first, first - r * part)
                begin += whole[n].numel() + b
            f["param_slice_mappings"].append(addresses)
            if adam and elastic:
                f["base_optimizer_state"].append({"step": step.clone(), **{k: own[k][:lean].clone() for k in states}})
            elif adam:
                f["base_optimizer_state"]["state"][i] = {"step": step.clone(), **{k: own[k].clone() for k in states}}
    for r, f in enumerate(files):
        made.optimizer[f"{prefix}zero_pp_rank_{r}_mp_rank_00_optim_states.pt"] = {
            "optimizer_state_dict": f, "ds_config": {"zero_optimization": {"stage": stage}}, "ds_version": version}
    return made


def make_tensor_parallel(maps, shards, stage, ranks, seed=0, **settings):
    """A save of AutoTP: {name: map of DeepSpeed} and {name: shards, one a tensor-parallel rank, with the weights}. The first moments are the weights + 1000,
    the second + 2000. Returns one `Made` with the files of all; its `want` has the shards of the last rank."""
    joined, model_ranks = Made(), len(next(iter(shards.values())))
    info = {"universal_checkpoint_version": 0.4, "autotp_unsupported_parameter_patterns": {},
            "affine_map": {"version": 1, "params": {"^" + re.escape(name) + "$": of for name, of in maps.items()}}}
    names = list(shards)
    for m in range(model_ranks):
        mine = {name: shards[name][m].to(torch.float32) for name in names}
        values = {"": mine, "exp_avg": {n: t + 1000 for n, t in mine.items()}, "exp_avg_sq": {n: t + 2000 for n, t in mine.items()}}
        groups = [{n: tuple(mine[n].shape) for n in some} for some in (names[0::2], names[1::2])]
        made = make(stage, ranks, groups, seed=seed, values=values, **settings)
        for state in made.model.values():
            state.update(mp_world_size=model_ranks, checkpoint_parallel_dimensions={"pp_degree": 1, "tp_degree": model_ranks},
                         universal_checkpoint_info=copy.deepcopy(info))
        for mine_of, all_of in ((made.model, joined.model), (made.optimizer, joined.optimizer)):
            all_of.update({path.replace("mp_rank_00", f"mp_rank_{m:02d}"): state for path, state in mine_of.items()})
        joined.want = made.want
    return joined


def write(folder, **settings):
    """Makes the checkpoint and saves it as folder/global_step2, with the file that names it."""
    made = make(**settings)
    (folder / "global_step2").mkdir(parents=True)
    made.save(folder / "global_step2")
    (folder / "latest").write_text("global_step2")
    return made
