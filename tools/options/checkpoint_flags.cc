// Declared by the fields of the struct; --base is declared by those commands that have it.
#include "tools/options/checkpoint_flags.h"

#include "convert/asked/words.h"
#include "options/fields.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"

namespace mckpt::impl {

void CheckpointFlags::declare(CommandLine& line) {
  opening_ = &line.opening();
  FieldFlags flags(line);
  flags.without({"base"});
  fields(given_, flags);
}

CheckpointOptions CheckpointFlags::options() const {
  CheckpointOptions options = checkpoint_options(given_, {});
  options.model.files = *opening_;
  return options;
}

}  // namespace mckpt::impl
