// A transform is looked for anywhere in a name; of its alternatives the one that begins first counts. At most
// one transform of tensors applies to a name, and then all of names, one after the other. Tensors that one
// transform gives one name are its sources together.
#include "convert/own/disk_transforms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "convert/own/disk_names.h"
#include "convert/own/disk_steps.h"
#include "convert/own/names.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

struct Alternative {
  int source;
  std::string_view pattern;
};
struct Transform {
  enum Kind : u8 {
    kName,
    kEach,    // names too: each source has its own target
    kNumber,  // a name, and `offset` is added to the number in it
    kItems,   // tensors, by `steps`
  } kind;
  std::string_view scope,
      base;  // what the names of a part of the model begin with, also without the base's name
  bool scoped;
  std::span<const Alternative> sources;
  std::span<const std::string_view> targets;
  std::span<const DiskStep> steps = {};
  i64 offset = 0;
};
struct ClassRules {
  std::string_view model_type, name;
  std::span<const u16> transforms;
  std::string_view on_disk;  // a name that the folder has and no model has in memory; "": only tensors differ
  // Names in memory, of layers with any number, that every model of the class has and its folder does not.
  std::span<const std::string_view> always;
};
#include "convert/own/disk_table.inc"

// A longer name is none of a model, and would be deep in the machine of expressions.
constexpr std::size_t kLongestName = 1000;

struct Match {
  int source = 0;
  std::size_t at = 0;  // of the name, where the part begins in which was looked
  std::string text, group;
};

class Matcher {
 public:
  explicit Matcher(const Transform& of) : transform(of) {
    for (const Alternative& a : of.sources)
      sources_.emplace_back(a.source, std::regex(std::string(a.pattern), std::regex::ECMAScript));
  }

  std::optional<Match> find(const std::string& name) const {
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
    std::optional<Match> best;
    std::ptrdiff_t first = 0;
    for (const auto& [source, pattern] : sources_)
      if (std::smatch m; std::regex_search(part, m, pattern) && (!best || m.position(0) < first)) {
        first = m.position(0);
        best = Match{source, at, m.str(0), m.size() > 1 ? m.str(1) : ""};
      }
    return best;
  }

  const Transform& transform;

 private:
  std::vector<std::pair<int, std::regex>> sources_;
};

// Where the target comes. As in transformers it is the first place that has the text that was found, from the
// scope's begin on, which may be before the match.
std::size_t found_at(const std::string& name, const Match& match) {
  return match.text.empty() ? match.at : name.find(match.text, match.at);
}

// The name with the target in place of what was found.
std::string replaced(const std::string& name, const Match& match, std::string target) {
  if (std::size_t group = target.find("\\1"); group != target.npos) target.replace(group, 2, match.group);
  std::string out = name;
  return out.replace(found_at(name, match), match.text.size(), target);
}

// The name by a transform of names.
std::string renamed(const std::string& name, Match match, const Transform& transform) {
  std::size_t target = 0;
  if (transform.kind == Transform::kEach) target = static_cast<std::size_t>(match.source);
  if (transform.kind == Transform::kNumber && match.group.size() < 10)
    match.group = cat(std::stoll(match.group) + transform.offset);
  return replaced(name, match, std::string(transform.targets[target]));
}

const ClassRules* class_rules(std::string_view model_type, std::string_view architecture) {
  const ClassRules* any = nullptr;
  for (const ClassRules& c : kClasses) {
    if (c.model_type != model_type) continue;
    if (c.name == architecture) return &c;
    const bool with_head = c.name.find("For") != c.name.npos;
    if (!any || (with_head && any->name.find("For") == any->name.npos)) any = &c;
  }
  return any;
}

// The name with one number in place of every other, as layers and experts of any number are alike.
std::string without_numbers(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !out.ends_with('0')) out.push_back(digit ? '0' : c);
  }
  return out;
}

// A target with a number in place of that of an expert.
std::string with_number(std::string_view target) {
  std::string out(target);
  if (std::size_t star = out.find('*'); star != out.npos) out.replace(star, 1, "0");
  return out;
}

// A transform, and what is in front of its place in a name, without numbers.
using Change = std::pair<const Transform*, std::string>;

