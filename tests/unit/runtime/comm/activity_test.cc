#include "runtime/comm/activity.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace mckpt::impl {
namespace {

Activity activity;

TEST(Activity, TheInnermostPhaseCounts) {
  EXPECT_EQ(activity.now().phase, "prepare");
  {
    Phase outer(activity, "load");
    EXPECT_EQ(activity.now().phase, "load");
    {
      Phase inner(activity, "read");
      EXPECT_EQ(activity.now().phase, "read");
    }
    EXPECT_EQ(activity.now().phase, "load");
  }
  EXPECT_EQ(activity.now().phase, "prepare");
}

TEST(Activity, ItsNamesStayAfterThePhase) {
  std::string name = "load";
  Activity::Now told;
  {
    Phase phase(activity, name.c_str());
    told = activity.now();
  }
  name = "save";
  EXPECT_EQ(told.phase, "load");
}

// Whether something went on since the last call.
bool goes_on() {
  static i64 last = 0;
  i64 now = activity.now().progress;
  return std::exchange(last, now) != now;
}

TEST(Activity, WhateverHappensIsProgress) {
  goes_on();
  EXPECT_FALSE(goes_on());
  activity.made_progress();
  EXPECT_TRUE(goes_on());
  {
    std::atomic<i64> bytes = 0;
    Phase phase(activity, "write", &bytes);
    EXPECT_TRUE(goes_on());
    EXPECT_FALSE(goes_on());
    bytes += 1000;
    EXPECT_TRUE(goes_on());
    {
      Phase inner(activity, "sync");
      goes_on();
      bytes++;  // not of this phase
      EXPECT_FALSE(goes_on());
    }
    goes_on();
    bytes++;
    EXPECT_TRUE(goes_on());
  }
  goes_on();
  EXPECT_FALSE(goes_on());
}

TEST(Activity, TellsInWhichCallItWaits) {
  i64 calls = activity.now().calls;
  {
    Waiting waiting(activity, "barrier");
    EXPECT_EQ(activity.now().waiting, "barrier");
    goes_on();
  }
  EXPECT_EQ(activity.now().waiting, "");
  EXPECT_EQ(activity.now().calls, calls + 1);
  EXPECT_TRUE(goes_on());
}

}  // namespace
}  // namespace mckpt::impl
