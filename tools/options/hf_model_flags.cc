// The flags that say how to read a Hugging Face model. Both override what mckpt decides by itself: the form
// of the experts, which is read from names and shapes, and the table of the family.
#include "tools/options/hf_model_flags.h"

#include "hf/expert_layout.h"
#include "hf/model_options.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void HfModelFlags::declare(CommandLine& line) {
  opening_ = &line.opening();
  line.option("--expert-layout HOW", expert_layout_,
              "how experts are stored: auto, apart, fused or hub (transposed)")
      .choices({"auto", "apart", "fused", "hub"});
  line.option("--map-file FILE", map_file_,
              "JSON file with rows that override the built-in table, as `mckpt mappings show FAMILY --json` "
              "prints them");
}

HfModelOptions HfModelFlags::options() const {
  return {expert_layout_of(expert_layout_), map_file_, {}, *opening_};
}

}  // namespace mckpt::impl
