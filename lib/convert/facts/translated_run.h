// A checkpoint of one format with the names of another: its tensors as a view, and the facts of its run.
#pragma once

#include <memory>

#include "convert/facts/run_facts.h"
#include "convert/views/piece_store.h"

namespace mckpt::impl {

struct TranslatedRun {
  std::unique_ptr<PieceStore> store;
  RunFacts facts{};  // of the objects of the view's source, which the view does not have
};

}  // namespace mckpt::impl
