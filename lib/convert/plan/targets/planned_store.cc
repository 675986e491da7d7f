// PlannedStore shows the chunks of a layout as the tensors of a store without data.
#include "convert/plan/targets/planned_store.h"

#include <numeric>
#include <vector>

#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/dialects/torch_dist/plan.h"
#include "convert/dialects/torch_dist/table.h"
#include "convert/keys/key_table.h"
#include "convert/plan/targets/fsdp.h"
#include "convert/plan/targets/recut.h"
#include "convert/plan/targets/torch_dist.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/write/layout.h"
#include "io/output/output_files.h"
#include "io/store/store.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

// The chunks of a layout, under their keys.
class PlannedStore final : public Store {
 public:
  PlannedStore(DcpLayout layout, std::string root, Format format) : layout_(std::move(layout)) {
    root_ = std::move(root);
    format_ = format;
    for (OutputFile& file : layout_.files()) files_.push_back({std::move(file.name), file.bytes});
    ranks_ = std::ssize(files_);
    first_.resize(layout_.key_count() + 1);
    for (i64 c = 0; c < layout_.chunk_count(); c++) first_[layout_.chunk(c).key + 1]++;
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    chunks_.resize(layout_.chunk_count());
    std::vector<i64> next = first_;
    for (i64 c = 0; c < layout_.chunk_count(); c++) chunks_[next[layout_.chunk(c).key]++] = c;
  }

  i64 tensor_count() const override { return layout_.key_count(); }
  std::string_view name(i64 t) const override { return key(t).name.text; }
  DType dtype(i64 t) const override { return key(t).dtype; }
  std::span<const i64> dims(i64 t) const override { return key(t).shape.dims(); }
  i64 chunk_count(i64 t) const override { return first_[t + 1] - first_[t]; }
  Chunk chunk(i64 t, i64 index) const override {
    const DcpLayout::Chunk c = layout_.chunk(chunks_[first_[t] + index]);
    return {.offsets = c.offsets,
            .sizes = c.sizes,
            .file = c.rank,
            .rank = c.rank,
            .record_offset = c.record_offset};
  }
  ChunkData resolve(i64 t, i64) const override {
    throw Error(Code::kNotFound, "a planned checkpoint has no data").tensor(std::string(name(t)));
  }

 private:
  const DcpLayoutKey& key(i64 t) const { return layout_.key(static_cast<i32>(t)); }

  DcpLayout layout_;
  std::vector<i64> first_;   // by key, of chunks_
  std::vector<i64> chunks_;  // numbers of chunks of the layout, by key
};

HfModel open_model(const std::string& path, HfModelOptions reading, int threads) {
  reading.shapes_only = true;
  reading.threads = threads;
  return open_hf_model(path, reading);
}

PlannedCheckpoint checkpoint_of(const HfModel& model, const RunSetup& run, const Grid& grid, DcpLayout layout,
                                DcpDialect dialect) {
  PlannedCheckpoint out{std::make_unique<PlannedStore>(std::move(layout), model.path, dcp_format(dialect)),
                        notes_of(model)};
  if (std::string text = padding_note(model.map->model(), run, grid.tp); !text.empty()) out.notes.note(text);
  out.store->add_fact("grid", to_string(grid));
  return out;
}

}  // namespace

PlannedCheckpoint planned_fsdp(const HfToFsdpOptions& options) {
  refuse_unlike_v2(options.grid, options.fsdp);
  refuse_other_types(options.fsdp, options.values);
  const HfModel model = open_model(options.source, options.model, options.threads);
  const std::optional<LayerPattern> groups = given_pattern(options.hybrid_pattern, options.grid.pp);
  const FsdpRun run = fsdp_run(options, *model.map, groups ? &*groups : nullptr);
  const KeyTable keys(*model.map, run.run, KeyTable::Cells{run.grid.tp, run.grid.etp});
  FsdpPlan plan(keys, run, [&](std::vector<ModelParameter>& p) { options.frozen.apply(p); });
  options.frozen.refuse_unmatched(keys.parameters());
  return checkpoint_of(model, run.run, run.grid, std::move(plan.layout),
                       run.fsdp.saves_state_dict() ? DcpDialect::kMegatronFsdp : DcpDialect::kFsdpDtensor);
}

PlannedCheckpoint planned_torch_dist(const ToMcoreOptions& options) {
  const HfModel model = open_model(options.source, options.checkpoint.model, options.threads);
  const ModelMap& map = *model.map;
  Notes of_pattern;
  const std::optional<LayerPattern> pattern = torch_dist_pattern(options, map, of_pattern);
  const TorchDistRun run = torch_dist_run(options, map, pattern);
  const KeyTable keys(map, run.run, torch_dist_split);
  TorchDistPlan plan(keys, run);
  PlannedCheckpoint out =
      checkpoint_of(model, run.run, run.grid, std::move(plan.layout), DcpDialect::kTorchDist);
  out.notes.append(of_pattern);
  return out;
}

}  // namespace mckpt::impl
