// The list is in a folder from the checkpoint up to the path that was opened.
#include "convert/compare/checks/contents.h"

#include <utility>
#include <vector>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/store/open/verl_layout.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

void check_contents(const std::string& path, const Store& store, VerifyReport& report) {
  if (!store.traits.of_verl) return;
  std::vector<std::string> places{path};
  for (std::string p = store.root(); p.starts_with(cat(path, "/")); p.resize(p.rfind('/')))
    places.push_back(p);
  for (const std::string& place : places) {
    if (!is_folder(place, store.opening())) continue;
    const Folder folder(place, store.opening());
    if (!folder.has_file(std::string(kVerlContents))) continue;
    std::vector<Finding> lost = lost_beside_verl(folder);
    const i64 count = std::ssize(lost);
    if (count > 0) report.add({"contents", status_of(lost), count, "files"}, std::move(lost));
    return;
  }
}

}  // namespace mckpt::impl
