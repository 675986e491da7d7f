// Both functions are the engine's verify(), whose answer is copied into a Report.
#include "mckpt/verify.h"

#include "api/boundary.h"
#include "api/public_report.h"
#include "api/public_notes.h"
#include "convert/asked/words.h"
#include "convert/compare/verify.h"
#include "io/file/parallel.h"

namespace mckpt {
namespace {

Report to_public(const impl::Verified& verified) {
  const impl::VerifyReport& from = verified.report;
  // Who compared digests alone knows nothing about soundness.
  Report report{
      .sound = from.sound() && !verified.as_card, .equal = verified.equal, .as_card = verified.as_card};
  if (verified.equal) report.differing_tensors = from.differing(), report.rounded = from.rounded();
  for (const impl::Finding& f : from.findings) report.findings.push_back(impl::to_public(f));
  for (const impl::Difference& d : from.differences)
    report.differences.push_back({d.tensor, d.file, d.at, d.expected, d.found, d.items, d.largest()});
  impl::add_public(from, verified.oddities, report, report.oddities);
  return report;
}

}  // namespace

Report verify(const std::string& path, const VerifyOptions& options, Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    impl::ObserverBridge bridge(observer);
    impl::VerifyOptions how{.threads = options.threads,
                            .reports = options.cards.report,
                            .card = options.card,
                            .command = options.cards.command};
    how.compare.opening.assets = options.assets;
    how.compare.model_dict = impl::model_dict_of(options.model_dict);
    how.compare.opening.model.files = impl::opening_of(options.files, {{path}});
    return to_public(impl::verify(path, how, bridge));
  });
}

Report compare(const std::string& tested, const std::string& source, const CompareOptions& options,
               Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    impl::ObserverBridge bridge(observer);
    impl::CompareOptions how;
    how.opening = impl::checkpoint_options(options.opening, {{tested, source}});
    how.path_tp = options.path_tp, how.path_etp = options.path_etp;
    how.params_dtype = impl::params_dtype_of(options.params_dtype);
    how.types = impl::type_claim(options.dtype, options.dtype_rule);
    how.model_dict = impl::model_dict_of(options.model_dict);
    how.weights_only = options.weights_only;
    return to_public(impl::verify(tested,
                                  {.threads = options.threads,
                                   .against = source,
                                   .compare = how,
                                   .reports = options.cards.report,
                                   .command = options.cards.command},
                                  bridge));
  });
}

}  // namespace mckpt
