// The board on which the ranks of one host see each other: memory that they share, with a place for each.
//
//   teller, told, status     which rank reports for all, whether it has reported, and the exit status of the job
//   place 0   lives | heartbeat, phase, waiting, calls, progress | left
//   place 1   ...
//
// `lives` is a robust mutex that a thread of the rank holds for as long as its process exists: when the
// process ends, however it ends, the kernel gives the mutex to the next rank that asks. So a death is seen at
// once, also in containers, where a rank cannot ask for the process number of another. The memory has no name
// and no file: it is freed with the last process that has it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/int.h"
#include "runtime/comm/activity.h"

namespace mckpt::impl {

// The heartbeat that a rank writes at its place: what its Activity was at that moment.
struct Beat {
  using Text = std::array<char, 32>;  // ends with a 0
  i64 number = 0;                     // counts the heartbeats; 0: none yet
  i64 calls = 0, progress = 0;        // as in Activity
  Text phase = {}, waiting = {};

  // False if the rank made progress between the two heartbeats, or is in another phase or call.
  bool same_activity(const Beat& other) const;
};
Beat beat_of(const Activity::Now& now);

// The memory, mapped into this process. Movable; every process writes only its own place and the teller's
// fields, which are atomic. No function waits for another rank.
class Board {
 public:
  // make() creates a board with that many places, which other processes open by its id. pre: all that open
  // the board have done so before the maker ends. Both throw kRanksFailed.
  static Board make(int places);
  static Board open(i64 id, int places);
  Board(Board&& other) noexcept;
  Board(const Board&) = delete;
  ~Board();
  i64 id() const { return id_; }
  int places() const { return places_; }

  // Marks the rank as alive. Called by the one thread that lives as long as the rank.
  void begin(int place);
  void write(int place, const Beat& beat);
  Beat read(int place) const;
  void leave(int place);  // the rank is done: the end of its process is not a death
  bool has_left(int place) const;
  bool has_died(int place);

  // The place of the rank that reports for all; -1: none yet.
  int teller() const;
  // Makes the rank of `place` the teller. False if another rank was faster. pre: `before` is a result of
  // teller().
  bool become_teller(int place, int before = -1);
  void tell(int status);            // the teller has reported: the job ends with that status
  std::optional<int> told() const;  // that status; nothing before tell()

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
