// The meaning of "Permission denied": the folder that this user may not enter, or the file that it may not
// read; whose it is, its mode, and what to do.
//
//    | expected the right to enter the folder /data/private
//    | found    mode 0700, owner uid 1001; mckpt runs as uid 1000
//   help: ask the owner for `chmod a+x /data/private`, or run mckpt as the owner
#pragma once

#include <string>

namespace mckpt::impl {

class Error;

// Whether an errno says that a right is missing.
bool is_about_rights(int number);
// Adds these facts to an error about a path that could not be opened for reading, if `number`, an errno, is
// about rights.
void explain_denied(Error& error, const std::string& path, int number);

}  // namespace mckpt::impl
