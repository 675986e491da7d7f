#include "convert/compare/checks/one_sided.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "convert/compare/differences/one_side.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "hf/folder/known_assets.h"
#include "io/file/folder.h"
#include "io/store/names/hf_weights.h"

namespace mckpt::impl {

std::vector<std::string> assets_in(const Folder& folder, const AssetFolder& of) {
  std::vector<std::string> names = hf_assets(folder);
  if (of.of_a_run) std::erase_if(names, [](const std::string& name) { return !is_known_asset(name); });
  return names;
}

std::vector<OneSided> on_one_side(const Folder& a, const AssetFolder& of_a, const Folder& b,
                                  const AssetFolder& of_b, bool models) {
  std::vector<OneSided> alone;
  const bool runs = of_a.of_a_run || of_b.of_a_run;  // other folders there are of the run
  for (const auto& [one, of, other] : {std::tuple(&b, &of_b, &a), {&a, &of_a, &b}}) {
    const bool in_first = one == &a;
    const std::string given = of->given ? escaped(of->path, 4096) : "";
    for (const std::string& name : assets_in(*one, *of))
      if (!other->has_file(name)) alone.push_back({name, in_first, true, given});
    if (of->of_a_run) continue;
    for (const std::string& name : other_weights(*one))
      if (!other->has_file(name)) alone.push_back({name, in_first, models, given});
    if (runs) continue;
    const std::vector<std::string> others = folders_without_assets(*other);
    for (const std::string& name : folders_without_assets(*one))
      if (std::ranges::count(others, name) == 0) alone.push_back({name, in_first, false, given});
  }
  return alone;
}

std::vector<std::string> folders_of_both(const Folder& a, const AssetFolder& of_a, const Folder& b,
                                         const AssetFolder& of_b) {
  if (of_a.of_a_run || of_b.of_a_run) return {};
  std::vector<std::string> out = folders_without_assets(a);
  const std::vector<std::string> others = folders_without_assets(b);
  std::erase_if(out, [&](const std::string& name) { return std::ranges::count(others, name) == 0; });
  return out;
}

std::string folder_path(const AssetFolder& folder, const Store& side) {
  return folder.given ? escaped(folder.path, 4096) : side_path(side);
}

std::string alone_text(const Store& tested, const Store& source, std::span<const OneSided> alone) {
  std::vector<std::pair<std::string, std::vector<std::string>>> folders;
  for (const bool in_first : {false, true})
    for (const OneSided& file : alone) {
      if (file.in_first != in_first) continue;
      const std::string path = file.folder.empty() ? side_path(in_first ? tested : source) : file.folder;
      auto at = std::ranges::find(folders, path, [](const auto& f) { return f.first; });
      if (at == folders.end()) at = folders.insert(at, {path, {}});
      at->second.push_back(file.name);
    }
  std::string out;
  for (const auto& [path, names] : folders)
    out += cat(out.empty() ? "" : "; ", listed(names), ", which only ", path, " has");
  return out;
}

}  // namespace mckpt::impl
