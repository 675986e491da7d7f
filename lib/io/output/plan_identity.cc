// In the digest each part ends in a zero byte, so that {"ab", "c"} and {"a", "bc"} have different digests.
// The first part is the version of the program: an unfinished result is continued by the version that began
// it.
#include "io/output/plan_identity.h"

#include <array>
#include <map>

namespace mckpt::impl {
namespace {

constexpr std::size_t kLongestValue = 120, kShownDigits = 16;
constexpr std::string_view kVersionName = "version";

std::string digest_of(std::string_view part) {
  Sha256 sha;
  sha.update({reinterpret_cast<const u8*>(part.data()), part.size()});
  return sha.hex_digest();
}

using Lines = std::map<std::string, std::string>;

// The lines of a text behind the first: name to "=value" or ":digest". `times`: those with a "~", and no
// others.
Lines lines_of(std::string_view text, bool times = false) {
  Lines out;
  for (std::size_t at = std::min(text.find('\n'), text.size() - 1) + 1; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (std::size_t sign = line.find_first_of("=:~"); sign != line.npos && times == (line[sign] == '~'))
      out.emplace(line.substr(0, sign), line.substr(sign));
    at = end + 1;
  }
  return out;
}

std::string value_of(const Lines& lines, const std::string& name) {
  auto at = lines.find(name);
  if (at == lines.end() || at->second.size() == 1) return "not given";
  return at->second[0] == '=' ? escaped(at->second.substr(1), kLongestValue) : "another";
}

std::string difference(const std::string& name, const Lines& begun, const Lines& now) {
  bool digest = now.contains(name) && now.at(name)[0] == ':' && begun.contains(name);
  if (digest) return cat(name, ": not those of the first run");
  std::string shown = name == kVersionName ? "the version of mckpt" : cat("`", name, "`");
  return cat(shown, ": ", value_of(begun, name), " in the first run, ", value_of(now, name), " in this one");
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_last_of(' ', text.find('\n')));
}

}  // namespace

PlanIdentity::PlanIdentity(std::string_view mode, std::string_view version) : mode_(mode) {
  set(kVersionName, version);
}

PlanIdentity& PlanIdentity::setting(std::string_view name, const std::string& value) {
  if (value.size() > kLongestValue || value.find('\n') != value.npos) return add(name, value);
  digest(name, value);
  lines_ += cat(name, "=", value, "\n");
  return *this;
}

PlanIdentity& PlanIdentity::add(std::string_view what, std::string_view part) {
  return add_digest(what, ':', part);
}

PlanIdentity& PlanIdentity::add_times(std::string_view what, std::string_view times) {
  return add_digest(what, '~', times);
}

PlanIdentity& PlanIdentity::add_digest(std::string_view what, char sign, std::string_view part) {
  // The table of a large result is long: it is read once, and its digest takes its place in the digest of the
  // whole.
  std::string sum = digest_of(part);
  digest(what, sum);
  lines_ += cat(what, sign, std::string_view(sum).substr(0, kShownDigits), "\n");
  return *this;
}

void PlanIdentity::digest(std::string_view name, std::string_view part) {
  for (std::string_view text : {name, part}) {
    sha_.update({reinterpret_cast<const u8*>(text.data()), text.size()});
    sha_.update(std::array<u8, 1>{0});
  }
}

std::vector<std::string> plan_differences(std::string_view begun, std::string_view now) {
  if (std::string_view was = first_word(begun), is = first_word(now); was != is)
    return {cat("what is made: ", escaped(was), " in the first run, ", is, " in this one")};
  Lines before = lines_of(begun), after = lines_of(now);
  std::map<std::string, bool> names;
  for (const auto* lines : {&before, &after})
    for (const auto& [name, value] : *lines) names[name];
  std::vector<std::string> settings, parts;
  for (const auto& [name, ignored] : names) {
    if (before.contains(name) && after.contains(name) && before[name] == after[name]) continue;
    bool digest = after.contains(name) && after[name][0] == ':';
    (digest ? parts : settings).push_back(difference(name, before, after));
  }
  if (!settings.empty()) return settings;
  if (!parts.empty()) return parts;
  before = lines_of(begun, true), after = lines_of(now, true);
  for (const auto& [name, value] : after)
    if (before.contains(name) && before[name] != value)
      parts.push_back(
          cat(name,
              ": not those of the first run by the time of their last change (ctime) alone; names, sizes and "
              "the times of the last write (mtime) are the same"));
  return parts;
}

bool only_times_differ(std::string_view begun, std::string_view now) {
  return first_word(begun) == first_word(now) && lines_of(begun) == lines_of(now) &&
         lines_of(begun, true) != lines_of(now, true);
}

}  // namespace mckpt::impl
