// mckpt::plot(): a picture of a checkpoint: which rank or file holds which items of every tensor, with holes
// and overlaps, sizes by module, and if wanted what the values are like.
//
//   mckpt::plot("ckpt", "ckpt.html", {.stats = true});
//
// A .html file is one page that any browser opens without a network; a .svg file is a drawing of the shard
// map.
#pragma once

#include <cstdint>
#include <string>

#include "mckpt/check_options.h"
#include "mckpt/observer.h"

namespace mckpt {

// The result of a drawing.
struct Plotted {
  bool sound = false;      // nothing is wrong with the checkpoint, as far as headers say it
  std::int64_t bytes = 0;  // of the picture
  std::int64_t tensors = 0;
  std::int64_t faulty_tensors = 0;  // that are not stored exactly once
};

// Replaces `output` if it is a picture that mckpt drew; any other file there is refused. Throws Error for an
// output of another ending, and if the checkpoint cannot be opened; damage of single tensors is drawn.
MCKPT_API Plotted plot(const std::string& path, const std::string& output, const PlotOptions& options = {},
                       Observer* observer = nullptr);

}  // namespace mckpt
