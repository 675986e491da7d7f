// The marks of a folder that is being made. They are hidden files of mckpt alone, and are removed after the
// last step of publishing; a result that still has them is whole, and --resume does what is left.
//
//   .plan        of what, how and by which version the folder is made
//   .done        which tasks are done (io/copy/task_log.h)
//   .replaces    the folder that had the name of the result when --overwrite was asked to replace it
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

inline constexpr std::string_view kPlanMark = ".plan", kDoneMark = ".done", kReplacesMark = ".replaces";

bool is_staging_mark(std::string_view name);

// The text of a mark; "" where the folder has none.
std::string read_mark(const std::string& folder, std::string_view name);
// Returns 0, or an errno: then there is no mark. pre: the folder has none of the name.
int write_mark(const std::string& folder, std::string_view name, std::string_view text, bool durable);
// Returns 0 or an errno.
int remove_marks(const std::string& folder);

// Tells a folder from every other one that had, or will have, its name: by its inode and the time of its
// birth, where the file system keeps that. "" where the path leads to no folder.
std::string folder_identity(const std::string& path);

}  // namespace mckpt::impl
