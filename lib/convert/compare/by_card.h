// verify --card: the files of a path against a card (io/card/check_card.h), or against a list of sums such as
// SHA256SUMS (io/verify/kept_sums.h). Nothing else is checked.
#pragma once

#include <string>

namespace mckpt::impl {

class Observer;
struct OpenOptions;
struct Verified;
struct VerifyOptions;
struct VerifyReport;

// pre: options.card is set. Throws kUsage for options that do not go with a card, kBadCard for a file that is
// neither a card nor a list.
Verified verify_by_card(const std::string& path, const VerifyOptions& options, Observer& observer);

// Adds a finding if a file was changed while it was read, whatever the checks found in it. Returns whether
// all files are unchanged.
bool note_changed(const std::string& path, const OpenOptions& opening, VerifyReport& report);

}  // namespace mckpt::impl
