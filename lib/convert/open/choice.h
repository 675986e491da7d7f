// The note of a conversion about a source that was chosen among others:
//
//   source  pytorch_model_fsdp.bin (the only model); not read: optimizer.bin, scheduler.bin
#pragma once

#include <string>

namespace mckpt::impl {

class Notes;
class Store;

// Adds the note if the path led to one of several checkpoints. `store`: what open_store(path) returned.
void note_choice(const std::string& path, const Store& store, Notes& notes);

}  // namespace mckpt::impl
