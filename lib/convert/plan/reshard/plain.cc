// Divides the rows of every tensor evenly; a tensor that cannot be divided is stored by the last rank. The
// layout keeps the nesting of the saved dicts, if the source's .metadata records it.
#include "convert/plan/reshard/plain.h"

#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/iteration.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/identity.h"
#include "convert/source/reshard_source.h"
#include "convert/source/source_model.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "io/copy/read_sums.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/paths.h"
#include "io/output/plan_identity.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The number of data-parallel ranks that share a tensor; kUnknownPartition for any other kind of parallelism.
i64 shards_of(const Grid& grid) {
  if (grid.tp * grid.ep * grid.etp * grid.pp > 1)
    throw Error(Code::kUnknownPartition,
                "mckpt has no table of this model, so it is not known how ranks split its parameters")
        .expected("`tp` 1, `ep` 1, `etp` 1 and `pp` 1")
        .found(to_string(grid))
        .help("choose a grid of `dp`, `cp` and `hsdp`");
  return grid.dp * grid.cp / grid.hsdp;
}

// The reason in the note that names are kept: "as 'rng' and 3 more belong to no known convention".
std::string why_kept(const Store& store) {
  if (dcp_dialect(store) != DcpDialect::kPlain) return "as `keep_names` asks";
  std::string keys = keys_of_no_format(store);
  return keys.empty() ? "as together they follow no known convention"
                      : cat("as ", keys, " belong to no known convention");
}

// The layout of the result, and what is left out of it. The store outlives the object.
class PlainLayout {
 public:
  PlainLayout(const Store& store, i64 ranks, bool weights_only)
      : store_(store), ranks_(ranks), paths_(dcp_paths(store)), layout(ranks) {
    if (!paths_) layout.leave_out_paths();
    for (i32 t = 0; t < store.tensor_count(); t++) {
      if (weights_only && is_of_optimizer(store.name(t))) {
        left_behind.push_back(t);
        continue;
      }
      layout.add_key({named(store.name(t)), store.dtype(t), store.shape(t)});
      tensors.push_back(t);
    }
    for (i64 rank = 0; rank < ranks; rank++)
      for (i32 key = 0; key < layout.key_count(); key++) add_share(key, rank);
  }

  // Adds the objects of the source to the layout, without the optimizer's if only weights are wanted. Called
  // once.
  std::vector<CarriedRecord> add_objects(bool weights_only) {
    std::vector<CarriedRecord> records;
    for (const Object& o : store_.objects()) {
      if (is_file(store_, o)) continue;
      if (weights_only && is_of_optimizer(o.name)) {
        left_behind_objects++;
        continue;
      }
      records.push_back(carry_object(store_, o, layout, named(o.name), 0));
    }
    return records;
  }

 private:
  // The name with its place in the nested dict that was saved; a name without a recorded path is one key.
  DcpName named(std::string_view name) const {
    auto at = paths_ ? paths_->find(std::string(name)) : DcpPaths::const_iterator();
    if (paths_ && at != paths_->end()) return at->second;
    return {std::string(name), {}};
  }

  // Buffers that count or index, scalars and tensors without items are not divided: the last rank stores them.
  bool is_sharded(i32 tensor) const {
    return is_castable(store_.dtype(tensor)) && !store_.dims(tensor).empty() &&
           store_.shape(tensor).items() > 0;
  }

  void add_share(i32 key, i64 rank) {
    i32 tensor = tensors[key];
    std::vector<i64> offsets(store_.dims(tensor).size());
    std::vector<i64> sizes(store_.dims(tensor).begin(), store_.dims(tensor).end());
    if (is_sharded(tensor)) {
      i64 rows = sizes[0], each = ceil_div(rows, ranks_);
      offsets[0] = std::min(rows, rank * each);
      sizes[0] = std::min(rows - offsets[0], each);
      if (sizes[0] == 0) return;
    } else if (rank != ranks_ - 1) {
      return;
    }
    layout.add_chunk(key, static_cast<i32>(rank), offsets, sizes);
  }

  const Store& store_;
  i64 ranks_;
  std::optional<DcpPaths> paths_;

 public:
  DcpLayout layout;
  std::vector<i32> tensors;  // of the store, by key of the layout
  std::vector<i64> left_behind;
  i64 left_behind_objects = 0;
};

}  // namespace

Conversion plan_plain_reshard(PlainSource source, const ReshardOptions& options) {
  Conversion c;
  const Store& store = *(c.store = &c.parts.keep(std::move(source.store)));
  c.oddities.push_back({store.root(), std::move(source.oddities)});
  bool weights_only = options.from.weights_only;
  auto& plan = c.parts.make<PlainLayout>(store, shards_of(options.grid), weights_only);
  std::vector<CarriedRecord> records = plan.add_objects(weights_only);
  auto& chunks = c.parts.make<PlannedChunks>(plan.layout, plan.tensors);
  c.sums = std::make_unique<ReadSums>();
  if (options.rank == 0) expect_object_files(*c.sums, store);
  c.job = std::make_unique<ChunkJob>(reshard_job(store, chunks, nullptr, std::move(records)));

  c.sources = {store.root()};
  c.opening = store.opening();
  c.proof = {side_of(store), side_of(plan.layout), plan.left_behind, {}, {}};
  c.dropped_objects = plan.left_behind_objects;
  c.notes.note(
      cat("names   are kept, ", why_kept(store), ": the rows of each tensor are divided over the ranks"));
  std::optional<i64> iteration = options.iteration ? options.iteration : iteration_of(store.root());
  FsdpFolder::Beside beside{files_beside(store, {}), {}};
  std::string metadata = plan_iteration(c, plan.layout, options.target, iteration, beside);
  PlanIdentity text("reshard by key", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", weights_only);
  text.add(kSourceFiles, source_identity(store)).add(kBesideFiles, beside.identity());
  c.identity = text.add(kResult, metadata).text();
  note_run(c, options.grid, plan.layout);
  return c;
}

}  // namespace mckpt::impl
