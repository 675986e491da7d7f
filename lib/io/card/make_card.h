// make_card(): reads a checkpoint for its card. All files are read once, from front to back, each by one
// thread: SHA-256 of the file and of every tensor in it. One digest takes another read: of a tensor that no
// file stores as it is, row by row: one that is sharded, at strides or compressed.
//
//   Card card = make_card("ckpt", {.threads = 8}, observer);
//   card.checks = ...                              the caller adds what verify found
#pragma once

#include "io/card/card.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

class Observer;

struct CardOptions {
  OpenOptions opening{};
  int threads = 1;
  std::vector<std::string> left_out{};  // paths of the cards that are going to be written
};

// The card of the file or folder at `path`, with its files and tensors, and without checks and version. All
// checkpoints in the folder count, as for verify; other iterations of the training run are left out. Files of
// what cannot be opened as a checkpoint are listed too. Throws kNotFound, kReadFailed, kBadPath,
// kInterrupted.
Card make_card(const std::string& path, const CardOptions& options, Observer& observer);

}  // namespace mckpt::impl
