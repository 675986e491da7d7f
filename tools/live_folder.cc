#include "tools/live_folder.h"

#include <algorithm>
#include <optional>

#include "convert/objects/megatron_args.h"
#include "convert/plan/iteration.h"
#include "convert/run/rank_sums.h"
#include "convert/run/run.h"
#include "io/safetensors/layout.h"
#include "live/save/export.h"
#include "live/save/save.h"
#include "runtime/watch/activity.h"
#include "tools/interrupt.h"

namespace mckpt {
namespace {

constexpr const char* kLiveIdentity = "live model\n";  // no run resumes another

// Sums what is written, in the thread that writes it.
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
  return {.threads = options.threads, .durable = options.durable, .can_overwrite = false};
}

// The caller shows the progress of its phase, and of several of them.
class PhaseObserver final : public Observer {
 public:
  explicit PhaseObserver(std::atomic<i64>* bytes) : bytes_(bytes) {}
  void done(i64 bytes) override {
    if (bytes_) *bytes_ += bytes;
    made_progress();
  }
  bool stop() override { return *stop_flag(); }

 private:
  std::atomic<i64>* bytes_;
};

// The tensors of a folder like the source, and where each goes.
struct HfPlaces {
  explicit HfPlaces(const ModelMap& map) {
    std::vector<bool> computed(static_cast<std::size_t>(map.sources().size()));
    for (const UnreadTensor& u : map.unread())
      if (u.of < 0) computed[static_cast<std::size_t>(u.tensor)] = true;
    std::vector<Shape> shapes = map.source_shapes();
    std::vector<TensorSpec> specs;
    std::vector<i32> written;
    for (i32 t = 0; t < map.sources().size(); t++) {
      if (computed[static_cast<std::size_t>(t)]) continue;
      written.push_back(t);
      const SourceTensor& tensor = map.sources()[t];
      specs.push_back({tensor.name, tensor.dtype, shapes[static_cast<std::size_t>(t)].dims()});
    }
    layout.emplace(specs, SafetensorsOptions{.max_shard_bytes = 5'000'000'000});
    places.tensors.resize(shapes.size());
    for (std::size_t i = 0; i < specs.size(); i++) {
      i64 at = static_cast<i64>(i);
      places.tensors[static_cast<std::size_t>(written[i])] = {layout->file(at), layout->offset(at),
                                                              specs[i].dtype, Shape(specs[i].dims)};
      bytes += layout->bytes(at);
      data.push_back({layout->file(at), layout->offset(at), layout->bytes(at)});
    }
  }

  std::optional<SafetensorsLayout> layout;
  TensorPlaces places;
  std::vector<PartSums::Place> data;  // of every tensor, in the files
  i64 bytes = 0;
};

}  // namespace

StagedFolder::Options live_staging(bool durable) {
  return {.durable = durable, .instead = "remove this one"};
}

i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options) {
  HfPlaces hf(model.map());
  LiveExportOptions how{.stop = stop_flag()};
  // A GPU has room for windows that keep a disk busy.
  if (!model.device().is_host())
    how.memory_bytes = i64{256} << 20, how.writers = std::min(4, options.threads);
  ConversionPlan c;
  c.path = path, c.identity = kLiveIdentity;
  c.layout = &*hf.layout, c.files = hf.layout->output_files();
  add_beside(c, {plan_assets(source.path, ""), {}});
  PartSums parts(hf.data);
  PhaseObserver observer(options.written_bytes);
  run(c, run_options(options), model.world(), observer, [&](const DataTarget& to) {
    SummingSink summed(to.out, parts);
    LiveExportCounts counts = export_model(model, keys, hf.places, summed, how);
    gather_sums(parts, model.world());
    if (model.world().rank() == 0) parts.join_into(to.sums);
    return CopyCounts{.bytes_written = counts.bytes_written};
  });
  return hf.bytes;
}

i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options) {
  FsdpRun setup = run_of(model);
  setup.fsdp.saved = true;
  ConversionPlan c;
  auto& plan = c.parts.make<FsdpPlan>(keys, setup, model.setup().adjust);
  DcpLayout& layout = plan.layout;
  add_run_objects(layout, {model.map().model(), setup, 0, source.config.max_positions});
  c.job = std::make_unique<ChunkJob>(save_job(model, keys, layout, plan.table_key));
  c.job_of_rank = true;
  c.identity = kLiveIdentity;
  std::string table = tensor_table_json(model.map().sources(), source.expert_layout, source.map_text);
  plan_iteration(c, layout, target, std::nullopt, {{}, plan_assets(source.path, table)});
  PhaseObserver observer(options.written_bytes);
  run(c, run_options(options), model.world(), observer);
  i64 bytes = 0;
  for (i64 i = 0; i < layout.chunk_count(); i++) {
    DcpLayout::Chunk chunk = layout.chunk(i);
    bytes += dtype_bytes(layout.key(chunk.key).dtype, Shape(chunk.sizes).items());
  }
  return bytes;
}

}  // namespace mckpt
