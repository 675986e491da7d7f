// check_card(): whether a folder is the one that its card was made of. Nothing of a file is believed: the
// card says which bytes belong to which tensor, so a damaged header does not hide what else changed.
//
//   files     14 files     each is there with its size, and no other     names and sizes
//   digests   14 files     SHA-256 of each                               one read of all files
//
// A file with another SHA-256 is read again to say which bytes changed: bytes of which tensors, or of none;
// and whether they are bytes of another tensor, zeros, or moved. Only the tensors whose places are not on the
// card are then read through their format: `tensors`.
#pragma once

#include <string>

#include "io/card/card.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

class Observer;

struct CardCheck {
  OpenOptions opening{};
  int threads = 1;
  std::string card_path{};  // the card's own file, which may be in the folder
};

// `report.unread` has what the card does not list on purpose. Throws kNotFound, kReadFailed, kInterrupted;
// kUsage if the card is of a file and `path` is a folder, or the other way round.
VerifyReport check_card(const Card& card, const std::string& path, const CardCheck& options,
                        Observer& observer);

}  // namespace mckpt::impl