// The transforms of a class.
struct Matchers {
  std::vector<Matcher> tensors, names;

  explicit Matchers(const ClassRules& rules) {
    for (u16 t : rules.transforms) {
      const Transform& transform = kTransforms[t];
      (transform.kind == Transform::kItems ? tensors : names).emplace_back(transform);
    }
  }

  std::string named(std::string name) const {
    for (const Matcher& m : names)
      if (const std::optional<Match> match = m.find(name)) name = renamed(name, *match, m.transform);
    return name;
  }

  // The folder's name of a tensor, or of the first that it becomes.
  std::string first_on_disk(const std::string& name) const {
    for (const Matcher& m : tensors)
      if (const std::optional<Match> match = m.find(name))
        return named(replaced(name, *match, with_number(m.transform.targets[0])));
    return named(name);
  }

  // All that is done to a name.
  std::set<Change> changes(std::string name) const {
    std::set<Change> out;
    const auto note = [&](const Matcher& m, const Match& match) {
      out.emplace(&m.transform, without_numbers(std::string_view(name).substr(0, found_at(name, match))));
    };
    for (const Matcher& m : tensors)
      if (const std::optional<Match> match = m.find(name)) {
        note(m, *match);
        name = replaced(name, *match, with_number(m.transform.targets[0]));
        break;
      }
    for (const Matcher& m : names)
      if (const std::optional<Match> match = m.find(name)) {
        note(m, *match);
        name = renamed(name, *match, m.transform);
      }
    return out;
  }
};

// Whether steps only divide a tensor: into rows of each matrix, into matrices, or into both.
bool divides(std::span<const DiskStep> steps) {
  const auto is = [&](std::size_t i, StepKind kind, int dim) {
    return steps[i].kind == kind && steps[i].dim == dim && steps[i].number.empty();
  };
  if (steps.size() == 2) return is(0, StepKind::kDivide, 1) && is(1, StepKind::kExperts, 0);
  return steps.size() == 1 &&
         (is(0, StepKind::kExperts, 0) || is(0, StepKind::kDivide, 0) || is(0, StepKind::kDivide, 1));
}

// Whether the names of a model are those of the release that the table is made of. Other releases have other
// names in memory, of which the transforms would turn some and leave others: no release has the result.
class Release {
 public:
  Release(const Store& store, const ClassRules& rules, const Matchers& matchers,
          std::span<const NamedTensor> model)
      : store_(store), rules_(rules), matchers_(matchers), model_(model) {
    for (const NamedTensor& n : model) names_.push_back(without_numbers(n.name));
  }

  // The first of the names without which the model is not as the table has it in memory; empty: it is.
  std::string_view lacking_in_memory() const {
    std::set<Change> all;
    for (std::string_view name : rules_.always) {
      if (has(name)) continue;
      // Where the same is done to longer names, as older releases have them in towers of images, all is done.
      if (all.empty())
        for (const NamedTensor& n : model_) all.merge(matchers_.changes(n.name));
      if (!std::ranges::includes(all, matchers_.changes(std::string(name)))) return name;
    }
    return {};
  }

  // The first of them that the model has neither so nor as the folder has it.
  std::string_view lacking() const {
    for (std::string_view name : rules_.always)
      if (!has(name) && !has(matchers_.first_on_disk(std::string(name)))) return name;
    return {};
  }

  [[noreturn]] void refuse(std::string_view lacking) const {
    throw Error(Code::kUnknownModel, cat("the names are not those that transformers ", kTableRelease,
                                         " has in memory, and how the model's folder has them is not known"))
        .file(store_.root())
        .tensor(store_.name(most_alike(lacking)))
        .expected(cat(lacking, ", or the same of another layer, as every ", rules_.name, " has it"))
        .found("no such tensor; the one above has the name that is most like it")
        .help(
            "save_pretrained() of the release that trained the model writes its folder; `assets` whose weights or index have the checkpoint's names keeps them; mckpt convert to-dcp SRC DST keeps the names");
  }

