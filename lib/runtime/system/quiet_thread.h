// A thread that receives no signals: signals are handled by the thread that runs the command.
#pragma once

#include <functional>
#include <thread>

namespace mckpt::impl {

// Starts a thread that runs `run` with all signals blocked. Throws kRanksFailed if the system grants no
// thread.
std::thread quiet_thread(std::function<void()> run);

}  // namespace mckpt::impl
