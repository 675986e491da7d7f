// Declares GLOB and --regex. The choice itself, with its error for a name that matches nothing, is
// io/choice/tensor_choice.h.
#include "tools/options/choice.h"

#include "io/choice/tensor_choice.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void declare_choice(CommandLine& line, TensorChoice& choice) {
  line.positional("GLOB", choice.pattern, "only tensors whose whole name matches, as in 'model.layers.0.*'");
  line.flag("--regex", choice.regex,
            "GLOB is a regular expression, found anywhere in the name: POSIX extended, with \\d \\w \\s \\b");
}

}  // namespace mckpt::impl
