// A report's own functions: its lines, what it answers, and the report of a checkpoint that could not be
// opened.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

std::string_view status_name(Check::Status status) {
  static constexpr std::string_view kNames[] = {"none", "pass", "warn", "fail"};
  return kNames[static_cast<std::size_t>(status)];
}

Check::Status status_of(std::span<const Finding> findings) {
  Check::Status status = Check::Status::kPass;
  for (const Finding& f : findings)
    status = std::max(status, f.warning ? Check::Status::kWarn : Check::Status::kFail);
  return status;
}

void VerifyReport::add(Check check, std::vector<Finding> of_check) {
  checks.push_back(std::move(check));
  for (Finding& f : of_check) {
    findings.push_back(std::move(f));
    check_of.push_back(checks.size() - 1);
  }
}

i64 VerifyReport::differing() const {
  return std::ranges::count_if(unlike, [](const UnlikeTensor& u) {
    return u.kind == UnlikeTensor::Kind::kValues || u.kind == UnlikeTensor::Kind::kHeader;
  });
}

i64 VerifyReport::rounded() const { return std::ranges::count(unlike, true, &UnlikeTensor::rounds); }

bool VerifyReport::sound() const {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& f) { return f.warning; });
}

std::string looked_at(const Check& check) {
  std::string_view unit = check.unit;
  if (check.unseen > 0 && check.unseen_is == "missing")
    return cat(with_commas(check.count), " of ", with_commas(check.count + check.unseen), " ", unit);
  if (check.count == 1) unit.remove_suffix(1);
  std::string out = cat(with_commas(check.count), " ", unit);
  if (check.unseen > 0) out += cat(", ", with_commas(check.unseen), " ", check.unseen_is);
  return out;
}

std::string NotRead::why() const { return left_out && reason.empty() ? "not compared" : reason; }

std::string counted_unread(std::span<const NotRead> unread) {
  const i64 folders = std::ranges::count(unread, true, &NotRead::folder),
            files = std::ssize(unread) - folders;
  if (unread.empty()) return "";
  std::string out = files == 0 ? "" : counted(files, "file");
  if (folders > 0) out += cat(files == 0 ? "" : " and ", counted(folders, "folder"));
  return cat(out, unread.size() == 1 ? " was" : " were");
}

VerifyReport unreadable_report(const Error& error) {
  VerifyReport report;
  report.checks = {{"format", Check::Status::kFail, 1, "files"}};
  report.findings = {to_finding(error)};
  report.check_of = {0};
  return report;
}

}  // namespace mckpt::impl
