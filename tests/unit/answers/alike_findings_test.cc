// Which findings of a check become one line, and the line.
#include "tools/answers/alike_findings.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace alike_findings_test {

Finding nan_in(const std::string& tensor, const std::string& file = "a") {
  return {.code = Code::kNonFinite, .tensor = tensor, .file = file, .message = "has NaN"};
}

std::string lines_of(const std::vector<Finding>& findings, std::vector<std::size_t> checks, std::size_t check,
                     bool apart = false) {
  VerifyReport report;
  report.findings = findings, report.check_of = std::move(checks);
  std::string out;
  for (const Alike& one : alike(report, check, apart)) {
    for (const std::string& t : one.tensors) out += cat(t, " ");
    out += "| ";
  }
  return out;
}

TEST(AlikeFindings, DifferInTheTensorAlone) {
  const std::vector<Finding> found = {nan_in("x"), nan_in("y", "b"), nan_in("z")};
  EXPECT_EQ(lines_of(found, {1, 1, 1}, 1), "x z | y | ");
  EXPECT_EQ(lines_of(found, {1, 1, 2}, 1), "x | y | ");  // z is a finding of another check
  EXPECT_EQ(lines_of(found, {1, 1, 1}, 1, true), "x | y | z | ");
}

TEST(AlikeFindings, WithAPlaceAreAlone) {
  Finding placed = nan_in("x"), ranked = nan_in("y"), nameless = nan_in("");
  placed.offset = 0, ranked.rank = 0;
  EXPECT_EQ(lines_of({nan_in("v"), placed, ranked, nameless, nan_in("w")}, {0, 0, 0, 0, 0}, 0),
            "v w | x | y |  | ");
}

TEST(AlikeFindings, AreOneLine) {
  const Finding f = nan_in("x");
  EXPECT_NE(line_of({f, {"x"}}, false).find("'x'"), std::string::npos) << line_of({f, {"x"}}, false);
  const std::string three = line_of({f, {"x", "y", "z"}}, false);
  EXPECT_NE(three.find("3 tensors, x, y and 1 more: has NaN"), std::string::npos) << three;
  const std::string object = line_of({f, {"rng"}}, true);
  EXPECT_NE(object.find("object 'rng': has NaN"), std::string::npos) << object;
}

}  // namespace alike_findings_test
}  // namespace mckpt::impl
