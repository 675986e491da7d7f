// Changes are settled first: values become pickles of the result. Then every fact gets its name and its
// record.
#include "convert/dialects/fsdp/write_facts.h"

#include "convert/dialects/fsdp/run.h"
#include "convert/facts/kept_args.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/rope_args.h"
#include "convert/facts/source_args.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// The args of the source with what follows from the result. A field that the args lack stays away, but for
// the grid of another format.
std::string new_args(std::string args, const FsdpResult& result, Notes& notes) {
  const std::optional<i64> divisor = other_vocab_divisor(args, result.map, result.vocab_rows, result.grid.tp);
  auto put = [&](std::string_view name, const ArgValue& value, bool add = false) {
    if (add || args.find(name) != args.npos) put_arg(args, name, value, notes);
  };
  for (auto [name, value] : grid_args(result.grid)) put(name, value, result.other_format);
  if (result.other_format) {
    for (std::string_view name : pipeline_args()) put(name, std::monostate());
    put(kFsdpArg, true);
    put(kFormatArg, std::string("fsdp_dtensor"));
  }
  if (result.made && (result.other_format || result.pattern))
    put_layers(args, result.map, result.pattern, notes);
  if (result.vocab_rows != result.source_rows) put(kPaddedVocab, result.vocab_rows, true);
  if (divisor) put(kVocabDivisor, *divisor);
  if (result.norms != NormNames::kOfAll) put_modules(args, result.norms, notes);
  return args;
}

void add_missing(RunFacts& facts, const FsdpResult& result, Notes& notes) {
  if (result.made && !facts.has(FactKind::kArgs)) {
    facts.add(FactKind::kArgs, pickle_args(*result.made));
    note_unsaid_rope(result.made->map.model(), result.made->entries, notes);
  }
  if (!facts.has(FactKind::kVersion)) facts.add(FactKind::kVersion, pickle_real(3.0));
  if (facts.has(FactKind::kIteration)) return;
  facts.add(FactKind::kIteration, pickle_integer(result.made_iteration));
  if (result.made_iteration == 0)
    notes.note("run     the source says no iteration, so 0 is written; schedules begin anew");
}

}  // namespace

RunFacts facts_for_fsdp(RunFacts facts, const FsdpResult& result, WrittenFacts& out) {
  if (result.weights_only)
    std::erase_if(facts.all, [&](const RunFact& f) {
      const Object* o = facts.object(f);
      const bool lost = is_of_optimizer(f) && !(o && is_file(*facts.store, *o));
      out.left_out += lost && o;
      return lost;
    });
  for (RunFact& f : facts.all) {
    if (f.kind == FactKind::kArgs) f.pickle = new_args(facts.pickle(f), result, out.notes), f.object = -1;
    if (f.kind == FactKind::kIteration && result.iteration)
      f.pickle = pickle_integer(*result.iteration), f.object = -1;
  }
  if (result.other_format) add_missing(facts, result, out.notes);
  out.left_out += facts.hidden_objects;
  if (std::string lost = lost_options(facts); !lost.empty() && !result.weights_only) out.notes.warn(lost);
  if (!facts.hidden.empty()) out.notes.note(cat("fsdp_dtensor has no place for ", listed(facts.hidden)));
  return facts;
}

std::vector<CarriedRecord> write_fsdp_facts(const RunFacts& facts, DcpLayout& layout,
                                            const std::function<DcpName(const std::string&)>& named) {
  std::vector<CarriedRecord> records;
  NameSet<std::string> names;
  for (const RunFact& f : facts.all) {
    const Object* o = facts.object(f);
    const std::string name = name_of(f);
    if ((o && is_file(*facts.store, *o)) || !names.insert(name).second) continue;
    DcpName to = o && named ? named(name) : DcpName{name, nesting_dots(name)};
    if (o)
      add_carried(*facts.store, *o, layout, std::move(to), 0, records);
    else
      layout.add_object(std::move(to), 0, f.pickle);
  }
  return records;
}

MegatronArgs fsdp_args(const ModelMap& map, const RunEntries& entries, const FsdpRun& run, i64 iteration,
                       bool has_states) {
  return {.map = map,
          .entries = entries,
          .grid = run.grid,
          .run = run.run,
          .iteration = iteration,
          .has_states = has_states,
          .strategy = run.fsdp.strategy};
}

}  // namespace mckpt::impl