 private:
  // A model without its head may lack the first part of its names, and a model inside of another have more.
  bool has(std::string_view wanted) const {
    const std::string name = without_numbers(wanted);
    const auto ends = [](std::string_view whole, std::string_view end) {
      return whole.size() > end.size() && whole.ends_with(end) && whole[whole.size() - end.size() - 1] == '.';
    };
    return std::ranges::any_of(
        names_, [&](const std::string& n) { return n == name || ends(n, name) || ends(name, n); });
  }

  // The tensor whose name has most in common with this one, at its begin and its end.
  i64 most_alike(std::string_view wanted) const {
    const std::string name = without_numbers(wanted);
    std::size_t best = 0;
    i64 out = 0;
    for (std::size_t i = 0; i < names_.size(); i++) {
      const std::string& n = names_[i];
      const auto begin = std::ranges::mismatch(n, name).in1 - n.begin();
      const auto end = std::mismatch(n.rbegin(), n.rend(), name.rbegin(), name.rend()).first - n.rbegin();
      if (const auto common = static_cast<std::size_t>(begin + end); common > best) {
        best = common;
        out = model_[i].tensor;
      }
    }
    return out;
  }

  const Store& store_;
  const ClassRules& rules_;
  const Matchers& matchers_;
  std::span<const NamedTensor> model_;
  std::vector<std::string> names_;
};

class Transforming {
 public:
  Transforming(const Store& store, const ClassRules& rules, const OwnNamesOptions& options)
      : store_(store), rules_(rules), options_(options), matchers_(rules) {}

  DiskTensors all(std::span<const NamedTensor> model) {
    bool on_disk = std::ranges::find(model, rules_.on_disk, &NamedTensor::name) != model.end();
    const Release release(store_, rules_, matchers_, model);
    std::string_view lacking;
    // Where it is known which names the folder has, these judge the result.
    if (!on_disk && options_.expected.empty()) lacking = release.lacking_in_memory();
    // The names of another release may be the folder's, which every release loads.
    if (!lacking.empty()) {
      lacking = release.lacking();
      on_disk = lacking.empty();
    }
    for (const NamedTensor& n : model) on_disk ? put(n.name, n.name, n.tensor) : add(n.name, n.tensor);
    for (const Group& group : groups_) transform(group);
    if (!lacking.empty()) release.refuse(lacking);
    return std::move(out_);
  }

 private:
  // Tensors that one transform takes together.
  struct Group {
    const Transform* transform;
    std::string name;  // in memory, of the first
    Match match;
    std::vector<std::pair<int, i64>> tensors;  // by source
  };

  std::string named(std::string name) const { return matchers_.named(std::move(name)); }

  // A folder may have the names in memory, as some versions wrote and some publish them.
  bool kept(const std::string& name, const std::string& disk) const {
    return options_.expected.contains(name) && !options_.expected.contains(disk);
  }

  void add(const std::string& name, i64 tensor) {
    for (const Matcher& m : matchers_.tensors)
      if (const std::optional<Match> match = m.find(name)) return collect(m.transform, *match, name, tensor);
    put(name, named(name), tensor);
  }

  void put(const std::string& name, std::string disk, i64 tensor) {
    const bool keep = kept(name, disk);
    out_.renamed |= !keep && disk != name;
    std::span<const i64> dims = store_.dims(tensor);
    out_.tensors.push_back({keep ? name : std::move(disk), {dims.begin(), dims.end()}, {{tensor}}});
  }

  void collect(const Transform& t, const Match& match, const std::string& name, i64 tensor) {
    const std::string together = replaced(name, match, std::string(t.targets[0]));
    if ((options_.stacks && is_stack(name)) || kept(name, named(with_number(together))))
      return put(name, name, tensor);
    auto [at, is_new] = group_of_.try_emplace(together, groups_.size());
    if (is_new) groups_.push_back({&t, name, match, {}});
    groups_[at->second].tensors.emplace_back(match.source, tensor);
  }

