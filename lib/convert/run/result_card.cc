// A card of a result has no checks: the proof of the plan is not a look at the result. `verify --against` is
// one, and its card says so.
#include "convert/run/result_card.h"

#include "convert/plan/account_text.h"
#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "io/card/card_text.h"
#include "io/card/make_card.h"

namespace mckpt::impl {

std::string published_without(std::string_view what, const Conversion& conversion) {
  return cat("the result is published as ", escaped(conversion.path, 4096), "; only its ", what,
             " is missing: ");
}

void check_result_cards(const ResultCards& cards) { check_card_places(cards.files); }

void write_result_cards(const Conversion& conversion, const ResultCards& cards, Observer& observer) {
  if (cards.files.empty()) return;
  try {
    Card card = make_card(conversion.path,
                          {.opening = {.helper_folders = conversion.opening.helper_folders},
                           .threads = cards.threads,
                           .left_out = cards.files},
                          observer);
    card.version = MCKPT_VERSION;
    card.command = cards.command;
    card.made_of = conversion.sources;
    card.plan = account_text(conversion);
    for (const std::string& file : cards.files) write_card(file, card, cards.durable);
  } catch (Error& e) {
    e.prefix(published_without("card", conversion));
    throw;
  }
}

}  // namespace mckpt::impl
