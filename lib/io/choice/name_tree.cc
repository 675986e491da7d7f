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
// each_line() makes lines of the nodes: a chain of single children is one label ("model.language_model"),
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
#include <unordered_set>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/choice/likeness.h"
#include "io/choice/tree_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Names with more parts end in one long part: the functions below recurse once for each part.
constexpr int kMaxDepth = 64;

using Visit = std::function<void(const TreeLine&)>;

constexpr u32 kNone = 0;  // the index of the root, which is not a child of any node

// One part of the names. Children are in the order of the names, each the `next` of the one before.
struct Node {
  std::string_view name;
  i64 tensor = -1;
  i64 bytes = 0;     // of all below
  u64 likeness = 0;  // equal for nodes whose contents have the same names, types and shapes
  u32 tensors = 0;   // of all below
  u32 first = kNone, last = kNone, next = kNone;
};

}  // namespace

// Two phases: insert() for every tensor in order and end() once, then each_line().
class NameTree::Nodes {
 public:
  Nodes(const Store& store, bool fold) : store_(store), fold_(fold) { nodes_.emplace_back(); }

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

  void end() {
    while (!path_.empty()) leave();
  }

  void each_line(const Visit& visit) const {
    const std::vector<u32> top = children(0);
    const std::map<u32, std::vector<u32>> ranks =
        fold_ ? ranks_among(top) : std::map<u32, std::vector<u32>>{};
    std::unordered_set<u32> in_line;
    for (const auto& [first, group] : ranks) in_line.insert(group.begin() + 1, group.end());
    for (u32 c : top) {
      if (in_line.contains(c)) continue;
      const auto group = ranks.find(c);
      if (group == ranks.end() &&
          (nodes_[c].tensors < 2 || nodes_[c].tensor >= 0 || is_number(nodes_[c].name)))
        append(c, "", {visit, 0, false});
      else
        append_root_branch(c, group == ranks.end() ? nullptr : &group->second, visit);
    }
  }

 private:
  // The place of lines: their depth, and whether others of that depth follow them below the same line.
  struct Place {
    const Visit& visit;
    int depth;
    bool more;

