// A Conversion of the interface is one of the engine, and whether it was proved. Each plan() makes the
// engine's options of the words of the interface.
#include "mckpt/conversion.h"

#include "api/boundary.h"
#include "api/conversion_access.h"
#include "api/words.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/account_text.h"
#include "convert/plan/conversion.h"
#include "convert/plan/export.h"
#include "convert/plan/reshard/to_fsdp.h"
#include "convert/plan/quantize.h"
#include "convert/plan/relayer.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/reshard/to_ranks.h"
#include "convert/plan/to_mcore.h"
#include "convert/run/result_card.h"
#include "convert/run/run.h"
#include "io/file/parallel.h"
#include "io/output/output_files.h"
#include "io/store/soundness.h"
#include "runtime/comm/comm.h"

namespace mckpt {
static_assert(kUsualShardSize == impl::kUsualShardBytes);

namespace {

Account to_public(const impl::Conversion& c) {
  const impl::Account& a = c.account;
  return {.tensors_in = a.tensors_in,
          .tensors_out = a.tensors_out,
          .copied = a.copied,
          .fused = a.fused,
          .split = a.split,
          .tied = a.copies + a.tied + c.shared_tensors,
          .padded = a.padded,
          .unpadded = a.unpadded,
          .changed = a.changed,
          .dropped = a.dropped,
          .dropped_objects = c.dropped_objects,
          .invented = a.invented,
          .dequantized = a.dequantized,
          .quantized = a.quantized};
}

impl::RunOptions to_engine(const RunOptions& options) {
  return {.threads = options.threads,
          .memory_bytes = options.max_memory,
          .durable = options.sync,
          .overwrite = options.overwrite,
          .resume = options.resume,
          .allow_overflow = options.allow_overflow};
}

RunReport to_public(const impl::Conversion& c, const impl::RunResult& result) {
  RunReport report{.output = c.path,
                   .bytes = c.bytes,
                   .bytes_read = result.counts.bytes_read,
                   .bytes_written = result.counts.bytes_written,
                   .rounded_norms = result.counts.rounded,
                   .became_infinite = result.became_infinite,
                   .became_zero = result.became_zero,
                   .notes = impl::to_public(result.notes)};
  for (const impl::LostValues::Tensor& t : result.overflowed) report.overflowed.push_back(t.name);
  return report;
}

}  // namespace

Conversion::Conversion(std::unique_ptr<State> state) : state_(std::move(state)) {}
Conversion::Conversion(Conversion&&) noexcept = default;
Conversion& Conversion::operator=(Conversion&&) noexcept = default;
Conversion::~Conversion() = default;

const std::string& Conversion::path() const { return state_->conversion.path; }
std::int64_t Conversion::bytes() const { return state_->conversion.bytes; }
std::vector<std::string> Conversion::sources() const { return state_->conversion.sources; }
const Account& Conversion::account() const { return state_->account; }

std::vector<OutputFile> Conversion::outputs() const {
  std::vector<OutputFile> out;
  for (const impl::OutputFile& f : state_->conversion.files) out.push_back({f.name, f.bytes});
  return out;
}

std::optional<ChosenGrid> Conversion::grid() const {
  const std::optional<impl::Grid>& g = state_->conversion.grid;
  if (!g) return {};
  return ChosenGrid{.tp = g->tp,
                    .cp = g->cp,
                    .ep = g->ep,
                    .etp = g->etp,
                    .pp = g->pp,
                    .dp = g->dp,
                    .hsdp = g->hsdp,
                    .ranks = g->world()};
}

std::vector<Note> Conversion::notes() const {
  impl::Notes all = state_->conversion.notes;
  if (!state_->conversion.format.empty())
    all.note(impl::cat("writes  ", impl::result_text(state_->conversion)));
  all.append(state_->conversion.details);
  all.append(state_->conversion.outcome);
  return impl::to_public(all);
}

std::vector<Finding> Conversion::findings() const {
  std::vector<Finding> out;
  for (const impl::Oddities& o : state_->conversion.oddities)
    for (const impl::Finding& f : o.findings) out.push_back(impl::to_public(f));
  return out;
}

const Account& Conversion::prove(int threads, Observer* observer) {
  return impl::guarded([&]() -> const Account& {
    impl::check_threads(threads);
    if (state_->proved) return state_->account;
    impl::ObserverBridge bridge(observer);
    bridge.begin("prove", 0);
    impl::prove(state_->conversion, threads, false, [&] { return bridge.stop(); });
    bridge.end();
    state_->proved = true;
    return state_->account = to_public(state_->conversion);
  });
}

void Conversion::check(const RunOptions& options) const {
  impl::guarded([&] { impl::check_result(state_->conversion, to_engine(options)); });
}

RunReport Conversion::run(const RunOptions& options, Observer* observer) {
  return impl::guarded([&] {
    if (state_->ran)
      throw impl::Error(impl::Code::kUsage, "a conversion can be run only once: plan it again");
    if (options.resume && options.overwrite)
      throw impl::Error(impl::Code::kUsage,
                        "`resume` continues an unfinished result and refuses any other, `overwrite` replaces "
                        "what is there: "
                        "set only one of them");
    if (options.resume && state_->conversion.single_file)
      throw impl::Error(impl::Code::kUsage, "a result that is one file is not resumed")
          .file(state_->conversion.path)
          .help("leave `resume` out: the file is made anew");
    const impl::ResultCards cards{options.card, options.command, options.threads, options.sync};
    impl::check_result_cards(cards);
    prove(options.threads, observer);
    check(options);
    state_->ran = true;
    std::unique_ptr<impl::Comm> alone = impl::local_comm();
    impl::ObserverBridge bridge(observer);
    try {
      impl::RunResult done = impl::run(state_->conversion, to_engine(options), *alone, bridge);
      impl::write_result_cards(state_->conversion, cards, bridge);
      return to_public(state_->conversion, done);
    } catch (impl::Error& e) {
      if (e.code() == impl::Code::kInterrupted && e.help().empty())
        e.help(state_->conversion.single_file ? "plan the same conversion again and run it: it starts anew"
                                              : "plan the same conversion again and run it: it continues");
      throw;
    }
  });
}

Conversion plan(const ToFsdp& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::check_iteration(what.iteration);
    impl::Grid grid = impl::grid_of(what.grid);
    SourceOptions opening{.assets = what.assets,
                          .source_tp = what.source_tp,
                          .source_etp = what.source_etp,
                          .accept = what.accept,
                          .model = what.model};
    impl::ReshardSourceOptions from{.checkpoint = impl::checkpoint_options(opening, {what.source}),
                                    .weights_only = what.weights_only,
                                    .rank_states = what.rank_states,
                                    .source_ep = what.source_ep,
                                    .source_hsdp = what.source_hsdp};
    from.checkpoint.any_model = what.any_model;
    // Words that may be wrong are read before the options are put together: where one throws inside of nested
    // braces, gcc 13 destroys members twice.
    const auto fsdp = impl::setup_of(what.fsdp, grid);
    const impl::FrozenNames frozen(what.fsdp.freeze);
    const auto spelling = impl::spelling_of(what.spelling);
    const auto values = impl::value_options(what.values);
    const impl::UnitModules modules(what.fsdp_module);
    return ConversionAccess::make(impl::plan_to_fsdp({.model = {.source = what.source,
                                                                .target = what.target,
                                                                .model_dict = what.model_dict,
                                                                .grid = grid,
                                                                .fsdp = fsdp,
                                                                .frozen = frozen,
                                                                .spelling = spelling,
                                                                .values = values,
                                                                .hybrid_pattern = what.hybrid_pattern,
                                                                .iteration = what.iteration,
                                                                .threads = threads},
                                                      .from = from,
                                                      .modules = modules}));
  });
}

