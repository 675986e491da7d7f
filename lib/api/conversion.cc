// A Conversion of the interface is one of the engine, and whether it was proved. A struct is planned in
// convert/asked.
#include "mckpt/conversion.h"

#include "api/boundary.h"
#include "api/conversion_access.h"
#include "api/public_notes.h"
#include "convert/asked/plan.h"
#include "convert/asked/results.h"
#include "convert/plan/account_text.h"
#include "convert/plan/conversion.h"
#include "convert/run/result_card.h"
#include "convert/run/run.h"
#include "io/file/parallel.h"
#include "io/output/output_files.h"
#include "io/safetensors/layout.h"
#include "io/store/soundness.h"
#include "runtime/comm/comm.h"

namespace mckpt {
static_assert(kUsualShardSize == impl::kUsualShardBytes);

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
    return state_->account = impl::account_of(state_->conversion);
  });
}

void Conversion::check(const RunOptions& options) const {
  impl::guarded([&] { impl::check_result(state_->conversion, impl::run_options(options)); });
}

RunReport Conversion::run(const RunOptions& options, Observer* observer) {
  return impl::guarded([&] {
    if (state_->ran)
      throw impl::Error(impl::Code::kUsage, "a conversion can be run only once: plan it again");
    if (options.resume && options.overwrite)
      throw impl::Error(
          impl::Code::kUsage,
          "`resume` continues an unfinished result and refuses any other, `overwrite` replaces what is there: set only one of them");
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
      impl::RunResult done = impl::run(state_->conversion, impl::run_options(options), *alone, bridge);
      impl::write_result_cards(state_->conversion, cards, bridge);
      RunReport report = impl::run_report_of(state_->conversion, done);
      report.notes = impl::to_public(done.notes);
      return report;
    } catch (impl::Error& e) {
      if (e.code() == impl::Code::kInterrupted && e.help().empty())
        e.help(state_->conversion.single_file ? "plan the same conversion again and run it: it starts anew"
                                              : "plan the same conversion again and run it: it continues");
      throw;
    }
  });
}

Conversion ConversionAccess::plan(const impl::AnyConversion& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    impl::Planning how;
    how.threads = threads;
    return make(impl::plan_asked(what, how));
  });
}

Conversion plan(const ToFsdp& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToMcore& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToHf& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const Reshard& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToRanks& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const Relayer& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToSafetensors& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToDcp& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const Dequantize& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const Quantize& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToHdf5& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const FromHdf5& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const PtToSafetensors& what, int threads) { return ConversionAccess::plan(what, threads); }
Conversion plan(const ToPt& what, int threads) { return ConversionAccess::plan(what, threads); }

}  // namespace mckpt
