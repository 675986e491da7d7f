// The board on which the ranks of one host see each other: memory that they share, with a place for each.
//
//   teller, told, status     which rank reports for all, whether it has, and the exit status of the job
//   place 0   lives | heartbeat, phase, waiting, calls, progress | left
//   place 1   ...
//
// `lives` is a robust mutex that a thread of the rank holds for as long as its process exists: when the process
// ends, however it ends, the kernel hands the mutex on to whoever asks next. So a death is seen at once, also
// where the process number says nothing, as in a container. The memory has no name and no file: it is gone with
// the last process that has it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/int.h"
#include "runtime/comm/activity.h"

namespace mckpt::impl {

// What a rank writes at its place.
struct Beat {
  using Text = std::array<char, 32>;  // ends with a 0
  i64 number = 0;                     // 0: none yet
  i64 calls = 0, progress = 0;        // as in Activity
  Text phase = {}, waiting = {};

  // Whether something went on between the two.
  bool same_activity(const Beat& other) const;
};
Beat beat_of(const Activity::Now& now);

class Board {
 public:
  // A new one with that many places, which others open by its id. Throws kRanksFailed.
  static Board make(int places);
  static Board open(i64 id, int places);
  Board(Board&& other) noexcept;
  Board(const Board&) = delete;
  ~Board();
  i64 id() const { return id_; }
  int places() const { return places_; }

  // Called by the one thread that then lives as long as the rank does.
  void begin(int place);
  void write(int place, const Beat& beat);
  Beat read(int place) const;
  void leave(int place);  // the rank is done: its end is no death
  bool has_left(int place) const;
  bool has_died(int place);

  // The place of the rank that reports for all; -1: none yet.
  int teller() const;
  // False where another rank was faster. pre: `before` is what teller() gave.
  bool become_teller(int place, int before = -1);
  void tell(int status);            // it has reported: the job ends with that status
  std::optional<int> told() const;  // the status

 private:
  struct Place;
  struct Shared;
  Board(i64 id, void* memory, int places);
  Place& at(int place) const;

  i64 id_;
  Shared* shared_;
  int places_;
};

}  // namespace mckpt::impl
