// Walks containers and gives every tensor in them a dotted name. The limits are far above what a real file
// has: they are for files made to make a reader run for ever.
#include "io/torch/table/walk.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/pickle/arena.h"
#include "io/pickle/keys.h"
#include "io/pickle/pickle.h"
#include "io/store/finding.h"
#include "io/torch/table/attached.h"
#include "io/torch/table/table.h"
#include "io/torch/table/tensor.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr int kMostDepth = PickleArena::kMostDepth + 1;
constexpr i64 kOnPath = -1;
constexpr i64 kMany = i64{1} << 40;  // counts stop there
// Names of one tensor by way of shared containers: real files have a few, a file made of doubled dicts has
// 2^40.
constexpr i64 kMostNames = 8, kSpareNames = 1000;
// Values that are not tensors are the steps of an optimizer, each beside some tensors, and the attributes of
// parameters, of which one takes few bytes of a pickle that names it once, and its tensor's name of the names
// here.
constexpr i64 kNameBytes = i64{4} << 20, kNameBytesPerByte = 4;
constexpr i64 kObjects = i64{1} << 16, kBytesPerObject = 32;

// A number as Python compares keys: 1, True and 1.0 are one key, and so are 0.0 and -0.0. A float beyond the
// integers of 64 bits equals no other kind of number. Nothing for a NaN, which equals no key, not even
// itself.
using KeyNumber = std::variant<i64, double>;
std::optional<KeyNumber> number_of(PickleValue key) {
  if (key.is(Kind::kBool)) return key.as_bool() ? 1 : 0;
  if (key.is_int()) return key.as_int();
  if (!key.is(Kind::kFloat) || std::isnan(key.as_float())) return std::nullopt;
  const double number = key.as_float();
  if (std::trunc(number) != number || number < -0x1p63 || number >= 0x1p63) return number;
  return static_cast<i64>(number);
}

}  // namespace

template <typename Visit>
void TorchWalk::each_part(PickleValue v, Visit&& visit) {
  i64 index = 0;
  for (PickleValue item : v.items()) visit([&] { return cat(index++); }, item);
  for (PickleEntry e : v.entries()) visit([&] { return key_name(e.key); }, e.value);
  if (!v.attributes().is_none()) visit([] { return std::string("(attributes)"); }, v.attributes());
  if (!v.is(Kind::kObject)) return;
  const PickleObject& o = v.as_object();
  if (o.args.size() > 0) visit([] { return std::string("(args)"); }, o.args);
  if (o.state.is(Kind::kDict))
    each_part(o.state, visit);  // its fields stand for the object's
  else if (!o.state.is_none())
    visit([] { return std::string("(state)"); }, o.state);
  if (!o.items.is_none()) each_part(o.items, visit);
}

// The root is a dict in nearly every file; a single tensor is called "tensor", any other value "value".
void TorchWalk::run() {
  PickleValue root = table_.pickle_->root();
  check_count(count_tensors(root));
  if (root.is(Kind::kDict) || (count_of(root) > 0 && !is_torch_tensor(root))) return walk_parts(root);
  path_.push_back(is_torch_tensor(root) ? "tensor" : "value");
  walk(root);
}

// Neither the depth that the interpreter knows nor a set of visited values bounds the walk: values can be
// put into containers that are in others already.
void TorchWalk::descend() {
  if (++depth_ > kMostDepth)
    throw Error(Code::kPickleLimit, "the pickle's structure is nested too deep")
        .expected(cat("at most ", kMostDepth));
}

