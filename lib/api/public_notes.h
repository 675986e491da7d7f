// Notes and findings of the engine become notes and findings of the interface.
#pragma once

#include <vector>

#include "core/base/notes.h"
#include "io/store/finding.h"
#include "mckpt/finding.h"
#include "mckpt/observer.h"

namespace mckpt::impl {

// Without the blanks with which some notes are lined up on a screen.
mckpt::Note to_public(const Note& note);
std::vector<mckpt::Note> to_public(const Notes& notes);
mckpt::Finding to_public(const Finding& finding);

}  // namespace mckpt::impl
