// Builds the tree of names and folds what is alike.
//
// Names come sorted, so the tree is built along one path: a name shares the first parts of the path with the
// name before it; the nodes that it does not share are complete and are left. A node that is left gets its
// likeness, a hash of the names, types and shapes below it. A numbered branch whose likeness its parent has
// seen before is cut off at once, so a hundred thousand equal layers take the memory of one. (Two hashes of
// 64 bits that are equal by chance would fold branches that differ.) Nodes of a chain, each the only child of
// the one before, become one node with a name of several parts: a name of a hundred parts that it shares with
// no other takes the memory of three.
//
//   insert  layers.0.a.w   layers.0.b.w   layers.1.a.w         path: layers > 0 > a > w
//                                         ^ leaves w, b and 0: the likeness of layers.0 is known
//
// build() makes lines of the nodes: a chain of single children is one label ("model.language_model"),
// numbered siblings with one likeness are one line, and everything below a layer is a full name.
#include "io/choice/name_tree.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/open/torch_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Names with more parts end in one long part: the functions below recurse once for each part.
constexpr int kMaxDepth = 64;

constexpr u32 kNone = 0;  // the index of the root, which is not a child of any node

// The colon behind the name of a file, as in "model.pt:layers.0.weight", whose dots divide nothing; npos if
// the name does not begin with a file.
std::size_t file_end(std::string_view name) {
  std::size_t colon = name.find(':');
  return colon != name.npos && has_torch_suffix(name.substr(0, colon)) ? colon : name.npos;
}

// Where the part of the name that begins at `begin` ends.
std::size_t part_end(std::string_view name, std::size_t begin) {
  std::size_t colon = begin == 0 ? file_end(name) : name.npos;
  return std::min(colon != name.npos ? colon : name.find('.', begin), name.size());
}

// Whether a part of the name ends there.
bool ends_part(std::string_view name, std::size_t at) {
  std::size_t colon = file_end(name);
  return at == colon || (name[at] == '.' && (colon == name.npos || at > colon));
}

// One part of the names. Children are in the order of the names, each the `next` of the one before.
struct Node {
  std::string_view name;
  i64 tensor = -1;
  i64 bytes = 0;     // of all below
  u64 likeness = 0;  // equal for nodes whose contents have the same names, types and shapes
  u32 tensors = 0;   // of all below
  u32 first = kNone, last = kNone, next = kNone;
};

u64 mix(u64 a, u64 b) {
  u64 h = (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
  return h ^ (h >> 32);
}

bool is_number(std::string_view s) {
  return !s.empty() && s.size() < 10 &&
         std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A tensor whose name has the number of an expert in it: "weight12_w" of a module of grouped experts.
struct ExpertName {
  std::string_view stem, number, ending;
};

std::optional<ExpertName> expert_name(std::string_view name) {
  for (std::string_view stem : {"weight", "bias"}) {
    if (!name.starts_with(stem)) continue;
    const std::size_t end = std::min(name.find_first_not_of("0123456789", stem.size()), name.size());
    const std::string_view number = name.substr(stem.size(), end - stem.size()), ending = name.substr(end);
    if (is_number(number) && (ending.empty() || ending == "_w" || ending == "_v"))
      return ExpertName{stem, number, ending};
  }
  return std::nullopt;
}

// "{0..2,5}"
std::string ranges(const std::vector<std::string_view>& numbers) {
  auto number = [&](std::size_t i) { return std::stol(std::string(numbers[i])); };
  std::string out = "{";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && number(end) == number(end - 1) + 1) end++;
    out += cat(i ? "," : "", numbers[i]);
    if (end - i > 1) out += cat(end - i == 2 ? "," : "..", numbers[end - 1]);
    i = end;
  }
  return out + "}";
}

// Two phases: insert() for every tensor in order, then build() once.
class Builder {
 public:
  Builder(const Store& store, bool fold) : store_(store), fold_(fold) { nodes_.emplace_back(); }

  void insert(i64 tensor) {
    std::string_view name = store_.name(tensor);
    // The nodes of the parts that it shares with the name before exist already.
    std::size_t common = common_length(last_, name);
    while (!path_.empty() && (path_.back().end >= common || !ends_part(name, path_.back().end))) leave();
    for (;;) {
      std::size_t begin = path_.empty() ? 0 : path_.back().end + 1;
      std::size_t end = std::ssize(path_) + 1 < kMaxDepth ? part_end(name, begin) : name.size();
      const u32 node = child(path_.empty() ? 0 : path_.back().node, name.substr(begin, end - begin));
      path_.push_back({end, node, {}});
      if (end == name.size()) break;
    }
    nodes_[path_.back().node].tensor = tensor;
    last_ = name;
  }

  std::vector<NameTree> build() {
    while (!path_.empty()) leave();
    std::vector<u32> top = children(0);
    std::vector<NameTree> out;
    out.reserve(top.size());
    for (u32 c : top) {
      if (nodes_[c].tensors < 2 || nodes_[c].tensor >= 0 || is_number(nodes_[c].name)) {
        append(c, "", out);
      } else {
        append_root_branch(c, out);
      }
    }
    return out;
  }

