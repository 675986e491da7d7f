// An error's advice about going on: the result that this process makes may be left half made, and the same
// command can go on with it.
#pragma once

#include <string>

namespace mckpt::impl {

class Error;

// From here on an unfinished result is beside `path`.
void note_staged_output(const std::string& path);

// The result has its name: an error that comes behind that says so.
void note_published_output();

// Adds to the error's help that the same command goes on: where the result is left half made and nothing is
// wrong with the command. Else a note names the folder that is left, and what becomes of it. Thread-safe.
void add_resume_help(Error& error);

}  // namespace mckpt::impl
