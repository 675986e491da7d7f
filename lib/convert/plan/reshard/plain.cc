// The tensors and objects are written as in `to-dcp`; around them is an iteration of a run.
#include "convert/plan/reshard/plain.h"

#include "convert/dialects/torch_dist/read_facts.h"
#include "convert/open/opened.h"
#include "convert/open/source_model.h"
#include "convert/plan/iteration.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/result_ranks.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/targets/dcp.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
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

std::optional<i64> iteration_in(const Store& store) {
  const bool torch_dist = dcp_dialect(store) == DcpDialect::kTorchDist;
  return torch_dist ? torch_dist_iteration(store) : facts_of_objects(store).iteration();
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

Conversion plan_plain_reshard(Opened source, const ReshardOptions& options) {
  return plan(std::move(source), [&](Opened& opened) {
    const Store& store = opened.store();
    const bool weights_only = options.from.weights_only;
    refuse_many_ranks(options.grid.world(), store);
    auto target = std::make_unique<KeptKeys>(
        store, std::make_unique<PlainLayout>(store, shards_of(options.grid), weights_only), true,
        options.rank == 0);
    target->notes.note(
        cat("names   are kept, ", why_kept(store), ": the rows of each tensor are divided over the ranks"));
    const std::optional<i64> iteration = iteration_of_result(
        store, options.iteration, !weights_only && has_states_of_megatron(store),
        [&] { return iteration_in(store); }, target->notes);
    TargetIdentity& identified = target->identified;
    identified.result =
        plan_iteration(*target, target->layout(), options.target, iteration, all_beside(store, {}));
    identified.settings.emplace("reshard by key", MCKPT_VERSION);
    set_run(*identified.settings, options.grid, options.fsdp, options.frozen);
    identified.settings->set("iteration", options.iteration.value_or(0)).set("weights_only", weights_only);
    set_run(*target, cat(format_text(store.format()), ", with its own names"), options.grid,
            target->layout());
    return target;
  });
}

}  // namespace mckpt::impl
