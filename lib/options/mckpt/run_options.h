// How a planned conversion is carried out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mckpt {

struct RunOptions {
  int threads = 1;
  std::int64_t max_memory = std::int64_t{256} << 20;  // bytes, for the buffers of all threads together
  bool sync = true;                                   // wait until the result is on the disk
  // Replace an existing result, once the new one is complete, and what another conversion left unfinished
  bool overwrite = false;
  // An interrupted run of the same conversion is continued in any case; with `resume` also where that run was
  // to replace a result. Not of one file (kUsage)
  bool resume = false;
  bool allow_overflow = false;  // publish although a cast made finite values infinite
  // Files that get a card of the result (mckpt/verify.h), which is read for it
  std::vector<std::string> card{};
  std::string command{};  // for the card: what was asked for
};

}  // namespace mckpt
