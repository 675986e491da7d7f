// Exporting: the stored weights of all ranks into Hugging Face tensors. Every rank writes its share of each
// round; what it needs of other ranks' shards comes to it in one exchange a round, so that each byte crosses
// once and the memory needed does not depend on the model:
//
//   batch 0 | batch 1 | ... | batch R-1 | batch R | ...     windows of tensors, in the order of the files
//   rank 0    rank 1          rank R-1    rank 0            who writes them
//   '----------- round 0 -------------'
#pragma once

#include "core/base/observer.h"
#include "convert/jobs/chunk_jobs.h"
#include "live/model/all_chunks.h"
#include "live/model/model.h"

namespace mckpt::impl {

struct LiveExportCounts {
  i64 bytes_written = 0;   // by this rank
  i64 bytes_received = 0;  // of shards, its own among them
};

struct LiveExportOptions {
  // Of the device, for all buffers, about, whatever the number of ranks. With much more, windows of the host
  // leave the cache before they are written, which takes half as long again.
  i64 memory_bytes = i64{32} << 20;
  int writers = 1;  // threads that write a window; they pay where the page cache is passed by
  Observer* observer = nullptr;  // null: nothing is reported, and nothing stops the export
};

// The job of an export over all ranks: `chunks` are of all of them, `tensors` say what is asked for. All outlive
// the job. Throws what export_job() throws.
ChunkJob live_export_job(const KeyTable& keys, const AllChunks& chunks, const PlacedTensors& tensors);

// Carries out a live_export_job(). Collective. Throws what the sink throws. pre: the model is loaded and wrapped;
// `keys` are live_keys().
LiveExportCounts export_model(const LiveModel& model, const KeyTable& keys, const AllChunks& chunks,
                              const ChunkJob& job, CopySink& out, const LiveExportOptions& options = {});

}  // namespace mckpt::impl