Conversion plan(const ToMcore& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::check_iteration(what.iteration);
    return ConversionAccess::make(
        impl::plan_to_mcore({.source = what.source,
                             .target = what.target,
                             .checkpoint = impl::checkpoint_options(what.opening, {what.source}),
                             .model_dict = what.model_dict,
                             .weights_only = what.weights_only,
                             .grid = impl::grid_of(what.grid),
                             .pipeline = {what.vpp, what.first_stage_layers, what.last_stage_layers},
                             .layers = impl::layer_stacks(what.layers),
                             .spelling = impl::spelling_of(what.spelling),
                             .values = impl::value_options(what.values),
                             .iteration = what.iteration,
                             .threads = threads}));
  });
}

Conversion plan(const ToHf& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::ExportTypes types{.rules = impl::dtype_rules(what.dtype_rule)};
    if (what.dtype == "keep")
      types.kind = impl::ExportTypes::kStored;
    else if (what.dtype != "auto")
      types.kind = impl::ExportTypes::kGiven,
      types.given = impl::value_type(what.dtype, "dtype", "auto, keep, ");
    bool original = what.max_shard_size == ToHf{}.max_shard_size;
    const impl::ExportOptions how{.source = what.source,
                                  .target = what.target,
                                  .checkpoint = impl::checkpoint_options(what.opening, {what.source}),
                                  .model_dict = what.model_dict,
                                  .types = types,
                                  .max_shard_bytes = what.max_shard_size,
                                  .original_files = original,
                                  .threads = threads};
    return ConversionAccess::make(
        what.quantize.empty() ? impl::plan_export(how)
                              : impl::plan_quantized_export(
                                    how, impl::quantize_scheme(what.quantize, "the value of quantize")));
  });
}

Conversion plan(const Reshard& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::check_iteration(what.iteration);
    impl::Grid grid = impl::grid_of(what.grid);
    impl::ReshardSourceOptions from{impl::checkpoint_options(what.opening, {what.source}),
                                    what.weights_only,
                                    what.keep_names,
                                    what.rank_states,
                                    what.source_ep,
                                    what.source_hsdp};
    from.checkpoint.any_model = what.any_model;
    return ConversionAccess::make(impl::plan_reshard({.source = what.source,
                                                      .target = what.target,
                                                      .from = from,
                                                      .grid = grid,
                                                      .fsdp = impl::setup_of(what.fsdp, grid),
                                                      .frozen = impl::FrozenNames(what.fsdp.freeze),
                                                      .modules = impl::UnitModules(what.fsdp_module),
                                                      .pipeline = {what.vpp, what.first_stage_layers,
                                                                   what.last_stage_layers},
                                                      .vocab = impl::vocab_choice(what.vocab_size),
                                                      .iteration = what.iteration,
                                                      .threads = threads}));
  });
}

Conversion plan(const ToRanks& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::check_iteration(what.iteration);
    return ConversionAccess::make(
        impl::plan_to_ranks({.source = what.source,
                             .target = what.target,
                             .checkpoint = impl::checkpoint_options(what.opening, {what.source}),
                             .model_dict = what.model_dict,
                             .grid = impl::grid_of(what.grid),
                             .pipeline = {what.vpp, what.first_stage_layers, what.last_stage_layers},
                             .spelling = impl::spelling_of(what.spelling),
                             .values = impl::value_options(what.values),
                             .iteration = what.iteration,
                             .threads = threads}));
  });
}

Conversion plan(const Relayer& what) {
  return impl::guarded(
      [&] { return ConversionAccess::make(impl::plan_relayer(impl::relayer_options(what))); });
}

}  // namespace mckpt
