// A transform is looked for anywhere in a name; of its alternatives the one that begins first counts.
#include "convert/own/disk_matchers.h"

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// The table has these names.
using Alternative = DiskAlternative;
using Transform = DiskTransform;
using ClassRules = DiskClass;
#include "convert/own/disk_table.inc"

// A longer name is none of a model, and would be deep in the machine of expressions.
constexpr std::size_t kLongestName = 1000;

// Where the target comes. As in transformers it is the first place that has the text that was found, from the
// scope's begin on, which may be before the match.
std::size_t found_at(const std::string& name, const DiskMatch& match) {
  return match.text.empty() ? match.at : name.find(match.text, match.at);
}

// The name by a transform of names.
std::string renamed(const std::string& name, DiskMatch match, const DiskTransform& transform) {
  std::size_t target = 0;
  if (transform.kind == DiskTransform::kEach) target = static_cast<std::size_t>(match.source);
  if (transform.kind == DiskTransform::kNumber && match.group.size() < 10)
    match.group = cat(std::stoll(match.group) + transform.offset);
  return replaced(name, match, std::string(transform.targets[target]));
}

}  // namespace

const std::string_view kDiskRelease = kTableRelease;

const DiskClass* disk_class(std::string_view model_type, std::string_view architecture) {
  const DiskClass* any = nullptr;
  for (const DiskClass& c : kClasses) {
    if (c.model_type != model_type) continue;
    if (c.name == architecture) return &c;
    const bool with_head = c.name.find("For") != c.name.npos;
    if (!any || (with_head && any->name.find("For") == any->name.npos)) any = &c;
  }
  return any;
}

DiskMatcher::DiskMatcher(const DiskTransform& of) : transform(of) {
  for (const DiskAlternative& a : of.sources)
    sources_.emplace_back(a.source, std::regex(std::string(a.pattern), std::regex::ECMAScript));
}

std::optional<DiskMatch> DiskMatcher::find(const std::string& name) const {
  if (name.size() > kLongestName) return std::nullopt;
  std::size_t at = 0;
  if (transform.scoped) {
    const std::string whole = cat(transform.base, transform.scope);
    if (name.starts_with(whole))
      at = whole.size();
    else if (name.starts_with(transform.scope))
      at = transform.scope.size();
    else
      return std::nullopt;
  }
  const std::string part = name.substr(at);
  std::optional<DiskMatch> best;
  std::ptrdiff_t first = 0;
  for (const auto& [source, pattern] : sources_)
    if (std::smatch m; std::regex_search(part, m, pattern) && (!best || m.position(0) < first)) {
      first = m.position(0);
      best = DiskMatch{source, at, m.str(0), m.size() > 1 ? m.str(1) : ""};
    }
  return best;
}

std::string replaced(const std::string& name, const DiskMatch& match, std::string target) {
  if (std::size_t group = target.find("\\1"); group != target.npos) target.replace(group, 2, match.group);
  std::string out = name;
  return out.replace(found_at(name, match), match.text.size(), target);
}

std::string without_numbers(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !out.ends_with('0')) out.push_back(digit ? '0' : c);
  }
  return out;
}

std::string with_number(std::string_view target) {
  std::string out(target);
  if (std::size_t star = out.find('*'); star != out.npos) out.replace(star, 1, "0");
  return out;
}

DiskMatchers::DiskMatchers(const DiskClass& rules) {
  for (u16 t : rules.transforms) {
    const DiskTransform& transform = kTransforms[t];
    (transform.kind == DiskTransform::kItems ? tensors : names).emplace_back(transform);
  }
}

std::string DiskMatchers::named(std::string name) const {
  for (const DiskMatcher& m : names)
    if (const std::optional<DiskMatch> match = m.find(name)) name = renamed(name, *match, m.transform);
  return name;
}

std::string DiskMatchers::first_on_disk(const std::string& name) const {
  for (const DiskMatcher& m : tensors)
    if (const std::optional<DiskMatch> match = m.find(name))
      return named(replaced(name, *match, with_number(m.transform.targets[0])));
  return named(name);
}

std::set<DiskChange> DiskMatchers::changes(std::string name) const {
  std::set<DiskChange> out;
  const auto note = [&](const DiskMatcher& m, const DiskMatch& match) {
    out.emplace(&m.transform, without_numbers(std::string_view(name).substr(0, found_at(name, match))));
  };
  for (const DiskMatcher& m : tensors)
    if (const std::optional<DiskMatch> match = m.find(name)) {
      note(m, *match);
      name = replaced(name, *match, with_number(m.transform.targets[0]));
      break;
    }
  for (const DiskMatcher& m : names)
    if (const std::optional<DiskMatch> match = m.find(name)) {
      note(m, *match);
      name = renamed(name, *match, m.transform);
    }
  return out;
}

}  // namespace mckpt::impl
