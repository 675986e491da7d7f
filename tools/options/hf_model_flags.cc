// The flags that say how to read a Hugging Face model. Both override what mckpt decides by itself: the form
// of the experts, which is read from names and shapes, and the table of the family.
#include "tools/options/hf_model_flags.h"

#include "convert/asked/words.h"
#include "options/fields.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"

namespace mckpt::impl {

void HfModelFlags::declare(CommandLine& line) {
  opening_ = &line.opening();
  FieldFlags flags(line);
  expert_layout_and_map(given_, flags);
}

HfModelOptions HfModelFlags::options() const {
  HfModelOptions options = model_options(given_, {});
  options.files = *opening_;
  return options;
}

}  // namespace mckpt::impl
