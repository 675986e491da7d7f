// Takes the lines of a list apart. Lines that are none are passed over, as sha256sum does.
#include "io/listing/sum_list.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/findings.h"

namespace mckpt::impl {
namespace {

std::string as_sha256(std::string_view text) { return text.size() == kSha256Digits ? as_sum(text) : ""; }

// The name of a line that begins with a backslash: sha256sum escapes line ends and backslashes so.
std::string unescaped(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); i++) {
    if (name[i] != '\\' || i + 1 == name.size()) {
      out += name[i];
      continue;
    }
    const char c = name[++i];
    out += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

// "9c1f...  name" and "9c1f... *name" of sha256sum, "SHA256 (name) = 9c1f..." of BSD. False for other lines.
bool parse_line(std::string_view line, KeptSum& sum) {
  const bool odd_name = line.starts_with('\\');
  if (odd_name) line.remove_prefix(1);
  constexpr std::string_view kBsd = "SHA256 (", kEnd = ") = ";
  if (line.starts_with(kBsd)) {
    const std::size_t end = line.rfind(kEnd);
    if (end == line.npos) return false;
    sum.file = line.substr(kBsd.size(), end - kBsd.size());
    sum.hex = as_sha256(line.substr(end + kEnd.size()));
  } else {
    if (line.size() < kSha256Digits + 3 || line[kSha256Digits] != ' ') return false;
    const char mark = line[kSha256Digits + 1];
    if (mark != ' ' && mark != '*') return false;
    sum.file = line.substr(kSha256Digits + 2);
    sum.hex = as_sha256(line.substr(0, kSha256Digits));
  }
  if (odd_name) sum.file = unescaped(sum.file);
  if (sum.file.starts_with("./")) sum.file.erase(0, 2);
  return !sum.hex.empty() && !sum.file.empty();
}

}  // namespace

std::string as_sum(std::string_view text) {
  if (text.size() != kSha256Digits && text.size() != kSha1Digits) return "";
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return "";
  }
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_list_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"SHA256SUMS",     "SHA256SUMS.txt", "sha256sums",
                                                      "sha256sums.txt", "sha256sum.txt",  "checksums.sha256"};
  return std::ranges::find(kNames, name) != kNames.end() || name.ends_with(".sha256") ||
         name.ends_with(".sha256sum");
}

bool is_sum_list(std::string_view text) {
  KeptSum sum;
  if (text.starts_with('{')) return false;  // a card in JSON has no such lines
  return std::ranges::any_of(lines_of(text), [&](std::string_view line) { return parse_line(line, sum); });
}

void add_lines(std::string_view text, const std::string& name, std::vector<KeptSum>& sums,
               Findings& findings) {
  for (std::string_view line : lines_of(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    KeptSum sum;
    sum.from = name;
    if (!parse_line(line, sum)) {
      const std::string own = name.substr(name.rfind('/') + 1);
      sum.hex = as_sha256(line), sum.file = own.substr(0, own.rfind('.'));
      if (sum.hex.empty()) continue;  // as sha256sum does: a page of text may have the lines among others
    }
    try {
      check_inside_name(sum.file);
      sums.push_back(std::move(sum));
    } catch (const Error& e) {
      // A list may be of more than this folder: what is elsewhere is not looked at.
      Finding finding = to_finding(e);
      finding.file = name, finding.warning = true;
      findings.add(std::move(finding));
    }
  }
}

}  // namespace mckpt::impl