// The names that the tensors below `v` would get; each way to a shared container counts.
i64 TorchWalk::count_tensors(PickleValue v) {
  const PickleNode* node = v.node();
  if (node == nullptr || node->depth == 0) return 0;  // plain values
  if (node->shared) {
    auto [it, is_new] = counts_.try_emplace(node, kOnPath);
    if (!is_new) return std::max<i64>(it->second, 0);  // a cycle leads nowhere new
  }
  i64 count = 0;
  bool tensor = is_torch_tensor(v);
  if (tensor) {
    count = 1;
    distinct_tensors_++;
    for (const AttachedValue& more : attached_values(v)) {
      descend();
      count = std::min(kMany, count + count_tensors(more.value));
      depth_--;
    }
  } else if (!v.is(Kind::kStorage)) {
    check_tensor_keys(v);
    descend();
    each_part(v, [&](auto&&, PickleValue part) { count = std::min(kMany, count + count_tensors(part)); });
    depth_--;
  }
  // A tensor with one owner is met once, and nobody asks how many there are below it.
  if (node->shared || (count > 0 && !tensor)) counts_[node] = count;
  return count;
}

i64 TorchWalk::count_of(PickleValue v) const {
  auto it = counts_.find(v.node());
  return it == counts_.end() ? 0 : it->second;
}

// Throws kPickleLimit where shared containers would give each tensor many names.
void TorchWalk::check_count(i64 count) const {
  i64 most = kMostNames * distinct_tensors_ + kSpareNames;
  if (count <= most) return;
  throw Error(Code::kPickleLimit,
              cat("shared containers give ", distinct_tensors_, " tensors too many names (structure)"))
      .expected(cat("at most ", most, " names, the limit"))
      .found(count == kMany ? cat("more than ", kMany) : cat(count));
}

void TorchWalk::walk(PickleValue v) {
  if (is_torch_tensor(v)) {
    tensor(v);
    return attached(v);
  }
  if (std::string_view what = unsupported_tensor(v); !what.empty())
    table_.add_finding({.code = Code::kUnsupportedTensor,
                        .tensor = joined(false),
                        .message = cat("this is ", what, ": unsupported")});
  if (count_of(v) <= 0) return object(v);
  walk_parts(v);
}

// A container counts as empty while the walk is in it, so that a cycle ends.
void TorchWalk::walk_parts(PickleValue v) {
  descend();
  // On the way down a container counts as empty, so that a cycle ends; its count comes back on the way up.
  i64& here = counts_[v.node()];
  i64 count = std::exchange(here, kOnPath);
  check_keys(v);
  table_.nesting_ += nesting_of(v);
  each_part(v, [&](auto&& part_name, PickleValue part) {
    // A module's own notes (_metadata) are not an entry of its state dict.
    if (part == v.attributes() && !part.is_none() && count_of(part) <= 0 && !is_torch_tensor(part)) return;
    path_.push_back(part_name());
    walk(part);
    path_.pop_back();
  });
  here = count;
  depth_--;
}

// A duplicate key is a finding: Python keeps the last of two entries, and a reader that keeps the first
// sees another model. To Python 1, True and 1.0 are one key.
void TorchWalk::check_keys(PickleValue dict) {
  NameSet<std::string_view> keys;
  std::map<KeyNumber, std::string> numbers;
  keys.reserve(static_cast<std::size_t>(dict.size()));
  auto add = [&](std::string what) {
    table_.add_finding({.code = Code::kBadPickle, .message = cat("in one dict the key ", what)});
  };
  for (PickleEntry e : dict.entries()) {
    if (e.key.is(Kind::kText) && !keys.insert(e.key.text()).second)
      add(cat("'", escaped(e.key.text()), "' is a duplicate: it occurs twice"));
    const std::optional<KeyNumber> number = number_of(e.key);
    if (!number) continue;
    const std::string shown = key_name(e.key);
    auto [at, is_new] = numbers.emplace(*number, shown);
    if (!is_new)
      add(cat(shown, " is a duplicate: ",
              at->second == shown ? std::string("it occurs twice")
                                  : cat("to Python it is the key ", at->second)));
  }
}

// The order of a dict's entries does not count, so the sum is one of single facts.
u64 TorchWalk::nesting_of(PickleValue container) const {
  const std::string path = joined(false);
  auto fact = [&](std::string_view what, std::string_view key) {
    return std::hash<std::string>()(cat(path, std::string(1, '\0'), what, std::string(1, '\0'), key));
  };
  if (!container.is(Kind::kDict)) return fact("kind", std::to_string(static_cast<int>(container.kind())));
  u64 sum = 0;
  for (PickleEntry e : container.entries()) {
    if (!e.key.is(Kind::kText)) {
      sum += fact("key", key_name(e.key));
    } else if (e.key.text().find('.') != std::string_view::npos) {
      sum += fact("dots", e.key.text());
    }
  }
  return sum;
}

