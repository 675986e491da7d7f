"""Checkpoints by torch in one process: a save by several ranks, with torch's own planner and writer, run once for each rank, and the steps
between them that a process group would take; and what torch loads of a folder.
"""
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType


class Shards:
    """The part of a tensor that one rank holds: boxes (offsets, sizes), any number of them, also empty ones.
    Saved as Megatron-FSDP saves its uneven shards: by an object that makes its own write items."""

    def __init__(self, whole, boxes):
        self.whole, self.boxes = whole, boxes

    @classmethod
    def rows(cls, whole, begin, end):
        """The rows [begin, end); no box at all if there are none."""
        rest = list(whole.shape[1:])
        return cls(whole, [([begin] + [0] * len(rest), [end - begin] + rest)] if end > begin else [])

    def piece(self, offsets, sizes):
        piece = self.whole
        for d, (begin, size) in enumerate(zip(offsets, sizes)):
            piece = piece.narrow(d, begin, size)
        return piece

    def __create_write_items__(self, fqn, _):
        properties = TensorProperties.create_from_tensor(self.whole)
        return [WriteItem(MetadataIndex(fqn, torch.Size(offsets)), WriteItemType.SHARD, tensor_data=TensorWriteData(
                    ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)), properties, self.whole.size()))
                for offsets, sizes in self.boxes]

    def __get_tensor_shard__(self, index):
        return next(self.piece(*box) for box in self.boxes if torch.Size(box[0]) == index.offset)


class Planner(dcp.DefaultSavePlanner):
    def lookup_object(self, index):
        """torch takes only its own tensors apart."""
        saved = self.state_dict[index.fqn]
        return saved.__get_tensor_shard__(index) if isinstance(saved, Shards) else super().lookup_object(index)


def cuts(r, rows, ranks):
    """Rows as ranks share them: any number each, none for some."""
    at = sorted(r.randrange(rows + 1) for _ in range(ranks - 1))
    return list(zip([0, *at], [*at, rows]))


def save_as_ranks(states, make_writer, flatten=True):
    """`states`: the state dict of each rank, one after the other; while a rank plans, the next one is not yet made."""
    ranks, plans = [], []
    for state in states:
        planner, writer, first = Planner(flatten_state_dict=flatten), make_writer(), not ranks
        writer.reset()
        planner.set_up_planner(state, writer.storage_meta(), first)
        writer.set_up_storage_writer(first)
        plans.append(writer.prepare_local_plan(planner.create_local_plan()))
        ranks.append((planner, writer))
    planner, writer = ranks[0]
    plans, metadata = planner.create_global_plan(plans)
    plans = writer.prepare_global_plan(plans)
    results = [w.write_data(p.finish_plan(plan), p).wait() for (p, w), plan in zip(ranks, plans)]
    writer.finish(metadata=metadata, results=results)


def load_whole(folder, objects=True):
    """Everything in a folder, name by name. A byte that torch left unread would be 7."""
    names = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {name: None if isinstance(item, BytesStorageMetadata) else torch.full(item.size, 7, dtype=item.properties.dtype)
             for name, item in names.items() if objects or not isinstance(item, BytesStorageMetadata)}
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return state
