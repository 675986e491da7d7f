// A thread that takes no signals: they are for the thread that runs the command.
#pragma once

#include <functional>
#include <thread>

namespace mckpt::impl {

// Throws kRanksFailed where the system grants no thread.
std::thread quiet_thread(std::function<void()> run);

}  // namespace mckpt::impl
