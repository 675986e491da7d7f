#include "runtime/watch/activity.h"

#include <gtest/gtest.h>

#include <utility>

namespace mckpt {
namespace {

TEST(Activity, TheInnermostPhaseCounts) {
  EXPECT_STREQ(current_activity().phase, "prepare");
  {
    Phase outer("load");
    EXPECT_STREQ(current_activity().phase, "load");
    {
      Phase inner("read");
      EXPECT_STREQ(current_activity().phase, "read");
    }
    EXPECT_STREQ(current_activity().phase, "load");
  }
  EXPECT_STREQ(current_activity().phase, "prepare");
}

// Whether something went on since the last call.
bool goes_on() {
  static i64 last = 0;
  i64 now = current_activity().progress;
  return std::exchange(last, now) != now;
}

TEST(Activity, WhateverHappensIsProgress) {
  goes_on();
  EXPECT_FALSE(goes_on());
  made_progress();
  EXPECT_TRUE(goes_on());
  {
    std::atomic<i64> bytes = 0;
    Phase phase("write", &bytes);
    EXPECT_TRUE(goes_on());
    EXPECT_FALSE(goes_on());
    bytes += 1000;
    EXPECT_TRUE(goes_on());
    {
      Phase inner("sync");
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
  i64 calls = current_activity().calls;
  {
    Waiting waiting("barrier");
    EXPECT_STREQ(current_activity().waiting, "barrier");
    goes_on();
  }
  EXPECT_EQ(current_activity().waiting, nullptr);
  EXPECT_EQ(current_activity().calls, calls + 1);
  EXPECT_TRUE(goes_on());
}

}  // namespace
}  // namespace mckpt