  // A class makes one tensor of all its parts. One that is missing would leave rows out that nobody asks for.
  void check_parts(const Group& group) const {
    std::map<int, i64> counts;
    for (const Alternative& a : group.transform->sources) counts[a.source];
    for (auto [source, tensor] : group.tensors) counts[source]++;
    i64 most = 0;
    for (auto [source, count] : counts) most = std::max(most, count);
    for (auto [source, count] : counts)
      if (count != most)
        throw Error(
            Code::kUnaccounted,
            "a tensor of the model's folder consists of several of the model's, and not all are there")
            .file(store_.root())
            .tensor(group.name)
            .expected(cat(most, " of '",
                          std::ranges::find(group.transform->sources, source, &Alternative::source)->pattern,
                          "'"))
            .found(count);
  }

  void transform(const Group& group) {
    check_parts(group);
    const Transform& t = *group.transform;
    StepInput input{{}, t.targets, options_.config_numbers, kMostModelTensors - std::ssize(out_.tensors)};
    std::vector<std::pair<int, i64>> parts = group.tensors;
    std::ranges::stable_sort(parts, {}, &std::pair<int, i64>::first);
    const i64 first = parts[0].second;
    try {
      for (auto [source, tensor] : parts) {
        if (store_.dims(tensor).empty()) throw Error(Code::kSourceShape, "the tensor is a scalar");
        auto pattern = std::ranges::find(t.sources, source, &Alternative::source)->pattern;
        input.tensors.push_back({std::string(pattern), BoxedTensor::whole(store_, tensor)});
      }
      for (StepTensor& made : apply_steps(std::move(input), t.steps)) {
        out_.tensors.push_back({named(replaced(group.name, group.match, std::move(made.name))),
                                std::move(made.boxes.dims), std::move(made.boxes.pieces)});
      }
    } catch (Error& e) {
      if (e.code() == Code::kUnknownModel)
        e.found(cat("class ", rules_.name))
            .help(
                "mckpt convert to-dcp SRC DST keeps names and tensors, and the model's own class loads them");
      else
        e.found(to_string(store_.shape(first)));
      throw e.file(store_.root()).tensor(store_.name(first));
    }
    out_.renamed = true;
  }

  const Store& store_;
  const ClassRules& rules_;
  const OwnNamesOptions& options_;
  const Matchers matchers_;
  std::vector<Group> groups_;
  std::map<std::string, std::size_t> group_of_;
  DiskTensors out_;
};

// Rules of names match numbers, and not {E}: this number, which no model has, goes through them in its place.
constexpr std::string_view kAnyExpert = "987654321";

}  // namespace

struct DiskPlaces::Rules {
  Matchers matchers;
};

DiskPlaces::DiskPlaces(std::string_view model_type, std::string_view architecture)
    : rules_(new Rules{Matchers(*class_rules(model_type, architecture))}) {}

DiskPlaces::~DiskPlaces() = default;

DiskPlace DiskPlaces::of(std::string_view wanted) const {
  const std::string name(wanted);
  const Matchers& matchers = rules_->matchers;
  for (const Matcher& m : matchers.tensors) {
    const std::optional<Match> match = m.find(name);
    if (!match) continue;
    const Transform& t = m.transform;
    const bool alone =
        std::ranges::all_of(t.sources, [&](const Alternative& a) { return a.source == t.sources[0].source; });
    const bool same =
        std::ranges::all_of(t.steps, [](const DiskStep& s) { return s.kind == StepKind::kSame; });
    if (!alone || (!same && !divides(t.steps))) return {{}, true};
    DiskPlace out;
    for (std::string_view target : t.targets) {
      std::string part(target);
      if (std::size_t star = part.find('*'); star != part.npos) part.replace(star, 1, kAnyExpert);
      part = matchers.named(replaced(name, *match, std::move(part)));
      if (std::size_t expert = part.find(kAnyExpert); expert != part.npos)
        part.replace(expert, kAnyExpert.size(), "{E}");
      out.names.push_back(std::move(part));
    }
    return out;
  }
  return {{matchers.named(name)}};
}

bool has_disk_transforms(std::string_view model_type, std::string_view architecture) {
  return class_rules(model_type, architecture) != nullptr;
}

DiskTensors transformed_tensors(const Store& store, std::span<const NamedTensor> model,
                                std::string_view model_type, std::string_view architecture,
                                const OwnNamesOptions& options) {
  return Transforming(store, *class_rules(model_type, architecture), options).all(model);
}

}  // namespace mckpt::impl
