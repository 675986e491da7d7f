// What the watches of two ranks say to each other: frames of one size over a connection that never blocks.
//
//   a rank to rank 0                          rank 0 to a rank
//   kHello  who I am, and the secret     ->
//                                        <-   kWelcome  the other secret
//   kBeat   what I am at                 <->  kBeat     I am here
//   kClaim  an error: may I tell it?     ->
//                                        <-   kTell     yes: it is the cause of all
//   kTold                                ->
//   kEnd    I took you for dead          <->  kEnd      end, with this status
//   kBye    I am done                    <->  kBye      all are done
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "runtime/watch/activity.h"
#include "runtime/watch/socket.h"

namespace mckpt {

enum class Say : u8 { kHello, kWelcome, kBeat, kClaim, kTell, kTold, kEnd, kBye };

using WatchToken = std::array<u8, 16>;  // drawn by rank 0 for the job, told through MPI

struct WatchFrame {
  Say say = Say::kBeat;
  u8 may_follow = 0;  // kClaim: the error may come of another rank's
  u8 pad[2] = {};
  i32 number = 0;               // kHello: the rank; kClaim, kEnd: the exit status
  i64 calls = 0, progress = 0;  // kBeat, as in Activity
  std::array<char, 32> phase = {}, waiting = {};
  WatchToken token = {};  // kHello, kWelcome

  friend bool operator==(const WatchFrame&, const WatchFrame&) = default;
};

WatchFrame beat_of(const Activity& activity);
std::string_view text_of(const std::array<char, 32>& field);

class Wire {
 public:
  explicit Wire(Socket socket) : socket_(std::move(socket)) {}

  // Sends what the connection takes and keeps the rest. A beat that has to wait is left out.
  void send(const WatchFrame& frame);
  void flush();
  // The frames that have come, in order, also those before the connection was closed; at most so many, the
  // others are kept.
  std::vector<WatchFrame> receive(std::size_t most = SIZE_MAX);

  int fd() const { return socket_.fd(); }
  bool open() const { return static_cast<bool>(socket_); }
  bool sending() const { return !out_.empty(); }  // something is kept
  void close() { socket_ = Socket(); }

 private:
  Socket socket_;
  std::vector<std::byte> out_, in_;
};

}  // namespace mckpt
