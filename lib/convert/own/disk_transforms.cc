// At most one transform of tensors applies to a name, and then all of names, one after the other. Tensors
// that one transform gives one name are its sources together.
#include "convert/own/disk_transforms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/own/disk_matchers.h"
#include "convert/own/disk_names.h"
#include "convert/own/disk_release.h"
#include "convert/own/disk_steps.h"
#include "convert/own/names.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Whether steps only divide a tensor: into rows of each matrix, into matrices, or into both.
bool divides(std::span<const DiskStep> steps) {
  const auto is = [&](std::size_t i, StepKind kind, int dim) {
    return steps[i].kind == kind && steps[i].dim == dim && steps[i].number.empty();
  };
  if (steps.size() == 2) return is(0, StepKind::kDivide, 1) && is(1, StepKind::kExperts, 0);
  return steps.size() == 1 &&
         (is(0, StepKind::kExperts, 0) || is(0, StepKind::kDivide, 0) || is(0, StepKind::kDivide, 1));
}

class Transforming {
 public:
  Transforming(const Store& store, const DiskClass& rules, const OwnNamesOptions& options)
      : store_(store), rules_(rules), options_(options), matchers_(rules) {}

  DiskTensors all(std::span<const NamedTensor> model) {
    bool on_disk = std::ranges::find(model, rules_.on_disk, &NamedTensor::name) != model.end();
    const DiskRelease release(store_, rules_, matchers_, model);
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
    const DiskTransform* transform;
    std::string name;  // in memory, of the first
    DiskMatch match;
    std::vector<std::pair<int, i64>> tensors;  // by source
  };

  std::string named(std::string name) const { return matchers_.named(std::move(name)); }

  // A folder may have the names in memory, as some versions wrote and some publish them.
  bool kept(const std::string& name, const std::string& disk) const {
    return options_.expected.contains(name) && !options_.expected.contains(disk);
  }

  void add(const std::string& name, i64 tensor) {
    for (const DiskMatcher& m : matchers_.tensors)
      if (const std::optional<DiskMatch> match = m.find(name))
        return collect(m.transform, *match, name, tensor);
    put(name, named(name), tensor);
  }

  void put(const std::string& name, std::string disk, i64 tensor) {
    const bool keep = kept(name, disk);
    out_.renamed |= !keep && disk != name;
    std::span<const i64> dims = store_.dims(tensor);
    out_.tensors.push_back({keep ? name : std::move(disk), {dims.begin(), dims.end()}, {{tensor}}});
  }

  void collect(const DiskTransform& t, const DiskMatch& match, const std::string& name, i64 tensor) {
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
    for (const DiskAlternative& a : group.transform->sources) counts[a.source];
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
            .expected(cat(
                most, " of '",
                std::ranges::find(group.transform->sources, source, &DiskAlternative::source)->pattern, "'"))
            .found(count);
  }

  void transform(const Group& group) {
    check_parts(group);
    const DiskTransform& t = *group.transform;
    StepInput input{{}, t.targets, options_.config_numbers, kMostModelTensors - std::ssize(out_.tensors)};
    std::vector<std::pair<int, i64>> parts = group.tensors;
    std::ranges::stable_sort(parts, {}, &std::pair<int, i64>::first);
    const i64 first = parts[0].second;
    try {
      for (auto [source, tensor] : parts) {
        if (store_.dims(tensor).empty()) throw Error(Code::kSourceShape, "the tensor is a scalar");
        auto pattern = std::ranges::find(t.sources, source, &DiskAlternative::source)->pattern;
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
  const DiskClass& rules_;
  const OwnNamesOptions& options_;
  const DiskMatchers matchers_;
  std::vector<Group> groups_;
  std::map<std::string, std::size_t> group_of_;
  DiskTensors out_;
};

// Rules of names match numbers, and not {E}: this number, which no model has, goes through them in its place.
constexpr std::string_view kAnyExpert = "987654321";

}  // namespace

struct DiskPlaces::Rules {
  DiskMatchers matchers;
};

DiskPlaces::DiskPlaces(std::string_view model_type, std::string_view architecture)
    : rules_(new Rules{DiskMatchers(*disk_class(model_type, architecture))}) {}

DiskPlaces::~DiskPlaces() = default;

DiskPlace DiskPlaces::of(std::string_view wanted) const {
  const std::string name(wanted);
  const DiskMatchers& matchers = rules_->matchers;
  for (const DiskMatcher& m : matchers.tensors) {
    const std::optional<DiskMatch> match = m.find(name);
    if (!match) continue;
    const DiskTransform& t = m.transform;
    const bool alone = std::ranges::all_of(
        t.sources, [&](const DiskAlternative& a) { return a.source == t.sources[0].source; });
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
  return disk_class(model_type, architecture) != nullptr;
}

DiskTensors transformed_tensors(const Store& store, std::span<const NamedTensor> model,
                                std::string_view model_type, std::string_view architecture,
                                const OwnNamesOptions& options) {
  return Transforming(store, *disk_class(model_type, architecture), options).all(model);
}

}  // namespace mckpt::impl