// A tensor in a key has no name, but torch makes it, too.
void TorchWalk::check_tensor_keys(PickleValue v) {
  if (v.is(Kind::kObject)) v = v.as_object().items;
  for (PickleEntry e : v.entries()) check_tensor_key(e.key);
}

void TorchWalk::check_tensor_key(PickleValue key) {
  for (PickleValue part : key.tuple()) check_tensor_key(part);
  if (!is_torch_tensor(key)) return;
  try {
    for (const TorchTensor& t : read_torch_tensors(key, meshes_))
      if (!t.nothing) check_torch_view(t);
  } catch (const Error& error) {
    Finding f = to_finding(error);
    f.message = cat("a tensor is the key of a dict: ", f.message);
    table_.add_finding(std::move(f));
  }
}

void TorchWalk::tensor(PickleValue v) {
  std::string name = unique_name(names_);
  try {
    std::vector<TorchTensor> pieces = read_torch_tensors(v, meshes_);
    for (const TorchTensor& t : pieces)
      if (!t.nothing) check_torch_view(t);
    for (const TorchTensor& t : pieces) table_.add(name, dict_bytes(name), t);
  } catch (const Error& e) {
    Finding f = to_finding(e);
    f.tensor = name;
    table_.add_finding(std::move(f));
  }
}

// An attribute may lead back to its tensor, which has its name already, so the walk ends there.
void TorchWalk::attached(PickleValue v) {
  const std::vector<AttachedValue> values = attached_values(v);
  if (values.empty()) return;
  i64& here = counts_[v.node()];
  const i64 count = std::exchange(here, kOnPath);
  if (count == kOnPath) return;
  descend();
  for (const AttachedValue& more : values) {
    path_.push_back(more.name);
    walk(more.value);
    path_.pop_back();
  }
  depth_--;
  here = count;
}

void TorchWalk::object(PickleValue v) {
  i64 most = kObjects + table_.pickle_->stored_bytes() / kBytesPerObject;
  if (std::ssize(table_.objects_) >= most)
    throw Error(Code::kPickleLimit, "the pickle has too many values that are not tensors")
        .expected(cat("at most ", most, " in a pickle of ", table_.pickle_->stored_bytes(), " stored bytes"));
  table_.objects_.push_back({unique_name(object_names_), v});
}

// The path as a name.
std::string TorchWalk::joined(bool escape_dots) const {
  std::string out;
  for (const std::string& part : path_) {
    if (&part != &path_.front()) out += '.';
    if (!escape_dots) {
      out += part;
      continue;
    }
    for (char c : part) {
      if (c == '.' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

// The part of the name that leads to the container of the last key.
i64 TorchWalk::dict_bytes(std::string_view name) const {
  i64 last = std::ssize(path_.back()), bytes = std::ssize(path_) - 1;
  for (const std::string& part : path_) bytes += std::ssize(part);
  return bytes == std::ssize(name) && name.ends_with(path_.back()) ? bytes - last : 0;
}

// The name that no earlier tensor, or object, has; see table.h for the rule.
std::string TorchWalk::unique_name(NameSet<std::string>& taken) {
  std::string name = joined(false);
  if (!taken.insert(name).second) {
    std::string escaped_name = joined(true);
    name = escaped_name;
    for (int n = 2; !taken.insert(name).second; n++) name = cat(escaped_name, "#", n);
  }
  name_bytes_ += static_cast<i64>(name.size());
  if (i64 most = kNameBytes + kNameBytesPerByte * table_.pickle_->stored_bytes(); name_bytes_ > most)
    throw Error(Code::kPickleLimit, "the names of all tensors together are too long")
        .expected(cat("at most ", most, " bytes"));
  return name;
}

}  // namespace mckpt::impl
