// Exporting: the stored weights of all ranks become Hugging Face tensors. The tensors are cut into windows in
// the order of the files, and every rank writes one window of each round; what it needs of other ranks'
// shards comes to it in one exchange for each round, so that each byte crosses once and the memory does not
// depend on the model:
//
//   batch 0 | batch 1 | ... | batch R-1 | batch R | ...     windows of tensors, in the order of the files
//   rank 0    rank 1          rank R-1    rank 0            the rank that writes them
//   '----------- round 0 -------------'
//
//   16 GB of bf16 with fp32 main weights, 4 ranks, 32 MiB:   32 / (2 * 4 + 2) = 3.2 MiB a batch
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class ChunkJob;
class CopySink;
class KeyTable;
class LiveModel;
class Observer;
class PlacedTensors;
struct AllChunks;

// Bytes that one rank wrote and received.
struct LiveExportCounts {
  i64 bytes_written = 0;   // by this rank
  i64 bytes_received = 0;  // bytes of shards, its own included
};

// Plain values.
struct LiveExportOptions {
  // The memory of the device for all buffers together, about, whatever the number of ranks. With much more,
  // windows in the host's memory leave the cache before they are written, and the export takes half as long
  // again.
  i64 memory_bytes = i64{32} << 20;
  int writers = 1;               // threads that write a window; several help when the page cache is not used
  Observer* observer = nullptr;  // null: nothing is reported, and nothing stops the export
};

// The job of an export by all ranks together: from the chunks of all of them to the wanted tensors. All
// arguments outlive the job. Throws what export_job() throws.
ChunkJob live_export_job(const KeyTable& keys, const AllChunks& chunks, const PlacedTensors& tensors);

// Collective: carries out this rank's share of a live_export_job() and writes it to `out`. Throws what the
// sink throws, and kInterrupted. pre: the model is loaded and wrapped; `keys` are live_keys().
LiveExportCounts export_model(const LiveModel& model, const KeyTable& keys, const AllChunks& chunks,
                              const ChunkJob& job, CopySink& out, const LiveExportOptions& options = {});

}  // namespace mckpt::impl
