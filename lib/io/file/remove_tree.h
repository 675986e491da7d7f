// Removes folders with all that is in them, but nothing that is mounted there: a folder of a result may be
// the place of a mount, and behind a bind mount may be the model that the result is made from.
//
//   ck/release/            removed
//     __0_0.distcp         removed
//     hf_assets/           another file system, or another folder, is mounted here: never entered
//
// A folder is opened first and judged by what was opened, so that a mount that comes in between is not
// entered either. Links are removed and not followed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// Whether the opened folder or file `fd` is on another mount than `above`, the folder that contains it.
using IsMount = std::function<bool(int fd, int above)>;
// The kernel's answer: the root of a mount, another device, or another number of the mount.
bool is_other_mount(int fd, int above);

// The paths below the folder, from it, at which something is mounted: "hf_assets". Mounted folders are not
// looked into. Folders that cannot be opened count as none: they cannot be emptied either.
std::vector<std::string> mounts_below(const std::string& folder, const IsMount& is_mount = is_other_mount);

// Why something was not removed. `error` 0: everything was.
struct RemovalFault {
  int error = 0;       // an errno; EBUSY where something is mounted
  std::string path{};  // from the folder; "" for the folder itself
};

// Removes the folder, or all that is in it. Removes nothing if something is mounted below it. A folder that
// does not exist is not a fault. `last`: a name in it that is removed after all others.
RemovalFault remove_tree(const std::string& folder, const IsMount& is_mount = is_other_mount,
                         std::string_view last = "");
RemovalFault empty_tree(const std::string& folder, const IsMount& is_mount = is_other_mount,
                        std::string_view last = "");

// The text of a fault in a message: "Device or resource busy (hf_assets: something is mounted there)".
std::string fault_text(const RemovalFault& fault);

}  // namespace mckpt::impl