 private:
  std::vector<u32> children(u32 node) const {
    std::vector<u32> out;
    for (u32 c = nodes_[node].first; c != kNone; c = nodes_[c].next) out.push_back(c);
    return out;
  }

  // The child of that name. Names come sorted, so an existing child of the name is the last one.
  u32 child(u32 parent, std::string_view name) {
    u32 last = nodes_[parent].last;
    if (last != kNone && nodes_[last].name == name) return last;
    u32 index = static_cast<u32>(nodes_.size());
    (last != kNone ? nodes_[last].next : nodes_[parent].first) = index;
    nodes_[parent].last = index;
    nodes_.emplace_back().name = name;
    return index;
  }

  // Leaves the node at the end of the path, which is complete: names come sorted.
  void leave() {
    u32 index = path_.back().node;
    path_.pop_back();
    measure(index);
    // All nodes behind it in the list are below it, so cutting it off is a resize. Branches at the root are
    // not folded.
    if (fold_ && !path_.empty() && is_number(nodes_[index].name) && nodes_[index].first != kNone &&
        !path_.back().alike.insert(nodes_[index].likeness)) {
      nodes_.resize(index + 1);
      nodes_[index].first = nodes_[index].last = kNone;
    }
    join_chain(index);
  }

  // Joins the only child of the node with its own only child, where the lines would show them as one name in
  // any case. What is below them moves up in the list, so that only a few nodes are ever joined so.
  void join_chain(u32 index) {
    constexpr std::size_t kMostBelow = 16;
    const u32 one = nodes_[index].first;
    if (one == kNone || one != nodes_[index].last || nodes_[one].tensor >= 0) return;
    const u32 other = nodes_[one].first;
    if (other == kNone || other != nodes_[one].last || nodes_[other].tensor >= 0 || repeats(other)) return;
    if (other != one + 1 || nodes_.size() - other - 1 > kMostBelow) return;
    const char* begin = nodes_[one].name.data();
    // Both names are parts of one text, with a dot between them.
    if (begin + nodes_[one].name.size() + 1 != nodes_[other].name.data()) return;
    const std::string_view joined(begin, nodes_[one].name.size() + 1 + nodes_[other].name.size());
    if (has_torch_suffix(nodes_[one].name) || has_torch_suffix(joined)) return;
    nodes_[one].name = joined;
    auto moved = [&](u32 node) { return node == kNone ? kNone : node - 1; };
    nodes_[one].first = moved(nodes_[other].first), nodes_[one].last = moved(nodes_[other].last);
    for (std::size_t i = other; i + 1 < nodes_.size(); i++) {
      nodes_[i] = nodes_[i + 1];
      for (u32* link : {&nodes_[i].first, &nodes_[i].last, &nodes_[i].next}) *link = moved(*link);
    }
    nodes_.pop_back();
  }

  void measure(u32 index) {
    Node& node = nodes_[index];
    node.bytes = 0, node.tensors = 0, node.likeness = 0;  // "w" comes before "w.scale", which is below it
    if (node.tensor >= 0) {
      DType dtype = store_.dtype(node.tensor);
      node.tensors = 1;
      node.bytes = dtype_bytes(dtype, store_.shape(node.tensor).items());
      node.likeness = mix(1, static_cast<u64>(dtype));
      for (i64 d : store_.dims(node.tensor)) node.likeness = mix(node.likeness, static_cast<u64>(d));
    }
    for (u32 c = node.first; c != kNone; c = nodes_[c].next) {
      node.tensors += nodes_[c].tensors;
      node.bytes += nodes_[c].bytes;
      node.likeness =
          mix(mix(node.likeness, std::hash<std::string_view>{}(nodes_[c].name)), nodes_[c].likeness);
    }
  }

  void append_root_branch(u32 node, std::vector<NameTree>& out) {
    NameTree branch;
    branch.label = nodes_[node].name;
    std::string_view joint = joint_behind(nodes_[node].name);
    for (u32 only = nodes_[node].first;
         only == nodes_[node].last && nodes_[only].tensor < 0 && !repeats(only); only = nodes_[node].first) {
      node = only;
      branch.label += cat(joint, nodes_[node].name);
      joint = ".";
    }
    branch.bytes = nodes_[node].bytes;
    branch.tensors = nodes_[node].tensors;
    append_children(node, "", branch.children);
    out.push_back(std::move(branch));
  }

  // Appends the node itself if it is a tensor, and what is below it, under names that begin with `prefix`.
  void append(u32 node, const std::string& prefix, std::vector<NameTree>& out) {
    std::string name = cat(prefix, nodes_[node].name);
    if (nodes_[node].tensor >= 0) out.push_back(leaf(node, name, 1));
    if (nodes_[node].first != kNone) append_children(node, cat(name, joint_behind(nodes_[node].name)), out);
  }

  // What is between this part and the next; only names of files have such suffixes.
  static std::string_view joint_behind(std::string_view part) { return has_torch_suffix(part) ? ":" : "."; }

  NameTree leaf(u32 node, std::string label, i64 copies) const {
    return {std::move(label), nodes_[node].tensor, copies, nodes_[node].bytes, 1, {}};
  }

