// Finds files of another save by their names, and by the numbers of steps that their objects have.
#include "io/saves/dcp_save.h"

#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/base/error.h"
#include "io/dcp/keys/key.h"
#include "io/file/folder.h"
#include "io/pickle/value.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kTakeWhole =
    "copy or save the folder again as a whole, into an empty one; `accept` MC1315 uses the files as they are";

// The object as an integer; nothing if it is something else or cannot be read.
std::optional<i64> number_of(const Store& store, i64 object) {
  try {
    std::shared_ptr<const PickleValue> value = store.object(object);
    return value && value->is_int() ? std::optional(value->as_int()) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The numbers of steps that the optimizer had made, each with the first file that has it. All parameters
// step together, and each rank's file has the objects of some of them, so more than one number means more
// than one save.
std::map<i64, i32> steps_by_file(const Store& store) {
  std::map<i32, i64> object_of;  // by file
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    const Object& object = store.objects()[o];
    if (object.file >= 0 && object.name.starts_with(kGroupMetaSection) && object.name.ends_with(".step"))
      object_of.emplace(object.file, o);
  }
  std::map<i64, i32> files;  // by step
  for (auto [file, object] : object_of)
    if (std::optional<i64> step = number_of(store, object)) files.emplace(*step, file);
  return files;
}

}  // namespace

void find_leftovers(const Folder& folder, const std::string& part, std::span<const std::string> named,
                    std::vector<Finding>& out) {
  std::set<std::string_view> known(named.begin(), named.end());
  for (const FolderEntry& e : folder.entries(part)) {
    std::string path = part.empty() ? e.name : cat(part, "/", e.name);
    if (!e.folder && is_dcp_data(e.name) && !known.contains(path) && folder.file_bytes(path).value_or(0) > 0)
      out.push_back({.code = Code::kMixedSaves,
                     .file = std::move(path),
                     .message = ".metadata does not name the file: it was left by another save",
                     .warning = true});
  }
}

std::vector<Finding> check_mixed(const Store& store) {
  std::vector<Finding> out;
  if (std::map<i64, i32> steps = steps_by_file(store); steps.size() > 1) {
    const auto& [first, a] = *steps.begin();
    const auto& [last, b] = *steps.rbegin();
    out.push_back({.code = Code::kMixedSaves,
                   .file = std::string(file_label(store, b)),
                   .message = cat("the optimizer had made ", counted(last, "step"), " in this file and ",
                                  first, " in ", file_label(store, a), ": the files are of different saves"),
                   .help = kTakeWhole});
  }
  std::string_view root = store.root();
  std::optional<i64> folder = iteration_number(root.substr(root.rfind('/') + 1));
  for (i64 o = 0; folder && o < std::ssize(store.objects()); o++) {
    if (store.objects()[o].name != "iteration") continue;
    std::optional<i64> iteration = number_of(store, o);
    if (iteration && *iteration != *folder)
      out.push_back({.code = Code::kMixedSaves,
                     .tensor = "iteration",
                     .message = cat("the name of the folder says iteration ", *folder,
                                    ", but its data say iteration ", *iteration),
                     .warning = true});
  }
  return out;
}

}  // namespace mckpt::impl
