// The card of a finished conversion: digests of the files and tensors that it wrote, of what it was made, and
// by which plan. The result is read for it: SHA-256 takes longer than the conversion, so nobody waits for it
// who did not ask; what every result has is the manifest, with the CRC-32 of each tensor
// (io/listing/manifest.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

class Observer;
struct Conversion;

struct ResultCards {
  std::vector<std::string> files{};  // each gets the card, in the form that its name says
  std::string command{};             // what was asked for, in words
  int threads = 1;
  bool durable = true;
};

// The front of the message of an error after the result has its name: "the result is published as out; only
// its card is missing: ".
std::string published_without(std::string_view what, const Conversion& conversion);
// Throws where a card could not be written, before anything else is.
void check_result_cards(const ResultCards& cards);
// pre: the conversion was run, and prove() called. Throws what make_card() and write_card() throw; the result
// stays published.
void write_result_cards(const Conversion& conversion, const ResultCards& cards, Observer& observer);

}  // namespace mckpt::impl
