#include "runtime/watch/judge.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/unit/runtime/hosts.h"

namespace mckpt::impl {
namespace {

Team team_of(std::vector<std::string> hosts) {
  Team team;
  for (const std::string& host : hosts)
    team.ranks.push_back({team.size(), host_named(host), 100 + team.size()});
  return team;
}

struct Known {
  double silent_s, still_s;
  const char *phase, *waiting;  // "": it waits for nobody
  i64 calls = 0;
  bool left = false;
};

Beat numbered(i64 number, const Activity::Now& now) {
  Beat beat = beat_of(now);
  beat.number = number;
  return beat;
}

std::vector<RankState> states_of(const std::vector<Known>& all) {
  std::vector<RankState> states;
  for (const Known& k : all) {
    RankState& s = states.emplace_back();
    s.hear(numbered(1, {.phase = k.phase, .waiting = k.waiting, .calls = k.calls, .progress = 0}));
    s.silent_s = k.silent_s, s.still_s = k.still_s, s.left = k.left;
  }
  return states;
}

TEST(WatchJudge, BlamesTheOneThatTheOthersWaitFor) {
  struct Case {
    const char* name;
    std::vector<Known> ranks;
    std::string message;  // "" all is well
  };
  const Known works{0, 1, "load", ""}, waits{0, 99, "load", "barrier", 5};
  const Case cases[] = {
      {"all work", {works, works, works}, ""},
      {"some wait for long", {works, waits, waits}, ""},
      {"one is silent",
       {works, {6, 6, "load", ""}, waits},
       "rank 1 (host h, process 101) does not answer: no heartbeat for 6 s, last in phase 'load'"},
      {"the one that is silent for longest",
       {works, {6, 6, "load", ""}, {7.26, 8, "save", "barrier"}},
       "rank 2 (host h, process 102) does not answer: no heartbeat for 7.3 s, last in phase 'save'"},
      {"one that is silent has left", {works, {6, 6, "load", "", 0, true}, waits}, ""},
      {"one hangs while the others wait longer",
       {{0, 98, "load", ""}, waits, waits},
       "rank 0 (host h, process 100) hangs in phase 'load': no progress for 98 s"},
      {"one is slow", {{0, 19.9, "load", ""}, waits, waits}, ""},
      {"silence counts before hanging",
       {{0, 98, "load", ""}, {6, 6, "load", ""}, waits},
       "rank 1 (host h, process 101) does not answer: no heartbeat for 6 s, last in phase 'load'"},
      {"all wait for each other",
       {waits, {0, 99, "load", "all_gather", 4}, waits},
       "every rank has waited for other ranks for 99 s; rank 1 (host h, process 101) is behind, in "
       "all_gather of "
       "phase 'load'"},
      {"all wait, but not for long", {waits, {0, 19, "load", "all_gather", 4}, waits}, ""},
      {"the others have left one behind",
       {{0, 99, "", "leaving", 5, true}, waits, {0, 99, "", "leaving", 5, true}},
       "every rank has waited for other ranks for 99 s; rank 1 (host h, process 101) is behind, in barrier "
       "of phase "
       "'load'"},
  };
  Team team = team_of({"h", "h", "h"});
  for (const Case& c : cases) {
    std::optional<Error> cause = judge(team, states_of(c.ranks), {.silence_s = 5, .phase_s = 20});
    EXPECT_EQ(cause ? cause->message() : "", c.message) << c.name;
  }
}

TEST(WatchJudge, WithoutAPhaseLimitNobodyHangs) {
  Team team = team_of({"h", "h"});
  EXPECT_FALSE(judge(team, states_of({{0, 1e9, "load", ""}, {0, 1e9, "load", "barrier"}}),
                     {.silence_s = 5, .phase_s = 0}));
}

// Another host's ranks may be slow, and are not known to this one.
TEST(WatchJudge, WhereOtherHostsHaveRanksWaitingIsNoError) {
  Team team = team_of({"h", "h"});
  std::vector<RankState> all_wait =
      states_of({{0, 99, "load", "barrier", 5}, {0, 99, "load", "all_gather", 4}});
  EXPECT_TRUE(judge(team, all_wait, {.silence_s = 5, .phase_s = 20}));
  team.whole_job = false;
  EXPECT_FALSE(judge(team, all_wait, {.silence_s = 5, .phase_s = 20}));
}

TEST(WatchJudge, ARankWithoutANewHeartbeatStaysSilent) {
  RankState rank = states_of({{3, 3, "load", ""}})[0];
  rank.hear(numbered(1, {}));
  EXPECT_EQ(rank.silent_s, 3);
  rank.hear(numbered(2, {}));
  EXPECT_EQ(rank.silent_s, 0);
}

TEST(WatchJudge, ProgressIsAnyChangeOfWhatIsTold) {
  RankState rank = states_of({{3, 3, "load", "", 1}})[0];
  i64 number = 1;
  auto still_after = [&](const Activity::Now& told) {
    rank.silent_s = rank.still_s = 3;
    rank.hear(numbered(++number, told));
    EXPECT_EQ(rank.silent_s, 0);
    return rank.still_s;
  };
  EXPECT_EQ(still_after({"load", "", 1, 0}), 3);
  EXPECT_EQ(still_after({"load", "", 1, 1}), 0);
  EXPECT_EQ(still_after({"save", "", 1, 1}), 0);
  EXPECT_EQ(still_after({"save", "barrier", 1, 1}), 0);
  EXPECT_EQ(still_after({"save", "barrier", 2, 1}), 0);
  EXPECT_EQ(still_after({"save", "barrier", 2, 1}), 3);
}

TEST(WatchTeam, NamesOfHostsAreEscaped) {
  EXPECT_EQ(team_of({"a\x1b"}).name(0), "rank 0 (host a\\x1b, process 100)");
}

}  // namespace
}  // namespace mckpt::impl
