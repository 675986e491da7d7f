#include "tools/live_folder.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "convert/objects/megatron_args.h"
#include "convert/output/fsdp_folder.h"
#include "io/copy/engine.h"
#include "io/file/source_stamps.h"
#include "io/safetensors/layout.h"
#include "live/save/export.h"
#include "live/save/save.h"
#include "runtime/watch/activity.h"
#include "tools/folder_manifest.h"
#include "tools/interrupt.h"
#include "tools/rank_errors.h"

namespace mckpt {
namespace {

// Tells at every write that something goes on, and ends there when the program is to stop: the task that a
// write belongs to may be gigabytes.
class WatchedSink final : public CopySink {
 public:
  explicit WatchedSink(CopySink& to) : to_(to) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    check_stop();
    to_.write(file, offset, bytes);
    made_progress();
  }

 private:
  CopySink& to_;
};

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

struct Writers {
  std::function<void(CopySink&)> part;  // of every rank
  // What is no rank's, in rank 0, when all parts are there; `folder` is where the files are.
  std::function<void(OutputFiles&, const std::string& folder)> rest;
  std::function<void()> last_step{};  // in rank 0, when the folder has its name
};

void write_folder(Comm& world, const std::string& path, const std::vector<OutputFile>& files,
                  const LiveFolderOptions& options, const Writers& writers) {
  OutputFiles::How how = options.durable ? OutputFiles::How::kDirect : OutputFiles::How::kCached;
  std::optional<StagedFolder> staged;
  std::optional<OutputFiles> out;
  if (world.rank() == 0) {
    staged.emplace(path, live_staging(options.durable), "live model\n");
    out.emplace(staged->folder(), files, OutputFiles::Begin::kCreate, how);
  }
  // What rank 0 has staged goes when it is left with an error, while the others may be about to open it.
  claiming_errors([&] {
    world.barrier();
    if (!out) out.emplace(StagedFolder::staging_path(path), files, OutputFiles::Begin::kGoOn, how);
    WatchedSink watched(*out);
    writers.part(watched);
    if (options.durable && world.rank() != 0) out->sync();
    world.barrier();
    if (staged) {
      writers.rest(*out, staged->folder());
      check_stop();
      if (options.durable) out->sync();
      check_sources_unchanged();
      staged->publish(writers.last_step);
    }
    world.barrier();
  });
}

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

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
    for (const SafetensorsLayout::File& f : layout->files()) files.push_back({f.name, f.bytes});
    if (!layout->index().empty())
      files.push_back({std::string(SafetensorsLayout::kIndexName), std::ssize(layout->index())});
  }

  // Headers first; the index last: without it nobody takes several files for a model.
  void write_text(OutputFiles& out) const {
    i32 count = static_cast<i32>(layout->files().size());
    for (i32 f = 0; f < count; f++)
      out.write(f, 0, as_bytes(layout->files()[static_cast<std::size_t>(f)].header));
    if (!layout->index().empty()) out.write(count, 0, as_bytes(layout->index()));
  }

  std::optional<SafetensorsLayout> layout;
  TensorPlaces places;
  std::vector<PartSums::Place> data;  // of every tensor, in the files
  std::vector<OutputFile> files;
  i64 bytes = 0;
};

}  // namespace

StagedFolder::Options live_staging(bool durable) {
  return {.durable = durable, .instead = "remove this one"};
}

i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options) {
  HfPlaces hf(model.map());
  LiveExportOptions how{.stop = stop_flag(), .written_bytes = options.written_bytes};
  // A GPU has room for windows that keep a disk busy.
  if (!model.device().is_host())
    how.memory_bytes = i64{256} << 20, how.writers = std::min(4, options.threads);
  SideFiles assets = plan_assets(source.path, "");
  PartSums parts(hf.data);
  write_folder(model.world(), path, hf.files, options,
               {[&](CopySink& out) {
                  SummingSink summed(out, parts);
                  export_model(model, keys, hf.places, summed, how);
                  gather_sums(parts, model.world());
                },
                [&](OutputFiles& out, const std::string& folder) {
                  assets.write(folder, options.durable);
                  hf.write_text(out);
                  WrittenSums sums;
                  parts.join_into(sums);
                  write_manifest(folder, sums.finish(folder, hf.files), options.durable);
                }});
  return hf.bytes;
}

i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options) {
  FsdpRun run = run_of(model);
  run.fsdp.saved = true;
  FsdpPlan plan(keys, run, model.setup().adjust);
  add_run_objects(plan.layout, {model.map().model(), run, 0, source.config.max_positions});
  ChunkJob job = save_job(model, keys, plan.layout, plan.table_key);
  FsdpFolder folder(target, std::nullopt, options.durable);
  std::string table = tensor_table_json(model.map().sources(), source.expert_layout, source.map_text);
  i64 bytes = 0;
  for (i64 c = 0; c < plan.layout.chunk_count(); c++) {
    DcpLayout::Chunk chunk = plan.layout.chunk(c);
    bytes += dtype_bytes(plan.layout.key(chunk.key).dtype, Shape(chunk.sizes).items());
  }
  FsdpFolder::Beside beside{{}, plan_assets(source.path, table)};
  WrittenSums sums;
  write_folder(model.world(), folder.path(), plan.layout.files(), options,
               {[&](CopySink& out) {
                  CopyOptions how{.threads = options.threads, .stop = stop_flag()};
                  how.written_bytes = options.written_bytes, how.written = &sums;
                  run_copy(job, out, how);
                  gather_sums(sums, model.world());
                },
                [&](OutputFiles& out, const std::string& to) {
                  folder.write_rest(plan.layout, out, to, beside);
                  write_manifest(to, sums.finish(to, plan.layout.files()), options.durable);
                },
                [&] { folder.write_tracker(); }});
  return bytes;
}

}  // namespace mckpt
