// A card for people and for other programs: as Markdown, and as the list of sums that `sha256sum -c` reads in
// the folder of the card. `sha256sum -c` reads the Markdown as well, because its table of files is such a
// list.
//
//   # mckpt.card/1 of ckpt
//   4b2d...91  config.json
//   77ac...02  model.safetensors
#pragma once

#include <string>
#include <vector>

#include "io/card/card.h"

namespace mckpt::impl {

std::string card_markdown(const Card& card);
std::string card_sums(const Card& card);

// The form that the end of a file's name asks for: .json, .md or .sha256; a file that is called SHA256SUMS is
// of the last kind. Throws kUsage for other names.
std::string card_in_form_of(const std::string& path, const Card& card);
void check_card_name(const std::string& path);  // throws kUsage as well

// Throws kUsage for a name of no form and for one file that is named twice, kOutputExists if a file that is
// not a report of mckpt has the name, and kNoRoom or kWriteFailed where no file can be made.
void check_card_places(const std::vector<std::string>& paths);
// Writes the card under a hidden name and renames it. pre: check_card_places() found no fault. Throws
// kWriteFailed.
void write_card(const std::string& path, const Card& card, bool durable);

}  // namespace mckpt::impl
