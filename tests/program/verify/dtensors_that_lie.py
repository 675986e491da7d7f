"""DTensors whose meshes and placements cannot be: a mesh that is a DTensor over itself, ranks that do not agree on how a tensor is cut."""

import os
import struct
import sys
import tempfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.torch_pickles import made, name, number, save, tensor, text, tuple_of, wrapper

failures = []


def shard(dim):
    return name("torch.distributed.tensor.placement_types", "Shard") + tuple_of(number(dim)) + b"\x81"


def dtensor(local, sizes, strides, mesh, placements, front=b""):
    spec = made("torch.distributed.tensor._dtensor_spec", "DTensorSpec", mesh=mesh, placements=tuple_of(*placements))
    state = b"}(" + text("_local_tensor") + local + text("_spec") + spec + b"u"
    return wrapper(name("torch.distributed.tensor", "DTensor"), sizes, strides, front + state + b"\x86" if front else state)


def expect(what, command, path, status, *words):
    run = run_mckpt(command, path, timeout=60)
    told = run.stdout + run.stderr
    if run.returncode != status or not all(word in told for word in words):
        failures.append(f"{what}: {command} ended with {run.returncode}, not {status}: {told}")


with tempfile.TemporaryDirectory(prefix="mckpt_dtensors_") as scratch:
    # The mesh is in the memo before it has its fields, so that a DTensor in them can be over it.
    begun = name("torch.distributed.device_mesh", "DeviceMesh") + b")\x81q\x01"
    own = dtensor(tensor("0", [4], [1]), [4], [1], b"h\x01", [shard(0)])
    cycle = os.path.join(scratch, "cycle.pt")
    mesh = begun + b"}(" + text("_flatten_mesh_list") + tuple_of(number(0)) + text("mesh") + own + b"ub"
    save(cycle, b"(" + mesh + b"1" + own, _0=bytes(16))
    for command in ("verify", "ls", "stats", "inspect"):
        expect("a mesh over itself", command, cycle, 1, "a plain tensor was expected")

    for odd in ((), (1, 2), (0, 1, 2, 3)):
        folder = os.path.join(scratch, f"ranks_{len(odd)}")
        os.mkdir(folder)
        for rank in range(4):
            ranks = made(
                "torch.distributed.device_mesh",
                "DeviceMesh",
                _flatten_mesh_list=tuple_of(*map(number, range(4))),
                mesh=tensor("1", [2, 2], [2, 1], "LongStorage"),
            )
            placements = [shard(1), shard(0)] if rank in odd else [shard(0), shard(1)]
            save(
                os.path.join(folder, f"model_world_size_4_rank_{rank}.pt"),
                dtensor(tensor("0", [2, 2], [2, 1]), [4, 4], [4, 1], ranks, placements),
                _0=struct.pack("<4f", *range(rank * 10, rank * 10 + 4)),
                _1=struct.pack("<4q", *range(4)),
            )
        if len(odd) == 2:
            expect("ranks of two minds", "verify", folder, 1, "describes the tensor differently than rank 0")
        else:
            expect("ranks of one mind", "verify", folder, 0)

    # torch 2.1 pickles no list of the mesh's ranks, but the writer's own group of each dimension.
    for steps in ((2, 1), (2, 7)):
        folder = os.path.join(scratch, f"groups_{steps[1]}")
        os.mkdir(folder)
        for rank in range(4):
            row, column = divmod(rank, 2)
            groups = [[column, column + steps[0]], [2 * row, 2 * row + steps[1]]]
            ranks = made(
                "torch.distributed._tensor.device_mesh",
                "DeviceMesh",
                mesh=tensor("1", [2, 2], [2, 1], "IntStorage"),
                _coordinate_on_dim=tuple_of(number(row), number(column)),
                _dim_group_infos=tuple_of(*(tuple_of(text("ptd:0"), tuple_of(*map(number, group))) for group in groups)),
            )
            save(
                os.path.join(folder, f"model_world_size_4_rank_{rank}.pt"),
                dtensor(tensor("0", [2, 2], [2, 1]), [4, 4], [4, 1], ranks, [shard(0), shard(1)]),
                _0=struct.pack("<4f", *range(rank * 10, rank * 10 + 4)),
                _1=struct.pack("<4i", *range(4)),
            )
        if steps[1] == 1:
            expect("groups that fit", "verify", folder, 0)
        else:
            expect("groups that do not fit", "verify", folder, 1, "do not fit together")

    # The fields of a class with slots, behind a dict that is None, empty, or of another empty type; and a mesh of a negative size.
    whole = made("torch.distributed.device_mesh", "DeviceMesh", _flatten_mesh_list=tuple_of(number(0)), mesh=tensor("1", [1], [1], "LongStorage"))
    layout = made("torch.distributed._mesh_layout", "_MeshLayout", shape=tuple_of(number(-1)), stride=tuple_of(number(1)))
    negative = made("torch.distributed.device_mesh", "DeviceMesh", _layout=layout, _flatten_rank_map=tuple_of(number(0)))
    path = os.path.join(scratch, "state.pt")
    for front in (b"N", b"}", b")", b"]"):
        save(path, dtensor(tensor("0", [4], [1]), [4], [1], whole, [shard(0)], front), _0=bytes(16), _1=bytes(8))
        expect(f"fields behind {front}", "verify", path, 0)
        if "(attributes)" in (listed := run_mckpt("ls", path).stdout):
            failures.append(f"fields behind {front} are listed as attributes: {listed}")
    save(path, dtensor(tensor("0", [4], [1]), [4], [1], negative, [shard(0)]), _0=bytes(16))
    expect("a mesh of -1 ranks", "verify", path, 1, "a size of a device mesh is negative", "[-1]")

    # The ranks of a mesh as a tensor that is out of the bounds of its storage, beside a list of them and alone.
    layout = made("torch.distributed._mesh_layout", "_MeshLayout", shape=tuple_of(number(1)), stride=tuple_of(number(1)))
    outside = tensor("1", [1], [1], "LongStorage").replace(number(0), number(7), 1)
    for mesh in (
        made("torch.distributed.device_mesh", "DeviceMesh", _layout=layout, _flatten_rank_map=tuple_of(number(0)), _rank_map=outside),
        made("torch.distributed.device_mesh", "DeviceMesh", _flatten_mesh_list=tuple_of(number(0)), mesh=outside),
    ):
        save(path, dtensor(tensor("0", [4], [1]), [4], [1], mesh, [shard(0)]), _0=bytes(16), _1=bytes(8))
        expect("a map of ranks out of bounds", "verify", path, 1, "out of the bounds of its storage")

    # One argument too many, or too few, for the function that makes a DTensor.
    right, last = dtensor(tensor("0", [4], [1]), [4], [1], whole, [shard(0)]), text("cpu") + b"\x89"
    assert right.count(last) == 1
    for count, args in ((9, text("cpu") + last), (7, text("cpu"))):
        save(path, right.replace(last, args), _0=bytes(16), _1=bytes(8))
        expect(f"{count} arguments", "verify", path, 1, "a wrong number of arguments", f"found {count}")

print("\n".join(failures) or "16 kinds of files judged")
sys.exit(bool(failures))
