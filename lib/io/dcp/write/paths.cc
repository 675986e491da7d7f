// Reads the paths of planner_data from .metadata and turns each into positions of dots in the name, which
// is all that a writer needs (DcpName).
#include "io/dcp/write/paths.h"

#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/metadata/rows.h"
#include "io/dcp/write/layout.h"
#include "io/file/folder.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"
#include "io/store/names/dcp_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// pre: the parts, joined by dots, are the name; otherwise throws kBadMetadata.
DcpName name_of(std::string_view name, PickleValue path) {
  DcpName out{std::string(name), {}, {}};
  std::string joined;
  i32 count = 0;
  for (PickleValue part : path.tuple()) {
    if (count > 0) out.dots.push_back(static_cast<i32>(joined.size()));
    if (part.is_int()) out.numbers.push_back(count);
    if (!part.is_int() && !part.is(PickleValue::Kind::kText))
      throw Error(Code::kNotHeld,
                  "the path of an item in planner_data has a key that is neither a text nor a number")
          .tensor(name)
          .found(pickle_line(path, 200));
    if (count++ > 0) joined += '.';
    joined += part.is_int() ? cat(part.as_int()) : std::string(part.text());
  }
  if (joined != name)
    throw Error(Code::kBadMetadata,
                "the path in planner_data leads elsewhere, so torch does not find the item")
        .tensor(name)
        .found(pickle_line(path, 200));
  return out;
}

// Calls `take` with every name of planner_data and its path, in order; false if there is no planner_data.
// Records are reduced to rows as they are read, only to save their memory: nothing but planner_data is used.
template <typename Take>
bool for_paths(std::span<const u8> metadata, Take take) {
  DcpRows rows(std::ssize(metadata));
  PickleRules rules;
  rules.visitor = &rows;
  Pickle pickle(metadata, rules);
  PickleValue root = pickle.root();
  if (!root.is(PickleValue::Kind::kObject)) return false;
  const PickleValue* planner = root.as_object().field("planner_data");
  if (planner == nullptr || !planner->is(PickleValue::Kind::kDict)) return false;
  for (auto [key, path] : planner->entries())
    if (key.is(PickleValue::Kind::kText) && path.is(PickleValue::Kind::kTuple)) take(key.text(), path);
  return true;
}

// The names in the order of the save; nothing if there is no planner_data.
std::optional<std::vector<DcpName>> parse_names(std::span<const u8> metadata) {
  std::vector<DcpName> names;
  bool any = for_paths(
      metadata, [&](std::string_view name, PickleValue path) { names.push_back(name_of(name, path)); });
  return any ? std::optional(std::move(names)) : std::nullopt;
}

std::optional<DcpPaths> by_name(std::optional<std::vector<DcpName>> names) {
  if (!names) return std::nullopt;
  DcpPaths paths;
  for (DcpName& name : *names) {
    std::string text = name.text;
    paths.emplace(std::move(text), std::move(name));
  }
  return paths;
}

}  // namespace

// "optimizer.state.a.b.exp_avg": "a.b" is one key.
DcpName state_dict_state(std::string_view parameter, std::string_view field) {
  std::string front = cat(kStateSection, parameter);
  constexpr i32 kSection = static_cast<i32>(kStateSection.size()) - 1;
  return {cat(front, ".", field), {kOptimizerDot, kSection, static_cast<i32>(front.size())}};
}

// "optimizer.param_groups.0.lr"
DcpName state_dict_group(i64 group, std::string_view field) {
  std::string front = cat(kGroupListSection, group);
  constexpr i32 kList = static_cast<i32>(kGroupListSection.size()) - 1;
  return {cat(front, ".", field), {kOptimizerDot, kList, static_cast<i32>(front.size())}, {2}};
}

std::optional<std::vector<DcpName>> dcp_names(const Store& store) {
  Folder folder(store.root(), store.opening());
  if (!folder.has_file(kDcpMetadata)) return std::nullopt;
  InputFile file = folder.open_file(kDcpMetadata);
  return with_file(cat(store.root(), "/", kDcpMetadata),
                   [&] { return parse_names(file.read(0, file.size())); });
}

std::optional<DcpPaths> dcp_paths(const Store& store) { return by_name(dcp_names(store)); }

}  // namespace mckpt::impl
