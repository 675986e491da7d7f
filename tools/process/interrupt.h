// Signals that ask the program to stop, as a flag that long work looks at: the work then ends in order, and
// the exit status shows the signal that ended the program: 130, 143 or 129.
#pragma once

#include <atomic>

namespace mckpt::impl {

// Set once SIGINT, SIGTERM or SIGHUP came; from the first call on. A second signal ends the program at once.
const std::atomic<bool>* stop_flag();

// 128 and the number of the signal that set the flag; of SIGINT before one did.
int interrupted_status();

// Throws kInterrupted when the flag is set.
void check_stop();

}  // namespace mckpt::impl
