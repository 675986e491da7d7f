// Reports of the C interface: a Report with a line for each finding.
#include "mckpt/c_report.h"

#include "api/c_call.h"
#include "api/public_json.h"
#include "api/settings.h"
#include "core/base/text.h"

struct mckpt_report {
  mckpt::Report report;
  std::vector<std::string> lines;  // of the findings
};

namespace {

std::string line_of(const mckpt::Finding& f) {
  std::string line = mckpt::impl::cat(f.warning ? "warning[" : "problem[", f.code, "]: ");
  if (!f.file.empty()) line += f.file + ": ";
  if (!f.tensor.empty()) line += mckpt::impl::cat("tensor '", f.tensor, "': ");
  return line + f.message;
}

mckpt::Report report_of(const char* path, mckpt::impl::Settings& s, mckpt::Observer* observer) {
  std::optional<std::string> against;
  s.take("against", against);
  if (against) {
    mckpt::CompareOptions options;
    read(s, options);
    s.refuse_rest();
    return mckpt::compare(path, *against, options, observer);
  }
  mckpt::VerifyOptions options;
  read(s, options);
  s.refuse_rest();
  return mckpt::verify(path, options, observer);
}

}  // namespace

mckpt_report* mckpt_verify(const char* path, const char* const* settings, const mckpt_observer* observer,
                           mckpt_error** error) {
  return mckpt::impl::c_result(error, static_cast<mckpt_report*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    mckpt::impl::CObserver to(observer);
    mckpt::Report report = report_of(mckpt::impl::c_given(path, "path"), s, &to);
    std::vector<std::string> lines;
    for (const mckpt::Finding& f : report.findings) lines.push_back(line_of(f));
    return new mckpt_report{std::move(report), std::move(lines)};
  });
}

void mckpt_report_free(mckpt_report* r) { delete r; }

int mckpt_report_sound(const mckpt_report* r) { return r->report.sound; }
int mckpt_report_equal(const mckpt_report* r) { return r->report.equal ? *r->report.equal : -1; }
size_t mckpt_report_finding_count(const mckpt_report* r) { return r->lines.size(); }
const char* mckpt_report_finding(const mckpt_report* r, size_t number) { return r->lines[number].c_str(); }

char* mckpt_report_json(const mckpt_report* r, mckpt_error** error) {
  return mckpt::impl::c_written(error, [&](std::string& to) { mckpt::impl::write_json(to, r->report); });
}
