// PlainLayout divides the rows of every tensor evenly and keeps the nesting of the saved dicts.
#include "convert/plan/reshard/plain.h"

#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/iteration.h"
#include "convert/plan/reshard/plain_layout.h"
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

bool has_states_of_megatron(const Store& store) {
  const DcpDialect dialect = dcp_dialect(store).value_or(DcpDialect::kPlain);
  if (dialect != DcpDialect::kFsdpDtensor && dialect != DcpDialect::kTorchDist) return false;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (is_of_optimizer(store.name(t))) return true;
  return false;
}

// The reason in the note that names are kept: "as 'rng' and 3 more belong to no known convention".
std::string why_kept(const Store& store) {
  const DcpDialect dialect = dcp_dialect(store).value_or(DcpDialect::kPlain);
  if (dialect == DcpDialect::kStateDict || dialect == DcpDialect::kMegatronFsdp)
    return "with the format of the source";
  if (dialect != DcpDialect::kPlain) return "as `keep_names` asks";
  std::string keys = keys_of_no_format(store);
  return keys.empty() ? "as together they follow no known convention"
                      : cat("as ", keys, " belong to no known convention");
}

}  // namespace

Conversion plan_plain_reshard(PlainSource source, const ReshardOptions& options) {
  Conversion c;
  const Store& store = *(c.store = &c.parts.keep(std::move(source.store)));
  c.oddities.push_back({store.root(), std::move(source.oddities)});
  bool weights_only = options.from.weights_only;
  auto& plan = c.parts.make<PlainLayout>(store, shards_of(options.grid), weights_only);
  std::vector<CarriedRecord> records = plan.add_objects();
  auto& chunks = c.parts.make<PlannedChunks>(plan.layout, plan.tensors);
  c.sums = std::make_unique<ReadSums>();
  if (options.rank == 0) expect_object_files(*c.sums, store);
  c.job = std::make_unique<ChunkJob>(
      reshard_job(store, chunks, nullptr, std::move(records)));

  c.sources = {store.root()};
  c.opening = store.opening();
  c.proof = {side_of(store), side_of(plan.layout), plan.left_behind, {}, {}};
  c.dropped_objects = plan.left_behind_objects;
  c.notes.note(
      cat("names   are kept, ", why_kept(store), ": the rows of each tensor are divided over the ranks"));
  std::optional<i64> iteration =
      iteration_of_result(store, options.iteration, !weights_only && has_states_of_megatron(store), c.notes);
  FsdpFolder::Beside beside = all_beside(store, {});
  std::string metadata = plan_iteration(c, plan.layout, options.target, iteration, beside);
  PlanIdentity text("reshard by key", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", weights_only);
  text.add(kSourceFiles, source_identity(store)).add(kBesideFiles, beside.identity());
  c.identity = text.add(kResult, metadata).text();
  set_run(c, cat(format_text(store.format()), ", with its own names"), options.grid, plan.layout);
  return c;
}

}  // namespace mckpt::impl
