// A hidden folder that was there before the run, and which of its content the run may use. Others may have
// put anything there: in a shared folder such as /tmp the whole of .NAME.mckpt-tmp, with marks of the right
// plan.
//
//   .out.mckpt-tmp/                       of another account, or writable for others: refused
//     .plan  .replaces  .boot             marks: files of the folder's owner
//     .done                               kept if it is such a file
//     model-00001-of-00002.safetensors    a planned file: kept if it is such a file
//     model-00002... -> /home/me/thesis   a link, a second name of another file, a pipe: removed, made again
//     config.json  evil.py                not planned, or made again anyway: removed
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// Throws kOutputExists if the open folder, which this process did not make, belongs to another account, or
// may be written by more accounts than a folder that this process makes in it; kWriteFailed if none can be
// made.
void refuse_of_others(int fd, const std::string& folder);

// Removes everything but marks and these files, by their names in the folder: whatever is not a plain file
// with one name, of the owner of the folder, is not one of these files. Throws kWriteFailed.
void keep_only(const std::string& folder, const std::vector<std::string>& names);

}  // namespace mckpt::impl
