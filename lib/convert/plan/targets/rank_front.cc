// Args are kept as the pickle that they are: entries that change are added behind the old ones.
#include "convert/plan/targets/rank_front.h"

#include <memory>
#include <string>

#include "convert/objects/kept_args.h"
#include "convert/objects/megatron_args.h"
#include "convert/objects/source_args.h"
#include "convert/open/checkpoint.h"
#include "convert/open/opened.h"
#include "core/hybrid/spellings.h"
#include "hf/model.h"
#include "io/dcp/run/args.h"
#include "io/pickle/write/copy.h"
#include "io/pickle/write/writer.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

// The type of the parameters that the args say: the one that is written for all weights, or that of the run.
std::optional<DType> type_of_args(const RankRun& run) {
  return run.main_dtype ? run.main_dtype : run.run.params_dtype;
}

bool has_unfused_norms(const Spelling& spelling) {
  for (int row = 0; row < static_cast<int>(other_names().size()); row++)
    if (spelling.has(row) && other_names()[row].why == SpellingKind::kUnfusedNorm) return true;
  return false;
}

// The args of a checkpoint's run, as a pickle, with what the conversion changes; "" where there are none.
std::string args_of_source(const Opened& source, const RankRun& run, std::optional<i64> iteration,
                           Notes& notes) {
  if (!source.sharded) return "";
  std::shared_ptr<const PickleValue> own = args_of(source.on_disk());
  if (!own || !arg_of(*own, kAlwaysThere)) return "";
  std::string args =
      kept_args(copy_pickle(*own),
                {.map = *source.model()->map,
                 .grid = run.grid,
                 .pipeline = run.pipeline,
                 .format = ArgsFormat::kTorch,
                 .vocab_rows = run.run.vocab_rows,
                 .source_rows = source.sharded->setup().vocab_rows,
                 .params_dtype = type_of_args(run),
                 .iteration = iteration.value_or(0),
                 .from_the_start = !iteration,
                 .norms = has_unfused_norms(run.run.spelling) ? NormNames::kOfMegatron
                                                              : NormNames::kOfTransformerEngine},
                notes);
  put_arg(args, kRankArg, i64{0}, notes);
  return args;
}

std::string with_rank(std::string args, i64 rank) {
  Notes said_before;
  put_arg(args, kRankArg, rank, said_before);
  return args;
}

}  // namespace

RankPlan::WriteFront rank_front(const Opened& source, const RankRun& run, std::optional<i64> iteration,
                                Notes& notes) {
  std::string kept = args_of_source(source, run, iteration, notes);
  FsdpRun of_args;
  of_args.grid = run.grid, of_args.run = run.run;
  of_args.run.params_dtype = type_of_args(run);
  const HfModel& model = *source.model();
  return [&model, &run, of_args, iteration = iteration.value_or(0), kept = std::move(kept)](PickleWriter& p,
                                                                                            i64 rank) {
    p.text("args");
    if (!kept.empty())
      p.pickled(with_rank(kept, rank));
    else
      write_args(p, {.map = *model.map,
                     .entries = model.config.run,
                     .run = of_args,
                     .iteration = iteration,
                     .format = ArgsFormat::kTorch,
                     .pipeline = run.pipeline,
                     .rank = rank});
    p.text("checkpoint_version"), p.real(3.0);
    p.text("iteration"), p.integer(iteration);
  };
}

}  // namespace mckpt::impl