    Place followed_by(bool others) const { return {visit, depth, more || others}; }
    Place below() const { return {visit, depth + 1, false}; }
    void add(TreeLine line) const {
      line.depth = depth, line.last = !more;
      visit(line);
    }
  };

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
  // any case. The nodes below them move up in the list, so that only a few nodes are ever joined so.
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
      node.likeness = mixed_likeness(1, static_cast<u64>(dtype));
      for (i64 d : store_.dims(node.tensor))
        node.likeness = mixed_likeness(node.likeness, static_cast<u64>(d));
    }
    for (u32 c = node.first; c != kNone; c = nodes_[c].next) {
      node.tensors += nodes_[c].tensors;
      node.bytes += nodes_[c].bytes;
      node.likeness = mixed_likeness(
          mixed_likeness(node.likeness, std::hash<std::string_view>{}(nodes_[c].name)), nodes_[c].likeness);
    }
  }

  // `ranks`: of equal trees, the first of which the node has; null: there are none.
  void append_root_branch(u32 node, const std::vector<u32>* ranks, const Visit& visit) const {
    TreeLine branch;
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
    if (ranks) name_ranks(*ranks, branch);
    Place{visit, 0, false}.add(std::move(branch));
    append_children(node, "", {visit, 1, false});
  }

  // The files of ranks at the root whose trees are equal, by the first of them.
  std::map<u32, std::vector<u32>> ranks_among(const std::vector<u32>& top) const {
    std::map<std::pair<std::string_view, u64>, std::vector<u32>> alike;
    for (u32 c : top)
      if (auto rank = rank_in_name(nodes_[c].name); rank && nodes_[c].tensors > 1 && nodes_[c].tensor < 0)
        alike[{rank->second, nodes_[c].likeness}].push_back(c);
    std::map<u32, std::vector<u32>> out;
    for (auto& [key, group] : alike)
      if (group.size() > 1) out.emplace(group[0], std::move(group));
    return out;
  }

  // "mp_rank_{00_000,01_001}/model", of more than a few ranks the first and the last.
  void name_ranks(const std::vector<u32>& group, TreeLine& branch) const {
    constexpr std::size_t kMostNamed = 4;
    std::string ranks;
    for (std::size_t i = 0; i < group.size(); i++) {
      if (group.size() > kMostNamed && i > 1 && i + 1 < group.size()) continue;
      if (group.size() > kMostNamed && i == 1)
        ranks += ",...";
      else
        ranks += cat(i ? "," : "", rank_in_name(nodes_[group[i]].name)->first);
    }
    const std::string first(rank_in_name(nodes_[group[0]].name)->first);
    branch.label.replace(branch.label.find(first), first.size(), cat("{", ranks, "}"));
    branch.copies = std::ssize(group);
  }

  // "{exp_avg,exp_avg_sq,step}" of a node whose children are the states of one parameter, and are alike but
  // for counts; "" of any other.
  std::string states_below(u32 node) const {
    std::string out;
    std::optional<u64> likeness;
    if (!fold_ || nodes_[node].tensor >= 0 || nodes_[node].first == nodes_[node].last) return "";
    for (u32 c = nodes_[node].first; c != kNone; c = nodes_[c].next) {
      const Node& state = nodes_[c];
      if (state.tensor < 0 || state.first != kNone) return "";
      const bool count = is_counter(state.name);
      if (!count && !is_state_field(state.name)) return "";
      if (count && store_.shape(state.tensor).items() != 1) return "";
      if (!count && likeness && *likeness != state.likeness) return "";
      if (!count) likeness = state.likeness;
      out += cat(out.empty() ? "{" : ",", state.name);
    }
    return likeness ? out + "}" : "";
  }

  // The line of the states of a parameter, with the shape and type of the first that is not a count.
  TreeLine states_line(u32 node, std::string label, i64 copies) const {
    u32 shown = nodes_[node].first;
    while (is_counter(nodes_[shown].name)) shown = nodes_[shown].next;
    return {std::move(label), nodes_[shown].tensor, copies, nodes_[node].bytes, nodes_[node].tensors};
  }

  // Appends the node itself if it is a tensor, and what is below it, under names that begin with `prefix`.
  void append(u32 node, const std::string& prefix, const Place& place) const {
    std::string name = cat(prefix, nodes_[node].name);
    if (const std::string states = states_below(node); !states.empty())
      return place.add(states_line(node, cat(name, ".", states), 1));
    const bool branch = nodes_[node].first != kNone;
    if (nodes_[node].tensor >= 0) place.followed_by(branch).add(leaf(node, name, 1));
    if (branch) append_children(node, cat(name, joint_behind(nodes_[node].name)), place);
  }

  // The characters between this part and the next; only names of files have such suffixes.
  static std::string_view joint_behind(std::string_view part) { return has_torch_suffix(part) ? ":" : "."; }

  TreeLine leaf(u32 node, std::string label, i64 copies) const {
    return {std::move(label), nodes_[node].tensor, copies, nodes_[node].bytes, 1};
  }

  // Whether at least two children are numbers, so that each (or each kind) has a branch.
  bool repeats(u32 node) const {
    int numbered = 0;
    for (u32 c = nodes_[node].first; c != kNone && numbered < 2; c = nodes_[c].next)
      numbered += is_number(nodes_[c].name);
    return numbered > 1;
  }

  void append_children(u32 node, const std::string& prefix, const Place& place) const {
    std::vector<u32> all = children(node), numbered;
    for (u32 c : all)
      if (is_number(nodes_[c].name)) numbered.push_back(c);
    const bool several = numbered.size() > 1;
    if (several) std::erase_if(all, [&](u32 c) { return is_number(nodes_[c].name); });
    const std::map<u32, std::vector<u32>> experts =
        fold_ ? experts_among(all) : std::map<u32, std::vector<u32>>{};
    // The first of experts that are alike has a line for all.
    std::unordered_set<u32> in_line;
    for (const auto& [first, group] : experts) in_line.insert(group.begin() + 1, group.end());
    if (!in_line.empty()) std::erase_if(all, [&](u32 c) { return in_line.contains(c); });
    for (std::size_t i = 0; i < all.size(); i++) {
      const Place here = place.followed_by(several || i + 1 < all.size());
      if (auto group = experts.find(all[i]); group != experts.end())
        here.add(expert_line(group->second, prefix));
      else
        append(all[i], prefix, here);
    }
    if (several) append_numbered(std::move(numbered), prefix, place);
  }

  // Nodes that are alike as stretches of `numbered`, which is sorted for it; the first node's come first.
  std::vector<std::span<const u32>> alike_among(std::vector<u32>& numbered) const {
    auto likeness = [&](u32 c) { return nodes_[c].likeness; };
    std::ranges::stable_sort(numbered, {}, likeness);
    std::vector<std::span<const u32>> groups;
    for (std::size_t begin = 0, end = 0; begin < numbered.size(); begin = end) {
      while (end < numbered.size() && likeness(numbered[end]) == likeness(numbered[begin])) end++;
      groups.push_back(std::span(numbered).subspan(begin, end - begin));
    }
    std::ranges::sort(groups, {}, [](std::span<const u32> group) { return group[0]; });
    return groups;
  }

  void append_numbered(std::vector<u32> numbered, const std::string& prefix, const Place& place) const {
    const auto groups = fold_ ? alike_among(numbered) : std::vector<std::span<const u32>>();
    const std::size_t count = fold_ ? groups.size() : numbered.size();
    for (std::size_t i = 0; i < count; i++) {
      const std::span<const u32> group = fold_ ? groups[i] : std::span<const u32>(numbered).subspan(i, 1);
      const Place here = place.followed_by(i + 1 < count);
      std::string label =
          prefix + (group.size() == 1 ? std::string(nodes_[group[0]].name) : braced_ranges(names_of(group)));
      i64 copies = static_cast<i64>(group.size());
      const Node& first = nodes_[group[0]];
      if (first.tensor >= 0 && first.first == kNone) {
        here.add(leaf(group[0], std::move(label), copies));
        continue;
      }
      if (const std::string states = states_below(group[0]); !states.empty()) {
        here.add(states_line(group[0], cat(label, ".", states), copies));
        continue;
      }
      here.add({std::move(label), -1, copies, first.bytes, first.tensors});
      if (first.tensor >= 0) here.below().followed_by(true).add(leaf(group[0], "(itself)", 1));
      append_children(group[0], "", here.below());
    }
  }

  std::vector<std::string_view> names_of(std::span<const u32> group) const {
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

  TreeLine expert_line(const std::vector<u32>& group, const std::string& prefix) const {
    std::vector<std::string_view> numbers;
    for (u32 c : group) numbers.push_back(expert_name(nodes_[c].name)->number);
    const ExpertName first = *expert_name(nodes_[group[0]].name);
    return leaf(group[0], cat(prefix, first.stem, braced_ranges(numbers), first.ending), std::ssize(group));
  }

  // A part of the name that was inserted last.
  struct Step {
    std::size_t end;  // of the component in the name
    u32 node;
    Likenesses alike;
  };

  const Store& store_;
  bool fold_;
  std::deque<Node> nodes_;  // half a million nodes, which do not move when one is added
  std::string_view last_;   // the name that was inserted last, and the nodes on its way
  std::vector<Step> path_;
};

NameTree::NameTree(const Store& store, const std::vector<i64>& tensors, bool fold)
    : nodes_(std::make_unique<Nodes>(store, fold)) {
  for (i64 t : tensors) nodes_->insert(t);
  nodes_->end();
}

NameTree::~NameTree() = default;

void NameTree::each_line(const std::function<void(const TreeLine&)>& visit) const {
  nodes_->each_line(visit);
}

}  // namespace mckpt::impl
