// A transform is looked for anywhere in a name; of its alternatives the one that begins first counts. At most one
// transform of tensors applies to a name, and then all of names, one after the other.
#include "convert/views/disk_transforms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "convert/views/disk_names.h"
#include "convert/views/own_names.h"
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
  enum Kind : u8 { kName, kStack, kRows, kJoin, kUnknown } kind;
  std::string_view scope,
      base;  // what the names of a part of the model begin with, also without the base's name
  bool scoped;
  std::span<const Alternative> sources;
  std::span<const std::string_view> targets;
};
struct ClassRules {
  std::string_view model_type, name;
  std::span<const u16> transforms;
};
#include "convert/views/disk_table.inc"

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

// The name with the target in place of what was found.
std::string replaced(const std::string& name, const Match& match, std::string target) {
  if (std::size_t group = target.find("\\1"); group != target.npos) target.replace(group, 2, match.group);
  const std::size_t at = match.text.empty() ? match.at : name.find(match.text, match.at);
  std::string out = name;
  return out.replace(at, match.text.size(), target);
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

class Transforming {
 public:
  Transforming(const Store& store, const ClassRules& rules, const OwnNamesOptions& options)
      : store_(store), rules_(rules), options_(options) {
    for (u16 t : rules.transforms) {
      const Transform& transform = kTransforms[t];
      (transform.kind == Transform::kName ? names_ : tensors_).emplace_back(transform);
    }
  }

  DiskTensors all(std::span<const NamedTensor> model) {
    for (const NamedTensor& n : model) add(n.name, n.tensor);
    for (auto& [name, parts] : joins_) join(name, parts);
    return std::move(out_);
  }

 private:
  std::string named(std::string name) const {
    for (const Matcher& m : names_)
      if (const std::optional<Match> match = m.find(name))
        name = replaced(name, *match, std::string(m.transform.targets[0]));
    return name;
  }

  void add(const std::string& name, i64 tensor) {
    for (const Matcher& m : tensors_)
      if (const std::optional<Match> match = m.find(name))
        return transform(m.transform, *match, name, tensor);
    put(name, named(name), tensor);
  }

  // A folder may have the names in memory, as some versions wrote and some publish them.
  bool kept(const std::string& name, const std::string& disk) const {
    return options_.stacks || (options_.expected.contains(name) && !options_.expected.contains(disk));
  }

  void put(const std::string& name, std::string disk, i64 tensor) {
    const bool keep = options_.expected.contains(name) && !options_.expected.contains(disk);
    out_.renamed |= !keep && disk != name;
    std::span<const i64> dims = store_.dims(tensor);
    out_.tensors.push_back({keep ? name : std::move(disk), {dims.begin(), dims.end()}, {{tensor}}});
  }

  void transform(const Transform& t, const Match& match, const std::string& name, i64 tensor) {
    const auto target = [&](std::size_t i, i64 number) {
      std::string text(t.targets[i]);
      if (std::size_t star = text.find('*'); star != text.npos) text.replace(star, 1, cat(number));
      return named(replaced(name, match, std::move(text)));
    };
    if (kept(name, target(0, 0))) return put(name, name, tensor);
    out_.renamed = true;
    const std::vector<i64> dims(store_.dims(tensor).begin(), store_.dims(tensor).end());
    const i64 parts = std::ssize(t.targets);
    switch (t.kind) {
      case Transform::kStack: {
        check_stack(store_, tensor, 0, 0, 0);
        check_room(store_, tensor, std::ssize(out_.tensors));
        const i64 rows = divided(dims[1], parts, tensor);
        for (i64 part = 0; part < parts; part++)
          for (i64 e = 0; e < dims[0]; e++)
            out_.tensors.push_back({target(static_cast<std::size_t>(part), e),
                                    {rows, dims[2]},
                                    {{tensor, {e}, part * rows, rows}}});
        return;
      }
      case Transform::kRows: {
        std::vector<i64> part_dims = dims;
        if (dims.empty()) refuse(tensor, "is a scalar");
        const i64 rows = part_dims[0] = divided(dims[0], parts, tensor);
        for (i64 part = 0; part < parts; part++)
          out_.tensors.push_back(
              {target(static_cast<std::size_t>(part), 0), part_dims, {{tensor, {}, part * rows, rows}}});
        return;
      }
      case Transform::kJoin:
        joins_[target(0, 0)].push_back({match.source, tensor});
        return;
      case Transform::kName:
      case Transform::kUnknown:
        refuse(tensor, "is rearranged by transformers when it is saved");
    }
  }

  // Rows of several tensors, one below the other, in the order of the transform's sources.
  void join(const std::string& name, std::vector<std::pair<int, i64>>& parts) {
    std::ranges::sort(parts);
    std::vector<i64> dims(store_.dims(parts[0].second).begin(), store_.dims(parts[0].second).end());
    if (dims.empty()) refuse(parts[0].second, "is a scalar");
    PiecedTensor made{name, {}, {}};
    i64 rows = 0;
    for (const auto& [source, tensor] : parts) {
      std::span<const i64> own = store_.dims(tensor);
      if (own.size() != dims.size() || !std::equal(own.begin() + 1, own.end(), dims.begin() + 1))
        refuse(tensor, "does not fit those that it is joined with");
      made.pieces.push_back({.tensor = tensor, .first_row = 0, .rows = own[0], .to_row = rows});
      rows += own[0];
    }
    dims[0] = rows;
    made.dims = std::move(dims);
    out_.tensors.push_back(std::move(made));
  }

  i64 divided(i64 rows, i64 parts, i64 tensor) const {
    if (rows % parts == 0) return rows / parts;
    throw Error(Code::kSourceShape,
                cat("the rows cannot be divided into ", parts, " tensors of the model's folder"))
        .file(store_.root())
        .tensor(store_.name(tensor))
        .found(to_string(store_.shape(tensor)));
  }

  [[noreturn]] void refuse(i64 tensor, std::string_view why) const {
    throw Error(Code::kUnknownModel, "how this model's folder has a tensor is not computed")
        .file(store_.root())
        .tensor(store_.name(tensor))
        .found(cat("the tensor ", why, "; class ", rules_.name))
        .help("mckpt convert to-dcp SRC DST keeps names and tensors, and the model's own class loads them");
  }

  const Store& store_;
  const ClassRules& rules_;
  const OwnNamesOptions& options_;
  std::vector<Matcher> tensors_, names_;
  std::map<std::string, std::vector<std::pair<int, i64>>> joins_;
  DiskTensors out_;
};

}  // namespace

bool has_disk_transforms(std::string_view model_type, std::string_view architecture) {
  return class_rules(model_type, architecture) != nullptr;
}

DiskTensors transformed_tensors(const Store& store, std::span<const NamedTensor> model,
                                std::string_view model_type, std::string_view architecture,
                                const OwnNamesOptions& options) {
  return Transforming(store, *class_rules(model_type, architecture), options).all(model);
}

}  // namespace mckpt::impl
