// Prints the notes that a result of the library carries. The library returns remarks as values and prints
// nothing; a command calls this when it has the result.
#pragma once

namespace mckpt::impl {

class Notes;
struct GlobalFlags;

// One line for each on stderr, in their order: notes as note() prints them, warnings as warn() does.
void print_notes(const GlobalFlags& flags, const Notes& notes);

}  // namespace mckpt::impl
