// What the watch speaks through: sockets, and frames over them.
#include "runtime/watch/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/runtime/connect.h"

namespace mckpt {
namespace {

TEST(WatchSockets, OnOneHostTheLoopbackAloneIsListenedOn) {
  Listener listener = listen_for_ranks(true);
  EXPECT_EQ(listener.addresses.size(), 1u);
  EXPECT_EQ(error_of({listener.addresses[0], listener.port}), 0);
  for (const std::string& address : listen_for_ranks(false).addresses)
    EXPECT_NE(error_of({address, listener.port}), 0) << address;
}

// A container may have no interface but the loopback: then there is no address.
TEST(WatchSockets, ForSeveralHostsEveryAddressAnswers) {
  Listener listener = listen_for_ranks(false);
  EXPECT_EQ(error_of({"127.0.0.1", listener.port}), 0);
  for (const std::string& address : listener.addresses) {
    EXPECT_FALSE(address.starts_with("127.")) << address;
    EXPECT_EQ(error_of({address, listener.port}), 0) << address;
  }
}

TEST(WatchWire, FramesComeWholeHoweverTheyAreCut) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire{Socket(ends[0])};
  Socket other(ends[1]);
  WatchFrame frame = beat_of({"a phase with a name that is longer than its field", "barrier", 7, 9});
  EXPECT_EQ(text_of(frame.phase), "a phase with a name that is lon");
  const char* bytes = reinterpret_cast<const char*>(&frame);
  for (std::size_t i = 0; i < sizeof frame; i++) {
    EXPECT_TRUE(wire.receive().empty()) << i;
    ASSERT_EQ(write(other.fd(), bytes + i, 1), 1);
  }
  EXPECT_EQ(wire.receive(), std::vector<WatchFrame>{frame});
  ASSERT_EQ(write(other.fd(), bytes, 5), 5);
  other = Socket();
  EXPECT_TRUE(wire.receive().empty());
  EXPECT_FALSE(wire.open());
  wire.send(frame);  // into nothing
}

TEST(WatchWire, FramesThatAreNotAskedForYetAreKept) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire{Socket(ends[0])}, other{Socket(ends[1])};
  auto numbers = [&](std::size_t most) {
    std::vector<i32> out;
    for (const WatchFrame& frame : wire.receive(most)) out.push_back(frame.number);
    return out;
  };
  for (int i = 0; i < 5; i++) other.send({.say = Say::kEnd, .number = i});
  EXPECT_EQ(numbers(1), std::vector<i32>{0});
  EXPECT_EQ(numbers(2), (std::vector<i32>{1, 2}));
  other.close();
  EXPECT_EQ(numbers(SIZE_MAX), (std::vector<i32>{3, 4}));
  EXPECT_FALSE(wire.open());
  EXPECT_TRUE(numbers(1).empty());
}

TEST(WatchWire, WhatTheOtherSideDoesNotTakeWaitsButBeatsDoNot) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire{Socket(ends[0])}, other{Socket(ends[1])};
  while (!wire.sending()) wire.send(beat_of({}));
  for (int i = 0; i < 3; i++) wire.send({.say = Say::kEnd, .number = i}), wire.send(beat_of({}));
  std::vector<i32> ends_heard;
  while (ends_heard.size() < 3) {
    for (const WatchFrame& frame : other.receive())
      if (frame.say == Say::kEnd) ends_heard.push_back(frame.number);
    wire.flush();
  }
  EXPECT_EQ(ends_heard, (std::vector<i32>{0, 1, 2}));
  other.close();
  wire.send({.say = Say::kEnd});  // and no SIGPIPE
  EXPECT_TRUE(other.receive().empty());
}

}  // namespace
}  // namespace mckpt
