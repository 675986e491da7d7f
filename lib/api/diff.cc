// A Diff is made of the engine's report of a comparison: its list of unlike tensors becomes rows, with the counts
// of its differences; findings that a row already says are left out.
#include "mckpt/diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "api/boundary.h"
#include "api/public_report.h"
#include "api/words.h"
#include "convert/compare/compare.h"
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "io/store/store.h"

namespace mckpt {
namespace {

using impl::UnlikeTensor;

// "bfloat16 [2, 3]" and "bfloat16 [2, 4]" differ in shape, and perhaps also in type.
std::string_view header_kind(const UnlikeTensor& u) {
  auto shape = [](std::string_view text) { return text.substr(std::min(text.find(' '), text.size())); };
  return shape(u.tested) == shape(u.source) ? "dtype" : "shape";
}

std::string_view kind_name(const UnlikeTensor& u) {
  switch (u.kind) {
    case UnlikeTensor::Kind::kOnlyTested:
      return "only_a";
    case UnlikeTensor::Kind::kOnlySource:
      return "only_b";
    case UnlikeTensor::Kind::kHeader:
      return header_kind(u);
    case UnlikeTensor::Kind::kCast:
      return "cast";
    case UnlikeTensor::Kind::kValues:
      return "values";
  }
  return "";
}

class Rows {
 public:
  explicit Rows(const impl::VerifyReport& report) : report_(report) {
    for (const impl::Difference& d : report.differences)
      if (d.items >= 0) counts_.emplace(d.tensor, &d);
  }

  // Every row, and the findings that are not said by a row.
  void make(Diff& out) {
    tensors(out.rows);
    for (const impl::Difference& d : report_.differences)
      if (d.items < 0) add_object(out.rows, d);
    for (std::size_t i = 0; i < report_.findings.size(); i++) {
      const impl::Finding& f = report_.findings[i];
      const std::string& check = report_.checks[report_.check_of[i]].name;
      if (!is_said(out.rows, f, check)) out.findings.push_back(impl::to_public(f));
    }
  }

 private:
  void tensors(std::vector<DiffRow>& rows) {
    std::vector<UnlikeTensor> unlike = report_.unlike;
    std::ranges::stable_sort(unlike, {}, &UnlikeTensor::kind);
    for (const UnlikeTensor& u : unlike) {
      DiffRow row{
          .kind = std::string(kind_name(u)), .name = u.tensor, .at = "", .a = u.tested, .b = u.source};
      if (auto count = counts_.find(u.tensor);
          u.kind == UnlikeTensor::Kind::kValues && count != counts_.end()) {
        const impl::Difference& d = *count->second;
        row.at = d.at, row.a = d.found, row.b = d.expected, row.items = d.items, row.largest = d.largest;
        row.file = d.file;
      }
      named_.insert(u.tensor);
      rows.push_back(std::move(row));
    }
  }

  void add_object(std::vector<DiffRow>& rows, const impl::Difference& d) {
    objects_.insert(d.tensor);
    rows.push_back({.kind = "object", .name = d.tensor, .at = d.at, .a = d.found, .b = d.expected});
    rows.back().file = d.file;
  }

  // Whether rows say what the finding says; a finding about a file or an object becomes a row if it can.
  bool is_said(std::vector<DiffRow>& rows, const impl::Finding& f, const std::string& check) {
    if (f.code != impl::Code::kUnequal) return false;
    if (check == "casts") return true;
    // "and 10 more of this kind": every tensor has a row.
    if (check == "against") return f.tensor.empty() || named_.contains(f.tensor);
    if (check == "assets" && !f.file.empty()) {
      rows.push_back({.kind = "file", .name = f.file, .at = impl::cat("byte ", f.offset)});
      return true;
    }
    if (check != "objects" || f.tensor.empty()) return false;
    if (!objects_.contains(f.tensor)) rows.push_back({.kind = "object", .name = f.tensor, .at = f.message});
    return true;
  }

  const impl::VerifyReport& report_;
  std::map<std::string, const impl::Difference*> counts_;  // of tensors
  std::set<std::string> named_, objects_;                  // tensors and objects that have rows
};

Diff to_public(const impl::Compared& compared) {
  const impl::VerifyReport& report = compared.report;
  Diff out{.compared = report.compared_as};
  Rows(report).make(out);
  out.equal = compared.equal && out.rows.empty();
  for (const impl::Check& c : report.checks)
    if (c.name == "against") out.tensors = c.count;
  impl::add_public(report, compared.oddities, out, out.findings);
  return out;
}

}  // namespace

Diff diff(const std::string& a, const std::string& b, const DiffOptions& options, Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    impl::ObserverBridge bridge(observer);
    impl::CompareOptions how{.opening = impl::checkpoint_options(options.opening),
                             .path_tp = options.path_tp,
                             .path_etp = options.path_etp,
                             .count_all = true,
                             .threads = options.threads};
    const impl::OpenOptions& files = how.opening.model.files;
    impl::Compared compared = impl::compare(impl::open_store(a, files), a, b, how, bridge);
    impl::check_unchanged(files);
    return to_public(compared);
  });
}

}  // namespace mckpt
