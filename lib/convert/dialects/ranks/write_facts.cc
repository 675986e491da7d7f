// Args are kept as the pickle that they are: entries that change are added behind the old ones.
#include "convert/dialects/ranks/write_facts.h"

#include <memory>
#include <string>

#include "convert/facts/kept_args.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/rope_args.h"
#include "convert/facts/source_args.h"
#include "core/base/notes.h"
#include "core/hybrid/spelled.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/run/args.h"
#include "io/pickle/write/copy.h"
#include "io/pickle/write/writer.h"
#include "mappings/model/expand.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

// The type of the parameters that the args of the result say: the type that is written for all weights, or
// else the type in which the run has its parameters.
std::optional<DType> type_of_args(const RankRun& run) {
  return run.main_dtype ? run.main_dtype : run.run.params_dtype;
}

// The args of the facts, as a pickle, with what the conversion changes; "" where there are none.
std::string args_of_facts(const RunFacts& facts, const RanksResult& result, Notes& notes) {
  const RunFact* said = facts.find(FactKind::kArgs);
  std::shared_ptr<const PickleValue> own = said ? facts.value(*said) : nullptr;
  if (!own || !arg_of(*own, kAlwaysThere)) return "";
  const RankRun& run = result.run;
  std::string args =
      kept_args(copy_pickle(*own),
                {.map = result.map,
                 .grid = run.grid,
                 .pipeline = run.pipeline,
                 .format = ArgsFormat::kTorch,
                 .vocab_rows = run.run.vocab_rows,
                 .source_rows = result.source_rows,
                 .params_dtype = type_of_args(run),
                 .iteration = result.iteration.value_or(0),
                 .from_the_start = !result.iteration,
                 .norms = has_unfused_norms(run.run.spelling) ? NormNames::kOfMegatron
                                                              : NormNames::kOfTransformerEngine,
                 .pattern = run.pipeline.pattern},
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

RankPlan::WriteFront rank_front(const RunFacts& facts, const RanksResult& result, Notes& notes) {
  RunSetup of_args = result.run.run;
  of_args.params_dtype = type_of_args(result.run);
  std::string of_source = args_of_facts(facts, result, notes);
  if (of_source.empty()) note_unsaid_rope(result.map.model(), result.entries, notes);
  return [result, of_args, kept = std::move(of_source)](PickleWriter& p, i64 rank) {
    const i64 iteration = result.iteration.value_or(0);
    p.text("args");
    if (!kept.empty())
      p.pickled(with_rank(kept, rank));
    else
      write_args(p, {.map = result.map,
                     .entries = result.entries,
                     .grid = result.run.grid,
                     .run = of_args,
                     .iteration = iteration,
                     .format = ArgsFormat::kTorch,
                     .pipeline = result.run.pipeline,
                     .rank = rank});
    p.text("checkpoint_version"), p.real(3.0);
    p.text("iteration"), p.integer(iteration);
  };
}

}  // namespace mckpt::impl
