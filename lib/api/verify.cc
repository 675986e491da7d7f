// verify() and compare() both call the engine's verify() and copy its answer into a Report.
#include "mckpt/verify.h"

#include "api/boundary.h"
#include "api/public_notes.h"
#include "api/public_report.h"
#include "convert/asked/compare.h"
#include "convert/compare/verify.h"
#include "io/file/parallel.h"

namespace mckpt {
namespace {

Report to_public(const impl::Verified& verified) {
  const impl::VerifyReport& from = verified.report;
  // A check by a card compares digests alone and says nothing about soundness.
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
    const impl::VerifyOptions how = impl::verify_options(options, {{path}});
    return to_public(impl::verify(path, how, bridge));
  });
}

Report compare(const std::string& tested, const std::string& source, const CompareOptions& options,
               Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    impl::ObserverBridge bridge(observer);
    const impl::CompareOptions how = impl::compare_options(options, {{tested, source}});
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
