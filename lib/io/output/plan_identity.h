// The identity of a conversion: a text of all that decides the bytes of its result. It is stored with an
// unfinished result, so that a later run continues the same conversion and no other.
//
//   reshard 3f5a...e1                what is made, and a digest of every part
//   tp=2                             settings, with their values
//   source:9c11ab52e07f3d48          what is too long for the text: its digest
//   source~71d0b3aa02c45e96          what changes without its contents: times of a file's inode
//
// Two texts that differ say by their lines what is different.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {

// Collects the parts one after the other; the order counts. text() is called once, at the end.
class PlanIdentity {
 public:
  PlanIdentity(std::string_view mode, std::string_view version);  // of mckpt
  // A setting by its name in the library's options, such as "tp".
  template <typename T>
  PlanIdentity& set(std::string_view name, const T& value) {
    return setting(name, cat(value));
  }
  // A part that only its digest represents. `what` says what it is: "the files of the source".
  PlanIdentity& add(std::string_view what, std::string_view part);
  // The times of the last change (ctime) of files, which may be others although the part that was added under
  // the same name has the same contents.
  PlanIdentity& add_times(std::string_view what, std::string_view times);
  std::string text() { return mode_ + ' ' + sha_.hex_digest() + '\n' + lines_; }

 private:
  PlanIdentity& setting(std::string_view name, const std::string& value);
  void digest(std::string_view name, std::string_view part);
  PlanIdentity& add_digest(std::string_view what, char sign, std::string_view part);

  std::string mode_, lines_;
  Sha256 sha_;
};

// Differences between two texts, one sentence each: "`tp`: 2 in the first run, 4 in this one". `begun` may
// be a damaged text or one of another version. Empty if their lines are equal.
std::vector<std::string> plan_differences(std::string_view begun, std::string_view now);
// Whether two texts differ by what add_times() added, and by nothing else.
bool only_times_differ(std::string_view begun, std::string_view now);

}  // namespace mckpt::impl
