// A Diff of the interface is the engine's, in texts and numbers.
#include "mckpt/diff.h"

#include "api/boundary.h"
#include "api/public_notes.h"
#include "api/public_report.h"
#include "convert/asked/compare.h"
#include "convert/asked/words.h"
#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/tolerance_text.h"
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "page/html/pages.h"
#include "page/picture_file.h"

namespace mckpt {
namespace {

DiffRow to_public(const impl::DiffRow& r) {
  DiffRow out{.kind = std::string(impl::kind_name(r.kind)),
              .name = r.name,
              .at = r.at,
              .a = r.a,
              .b = r.b,
              .items = r.items,
              .beyond = r.beyond};
  if (r.distance) {
    out.largest = r.distance->largest, out.relative_l2 = r.relative_l2();
    out.cosine = r.cosine(), out.most_ulps = r.distance->most_ulps;
    out.not_finite = r.not_finite();
  }
  out.hint = r.hint, out.file = r.file;
  return out;
}

Diff to_public(const impl::Diff& d) {
  Diff out{.equal = d.equal, .alike = d.alike, .compared = d.report.compared_as, .tensors = d.tensors()};
  for (const impl::DiffRow& row : d.rows) out.rows.push_back(to_public(row));
  for (const impl::Finding& f : d.findings) out.findings.push_back(impl::to_public(f));
  impl::add_public(d.report, d.oddities, out, out.findings);
  return out;
}

}  // namespace

Diff diff(const std::string& a, const std::string& b, const DiffOptions& options, Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    if (!options.html.empty()) impl::check_page_path(options.html);
    impl::ObserverBridge bridge(observer);
    impl::DiffOptions how = impl::diff_options(options, {{a, b}});
    how.comparing.choice = impl::choice_of(options.names, options.regex);
    for (const std::string& rule : options.within) impl::add_tolerance(how.within, rule);
    impl::Diff found = impl::diff(a, b, how, bridge);
    impl::check_unchanged(how.comparing.opening.model.files);
    if (!options.html.empty()) impl::write_picture(options.html, impl::diff_page(found, a, b));
    return to_public(found);
  });
}

}  // namespace mckpt
