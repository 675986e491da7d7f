// Signals that ask the program to stop, as a flag that long work looks at: what it holds is then given up in
// order, and the exit status is 130.
#pragma once

#include <atomic>

namespace mckpt {

// Set once SIGINT, SIGTERM or SIGHUP came; from the first call on. A second signal ends the program at once.
const std::atomic<bool>* stop_flag();

// Throws kInterrupted when the flag is set.
void check_stop();

}  // namespace mckpt
