// Notes are what a step of the library has to say beside its result: a choice that it made, something that it
// skipped, something odd. A result carries the notes of its making as values; who called the step decides
// whether and how they are shown.
//
//   model.notes()   note     dp=2 chosen, the smallest that works
//                   warning  args: num_experts keeps its old value
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

// One remark. A warning is something that may be wrong; a note is something that the user may want to know.
struct Note {
  enum class Kind { kNote, kWarning };

  Kind kind = Kind::kNote;
  std::string text{};  // one line, without a full stop at its end
};

// In the order in which the steps made them.
class Notes {
 public:
  void note(std::string text);
  void warn(std::string text);
  void append(Notes more);

  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<Note> list_;
};

}  // namespace mckpt::impl
