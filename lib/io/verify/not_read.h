// Files and folders beside a checkpoint that no check looked at, which no verdict covers.
#pragma once

#include <span>
#include <string>

namespace mckpt::impl {

// A file or folder beside the checkpoint that was not looked at.
struct NotRead {
  std::string path;
  std::string reason{};  // if the path does not show it
  bool folder = false;
  bool left_out = false;  // a comparison of the checkpoints could have read it, and did not look at it

  // Why it was not read, for those who do not see that a comparison was made; "": the path shows it.
  std::string why() const;
};

// "1 file was", "2 files and 1 folder were": for a sentence of what was not read. "": nothing.
std::string counted_unread(std::span<const NotRead> unread);

}  // namespace mckpt::impl
