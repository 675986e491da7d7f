// The board as its processes see it: this one, and others that it makes.
#include "runtime/watch/board.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/base/error.h"

namespace mckpt::impl::board_test {
namespace {

// A process that takes a place of the board, says so by a heartbeat, and does something then.
class Rank {
 public:
  Rank(i64 board, int places, int place, const std::function<void(Board&)>& fate) : pid_(fork()) {
    if (pid_ != 0) return;
    Board own = Board::open(board, places);
    own.begin(place);
    own.write(place, beat_of({.phase = "work", .waiting = "barrier", .calls = 3, .progress = 4}));
    fate(own);
    for (;;) pause();
  }
  ~Rank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void end_by(int signal) const { kill(pid_, signal); }

 private:
  pid_t pid_;
};

void nothing(Board&) {}

template <typename Fn>
void wait_until(Fn&& fn) {
  for (int i = 0; i < 60'000 && !fn(); i++) usleep(1000);
  ASSERT_TRUE(fn());
}

TEST(Board, ShowsWhatAnotherProcessIsAt) {
  Board board = Board::make(3);
  EXPECT_EQ(board.read(2).number, 0);
  Rank rank(board.id(), 3, 2, nothing);
  wait_until([&] { return board.read(2).number == 1; });
  Beat beat = board.read(2);
  EXPECT_STREQ(beat.phase.data(), "work");
  EXPECT_STREQ(beat.waiting.data(), "barrier");
  EXPECT_EQ(beat.calls, 3);
  EXPECT_EQ(beat.progress, 4);
  EXPECT_EQ(board.read(1).number, 0);
}

TEST(Board, LongTextsAreCut) {
  Board board = Board::make(1);
  board.write(0, beat_of({.phase = "a phase of more than thirty-two letters"}));
  EXPECT_STREQ(board.read(0).phase.data(), "a phase of more than thirty-two");
  EXPECT_STREQ(board.read(0).waiting.data(), "");
}

// Before the parent has taken notice of it, however the process ends; a stopped one is alive.
TEST(Board, ADeathIsSeenAtOnceAndAStopIsNone) {
  for (int signal : {SIGKILL, SIGTERM}) {
    Board board = Board::make(2);
    EXPECT_FALSE(board.has_died(1));  // it did not begin
    Rank rank(board.id(), 2, 1, nothing);
    wait_until([&] { return board.read(1).number == 1; });
    rank.end_by(SIGSTOP);
    usleep(20'000);
    EXPECT_FALSE(board.has_died(1));
    rank.end_by(SIGCONT);
    EXPECT_FALSE(board.has_died(1));
    rank.end_by(signal);
    wait_until([&] { return board.has_died(1); });
    EXPECT_TRUE(board.has_died(1));  // and stays so
    EXPECT_FALSE(board.has_died(0));
  }
}

TEST(Board, ARankThatHasLeftDoesNotDie) {
  Board board = Board::make(2);
  Rank rank(board.id(), 2, 1, [](Board& own) {
    own.leave(1);
    _exit(0);
  });
  wait_until([&] { return board.has_left(1); });
  usleep(20'000);
  EXPECT_FALSE(board.has_died(1));
}

TEST(Board, OneRankTells) {
  Board board = Board::make(3);
  Board other = Board::open(board.id(), 3);
  EXPECT_EQ(board.teller(), -1);
  EXPECT_TRUE(other.become_teller(2));
  EXPECT_FALSE(board.become_teller(1));
  EXPECT_EQ(board.teller(), 2);
  EXPECT_TRUE(board.become_teller(1, 2));  // in place of one that died
  EXPECT_FALSE(other.told());
  board.tell(7);
  EXPECT_EQ(other.told(), 7);
}

TEST(Board, IsGoneWithItsLastProcess) {
  i64 id = Board::make(1).id();
  EXPECT_THROW(Board::open(id, 1), Error);
}

}  // namespace
}  // namespace mckpt::impl::board_test
