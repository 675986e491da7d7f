// Both functions make a Conversion for the live model and run it like any other. A model in memory has no
// identity that a later run could compare, so an interrupted save is not resumed but begun anew.
#include "live/save/folders.h"

#include <algorithm>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/objects/megatron_args.h"
#include "convert/plan/conversion.h"
#include "convert/plan/hf_layout.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/run/rank_sums.h"
#include "convert/run/run.h"
#include "core/base/observer.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/copy/part_sums.h"
#include "io/output/copy_sink.h"
#include "io/output/unfinished.h"
#include "live/device/device.h"
#include "live/model/all_chunks.h"
#include "live/model/live_proof.h"
#include "live/model/model.h"
#include "live/save/export.h"
#include "live/save/save.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_table.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// A sink that takes the checksums of what is written, in the thread that writes it, and passes it on.
class SummingSink final : public CopySink {
 public:
  SummingSink(CopySink& to, PartSums& sums) : to_(to), sums_(sums) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    sums_.add(file, offset, bytes);
    to_.write(file, offset, bytes);
  }

 private:
  CopySink& to_;
  PartSums& sums_;
};

RunOptions run_options(const LiveFolderOptions& options) {
  return {.threads = options.threads,
          .durable = options.durable,
          .overwrite = options.replace,
          .can_overwrite = false};
}

// The type of every tensor in the source, by its number in the source table.
std::vector<DType> source_types(const SourceTable& sources) {
  std::vector<DType> types;
  for (i32 t = 0; t < sources.size(); t++) types.push_back(sources[t].dtype);
  return types;
}

// The places of the data of all tensors in the files.
std::vector<PartSums::Place> data_places(const HfLayout& hf) {
  std::vector<PartSums::Place> places;
  for (i64 i = 0; i < std::ssize(hf.written); i++)
    places.push_back({hf.layout.file(i), hf.layout.offset(i), hf.layout.bytes(i)});
  return places;
}

}  // namespace

StagedFolder::Options live_staging(bool durable) {
  return {.durable = durable, .instead = "remove this one", .anew = "remove it"};
}

i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options, Observer& observer) {
  Conversion c;
  c.opening = source.opening;
  auto& hf = c.parts.make<HfLayout>(model.map(), source_types(model.map().sources()), kUsualShardBytes);
  auto& chunks = c.parts.make<AllChunks>(model, keys);
  auto& tensors = c.parts.make<PlacedTensors>(model.map(), hf.places);
  auto job = std::make_unique<ChunkJob>(live_export_job(keys, chunks, tensors));
  const ChunkJob& exported = *job;
  c.job = std::move(job);
  c.proof = export_proof(keys, hf);
  c.path = path, c.identity = kNotResumed;
  c.layout = &hf.layout, c.files = hf.layout.output_files();
  SideFiles assets = plan_assets(source.path, "", c.opening);
  add_map(assets, source.map_text);
  add_beside(c, {std::move(assets), {}});
  prove_on_rank_0(c, model.world(), options.threads);

  std::vector<PartSums::Place> data = data_places(hf);
  LiveExportOptions how{.observer = &observer};
  // Memory of a GPU is large enough for windows that keep a disk busy.
  if (!model.device().is_host())
    how.memory_bytes = i64{256} << 20, how.writers = std::min(4, options.threads);
  PartSums parts(data);
  run(c, run_options(options), model.world(), observer, [&](const DataTarget& to) {
    SummingSink summed(to.out, parts);
    LiveExportCounts counts = export_model(model, keys, chunks, exported, summed, how);
    gather_sums(parts, model.world());
    if (model.world().rank() == 0) parts.join_into(to.sums);
    return CopyCounts{.bytes_written = counts.bytes_written};
  });
  i64 bytes = 0;
  for (const PartSums::Place& place : data) bytes += place.bytes;
  return bytes;
}

// The proof of a saved checkpoint is that of its export: the chunks of all ranks make up every tensor of the
// model, each item once.
i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options, Observer& observer) {
  Conversion c;
  c.opening = source.opening;
  auto& chunks = c.parts.make<AllChunks>(model, keys, true);
  DcpLayout& layout = chunks.plan.layout;
  FsdpRun setup = run_of(model);
  setup.fsdp.saved = true;
  if (!setup.fsdp.saves_state_dict()) add_run_objects(layout, {model.map(), source.config.run, setup, 0});
  c.job = std::make_unique<ChunkJob>(save_job(model, keys, layout, chunks.plan.table_key));
  c.job_of_rank = true;
  if (model.world().rank() == 0) {
    auto& hf = c.parts.make<HfLayout>(model.map(), source_types(model.map().sources()), kUsualShardBytes);
    auto& tensors = c.parts.make<PlacedTensors>(model.map(), hf.places);
    c.proved_job = std::make_unique<ChunkJob>(live_export_job(keys, chunks, tensors));
    c.proof = export_proof(keys, hf);
  }
  c.identity = kNotResumed;
  std::string table =
      tensor_table_json(model.map().sources(), source.expert_layout, source.map_text, original_files(source));
  plan_iteration(c, layout, target, std::nullopt, {{}, plan_assets(source.path, table, c.opening)});
  prove_on_rank_0(c, model.world(), options.threads);
  run(c, run_options(options), model.world(), observer);
  i64 bytes = 0;
  for (i64 i = 0; i < layout.chunk_count(); i++) {
    DcpLayout::Chunk chunk = layout.chunk(i);
    bytes += dtype_bytes(layout.key(chunk.key).dtype, Shape(chunk.sizes).items());
  }
  return bytes;
}

}  // namespace mckpt::impl