  // Whether at least two children are numbers, so that each (or each kind) has a branch.
  bool repeats(u32 node) const {
    int numbered = 0;
    for (u32 c = nodes_[node].first; c != kNone && numbered < 2; c = nodes_[c].next)
      numbered += is_number(nodes_[c].name);
    return numbered > 1;
  }

  void append_children(u32 node, const std::string& prefix, std::vector<NameTree>& out) {
    std::vector<u32> all = children(node), numbered;
    for (u32 c : all)
      if (is_number(nodes_[c].name)) numbered.push_back(c);
    bool several = numbered.size() > 1;
    if (out.empty()) out.reserve(all.size() - (several ? numbered.size() - 1 : 0));
    const std::map<u32, std::vector<u32>> experts =
        fold_ ? experts_among(all) : std::map<u32, std::vector<u32>>{};
    std::unordered_set<u32> in_line;
    for (const auto& [first, group] : experts) in_line.insert(group.begin(), group.end());
    for (u32 c : all) {
      if (auto group = experts.find(c); group != experts.end())
        out.push_back(expert_line(group->second, prefix));
      if (!in_line.contains(c) && (!several || !is_number(nodes_[c].name))) append(c, prefix, out);
    }
    if (several) append_numbered(numbered, prefix, out);
  }

  void append_numbered(std::span<const u32> numbered, const std::string& prefix, std::vector<NameTree>& out) {
    std::vector<std::vector<u32>> alike;
    std::unordered_map<u64, std::size_t> groups;
    for (u32 c : numbered) {
      auto [group, added] = groups.emplace(fold_ ? nodes_[c].likeness : c, alike.size());
      if (added) alike.emplace_back();
      alike[group->second].push_back(c);
    }
    for (const std::vector<u32>& group : alike) {
      std::string label =
          prefix + (group.size() == 1 ? std::string(nodes_[group[0]].name) : ranges(names_of(group)));
      i64 copies = static_cast<i64>(group.size());
      const Node& first = nodes_[group[0]];
      if (first.tensor >= 0 && first.first == kNone) {
        out.push_back(leaf(group[0], std::move(label), copies));
        continue;
      }
      NameTree branch{std::move(label), -1, copies, first.bytes, first.tensors, {}};
      if (first.tensor >= 0) branch.children.push_back(leaf(group[0], "(itself)", 1));
      append_children(group[0], "", branch.children);
      out.push_back(std::move(branch));
    }
  }

  std::vector<std::string_view> names_of(const std::vector<u32>& group) const {
    std::vector<std::string_view> out;
    for (u32 c : group) out.push_back(nodes_[c].name);
    return out;
  }

  // Tensors of experts that are alike but for their numbers, by the first of them.
  std::map<u32, std::vector<u32>> experts_among(const std::vector<u32>& siblings) const {
    std::map<std::tuple<std::string_view, std::string_view, u64>, std::vector<u32>> alike;
    for (u32 c : siblings)
      if (nodes_[c].tensor >= 0 && nodes_[c].first == kNone)
        if (auto name = expert_name(nodes_[c].name))
          alike[{name->stem, name->ending, nodes_[c].likeness}].push_back(c);
    std::map<u32, std::vector<u32>> out;
    for (auto& [key, group] : alike)
      if (group.size() > 1) out.emplace(group[0], std::move(group));
    return out;
  }

  NameTree expert_line(const std::vector<u32>& group, const std::string& prefix) const {
    std::vector<std::string_view> numbers;
    for (u32 c : group) numbers.push_back(expert_name(nodes_[c].name)->number);
    const ExpertName first = *expert_name(nodes_[group[0]].name);
    return leaf(group[0], cat(prefix, first.stem, ranges(numbers), first.ending), std::ssize(group));
  }

  // Likenesses of the numbered branches of one node. Most have one alone.
  class Likenesses {
   public:
    // False if it was there.
    bool insert(u64 likeness) {
      if (!some_) return some_ = true, first_ = likeness, true;
      if (likeness == first_) return false;
      if (!more_) more_ = std::make_unique<std::unordered_set<u64>>();
      return more_->insert(likeness).second;
    }

   private:
    bool some_ = false;
    u64 first_ = 0;
    std::unique_ptr<std::unordered_set<u64>> more_;
  };

  // A part of the name that was inserted last.
  struct Step {
    std::size_t end;  // of the component in the name
    u32 node;
    Likenesses alike;
  };

  const Store& store_;
  bool fold_;
  std::deque<Node> nodes_;         // half a million nodes, which do not move when one is added
  std::string_view last_;          // the name that was inserted last, and the nodes on its way
  std::vector<Step> path_;
};

}  // namespace

std::vector<NameTree> name_tree(const Store& store, const std::vector<i64>& tensors, bool fold) {
  Builder builder(store, fold);
  for (i64 t : tensors) builder.insert(t);
  return builder.build();
}

i64 line_count(const std::vector<NameTree>& tree) {
  i64 lines = 0;
  for (const NameTree& t : tree) lines += 1 + line_count(t.children);
  return lines;
}

}  // namespace mckpt::impl
