// TCP between the ranks of a job, for the watch alone. No call raises SIGPIPE, none waits, and a program that
// is started inherits none of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt {

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct Endpoint {
  std::string address;  // as a number
  int port = 0;
};

struct Listener {
  Socket socket;
  int port = 0;
  std::vector<std::string> addresses;  // under which it may be reached, as numbers
};

// Listens on a free port: of the loopback alone, or of every interface for ranks of other hosts. Throws
// kRanksFailed.
Listener listen_for_ranks(bool this_host_only);

// Lets this process have so many descriptors more than it may by default, which is too few for a thousand
// ranks, as far as the hard limit goes.
void allow_connections(int more);

// The next connection that waits, or an empty socket.
Socket accept_one(const Listener& listener);

// A connection that is under way: when it can be written, connect_error() has how it went. An empty socket
// where it cannot even begin; `error` then is the system's errno.
Socket begin_connecting(const Endpoint& to, int& error);
// 0: connected.
int connect_error(const Socket& socket);

}  // namespace mckpt
