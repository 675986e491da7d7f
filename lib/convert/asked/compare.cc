// Words are read one after the other, so that the first wrong one is named.
#include "convert/asked/compare.h"

#include "core/fsdp/complete_grid.h"

namespace mckpt::impl {
namespace {

// The words of the run are read at once, and its size when the dump is open.
std::optional<LiveSide> live_side(const mckpt::LiveRank& o, const HfModelOptions& model) {
  if (o.live.empty()) return std::nullopt;
  if (o.live != "megatron" && o.live != "fsdp")
    throw Error(Code::kUsage, "`live` is not a way to hold a model")
        .expected("megatron or fsdp")
        .found(escaped(o.live));
  ShareRun run;
  run.model = model, run.values = value_options(o.values);
  run.frozen = frozen_of(o.fsdp), run.spelling = given_spelling(o.spelling);
  run.hybrid_pattern = o.hybrid_pattern;
  const Grid sizes = sizes_of(o.grid);
  return LiveSide{
      .fsdp = o.live == "fsdp", .rank = o.rank, .run = [=, dp = o.grid.dp, fsdp = o.fsdp](i64 world) {
        ShareRun of_world = run;
        of_world.grid = grid_of_ranks(sizes, dp, world);
        of_world.fsdp = setup_of(fsdp, of_world.grid);
        return of_world;
      }};
}

}  // namespace

VerifyOptions verify_options(const mckpt::VerifyOptions& options, const Opening& what) {
  VerifyOptions how{.threads = options.threads,
                    .reports = options.cards.report,
                    .card = options.card,
                    .strict = options.strict,
                    .command = options.cards.command};
  how.compare.opening.assets = options.assets;
  how.compare.opening.accept = accepted_codes(options.accept);
  how.compare.model_dict = model_dict_of(options.model_dict);
  how.compare.opening.model.files = opening_of(options.files, what);
  return how;
}

CompareOptions compare_options(const mckpt::CompareOptions& options, const Opening& what) {
  CompareOptions how;
  how.opening = checkpoint_options(options.opening, what);
  how.path_tp = options.path_tp, how.path_etp = options.path_etp;
  how.params_dtype = params_dtype_of(options.params_dtype);
  how.types = type_claim(options.dtype, options.dtype_rule);
  how.model_dict = model_dict_of(options.model_dict);
  how.weights_only = options.weights_only;
  return how;
}

DiffOptions diff_options(const mckpt::DiffOptions& options, const Opening& what) {
  DiffOptions how;
  how.comparing.opening = checkpoint_options(options.opening, what);
  how.comparing.path_tp = options.path_tp, how.comparing.path_etp = options.path_etp;
  how.comparing.model_dict = model_dict_of(options.model_dict);
  how.comparing.threads = options.threads;
  how.live = live_side(options.of_rank, how.comparing.opening.model);
  return how;
}

}  // namespace mckpt::impl
