// The marks of a folder that is being made: hidden files that only mckpt reads. They are removed after the
// last step of publishing.
//
//   .plan        what is made, from what, how and by which version of mckpt; and from publishing on, that all
//                of it is there (io/output/published.h)
//   .publish     the next text of .plan, for the moment before it takes the place of that file
//   .done        which tasks are done, and the sums of their bytes (io/copy/task_log.h)
//   .replaces    the identity of the folder that had the name of the result when --overwrite began
//   .boot        which start of the system it was, where data are written without fsync
//
// A mark is a small text: at most 8192 bytes of it are read.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

inline constexpr std::string_view kPlanMark = ".plan", kDoneMark = ".done", kReplacesMark = ".replaces",
                                  kBootMark = ".boot", kPublishMark = ".publish";
// A folder that is made for a moment, to see whose it is.
inline constexpr std::string_view kOwnerProbe = ".owner";

// Whether a name in a folder is a mark's, so not the name of a file of the result.
bool is_staging_mark(std::string_view name);

// Throws kBadPath for a file of a result, named by its path in it, that would be a mark or in a folder of
// that name, or the manifest: it would be lost, or taken for what mckpt writes there.
void refuse_own_name(std::string_view name);

// Whether the folder has any of the marks, of whatever text.
bool has_mark(const std::string& folder);
// The text of a mark; "" if the folder does not have the mark, or it cannot be read.
std::string read_mark(const std::string& folder, std::string_view name);
// Writes a mark; `durable`: with fsync. Returns 0, or an errno, and then the folder does not have the mark.
// pre: the folder does not have the mark.
int write_mark(const std::string& folder, std::string_view name, std::string_view text, bool durable);
// Gives .plan another text, at once: whenever the program is killed, it has the one or the other. The name is
// not made durable. Returns 0 or an errno.
int replace_plan(const std::string& folder, std::string_view text, bool durable);
// Removes all marks, .plan last. Returns 0 or an errno.
int remove_marks(const std::string& folder);

// A text that no other folder has that had, or will have, the same name: the folder's inode, and the
// time of its birth if the file system stores that ("1234 1763884800 5000"). "" if the path is not a folder.
std::string folder_identity(const std::string& path);

}  // namespace mckpt::impl
