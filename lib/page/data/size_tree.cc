// Adds every tensor along the way of its name, then stores equal branches once.
#include "page/data/size_tree.h"

#include <array>
#include <map>
#include <unordered_map>

#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kParts = static_cast<std::size_t>(ModulePart::kOther) + 1;

struct Branch {
  std::vector<std::string> labels{};  // of the children, in the order in which they came
  std::map<std::string, Branch, std::less<>> children{};
  i64 items = 0, tensors = 0;
  std::array<i64, kParts> bytes{};  // by part

  i64 all_bytes() const {
    i64 sum = 0;
    for (i64 b : bytes) sum += b;
    return sum;
  }
  Branch& child(std::string_view label) {
    auto known = children.find(label);
    if (known == children.end()) {
      labels.emplace_back(label);
      known = children.emplace(label, Branch{}).first;
    }
    return known->second;
  }
};

// The parts of the name from the root to the tensor: a layer and the list of experts are parts of their own.
std::vector<std::string> way_to(std::string_view name) {
  const TensorPlace place = tensor_place(name);
  std::string path = place.layer < 0 ? "" : cat(place.section, '.', place.layer, '.');
  path += place.kind();
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

class TreeMaker {
 public:
  TreeMaker(i64 least_bytes, SizeTree& tree) : least_bytes_(least_bytes), tree_(tree) {}

  // Branches with a single child have the child's node: "norm" and "weight" are one label, "norm.weight".
  i64 node(const Branch& branch) {
    SizeNode node{.bytes = branch.all_bytes(), .items = branch.items, .tensors = branch.tensors};
    std::size_t most = 0;
    for (std::size_t p = 0; p < kParts; p++)
      if (branch.bytes[p] > branch.bytes[most]) most = p;
    node.part = static_cast<ModulePart>(most);
    const bool small = node.bytes < least_bytes_ && !branch.children.empty();
    tree_.cut |= small;
    for (const std::string& label : small ? std::vector<std::string>() : branch.labels) {
      const Branch* child = &branch.children.find(label)->second;
      std::string text = label;
      while (child->labels.size() == 1) {
        text += cat('.', child->labels[0]);
        child = &child->children.begin()->second;
      }
      node.children.emplace_back(std::move(text), this->node(*child));
    }
    std::string key = cat(node.bytes, ' ', node.items, ' ', node.tensors, ' ', most);
    for (const auto& [label, number] : node.children) key += cat('\n', label, '\n', number);
    auto [known, fresh] = numbers_.try_emplace(std::move(key), std::ssize(tree_.nodes));
    if (fresh) tree_.nodes.push_back(std::move(node));
    return known->second;
  }

 private:
  const i64 least_bytes_;
  SizeTree& tree_;
  std::unordered_map<std::string, i64> numbers_;
};

}  // namespace

SizeTree size_tree(const Store& store, std::span<const i64> tensors, i64 most) {
  Branch root;
  for (i64 t : tensors) {
    const std::string_view name = store.name(t);
    const i64 items = Shape(store.dims(t)).items();
    const i64 bytes = (items * dtype_info(store.dtype(t)).bits + 7) / 8;
    const std::size_t part = static_cast<std::size_t>(module_part(name));
    Branch* at = &root;
    for (std::size_t step = 0; auto& label : way_to(name)) {
      if (step++ == 0) root.items += items, root.tensors++, root.bytes[part] += bytes;
      at = &at->child(label);
      at->items += items, at->tensors++, at->bytes[part] += bytes;
    }
  }
  for (i64 least = 0;; least = std::max<i64>(least * 4, root.all_bytes() / 100'000 + 1)) {
    SizeTree tree;
    tree.root = TreeMaker(least, tree).node(root);
    if (std::ssize(tree.nodes) <= most || least > root.all_bytes()) return tree;
  }
}

}  // namespace mckpt::impl
