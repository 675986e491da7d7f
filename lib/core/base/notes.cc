// A note or a warning is appended; the notes of a step go behind the notes before it.
#include "core/base/notes.h"

#include <iterator>
#include <utility>

namespace mckpt::impl {

void Notes::note(std::string text) { list_.push_back({Note::Kind::kNote, std::move(text)}); }
void Notes::warn(std::string text) { list_.push_back({Note::Kind::kWarning, std::move(text)}); }

void Notes::append(Notes more) {
  list_.insert(list_.end(), std::make_move_iterator(more.list_.begin()),
               std::make_move_iterator(more.list_.end()));
}

}  // namespace mckpt::impl
