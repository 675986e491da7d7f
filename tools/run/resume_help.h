// What an error says about --resume: the result that this process makes may be left half made where the same
// command can go on with it.
#pragma once

#include <string>

namespace mckpt::impl {

class Error;

// From here on an unfinished result is beside `path`. `overwrite`: the command was given --overwrite.
void note_staged_output(const std::string& path, bool overwrite);

// The result has its name: an error that comes behind that says so.
void note_published_output();

// Adds to the error's help that the command can go on with --resume: where the result is left half made, the
// error says nothing against what it is made from, and going on would not be refused. Else a note names the
// folder that is left. Thread-safe.
void add_resume_help(Error& error);

}  // namespace mckpt::impl
