// Both functions plan a Conversion of the live model, with a target like any other, and run it. A model in
// memory has no identity that a later run could compare, so an interrupted save is not resumed but begun
// anew.
#include "live/save/folders.h"

#include <algorithm>

#include "convert/dialects/fsdp/run.h"
#include "convert/dialects/fsdp/write_facts.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/rope_args.h"
#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/open/opened.h"
#include "convert/plan/hf_layout.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/target.h"
#include "convert/run/rank_sums.h"
#include "convert/run/run.h"
#include "core/base/observer.h"
#include "hf/folder/assets.h"
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

Opened in_memory(const HfModel& source) {
  Opened out;
  out.opening = source.opening;
  return out;
}

// The Hugging Face folder of a live model.
class LiveHf final : public Target {
 public:
  LiveHf(const LiveModel& model, const KeyTable& keys, const HfModel& source, const std::string& folder)
      : hf(model.map(), source_types(model.map().sources()), kUsualShardBytes),
        chunks(model, keys),
        tensors(model.map(), hf.places) {
    auto made = std::make_unique<ChunkJob>(live_export_job(keys, chunks, tensors));
    exported = made.get();
    job = std::move(made);
    proof = export_proof(keys, hf);
    path = folder, identity = kNotResumed;
    set_files(*this, hf.layout.output_files());
    SideFiles assets = plan_assets(source.path, "", source.opening);
    add_map(assets, source.map_text);
    add_beside(*this, {std::move(assets), {}});
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(hf.layout, to); }

  HfLayout hf;
  AllChunks chunks;
  PlacedTensors tensors;
  const ChunkJob* exported = nullptr;
};

// The checkpoint of a live model. Its proof is the proof of its export: the chunks of all ranks make up every
// tensor of the model, each item once.
class LiveFsdp final : public Target {
 public:
  LiveFsdp(const LiveModel& model, const KeyTable& keys, const HfModel& source, const std::string& target)
      : chunks_(model, keys, true) {
    FsdpRun setup = run_of(model);
    setup.fsdp.saved = true;
    if (!setup.fsdp.saves_state_dict()) {
      write_fsdp_facts(facts_of_model(fsdp_args(model.map(), source.config.run, setup)), layout());
      note_unsaid_rope(model.map().model(), source.config.run, notes);
    }
    job = std::make_unique<ChunkJob>(save_job(model, keys, layout(), chunks_.plan.table_key));
    job_of_rank = true;
    if (model.world().rank() == 0) {
      hf_.emplace(model.map(), source_types(model.map().sources()), kUsualShardBytes);
      tensors_.emplace(model.map(), hf_->places);
      proved_job = std::make_unique<ChunkJob>(live_export_job(keys, chunks_, *tensors_));
      proof = export_proof(keys, *hf_);
    }
    identity = kNotResumed;
    std::string table = tensor_table_json(model.map().sources(), source.expert_layout, source.map_text,
                                          original_files(source));
    plan_iteration(*this, layout(), target, std::nullopt,
                   {{}, plan_assets(source.path, table, source.opening)});
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout(), to); }

  DcpLayout& layout() { return chunks_.plan.layout; }
  const DcpLayout& layout() const { return chunks_.plan.layout; }

 private:
  AllChunks chunks_;
  std::optional<HfLayout> hf_;  // on rank 0
  std::optional<PlacedTensors> tensors_;
};

}  // namespace

StagedFolder::Options live_staging(bool durable) {
  return {.durable = durable, .instead = "remove this one", .anew = "remove it"};
}

i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options, Observer& observer) {
  const LiveHf* target = nullptr;
  Conversion c = plan(in_memory(source), [&](Opened&) {
    auto made = std::make_unique<LiveHf>(model, keys, source, path);
    target = made.get();
    return made;
  });
  prove_on_rank_0(c, model.world(), options.threads);

  std::vector<PartSums::Place> data = data_places(target->hf);
  LiveExportOptions how{.observer = &observer};
  // Memory of a GPU is large enough for windows that keep a disk busy.
  if (!model.device().is_host())
    how.memory_bytes = i64{256} << 20, how.writers = std::min(4, options.threads);
  PartSums parts(data);
  run(c, run_options(options), model.world(), observer, [&](const DataTarget& to) {
    SummingSink summed(to.out, parts);
    LiveExportCounts counts = export_model(model, keys, target->chunks, *target->exported, summed, how);
    gather_sums(parts, model.world());
    if (model.world().rank() == 0) parts.join_into(to.sums);
    return CopyCounts{.bytes_written = counts.bytes_written};
  });
  i64 bytes = 0;
  for (const PartSums::Place& place : data) bytes += place.bytes;
  return bytes;
}

i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options, Observer& observer) {
  const LiveFsdp* saved = nullptr;
  Conversion c = plan(in_memory(source), [&](Opened&) {
    auto made = std::make_unique<LiveFsdp>(model, keys, source, target);
    saved = made.get();
    return made;
  });
  prove_on_rank_0(c, model.world(), options.threads);
  run(c, run_options(options), model.world(), observer);
  const DcpLayout& layout = saved->layout();
  i64 bytes = 0;
  for (i64 i = 0; i < layout.chunk_count(); i++) {
    DcpLayout::Chunk chunk = layout.chunk(i);
    bytes += dtype_bytes(layout.key(chunk.key).dtype, Shape(chunk.sizes).items());
  }
  return bytes;
}

}  // namespace mckpt::impl
