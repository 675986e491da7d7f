// Connections as the tests make them.
#pragma once

#include <poll.h>

#include <cerrno>

#include "runtime/watch/socket.h"

namespace mckpt {

// Waits for the connection; an empty socket where there is none.
inline Socket connected(const Endpoint& to, int* error = nullptr) {
  int began = 0;
  Socket made = begin_connecting(to, began);
  pollfd writable{made.fd(), POLLOUT, 0};
  int result = !made ? began : poll(&writable, 1, 60'000) == 1 ? connect_error(made) : ETIMEDOUT;
  if (error) *error = result;
  return result == 0 ? std::move(made) : Socket();
}

inline int error_of(const Endpoint& to) {
  int error = 0;
  connected(to, &error);
  return error;
}

}  // namespace mckpt
