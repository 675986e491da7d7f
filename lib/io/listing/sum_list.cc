// Takes the lines of a list apart. Lines without a sum are passed over, as sha256sum does.
#include "io/listing/sum_list.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
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

bool is_blank(char c) { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
}

// The word before a name in brackets; "": the line has none.
std::string_view label_of(std::string_view line) {
  for (std::string_view label : {"SHA256", "SHA2-256"})
    if (line.starts_with(label)) return line.substr(0, label.size());
  return "";
}

// "9c1f...  name" and "9c1f... *name" of sha256sum, "9c1f... name" of BSD's -r, "SHA256 (name) = 9c1f..." of BSD,
// "SHA256(name)= 9c1f..." of openssl and "SHA2-256(name)= 9c1f..." of openssl 3, with blanks before it. False
// for other lines.
bool parse_line(std::string_view line, KeptSum& sum) {
  skip_blanks(line);
  const bool odd_name = line.starts_with('\\');
  if (odd_name) line.remove_prefix(1);
  if (const std::string_view label = label_of(line); !label.empty()) {
    line.remove_prefix(label.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    const std::size_t end = line.rfind(')');
    if (!line.starts_with('(') || end == line.npos) return false;
    sum.file = line.substr(1, end - 1);
    line.remove_prefix(end + 1);
    skip_blanks(line);
    if (!line.starts_with('=')) return false;
    line.remove_prefix(1);
    skip_blanks(line);
    sum.hex = as_sha256(line);
  } else {
    if (line.size() < kSha256Digits + 2 || !is_blank(line[kSha256Digits])) return false;
    sum.hex = as_sha256(line.substr(0, kSha256Digits));
    line.remove_prefix(kSha256Digits + 1);
    if (line.size() > 1 && (line.front() == ' ' || line.front() == '*')) line.remove_prefix(1);
    sum.file = line;
  }
  if (odd_name) sum.file = unescaped(sum.file);
  if (sum.file.starts_with("./")) sum.file.erase(0, 2);
  return !sum.hex.empty() && !sum.file.empty();
}

// A line that has a sum of another kind, or that was cut off or changed. The digits of an MD5 are the fewest.
// A card in Markdown has sums of tensors in rows of a table, and findings with sums in items of a list: both
// are left alone.
bool seems_a_sum(std::string_view line) {
  constexpr std::size_t kFewest = 32;
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  skip_blanks(line);
  if (line.starts_with('|') || line.starts_with("- ")) return false;
  if (const std::string_view label = label_of(line); !label.empty()) {
    const std::string_view rest = line.substr(label.size());
    if (rest.starts_with('(') || rest.starts_with(" (")) return true;
  }
  while (!line.empty()) {
    const std::size_t digits = std::min(line.find_first_not_of(kDigits), line.size());
    if (digits >= kFewest) return true;
    line.remove_prefix(digits);
    line.remove_prefix(std::min(line.find_first_of(kDigits), line.size()));
  }
  return false;
}

// The names that say nothing of a file.
constexpr std::array<std::string_view, 6> kListNames = {
    "SHA256SUMS", "SHA256SUMS.txt", "sha256sums", "sha256sums.txt", "sha256sum.txt", "checksums.sha256"};

bool is_comment(std::string_view line) { return line.empty() || line.starts_with('#'); }

// The file that a sum without a name is of, by the name of its list: model.bin of "model.bin.sha256". ""
// where the list has other lines too, so that the name was lost, or where its name is of no file.
std::string only_file(std::span<const std::string_view> lines, std::string_view name) {
  const std::string_view own = name.substr(name.rfind('/') + 1);
  if (std::ranges::find(kListNames, own) != kListNames.end()) return "";
  if (lines.size() - static_cast<std::size_t>(std::ranges::count_if(lines, is_comment)) != 1) return "";
  const std::size_t dot = own.rfind('.');
  return dot == own.npos ? "" : std::string(own.substr(0, dot));
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
  if (constexpr std::string_view kMark = "\xef\xbb\xbf"; text.starts_with(kMark))
    text.remove_prefix(kMark.size());
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
  return std::ranges::find(kListNames, name) != kListNames.end() || name.ends_with(".sha256") ||
         name.ends_with(".sha256sum");
}

bool is_sum_list(std::string_view text) {
  KeptSum sum;
  if (text.starts_with('{')) return false;  // a card in JSON has no such lines
  return std::ranges::any_of(lines_of(text), [&](std::string_view line) { return parse_line(line, sum); });
}

void add_lines(std::string_view text, const std::string& name, std::vector<KeptSum>& sums,
               Findings& findings) {
  const auto warn = [&](std::string message) {
    findings.add({.code = Code::kBadCard, .file = name, .message = std::move(message), .warning = true});
  };
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return warn("the list is UTF-16, which sha256sum does not read, so nothing was compared with it");
  const std::vector<std::string_view> lines = lines_of(text);
  const std::string only = only_file(lines, name);
  for (std::string_view line : lines) {
    if (is_comment(line)) continue;
    KeptSum sum;
    sum.from = name;
    if (!parse_line(line, sum)) {
      sum.hex = as_sha256(line), sum.file = only;
      if (sum.hex.empty() || sum.file.empty()) {
        // A page of text may have the lines among others.
        if (seems_a_sum(line))
          warn(cat("this line is not as sha256sum writes one, so nothing was compared with it: ",
                   escaped(line, 100)));
        continue;
      }
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
